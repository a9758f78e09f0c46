"""The streams that the long proofs truncate, split and damage.

Our own recordings, and the shared ones if they are present.
"""

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
from tests.support.shared import ROOT, WIRES, Recording, recordings

HOME = ROOT / "tests" / "recordings"


class Stream(NamedTuple):
    """One complete response as bytes, and its events."""

    name: str
    wire: Any
    body: bytes
    events: list[ResponseEvent]


def read(wire: Any, *chunks: bytes) -> list[ResponseEvent]:
    """The events of these chunks."""
    wire_parser = parser(wire)
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += wire_parser.feed(chunk)
    return events + wire_parser.close()


def content_of(events: list[ResponseEvent]) -> tuple[str, list[tuple[str, str]]]:
    """Text and calls of a response, complete or not."""
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
    """The shared recordings of complete responses up to `largest` bytes; [] if absent."""
    chosen: list[Recording] = []
    for folder in WIRES:
        for recording in recordings(folder):
            if 0 < recording.path.stat().st_size <= largest:
                chosen.append(recording)
    random.Random(0).shuffle(chosen)
    streams = [_stream(entry.path.name, entry.wire, entry.body) for entry in chosen]
    return [stream for stream in streams if isinstance(stream.events[-1], Completed)]


@cache
def short() -> list[Stream]:
    """A response of two words or one call on every wire, a few hundred bytes each."""
    chunk = {
        "candidates": [{"content": {"parts": [{"text": HELLO_TEXT}]}, "finishReason": "STOP"}],
        "responseId": "r",
    }
    line = (
        b'{"model":"m","message":{"role":"assistant","content":"Hello there"},'
        b'"done":true,"done_reason":"stop"}\n'
    )
    call = calls({"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a":1}'}})
    bodies = [
        ("messages", OPENED + text(HELLO_TEXT) + stop() + LAST),
        ("chat", part({"content": HELLO_TEXT}) + part(finish_reason="stop") + DONE),
        ("chat", call + part(finish_reason="tool_calls")),
        ("responses", CREATED + response_end("completed")),
        ("gemini", sse(chunk)),
        (
            "converse",
            converse("contentBlockDelta", contentBlockIndex=0, delta={"text": HELLO_TEXT})
            + converse("messageStop", stopReason="end_turn"),
        ),
        ("ollama", line),
        (
            "invoke",
            b"".join(
                aws(
                    {"bytes": b64encode(event.partition(b"data: ")[2]).decode()}, event_type="chunk"
                )
                for event in (START, LAST)
            ),
        ),
    ]
    return [_stream(f"short {wire}", wire, body) for wire, body in bodies]


def up_to(size: int, largest: int = 6_000) -> Iterator[Stream]:
    """Our streams, then the shared ones, until they have `size` bytes together."""
    for stream in [*own(), *shared(largest)]:
        yield stream
        size -= len(stream.body)
        if size <= 0:
            return


def _stream(name: str, wire: Any, body: bytes) -> Stream:
    return Stream(name, wire, body, read(wire, body))
