"""The model of the agents' scenarios: a script behind a strict provider, which signs what it gives
out and counts what of it comes back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec
from anyio.abc import SocketAttribute

from streamlib import Failed, accumulate, parser
from streamlib.request.prompt import Prompt
from streamlib.testing import Behaviour, Turn
from streamlib.testing.provider.provider import Loopback, ServedResponse
from streamlib.testing.provider.responses import scripted_response
from streamlib.testing.provider.server import serve_connection
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
    snake_case,
)
from streamlib_parsers.tool_specs import ToolSpec

SHELLS: Final = (
    "Bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "bash",
    "run_command",
)
"""Tools of the agents that run a command."""

WRITERS: Final = ("Write", "write_file", "write")
EDITORS: Final = ("Edit", "replace", "edit")
COMMANDS: Final = ("command", "cmd")
"""Names of a command among a tool's parameters."""

MARKS: Final = (*COMMANDS, "file_path", "filePath")
"""Arguments by which a call is known again."""

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
THREE: Final = Step(commands=("echo a > a.txt", "echo b > b.txt", "echo c > c.txt"))
SCENARIOS: Final[dict[str, Scenario]] = {
    "signatures": Scenario((PROOF, THREE), {**PROVEN, "c.txt": "c\n"}, resumes=True),
    "thinking": Scenario((PROOF,), PROVEN),
    "three calls": Scenario((THREE,), {"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"}),
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
        tools = {tool.name: tool for tool in prompt.tools}
        step = self._next_step(prompt)
        if step is None or not set(tools).intersection(SHELLS):
            return [*self._thinking(prompt), Message("assistant", (Text(self._last_text(prompt)),))]
        calls = calls_of(step, tools, self._responses, self._work)
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
            if isinstance(item, Message) and item.role == "assistant" and FINAL_TEXT in item.text:
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


def calls_of(step: Step, tools: dict[str, ToolSpec], number: int, work: Path) -> list[FunctionCall]:
    """The calls of a step, for the tools that the agent offers."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for command in step.commands:
        calls.append(shell_call(command, tools))
    if step.write is not None:
        name, text = step.write
        writer = tool_of(WRITERS, tools)
        if writer is not None:
            calls.append((writer.name, arguments_of(writer, str(work / name), text)))
        elif "exec_command" in tools or "shell" in tools:
            lines = "".join(f"+{line}\n" for line in text.splitlines())
            calls.append(shell_call(patch(f"*** Add File: {name}\n{lines}"), tools))
        else:
            calls.append(shell_call(f"cat > {name} <<'END'\n{text}END", tools))
    if step.edit is not None:
        name, old, new = step.edit
        editor = tool_of(EDITORS, tools)
        if editor is not None:
            calls.append((editor.name, arguments_of(editor, str(work / name), "", old, new)))
        elif "exec_command" in tools or "shell" in tools:
            hunk = f"*** Update File: {name}\n@@\n-{old}\n+{new}\n"
            calls.append(shell_call(patch(hunk), tools))
        else:
            calls.append(shell_call(f"sed -i 's/{old}/{new}/' {name}", tools))
    result: list[FunctionCall] = []
    for n, (name, arguments) in enumerate(calls):
        encoded = msgspec.json.encode(arguments).decode()
        result.append(FunctionCall(f"call_{number}_{n}", name, encoded))
    return result


def tool_of(names: Sequence[str], tools: dict[str, ToolSpec]) -> ToolSpec | None:
    """The first of these tools that the agent offers."""
    for name in names:
        if name in tools:
            return tools[name]
    return None


def arguments_of(
    tool: ToolSpec, path: str, text: str, old: str = "", new: str = ""
) -> dict[str, Any]:
    """Arguments of a tool for files, by the names that its parameters have."""
    values = {
        "file_path": path,
        "filePath": path,
        "content": text,
        "old_string": old,
        "oldString": old,
        "new_string": new,
        "newString": new,
        "instruction": "Change one line.",
    }
    schema: dict[str, Any] = dict(tool.schema or {})
    return {name: values[name] for name in schema.get("properties", {}) if name in values}


def patch(hunk: str) -> str:
    """The command by which Codex changes files."""
    return f"apply_patch <<'END'\n*** Begin Patch\n{hunk}*** End Patch\nEND"


def shell_call(command: str, tools: dict[str, ToolSpec]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call that runs a command."""
    shell = tool_of(SHELLS, tools)
    assert shell is not None
    if shell.name == "shell":
        return "shell", {"command": ["bash", "-lc", command]}
    schema: dict[str, Any] = dict(shell.schema or {})
    properties = schema.get("properties", {})
    arguments: dict[str, Any] = {name: command for name in COMMANDS if name in properties}
    if "description" in properties:
        arguments["description"] = "Does it"
    if "is_background" in schema.get("required", ()):
        arguments["is_background"] = False
    return shell.name, arguments


class Signatures:
    """What the provider has signed, and how much of it comes back.

    Attributes:
        due: for each request, the signed items of the turns in its history; of all requests.
        returned: those that were there with their signature.
    """

    def __init__(self) -> None:
        self.due = 0
        self.returned = 0
        self._turns: list[tuple[list[str], list[str]]] = []
        """Marks of a turn's calls, and its signatures."""

    def note_response(self, wire_api: WireApi, body: bytes) -> None:
        """Notes what a response has signed."""
        stream = parser(wire_api)
        response = accumulate([*stream.feed(body), *stream.close()])
        signatures: list[str] = []
        for item in response.items:
            for state in (item.signature, getattr(item, "encrypted_content", None)):
                if state:
                    signatures.append(state)
        marks: list[str] = []
        for call in response.calls:
            if isinstance(call, FunctionCall):
                # Some clients give calls ids of their own.
                marks += [str(call.parsed().get(name)) for name in MARKS if call.parsed().get(name)]
        if marks and signatures:
            self._turns.append((marks, signatures))

    def note_request(self, body: bytes) -> None:
        """Counts what a request has of the turns before it."""
        # Some clients write base64 for URLs.
        text = body.decode("utf-8", "replace")
        standard = text.replace("-", "+").replace("_", "/")
        for marks, signatures in self._turns:
            if any(mark in text for mark in marks):
                self.due += len(signatures)
                self.returned += sum(signature in standard for signature in signatures)


def history_of(prompt: Prompt) -> list[str]:
    """The kinds of the items from the first turn of the model on; adjacent texts are one."""
    kinds: list[str] = []
    for item in prompt.items:
        match item:
            case Message(role="assistant"):
                # A signature of Gemini's comes after its text, in a text of its own.
                if not kinds or kinds[-1] != "text":
                    kinds.append("text")
            case Message():
                # What agents add of their own, and the next question.
                if kinds:
                    kinds.append(item.role)
            case FunctionCall():
                kinds.append(f"call {item.name}")
            case _:
                kinds.append(snake_case(type(item).__name__))
    return kinds


class Upstream(Loopback):
    """The strict provider of one case.

    Attributes:
        refused: bodies of errors for requests that the service does not take.
        requests: how many requests came.
        signatures: what came back of what it has signed.
    history: what the newest request of the conversation holds, from the first turn of the model
        on, as kinds of items; a call has its tool.
    """

    def __init__(self, scenario: Scenario, work: Path) -> None:
        super().__init__(Behaviour(strict=True), self._answer)
        self.refused: list[str] = []
        self.requests = 0
        self.signatures = Signatures()
        self.history: list[str] = []
        self._script = Script(scenario, work)
        self._first = scenario.behaviour
        """For the first request of the conversation."""
        self._is_main = False
        """The request is of the conversation, and not of a title or the like."""

    def _answer(self, prompt: Prompt, wire: Any) -> Sequence[ResponseEvent]:
        if self._is_main:
            self.history = history_of(prompt)
        return self._script(prompt, wire)

    def next_behaviour(self) -> Behaviour:
        if self._first is None or not self._is_main:
            return self.behaviour
        first, self._first = self._first, None
        return first

    def response(
        self,
        matched: Route | None,
        body: bytes,
        headers: dict[str, str],
        path: str,
        method: str = "POST",
    ) -> ServedResponse:
        self.requests += 1
        self._is_main = any(f'"{name}"'.encode() in body for name in SHELLS)
        if self._is_main:
            self.signatures.note_request(body)
        served = super().response(matched, body, headers, path, method)
        if served.status in (400, 404) and matched is not None:
            self.refused.append(b"".join(served.chunks).decode("utf-8", "replace"))
        elif matched is not None and self._is_main and served.status == 200:
            self.signatures.note_response(matched.wire_api, b"".join(served.chunks))
        return served


@asynccontextmanager
async def served(upstream: Upstream) -> AsyncGenerator[str]:
    """The address of the strict provider."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, partial(serve_connection, upstream))
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()
