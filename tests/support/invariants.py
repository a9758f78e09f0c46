"""What the tests of the invariants share: recordings, and the content of an event list."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from streamlib_parsers import (
    Completed,
    FunctionCall,
    Message,
    OutputItemDone,
    Reasoning,
    ResponseEvent,
    WireApi,
    parser,
)
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.shared import ROOT

OURS: Final = tuple(
    sorted(
        path
        for path in (ROOT / "tests" / "recordings").glob("*/*")
        if path.suffix in (".sse", ".ndjson", ".eventstream")
    )
)
"""Our own recordings, of six wires."""


def wire_of(path: Path) -> Any:
    """The wire of one of our recordings."""
    return path.parent.name


def events_of(wire_api: WireApi, chunks: Iterable[bytes], **options: Any) -> list[ResponseEvent]:
    """All events of a stream in these chunks."""
    wire_parser = parser(wire_api, **options)
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += wire_parser.feed(chunk)
    return events + wire_parser.close()


Content = tuple[str, str, list[tuple[str, str]]]


def content_of(events: Iterable[ResponseEvent]) -> Content:
    """Text, reasoning, and the callable calls with normalized arguments."""
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[tuple[str, str]] = []
    for event in events:
        if not isinstance(event, OutputItemDone):
            continue
        item = event.item
        if isinstance(item, Message):
            texts.append(item.text)
        elif isinstance(item, Reasoning):
            reasoning.append(item.text)
        elif isinstance(item, FunctionCall) and item.status == "completed":
            arguments = json.loads(item.arguments or "{}")
            calls.append((item.name, json.dumps(arguments, sort_keys=True)))
    return "".join(texts), "".join(reasoning), calls


def is_false_completion(wire_api: WireApi, body: bytes, offset: int, complete: Content) -> bool:
    """Whether the body truncated at `offset` is reported as complete although content is missing.

    Gemini has no terminator: content between its finishReason and the end of input may be missing,
    which no reader can know. Chat may end after its finish_reason, but then reports that the end is
    inferred.
    """
    events = events_of(wire_api, [body[:offset]])
    if not isinstance(events[-1], Completed):
        return False
    if wire_api == "gemini" and b"inishReason" in body[:offset]:
        return False
    return content_of(events) != complete


__all__ = ["OURS", "WIRE_APIS", "content_of", "events_of", "is_false_completion", "wire_of"]
