"""Promises 7, 11 and 12 in their long form: odd text, odd framing, hostile bytes."""

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
from tests.support.partitions import cut_at
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


def odd_text(rng: random.Random) -> str:
    """Some characters, of one script or of all."""
    letters = rng.choice((*ALPHABETS, "".join(ALPHABETS)))
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 12)))


def escaped(text: str, rng: random.Random) -> list[str]:
    """JSON strings of its pieces, cut between any two code units: half an emoji may end one and begin the next."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    places = sorted(rng.randint(0, len(units) // 2) for _ in range(rng.randint(0, 3)))
    bounds = [0, *places, len(units) // 2]
    return [
        '"' + "".join(f"\\u{bytes(units[2 * n : 2 * n + 2]).hex()}" for n in range(a, b)) + '"'
        for a, b in pairwise(bounds)
    ]


def in_messages(pieces: list[str]) -> bytes:
    """A text in these JSON strings."""
    deltas = (
        f'data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{piece}}}}}\n\n'
        for piece in pieces
    )
    return OPENED + "".join(deltas).encode() + stop() + LAST


def in_chat(pieces: list[str]) -> bytes:
    """The same on Chat."""
    return (
        "".join(
            f'data: {{"choices":[{{"index":0,"delta":{{"content":{piece}}}}}]}}\n\n'
            for piece in pieces
        ).encode()
        + part(finish_reason="stop")
        + DONE
    )


def in_gemini(pieces: list[str]) -> bytes:
    """The same on Gemini."""
    chunks = (
        f'data: {{"candidates":[{{"content":{{"parts":[{{"text":{piece}}}]}}}}]}}\n\n'
        for piece in pieces
    )
    return "".join(chunks).encode() + b'data: {"candidates":[{"finishReason":"STOP"}]}\n\n'


def in_ollama(pieces: list[str]) -> bytes:
    """The same on Ollama."""
    lines = (
        f'{{"message":{{"role":"assistant","content":{piece}}},"done":false}}\n' for piece in pieces
    )
    return (
        "".join(lines).encode() + b'{"message":{"content":""},"done":true,"done_reason":"stop"}\n'
    )


SPEAKERS: Final[tuple[tuple[str, Callable[[list[str]], bytes]], ...]] = (
    ("messages", in_messages),
    ("chat", in_chat),
    ("gemini", in_gemini),
    ("ollama", in_ollama),
)


def test_7_text_is_valid_and_complete_for_any_partition() -> None:
    rng, wrong = random.Random(7), 0
    for n in range(200_000):
        text, (wire, body_of) = odd_text(rng), SPEAKERS[n % len(SPEAKERS)]
        body = body_of(escaped(text, rng) if n % 3 else [json.dumps(text, ensure_ascii=False)])
        place = rng.randint(0, len(body))
        events = read(wire, body[:place], body[place:])
        deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
        valid = all(_encodes(delta) for delta in deltas)
        wrong += not valid or "".join(deltas) != text or accumulate(events).text != text
    figure("texts", 200_000)
    figure("broken texts", wrong)
    assert wrong == 0


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- 11: framing ---

PIECES: Final = [
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
        body = b"".join(rng.choice(PIECES) for _ in range(rng.randint(1, 14)))
        places = [rng.randint(0, len(body)) for _ in range(rng.randint(1, 5))]
        different += run(cut_at(body, places)) != oracle(body)
    figure("random inputs", 200_000)
    figure("differences", different)
    assert different == 0


# --- 12: only our errors ---

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
    """One thing about it is wrong: a value is another, some bytes are gone, doubled, changed or strange."""
    at = rng.randint(0, len(payload))
    until = min(len(payload), at + rng.randint(1, 12))
    kind = rng.randrange(6)
    if kind <= 1 and (values := list(VALUES.finditer(payload))):
        found = rng.choice(values)
        return (
            payload[: found.start()]
            + (rng.choice(TOKENS) if kind else rng.choice(values).group())
            + payload[found.end() :]
        )
    if kind == 2:
        return payload[:at] + payload[until:]
    if kind == 3:
        return payload[:until] + payload[at:]
    if kind == 4:
        return payload[:at] + rng.choice(TOKENS) + payload[at:]
    return payload[:at] + rng.randbytes(until - at) + payload[until:]


def framed(wire: str, body: bytes) -> list[tuple[str, bytes]]:
    """The frames of a stream, for damage inside them: (event type, payload). Only AWS frames have a type and need new checksums."""
    if wire in {"converse", "invoke"}:
        return [(frame.event or "", frame.data or b"") for frame in EventStreamFraming().feed(body)]
    end = b"\n" if wire == "ollama" else b"\n\n"
    return [("", piece + end) for piece in body.split(end) if piece]


def sealed(wire: str, frames: list[tuple[str, bytes]]) -> bytes:
    """The stream of these frames."""
    if wire in {"converse", "invoke"}:
        return b"".join(_aws(event, payload) for event, payload in frames)
    return b"".join(payload for _, payload in frames)


def _aws(event: str, payload: bytes) -> bytes:
    return aws(payload, message_type="event", event_type=event, content_type="application/json")


def hostile(wire: str, frames: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    """A few frames in a row, at times out of order, one or two of them damaged; at times damaged again as a whole."""
    at = 0 if rng.random() < 0.6 else rng.randrange(len(frames))
    chosen = frames[at : at + rng.randint(1, 6)]
    if rng.random() < 0.2:
        rng.shuffle(chosen)
    for _ in range(rng.randint(1, 2)):
        n = rng.randrange(len(chosen))
        chosen[n] = (chosen[n][0], damaged(chosen[n][1], rng))
    body = sealed(wire, chosen)
    return damaged(body, rng) if rng.random() < 0.15 else body


def test_12_hostile_inputs_raise_nothing_and_end_once() -> None:
    rng, foreign, endings = random.Random(12), list[str](), 0
    sources = [(one.wire, framed(one.wire, one.body)) for one in (*short(), *own())]
    for n in range(500_000):
        wire, frames = sources[n % len(sources)]
        body = hostile(wire, frames, rng)
        try:
            events: list[Any] = read(wire, body)
        except Exception as error:  # noqa: BLE001  # what is counted
            foreign.append(f"{wire}: {error!r} on {body!r}")
            continue
        endings += sum(isinstance(event, (Completed, Failed)) for event in events) != 1
    figure("hostile inputs", 500_000)
    figure("foreign exceptions", len(foreign))
    assert (foreign[:5], endings) == ([], 0)
