"""Reads a log from any position to its end, as it grows: from the engine only, also where the
writer runs in the same process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import anyio

from streamlib.durable.engine import Engine
from streamlib.durable.errors import LogError
from streamlib.durable.hub import Hub
from streamlib.durable.reaper import end_abandoned
from streamlib.durable.records import Cursor, Entry, Record, is_terminal
from streamlib.durable.rules import LogState
from streamlib.durable.settings import READ_RECORDS, Settings

RETRY_SECONDS: Final = 0.2
"""Delay before an engine that did not answer is asked again."""


class LogReader:
    """The entries of a log after a place: an async iterator that ends after the terminal event.

    It holds no connection, so it may be dropped anywhere. A log whose writer is gone is ended by
    its readers, within two leases.
    """

    def __init__(
        self, engine: Engine, hub: Hub, log_id: str, after: Cursor, settings: Settings
    ) -> None:
        self._engine = engine
        self._log_id = log_id
        self._settings = settings
        self._cursor = after
        """The position after the last entry that was delivered."""
        # Before the first read, so that nothing is missed between the two.
        self._follower = hub.follow(log_id)
        self._ended = False
        """The terminal event was given."""
        self._entries: list[Entry] = []
        """Entries for `__anext__`, the next one last."""
        self._sign: tuple[int, int, int] | None = None
        """Epoch, last position and lease of the writer when it was last looked at."""
        self._sign_at = 0.0
        """Since when they are the same, on the loop's clock."""
        self._received_at = 0.0
        """When something of the log was seen last, on the loop's clock."""
        self._seen = after.position > 0
        """The log existed: its cursor says so, or the engine did."""
        self._missing_since: float | None = None
        """Since when the engine does not know the log that it knew."""
        self._silent_since: float | None = None
        """Since when the engine does not answer."""
        self._state: LogState | None = None
        """What the engine said last of the log."""

    @property
    def cursor(self) -> Cursor:
        """The position after the last entry that was delivered."""
        return self._cursor

    @property
    def is_ended(self) -> bool:
        """Whether nothing follows what was given: the log is closed, and this was its end."""
        if self._ended or self._state is None:
            return self._ended
        return self._state.closed and self._cursor == (self._state.epoch, self._state.last)

    @property
    def is_caught_up(self) -> bool:
        """Whether everything was given that this process knows of."""
        return self.is_ended or not (self._follower.lost or self._follower.records)

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self

    async def __anext__(self) -> Entry:
        if not self._entries:
            self._entries = await self._next_entries()
            self._entries.reverse()
        return self._entries.pop()

    def batches(self) -> AsyncIterator[list[Entry]]:
        """The same entries in lists, one list a record."""
        return _Batches(self)

    async def available(self) -> tuple[LogState, list[Entry]]:
        """The state of the log, and the entries that follow now: maybe none, and maybe not all.

        It waits only for an engine that does not answer, or that has just lost a log.

        Raises:
            LogError: As of an iteration.
        """
        self._state = None
        while True:
            entries = await self._read()
            # As `_read` set it; without one, it is worth another look.
            state: LogState | None = self._state
            if state is not None:
                return state, entries
            await anyio.sleep(min(RETRY_SECONDS, self._seconds_to_wait()))

    async def next_batch(self, seconds: float) -> list[Entry] | None:
        """The entries of the next record; None if none came in time, or none follow: `is_ended`.

        Raises:
            LogError: As of an iteration.
        """
        with anyio.move_on_after(seconds):
            try:
                return await self._next_entries()
            except StopAsyncIteration:
                self._ended = True
        return None

    def close(self) -> None:
        """Follows the log no longer."""
        self._follower.close()

    def _rest_of_record(self) -> list[Entry]:
        """Entries of the last record that `__anext__` has not given yet."""
        entries = self._entries[::-1]
        self._entries = []
        return entries

    async def _next_entries(self) -> list[Entry]:
        """The entries of the next record.

        Raises:
            StopAsyncIteration: The log has ended.
            LogError: It cannot be read on: gone, rewound, unavailable.
        """
        follower = self._follower
        while not self._ended:
            while follower.records:
                entries = self._take(follower.records.popleft())
                if entries is None:
                    follower.lost = True  # something is missing in between
                    follower.records.clear()
                elif entries:
                    return entries
            if follower.lost:
                entries = await self._read()
                if entries:
                    return entries
            elif not await follower.wait(self._seconds_to_wait()):
                follower.lost = True
        follower.close()
        raise StopAsyncIteration

    def _seconds_to_wait(self) -> float:
        """Seconds until a silent log is checked again."""
        if self._missing_since is not None:
            return self._settings.lease / 10
        # Since a moment, and not from now: the caller may give up each step earlier than that.
        since = self._received_at
        if self._sign is not None:
            since = self._sign_at
        return max(0.01, since + self._settings.lease - anyio.current_time())

    def _take(self, record: Record) -> list[Entry] | None:
        """The entries of a record; none if they were given, None if others are missing before."""
        epoch, position = self._cursor
        if (record.epoch, record.last) <= self._cursor:
            return []
        if record.first > position + 1:
            return None
        if record.epoch > epoch and record.first != position + 1:
            return None
        entries: list[Entry] = []
        events = record.events()
        for offset in range(position + 1 - record.first, len(events)):
            cursor = Cursor(record.epoch, record.first + offset)
            entries.append(Entry(str(cursor), events[offset]))
        self._cursor = Cursor(record.epoch, record.last)
        self._received_at = anyio.current_time()
        self._sign = None
        self._ended = bool(events) and is_terminal(events[-1])
        if self._ended:  # now, since many leave their loop at the terminal event
            self._follower.close()
        return entries

    async def _read(self) -> list[Entry]:
        """Reads from the engine; without entries where there are none yet, or no more."""
        follower = self._follower
        follower.lost = False
        is_read = False
        try:
            state, now, records = await self._engine.read(self._log_id, self._cursor, READ_RECORDS)
            is_read = True
        except LogError as error:
            await self._wait_for_engine(error)
            return []
        finally:
            # Also where the caller gave up waiting: the next step has to read again.
            follower.lost = follower.lost or not is_read
        self._silent_since = None
        if state is None and self._may_come_back():
            return []
        if state is None or state.gone:
            raise gone(self._log_id, state)
        self._state = state
        self._seen = True
        self._missing_since = None
        if len(records) == READ_RECORDS:
            follower.lost = True  # there may be more
        entries: list[Entry] = []
        for record in records:
            taken = self._take(record)
            if taken is None:
                raise self._rewound()
            entries += taken
        if not entries:
            await self._look_at_writer(state, now)
        return entries

    async def _wait_for_engine(self, error: LogError) -> None:
        """The engine does not answer: it may be restarting.

        Raises:
            LogError: It has not answered for `outage` seconds.
        """
        now = anyio.current_time()
        if self._silent_since is None:
            self._silent_since = now
        if error.kind != "unavailable" or now - self._silent_since > self._settings.outage:
            raise error
        self._follower.lost = True
        await anyio.sleep(RETRY_SECONDS)

    def _may_come_back(self) -> bool:
        """Whether an engine that lost the log may get it again: its writer has a lease's time."""
        if not self._seen:
            return False
        now = anyio.current_time()
        if self._missing_since is None:
            self._missing_since = now
        return now - self._missing_since < self._settings.lease

    async def _look_at_writer(self, state: LogState, now: int) -> None:
        """Nothing follows the cursor: is anybody writing?

        Raises:
            LogError: The engine lost events that were given.
        """
        if state.closed and (state.epoch, state.last) == self._cursor:
            self._ended = True  # the cursor was the end of the log
            return
        if state.closed or state.epoch < self._cursor.epoch:
            raise self._rewound()
        sign = (state.epoch, state.last, state.lease_until)
        if sign != self._sign:
            self._sign = sign
            self._sign_at = anyio.current_time()
        watched = anyio.current_time() - self._sign_at
        if now >= state.lease_until and watched >= self._settings.lease:
            # Watched for a whole lease: not only the engine's clock says that nobody writes.
            self._sign = None
            await end_abandoned(self._engine, self._log_id, self._settings)
            self._follower.lost = True

    def _rewound(self) -> LogError:
        message = f"the log {self._log_id!r} lost events after {self._cursor}: read from its start"
        return LogError("rewound", message)


class _Batches:
    """Async iterator over the records of a reader."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> list[Entry]:
        rest = self._reader._rest_of_record()
        return rest or await self._reader._next_entries()


def gone(log_id: str, state: LogState | None) -> LogError:
    """The error about a log that does not exist, or no longer."""
    if state is None:
        return LogError("gone", f"there is no log {log_id!r}")
    return LogError("gone", f"the log {log_id!r} was deleted, or its time is over", known=True)
