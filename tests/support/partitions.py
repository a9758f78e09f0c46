"""Ways to cut a body into chunks. (The one fold under which event lists may be compared is `streamlib.testing.invariants.fold`.)

A parser must give the same events for every partition of its input, so the tests feed each body whole, cut once at every
place, one byte at a time, and cut at random. Empty chunks occur on purpose: sockets give none, but callers may.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hypothesis import strategies as st

Chunks = list[bytes]


def cut_at(body: bytes, places: Iterable[int]) -> Chunks:
    """The pieces of `body` between the given places (any order, repeats allowed: they give empty chunks)."""
    return [body[a:b] for a, b in pairwise([0, *sorted(places), len(body)])]


def every_single_cut(body: bytes, at_most: int | None = None) -> Iterator[Chunks]:
    """`body` in two pieces, cut at every place; with `at_most`, at that many places spread evenly over it."""
    step = 1 if at_most is None else max(1, -(-len(body) // at_most))
    return (cut_at(body, [place]) for place in range(0, len(body) + 1, step))


def byte_by_byte(body: bytes, size: int = 1) -> Chunks:
    """`body` in chunks of one byte, or of `size`."""
    return [body[at : at + size] for at in range(0, len(body), size)]


def random_partitions(
    body: bytes, count: int, seed: int = 0, most_cuts: int = 40
) -> Iterator[Chunks]:
    """`count` partitions with up to `most_cuts` cuts each, the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        yield cut_at(body, [rng.randint(0, len(body)) for _ in range(rng.randint(1, most_cuts))])


def cuts(body: bytes, most_cuts: int = 40) -> st.SearchStrategy[Chunks]:
    """Partitions of `body`; shrinks to few cuts near its start."""
    return st.lists(st.integers(0, len(body)), max_size=most_cuts).map(
        lambda places: cut_at(body, places)
    )
