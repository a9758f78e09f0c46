"""What goes wrong with bytes on their way, and with what servers write: small changes to a body, drawn from a `random.Random`.

    Fault("flip", where=40, size=3)(body)           one fault, always the same
    mutated("converse", body, rng)                  some faults: to bytes, to whole messages, or to values inside them
    scribbled("chat", rng)                          a stream of moves in any order, dressed as that wire dresses them

The same functions serve seeded loops and hypothesis, whose `randoms()` is a `random.Random` that shrinks.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamlib.testing.frame_generators import LEGAL, MOVES, PLACES
from streamlib.testing.frames import encode_payloads, framed, unframed
from streamlib_parsers.items import WireApi

WORDS: Final = (
    "Hi",
    " ",
    "",
    "é",
    "\U0001f600",
    "世界",
    "\n\n",
    '"',
    "\\",
    "{",
    "}",
    "</think>",
    "data: ",
    "[DONE]",
    "\u2028",
    "\0",
    "…",
)
"""Texts that have broken somebody's parser."""

TOKENS: Final = (
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b":",
        b"data: ",
        b"data:",
        b"event: x\n",
        b"id: 7\n",
        b"retry: 5\n",
        b": ping\n\n",
        b"data: [DONE]\n\n",
    ),
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"null",
        b"-1",
        b"9007199254740993",
        b"1e999",
        b"NaN",
        b"true",
        b'""',
        b"{}",
        b"[]",
    ),
    *(
        b"\\ud83d",
        b"\\ude00",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xf0\x9f",
        b"\xe2\x80\xa8",
        b"\0",
        b"error: {}\n",
        b"<html>",
        b'{"error":{"code":500}}',
    ),
)
"""Bytes that mean something to one of the framings."""

HOSTILE: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2**31,
        2**53,
        2**64,
        -(2**70),
        0.5,
        1.0,
        1e300,
        float("nan"),
        float("inf"),
    ),
    *(
        "",
        "0",
        "\ud83d",
        "\ude00",
        "\0",
        "x" * 300,
        [],
        {},
        [[]],
        [None],
        {"": None},
        {"type": 5},
        [{"type": []}],
    ),
)
"""JSON values that stand where others are expected."""


def _cut(data: bytes, where: int, _: int) -> bytes:
    return data[:where]


def _flip(data: bytes, where: int, size: int) -> bytes:
    return (
        data[:where] + bytes([data[where] ^ (1 << size % 8)]) + data[where + 1 :]
        if where < len(data)
        else data
    )


def _drop(data: bytes, where: int, size: int) -> bytes:
    return data[:where] + data[where + size :]


def _duplicate(data: bytes, where: int, size: int) -> bytes:
    return data[: where + size] + data[where:]


def _reorder(data: bytes, where: int, size: int) -> bytes:
    middle = where + size
    return data[:where] + data[middle : middle + size] + data[where:middle] + data[middle + size :]


def _insert(data: bytes, where: int, size: int) -> bytes:
    return data[:where] + TOKENS[size % len(TOKENS)] + data[where:]


def _bomb(data: bytes, where: int, size: int) -> bytes:
    piece = data[where : where + 1 + size % 16] or b"["
    return data[:where] + piece * (size * 100) + data[where:]


FAULTS: Final[dict[str, Callable[[bytes, int, int], bytes]]] = {
    "cut": _cut,
    "flip": _flip,
    "drop": _drop,
    "duplicate": _duplicate,
    "reorder": _reorder,
    "insert": _insert,
    "bomb": _bomb,
}
"""What can happen to bytes, by name: `(data, where, size) -> data`."""


@dataclass(frozen=True)
class Fault:
    """One fault. where: a place, taken modulo the length of the body. size: how much of it."""

    name: str
    where: int = 0
    size: int = 1

    def __call__(self, data: bytes) -> bytes:
        """The body, with this fault."""
        return FAULTS[self.name](data, self.where % (len(data) + 1), self.size)


