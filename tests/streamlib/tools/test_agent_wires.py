"""`agent` before the strict provider of each wire: however a run goes, it ends right, the provider
takes every request and the history after it, and no request is sent twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import pytest
from msgspec import Struct

from streamlib import (
    AgentRun,
    ApprovalRequest,
    FunctionCall,
    FunctionCallOutput,
    Message,
    OutputTextDelta,
    Prompt,
    Refusal,
    StreamError,
    ToolSpec,
    WireApi,
    agent,
    assistant,
    user,
)
from streamlib.testing import MODEL, TurnLike, scripted
from streamlib.testing.clients import ScriptedClient
from streamlib.testing.provider.turns import Turn
from streamlib.tools import Handlers, Tool
from streamlib_parsers.protocol import WIRE_APIS

PAUSING: Final = ("messages", "interactions", "invoke")
"""The wires that have a word for a pause."""

ran: list[str] = []
"""Which functions were called in a run."""


async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    ran.append("add")
    return a + b


async def fail(city: str) -> str:
    """Finds a city."""
    ran.append("fail")
    raise LookupError(f"no {city}")


async def hang() -> None:
    """Never ends."""
    ran.append("hang")
    await anyio.sleep_forever()


TOOLS: Final[list[Tool]] = [add, fail, hang, ToolSpec("ask", "Asks.", {"type": "object"})]
ADD: Final = FunctionCall("", "add", '{"a": 1, "b": 2}')
HANDLERS: Final[Handlers] = {ApprovalRequest: lambda request: request.respond(True)}


async def read(run: AgentRun) -> None:
    async with run:
        async for _ in run:
            pass


async def read_until_text(run: AgentRun) -> None:
    """A person presses Stop while the model writes."""
    async with run:
        async for event in run:
            if isinstance(event, OutputTextDelta):
                return


async def read_until_output(run: AgentRun) -> None:
    """A person presses Stop while a function runs."""
    async with run:
        async for event in run:
            if isinstance(event, FunctionCallOutput):
                return


async def read_broken(run: AgentRun) -> None:
    with pytest.raises(StreamError) as raised:
        await read(run)
    assert raised.value.kind in ("truncated", "malformed", "connection")


class Case(Struct, frozen=True):
    """One run.

    Attributes:
        name: what happens; the prompt says it too, so that no two runs send the same.
        turns: what the model says.
        requests: how many a run sends.
        ran: functions that it calls, sorted.
        outputs: outputs in its history: text, and whether it is an error.
        pending: kinds of the calls that it leaves to the caller.
        use: reads the run.
    """

    name: str
    turns: list[TurnLike]
    requests: int
    ran: list[str] = []
    outputs: list[tuple[str, bool]] = []
    pending: list[str] = []
    use: Callable[[AgentRun], Awaitable[None]] = read

    @property
    def goes_on(self) -> bool:
        """Whether the run itself has sent its history, outputs and all."""
        return self.requests > 1


def cases(wire_api: WireApi) -> list[Case]:
    """What happens, as each wire has it."""
    three = ("3", False)
    error = ("LookupError: no Ur", True)
    ur = FunctionCall("", "fail", '{"city": "Ur"}')
    ask = FunctionCall("", "ask", "{}")
    pauses = 2 if wire_api in PAUSING else 1
    found = [
        Case("parallel", [["So.", ADD, ADD], "3."], 2, ["add", "add"], [three, three]),
        Case("failing", [[ur, ADD], "3."], 2, ["add", "fail"], [error, three]),
        Case("pause", [Turn("I search.", stop_reason="pause"), "Found."][:pauses], pauses),
        Case("cut", [Turn(["I add.", ADD], fault="truncate", at=6)], 1, use=read_broken),
        Case("length", [Turn(["I add.", cut_call()], stop_reason="length")], 1),
        Case("refusal", [refusal(wire_api)], 1),
        Case("browser", [[ADD, ask]], 1, ["add"], [three], ["FunctionCall"]),
        Case("stopped", [Turn("one two three four", pace=0.001)], 1, use=read_until_text),
        Case(
            "stopped call",
            [[ADD, FunctionCall("", "hang", "{}")]],
            1,
            ["add", "hang"],
            [three],
            use=read_until_output,
        ),
    ]
    if wire_api == "responses":
        found.append(Case("approval", [[ApprovalRequest("a_1", "fs", "rm", "{}")], "Done."], 2))
    return found


def cut_call() -> FunctionCall:
    return FunctionCall("", "add", '{"a": 1, "b"', status="incomplete")


def refusal(wire_api: WireApi) -> TurnLike:
    """A refusal, as the wire has it."""
    if wire_api in ("responses", "chat"):
        return Message("assistant", (Refusal("I cannot."),))
    return Turn(assistant("I cannot."), stop_reason="refusal")


async def check(case: Case, client: ScriptedClient) -> None:
    """Runs a case, and then sends its history on."""
    ran.clear()
    before = len(client.requests)
    run = agent(client, Prompt(case.name), TOOLS, MODEL, handlers=HANDLERS)
    await case.use(run)
    sent = len(client.requests) - before
    outputs = [item for item in run.history if isinstance(item, FunctionCallOutput)]
    shown = [(str(output.output), output.is_error) for output in outputs]
    waiting = [type(call).__name__ for call in run.pending]
    assert (sent, sorted(ran), shown, waiting) == (
        case.requests,
        case.ran,
        case.outputs,
        case.pending,
    ), case.name
    if case.goes_on:
        return
    # Whatever the run ended with, the provider takes a request with its history.
    following = agent(client, [*run.history, user("Go on.")], TOOLS, MODEL)
    await read(following)
    assert following.response.text == "Bye.", case.name


@pytest.mark.parametrize("wire_api", WIRE_APIS)
async def test_agent_ends_right_however_a_run_goes(wire_api: WireApi) -> None:
    turns: list[TurnLike] = []
    for case in cases(wire_api):
        turns += case.turns
        if not case.goes_on:
            turns.append("Bye.")
    async with scripted(turns, wire_api=wire_api, strict=True) as client:
        for case in cases(wire_api):
            await check(case, client)
        bodies = [request.body for request in client.requests]
    assert len(set(bodies)) == len(bodies) == len(turns)
