"""Faults in bytes, and frames of servers: changes to a body, drawn from a `random.Random`.

    Fault("flip", offset=40, size=3)(body)    one fault, always the same
    mutated("converse", body, rng)            faults in bytes, in complete frames or in JSON values
    random_stream("chat", rng)                frames of a wire in any order

The functions serve both seeded loops and hypothesis, whose `randoms()` is a `random.Random` that
shrinks.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamlib.testing.frame_generators import INDEXES, LEGAL, frame_generators
from streamlib.testing.frames import encode_payloads, framed, unframed
from streamlib_parsers.items import WireApi

TEXTS: Final = (
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
"""Texts that have broken a parser."""

TOKENS: Final = (
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
)
"""Bytes with a meaning in one of the framings."""

HOSTILE: Final[tuple[Any, ...]] = (
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
    10**400,  # no float
    0.5,
    1.0,
    1e300,
    float("nan"),
    float("inf"),
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
)
"""JSON values to put into fields of another type."""


def _truncate(data: bytes, offset: int, _size: int) -> bytes:
    return data[:offset]


def _flip(data: bytes, offset: int, size: int) -> bytes:
    if offset >= len(data):
        return data
    flipped = data[offset] ^ (1 << size % 8)
    return data[:offset] + bytes([flipped]) + data[offset + 1 :]


def _drop(data: bytes, offset: int, size: int) -> bytes:
    return data[:offset] + data[offset + size :]


def _duplicate(data: bytes, offset: int, size: int) -> bytes:
    return data[: offset + size] + data[offset:]


def _reorder(data: bytes, offset: int, size: int) -> bytes:
    middle = offset + size
    end = middle + size
    return data[:offset] + data[middle:end] + data[offset:middle] + data[end:]


def _insert(data: bytes, offset: int, size: int) -> bytes:
    return data[:offset] + TOKENS[size % len(TOKENS)] + data[offset:]


def _bomb(data: bytes, offset: int, size: int) -> bytes:
    repeated = data[offset : offset + 1 + size % 16] or b"["
    return data[:offset] + repeated * (size * 100) + data[offset:]


FAULTS: Final[dict[str, Callable[[bytes, int, int], bytes]]] = {
    "truncate": _truncate,
    "flip": _flip,
    "drop": _drop,
    "duplicate": _duplicate,
    "reorder": _reorder,
    "insert": _insert,
    "bomb": _bomb,
}
"""Faults by name: `(data, offset, size) -> data`."""

_FREQUENT_FAULTS: Final = ("flip", "drop", "duplicate", "reorder", "insert")


@dataclass(frozen=True)
class Fault:
    """One change of a body, decided by its three fields: the change, where, and how large.

    Attributes:
        name: key of `FAULTS`.
        offset: offset in bytes, taken modulo the length of the body.
        size: size of the change; the unit depends on the fault.
    """

    name: str
    offset: int = 0
    size: int = 1

    def __call__(self, data: bytes) -> bytes:
        """The body with this fault."""
        return FAULTS[self.name](data, self.offset % (len(data) + 1), self.size)


def fault(rng: random.Random) -> Fault:
    """Any fault; truncations are rare, and so are bombs, because they are slow."""
    names = (*FAULTS, *_FREQUENT_FAULTS * 4)
    return Fault(rng.choice(names), rng.randrange(1 << 20), rng.randrange(1, 64))


def split_at(body: bytes, offsets: Sequence[int]) -> list[bytes]:
    """The chunks of `body` between these ascending offsets."""
    bounds = zip([0, *offsets], [*offsets, len(body)], strict=True)
    return [body[start:end] for start, end in bounds]


# --- streams ---


def random_stream(wire_api: WireApi, rng: random.Random, most: int = 14) -> bytes:
    """A stream of frames in any order, mostly with indexes that the wire allows."""
    generators = frame_generators(wire_api)
    names = list(generators)
    payloads: list[Any] = []
    # The first generator of a wire starts the response.
    if rng.random() < 0.7:
        first = generators[names[0]]
        payloads.append(first(0, ""))
    for _ in range(rng.randrange(most)):
        indexes: Sequence[Any] = INDEXES
        if rng.random() < 0.85:
            indexes = LEGAL[:2]
        generator = generators[rng.choice(names)]
        payloads.append(generator(rng.choice(indexes), rng.choice(TEXTS)))
    return encode_payloads(wire_api, payloads)


def mutated(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """The body with one to three changes: to bytes, to complete frames or to JSON values."""
    for _ in range(rng.randint(1, 3)):
        body = rng.choice(_CHANGES)(wire_api, body, rng)
    return body


def _change_bytes(_: WireApi, body: bytes, rng: random.Random) -> bytes:
    return fault(rng)(body)


def _change_frames(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """Drops, repeats or moves frames, or inserts one at a wrong position."""
    frames = unframed(wire_api, body)
    index = rng.randrange(len(frames) + 1)
    target = rng.randrange(len(frames) + 1)
    change = rng.randrange(5)
    if change == 0:
        del frames[index : index + 1]
    elif change == 1:
        frames[target:target] = frames[index : index + 2]
    elif change == 2:
        frames = frames[index:] + frames[:index]
    elif change == 3:
        del frames[index:]
    else:
        generators = frame_generators(wire_api)
        name = rng.choice(list(generators))
        payload = generators[name](rng.choice(INDEXES), rng.choice(TEXTS))
        frames[index:index] = unframed(wire_api, encode_payloads(wire_api, [payload]))
    return _joined(wire_api, frames)


def _change_value(wire_api: WireApi, body: bytes, rng: random.Random) -> bytes:
    """Changes one value in one frame: to another type, to nothing, or to another key."""
    frames = unframed(wire_api, body)
    if not frames:
        return _change_json(body, rng)
    index = rng.randrange(len(frames))
    name, payload = frames[index]
    frames[index] = (name, _change_json(payload, rng))
    return _joined(wire_api, frames)


def _joined(wire_api: WireApi, frames: list[tuple[str | None, bytes]]) -> bytes:
    return b"".join(framed(wire_api, payload, name) for name, payload in frames)


def _change_json(payload: bytes, rng: random.Random) -> bytes:
    """The payload with one value changed; unchanged if it is not JSON."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return payload
    return json.dumps(_changed(value, rng)).encode()


def _changed(value: Any, rng: random.Random) -> Any:
    # Mostly a deeper value: changing one near the root replaces everything below it.
    if not isinstance(value, (dict, list)) or not value or rng.random() >= 0.9:
        return rng.choice(HOSTILE)
    if isinstance(value, list):
        index = rng.randrange(len(value))
        return [*value[:index], _changed(value[index], rng), *value[index + 1 :]]
    key = rng.choice(list(value))
    change = rng.random()
    if change < 0.1:
        return {name: inner for name, inner in value.items() if name != key}
    if change < 0.2:
        return {**value, rng.choice(("hologram", "type", "index", "id", "")): value[key]}
    return {**value, key: _changed(value[key], rng)}


_CHANGES: Final = (_change_bytes, _change_bytes, _change_frames, _change_value, _change_value)
