"""Chat Completions: chunks of which only the text is decoded."""

from __future__ import annotations

import json

import pytest

from streamlib_parsers import Completed, accumulate
from streamlib_parsers.wires.chat import (
    Machine,
)
from streamlib_parsers.wires.chat.chunks import decode_chunk
from streamlib_parsers.wires.chat.gaps import find_gap, text_key_of
from tests.support.chat_streams import (
    STOP,
    Json,
    call,
    calls,
    choice,
    choices_chunk,
    chunk,
    delta_chunk,
    events_of,
)


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        (delta_chunk(content="a"), "content"),
        (delta_chunk(content="", reasoning="a"), "reasoning"),
        (calls(call(0, None, "a")), "arguments"),
        (delta_chunk(content="a", reasoning="b"), ""),
        (delta_chunk(content="a", tool_calls=[call(0, None, "")]), ""),
        (calls(call(0, "f", "a")), ""),
        (calls(call(0, None, "a"), call(1, None, "b")), ""),
        (chunk({"content": "a"}, "stop"), ""),
        (choices_chunk(choice(0, {"content": "a"}), choice(1, {"content": "a"})), ""),
    ],
)
def test_template_is_made_only_of_a_chunk_with_one_text(sent: Json, key: str) -> None:
    assert text_key_of(decode_chunk(json.dumps(sent).encode())) == key


def test_gap_is_verified_before_use() -> None:
    # The last of two equal keys counts, and the pattern finds the first.
    data = b'{"choices":[{"delta":{"content":"a","content":"b"}}]}'
    assert find_gap(data, decode_chunk(data), "content", lambda _: True) is None


def test_chunk_that_breaks_out_of_the_gap_is_read_in_full() -> None:
    like = ('{"choices":[{"index":0,"delta":{"content":"', '"},"logprobs":null}]}')
    sent = [
        text.join(like) for text in ("a", "b", 'c"},"finish_reason":"stop","usage":{"x":"', "d")
    ]
    events = events_of(*sent, done=None)
    assert isinstance(events[-1], Completed)
    assert events[-1].native_stop_reason == "stop"
    assert "".join(event.delta for event in events if hasattr(event, "delta")) == "abcd"


def reads(chunks: list[Json]) -> int:
    """How many of the chunks of a text are read in full, without a template."""
    seen: list[bytes] = []
    read = Machine.frame

    def counted(self: Machine, event: str | None, data: bytes) -> None:
        seen.append(data)
        read(self, event, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "frame", counted)
        assert accumulate(events_of(*chunks, STOP)).text == "word " * len(chunks)
    return len(seen)


@pytest.mark.parametrize("padding", ["", "obfuscation", "p"])
def test_long_text_is_read_by_templates(padding: str) -> None:
    plain = delta_chunk(content="word ")
    chunks = [plain] * 1000
    if padding:
        chunks = [{**plain, padding: "x7Q"[: n % 4] or "y"} for n in range(1000)]
    assert reads(chunks) == reads(chunks[:10]) < 5


@pytest.mark.parametrize("behind", [b'"x y"', b'""', b"1", b'"x","y":"z"', b'"x"'])
def test_only_padding_is_left_out(behind: bytes) -> None:
    padded = b'{"choices":[{"delta":{"content":%b}}],"p":"x9"}'
    texts: list[str] = []

    def append(text: str) -> bool:
        texts.append(text)
        return True

    data = padded % b'"a"'
    gap = find_gap(data, decode_chunk(data), "content", append)
    assert gap is not None
    template = gap.template(b"data: ", b"\n\n", 1000)
    event = b"data: %b\n\n" % padded.replace(b'"x9"', behind) % b'"b"'
    is_padding = behind == b'"x"'
    assert template.take(event) == is_padding * len(event)
    assert texts == ["b"] * is_padding
