"""Gaps that are more than a text: the time of Ollama's lines, the ids of Interactions' events.

As in `test_templates.py`, what templates read must be what framing and machine would have read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from streamlib.testing.bench import bodies
from streamlib_parsers import WireApi, parser
from streamlib_parsers.limits import Limits
from streamlib_parsers.wires.interactions.gaps import find_gap as find_interactions_gap
from streamlib_parsers.wires.ollama.gaps import find_gap as find_ollama_gap
from streamlib_parsers.wires.ollama.lines import decode
from tests.parsers.test_templates import RESPONSE, frames_read, parsed, without_templates
from tests.support.cases import each_case
from tests.support.partitions import byte_by_byte, every_single_split


def ollama_lines() -> list[bytes]:
    return list(bodies.ollama(RESPONSE))


def generate_lines() -> list[bytes]:
    """Lines of /api/generate, and no times."""
    words = [b'{"model":"m","response":"word %d ","done":false}\n' % number for number in range(12)]
    thoughts = [line.replace(b"response", b"thinking") for line in words]
    return [*thoughts, *words, b'{"model":"m","response":"","done":true,"done_reason":"stop"}\n']


def identified_events() -> list[bytes]:
    """Events of an interaction that can be resumed."""
    events: list[bytes] = []
    for number, event in enumerate(bodies.interactions(RESPONSE)):
        events.append(event.replace(b"}\n\n", b',"event_id":"evt-%d"}\n\n' % number))
    return events


STREAMS: Final[dict[str, tuple[WireApi, Callable[[], list[bytes]]]]] = {
    "ollama": ("ollama", ollama_lines),
    "generate": ("ollama", generate_lines),
    "identified": ("interactions", identified_events),
}

ALTERED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "nothing": lambda event: event,
    "half an emoji": lambda event: event.replace(b"word 6 ", b"\\ud83d"),
    "no text": lambda event: event.replace(b"word 6 ", b""),
    "a text that looks like the end": lambda event: event.replace(b"word 6 ", b'\\"},\\"done'),
    "a time with an escape": lambda event: event.replace(b"Z", b"\\u005a"),
    "a time that is no text": lambda event: event.replace(b'Z"', b'Z","x":"'),
    "a time with a control character": lambda event: event.replace(b"Z", b"\x01"),
    "no UTF-8 in a time": lambda event: event.replace(b"Z", b"\xff"),
    "an empty time": lambda event: event.replace(b"2026-11-23T07:00:00.300045000Z", b""),
    "both texts": lambda event: event.replace(b'content":"w', b'thinking":"a","content":"w'),
    "images": lambda event: event.replace(b'"content"', b'"images":["iVBOR"],"content"'),
    "no calls": lambda event: event.replace(b'"content"', b'"tool_calls":[],"content"'),
    "logprobs": lambda event: event.replace(b'"done"', b'"logprobs":[{"token":"a"}],"done"'),
    "done": lambda event: event.replace(b"false", b"true"),
    "an error": lambda event: event.replace(b'"done"', b'"error":"no","done"'),
    "another model": lambda event: event.replace(b'"m"', b'"n"'),
    "a blank line": lambda event: b"\n" + event,
    "CRLF": lambda event: event.replace(b"\n", b"\r\n"),
    "an escaped id": lambda event: event.replace(b'"evt-', b'"\\u0065vt-'),
    "a quote in the id": lambda event: event.replace(b'"evt-', b'"e\\"vt-'),
    "an empty id": lambda event: event.replace(b"evt-20", b""),
    "an id that is no text": lambda event: event.replace(b'"evt-20"', b"20"),
    "the same id": lambda event: event.replace(b"evt-20", b"evt-19"),
    "an id before the text": lambda event: event.replace(b'{"index"', b'{"event_id":"a","index"'),
    "metadata": lambda event: event.replace(b',"event_id"', b',"metadata":{"x":1},"event_id"'),
    "usage": lambda event: event.replace(
        b',"event_id"', b',"metadata":{"total_usage":{"total_tokens":1}},"event_id"'
    ),
    "another type": lambda event: event.replace(b'"step.delta"', b'"step.other"'),
    "another step": lambda event: event.replace(b'"index":1', b'"index":0'),
    "a key in the delta": lambda event: event.replace(b'"text":"w', b'"x":1,"text":"w'),
}


def altered(name: str, change: Callable[[bytes], bytes]) -> list[bytes]:
    events: list[bytes] = []
    for event in STREAMS[name][1]():
        is_seventh = b'"word 6 "' in event
        events.append(change(event) if is_seventh else event)
    return events


CASES: Final = [(stream, name) for stream in STREAMS for name in ALTERED]


@each_case("stream, name", CASES)
def test_gap_is_read_as_framing_and_machine_do(stream: str, name: str) -> None:
    wire = STREAMS[stream][0]
    events = altered(stream, ALTERED[name])
    body = b"".join(events)
    expected = parsed([body], without_templates(wire, Limits()))
    assert parsed(events, parser(wire)) == expected
    assert parsed([body], parser(wire)) == expected
    assert parsed(byte_by_byte(body, 150), parser(wire)) == expected
    for chunks in every_single_split(body, 5):
        assert parsed(chunks, parser(wire)) == expected


@pytest.mark.parametrize("stream", STREAMS)
def test_gap_serves_nearly_every_event(stream: str) -> None:
    wire, events = STREAMS[stream]
    assert frames_read(events(), parser(wire)) < 20


def test_gap_of_a_plain_text_is_the_text_alone() -> None:
    line = b'{"message":{"content":"a"},"done":false}'
    gap = find_ollama_gap(line, decode(line), lambda _: True)
    assert gap is not None
    prefix, suffix, *_ = gap.template(b"", b"\n", 100).fit
    assert (prefix, suffix) == (b'{"message":{"content":', b'},"done":false}\n')


def test_time_and_text_are_one_gap() -> None:
    line = b'{"created_at":"2026-01-01T00:00:00Z","message":{"content":"a"}}'
    gap = find_ollama_gap(line, decode(line), lambda _: True)
    assert gap is not None
    prefix, suffix, *_ = gap.template(b"", b"\n", 100).fit
    assert (prefix, suffix) == (b'{"created_at":"', b"}}\n")


@each_case(
    "line",
    [
        b'{"message":{"content":"a","content":"b"}}',  # the last of two equal keys counts
        b'{"message":{"content":"","thinking":""}}',
        b'{"message":{"content":"a"},"response":"b"}',
        b'{"message":{"content":"a"},"done":true}',
        b'{"message":{"content":"a"},"logprobs":[{}]}',
        b'{"message":{"content":"a","tool_calls":[]}}',
        b'{"message":{"content":"a","images":[]}}',
    ],
)
def test_line_with_more_than_one_text_has_no_gap(line: bytes) -> None:
    assert find_ollama_gap(line, decode(line), lambda _: True) is None


@each_case(
    "data",
    [
        b'{"delta":{"type":"text","text":"a","text":"b"}}',
        b'{"delta":{"type":"text","text":"a","x":1}}',
        b'{"delta":{"type":"text","text":null}}',
        b'{"delta":{"type":"image","data":"a"}}',
        b'{"delta":{"type":"thought_summary","content":{"type":"text","text":"a","x":1}}}',
        b'{"delta":{"type":"thought_summary","content":{"type":"image","text":"a"}}}',
        b'{"delta":{"type":"thought_summary","content":{"type":"text","text":"a"},"x":1}}',
        b'{"delta":{"type":"thought_summary","content":"a"}}',
        b'{"index":0,"delta":{"type":"text","text":"a"},"event_type":"step.delta","x":1}',
        b'{"index":0,"delta":{"type":"text","text":"a"},"event_type":"step.delta","event_id":1}',
        b'{"event_id":"e","index":0,"delta":{"type":"text","text":"a"},"event_type":"step.delta"}',
        b'{"index":0,"delta":{"type":"text","text":"a"},"x":1,"event_id":"e"}',
    ],
)
def test_delta_with_more_than_text_and_id_has_no_gap(data: bytes) -> None:
    value = msgspec.json.decode(data)
    assert find_interactions_gap(data, value, lambda _: True, lambda _: None) is None


def sse(event: dict[str, Any], name: str) -> bytes:
    """An event whose name is in its data too, under this key."""
    return f"event: {event[name]}\n".encode() + b"data: " + msgspec.json.encode(event) + b"\n\n"


def lines_of_no_known_kind() -> list[bytes]:
    """Reasoning, then lines with reasoning that nothing else tells to be Ollama's."""
    known = b'{"model":"m","thinking":"%d","done":false}\n'
    unknown = b'{"model":"m","thinking":"%d","x":1}\n'
    last = b'{"model":"m","response":"","done":true}\n'
    return [*[known % n for n in range(2)], *[unknown % n for n in range(6)], last]


