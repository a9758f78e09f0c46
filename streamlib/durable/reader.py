"""Reads a log from any position to its end, while it grows: always from the engine, even if the
writer runs in the same process.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

import anyio

from streamlib.durable.hub import Hub
from streamlib.durable.reaper import end_abandoned
from streamlib.durable.records import (
    START,
    Engine,
    Entry,
    LogCursor,
    LogError,
    Record,
    is_terminal,
    unreadable,
)
from streamlib.durable.rules import LogState
from streamlib.durable.settings import READ_RECORDS, Settings
from streamlib.pipeline.machine import PipeOptions
from streamlib.pipeline.opening import pipe
from streamlib.pipeline.reading import BatchSource, Reads
from streamlib_parsers.events import RunEvent

if TYPE_CHECKING:
    from streamlib.pipeline.stages import AnyStage, Narrow, Same
    from streamlib.pipeline.stream import Pipeline

E = TypeVar("E")

RETRY_SECONDS: Final = 0.2
"""Seconds before an engine that did not respond is asked again."""


class LogReader:
    """The entries of a log after a cursor: an async iterator that ends when the log is closed.

    It holds no connection, so it may be dropped at any time. If the writer of a log died, its
    readers end the log, within two leases.
    """

    def __init__(
        self, engine: Engine, hub: Hub, log_id: str, after: LogCursor, settings: Settings
    ) -> None:
        self._engine = engine
        self._log_id = log_id
        self._settings = settings
        self._cursor = after
        """The position after the last delivered entry."""
        # Followed before the first read, so that nothing is missed between the two.
        self._follower = hub.follow(log_id)
        self._ended = False
        """Whether everything was delivered, and the log is closed."""
        self._is_in_response: bool | None = None
        """Whether the last delivered event left a response open; None before the first event."""
        self._fault: LogError | None = None
        """Why nothing can be read after the entries that were just returned."""
        self._entries: list[Entry] = []
        """Entries for `__anext__`; the next one is last."""
        self._sign: tuple[int, int, int] | None = None
        """Epoch, last position and lease of the writer at the last look."""
        self._sign_at = 0.0
        """Time since which they are the same, on the loop's clock."""
        self._received_at = 0.0
        """Time of the last sign of the log, on the loop's clock."""
        # Without an engine that was away, a cursor of a missing log is that of no log.
        self._seen = after.position > 0 and hub.was_interrupted(settings.lease)
        """Whether a missing log may have existed just now, so that its writer may restore it."""
        self._missing_since: float | None = None
        """Time since which the engine lacks the log that it had; None if it has it."""
        self._silent_since: float | None = None
        """Time since which the engine does not respond; None if it responds."""
        self._state: LogState | None = None
        """The last state that the engine returned."""

    @property
    def cursor(self) -> LogCursor:
        """The position after the last delivered entry."""
        return self._cursor

    @property
    def is_ended(self) -> bool:
        """Whether nothing follows: the log is closed, and all its entries were delivered."""
        if self._ended or self._state is None or self._fault is not None:
            return self._ended
        return self._state.closed and self._is_at_end_of(self._state)

    def _is_at_end_of(self, state: LogState) -> bool:
        """Whether the engine has no events behind the cursor.

        The log of a run that had ended may be closed in a later epoch, without a further event.
        """
        return state.last == self._cursor.position and state.epoch >= self._cursor.epoch

    @property
    def is_caught_up(self) -> bool:
        """Whether everything that this process knows of was delivered."""
        return self.is_ended or not (self._follower.lost or self._follower.records)

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self

    async def __anext__(self) -> Entry:
        if not self._entries:
            self._entries = await self._next_entries()
            self._entries.reverse()
        return self._entries.pop()

    def batches(self) -> AsyncIterator[list[Entry]]:
        """The same entries as lists, one list for each record."""
        return Reads(self._next_batch)

    @overload
    def pipe(self, /, *stages: Same, **options: Unpack[PipeOptions]) -> Pipeline[RunEvent]: ...
    @overload
    def pipe(
        self, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
    ) -> Pipeline[E]: ...
    @overload
    def pipe(
        self, s1: AnyStage, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
    ) -> Pipeline[E]: ...
    def pipe(self, /, *stages: Any, **options: Unpack[PipeOptions]) -> Any:
        """The events of the entries through stages: see `streamlib.pipeline.pipe`."""
        return pipe(EntryEvents(self), *stages, **options)

    async def available(self) -> tuple[LogState, list[Entry]]:
        """The state of the log, and the entries available now: maybe none, and maybe not all.

        Waits only if the engine does not respond, or if it has just lost the log.

        Raises:
            LogError: errors of an iteration.
        """
        self._state = None
        while True:
            entries = await self._read()
            # Set by `_read`; None means that the log must be read again.
            state: LogState | None = self._state
            if state is not None:
                return state, entries
            await anyio.sleep(min(RETRY_SECONDS, self._seconds_to_wait()))

    async def next_batch(self, seconds: float = math.inf) -> list[Entry] | None:
        """The entries of the next record; None if none came in time, or none follow: `is_ended`.

        Raises:
            LogError: errors of an iteration.
        """
        with anyio.move_on_after(seconds):
            try:
                return await self._next_entries()
            except StopAsyncIteration:
                self._ended = True
        return None

    def close(self) -> None:
        """Stops following the log."""
        self._follower.close()

    async def _next_batch(self) -> list[Entry]:
        """What `__anext__` left of the last record, else the entries of the next one."""
        rest = self._entries[::-1]
        self._entries = []
        return rest or await self._next_entries()

    async def _next_entries(self) -> list[Entry]:
        """The entries of the next record.

        Raises:
            StopAsyncIteration: the log has ended.
            LogError: it cannot be read further: gone, rewound, unreadable, unavailable.
        """
        follower = self._follower
        while not self._ended:
            while follower.records:
                entries = self._take_pushed(follower.records.popleft())
                if entries is None:
                    follower.lost = True  # records in between are missing
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
        """Seconds until the engine is asked about a silent log."""
        if self._missing_since is not None:
            return self._settings.lease / 10
        # Counted from the last sign, not from now: the caller may give up each step earlier.
        since = self._received_at
        if self._sign is not None:
            since = self._sign_at
        return max(0.01, since + self._settings.lease - anyio.current_time())

    def _take_pushed(self, record: Record) -> list[Entry] | None:
        """As `_take`; a push is only a hint, so None too for one that cannot be read."""
        try:
            return self._take(record)
        except LogError:
            return None

    def _take(self, record: Record) -> list[Entry] | None:
        """The entries of a record; [] if they were delivered, None if earlier ones are missing."""
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
            cursor = LogCursor(record.epoch, record.first + offset)
            entries.append(Entry(str(cursor), events[offset]))
        self._cursor = LogCursor(record.epoch, record.last)
        self._received_at = anyio.current_time()
        self._sign = None
        self._is_in_response = not is_terminal(events[-1])
        if not self._is_in_response and record.closes:
            self._end()  # now, because many callers leave their loop at the terminal event
        elif not self._is_in_response:
            self._follower.lost = True  # only the engine knows whether another response follows
        return entries

    def _end(self) -> None:
        self._ended = True
        self._follower.close()

    async def _read(self) -> list[Entry]:
        """Reads from the engine; returns no entries if there are none yet, or none follow."""
        # Set where a further read found it.
        fault: LogError | None = self._fault
        if fault is not None:
            raise fault
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
            # Also if the caller gave up waiting: then the next step must read again.
            follower.lost = follower.lost or not is_read
        if state is None and self._may_come_back():
            return []
        if state is None or state.gone:
            raise gone(self._log_id, state)
        self._state = state
        self._seen = True
        self._missing_since = None
        entries = self._take_all(records)
        if not entries:
            await self._look_at_writer(state, now)
            return []
        self._silent_since = None
        if not self._is_at_end_of(state):
            follower.lost = True  # there is more
        elif state.closed:
            self._fault = self._end_of_closed_log()
        return entries

    def _take_all(self, records: list[Record]) -> list[Entry]:
        """The entries of records as the engine has them.

        Raises:
            LogError: the first one cannot follow the cursor, or be read. With a later one, those
                before it are delivered first.
        """
        entries: list[Entry] = []
        for record in records:
            try:
                taken = self._take(record)
                if taken is None:
                    raise self._hole_before(record)
            except LogError as error:
                if not entries:
                    raise
                self._fault = error
                self._follower.lost = True
                break
            entries += taken
        return entries

    def _end_of_closed_log(self) -> LogError | None:
        """Ends at the last position of a closed log; an error if no terminal event is there."""
        if self._is_in_response or self._cursor.position == 0:
            self._follower.lost = True
            return unreadable("it is closed without a terminal event")
        self._end()
        return None

    async def _wait_for_engine(self, error: LogError) -> None:
        """Waits before the next attempt, because the engine may be restarting, or have no memory.

        Raises:
            LogError: it has not responded for `outage` seconds.
        """
        now = anyio.current_time()
        if self._silent_since is None:
            self._silent_since = now
        is_outage = error.kind in {"unavailable", "full"}
        if not is_outage or now - self._silent_since > self._settings.outage:
            raise error
        self._follower.lost = True
        await anyio.sleep(RETRY_SECONDS)

    def _may_come_back(self) -> bool:
        """Whether the writer may restore a log that the engine lost; it has the time of a lease."""
        if not self._seen:
            return False
        now = anyio.current_time()
        if self._missing_since is None:
            self._missing_since = now
        return now - self._missing_since < self._settings.lease

    async def _look_at_writer(self, state: LogState, now: int) -> None:
        """Checks whether somebody still writes a log in which nothing follows the cursor.

        Raises:
            LogError: the engine lost events that were delivered.
        """
        if state.closed and self._is_at_end_of(state):
            fault = self._end_of_closed_log()
            if fault is not None:
                raise fault
            return
        if state.closed and self._cursor < (state.epoch, state.last):
            raise unreadable("its last events are lost")
        if state.closed or state.epoch < self._cursor.epoch:
            raise self._rewound()
        sign = (state.epoch, state.last, state.lease_until)
        if sign != self._sign:
            self._sign = sign
            self._sign_at = anyio.current_time()
        watched = anyio.current_time() - self._sign_at
        if now >= state.lease_until and watched >= self._settings.lease:
            # Watched for a complete lease, so that not only the engine's clock decides.
            try:
                await end_abandoned(self._engine, self._log_id, self._settings)
            except LogError as error:
                await self._wait_for_engine(error)
                return
            self._sign = None
            self._follower.lost = True
        self._silent_since = None

    def _hole_before(self, record: Record) -> LogError:
        """The error for a record that cannot follow the cursor."""
        if record.epoch == self._cursor.epoch or self._cursor == START:
            return unreadable(f"the events before {record.epoch}-{record.first} are lost")
        return self._rewound()  # the log was ended while it had fewer events

    def _rewound(self) -> LogError:
        message = f"the log {self._log_id!r} lost events after {self._cursor}: read from its start"
        return LogError("rewound", message)


class EntryEvents(BatchSource[RunEvent]):
    """The events of a reader's entries, without their cursors."""

    def __init__(self, reader: LogReader) -> None:
        super().__init__()
        self._reader = reader

    async def aclose(self) -> None:
        """Stops following the log."""
        self._reader.close()

    async def _next_batch(self) -> list[RunEvent]:
        entries = await anext(self._reader.batches())
        return [entry.event for entry in entries]


def gone(log_id: str, state: LogState | None) -> LogError:
    """The error for a log that does not exist, or no longer."""
    if state is None:
        return LogError("gone", f"there is no log {log_id!r}")
    return LogError("gone", f"the log {log_id!r} was deleted, or its time is over", known=True)
