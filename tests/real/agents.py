"""Coding agents against the gateway in front of every wire: Claude Code and Codex CLI.

    python -m tests.real.agents                  # installs both (650 MB of npm), runs all
    python -m tests.real.agents --only codex --scenario resume --home /tmp/agents

Each agent has its own HOME, and the model is a script behind a strict provider: what an official
service would refuse, fails. Each scenario is run without the gateway too (`direct`, the agent's own
wire), so that a limit of the client is told from one of the gateway. A case passes if the agent
ended with 0, printed the model's last text, did what the model asked for, and no request was
refused. Needs no key and no network but 127.0.0.1. Too large for CI.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec
import uvicorn
from anyio.abc import SocketAttribute

from streamlib import Failed
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib.loopback import Behaviour, Turn
from streamlib.loopback.provider import Loopback, ServedResponse
from streamlib.loopback.responses import scripted_response
from streamlib.loopback.server import serve_connection
from streamlib.request.prompt import Prompt
from streamlib.wires.routes import Route
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import FunctionCallArgumentsDelta, ResponseEvent
from streamlib_parsers.items import (
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    ResponseItem,
    Text,
    WireApi,
)
from tests.real.counterparts import HOME

PACKAGES: Final = {"claude": "@anthropic-ai/claude-code@2.1.197", "codex": "@openai/codex@0.169.0"}
MODELS: Final[dict[WireApi, str]] = {
    "messages": "anthropic:claude-sonnet-4-5",
    "responses": "openai:gpt-5.5",
    "chat": "openai:gpt-5.5",
    "gemini": "google:gemini-3.5-flash",
}
"""Upstream wire -> the model there, with its provider's rules."""

OWN_WIRES: Final[dict[str, WireApi]] = {"claude": "messages", "codex": "responses"}
DIRECT: Final = "direct"
SHELLS: Final = ("Bash", "exec_command", "shell_command", "shell")
"""Tools of the agents that run a command."""

KEYS: Final = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
PATIENCE: Final = 150.0
"""Seconds that a run may take."""

FINAL_TEXT: Final = "The proof is written."
RESUMED_TEXT: Final = "I still know it."


class Step(NamedTuple):
    """What the model does in one turn: commands to run at once, or files to write and edit."""

    commands: tuple[str, ...] = ()
    write: tuple[str, str] | None = None
    """A file's name and text."""
    edit: tuple[str, str, str] | None = None
    """A file's name, the text to replace, and the new text."""


class Scenario(NamedTuple):
    """One way to use an agent.

    steps: turns of the model before its last text.
    behaviour: how the first request of the conversation is responded to; the others succeed.
    fails_in_call: the first response fails inside a call's arguments.
    resumes: the agent is started a second time, with the conversation of the first.
    files: name -> text that must be there in the end.
    """

    steps: tuple[Step, ...]
    files: dict[str, str]
    behaviour: Behaviour | None = None
    fails_in_call: bool = False
    resumes: bool = False


PROOF: Final = Step(commands=("echo written by the model > proof.txt",))
PROVEN: Final = {"proof.txt": "written by the model\n"}
SCENARIOS: Final[dict[str, Scenario]] = {
    "thinking": Scenario((PROOF,), PROVEN),
    "three calls": Scenario(
        (Step(commands=("echo a > a.txt", "echo b > b.txt", "echo c > c.txt")),),
        {"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"},
    ),
    "edit and write": Scenario(
        (
            Step(write=("poem.txt", "roses are red\nviolets are blue\n")),
            Step(edit=("poem.txt", "violets are blue", "violets are violet")),
        ),
        {"poem.txt": "roses are red\nviolets are violet\n"},
    ),
    "4,000 lines": Scenario(
        (Step(commands=("seq 1 4000 | tee lines.txt",)),),
        {"lines.txt": "".join(f"{n}\n" for n in range(1, 4001))},
    ),
    "resume": Scenario((PROOF,), PROVEN, resumes=True),
    "429": Scenario((PROOF,), PROVEN, Behaviour(status=429, headers={"retry-after": "1"})),
    "error in a call": Scenario((PROOF,), PROVEN, fails_in_call=True),
    "cut": Scenario((PROOF,), PROVEN, Behaviour(fault="disconnect", at=6)),
}


