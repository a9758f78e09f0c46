"""Partitions of a body into chunks.

Event lists may be compared only after `streamlib.testing.invariants.join_deltas`.

A parser must give the same events for every partition of its input, so the tests feed each body at
once, split in two at every offset, one byte at a time, and split at random. Empty chunks occur on
purpose: sockets give none, but callers may.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hypothesis import strategies as st

Chunks = list[bytes]


def split_at(body: bytes, offsets: Iterable[int]) -> Chunks:
    """The chunks of `body` between these offsets, in any order; repeated ones give empty chunks."""
    return [body[start:end] for start, end in pairwise([0, *sorted(offsets), len(body)])]


def every_single_split(body: bytes, at_most: int | None = None) -> Iterator[Chunks]:
    """`body` in two chunks, split at every offset, or at `at_most` offsets spread evenly."""
    step = 1
    if at_most is not None:
        step = max(1, -(-len(body) // at_most))
    return (split_at(body, [offset]) for offset in range(0, len(body) + 1, step))


def byte_by_byte(body: bytes, size: int = 1) -> Chunks:
    """`body` in chunks of one byte, or of `size`."""
    return [body[start : start + size] for start in range(0, len(body), size)]


def random_partitions(
    body: bytes, count: int, seed: int = 0, most_splits: int = 40
) -> Iterator[Chunks]:
    """`count` partitions, split at up to `most_splits` offsets; the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        offsets = [rng.randint(0, len(body)) for _ in range(rng.randint(1, most_splits))]
        yield split_at(body, offsets)


def partitions(body: bytes, most_splits: int = 40) -> st.SearchStrategy[Chunks]:
    """Partitions of `body`; shrinks to few splits near its start."""
    offsets = st.lists(st.integers(0, len(body)), max_size=most_splits)
    return offsets.map(lambda drawn: split_at(body, drawn))
