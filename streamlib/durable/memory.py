"""The default engine: logs in the memory of one process."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable

import anyio

from streamlib.durable.records import LogCursor, Receive, Record, is_news
from streamlib.durable.rules import Append, LogState, Operation, Result, ask, expired


def milliseconds() -> int:
    """Milliseconds of a monotonic clock of this process."""
    return int(time.monotonic() * 1000)


class LocalPushes:
    """Base of the engines of one host: pushes to the listeners in this process."""

    def __init__(self) -> None:
        self._listeners: list[Receive] = []
        self._followed: set[str] = set()

    def follow(self, log_id: str) -> None:
        """See `Engine.follow`."""
        self._followed.add(log_id)

    def unfollow(self, log_id: str) -> None:
        """See `Engine.unfollow`."""
        self._followed.discard(log_id)

    def _push(
        self, log_id: str, operation: Operation, result: Result, record: Record | None
    ) -> None:
        """Tells what an operation changed, if somebody follows the log."""
        if log_id in self._followed and is_news(operation, result):
            for receive in self._listeners:
                receive(log_id, record)


class MemoryEngine(LocalPushes):
    """Stores logs until the process ends."""

    durability = "A log ends with its process."
    linger = 0.0

    def __init__(self, clock: Callable[[], int] = milliseconds) -> None:
        """Makes an engine without logs.

        Args:
            clock: returns monotonic milliseconds.
        """
        super().__init__()
        self._clock = clock
        self._states: dict[str, LogState] = {}
        self._records: dict[str, list[Record]] = {}
        self._next_sweep = 0
        """Time of the next sweep for expired logs, in milliseconds of the clock."""

    async def connect(self) -> None:
        """See `Engine.connect`."""

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        """See `Engine.ask`."""
        now = self._clock()
        self._sweep(now)
        result, state = ask(self._states.get(log_id), operation, now)
        self._store(log_id, state)
        record = record_of(operation, lines)
        if result.status == "ok" and record is not None:
            self._records.setdefault(log_id, []).append(record)
        self._push(log_id, operation, result, record)
        return result

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        """See `Engine.read`."""
        now = self._clock()
        state = expired(self._states.get(log_id), now)
        self._store(log_id, state)
        records = self._records.get(log_id, [])
        first = bisect.bisect_right(records, after, key=_end)
        return state, now, records[first : first + most]

    async def listen(self, receive: Receive) -> None:
        """See `Engine.listen`."""
        self._listeners.append(receive)
        try:
            await anyio.sleep_forever()
        finally:
            self._listeners.remove(receive)

    async def log_ids(self, most: int) -> list[str]:
        """See `Overview.log_ids`."""
        return sorted(self._states)[:most]

    async def followers(self, log_id: str) -> int | None:
        """See `Overview.followers`: there is one process."""
        return int(log_id in self._followed)

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        self._states.clear()
        self._records.clear()

    def _store(self, log_id: str, state: LogState | None) -> None:
        if state is None:
            self._states.pop(log_id, None)
            self._records.pop(log_id, None)
            return
        if state.gone:
            self._records.pop(log_id, None)
        self._states[log_id] = state

    def _sweep(self, now: int) -> None:
        """Deletes expired logs, at most once a second."""
        if now < self._next_sweep:
            return
        self._next_sweep = now + 1000
        for log_id, state in list(self._states.items()):
            self._store(log_id, expired(state, now))


def record_of(operation: Operation, lines: bytes) -> Record | None:
    """The record that an operation adds; None if it has no events."""
    if not isinstance(operation, Append) or not operation.size:
        return None
    return Record(operation.epoch, operation.first, operation.last, lines, closes=operation.closes)


def _end(record: Record) -> LogCursor:
    return LogCursor(record.epoch, record.last)