class Script:
    """The model: the steps of a scenario, in order, each after the outputs of the one before."""

    def __init__(self, scenario: Scenario, work: Path) -> None:
        self._scenario = scenario
        self._work = work
        """Where the agent works: its file tools want whole paths."""
        self._responses = 0
        """Responses so far: the ids of calls come from it."""
        self._failures = 1 if scenario.fails_in_call else 0
        """Responses that still have to fail."""

    def __call__(self, prompt: Prompt, wire: Any = "messages") -> Sequence[ResponseEvent]:
        self._responses += 1
        items = self._items(prompt)
        events = scripted_response(Turn(items), prompt, wire)
        is_calling = any(isinstance(item, FunctionCall) for item in items)
        if is_calling and self._failures:
            self._failures -= 1
            return failed_in_call(events)
        return events

    def _items(self, prompt: Prompt) -> list[ResponseItem]:
        names = {tool.name for tool in prompt.tools}
        step = self._next_step(prompt)
        if step is None or not names.intersection(SHELLS):
            return [*self._thinking(prompt), Message("assistant", (Text(self._last_text(prompt)),))]
        calls = calls_of(step, names, self._responses, self._work)
        return [*self._thinking(prompt), *calls]

    def _thinking(self, prompt: Prompt) -> list[Reasoning]:
        if prompt.thinking is None or prompt.thinking.effort == "off":
            return []
        return [Reasoning("One thing after another.")]

    def _next_step(self, prompt: Prompt) -> Step | None:
        """The step after as many turns of calls as were answered."""
        turns = 0
        was_output = False
        for item in prompt.items:
            is_output = isinstance(item, (FunctionCallOutput, CustomToolCallOutput))
            turns += is_output and not was_output
            was_output = is_output
        if turns < len(self._scenario.steps):
            return self._scenario.steps[turns]
        return None

    def _last_text(self, prompt: Prompt) -> str:
        for item in prompt.items:
            if isinstance(item, Message) and item.role == "assistant" and item.text == FINAL_TEXT:
                return RESUMED_TEXT
        return FINAL_TEXT


def failed_in_call(events: Sequence[ResponseEvent]) -> list[ResponseEvent]:
    """The events up to the first arguments of a call, then a failure."""
    sent: list[ResponseEvent] = []
    for event in events:
        sent.append(event)
        if isinstance(event, FunctionCallArgumentsDelta):
            break
    return [*sent, Failed(ErrorInfo("overloaded", "the scripted model is overloaded"))]


def calls_of(step: Step, names: set[str], number: int, work: Path) -> list[FunctionCall]:
    """The calls of a step, for the tools that the agent offers."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for command in step.commands:
        calls.append(shell_call(command, names))
    if step.write is not None:
        name, text = step.write
        if "Write" in names:
            calls.append(("Write", {"file_path": str(work / name), "content": text}))
        else:
            lines = "".join(f"+{line}\n" for line in text.splitlines())
            calls.append(shell_call(patch(f"*** Add File: {name}\n{lines}"), names))
    if step.edit is not None:
        name, old, new = step.edit
        if "Edit" in names:
            path = str(work / name)
            arguments = {"file_path": path, "old_string": old, "new_string": new}
            calls.append(("Edit", arguments))
        else:
            calls.append(shell_call(patch(f"*** Update File: {name}\n@@\n-{old}\n+{new}\n"), names))
    result: list[FunctionCall] = []
    for n, (name, arguments) in enumerate(calls):
        encoded = msgspec.json.encode(arguments).decode()
        result.append(FunctionCall(f"call_{number}_{n}", name, encoded))
    return result


def patch(hunk: str) -> str:
    """The command by which Codex changes files."""
    return f"apply_patch <<'END'\n*** Begin Patch\n{hunk}*** End Patch\nEND"


def shell_call(command: str, names: set[str]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call that runs a command."""
    if "Bash" in names:
        return "Bash", {"command": command, "description": "Does it"}
    if "exec_command" in names:
        return "exec_command", {"cmd": command}
    if "shell_command" in names:
        return "shell_command", {"command": command}
    return "shell", {"command": ["bash", "-lc", command]}


