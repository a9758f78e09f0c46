"""Coding agents against the gateway in front of every wire: Claude Code and Codex CLI.

    python -m tests.real.agents               # installs both (650 MB of npm, into `.real/`), runs
    all python -m tests.real.agents --only codex

Each agent has its own HOME. The model is a script: it reasons, runs one command through the tool
that the agent offers, and reports the result. A case passes if the command ran, the agent printed
the model's final text and exited with 0, and the signed reasoning was sent back in the next turn.
Needs no key and no network but 127.0.0.1. Too large for CI.
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
from typing import Any, Final

import anyio
import msgspec
import uvicorn

from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib.loopback import serve
from streamlib.request.history import OUTPUTS
from streamlib.request.prompt import Prompt
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import FunctionCall, Message, Origin, Reasoning
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage
from tests.real.counterparts import HOME

PACKAGES: Final = {"claude": "@anthropic-ai/claude-code@2.1.197", "codex": "@openai/codex@0.169.0"}
WIRES: Final = ("messages", "chat", "responses", "gemini")
COMMAND: Final = "echo written by the model > proof.txt"
SIGNED: Final = "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ="
FINAL_TEXT: Final = "The proof is written."
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "Bash": {"command": COMMAND, "description": "Writes the proof"},
    "exec_command": {"cmd": COMMAND},
    "shell_command": {"command": COMMAND},
    "shell": {"command": ["bash", "-lc", COMMAND]},
}
"""The agents' own tools for a command."""


class Script:
    """The model."""

    def __init__(self) -> None:
        self.requests = 0
        self.came_back = 0
        """How many requests contained its signature."""

    def __call__(self, prompt: Prompt, wire: Any = "messages") -> Sequence[ResponseEvent]:
        self.requests += 1
        self.came_back += SIGNED in repr(prompt.items)
        assembly = EventAssembler(LIMITS, Origin(wire), lambda n: f"call_{self.requests}_{n}")
        assembly.identify(f"resp_{self.requests}", "scripted")
        assembly.usage(Usage(input_tokens=100, output_tokens=0))
        name = next((tool.name for tool in prompt.tools if tool.name in ARGUMENTS), None)
        answered = any(isinstance(item, OUTPUTS) for item in prompt.items)
        if name and not answered:
            reasoning = assembly.open(Reasoning())
            assembly.reasoning(reasoning, "One command will do.")
            reasoning.fields["encrypted_content" if wire == "responses" else "signature"] = SIGNED
            assembly.close(reasoning)
            call = assembly.open(FunctionCall(assembly.new_call_id(), name))
            for fragment in msgspec.json.encode(ARGUMENTS[name]).decode().partition(":"):
                assembly.arguments(call, fragment)
            assembly.close(call)
        else:
            message = assembly.open(Message("assistant"))
            assembly.text(message, FINAL_TEXT)
            assembly.close(message)
        assembly.usage(Usage(input_tokens=100, output_tokens=20))
        assembly.complete("tool_calls" if name and not answered else "stop")
        return assembly.take()


def claude(url: str, home: Path) -> tuple[list[str], dict[str, str]]:
    """Claude Code's command and environment."""
    command = [
        str(program("claude")),
        "-p",
        "Write the proof.",
        "--model",
        "claude-sonnet-4-5",
        "--allowedTools",
        "Bash",
    ]
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return command, {**environment, "MAX_THINKING_TOKENS": "2000"}


def codex(url: str, home: Path) -> tuple[list[str], dict[str, str]]:
    """Codex' command and environment; its provider is in a file."""
    lines = [
        'model = "scripted"',
        'model_provider = "gateway"',
        "[model_providers.gateway]",
        'name = "gateway"',
    ]
    lines += [f'base_url = "{url}/v1"', 'wire_api = "responses"', 'env_key = "GATEWAY_KEY"']
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    command = [
        str(program("codex")),
        "exec",
        "--skip-git-repo-check",
        "--sandbox",
        "danger-full-access",
        "Write the proof.",
    ]
    return command, {"GATEWAY_KEY": "dummy"}


AGENTS: Final[dict[str, Callable[[str, Path], tuple[list[str], dict[str, str]]]]] = {
    "claude": claude,
    "codex": codex,
}


def program(name: str) -> Path:
    return HOME / "agents" / "node_modules" / ".bin" / name


def install() -> None:
    """Installs both from npm; Claude Code's installer, which places its binary, is run
    separately."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise FileNotFoundError("there is no npm")
    home = HOME / "agents"
    home.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            npm,
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(home),
            *PACKAGES.values(),
        ],
        check=True,
    )
    package = home / "node_modules" / "@anthropic-ai" / "claude-code"
    subprocess.run([node, "install.cjs"], cwd=package, check=True, capture_output=True)


@asynccontextmanager
async def gateway_before(script: Script, wire: Any) -> AsyncGenerator[str]:
    """A gateway on a real port, before the scripted model."""
    async with anyio.create_task_group() as group:
        upstream = await group.start(partial(serve, answers=script))
        base = f"{upstream}/v1beta" if wire == "gemini" else upstream
        table = RouteTable([RouteRule("*", "custom:scripted", wire_api=wire, base_url=base)])
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


async def case(agent: str, wire: str) -> str | None:
    """Runs an agent once; why it failed, or None."""
    script = Script()
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        async with gateway_before(script, wire) as url:
            command, environment = AGENTS[agent](url, home)
            with anyio.move_on_after(120) as patience:
                run = partial(
                    anyio.run_process, command, cwd=work, check=False, stdin=subprocess.DEVNULL
                )
                done = await run(env={"PATH": os.environ["PATH"], "HOME": str(home), **environment})
            if patience.cancelled_caught:
                return f"it did not end; {script.requests} requests"
            output = done.stdout.decode("utf-8", "replace")
            if done.returncode != 0:
                log = output + done.stderr.decode("utf-8", "replace")
                return f"it ended with {done.returncode}: {log[-800:]}"
            if not (work / "proof.txt").exists():
                return "the command did not run"
            if FINAL_TEXT not in output:
                return "the final text was not printed"
            if not script.came_back:
                return "the signature was not sent back"
            return None


async def run(only: Sequence[str]) -> int:
    """Every case, one line each; how many failed."""
    failed = 0
    for agent in only:
        for wire in WIRES:
            fault = await case(agent, wire)
            failed += fault is not None
            sys.stdout.write(f"{agent:<7} on {wire:<10} {fault or 'passed'}\n")
            sys.stdout.flush()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(AGENTS), action="append")
    only = parser.parse_args().only or list(AGENTS)
    if not all(program(agent).exists() for agent in only):
        install()
    return anyio.run(run, only)


if __name__ == "__main__":
    sys.exit(main())
