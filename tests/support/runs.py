"""Runs of several responses, for the tests of encoders: what `agent` yields, made by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from streamlib_parsers import (
    ApprovalRequest,
    CallOutput,
    ErrorInfo,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    ResponseEvent,
    RunEvent,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
)
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import RateLimits, StopReason, Window
from streamlib_parsers.items import Origin, ResponseItem
from streamlib_parsers.limits import LIMITS

FAILURE: Final = ErrorInfo("overloaded", "busy: pool 10.0.0.7", retryable=True, retry_after=7.0)


def response(
    *items: ResponseItem,
    stop: StopReason = "stop",
    error: ErrorInfo | None = None,
    usage: Usage | None = None,
    model: str = "m",
) -> list[ResponseEvent]:
    """The events of one response with these items. Its id is the same each time, as some servers'
    are."""
    assembler = EventAssembler(LIMITS, Origin("responses", "openai"))
    assembler.rate_limits(RateLimits(requests=Window(10, 9), raw={"x-org": "acme"}))
    assembler.identify("resp_1", model)
    for item in items:
        _write(assembler, item)
    assembler.usage(usage or Usage(10, 5, raw={"org": "acme"}))
    if error is not None:
        assembler.fail(error)
    else:
        assembler.complete(stop)
    return assembler.take()


def _write(assembler: EventAssembler, item: ResponseItem) -> None:
    empty: dict[str, Any] = {}
    if isinstance(item, (Message, Reasoning)):
        empty = {"content": type(item.content)()}
    elif isinstance(item, (FunctionCall, ServerToolCall)):
        empty = {"arguments": ""}
    opened = assembler.open(msgspec.structs.replace(item, **empty))
    opened.free_text = isinstance(item, ServerToolCall)
    if isinstance(item, Message):
        for number, part in enumerate(item.content):
            assert isinstance(part, Text)
            for word in part.text.split(" "):
                assembler.text(opened, word + " ", number)
    elif isinstance(item, Reasoning):
        assembler.reasoning(opened, item.content)
    elif isinstance(item, (FunctionCall, ServerToolCall)):
        half = len(item.arguments) // 2
        assembler.arguments(opened, item.arguments[:half])
        assembler.arguments(opened, item.arguments[half:])
    assembler.close(opened, item.status)


def said(text: str) -> Message:
    """A message of the assistant."""
    return Message("assistant", (Text(text),))


def call(call_id: str, name: str = "weather") -> FunctionCall:
    """A call with an argument."""
    return FunctionCall(call_id, name, '{"city": "Paris"}')


def three_steps(*, error: ErrorInfo | None = None) -> list[RunEvent]:
    """A tool loop of three steps: two parallel calls, of which one fails, one more, the answer.

    Args:
        error: Ends the run in its second step.
    """
    first = [Reasoning("hm"), said("I look."), call("a"), call("b")]
    run: list[RunEvent] = [*response(*first, stop="tool_calls")]
    # They come in the order in which they finish.
    run.append(FunctionCallOutput("b", "no such city", is_error=True))
    run.append(FunctionCallOutput("a", "21 °C"))
    if error is not None:
        return [*run, *response(said("Then"), call("a"), error=error)]
    # A server that numbers its calls from the start in each response.
    run += response(call("a"), stop="tool_calls", usage=Usage(20, 6))
    run.append(FunctionCallOutput("a", [Text("sunny"), Text("dry")]))
    return [*run, *response(said("It is sunny."), usage=Usage(30, 7))]


def paused() -> list[RunEvent]:
    """A provider pauses while its own tool runs, and goes on in the next response."""
    search = ServerToolCall("s", "web_search", '{"query": "x"}')
    found = ServerToolResult("s", "web_search", [{"title": "X", "encrypted_content": "zzz"}])
    return [
        *response(said("I search."), search, stop="pause"),
        *response(found, said("Found."), stop="stop"),
    ]


APPROVAL: Final = ApprovalRequest("p", "files", "delete", '{"path": "/"}')


def asking() -> list[RunEvent]:
    """A run that ends with an approval to give."""
    return [*response(said("May I?"), APPROVAL, stop="tool_calls")]


def approved(*, approve: bool = True) -> list[RunEvent]:
    """A call that needs an approval, and its answer in the same run."""
    return [*asking(), APPROVAL.respond(approve), *response(said("Done."))]


SCENARIOS: Final[dict[str, list[RunEvent]]] = {
    "one step": [*response(Reasoning("hm"), said("Hello."))],
    "three steps": three_steps(),
    "error in the second step": three_steps(error=FAILURE),
    "cancelled in the second step": three_steps(error=ErrorInfo("cancelled", "stopped")),
    "pause": paused(),
    "length": [*response(said("It is"), call("a"), stop="length")],
    "cut call": [*response(msgspec.structs.replace(call("a"), status="incomplete"), stop="length")],
    "approved": approved(),
    "denied": approved(approve=False),
    "approval to give": asking(),
    "equal ids": [
        *response(call(""), call(""), stop="tool_calls"),
        FunctionCallOutput("", "1"),
        FunctionCallOutput("", "2"),
        *response(said("ok")),
    ],
    "output never came": [
        *response(call("a"), call("b"), stop="tool_calls"),
        FunctionCallOutput("a", "1"),
        *response(said("ok")),
    ],
    "output without its call": [
        *response(call("a"), stop="tool_calls"),
        FunctionCallOutput("a", "1"),
        FunctionCallOutput("x", "2"),
        *response(said("ok")),
    ],
}
"""Runs by what happens in them."""


def random_run(seed: int) -> list[RunEvent]:
    """A run of up to four responses, with calls, outputs and ends at random."""
    rng = random.Random(seed)
    run: list[RunEvent] = []
    for _ in range(rng.randint(1, 4)):
        items = _random_items(rng)
        stop = rng.choice(("stop", "tool_calls", "tool_calls", "pause", "length"))
        error = rng.choice((None, None, None, None, None, FAILURE))
        run += response(*items, stop=stop, error=error)  # type: ignore[arg-type]
        run += _random_outputs(rng, items)
    return run


def _random_items(rng: random.Random) -> list[ResponseItem]:
    kinds: Sequence[ResponseItem] = (
        said("some words"),
        Reasoning("hm"),
        call(rng.choice("ab")),
        call(rng.choice(("", "a"))),
        ServerToolCall("s", "web_search", "{}"),
        ServerToolResult("s", "web_search", ["x"]),
        ApprovalRequest("p", "files", "delete", "{}"),
    )
    return [rng.choice(kinds) for _ in range(rng.randint(0, 4))]


def _random_outputs(rng: random.Random, items: list[ResponseItem]) -> list[CallOutput]:
    outputs: list[CallOutput] = []
    for item in items:
        if rng.random() < 0.2:
            continue
        if isinstance(item, FunctionCall):
            outputs.append(item.output("done", is_error=rng.random() < 0.2))
        elif isinstance(item, ApprovalRequest):
            outputs.append(item.respond(rng.random() < 0.5))
    return outputs
