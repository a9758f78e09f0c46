"""The streams that the long proofs cut, break and damage: our own recordings, and the shared ones where they lie beside the repository."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from streamlib_parsers import (
    Completed,
    FunctionCall,
    Message,
    OutputItemDone,
    ResponseEvent,
    Text,
    parser,
)
from tests.support.response_bodies import (
    CREATED,
    DONE,
    HELLO_TEXT,
    LAST,
    OPENED,
    START,
    aws,
    calls,
    converse,
    part,
    response_end,
    sse,
    stop,
    text,
)
from tests.support.shared import ROOT, WIRES, recordings

HOME = ROOT / "tests" / "recordings"


class Stream(NamedTuple):
    """One whole answer as bytes, and its events."""

    name: str
    wire: Any
    body: bytes
    events: list[ResponseEvent]


def read(wire: Any, *chunks: bytes) -> list[ResponseEvent]:
    """The events of these chunks."""
    p = parser(wire)
    return [*(event for chunk in chunks for event in p.feed(chunk)), *p.close()]


def said(events: list[ResponseEvent]) -> tuple[str, list[tuple[str, str]]]:
    """Text and calls of an answer, whole or not."""
    items = [event.item for event in events if isinstance(event, OutputItemDone)]
    text = "".join(
        part.text
        for item in items
        if isinstance(item, Message)
        for part in item.content
        if isinstance(part, Text)
    )
    return text, [(item.name, item.arguments) for item in items if isinstance(item, FunctionCall)]


@cache
def own() -> list[Stream]:
    """Our recordings of real servers, of six wires."""
    paths = sorted(
        path for path in HOME.glob("*/*") if path.suffix in {".sse", ".eventstream", ".ndjson"}
    )
    return [
        _stream(f"{path.parent.name}/{path.name}", path.parent.name, path.read_bytes())
        for path in paths
    ]


@cache
def shared(largest: int) -> list[Stream]:
    """The shared recordings of whole answers up to that many bytes, in an order that mixes the wires; [] where there are none."""
    found = [
        one
        for folder in WIRES
        for one in recordings(folder)
        if 0 < one.path.stat().st_size <= largest
    ]
    random.Random(0).shuffle(found)
    streams = (_stream(one.path.name, one.wire, one.body) for one in found)
    return [one for one in streams if isinstance(one.events[-1], Completed)]


@cache
def short() -> list[Stream]:
    """An answer of two words or one call on every wire, a few hundred bytes each."""
    said = {
        "candidates": [{"content": {"parts": [{"text": HELLO_TEXT}]}, "finishReason": "STOP"}],
        "responseId": "r",
    }
    line = b'{"model":"m","message":{"role":"assistant","content":"Hello there"},"done":true,"done_reason":"stop"}\n'
    call = calls({"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a":1}'}})
    bodies = [
        ("messages", OPENED + text(HELLO_TEXT) + stop() + LAST),
        ("chat", part({"content": HELLO_TEXT}) + part(finish_reason="stop") + DONE),
        ("chat", call + part(finish_reason="tool_calls")),
        ("responses", CREATED + response_end("completed")),
        ("gemini", sse(said)),
        (
            "converse",
            converse("contentBlockDelta", contentBlockIndex=0, delta={"text": HELLO_TEXT})
            + converse("messageStop", stopReason="end_turn"),
        ),
        ("ollama", line),
        (
            "invoke",
            b"".join(
                aws({"bytes": b64encode(one.partition(b"data: ")[2]).decode()}, event_type="chunk")
                for one in (START, LAST)
            ),
        ),
    ]
    return [_stream(f"short {wire}", wire, body) for wire, body in bodies]


def up_to(size: int, largest: int = 6_000) -> Iterator[Stream]:
    """Our streams, then the shared ones, until they are so many bytes together."""
    for one in [*own(), *shared(largest)]:
        yield one
        size -= len(one.body)
        if size <= 0:
            return


def _stream(name: str, wire: Any, body: bytes) -> Stream:
    return Stream(name, wire, body, read(wire, body))