def deltas_whose_text_is(text: Any) -> list[bytes]:
    """An interaction whose deltas have this as their text."""
    start = {"event_type": "interaction.created", "interaction": {"id": "i", "model": "m"}}
    step = {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}}
    delta = {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": text}}
    events: list[dict[str, Any]] = [start, step, *[delta] * 9]
    return [sse(event, "event_type") for event in events]


def deltas_whose_item_id_is_a_number() -> list[bytes]:
    """A message whose first four deltas name their item by a text, the others by a number."""
    created = {"type": "response.created", "response": {"id": "r", "model": "m"}}
    item = {"type": "message", "id": "i", "role": "assistant", "content": []}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    part = {"type": "response.content_part.added", "output_index": 0, "content_index": 0}
    part |= {"item_id": "i", "part": {"type": "output_text", "text": ""}}
    events = [sse(event, "type") for event in (created, added, part)]
    for number in range(9):
        item_id = "i" if number < 4 else 5
        delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0}
        events.append(sse({**delta, "item_id": item_id, "delta": f"w{number}"}, "type"))
    return events


@each_case(
    "wire, events",
    [
        ("ollama", lines_of_no_known_kind()),
        ("interactions", deltas_whose_text_is(5)),
        ("interactions", deltas_whose_text_is("")),
        ("interactions", deltas_whose_text_is(None)),
        ("responses", deltas_whose_item_id_is_a_number()),
    ],
)
def test_unusual_event_is_read_as_framing_and_machine_do(
    wire: WireApi, events: list[bytes]
) -> None:
    body = b"".join(events)
    expected = parsed([body], without_templates(wire, Limits()))
    assert parsed(events, parser(wire)) == expected
    assert parsed([body], parser(wire)) == expected
    assert parsed(byte_by_byte(body, 150), parser(wire)) == expected
