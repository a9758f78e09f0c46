"""One unusual event among usual ones: the events are the same for every partition.

Usual events are read in one step, all others line by line and key by key. Which path an event takes
depends on the chunks too, so each altered stream is parsed in several partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
import pytest

from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import (
    SampleCall,
    SampleReasoning,
    SampleResponse,
    SampleText,
)
from streamlib_parsers import ResponseEvent, WireApi, parser
from streamlib_parsers.limits import LIMITS, Limits
from tests.support.cases import each_case
from tests.support.partitions import byte_by_byte, every_single_split

RESPONSE: Final[SampleResponse] = (
    SampleReasoning([f"think {number} " for number in range(9)]),
    SampleText([f"word {number} " for number in range(12)]),
    SampleCall("call_0", "f", ['{"k":"', *(f"{number}" for number in range(6)), '"}']),
)


def generate_lines() -> list[bytes]:
    """Lines of Ollama's /api/generate, and no times."""
    words = [b'{"model":"m","response":"word %d ","done":false}\n' % number for number in range(12)]
    thoughts = [line.replace(b"response", b"thinking") for line in words]
    return [*thoughts, *words, b'{"model":"m","response":"","done":true,"done_reason":"stop"}\n']


def identified_events() -> list[bytes]:
    """Events of an interaction that can be resumed."""
    events: list[bytes] = []
    for number, event in enumerate(bodies.body("interactions", RESPONSE)):
        events.append(event.replace(b"}\n\n", b',"event_id":"evt-%d"}\n\n' % number))
    return events


STREAMS: Final[dict[str, tuple[WireApi, list[bytes]]]] = {
    "messages": ("messages", bodies.body("messages", RESPONSE)),
    "chat": ("chat", bodies.body("chat", RESPONSE)),
    "responses": ("responses", bodies.body("responses", RESPONSE)),
    "gemini": ("gemini", bodies.body("gemini", RESPONSE)),
    "cohere": ("cohere", bodies.body("cohere", RESPONSE)),
    "interactions": ("interactions", bodies.body("interactions", RESPONSE)),
    "identified": ("interactions", identified_events()),
    "ollama": ("ollama", bodies.body("ollama", RESPONSE)),
    "generate": ("ollama", generate_lines()),
}

ALTERED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "nothing": lambda event: event,
    "escapes": lambda event: event.replace(b"word 6 ", rb"q\"\\ \u00e9\n\ud83d\ude00"),
    "half an emoji": lambda event: event.replace(b"word 6 ", rb"a\ud83d"),
    "an unescaped quote": lambda event: event.replace(b"word 6 ", b'a","b'),
    "another key": lambda event: event.replace(b'word 6 "', b'a","x":{"text":"b"}'),
    "a control character": lambda event: event.replace(b"word 6 ", b"a\x01b"),
    "a NUL": lambda event: event.replace(b"word 6 ", b"a\0b"),
    "bytes that are no UTF-8": lambda event: event.replace(b"word 6 ", b"\xff\xfe"),
    "a line end in the text": lambda event: event.replace(b"word 6 ", b"a\nb"),
    "a line end before the text": lambda event: event.replace(b'"word 6 ', b'\n"word 6 '),
    "a CR behind the text": lambda event: event.replace(b'word 6 "', b'word 6 "\r'),
    "a byte order mark": lambda event: b"\xef\xbb\xbf" + event,
    "no text": lambda event: event.replace(b"word 6 ", b""),
    "a null": lambda event: event.replace(b'"word 6 "', b"null"),
    "a number": lambda event: event.replace(b'"word 6 "', b"6"),
    "blanks": lambda event: event.replace(b'"word 6 "', b' "word 6 "  '),
    "CRLF": lambda event: event.replace(b"\n", b"\r\n"),
    "CRLF but for the blank line": lambda event: event.replace(b"\n", b"\r\n", 1),
    "CR": lambda event: event.replace(b"\n", b"\r"),
    "a blank line": lambda event: b"\n" + event,
    "a comment": lambda event: b": keep-alive\n\n" + event,
    "a comment in the event": lambda event: b": keep-alive\n" + event,
    "a ping": lambda event: b'event: ping\ndata: {"type":"ping"}\n\n' + event,
    "an unknown event": lambda event: b'event: x\ndata: {"type":"x","choices":[]}\n\n' + event,
    "a long name": lambda event: b"event: " + b"x" * 200 + b'\ndata: {"type":"x"}\n\n' + event,
    "an id": lambda event: b"id: 7\n" + event,
    "no blank before the value": lambda event: event.replace(b"data: ", b"data:"),
    "two data lines": lambda event: event.replace(b"data: {", b"data: {\ndata: "),
    "twice": lambda event: event + event,
    "stray": lambda event: b"nonsense\n\n" + event,
    "an error": lambda event: b'event: error\ndata: {"error":{"message":"no"}}\n\n' + event,
    "other counts": lambda event: event.replace(b"candidatesTokenCount", b"thoughtsTokenCount"),
    "a negative count": lambda event: event.replace(b'TokenCount":1', b'TokenCount":-1'),
    "another index": lambda event: event.replace(b'index":1', b'index":7'),
    "both texts": lambda event: event.replace(b'content":"w', b'thinking":"a","content":"w'),
    "images": lambda event: event.replace(b'"content"', b'"images":["iVBOR"],"content"'),
    "logprobs": lambda event: event.replace(b'"done"', b'"logprobs":[{"token":"a"}],"done"'),
    "done": lambda event: event.replace(b"false", b"true"),
    "an error in the line": lambda event: event.replace(b'"done"', b'"error":"no","done"'),
    "another model": lambda event: event.replace(b'"m"', b'"n"'),
    "the same id": lambda event: event.replace(b"evt-20", b"evt-19"),
    "an id that is no text": lambda event: event.replace(b'"evt-20"', b"20"),
    "metadata": lambda event: event.replace(b',"event_id"', b',"metadata":{"x":1},"event_id"'),
}


