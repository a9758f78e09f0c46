"""Partitions and joined deltas, which other tests rely on: a defect here would hide theirs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers.events import Created, FunctionCallArgumentsDelta, OutputTextDelta
from tests.support.partitions import byte_by_byte, every_single_split, partitions, random_partitions


def text(delta: str, index: int = 0, content_index: int = 0, **more: object) -> OutputTextDelta:
    values: Any = more
    return OutputTextDelta(index=index, content_index=content_index, delta=delta, **values)


@given(st.binary(max_size=60), st.data())
def test_every_partition_keeps_every_byte(body: bytes, data: st.DataObject) -> None:
    several = [
        byte_by_byte(body),
        byte_by_byte(body, 7),
        *every_single_split(body),
        *every_single_split(body, 4),
    ]
    several += [*random_partitions(body, 5, seed=3), data.draw(partitions(body))]
    assert {b"".join(chunks) for chunks in several} == {body}


@given(st.binary(max_size=60))
def test_single_splits_are_at_every_offset_once(body: bytes) -> None:
    assert [len(first) for first, _ in every_single_split(body)] == list(range(len(body) + 1))


@given(st.binary(min_size=1, max_size=300), st.integers(1, 20))
def test_a_limit_of_single_splits_is_met_and_spread(body: bytes, at_most: int) -> None:
    offsets = [len(first) for first, _ in every_single_split(body, at_most)]
    gaps = {b - a for a, b in pairwise(offsets)}
    assert len(offsets) <= at_most + 1
    assert len(gaps) <= 1


def test_random_partitions_are_the_same_for_the_same_seed() -> None:
    body = bytes(range(200))
    assert list(random_partitions(body, 10, seed=1)) == list(random_partitions(body, 10, seed=1))
    assert list(random_partitions(body, 10, seed=1)) != list(random_partitions(body, 10, seed=2))


def test_join_deltas_joins_only_adjacent_deltas_of_one_text() -> None:
    events = [
        text("a"),
        text("b"),
        text("c", content_index=1),
        text("d", index=1),
        Created(),
        Created(),
        text("e", index=1),
    ]
    assert join_deltas(events) == [
        text("ab"),
        text("c", content_index=1),
        text("d", index=1),
        Created(),
        Created(),
        text("e", index=1),
    ]


def test_join_deltas_keeps_kinds_apart_and_joins_logprobs() -> None:
    first, second = {"token": "a"}, {"token": "b"}
    events = [
        text("a", logprobs=[first]),
        text("b", logprobs=[second]),
        FunctionCallArgumentsDelta(index=0, delta="{"),
    ]
    assert join_deltas(events) == [
        text("ab", logprobs=[first, second]),
        FunctionCallArgumentsDelta(index=0, delta="{"),
    ]


@given(st.lists(st.text(max_size=3), max_size=8))
def test_joining_deltas_twice_changes_nothing(deltas: list[str]) -> None:
    once = join_deltas([text(delta) for delta in deltas])
    assert join_deltas(once) == once
