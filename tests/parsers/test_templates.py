"""Templates: what they read is what framing and machine would have read, whatever stands between.

Each stream is a few usual deltas with one altered event among them. It is parsed with templates in
several partitions, and without templates: the events must be equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import (
    SampleCall,
    SampleReasoning,
    SampleResponse,
    SampleText,
)
from streamlib_parsers import ResponseEvent, WireApi, parser, templates
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import Parser
from streamlib_parsers.templates import (
    MAX_PAYLOAD_BYTES,
    LearnBackoff,
    ReadTemplate,
    TemplateReader,
    TextGap,
    TextTemplate,
    around_string,
    divided_at_mark,
    is_begun,
)
from tests.support.cases import each_case
from tests.support.partitions import byte_by_byte, every_single_split

RESPONSE: Final[SampleResponse] = (
    SampleReasoning([f"think {number} " for number in range(9)]),
    SampleText([f"word {number} " for number in range(12)]),
    SampleCall("call_0", "f", ['{"k":"', *(f"{number}" for number in range(6)), '"}']),
)

WIRES: Final[dict[WireApi, Callable[[Any], Iterator[bytes]]]] = {
    "messages": bodies.messages,
    "chat": bodies.chat,
    "responses": bodies.responses,
    "gemini": bodies.gemini,
    "cohere": bodies.cohere,
    "ollama": bodies.ollama,
    "interactions": bodies.interactions,
}

ALTERED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "nothing": lambda event: event,
    "escapes": lambda event: event.replace(b"word 6 ", rb"q\"\\ \u00e9\n\ud83d\ude00"),
    "half an emoji": lambda event: event.replace(b"word 6 ", rb"a\ud83d"),
    "an unescaped quote": lambda event: event.replace(b"word 6 ", b'a","b'),
    "another key": lambda event: event.replace(b'word 6 "', b'a","x":{"text":"b"}'),
    "a backslash at the end": lambda event: event.replace(b"word 6 ", b"a\\"),
    "a comma as text": lambda event: event.replace(b"word 6 ", b'",","x'),
    "a control character": lambda event: event.replace(b"word 6 ", b"a\x01b"),
    "bytes that are no UTF-8": lambda event: event.replace(b"word 6 ", b"\xff\xfe"),
    "a line end in the text": lambda event: event.replace(b"word 6 ", b"a\nb"),
    "a line end before the text": lambda event: event.replace(b'"word 6 ', b'\n"word 6 '),
    "a CR behind the text": lambda event: event.replace(b'word 6 "', b'word 6 "\r'),
    "no text": lambda event: event.replace(b"word 6 ", b""),
    "a null": lambda event: event.replace(b'"word 6 "', b"null"),
    "a number": lambda event: event.replace(b'"word 6 "', b"6"),
    "blanks": lambda event: event.replace(b'"word 6 "', b' "word 6 "  '),
    "CRLF": lambda event: event.replace(b"\n", b"\r\n"),
    "CR": lambda event: event.replace(b"\n", b"\r"),
    "a comment": lambda event: b": keep-alive\n\n" + event,
    "a ping": lambda event: b'event: ping\ndata: {"type":"ping"}\n\n' + event,
    "an unknown event": lambda event: b'event: x\ndata: {"type":"x","choices":[]}\n\n' + event,
    "an id": lambda event: b"id: 7\n" + event,
    "two data lines": lambda event: event.replace(b"data: {", b"data: {\ndata: "),
    "twice": lambda event: event + event,
    "stray": lambda event: b"nonsense\n\n" + event,
    "an error": lambda event: b'event: error\ndata: {"error":{"message":"no"}}\n\n' + event,
    "other counts": lambda event: event.replace(b"candidatesTokenCount", b"thoughtsTokenCount"),
    "another prompt": lambda event: event.replace(b'"promptTokenCount":9', b'"promptTokenCount":8'),
    "a negative count": lambda event: event.replace(b'TokenCount":1', b'TokenCount":-1'),
    "a count twice": lambda event: event.replace(
        b'"totalTokenCount"', b'"promptTokenCount":1,"totalTokenCount"'
    ),
    "another index": lambda event: event.replace(b'index":1', b'index":7'),
}


def altered(wire: WireApi, change: Callable[[bytes], bytes]) -> list[bytes]:
    """The events of a stream, of which the seventh of the text is changed."""
    events: list[bytes] = []
    for event in WIRES[wire](RESPONSE):
        is_seventh = b'"word 6 "' in event
        events.append(change(event) if is_seventh else event)
    return events


def parsed(chunks: Iterator[bytes] | list[bytes], parse: Parser) -> list[ResponseEvent]:
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += parse.feed(chunk)
    return [*events, *parse.close()]


def without_templates(wire: WireApi, limits: Limits) -> Parser:
    plain = parser(wire, limits=limits)
    plain._templates = None
    return plain


CASES: Final = [(wire, name) for wire in WIRES for name in ALTERED]


@each_case("wire, name", CASES)
def test_template_emits_what_framing_and_machine_do(wire: WireApi, name: str) -> None:
    events = altered(wire, ALTERED[name])
    body = b"".join(events)
    limits = Limits()
    expected = parsed([body], without_templates(wire, limits))
    assert parsed(events, without_templates(wire, limits)) == expected
    assert parsed(events, parser(wire)) == expected
    assert parsed([body], parser(wire)) == expected
    assert parsed(byte_by_byte(body), parser(wire)) == expected
    assert parsed(byte_by_byte(body, 150), parser(wire)) == expected
    for chunks in every_single_split(body, 5):
        assert parsed(chunks, parser(wire)) == expected


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "limits",
    [
        Limits(event_bytes=250),
        Limits(response_bytes=2000),
        Limits(argument_bytes=5),
    ],
)
def test_template_keeps_every_limit(wire: WireApi, limits: Limits) -> None:
    events = altered(wire, lambda event: event.replace(b"word 6 ", b"word 6 " * 30))
    body = b"".join(events)
    expected = parsed([body], without_templates(wire, limits))
    assert parsed(events, parser(wire, limits=limits)) == expected
    assert parsed([body], parser(wire, limits=limits)) == expected
    assert parsed(byte_by_byte(body, 97), parser(wire, limits=limits)) == expected


def frames_read(chunks: list[bytes], parse: Parser) -> int:
    """How many frames the machine reads."""
    frames: list[bytes] = []
    read = parse._read_frame

    def counted(event: str | None, data: bytes) -> None:
        frames.append(data)
        read(event, data)

    parse._read_frame = counted
    parsed(chunks, parse)
    return len(frames)


@pytest.mark.parametrize("wire", WIRES)
def test_template_serves_nearly_every_delta(wire: WireApi) -> None:
    response = [SampleText([f"word {number} " for number in range(200)])]
    events = list(WIRES[wire](response))
    assert frames_read(events, parser(wire)) < 25
    body = b"".join(events)
    large = [body[at : at + 4096] for at in range(0, len(body), 4096)]
    assert frames_read(large, parser(wire)) < 25


def test_text_of_large_chunk_is_no_more_than_its_strings() -> None:
    texts: list[str] = []

    def append(text: str) -> bool:
        texts.append(text)
        return True

    template = TextGap(b'{"t":', b"}", append).template(b"data: ", b"\n\n", 10_000)
    # Both gaps together would be the list of two strings that `",` and `x` are.
    chunk = b'data: {"t":"a\\"}\n\ndata: {"t":","x"}\n\n'
    assert template.take(chunk) == 0
    assert texts == []


def text_template(texts: list[str]) -> TextTemplate:
    def append(text: str) -> bool:
        texts.append(text)
        return True

    return TextTemplate(b'data: {"t":', b"}\n\n", 10_000, append)


def test_events_before_one_that_does_not_fit_are_decoded_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(gap: bytes) -> str:
        raise AssertionError(gap)

    monkeypatch.setattr(templates, "decode_text", refuse)
    fitting = b'data: {"t":"a"}\n\ndata: {"t":"b"}\n\n'
    texts: list[str] = []
    # The last event ends like those that fit. The one before the comment is left, too.
    chunk = fitting + b'data: {"t":"c"}\n\n: comment\n\ndata: {"x":1,"t":"d"}\n\n'
    assert text_template(texts).take(chunk) == len(fitting)
    assert texts == ["a", "b"]


def test_gaps_up_to_one_that_is_no_string_are_read_one_by_one() -> None:
    texts: list[str] = []
    template = text_template(texts)
    chunk = b"".join(b'data: {"t":"%b"}\n\n' % text for text in (b"a", b"b", b"\x01", b"c"))
    assert template.take(chunk) == len(chunk) * 2 // 4
    assert template._take_each([b"d", b"e"]) == len(chunk) * 2 // 4
    assert texts == ["a", "b", "d", "e"]


def test_chunk_without_a_complete_event_is_left_alone() -> None:
    texts: list[str] = []
    template = text_template(texts)
    for chunk in (b'data: {"t":"a"', b'"}\n\n', b'data: {"t":"}\n\n', b'data: {"u":"a"}\n\n'):
        assert template.take(chunk) == 0
    assert template.take(b'data: {"t":""}\n\n') == 16
    assert texts == [""]


def test_gap_that_is_read_may_be_empty() -> None:
    gaps: list[bytes] = []

    def read(gap: bytes) -> bool:
        gaps.append(gap)
        return gap != b"no"

    template = ReadTemplate(b"<", b">", 100, read)
    assert template.take(b"<>") == 2
    assert template.take(b"<a><b>rest") == 6
    assert template.take(b"<a><no><b>") == 3
    assert template.take(b"<a\n><b>") == 0
    assert template.take(b"<a><b\r>") == 3
    assert template.take(b">") == template.take(b"<") == 0
    assert gaps == [b"", b"a", b"b", b"a", b"no", b"a"]


def test_rest_is_the_beginning_of_an_event_or_not() -> None:
    fit = ReadTemplate(b"data: {", b"}\n\n", 100, bool).fit
    assert [is_begun(fit, rest) for rest in (b"", b"da", b"data: {", b'data: {"a')] == [True] * 4
    assert [is_begun(fit, rest) for rest in (b"x", b"event: x", b"data: {\n", b"data: {\r")] == (
        [False] * 4
    )


def test_string_is_found_with_its_escapes() -> None:
    data = rb'{"a":1,"text" : "a\"b\\","b":2}'
    around = around_string(data, "text")
    assert around == (rb'{"a":1,"text" : ', b',"b":2}')
    assert json.loads(data) == {"a": 1, "text": 'a"b\\', "b": 2}


def test_backoff_doubles_up_to_a_limit_and_ends_where_one_serves() -> None:
    backoff = LearnBackoff()
    waits: list[int] = []
    for served in (0, 3, 0, 0, 0, 0, 0, 4, 3):
        events = 1
        while not backoff.ready():
            events += 1
        waits.append(events)
        backoff.missed(served)
    assert waits == [1, 1, 3, 7, 15, 31, 63, 63, 1]


def test_longest_payload_of_a_template_is_learned() -> None:
    def is_learned(size: int) -> bool:
        asked: list[bytes] = []

        def find_gap(event: str | None, data: bytes) -> None:
            asked.append(data)

        reader = TemplateReader(SSEFraming(), find_gap, int, 10_000)
        reader.learn(None, b"x" * size)
        return bool(asked)

    assert is_learned(MAX_PAYLOAD_BYTES)
    assert not is_learned(MAX_PAYLOAD_BYTES + 1)


def test_templates_are_made_rarely_when_late_ones_serve_nothing() -> None:
    gaps: list[TextGap] = []

    def append(text: str) -> bool:
        return True

    def find_gap(event: str | None, data: bytes) -> TextGap:
        gaps.append(TextGap(b"", b"", append))
        return gaps[-1]

    reader = TemplateReader(SSEFraming(), find_gap, lambda: 100, 10_000)
    for _ in range(1000):
        reader.learn(None, b"{}")
    assert len(gaps) < 30


def test_mark_behind_a_string_ends_in_its_first_quote() -> None:
    assert divided_at_mark(b'},"p":"') == (b'},"', b'p":"')


def test_backoff_grows_when_templates_do_not_serve() -> None:
    backoff = LearnBackoff()
    learned = 0
    for _ in range(1000):
        if backoff.ready():
            learned += 1
            backoff.missed(0)
    assert learned < 30
    backoff.missed(served=100)
    assert backoff.ready()