def parsed(wire: WireApi, chunks: Iterable[bytes], limits: Limits = LIMITS) -> list[ResponseEvent]:
    stream_parser = parser(wire, limits=limits)
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += stream_parser.feed(chunk)
    return [*events, *stream_parser.close()]


def altered(stream: str, change: Callable[[bytes], bytes]) -> list[bytes]:
    """The events of a stream, of which the seventh of the text is changed."""
    events: list[bytes] = []
    for event in STREAMS[stream][1]:
        is_seventh = b'"word 6 "' in event
        events.append(change(event) if is_seventh else event)
    return events


@each_case("stream, name", [(stream, name) for stream in STREAMS for name in ALTERED])
def test_unusual_event_is_read_alike_in_any_partition(stream: str, name: str) -> None:
    wire = STREAMS[stream][0]
    events = altered(stream, ALTERED[name])
    body = b"".join(events)
    expected = parsed(wire, [body])
    assert parsed(wire, events) == expected
    assert parsed(wire, byte_by_byte(body)) == expected
    assert parsed(wire, byte_by_byte(body, 150)) == expected
    for chunks in every_single_split(body, 5):
        assert parsed(wire, chunks) == expected


@each_case("stream", STREAMS)
@each_case(
    "limits",
    [
        Limits(event_bytes=250),
        Limits(response_bytes=2000),
        Limits(argument_bytes=5),
    ],
)
def test_limit_ends_the_stream_alike_in_any_partition(stream: str, limits: Limits) -> None:
    wire = STREAMS[stream][0]
    events = altered(stream, lambda event: event.replace(b"word 6 ", b"word 6 " * 30))
    body = b"".join(events)
    expected = parsed(wire, [body], limits)
    assert parsed(wire, events, limits) == expected
    assert parsed(wire, byte_by_byte(body, 97), limits) == expected


def sse(event: dict[str, Any], name: str) -> bytes:
    """An event whose name is in its data too, under this key."""
    return f"event: {event[name]}\n".encode() + b"data: " + msgspec.json.encode(event) + b"\n\n"


def deltas_whose_text_is(text: Any) -> list[bytes]:
    """An interaction whose deltas have this as their text."""
    start = {"event_type": "interaction.created", "interaction": {"id": "i", "model": "m"}}
    step = {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}}
    delta = {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": text}}
    events: list[dict[str, Any]] = [start, step, *[delta] * 9]
    return [sse(event, "event_type") for event in events]


@pytest.mark.parametrize("text", [5, "", None])
def test_delta_without_text_is_read_alike_in_any_partition(text: Any) -> None:
    events = deltas_whose_text_is(text)
    body = b"".join(events)
    expected = parsed("interactions", [body])
    assert parsed("interactions", events) == expected
    assert parsed("interactions", byte_by_byte(body, 150)) == expected