class Upstream(Loopback):
    """The strict provider of one case.

    Attributes:
        refused: bodies of errors for requests that the service does not take.
        requests: how many requests came.
    """

    def __init__(self, scenario: Scenario, work: Path) -> None:
        super().__init__(Behaviour(strict=True), self._answer)
        self.refused: list[str] = []
        self.requests = 0
        self._script = Script(scenario, work)
        self._first = scenario.behaviour
        """For the first request of the conversation."""
        self._is_main = False
        """The request is of the conversation, and not of a title or the like."""

    def _answer(self, prompt: Prompt, wire: Any) -> Sequence[ResponseEvent]:
        return self._script(prompt, wire)

    def next_behaviour(self) -> Behaviour:
        if self._first is None or not self._is_main:
            return self.behaviour
        first, self._first = self._first, None
        return first

    def response(
        self, matched: Route | None, body: bytes, headers: dict[str, str], path: str
    ) -> ServedResponse:
        self.requests += 1
        self._is_main = any(f'"{name}"'.encode() in body for name in SHELLS)
        served = super().response(matched, body, headers, path)
        if served.status in (400, 404) and matched is not None:
            self.refused.append(b"".join(served.chunks).decode("utf-8", "replace"))
        return served


@asynccontextmanager
async def served(upstream: Upstream) -> AsyncGenerator[str]:
    """The address of the strict provider."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, partial(serve_connection, upstream))
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


@asynccontextmanager
async def gateway_before(url: str, wire: WireApi) -> AsyncGenerator[str]:
    """A gateway on a real port, before the strict provider."""
    base = {"gemini": f"{url}/v1beta", "messages": url}.get(wire, f"{url}/v1")
    table = RouteTable([RouteRule("*", MODELS[wire], wire_api=wire, base_url=base)])
    async with anyio.create_task_group() as group:
        server = uvicorn.Server(
            uvicorn.Config(gateway(Gateway(table)), port=0, log_level="warning")
        )
        group.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await anyio.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        await anyio.sleep(0.3)
        group.cancel_scope.cancel()


# --- the agents ---


def claude(url: str, home: Path, *, resumes: bool) -> tuple[list[str], dict[str, str]]:
    """Claude Code's command and environment."""
    command = [str(program("claude")), "-p", "Write the proof.", "--model", "claude-sonnet-4-5"]
    if resumes:
        command = [str(program("claude")), "-c", "-p", "What was it?"]
        command += ["--model", "claude-sonnet-4-5"]
    command += ["--allowedTools", "Bash,Write,Edit,Read"]
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "MAX_THINKING_TOKENS": "2000",
    }
    return command, environment


def codex(url: str, home: Path, *, resumes: bool) -> tuple[list[str], dict[str, str]]:
    """Codex' command and environment; its provider is in a file."""
    lines = [
        'model = "gpt-5.5"',
        'model_reasoning_effort = "medium"',
        'model_provider = "gateway"',
        "[model_providers.gateway]",
        'name = "gateway"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        'env_key = "GATEWAY_KEY"',
    ]
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    options = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
    command = [str(program("codex")), "exec", *options]
    if resumes:
        return [*command, "resume", "--last", "What was it?"], {"GATEWAY_KEY": "dummy"}
    return [*command, "Write the proof."], {"GATEWAY_KEY": "dummy"}


AGENTS: Final[dict[str, Callable[..., tuple[list[str], dict[str, str]]]]] = {
    "claude": claude,
    "codex": codex,
}
FOLDER = [HOME / "agents"]
"""Where npm put the agents; `--home` changes it."""


def program(name: str) -> Path:
    return FOLDER[0] / "node_modules" / ".bin" / name


