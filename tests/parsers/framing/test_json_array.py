"""One JSON array of objects: each element as soon as it is whole, at any split; a cut element is never given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.json_array import JsonArrayFraming
from streamlib_parsers.limits import LIMITS, Limits
from tests.support.framings import Reading, growth, read
from tests.support.partitions import byte_by_byte, cut_at, cuts, every_single_cut, random_partitions
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
    + b"\n,\r\n".join(json.dumps(one, ensure_ascii=False, indent=2).encode() for one in TRICKY)
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
def test_recorded_bodies_give_their_elements_at_any_split(recording: Recording) -> None:
    body = arrays(recording)
    whole = elements(body)
    assert whole.failure is None
    assert values(whole) == json.loads(body)
    for chunks in (
        byte_by_byte(body, 1 if len(body) < 100_000 else 7),
        *random_partitions(body, 5),
        *every_single_cut(body, at_most=50),
    ):
        assert read(JsonArrayFraming(), chunks) == whole


def test_braces_quotes_and_escapes_inside_strings_are_text() -> None:
    whole = elements(BODY)
    assert values(whole) == TRICKY
    assert whole.failure is None
    assert not whole.blank
    for chunks in (byte_by_byte(BODY), *every_single_cut(BODY), *random_partitions(BODY, 300)):
        assert read(JsonArrayFraming(), chunks) == whole


def test_every_double_split_of_a_short_array_reads_the_same() -> None:
    body = rb'[{"a\\":"}\""},{"b":{}}]'
    whole = elements(body)
    assert values(whole) == [{"a\\": '}"'}, {"b": {}}]
    for a in range(len(body) + 1):
        for b in range(a, len(body) + 1):
            assert read(JsonArrayFraming(), cut_at(body, [a, b])) == whole


def test_an_element_is_given_at_its_last_brace_as_it_was_written() -> None:
    framing: Framing = JsonArrayFraming()
    assert framing.feed(b'[ { "a" : 1.0 ') == []
    assert framing.feed(b"}") == [Frame(None, b'{ "a" : 1.0 }')]
    assert framing.feed(b"\n,\n{}") == [Frame(None, b"{}")]
    assert framing.feed(b" ] ") == []
    assert framing.close() == []
    assert framing.failure is None


def test_one_object_instead_of_an_array_is_one_element() -> None:
    assert elements(b'\n{"error":{"code":503}}\n') == (
        [Frame(None, b'{"error":{"code":503}}')],
        None,
        False,
    )
    assert elements(b'{"a":1}{"b":2}').kind == "malformed"
    assert elements(b'{"a":1},').kind == "malformed"


def test_an_empty_array_gives_nothing_and_is_no_failure() -> None:
    assert elements(b" [ ] ") == ([], None, False)


@pytest.mark.parametrize("body", [b"", b" \r\n\t", BOM, BOM + b"\n"])
def test_a_body_of_nothing_is_blank(body: bytes) -> None:
    assert elements(body) == ([], None, True)
    assert read(JsonArrayFraming(), byte_by_byte(body)) == ([], None, True)


# --- cuts ---


def is_cut(body: bytes) -> bool:
    """Whether an end here cuts an element, or comes where one must follow."""
    rest = body.strip(BOM + b" \r\n")
    return rest == b"[" or rest.endswith(b",") or not (rest == b"" or ends_whole(rest))


def ends_whole(rest: bytes) -> bool:
    """Whether the array ends, or would end with a bracket more."""
    for candidate in (rest, rest + b"]"):
        try:
            json.loads(candidate)
        except ValueError:
            continue
        return True
    return False


def test_an_end_inside_an_element_or_after_a_comma_is_truncated_and_nothing_else_is() -> None:
    whole = elements(BODY)
    for place in range(len(BODY) + 1):
        reading = elements(BODY[:place])
        assert reading.kind == ("truncated" if is_cut(BODY[:place]) else None)
        assert reading.frames == whole.frames[: len(reading.frames)]
        assert read(JsonArrayFraming(), byte_by_byte(BODY[:place])) == reading


def test_a_missing_bracket_after_a_whole_element_is_left_to_the_wire() -> None:
    assert elements(b'[{"a":1}') == ([Frame(None, b'{"a":1}')], None, False)
    assert elements(b'[{"a":1}\n').failure is None


@pytest.mark.parametrize(
    "body",
    [b"[", b'[{"a":1},', b'[{"a":1}\n,\n', b'[{"a":"', b'[{"a":"\\', b"[{", b"{", b'{"a":{}'],
)
def test_a_cut_body_is_truncated_and_may_be_tried_again(body: bytes) -> None:
    reading = elements(body)
    assert reading.failure is not None
    assert reading.failure.kind == "truncated"
    assert reading.failure.retryable


# --- what is not JSON ---


@pytest.mark.parametrize(
    ("body", "given", "shown"),
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
def test_what_is_not_json_is_malformed_and_shown_the_same_at_any_split(
    body: bytes, given: int, shown: str
) -> None:
    whole = elements(body)
    assert len(whole.frames) == given
    assert whole.failure is not None
    assert whole.failure.kind == "malformed"
    assert whole.failure.detail == shown
    for chunks in (byte_by_byte(body), *every_single_cut(body)):
        assert read(JsonArrayFraming(), chunks) == whole


def test_what_is_not_json_fails_before_its_end_for_good() -> None:
    framing = JsonArrayFraming()
    framing.feed(b"<" * 199)
    assert framing.failure is None
    framing.feed(b"<")
    failure = framing.failure
    assert failure is not None
    assert framing.feed(b"[{}]") == []
    assert framing.close() == []
    assert framing.failure is failure


# --- ceilings ---


def test_an_element_over_the_ceiling_ends_the_stream_after_the_elements_before_it() -> None:
    limits = Limits(event_bytes=10)
    body = b'[{"a":"xx"}' + b" " * 50 + b',{"a":"}"},{"a":"xxx"},{}]'
    whole = read(JsonArrayFraming(limits), [body])
    assert whole.data == [b'{"a":"xx"}', b'{"a":"}"}']
    assert whole.failure is not None
    assert (whole.kind, whole.failure.code) == ("limit_exceeded", "event_bytes")
    for chunks in (byte_by_byte(body), *every_single_cut(body)):
        assert read(JsonArrayFraming(limits), chunks) == whole


def test_an_endless_element_fails_before_its_end_and_is_not_kept() -> None:
    framing = JsonArrayFraming(Limits(event_bytes=10))
    framing.feed(b'[{"a":"xxxx')
    assert framing.failure is None
    framing.feed(b"x")
    assert framing.failure is not None
    assert not framing._buffered


# --- any value, any bytes, any split ---

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
def test_any_objects_come_back_at_any_split(
    objects: list[Any], escape: bool, indent: int | None, data: st.DataObject
) -> None:
    body = json.dumps(objects, ensure_ascii=escape, indent=indent).encode("utf-8", "surrogatepass")
    reading = read(JsonArrayFraming(), data.draw(cuts(body)))
    assert reading.failure is None
    assert values(reading) == objects


def by_hand(body: bytes) -> list[bytes]:
    """The elements of what follows a `[`, found byte by byte: the scanner's oracle."""
    found: list[bytes] = []
    start = depth = 0
    quoted = escaped = False
    for at, byte in enumerate(body):
        char = chr(byte)
        if escaped or (quoted and char == "\\"):
            escaped = not escaped
        elif char == '"' and depth:
            quoted = not quoted
        elif char == "{" and not quoted:
            start = start if depth else at
            depth += 1
        elif char == "}" and depth and not quoted:
            depth -= 1
            if not depth:
                found.append(body[start : at + 1])
    return found


