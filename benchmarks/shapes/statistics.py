"""What the recorded streams of a wire are made of, as numbers: lengths, keys, padding, line ends.

    python -m benchmarks.shapes.statistics [DIR ...]

measures recordings and writes `statistics.json`, from which `bodies.py` makes the shapes. Numbers
about recordings may be kept here; the recordings may not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.testing.bench.corpus import Stream, by_wire
from streamlib_parsers import (
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    ResponseEvent,
    parser,
)

FILE: Final = Path(__file__).with_name("statistics.json")

DELTAS: Final = (
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    FunctionCallArgumentsDelta,
)

PERCENTILES: Final = (*range(0, 100, 10), 99)
"""Of each length the least, every tenth of a hundred, and what all but a hundredth are below: the
longest of all says nothing of the others."""

_SPACES: Final = re.compile(rb"( *)\}\s*$")
_OBFUSCATION: Final = re.compile(rb'"(?:obfuscation|p)": ?"([^"]*)"')
_KEY: Final = re.compile(rb'"[A-Za-z_]+" ?:')


class Statistics(Struct):
    """The deltas of a wire: a delta is an event of the wire that brings text, or arguments.

    Shares are between 0 and 1, lengths have the values at `PERCENTILES`.

    Attributes:
        deltas: share of the events that are deltas.
        reasoning: share of the deltas that bring reasoning.
        arguments: share of the deltas that bring arguments of a call.
        crlf: share of the events that end with CRLF.
        escaped: share of the other deltas with an escape in their JSON.
        obfuscated: share of the deltas with text of random length beside their own.
        characters: characters of a delta.
        around: bytes of a delta without its text, spaces and obfuscation.
        keys: keys of a delta's JSON.
        spaces: spaces before the last brace of a delta.
        obfuscation: characters of random text, where there is any.
    """

    deltas: float
    reasoning: float
    arguments: float
    crlf: float
    escaped: float
    obfuscated: float
    characters: list[int]
    around: list[int]
    keys: list[int]
    spaces: list[int]
    obfuscation: list[int]


SHARES: Final = ("deltas", "reasoning", "arguments", "crlf", "escaped", "obfuscated")
LENGTHS: Final = ("characters", "around", "keys", "spaces", "obfuscation")


class _Delta(Struct):
    chunk: bytes
    text: str
    kinds: set[type[ResponseEvent]]


def statistics(streams: Iterable[Stream]) -> Statistics:
    """The statistics of streams of one wire."""
    count = crlf = 0
    deltas: list[_Delta] = []
    for stream in streams:
        parse = parser(stream.wire_api)
        for chunk in stream.events:
            count += 1
            crlf += chunk.endswith(b"\r\n")
            found = [event for event in parse.feed(chunk) if isinstance(event, DELTAS)]
            if found:
                text = "".join(event.delta for event in found)
                deltas.append(_Delta(chunk, text, {type(event) for event in found}))
    spaces = [_length(_SPACES, delta.chunk) or 0 for delta in deltas]
    all_obfuscation = [_length(_OBFUSCATION, delta.chunk) for delta in deltas]
    around: list[int] = []
    for delta, padding, random_text in zip(deltas, spaces, all_obfuscation, strict=True):
        own = len(delta.text.encode()) + padding + (random_text or 0)
        around.append(len(delta.chunk) - own)
    obfuscation = [length for length in all_obfuscation if length is not None]

    texts = [delta for delta in deltas if FunctionCallArgumentsDelta not in delta.kinds]

    def share(holds: Callable[[_Delta], bool], among: Sequence[_Delta] = deltas) -> float:
        return round(sum(map(holds, among)) / max(1, len(among)), 3)

    return Statistics(
        deltas=round(len(deltas) / count, 3),
        reasoning=share(lambda delta: not delta.kinds.isdisjoint(DELTAS[1:3])),
        arguments=share(lambda delta: FunctionCallArgumentsDelta in delta.kinds),
        crlf=round(crlf / count, 3),
        escaped=share(lambda delta: b"\\" in delta.chunk, texts),
        obfuscated=round(len(obfuscation) / len(deltas), 3),
        characters=_percentiles([len(delta.text) for delta in deltas]),
        around=_percentiles(around),
        keys=_percentiles([len(_KEY.findall(delta.chunk)) for delta in deltas]),
        spaces=_percentiles(spaces),
        obfuscation=_percentiles(obfuscation),
    )


def _length(pattern: re.Pattern[bytes], chunk: bytes) -> int | None:
    match = pattern.search(chunk)
    return None if match is None else len(match[1])


def _percentiles(values: Sequence[int]) -> list[int]:
    if not values:
        return [0] * len(PERCENTILES)
    ordered = sorted(values)
    last = len(ordered) - 1
    return [ordered[round(last * percentile / 100)] for percentile in PERCENTILES]


def load() -> dict[str, Statistics]:
    """The published statistics, by wire."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Statistics])


def measured(streams: Iterable[Stream]) -> dict[str, Statistics]:
    """The statistics of recorded streams, by wire."""
    return {wire: statistics(own) for wire, own in by_wire(streams).items()}


def main(argv: Sequence[str]) -> None:
    """Measures the recordings of the folders, or those beside this checkout, and writes them."""
    from benchmarks.recordings import streams_in

    found = measured(streams_in(argv))
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
