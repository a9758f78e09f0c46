"""Answers nobody gave: legal lists of events, as any wire could have said them, drawn from a `random.Random`.

Items of every kind that a wire has, one after another or overlapping; some cut; one terminal. The encoders make streams of them, so a
stream of any wire is `encode_all(wire_api, answer(rng))`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import FinishedChoice, ResponseEvent, StopReason
from streamlib_parsers.items import FunctionCall, Message, Origin, Reasoning, ResponseItem, WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

WORDS: Final = (
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
NAMES: Final = ("get_weather", "f", "read_file")
KINDS: Final = ("text", "text", "thought", "call", "call")
ENDS: Final[tuple[StopReason, ...]] = ("stop", "stop", "tool_calls", "length")
FAILURES: Final[tuple[ErrorKind, ...]] = ("overloaded", "rate_limited", "server_error")


def random_response(
    rng: random.Random, wire_api: WireApi = "messages", *, failing: bool = False
) -> list[ResponseEvent]:
    """The events of one response of that wire: up to five items, each in some deltas, and how it ended.

    failing: it ends with an error of the provider's, one item perhaps still open.
    """
    assembly = EventAssembler(LIMITS, Origin(wire_api))
    assembly.identify(f"resp_{rng.randrange(10)}", "m")
    overlapping = wire_api in ("messages", "responses", "invoke") and rng.random() < 0.3
    growing: list[OpenItem] = []
    for n in range(rng.randrange(6)):
        growing.append(assembly.open(_item(rng, n)))
        for item in assembly.open_items:
            _grow(assembly, item, rng)
        if not overlapping or rng.random() < 0.4:
            _close(assembly, growing)
    if rng.random() < 0.7:
        assembly.usage(Usage(input_tokens=rng.randrange(1, 99), output_tokens=rng.randrange(1, 99)))
    if failing:
        assembly.fail(ErrorInfo(rng.choice(FAILURES), "as the test has it"))
        return assembly.take()
    _close(assembly, growing)
    called = "call" in (_kind(item.item) for item in growing)
    reason: StopReason = "tool_calls" if called else rng.choice(ENDS)
    assembly.complete(reason, choices=[FinishedChoice(0, reason)])
    return assembly.take()


def _item(rng: random.Random, n: int) -> ResponseItem:
    kind = rng.choice(KINDS)
    if kind == "text":
        return Message("assistant")
    return Reasoning() if kind == "thought" else FunctionCall(f"call_{n}", rng.choice(NAMES))


def _kind(item: ResponseItem) -> str:
    return "call" if isinstance(item, FunctionCall) else ""


def _grow(assembly: EventAssembler, item: OpenItem, rng: random.Random) -> None:
    if isinstance(item.item, FunctionCall):
        if not item.arguments:
            for piece in pieces(arguments(rng), rng):
                assembly.arguments(item, piece)
        return
    say = assembly.text if isinstance(item.item, Message) else assembly.reasoning
    for _ in range(rng.randrange(1, 5)):
        say(item, rng.choice(WORDS))


def _close(assembly: EventAssembler, growing: Sequence[OpenItem]) -> None:
    for item in growing:
        if not item.closed:
            assembly.close(item)


def arguments(rng: random.Random) -> str:
    """Arguments of a call, as JSON."""
    value: dict[str, Any] = {
        f"k{n}": rng.choice((*WORDS, 1, 1.5, None, True, [1, "x"], {"a": {}}))
        for n in range(rng.randrange(4))
    }
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)


def pieces(text: str, rng: random.Random) -> list[str]:
    """A text in up to four pieces."""
    places = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
