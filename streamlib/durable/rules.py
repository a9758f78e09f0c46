"""The rules of a log: how each operation changes its state. Without I/O.

The memory engine and the SQLite engine call `ask` in a transaction; the script of the Redis engine
must give equal results. Times are milliseconds of the engine's clock, never of a host's.

A log is written by one owner at a time. The owner's lease is the time after which another may take
over if the owner is silent. That raises the epoch, and the former owner is refused from then on.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

TOMBSTONE_MS: Final = 24 * 3_600_000
"""Milliseconds for which the engine remembers that a deleted log existed."""

MAX_AGE_MS: Final = 24 * 3_600_000
"""Milliseconds for which a log may stay open."""


class LogState(Struct, frozen=True, omit_defaults=True):
    """The state of one log, apart from its records.

    Attributes:
        epoch: increases each time another owner takes the log over.
        last: position of the last event; positions count from 1.
        closed: whether the terminal event is in the log.
        gone: whether the log was deleted or expired; its records are then deleted.
        owner: the owner that may write; "" before the first one.
        lease_until: time from which others may take over.
        stop: the reason of a requested stop, or "".
        meta: JSON of the caller.
        size: bytes in all records.
        expires_at: time from which the engine may delete the records; for a log that is gone, the
            state itself.
    """

    epoch: int
    last: int = 0
    closed: bool = False
    gone: bool = False
    owner: str = ""
    lease_until: int = 0
    stop: str = ""
    meta: str = ""
    size: int = 0
    expires_at: int = 0

    def without_records(self) -> LogState:
        """The state of a log whose records alone are lost: its writer, if there is one, appends
        them again, else a reader ends it.
        """
        return replace(self, last=0, size=0, closed=False)


class Open(Struct, frozen=True):
    """Creates a log, or takes over one whose lease has expired.

    Attributes:
        owner: the new owner; "" creates a log without a writer.
        lease_ms: length of the lease in milliseconds.
        epoch: the owner's epoch if the engine may have lost the log; else 0.
        meta: JSON of the caller; an existing log keeps its own.
        max_age_ms: milliseconds for which the log may stay open.
    """

    owner: str
    lease_ms: int
    epoch: int = 0
    meta: str = ""
    max_age_ms: int = MAX_AGE_MS


class Append(Struct, frozen=True):
    """Adds a record; without events it only renews the lease.

    Attributes:
        owner: as in `Open`.
        epoch: the owner's epoch.
        first: position of the record's first event.
        last: position of its last event; `first - 1` if it has none.
        size: bytes of the record.
        lease_ms: length of the lease from now on, in milliseconds.
        closes: whether nothing follows the record, or the one before if this one is empty.
        keep_ms: milliseconds for which a closed log is kept.
        max_bytes: limit of bytes in all records. A record that closes the log is always added.
    """

    owner: str
    epoch: int
    first: int
    last: int
    size: int = 0
    lease_ms: int = 0
    closes: bool = False
    keep_ms: int = 0
    max_bytes: int = 0


class Stop(Struct, frozen=True):
    """Requests the writer to stop. Only the first reason is stored."""

    reason: str


class Delete(Struct, frozen=True):
    """Deletes the log; the engine remembers that it existed."""


Operation: TypeAlias = Open | Append | Stop | Delete

ResultStatus: TypeAlias = Literal[
    "ok", "held", "closed", "fenced", "behind", "full", "missing", "gone"
]


class Result(NamedTuple):
    """The result of an operation.

    `status`: `ok`; `missing`: the log is unknown; `gone`: deleted or expired; `held`: another
    owner's lease has not expired; `closed`; `fenced`: the owner lost the log; `behind`: the record
    does not follow `last`; `full`.
    """

    status: ResultStatus
    epoch: int = 0
    last: int = 0
    stop: str = ""


MISSING: Final = Result("missing")


def ask(state: LogState | None, operation: Operation, now: int) -> tuple[Result, LogState | None]:
    """The result of an operation, and the state after it.

    After an `Append` with the result `ok`, an engine adds its record if it has one. It deletes
    the records of a state that is `gone`.

    Args:
        state: the state before; None if the engine has no such log.
        operation: the operation.
        now: the engine's time in milliseconds.
    """
    state = expired(state, now)
    match operation:
        case Open():
            return _open(state, operation, now)
        case Append():
            return _append(state, operation, now)
        case Stop():
            return _stop(state, operation)
        case Delete():
            return _delete(state, now)


def expired(state: LogState | None, now: int) -> LogState | None:
    """The state at a time: an expired log is gone, and later forgotten."""
    if state is None or now < state.expires_at:
        return state
    forgotten_at = state.expires_at + TOMBSTONE_MS
    if state.gone or now >= forgotten_at:
        return None
    return _tombstone(state, forgotten_at)


def _tombstone(state: LogState, expires_at: int) -> LogState:
    return LogState(state.epoch, state.last, gone=True, expires_at=expires_at)


def _result(status: ResultStatus, state: LogState) -> Result:
    return Result(status, state.epoch, state.last, state.stop)


def _open(state: LogState | None, operation: Open, now: int) -> tuple[Result, LogState | None]:
    lease_until = now + operation.lease_ms
    if state is None or (state.gone and not operation.epoch):
        epoch = max(1, operation.epoch)
        if state is not None:
            # A new epoch, so that cursors of the former log are not valid for this one.
            epoch = state.epoch + 1
        state = LogState(
            epoch,
            owner=operation.owner,
            lease_until=lease_until,
            meta=operation.meta,
            expires_at=now + operation.max_age_ms,
        )
        return _result("ok", state), state
    if state.gone:
        return _result("gone", state), state
    if state.closed:
        return _result("closed", state), state
    is_first_writer = bool(operation.owner) and not state.owner
    if is_first_writer or (operation.owner and operation.owner == state.owner):
        state = replace(state, owner=operation.owner, lease_until=lease_until)
        return _result("ok", state), state
    is_creation = not operation.owner
    if now < state.lease_until or (is_creation and state.owner):
        # Only a writer or a reader may take over a log that has an owner.
        return _result("held", state), state
    if is_creation:
        state = replace(state, meta=operation.meta)
    state = replace(state, epoch=state.epoch + 1, owner=operation.owner, lease_until=lease_until)
    return _result("ok", state), state


def _append(state: LogState | None, operation: Append, now: int) -> tuple[Result, LogState | None]:
    if state is None:
        return MISSING, None
    if state.gone:
        return _result("gone", state), state
    if (state.epoch, state.owner) != (operation.epoch, operation.owner):
        return _result("fenced", state), state
    if state.closed:
        return _result("closed", state), state
    if operation.first != state.last + 1:
        return _result("behind", state), state
    size = state.size + operation.size
    if size > operation.max_bytes and operation.size and not operation.closes:
        return _result("full", state), state
    state = replace(state, last=operation.last, size=size, lease_until=now + operation.lease_ms)
    if operation.closes:
        state = replace(state, closed=True, expires_at=now + operation.keep_ms)
    return _result("ok", state), state


def _stop(state: LogState | None, operation: Stop) -> tuple[Result, LogState | None]:
    if state is None:
        return MISSING, None
    if state.gone:
        return _result("gone", state), state
    if state.closed:
        return _result("closed", state), state
    if not state.stop:
        state = replace(state, stop=operation.reason)
    return _result("ok", state), state


def _delete(state: LogState | None, now: int) -> tuple[Result, LogState | None]:
    if state is None:
        return MISSING, None
    if state.gone:
        return _result("gone", state), state
    state = _tombstone(state, now + TOMBSTONE_MS)
    return _result("ok", state), state
