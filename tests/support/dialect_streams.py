"""Text as events: what the tests of dialects feed, and what they compare.

Tests about text use the filter alone, on the events that a wire would emit; tests about wires make
a real body.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from streamlib_parsers import (
    Completed,
    Created,
    Failed,
    FunctionCall,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Response,
    Text,
    ToolSpec,
    accumulate,
    parser,
)
from streamlib_parsers.dialects import DialectFilter, LeakFilter
from streamlib_parsers.events import FinishedChoice, ResponseEvent
from streamlib_parsers.limits import LIMITS, Limits
from tests.support.dialect_calls import (
    TOOLS,
    Call,
)


def message_events(chunks: Iterable[str], stop_reason: str = "stop") -> Iterator[ResponseEvent]:
    """The events of one message that arrives in these chunks."""
    yield Created("r", "m")
    yield OutputItemAdded(0, Message("assistant", status="incomplete"))
    text = ""
    for chunk in chunks:
        text += chunk
        if chunk:
            yield OutputTextDelta(0, 0, chunk)
    yield OutputItemDone(0, Message("assistant", [Text(text)]))
    finished = FinishedChoice(0, stop_reason)  # type: ignore[arg-type]
    yield Completed("r", "m", finished.stop_reason, choices=(finished,))


def filtered(
    chunks: Iterable[str],
    dialects: Sequence[Any],
    tools: Sequence[ToolSpec] = TOOLS,
    limits: Limits = LIMITS,
    stop_reason: str = "stop",
) -> list[ResponseEvent]:
    """The events that both filters emit for a message in chunks, fed one event at a time."""
    emitted: list[ResponseEvent] = []
    dialect_filter, leak_filter = DialectFilter(dialects, tools, limits), LeakFilter()
    for seq, event in enumerate(message_events(chunks, stop_reason)):
        numbered = replace(event, seq=seq)
        emitted += leak_filter.feed(dialect_filter.feed([numbered]))
    return emitted


def chat_body(
    deltas: Iterable[dict[str, Any]], finish_reason: str | None = "stop", choice: int = 0
) -> bytes:
    """A Chat stream of these deltas."""
    chunks: list[Any] = [
        {"index": choice, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    if finish_reason:
        chunks.append({"index": choice, "delta": {}, "finish_reason": finish_reason})
    lines = [
        f"data: {json.dumps({'id': 'r', 'model': 'm', 'choices': [chunk]})}\n\n" for chunk in chunks
    ]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def chat(
    deltas: Iterable[dict[str, Any]], finish_reason: str | None = "stop", **options: Any
) -> list[ResponseEvent]:
    """The events of such a stream."""
    p = parser("chat", **options)
    return [*p.feed(chat_body(deltas, finish_reason)), *p.close()]


def calls_of(response: Response) -> list[Call]:
    """Names and decoded arguments of the calls to answer."""
    return [
        (call.name, json.loads(call.arguments))
        for call in response.calls
        if hasattr(call, "arguments")
    ]


def outcome(events: Iterable[ResponseEvent]) -> tuple[str, str, list[Call], list[str]]:
    """Text, reasoning, calls, and the codes of the notices."""
    response = accumulate(events)
    return (
        response.text,
        response.reasoning,
        calls_of(response),
        [notice.code for notice in response.notices],
    )


def splits_of(text: str, seed: int = 0, count: int = 8) -> Iterator[list[str]]:
    """`text` by single characters, by threes, and split at random indexes."""
    yield list(text)
    yield [text[index : index + 3] for index in range(0, len(text), 3)]
    rng = random.Random(seed)
    for _ in range(count):
        indexes = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(1, 12)))
        yield [text[a:b] for a, b in zip([0, *indexes], [*indexes, len(text)], strict=True)]


def check_brackets(events: list[ResponseEvent]) -> None:
    """Checks numbering and bracketing.

    Each item has Added, deltas and Done; its joined deltas are the text of the final item unless a
    Notice names it; there is one terminal event.
    """
    open_items: set[int] = set()
    deltas: dict[int, str] = {}
    replaced = {
        event.index
        for event in events
        if isinstance(event, Notice) and event.code == "text_replaced"
    }
    for seq, event in enumerate(events):
        assert event.seq == seq
        if isinstance(event, OutputItemAdded):
            assert event.index == len(deltas)
            open_items.add(event.index)
            deltas[event.index] = ""
        elif isinstance(event, OutputItemDone):
            open_items.remove(event.index)
            output = (
                event.item.arguments
                if isinstance(event.item, FunctionCall)
                else getattr(event.item, "text", "")
            )
            assert event.index in replaced or output == deltas[event.index]
        elif hasattr(event, "delta"):
            assert event.index in open_items
            deltas[event.index] += event.delta
    assert not open_items
    assert sum(isinstance(event, (Completed, Failed)) for event in events) == 1
