"""Shapes: bodies of 20, 200 and 2,000 events for each wire, with the statistics of recordings.

Deltas of a workload that are all alike flatter a reader that learns; recordings may not be kept in
this repository. So `statistics.py` measures recordings, `bodies.py` makes bodies with the same
lengths, keys, padding, random text and mix of events, and `sha256.json` pins their bytes, so that
no change of a parser comes with easier bodies. `python -m benchmarks.shapes` prints the digests,
and writes the bodies into a folder.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.shapes.bodies import WRITERS, body
from benchmarks.shapes.statistics import load
from streamlib.testing.bench.corpus import Stream
from streamlib_parsers import WIRE_APIS

SIZES: Final = (20, 200, 2000)
"""Events of the bodies: one in each stratum of lengths, and one that shows growth."""

DIGESTS: Final = Path(__file__).with_name("sha256.json")


@cache
def shapes() -> list[Stream]:
    """The bodies of all wires, each named by its wire and its events."""
    found = load()
    made: list[Stream] = []
    for wire in WIRE_APIS:
        for size in SIZES:
            if wire in WRITERS:
                made.append(Stream(f"{wire} {size}", wire, body(wire, found[wire], size)))
    return made


def digests() -> dict[str, str]:
    """Name of a shape -> SHA-256 of its bytes, and of where its events end."""
    digest_of: dict[str, str] = {}
    for shape in shapes():
        ends = msgspec.json.encode([len(event) for event in shape.events])
        digest_of[shape.name] = sha256(b"".join(shape.events) + ends).hexdigest()
    return digest_of


def pinned() -> dict[str, str]:
    """The digests that the bodies must have."""
    return msgspec.json.decode(DIGESTS.read_bytes(), type=dict[str, str])