def install() -> None:
    """Installs both from npm; Claude Code's installer, which places its binary, is run
    separately."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise FileNotFoundError("there is no npm")
    home = FOLDER[0]
    home.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(home)]
    subprocess.run([*command, *PACKAGES.values()], check=True)
    package = home / "node_modules" / "@anthropic-ai" / "claude-code"
    subprocess.run([node, "install.cjs"], cwd=package, check=True, capture_output=True)


# --- the cases ---


async def case(agent: str, wire: str, scenario: Scenario) -> str | None:
    """Runs an agent once; why it failed, or None."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        upstream = Upstream(scenario, work)
        async with served(upstream) as url:
            if wire == DIRECT:
                fault = await both_runs(agent, url, home, work, scenario)
            else:
                async with gateway_before(url, wire) as before:  # type: ignore[arg-type]
                    fault = await both_runs(agent, before, home, work, scenario)
        if upstream.refused:
            return f"refused: {upstream.refused[0][:300]}"
        return fault or fault_in_files(work, scenario)


async def both_runs(agent: str, url: str, home: Path, work: Path, scenario: Scenario) -> str | None:
    """The run of the agent, and the one that goes on with it."""
    fault = await run_agent(agent, url, home, work, FINAL_TEXT, resumes=False)
    if fault is None and scenario.resumes:
        return await run_agent(agent, url, home, work, RESUMED_TEXT, resumes=True)
    return fault


async def run_agent(
    agent: str, url: str, home: Path, work: Path, text: str, *, resumes: bool
) -> str | None:
    """Starts the agent; why it failed, or None."""
    command, environment = AGENTS[agent](url, home, resumes=resumes)
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), **environment}
    done: subprocess.CompletedProcess[bytes] | None = None
    with anyio.move_on_after(PATIENCE):
        done = await anyio.run_process(
            command, cwd=work, check=False, stdin=subprocess.DEVNULL, env=variables
        )
    if done is None:
        return "it did not end"
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        log = output + done.stderr.decode("utf-8", "replace")
        return f"it ended with {done.returncode}: {log[-500:]}"
    if text not in output:
        return f"the last text was not printed: {output[-300:]!r}"
    return None


def fault_in_files(work: Path, scenario: Scenario) -> str | None:
    """What the agent did not do."""
    for name, text in scenario.files.items():
        path = work / name
        if not path.exists():
            return f"{name} was not written"
        if path.read_text(encoding="utf-8") != text:
            return f"{name} has another text"
    return None


async def run(only: Sequence[str], wires: Sequence[str], scenarios: Sequence[str]) -> int:
    """Every case, one line each; how many failed that do not fail without the gateway."""
    for name in KEYS:
        os.environ.setdefault(name, "dummy")
    failed = 0
    for agent in only:
        for name in scenarios:
            limit: str | None = None
            for wire in wires:
                fault = await case(agent, wire, SCENARIOS[name])
                outcome = "passed"
                if fault is not None and wire == DIRECT:
                    limit = fault
                    outcome = f"the client's own limit: {fault}"
                elif fault is not None:
                    failed += limit is None
                    outcome = f"as without the gateway: {fault}" if limit else fault
                sys.stdout.write(f"{agent:<7} {name:<16} {wire:<10} {outcome}\n")
                sys.stdout.flush()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(AGENTS), action="append")
    parser.add_argument("--scenario", choices=list(SCENARIOS), action="append")
    parser.add_argument("--wire", choices=[DIRECT, *MODELS], action="append")
    parser.add_argument("--home", type=Path, default=FOLDER[0], help="where npm puts the agents")
    arguments = parser.parse_args()
    FOLDER[0] = arguments.home
    only = arguments.only or list(AGENTS)
    if not all(program(agent).exists() for agent in only):
        install()
    wires = arguments.wire or [DIRECT, *MODELS]
    return anyio.run(run, only, wires, arguments.scenario or list(SCENARIOS))


if __name__ == "__main__":
    sys.exit(main())
