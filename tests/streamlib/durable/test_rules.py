"""What each operation does to the state of a log."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from streamlib.durable.rules import (
    TOMBSTONE_MS,
    Append,
    Delete,
    LogState,
    Open,
    Operation,
    Result,
    Stop,
    ask,
)
from tests.support.cases import each_case

OPENED = LogState(1, owner="a", lease_until=100, expires_at=1_000)
CREATED = LogState(1, lease_until=100, expires_at=1_000)
WRITTEN = LogState(1, 5, owner="a", lease_until=100, size=50, expires_at=1_000)
CLOSED = LogState(1, 5, closed=True, owner="a", size=50, expires_at=1_000)
GONE = LogState(3, 5, gone=True, expires_at=1_000)


def append(first: int, last: int, owner: str = "a", epoch: int = 1, **options: Any) -> Append:
    size = 10 * (last + 1 - first)
    return Append(owner, epoch, first, last, size, 100, keep_ms=500, max_bytes=100, **options)


@each_case(
    "state, operation, now, status, epoch, last",
    [
        (None, Open("a", 100), 0, "ok", 1, 0),
        (None, Open("a", 100, epoch=4), 0, "ok", 4, 0),  # the engine lost the log
        (OPENED, Open("a", 100), 0, "ok", 1, 0),  # its result was lost
        (OPENED, Open("b", 100), 99, "held", 1, 0),
        (OPENED, Open("b", 100), 100, "ok", 2, 0),
        (CREATED, Open("b", 100), 0, "ok", 1, 0),
        (CREATED, Open("b", 100), 200, "ok", 1, 0),
        (CREATED, Open("", 100), 0, "held", 1, 0),
        (CREATED, Open("", 100), 100, "ok", 2, 0),
        (OPENED, Open("", 100), 100, "held", 1, 0),  # a slow writer is not fenced by a newcomer
        (CLOSED, Open("b", 100), 0, "closed", 1, 5),
        (GONE, Open("b", 100), 0, "ok", 4, 0),
        (GONE, Open("b", 100, epoch=3), 0, "gone", 3, 5),  # deleted, not lost
        (None, append(1, 2), 0, "missing", 0, 0),
        (WRITTEN, append(6, 7), 0, "ok", 1, 7),
        (WRITTEN, append(6, 7), 500, "ok", 1, 7),  # late, but nobody took over
        (WRITTEN, append(6, 5), 0, "ok", 1, 5),
        (WRITTEN, append(4, 7), 0, "behind", 1, 5),
        (WRITTEN, append(8, 9), 0, "behind", 1, 5),
        (WRITTEN, append(6, 7, owner="b"), 0, "fenced", 1, 5),
        (WRITTEN, append(6, 7, epoch=2), 0, "fenced", 1, 5),
        (WRITTEN, append(6, 11), 0, "full", 1, 5),
        (WRITTEN, append(6, 11, closes=True), 0, "ok", 1, 11),
        (CLOSED, append(6, 7), 0, "closed", 1, 5),
        (GONE, append(6, 7), 0, "gone", 3, 5),
        (WRITTEN, append(6, 7), 1_000, "gone", 1, 5),  # open for too long
        (None, Stop("user"), 0, "missing", 0, 0),
        (CLOSED, Stop("user"), 0, "closed", 1, 5),
        (GONE, Stop("user"), 0, "gone", 3, 5),
        (WRITTEN, Delete(), 0, "ok", 1, 5),
        (None, Delete(), 0, "missing", 0, 0),
    ],
)
def test_operation_answers(
    state: LogState | None, operation: Operation, now: int, status: str, epoch: int, last: int
) -> None:
    result, _ = ask(state, operation, now)
    assert (result.status, result.epoch, result.last) == (status, epoch, last)


def test_unknown_log_has_no_position() -> None:
    assert ask(None, Stop("user"), 0) == (Result("missing", epoch=0, last=0, stop=""), None)


def test_append_without_events_only_renews_the_lease() -> None:
    result, state = ask(WRITTEN, Append("a", 1, 6, 5, lease_ms=200), 50)
    assert result.status == "ok"
    assert state == replace(WRITTEN, lease_until=250)


def test_first_reason_to_stop_counts() -> None:
    _, state = ask(WRITTEN, Stop("user"), 0)
    _, state = ask(state, Stop("other"), 0)
    result, state = ask(state, append(6, 7), 0)
    assert (result.stop, state and state.stop) == ("user", "user")


def test_log_created_anew_has_the_new_meta() -> None:
    _, state = ask(CREATED, Open("", 100, meta='{"n":2}'), 100)
    assert state is not None
    assert (state.epoch, state.meta) == (2, '{"n":2}')


def test_closed_log_is_kept_then_gone_then_forgotten() -> None:
    _, state = ask(WRITTEN, append(6, 7, closes=True), 100)
    assert state is not None
    assert (state.closed, state.expires_at) == (True, 600)
    words = [ask(state, Stop("x"), now)[0].status for now in (599, 600, 600 + TOMBSTONE_MS)]
    assert words == ["closed", "gone", "missing"]


OWNERS = st.sampled_from(["", "a", "b"])
NUMBERS = st.integers(0, 6)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Open, OWNERS, st.just(50), st.integers(0, 2)),
    st.builds(
        Append, OWNERS, st.integers(0, 3), NUMBERS, NUMBERS, st.just(10), st.just(50), st.booleans()
    ),
    st.builds(Stop, st.just("user")),
    st.builds(Delete),
)


@given(st.lists(st.tuples(OPERATIONS, st.integers(0, 60)), max_size=40))
def test_no_operation_lowers_an_epoch_or_reopens_a_log(
    steps: list[tuple[Operation, int]],
) -> None:
    state = None
    now = 0
    for operation, passed in steps:
        now += passed
        before = state
        result, state = ask(state, operation, now)
        if before is None or state is None:
            continue
        assert state.epoch >= before.epoch
        if state.epoch == before.epoch:
            assert state.last >= before.last
            assert state.closed >= before.closed or state.gone
            assert state.gone >= before.gone
        if result.status not in {"ok", "gone"}:
            assert state == before or state.gone
