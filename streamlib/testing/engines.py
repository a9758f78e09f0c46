"""`check_engine` tests an engine for logs against the rules of `streamlib.durable`.

    await check_engine(MyEngine(...))      # in a test; raises EngineMismatch

It uses logs of its own, whose ids begin with `check-`, and deletes them.
"""

from __future__ import annotations

import random
import secrets
from typing import Final

from streamlib.durable.records import START, Engine, LogCursor, Record
from streamlib.durable.rules import (
    Append,
    Delete,
    LogState,
    Open,
    Operation,
    Result,
    Stop,
    ask,
    expired,
)

HOUR_MS: Final = 3_600_000

OWNERS: Final = ("", "a", "b", "c")


class EngineMismatch(AssertionError):
    """The engine returned another result than the rules."""


async def check_engine(engine: Engine, *, operations: int = 300, seed: int = 0) -> None:
    """Runs random operations on a few logs and compares results, states and records with the rules.

    Args:
        engine: the engine to test; it stays open.
        operations: number of operations.
        seed: seed of the random choices.

    Raises:
        EngineMismatch: a result, a state or a record differs.
    """
    choose = random.Random(seed)
    prefix = f"check-{secrets.token_hex(4)}-"
    logs = [_Model(f"{prefix}{number}") for number in range(3)]
    for _ in range(operations):
        await _check_one(engine, choose.choice(logs), choose)
    for log in logs:
        await engine.ask(log.log_id, Delete())


class _Model:
    """The state and the records that a log should have."""

    def __init__(self, log_id: str) -> None:
        self.log_id = log_id
        self.state: LogState | None = None
        self.records: list[Record] = []

    def ask(self, operation: Operation, lines: bytes) -> Result:
        """Applies the rules at time 0, so that leases and lifetimes expire at once or never."""
        result, state = ask(self.state, operation, 0)
        if state is not None:
            state = expired(state, 0)
        self.state = state
        if state is None or state.gone:
            self.records = []
        if isinstance(operation, Append) and result.status == "ok" and operation.size:
            record = Record(operation.epoch, operation.first, operation.last, lines)
            self.records.append(record)
        return result


async def _check_one(engine: Engine, log: _Model, choose: random.Random) -> None:
    operation, lines = _operation(log, choose)
    expected = log.ask(operation, lines)
    result = await engine.ask(log.log_id, operation, lines)
    if result != expected:
        raise EngineMismatch(f"{operation}: {result}, not {expected}")
    after = START
    if log.records and choose.random() < 0.5:
        record = choose.choice(log.records)
        after = LogCursor(record.epoch, choose.randint(record.first - 1, record.last))
    await _compare(engine, log, after, choose.randint(1, 5))


async def _compare(engine: Engine, log: _Model, after: LogCursor, most: int) -> None:
    state, _, records = await engine.read(log.log_id, after, most)
    if _comparable(state) != _comparable(log.state):
        raise EngineMismatch(f"state {state}, not {log.state}")
    expected = [record for record in log.records if (record.epoch, record.last) > after]
    actual = [(each.epoch, each.first, each.last, each.lines) for each in records]
    wanted = [(each.epoch, each.first, each.last, each.lines) for each in expected[:most]]
    if actual != wanted:
        raise EngineMismatch(f"records after {after}: {actual}, not {wanted}")


def _comparable(state: LogState | None) -> object:
    """The fields of a state that do not depend on the clock."""
    if state is None or state.gone:
        return state and (state.epoch, "gone")
    return state.epoch, state.last, state.closed, state.owner, state.stop, state.meta, state.size


def _operation(log: _Model, choose: random.Random) -> tuple[Operation, bytes]:
    """An operation that mostly succeeds in the log's state, and sometimes any other."""
    state = log.state
    lease_ms = choose.choice((0, HOUR_MS))
    kind = choose.random()
    if state is None or state.gone or kind < 0.15:
        meta = choose.choice(("", '{"n": 1}'))
        epoch = choose.choice((0, 0, 0, 2))
        return Open(choose.choice(OWNERS), lease_ms, epoch, meta, HOUR_MS), b""
    if kind < 0.2:
        return Stop(choose.choice(("user", "other"))), b""
    if kind < 0.23:
        return Delete(), b""
    owner, epoch, last = state.owner, state.epoch, state.last
    if choose.random() < 0.2:
        owner = choose.choice(OWNERS)
        epoch += choose.choice((-1, 0, 1))
        last = max(0, last + choose.randint(-2, 2))
    count = choose.randint(0, 3)
    lines = b"".join(b'{"n":%d}\n' % choose.randint(0, 10**9) for _ in range(count))
    append = Append(
        owner,
        epoch,
        last + 1,
        last + count,
        len(lines),
        lease_ms,
        closes=choose.random() < 0.1,
        keep_ms=HOUR_MS,
        max_bytes=choose.choice((50, 10**6)),
    )
    return append, lines