def fault(rng: random.Random) -> Fault:
    """Any fault; bombs are rare, because they are slow."""
    names = (*FAULTS, *("flip", "drop", "duplicate", "reorder", "insert") * 4)
    return Fault(rng.choice(names), rng.randrange(1 << 20), rng.randrange(1, 64))


def partition(body: bytes, rng: random.Random, most: int = 12) -> list[bytes]:
    """The body in pieces, cut at random; some of them may be empty."""
    places = sorted(rng.randint(0, len(body)) for _ in range(rng.randint(1, most)))
    return cut_at(body, places)


def cut_at(body: bytes, places: Sequence[int]) -> list[bytes]:
    """The pieces of `body` between the given places, which rise."""
    return [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]


# --- whole streams ---


def random_stream(wire_api: WireApi, rng: random.Random, most: int = 14) -> bytes:
    """A stream of moves in any order, mostly at places that are allowed."""
    moves = MOVES[wire_api]
    names = list(moves)
    payloads: list[Any] = [next(iter(moves.values()))(0, "")] if rng.random() < 0.7 else []
    for _ in range(rng.randrange(most)):
        places = LEGAL[:2] if rng.random() < 0.85 else PLACES
        payloads.append(moves[rng.choice(names)](rng.choice(places), rng.choice(WORDS)))
    return encode_payloads(wire_api, payloads)


def mutated(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """The body with one to three changes, of bytes, of messages or of values."""
    for _ in range(rng.randint(1, 3)):
        body = rng.choice(_CHANGES)(wire_api, body, rng)
    return body


def _bytes(_: WireApi, body: bytes, rng: random.Random) -> bytes:
    return fault(rng)(body)


def _messages(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """Messages dropped, repeated, moved, or one more that fits nowhere."""
    frames = unframed(wire_api, body)
    where, to = rng.randrange(len(frames) + 1), rng.randrange(len(frames) + 1)
    change = rng.randrange(5)
    if change == 0:
        del frames[where : where + 1]
    elif change == 1:
        frames[to:to] = frames[where : where + 2]
    elif change == 2:
        frames[where:], frames[:where] = frames[:where], frames[where:]
    elif change == 3:
        del frames[where:]
    else:
        name = rng.choice(list(MOVES[wire_api]))
        frames[where:where] = unframed(
            wire_api,
            encode_payloads(
                wire_api, [MOVES[wire_api][name](rng.choice(PLACES), rng.choice(WORDS))]
            ),
        )
    return b"".join(framed(wire_api, payload, name) for name, payload in frames)


def _values(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """One value inside one message: another kind of value, gone, or under another key."""
    frames = unframed(wire_api, body)
    if not frames:
        return _value(body, rng)
    where = rng.randrange(len(frames))
    name, payload = frames[where]
    frames[where] = (name, _value(payload, rng))
    return b"".join(framed(wire_api, payload, name) for name, payload in frames)


def _value(payload: bytes, rng: random.Random) -> bytes:
    """What is no JSON stays as it is."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return payload
    return json.dumps(_changed(value, rng)).encode()


def _changed(value: Any, rng: random.Random) -> Any:
    inside = isinstance(value, (dict, list)) and bool(value) and rng.random() < 0.9
    if not inside:
        return rng.choice(HOSTILE)
    if isinstance(value, list):
        where = rng.randrange(len(value))
        return [*value[:where], _changed(value[where], rng), *value[where + 1 :]]
    key = rng.choice(list(value))
    change = rng.random()
    if change < 0.1:
        return {name: inner for name, inner in value.items() if name != key}
    if change < 0.2:
        return {**value, rng.choice(("hologram", "type", "index", "id", "")): value[key]}
    return {**value, key: _changed(value[key], rng)}


_CHANGES: Final = (_bytes, _bytes, _messages, _values, _values)
