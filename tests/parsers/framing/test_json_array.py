"""JSON array framing: each element once complete, in any partition; never a truncated one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.json_array import JsonArrayFraming
from streamlib_parsers.limits import LIMITS, Limits
from tests.support.cases import each_case
from tests.support.framings import Reading, growth, read
from tests.support.partitions import (
    byte_by_byte,
    every_single_split,
    partitions,
    random_partitions,
    split_at,
)
from tests.support.shared import Recording, each_recording

BOM = b"\xef\xbb\xbf"
TRICKY = [
    {"text": 'braces } ] { [ in a string, "quoted }" and \\ } \\'},
    {},
    {"nested": [{"a": [[], {}]}, "]", "}", '"', "\\", '\\"', "é }"], 'key } "': "\n\t\u0000"},
    {"emoji": "😀}", "data": "QUJD" * 30},
]
BODY = (
    BOM
    + b" \r\n["
    + b"\n,\r\n".join(
        json.dumps(element, ensure_ascii=False, indent=2).encode() for element in TRICKY
    )
    + b"\n]\n"
)


def elements(body: bytes, limits: Limits = LIMITS) -> Reading:
    return read(JsonArrayFraming(limits), [body])


def values(reading: Reading) -> list[Any]:
    return [json.loads(data or b"") for data in reading.data]


def arrays(recording: Recording) -> bytes:
    """The body, as an array where it was recorded as one object."""
    body = recording.body.strip()
    return body if body.startswith(b"[") else b"[" + body + b"\n,\n" + body + b"]"


@each_recording("gemini-generatecontent", [".json"])
def test_recorded_elements_do_not_depend_on_partition(recording: Recording) -> None:
    body = arrays(recording)
    expected = elements(body)
    assert expected.failure is None
    assert values(expected) == json.loads(body)
    for chunks in (
        byte_by_byte(body, 1 if len(body) < 100_000 else 7),
        *random_partitions(body, 5),
        *every_single_split(body, at_most=50),
    ):
        assert read(JsonArrayFraming(), chunks) == expected


def test_braces_quotes_and_escapes_inside_strings_are_text() -> None:
    expected = elements(BODY)
    assert values(expected) == TRICKY
    assert expected.failure is None
    assert not expected.blank
    for chunks in (byte_by_byte(BODY), *every_single_split(BODY), *random_partitions(BODY, 300)):
        assert read(JsonArrayFraming(), chunks) == expected


def test_every_double_split_of_an_array_reads_the_same() -> None:
    body = rb'[{"a\\":"}\""},{"b":{}}]'
    expected = elements(body)
    assert values(expected) == [{"a\\": '}"'}, {"b": {}}]
    for a in range(len(body) + 1):
        for b in range(a, len(body) + 1):
            assert read(JsonArrayFraming(), split_at(body, [a, b])) == expected


def test_element_is_emitted_unchanged_at_its_last_brace() -> None:
    framing: Framing = JsonArrayFraming()
    assert framing.feed(b'[ { "a" : 1.0 ') == []
    assert framing.feed(b"}") == [Frame(None, b'{ "a" : 1.0 }')]
    assert framing.feed(b"\n,\n{}") == [Frame(None, b"{}")]
    assert framing.feed(b" ] ") == []
    assert framing.close() == []
    assert framing.failure is None


def test_single_object_is_one_element() -> None:
    assert elements(b'\n{"error":{"code":503}}\n') == (
        [Frame(None, b'{"error":{"code":503}}')],
        None,
        False,
    )
    assert elements(b'{"a":1}{"b":2}').kind == "malformed"
    assert elements(b'{"a":1},').kind == "malformed"


def test_empty_array_has_no_frames_and_no_failure() -> None:
    assert elements(b" [ ] ") == ([], None, False)


@pytest.mark.parametrize("body", [b"", b" \r\n\t", BOM, BOM + b"\n"])
def test_body_of_white_space_is_blank(body: bytes) -> None:
    assert elements(body) == ([], None, True)
    assert read(JsonArrayFraming(), byte_by_byte(body)) == ([], None, True)


# --- truncation ---


def is_truncated(body: bytes) -> bool:
    """Whether an end here truncates an element, or stands where one must follow."""
    rest = body.strip(BOM + b" \r\n")
    return rest == b"[" or rest.endswith(b",") or not (rest == b"" or is_complete(rest))


def is_complete(rest: bytes) -> bool:
    """Whether the array ends, or would end with a bracket more."""
    for candidate in (rest, rest + b"]"):
        try:
            json.loads(candidate)
        except ValueError:
            continue
        return True
    return False


def test_only_an_end_inside_or_before_an_element_is_truncated() -> None:
    expected = elements(BODY)
    for offset in range(len(BODY) + 1):
        reading = elements(BODY[:offset])
        assert reading.kind == ("truncated" if is_truncated(BODY[:offset]) else None)
        assert reading.frames == expected.frames[: len(reading.frames)]
        assert read(JsonArrayFraming(), byte_by_byte(BODY[:offset])) == reading


def test_missing_bracket_after_an_element_is_not_a_failure() -> None:
    assert elements(b'[{"a":1}') == ([Frame(None, b'{"a":1}')], None, False)
    assert elements(b'[{"a":1}\n').failure is None


@each_case(
    "body",
    [b"[", b'[{"a":1},', b'[{"a":1}\n,\n', b'[{"a":"', b'[{"a":"\\', b"[{", b"{", b'{"a":{}'],
)
def test_truncated_body_is_retryable(body: bytes) -> None:
    reading = elements(body)
    assert reading.failure is not None
    assert reading.failure.kind == "truncated"
    assert reading.failure.retryable


# --- what is not JSON ---


@each_case(
    "body, frame_count, shown",
    [
        (b"<html>Bad Gateway</html>", 0, "<html>Bad Gateway</html>"),
        (b'  data: {"a":1}\n\n', 0, 'data: {"a":1}\n\n'),
        (b"[<", 0, "<"),
        (b"[1,2]", 0, "1,2]"),
        (b'["a"]', 0, '"a"]'),
        (b"[[{}]]", 0, "[{}]]"),
        (b"[,", 0, ","),
        (b"[{},]", 1, "]"),
        (b"[{}{}]", 1, "{}]"),
        (b"[{}:{}]", 1, ":{}]"),
        (b"[{}]]", 1, "]"),
        (b"[{}] {}", 1, "{}"),
        (b"[{}]" + BOM, 1, "\ufeff"),
        (b"null", 0, "null"),
        (b"[{}\xff" + b"x" * 500, 1, "\ufffd" + "x" * 199),
        ("é".encode() * 500, 0, "é" * 100),
    ],
)
def test_non_json_is_malformed_with_the_same_excerpt(
    body: bytes, frame_count: int, shown: str
) -> None:
    expected = elements(body)
    assert len(expected.frames) == frame_count
    assert expected.failure is not None
    assert expected.failure.kind == "malformed"
    assert expected.failure.detail == shown
    for chunks in (byte_by_byte(body), *every_single_split(body)):
        assert read(JsonArrayFraming(), chunks) == expected


def test_non_json_fails_before_its_end_and_stays_failed() -> None:
    framing = JsonArrayFraming()
    framing.feed(b"<" * 199)
    assert framing.failure is None
    framing.feed(b"<")
    failure = framing.failure
    assert failure is not None
    assert framing.feed(b"[{}]") == []
    assert framing.close() == []
    assert framing.failure is failure


# --- limits ---


def test_element_over_the_limit_fails_after_earlier_elements() -> None:
    limits = Limits(event_bytes=10)
    body = b'[{"a":"xx"}' + b" " * 50 + b',{"a":"}"},{"a":"xxx"},{}]'
    expected = read(JsonArrayFraming(limits), [body])
    assert expected.data == [b'{"a":"xx"}', b'{"a":"}"}']
    assert expected.failure is not None
    assert (expected.kind, expected.failure.code) == ("limit_exceeded", "event_bytes")
    for chunks in (byte_by_byte(body), *every_single_split(body)):
        assert read(JsonArrayFraming(limits), chunks) == expected


def test_endless_element_fails_early_and_is_not_buffered() -> None:
    framing = JsonArrayFraming(Limits(event_bytes=10))
    framing.feed(b'[{"a":"xxxx')
    assert framing.failure is None
    framing.feed(b"x")
    assert framing.failure is not None
    assert not framing._buffered


# --- any value, any bytes, any partition ---

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.text(alphabet='"\\{}[],'),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='"\\{}a'), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=5),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.data(),
)
def test_any_objects_are_read_back_in_any_partition(
    objects: list[Any], escape: bool, indent: int | None, data: st.DataObject
) -> None:
    body = json.dumps(objects, ensure_ascii=escape, indent=indent).encode("utf-8", "surrogatepass")
    reading = read(JsonArrayFraming(), data.draw(partitions(body)))
    assert reading.failure is None
    assert values(reading) == objects


def scan_byte_by_byte(body: bytes) -> list[bytes]:
    """Finds the elements after a `[` byte by byte: the oracle of the scanner."""
    elements_found: list[bytes] = []
    start = depth = 0
    quoted = escaped = False
    for offset, byte in enumerate(body):
        char = chr(byte)
        if escaped or (quoted and char == "\\"):
            escaped = not escaped
        elif char == '"' and depth:
            quoted = not quoted
        elif char == "{" and not quoted:
            start = start if depth else offset
            depth += 1
        elif char == "}" and depth and not quoted:
            depth -= 1
            if not depth:
                elements_found.append(body[start : offset + 1])
    return elements_found


SNIPPETS = st.sampled_from(
    [
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"x",
        b" ",
        b'""',
        b'"a"',
        b'\\"',
        b"\\\\",
        b"QUJD",
        b"\xc3\xa9",
    ]
)


@given(st.lists(SNIPPETS, max_size=60), st.data())
def test_scanner_agrees_with_a_byte_by_byte_scan(
    snippets: list[bytes], data: st.DataObject
) -> None:
    body = b'[{"k":' + b"".join(snippets)
    reading = read(JsonArrayFraming(), data.draw(partitions(body)))
    assert reading.data == scan_byte_by_byte(body)[: len(reading.data)]
    assert reading.data[:1] == scan_byte_by_byte(body)[:1]
    assert reading == elements(body)


@given(st.lists(SNIPPETS, max_size=30), st.data())
def test_any_bytes_read_the_same_in_any_partition(
    snippets: list[bytes], data: st.DataObject
) -> None:
    body, limits = b"".join(snippets), Limits(event_bytes=12)
    assert read(JsonArrayFraming(limits), data.draw(partitions(body))) == elements(body, limits)


# --- growth ---


def image(size: int) -> bytes:
    return b'[{"inlineData":"' + b"QUJD" * (size // 4) + b'"}]'


def escapes(size: int) -> bytes:
    return b'[{"text":"' + b'say \\"hi\\"\\n ' * (size // 13) + b'"}]'


def backslashes(size: int) -> bytes:
    return b'[{"text":"' + b"\\\\" * (size // 2) + b'"}]'


def keys(size: int) -> bytes:
    return b"[{" + b",".join([b'"key":{"a":"b","c":"d"}'] * (size // 25)) + b"}]"


def gemini_chunks(size: int) -> bytes:
    element = json.dumps(
        {"candidates": [{"content": {"parts": [{"text": 'Hi "you"'}], "role": "model"}}]}, indent=2
    ).encode()
    return b"[" + b"\n,\n".join([element] * (size // len(element))) + b"]"


@pytest.mark.timing
@pytest.mark.parametrize("body", [image, escapes, backslashes, keys, gemini_chunks])
def test_twice_the_body_takes_at_most_twice_the_time(body: Any) -> None:
    assert values(elements(body(1000)))
    assert growth(JsonArrayFraming, body, 1 << 19) <= 2.3


@pytest.mark.parametrize("body", [image, escapes, backslashes, keys, gemini_chunks])
def test_megabyte_in_one_chunk_reads_as_in_many(body: Any) -> None:
    text = body(1 << 20)
    assert elements(text) == read(JsonArrayFraming(), byte_by_byte(text, 1024))
