"""Logs in an SQLite file, shared by the processes of one host."""

from __future__ import annotations

import functools
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import msgspec

from streamlib.durable.memory import LocalPushes, record_of
from streamlib.durable.records import (
    LogCursor,
    LogError,
    Receive,
    Record,
    readable_records,
    unreadable,
)
from streamlib.durable.rules import LogState, Operation, Result, ask, expired
from streamlib_parsers.json_text import DECODE_ERRORS

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS streamlib_logs (
  id TEXT PRIMARY KEY, state BLOB NOT NULL, expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS streamlib_logs_expire ON streamlib_logs (expires_at);
CREATE TABLE IF NOT EXISTS streamlib_meta (
  id TEXT PRIMARY KEY, meta TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streamlib_records (
  id TEXT NOT NULL, epoch INTEGER NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL,
  lines BLOB NOT NULL, PRIMARY KEY (id, epoch, last)
) WITHOUT ROWID;
"""

BUSY_SECONDS: Final = 5.0
"""Seconds for which another process may lock the file before an operation fails."""

POLL_SECONDS: Final = 0.02
"""Seconds between two looks at whether another process changed the file."""

SWEEP_MS: Final = 60_000
"""Milliseconds between two deletions of expired logs."""

_STATE: Final = msgspec.json.Decoder(LogState)
_T = TypeVar("_T")


def milliseconds() -> int:
    """Milliseconds of the host's clock, which all processes that use the file share."""
    return int(time.time() * 1000)


class SqliteEngine(LocalPushes):
    """Stores logs in a file, with the standard library, in a thread."""

    durability = "An appended event survives a crash of the process and of the host."
    linger = 0.0

    def __init__(self, path: str, clock: Callable[[], int] = milliseconds) -> None:
        """Makes an engine without opening the file.

        Args:
            path: path of the file, which is created if it is missing.
            clock: returns milliseconds, the same in all processes.
        """
        super().__init__()
        self._path = path
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        """The connection; opened by the first operation."""
        self._thread = anyio.CapacityLimiter(1)
        """Permits one operation at a time, because one thread at a time may use a connection."""
        self._lock = threading.Lock()
        """Held by the thread that uses it: asyncio's own cancellation ends the wait for a thread,
        and not the thread. SQLite crashes where another one closes the connection meanwhile."""
        self._is_closed = False
        """Whoever holds the lock closes the connection afterwards."""
        self._next_sweep = 0

    async def connect(self) -> None:
        """See `Engine.connect`. A file that cannot be opened fails here."""
        self._is_closed = False
        try:
            await self._run(self._open)
        except BaseException:
            self._end()
            raise

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        """See `Engine.ask`."""
        result = await self._run(functools.partial(self._ask, log_id, operation, lines))
        self._push(log_id, operation, result, record_of(operation, lines))
        return result

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        """See `Engine.read`."""
        return await self._run(functools.partial(self._read, log_id, after, most))

    async def listen(self, receive: Receive) -> None:
        """See `Engine.listen`. If a log is followed, changes of other processes are polled for."""
        self._listeners.append(receive)
        version = None
        try:
            while True:
                await anyio.sleep(POLL_SECONDS)
                if not self._followed:
                    continue
                try:
                    now = await self._run(self._version)
                except LogError:
                    continue  # its next reader or writer raises the error
                if now != version:
                    version = now
                    receive(None, None)
        finally:
            self._listeners.remove(receive)

    async def log_ids(self, most: int) -> list[str]:
        """See `Overview.log_ids`."""
        return await self._run(functools.partial(self._log_ids, most))

    async def followers(self, log_id: str) -> int | None:
        """See `Overview.followers`: unknown for a file."""
        return None

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        try:
            with anyio.CancelScope(shield=True):
                await self._run(self._close)
        finally:
            # asyncio's own cancellation ignores the shield, and may come before the thread begins.
            self._end()

    # --- in the thread ---

    async def _run(self, work: Callable[[], _T]) -> _T:
        try:
            return await anyio.to_thread.run_sync(self._work, work, limiter=self._thread)
        except sqlite3.Error as error:
            raise LogError("unavailable", f"SQLite: {error}") from error

    def _work(self, work: Callable[[], _T]) -> _T:
        try:
            with self._lock:
                return work()
        finally:
            if self._is_closed:
                self._end()

    def _end(self) -> None:
        """Closes the connection: now, or when the thread that uses it is done."""
        self._is_closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            # Threads of the pool may use it in turn, because the limiter admits one at a time.
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(SCHEMA)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _version(self) -> int:
        """A number that changes when another connection has written."""
        (version,) = self._open().execute("PRAGMA data_version").fetchone()
        return int(version)

    def _ask(self, log_id: str, operation: Operation, lines: bytes) -> Result:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            now = self._clock()
            self._sweep(connection, now)
            before = _state(connection, log_id)
            result, state = ask(before, operation, now)
            if state != before:
                _store(connection, log_id, before, state)
            record = record_of(operation, lines)
            if result.status == "ok" and record is not None:
                connection.execute(
                    "INSERT INTO streamlib_records VALUES (?, ?, ?, ?, ?)",
                    (log_id, record.epoch, record.last, record.first, record.lines),
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return result

    def _read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        connection = self._open()
        now = self._clock()
        # One transaction, so that state and records are from the same moment.
        connection.execute("BEGIN")
        try:
            state = expired(_state(connection, log_id), now)
            rows: list[tuple[int, int, int, bytes]] = []
            if state is not None and not state.gone:
                rows = connection.execute(
                    "SELECT epoch, first, last, lines FROM streamlib_records "
                    "WHERE id = ? AND (epoch, last) > (?, ?) ORDER BY epoch, last LIMIT ?",
                    (log_id, after.epoch, after.position, most),
                ).fetchall()
        finally:
            connection.execute("ROLLBACK")
        return state, now, readable_records(rows, _stored_record)

    def _log_ids(self, most: int) -> list[str]:
        rows = self._open().execute("SELECT id FROM streamlib_logs ORDER BY id LIMIT ?", (most,))
        return [log_id for (log_id,) in rows]

    def _sweep(self, connection: sqlite3.Connection, now: int) -> None:
        if now < self._next_sweep:
            return
        self._next_sweep = now + SWEEP_MS
        rows = connection.execute(
            "SELECT id FROM streamlib_logs WHERE expires_at <= ?", (now,)
        ).fetchall()
        for (log_id,) in rows:
            try:
                state = _state(connection, log_id)
            except LogError:
                state = None  # somebody changed it: it is deleted now, not after a day
            _store(connection, log_id, state, expired(state, now))


def _stored_record(row: tuple[int, int, int, bytes]) -> Record:
    epoch, first, last, lines = row
    # A column may hold values of any type, after somebody changed it.
    return Record(int(epoch), int(first), int(last), b"" + lines)


def _state(connection: sqlite3.Connection, log_id: str) -> LogState | None:
    row = connection.execute(
        "SELECT state, meta, EXISTS (SELECT 1 FROM streamlib_records AS r WHERE r.id = l.id) "
        "FROM streamlib_logs AS l LEFT JOIN streamlib_meta USING (id) WHERE l.id = ?",
        (log_id,),
    ).fetchone()
    if row is None:
        return None
    stored, meta, has_records = row
    try:
        state = _STATE.decode(stored)
    except (*DECODE_ERRORS, TypeError):
        raise unreadable("its state was changed") from None
    if state.last and not state.gone and not has_records:
        state = state.without_records()
    return msgspec.structs.replace(state, meta=meta or "")


def _store(
    connection: sqlite3.Connection, log_id: str, before: LogState | None, state: LogState | None
) -> None:
    if state is None or state.gone:
        connection.execute("DELETE FROM streamlib_records WHERE id = ?", (log_id,))
        connection.execute("DELETE FROM streamlib_meta WHERE id = ?", (log_id,))
    if state is None:
        connection.execute("DELETE FROM streamlib_logs WHERE id = ?", (log_id,))
        return
    # The meta may be long, so it is in a separate row that is written only if it changes.
    if state.meta and (before is None or before.meta != state.meta):
        connection.execute(
            "INSERT OR REPLACE INTO streamlib_meta VALUES (?, ?)", (log_id, state.meta)
        )
    short = msgspec.structs.replace(state, meta="")
    connection.execute(
        "INSERT OR REPLACE INTO streamlib_logs VALUES (?, ?, ?)",
        (log_id, msgspec.json.encode(short), state.expires_at),
    )
