"""Random responses: valid event lists of any wire, drawn from a `random.Random`.

Items of every kind that a wire has, sequential or overlapping; some incomplete; one terminal
event. The encoders turn them into bytes, so `encode_all(wire_api, random_response(rng))` is a
stream of any wire.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import FinishedChoice, ResponseEvent, StopReason
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    ApplyPatchCall,
    ApprovalRequest,
    ComputerCall,
    FunctionCall,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    ShellCall,
    ToolSearchCall,
    WireApi,
)
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

TEXTS: Final = (
    "Hello",
    " there",
    "é",
    "\U0001f600",
    "世界",
    "\n\n",
    "  ",
    '"]}',
    "</think>",
    "data: x\n\n",
    "[DONE]",
    "\u2028",
    "\\",
    "{",
    "a" * 80,
)
"""Plain texts, and texts with a meaning in a framing, in JSON or in a dialect."""
NAMES: Final = ("get_weather", "f", "read_file")
KINDS: Final = ("text", "text", "reasoning", "call", "call")
RESPONSES_KINDS: Final = (*KINDS, "built_in")
"""Kinds of items in Responses: only this wire has calls of tools that the provider defines."""
STOP_REASONS: Final[tuple[StopReason, ...]] = ("stop", "stop", "tool_calls", "length")
FAILURES: Final[tuple[ErrorKind, ...]] = ("overloaded", "rate_limited", "server_error")
OVERLAPPING_WIRES: Final = ("messages", "responses", "invoke")
"""Wires whose events carry the index of the item, so that several items can be open."""


def random_response(
    rng: random.Random, wire_api: WireApi = "messages", *, failing: bool = False
) -> list[ResponseEvent]:
    """The events of one response: up to five items, each in several deltas, and a terminal event.

    Args:
        rng: source of every choice; equal states give equal events.
        wire_api: wire of the response.
        failing: whether it ends in `Failed`, perhaps with an item still open.
    """
    assembler = EventAssembler(LIMITS, Origin(wire_api))
    assembler.identify(f"resp_{rng.randrange(10)}", "m")
    overlapping = wire_api in OVERLAPPING_WIRES and rng.random() < 0.3
    items: list[OpenItem] = []
    for n in range(rng.randrange(6)):
        items.append(assembler.open(_random_item(rng, wire_api, n)))
        for item in assembler.open_items:
            _append_deltas(assembler, item, rng)
        if not overlapping or rng.random() < 0.4:
            _close(assembler, items)
    if rng.random() < 0.7:
        usage = Usage(input_tokens=rng.randrange(1, 99), output_tokens=rng.randrange(1, 99))
        assembler.usage(usage)
    if failing:
        assembler.fail(ErrorInfo(rng.choice(FAILURES), "a failure of the test"))
        return assembler.take()
    _close(assembler, items)
    reason: StopReason
    if any(isinstance(item.item, (FunctionCall, *BUILT_IN_CALLS)) for item in items):
        reason = "tool_calls"
    else:
        reason = rng.choice(STOP_REASONS)
    assembler.complete(reason, choices=[FinishedChoice(0, reason)])
    return assembler.take()


def _random_item(rng: random.Random, wire_api: WireApi, n: int) -> ResponseItem:
    kinds: Sequence[str] = KINDS
    if wire_api == "responses":
        kinds = RESPONSES_KINDS
    kind = rng.choice(kinds)
    if kind == "text":
        return Message("assistant")
    if kind == "reasoning":
        return Reasoning()
    if kind == "built_in":
        return _random_built_in_call(rng, f"call_{n}")
    return FunctionCall(f"call_{n}", rng.choice(NAMES))


def _random_built_in_call(rng: random.Random, call_id: str) -> ResponseItem:
    """A call of a tool that the provider defines and the caller runs; it has no deltas."""
    text = rng.choice(TEXTS)
    checks: list[dict[str, Any]] = []
    if rng.random() < 0.3:
        checks.append({"id": "check_1", "code": "malicious_instructions", "message": text})
    calls: list[ResponseItem] = [
        ComputerCall(call_id, [{"type": "type", "text": text}, {"type": "wait"}], checks),
        ShellCall(call_id, {"commands": [text], "timeout_ms": 1000}),
        ShellCall(
            call_id, {"type": "exec", "command": ["ls", text]}, native={"type": "local_shell_call"}
        ),
        ApplyPatchCall(call_id, {"type": "create_file", "path": "a.txt", "diff": text}),
        ApprovalRequest(call_id, "files", rng.choice(NAMES), random_arguments(rng)),
        ToolSearchCall(call_id, random_arguments(rng)),
    ]
    return rng.choice(calls)


def _append_deltas(assembler: EventAssembler, item: OpenItem, rng: random.Random) -> None:
    if isinstance(item.item, BUILT_IN_CALLS):
        return
    if isinstance(item.item, FunctionCall):
        # Only once: a second JSON value after the first would make the arguments invalid.
        if not item.arguments:
            for fragment in fragments(random_arguments(rng), rng):
                assembler.arguments(item, fragment)
        return
    for _ in range(rng.randrange(1, 5)):
        text = rng.choice(TEXTS)
        if isinstance(item.item, Message):
            assembler.text(item, text)
        else:
            assembler.reasoning(item, text)


def _close(assembler: EventAssembler, items: Sequence[OpenItem]) -> None:
    for item in items:
        if not item.closed:
            assembler.close(item)


def random_arguments(rng: random.Random) -> str:
    """Arguments of a call, as a JSON text."""
    value: dict[str, Any] = {}
    for n in range(rng.randrange(4)):
        value[f"k{n}"] = rng.choice((*TEXTS, 1, 1.5, None, True, [1, "x"], {"a": {}}))
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)


def fragments(text: str, rng: random.Random) -> list[str]:
    """A text, split into up to four fragments; some may be empty."""
    offsets = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(4)))
    bounds = zip([0, *offsets], [*offsets, len(text)], strict=True)
    return [text[start:end] for start, end in bounds]