SCRAPS = st.sampled_from(
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


@given(st.lists(SCRAPS, max_size=60), st.data())
def test_the_scanner_finds_what_a_byte_by_byte_scan_finds(
    scraps: list[bytes], data: st.DataObject
) -> None:
    body = b'[{"k":' + b"".join(scraps)
    reading = read(JsonArrayFraming(), data.draw(cuts(body)))
    assert reading.data == by_hand(body)[: len(reading.data)]
    assert reading.data[:1] == by_hand(body)[:1]
    assert reading == elements(body)


@given(st.lists(SCRAPS, max_size=30), st.data())
def test_any_bytes_read_the_same_at_any_split(scraps: list[bytes], data: st.DataObject) -> None:
    body, limits = b"".join(scraps), Limits(event_bytes=12)
    assert read(JsonArrayFraming(limits), data.draw(cuts(body))) == elements(body, limits)


# --- growth ---


def image(size: int) -> bytes:
    return b'[{"inlineData":"' + b"QUJD" * (size // 4) + b'"}]'


def escapes(size: int) -> bytes:
    return b'[{"text":"' + b'say \\"hi\\"\\n ' * (size // 13) + b'"}]'


def backslashes(size: int) -> bytes:
    return b'[{"text":"' + b"\\\\" * (size // 2) + b'"}]'


def keys(size: int) -> bytes:
    return b"[{" + b",".join([b'"key":{"a":"b","c":"d"}'] * (size // 25)) + b"}]"


def chunks_of_gemini(size: int) -> bytes:
    one = json.dumps(
        {"candidates": [{"content": {"parts": [{"text": 'Hi "you"'}], "role": "model"}}]}, indent=2
    ).encode()
    return b"[" + b"\n,\n".join([one] * (size // len(one))) + b"]"


@pytest.mark.parametrize("body", [image, escapes, backslashes, keys, chunks_of_gemini])
def test_twice_the_body_takes_at_most_twice_the_time(body: Any) -> None:
    assert values(elements(body(1000)))
    assert growth(JsonArrayFraming, body, 1 << 19) <= 2.3


@pytest.mark.parametrize("body", [image, escapes, backslashes, keys, chunks_of_gemini])
def test_a_megabyte_in_one_chunk_is_read_as_in_many(body: Any) -> None:
    whole = body(1 << 20)
    assert elements(whole) == read(JsonArrayFraming(), byte_by_byte(whole, 1024))
