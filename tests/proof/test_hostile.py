"""Promises 7, 11 and 12 in their long form: unusual text, unusual framing, hostile bytes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import pytest

from streamlib_parsers import Completed, Failed, OutputTextDelta, accumulate
from streamlib_parsers.framing.eventstream import EventStreamFraming
from tests.proof.streams import own, read, short
from tests.support.metrics import figure
from tests.support.partitions import split_at
from tests.support.response_bodies import DONE, LAST, OPENED, aws, part, stop
from tests.support.sse_oracle import BOM, oracle, run

pytestmark = [pytest.mark.slow]


# --- 7: text ---

ALPHABETS: Final = (
    'abc XYZ.,\n\t"\\/',
    "äéßøñ",
    "한국어 日本語",
    "😀👩‍👩‍👧‍👦👋🏽🇫🇷",
    "\u2028\u2029\x85\x00\x7f\ufeff\u200b",
    "𠮷𝄞\U0010ffff",
)


def random_text(rng: random.Random) -> str:
    """Some characters, of one script or of all."""
    letters = rng.choice((*ALPHABETS, "".join(ALPHABETS)))
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 12)))


def escaped(text: str, rng: random.Random) -> list[str]:
    """JSON strings of its fragments, split between code units, even within a surrogate pair."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    offsets = sorted(rng.randint(0, len(units) // 2) for _ in range(rng.randint(0, 3)))
    strings: list[str] = []
    for start, end in pairwise([0, *offsets, len(units) // 2]):
        escapes = [f"\\u{bytes(units[2 * n : 2 * n + 2]).hex()}" for n in range(start, end)]
        strings.append('"' + "".join(escapes) + '"')
    return strings


def in_messages(strings: list[str]) -> bytes:
    """A stream of Messages whose deltas are these JSON strings."""
    deltas = (
        'data: {"type":"content_block_delta","index":0,'
        f'"delta":{{"type":"text_delta","text":{string}}}}}\n\n'
        for string in strings
    )
    return OPENED + "".join(deltas).encode() + stop() + LAST


def in_chat(strings: list[str]) -> bytes:
    """The same on Chat."""
    return (
        "".join(
            f'data: {{"choices":[{{"index":0,"delta":{{"content":{string}}}}}]}}\n\n'
            for string in strings
        ).encode()
        + part(finish_reason="stop")
        + DONE
    )


def in_gemini(strings: list[str]) -> bytes:
    """The same on Gemini."""
    chunks = (
        f'data: {{"candidates":[{{"content":{{"parts":[{{"text":{string}}}]}}}}]}}\n\n'
        for string in strings
    )
    return "".join(chunks).encode() + b'data: {"candidates":[{"finishReason":"STOP"}]}\n\n'


def in_ollama(strings: list[str]) -> bytes:
    """The same on Ollama."""
    lines = (
        f'{{"message":{{"role":"assistant","content":{string}}},"done":false}}\n'
        for string in strings
    )
    return (
        "".join(lines).encode() + b'{"message":{"content":""},"done":true,"done_reason":"stop"}\n'
    )


BODIES: Final[tuple[tuple[str, Callable[[list[str]], bytes]], ...]] = (
    ("messages", in_messages),
    ("chat", in_chat),
    ("gemini", in_gemini),
    ("ollama", in_ollama),
)


def test_7_text_is_valid_and_complete_for_any_partition() -> None:
    rng, wrong = random.Random(7), 0
    for n in range(200_000):
        text, (wire, body_of) = random_text(rng), BODIES[n % len(BODIES)]
        body = body_of(escaped(text, rng) if n % 3 else [json.dumps(text, ensure_ascii=False)])
        offset = rng.randint(0, len(body))
        events = read(wire, body[:offset], body[offset:])
        deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
        valid = all(_encodes(delta) for delta in deltas)
        wrong += not valid or "".join(deltas) != text or accumulate(events).text != text
    figure("texts", 200_000)
    figure("invalid texts", wrong)
    assert wrong == 0


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- 11: framing ---

FRAGMENTS: Final = [
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b": ",
        b":",
        b" ",
        b"data: ",
        b"data:",
        b"data",
        b"event: ",
        b"event:x",
        b"id: ",
        b"id:",
        b"retry:",
    ),
    *(
        b"event: ping\ndata: {}\n\n",
        b"data: a\r\n\r\n",
        b"id: 7\ndata\n\n",
        b": ping\n\n",
        b"error: {}\n",
        b"[DONE]",
        b"5",
        b"+5",
        b"1_0",
    ),
    *(
        BOM,
        BOM[:1],
        b"\0",
        b"\xff",
        b"\xf0\x9f",
        "😀".encode(),
        "\u2028".encode(),
        b"\x0b\x0c\x1c\x85",
        "٣".encode(),
    ),
]


def test_11_any_body_in_any_partition_parses_by_the_standard() -> None:
    rng, different = random.Random(11), 0
    for _ in range(200_000):
        body = b"".join(rng.choice(FRAGMENTS) for _ in range(rng.randint(1, 14)))
        offsets = [rng.randint(0, len(body)) for _ in range(rng.randint(1, 5))]
        different += run(split_at(body, offsets)) != oracle(body)
    figure("random inputs", 200_000)
    figure("differences", different)
    assert different == 0


# --- 12: only documented errors ---

TOKENS: Final = [
    *(
        b"null",
        b"-1",
        b"1e999",
        b"9007199254740993",
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b'"\\ud83d"',
        b"true",
        b"[[[[[[",
        b'{"a":' * 40,
        b"\\u",
    ),
    *(
        b"\x00",
        b"\xff",
        b"\xed\xa0\x80",
        b"\r",
        b"\n\n",
        b"data: ",
        b"[DONE]",
        b"NaN",
        b"0.5",
        b'"0"',
        b"1" * 400,
        b'{"error":{}}',
        b"\xef\xbb\xbf",
    ),
]
VALUES: Final = re.compile(rb'-?\d+|"[^"\\]*"|null|true|false|\{\}|\[\]')


def damaged(payload: bytes, rng: random.Random) -> bytes:
    """The payload with one defect: a value replaced, or some bytes missing, doubled or changed."""
    start = rng.randint(0, len(payload))
    end = min(len(payload), start + rng.randint(1, 12))
    kind = rng.randrange(6)
    if kind <= 1 and (values := list(VALUES.finditer(payload))):
        match = rng.choice(values)
        replacement = rng.choice(TOKENS) if kind else rng.choice(values).group()
        return payload[: match.start()] + replacement + payload[match.end() :]
    if kind == 2:
        return payload[:start] + payload[end:]
    if kind == 3:
        return payload[:end] + payload[start:]
    if kind == 4:
        return payload[:start] + rng.choice(TOKENS) + payload[start:]
    return payload[:start] + rng.randbytes(end - start) + payload[end:]


def framed(wire: str, body: bytes) -> list[tuple[str, bytes]]:
    """The frames of a stream as (event type, payload), to be damaged inside.

    Only AWS frames have a type and need new checksums.
    """
    if wire in {"converse", "invoke"}:
        return [(frame.event or "", frame.data or b"") for frame in EventStreamFraming().feed(body)]
    separator = b"\n" if wire == "ollama" else b"\n\n"
    return [("", payload + separator) for payload in body.split(separator) if payload]


def encoded(wire: str, frames: list[tuple[str, bytes]]) -> bytes:
    """The stream of these frames."""
    if wire in {"converse", "invoke"}:
        return b"".join(_aws(event, payload) for event, payload in frames)
    return b"".join(payload for _, payload in frames)


def _aws(event: str, payload: bytes) -> bytes:
    return aws(payload, message_type="event", event_type=event, content_type="application/json")


def hostile(wire: str, frames: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    """A few successive frames, sometimes shuffled, one or two of them damaged.

    Sometimes the body is damaged again.
    """
    start = 0 if rng.random() < 0.6 else rng.randrange(len(frames))
    chosen = frames[start : start + rng.randint(1, 6)]
    if rng.random() < 0.2:
        rng.shuffle(chosen)
    for _ in range(rng.randint(1, 2)):
        n = rng.randrange(len(chosen))
        chosen[n] = (chosen[n][0], damaged(chosen[n][1], rng))
    body = encoded(wire, chosen)
    return damaged(body, rng) if rng.random() < 0.15 else body


def test_12_hostile_inputs_raise_nothing_and_end_once() -> None:
    rng, undocumented, wrong_ends = random.Random(12), list[str](), 0
    sources = [(stream.wire, framed(stream.wire, stream.body)) for stream in (*short(), *own())]
    for n in range(500_000):
        wire, frames = sources[n % len(sources)]
        body = hostile(wire, frames, rng)
        try:
            events: list[Any] = read(wire, body)
        except Exception as error:  # noqa: BLE001  # counted below
            undocumented.append(f"{wire}: {error!r} on {body!r}")
            continue
        wrong_ends += sum(isinstance(event, (Completed, Failed)) for event in events) != 1
    figure("hostile inputs", 500_000)
    figure("undocumented exceptions", len(undocumented))
    assert (undocumented[:5], wrong_ends) == ([], 0)
