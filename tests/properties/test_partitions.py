"""The cuts and the fold that other tests lean on: a mistake here would make those tests say nothing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers.events import Created, FunctionCallArgumentsDelta, OutputTextDelta
from tests.support.partitions import byte_by_byte, cuts, every_single_cut, random_partitions


def text(delta: str, index: int = 0, content_index: int = 0, **more: object) -> OutputTextDelta:
    return OutputTextDelta(index=index, content_index=content_index, delta=delta, **more)  # type: ignore[arg-type]


@given(st.binary(max_size=60), st.data())
def test_every_cut_keeps_every_byte(body: bytes, data: st.DataObject) -> None:
    partitions = [
        byte_by_byte(body),
        byte_by_byte(body, 7),
        *every_single_cut(body),
        *every_single_cut(body, 4),
    ]
    partitions += [*random_partitions(body, 5, seed=3), data.draw(cuts(body))]
    assert {b"".join(chunks) for chunks in partitions} == {body}


@given(st.binary(max_size=60))
def test_single_cuts_come_at_every_place_once(body: bytes) -> None:
    assert [len(first) for first, _ in every_single_cut(body)] == list(range(len(body) + 1))


@given(st.binary(min_size=1, max_size=300), st.integers(1, 20))
def test_a_budget_of_single_cuts_is_kept_and_spread(body: bytes, at_most: int) -> None:
    places = [len(first) for first, _ in every_single_cut(body, at_most)]
    gaps = {b - a for a, b in pairwise(places)}
    assert len(places) <= at_most + 1
    assert len(gaps) <= 1


def test_random_partitions_are_the_same_for_the_same_seed() -> None:
    body = bytes(range(200))
    assert list(random_partitions(body, 10, seed=1)) == list(random_partitions(body, 10, seed=1))
    assert list(random_partitions(body, 10, seed=1)) != list(random_partitions(body, 10, seed=2))


def test_fold_joins_only_neighbours_that_go_to_the_same_place() -> None:
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


def test_fold_keeps_kinds_apart_and_joins_logprobs() -> None:
    one, two = {"token": "a"}, {"token": "b"}
    events = [
        text("a", logprobs=[one]),
        text("b", logprobs=[two]),
        FunctionCallArgumentsDelta(index=0, delta="{"),
    ]
    assert join_deltas(events) == [
        text("ab", logprobs=[one, two]),
        FunctionCallArgumentsDelta(index=0, delta="{"),
    ]


@given(st.lists(st.text(max_size=3), max_size=8))
def test_folding_twice_changes_nothing(deltas: list[str]) -> None:
    once = join_deltas([text(delta) for delta in deltas])
    assert join_deltas(once) == once
