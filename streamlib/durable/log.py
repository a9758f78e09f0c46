"""Logs of a process: create, write, read, stop."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterable, Mapping
from typing import Any, Final, Literal, TypeAlias

import anyio
import msgspec
from msgspec import Struct

from streamlib.client.stream import ResponseStream
from streamlib.durable.engine_url import split_engine_url
from streamlib.durable.hub import Hub
from streamlib.durable.memory import MemoryEngine
from streamlib.durable.reader import LogReader, gone
from streamlib.durable.reaper import append_endings
from streamlib.durable.records import (
    START,
    Engine,
    LogCursor,
    LogError,
    check_id,
    parse_cursor,
    unreadable,
)
from streamlib.durable.rules import Delete, LogState, Open, Stop
from streamlib.durable.settings import Settings
from streamlib.durable.writer import LogWriter
from streamlib.pipeline.branches import leave_group
from streamlib.request.mistakes import check_kind
from streamlib_parsers.events import RunEvent
from streamlib_parsers.json_text import DECODE_ERRORS

RunSource: TypeAlias = ResponseStream | AsyncIterable[RunEvent]
"""What a log can be written from: a stream or a run, not entered yet, or any of their events."""

_log: Final = logging.getLogger("streamlib.durable")


class Head(Struct, frozen=True):
    """The state of a log and its last position.

    Attributes:
        state: `open`; `stopping`: a stop was requested; `closed`: it has the terminal event.
        cursor: the position after its last event.
        epoch: number of times that a writer took it over, from 1.
        meta: the `meta` given to `create` or `write`.
        reason: the reason given to `stop`.
    """

    state: Literal["open", "stopping", "closed"]
    cursor: str
    epoch: int
    meta: Mapping[str, Any]
    reason: str | None = None


class Log:
    """Logs on one engine, for this process. Made by `open_log`, used with `async with`.

    Methods may be called from any task. Each raises `LogError("unavailable")` if the engine does
    not respond, and ``ValueError`` for an invalid id.
    """

    def __init__(self, engine: Engine, settings: Settings, *, owns_engine: bool) -> None:
        self._engine = engine
        self._owns_engine = owns_engine
        """Whether the engine is closed with the log; an engine of the caller is not."""
        self._settings = settings
        self._hub = Hub(engine)
        self._group: anyio.abc.TaskGroup | None = None
        """Contains the task that listens to the engine; None outside of the block."""

    @property
    def durability(self) -> str:
        """What a failure of the engine may lose, as one sentence."""
        return self._engine.durability

    async def __aenter__(self) -> Log:
        if self._owns_engine:
            await self._engine.connect()
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._hub.run)
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        group = self._entered()
        self._group = None
        try:
            await leave_group(group, error)
        finally:
            if self._owns_engine:
                await self._engine.aclose()

    def _entered(self) -> anyio.abc.TaskGroup:
        if self._group is None:
            raise RuntimeError("a log is used inside of `async with open_log(…) as log`")
        return self._group

    def _check(self, log_id: str) -> None:
        """Checks before each operation that the block was entered and the id is valid."""
        self._entered()
        check_id(log_id)

    async def create(self, log_id: str, meta: Mapping[str, Any] | None = None) -> None:
        """Creates an empty log. Call it before readers know the id, so that none comes too early.

        `write` must follow within a lease.

        Args:
            log_id: chosen by you. An id gives no access: decide elsewhere who may read the log.
            meta: JSON that `head` returns, such as the conversation, or an encoder's options.

        Raises:
            LogError: `held`: the id already has a log.
        """
        self._check(log_id)
        operation = self._open("", meta)
        result = await self._engine.ask(log_id, operation)
        if result.status != "ok" or result.last:
            raise LogError("held", f"there is a log {log_id!r} already")

    async def write(
        self,
        log_id: str,
        stream: RunSource,
        meta: Mapping[str, Any] | None = None,
    ) -> Head:
        """Writes a stream or a run to a log until the log is closed. It runs in your task: use one
        that outlives the request, or `start`.

        The log always ends with a terminal event: also if you cancel this call, or if `stop` is
        called.

        Args:
            log_id: id of a log that `create` made, or of a new one.
            stream: ``client.stream(…)`` or ``agent(…)``, not entered yet; or any events of one
                response or of a run, in order.
            meta: as in `create`, if the log is new.

        Returns:
            The closed log's head.

        Raises:
            LogError: `held`: the id has a log that is written or closed; `fenced`: this process
                was silent for more than a lease and another one ended the log; `unavailable`;
                `gone`: deleted meanwhile. The stream is closed.
        """
        self._check(log_id)
        if not (hasattr(stream, "__aiter__") or hasattr(stream, "__aenter__")):
            kind = type(stream).__name__
            raise TypeError(f"a log is written from what `async for` reads, not from a {kind}")
        claim = self._open(secrets.token_hex(8), meta)
        opened = await self._engine.ask(log_id, claim)
        if opened.status == "ok" and opened.last:
            # The former writer died. Another response must not follow its events.
            await append_endings(self._engine, log_id, self._settings, claim.owner, opened)
        if opened.status != "ok" or opened.last:
            raise LogError("held", f"there is a log {log_id!r} already")
        writer = LogWriter(self._engine, self._hub, log_id, stream, self._settings, opened, claim)
        await writer.run()
        return await self.head(log_id)

    def start(
        self,
        group: anyio.abc.TaskGroup,
        log_id: str,
        stream: RunSource,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes in a task of a group that outlives the request, as `write` does, and never raises.

        One log that cannot be written must not end the group, in which others are written: what
        goes wrong is reported to the logger ``streamlib.durable``. Readers see how the log ended.

        Args:
            group: runs the task.
            log_id: as in `write`, and so are the others.
        """
        group.start_soon(self._write_and_report, log_id, stream, meta)

    async def _write_and_report(
        self,
        log_id: str,
        stream: RunSource,
        meta: Mapping[str, Any] | None,
    ) -> None:
        try:
            await self.write(log_id, stream, meta)
        except LogError as error:
            _log.warning("the log %r was not written to its end: %s", log_id, error)
        except Exception:  # noqa: BLE001  # the caller's own: other logs go on
            _log.exception("the log %r was not written to its end", log_id)

    def read(self, log_id: str, after: str | None = None) -> LogReader:
        """The entries of a log, from any position to its end, while it grows.

            async for entry in log.read(log_id, after=cursor): ...

        Args:
            log_id: id of an existing log.
            after: the `cursor` of the last entry that was received; None for the start.

        Returns:
            An async iterator of `Entry`; its `batches()` gives lists of them.

        Raises:
            LogError: while it is iterated: `gone`; `rewound`: the engine lost events before the
                cursor, so read from the start; `unreadable`: somebody changed or deleted records.
            ValueError: `after` is not a cursor.
        """
        self._check(log_id)
        cursor = parse_cursor(after)
        return LogReader(self._engine, self._hub, log_id, cursor, self._settings)

    async def stop(self, log_id: str, reason: str = "user") -> None:
        """Requests its writer to stop, wherever that runs. It closes its stream and ends the log.

        May be called before the writer starts. A closed log does not change.

        Args:
            log_id: id of an existing log.
            reason: becomes the `code` of the error of kind `cancelled`.

        Raises:
            LogError: `gone`.
        """
        self._check(log_id)
        check_kind("the reason", reason, str, "a text")
        if not reason:
            raise ValueError("the reason must not be empty")
        result = await self._engine.ask(log_id, Stop(reason))
        if result.status in {"missing", "gone"}:
            raise LogError("gone", f"there is no log {log_id!r}", known=result.status == "gone")

    async def head(self, log_id: str) -> Head:
        """The state and the last position of a log.

        Raises:
            LogError: `gone`.
        """
        self._check(log_id)
        state, _, _ = await self._engine.read(log_id, START, 0)
        if state is None or state.gone:
            raise gone(log_id, state)
        return _head(state)

    async def delete(self, log_id: str) -> None:
        """Deletes a log. Its writer closes its stream; readers raise `gone`.

        Raises:
            LogError: `gone`.
        """
        self._check(log_id)
        result = await self._engine.ask(log_id, Delete())
        if result.status in {"missing", "gone"}:
            raise LogError("gone", f"there is no log {log_id!r}", known=result.status == "gone")

    def _open(self, owner: str, meta: Mapping[str, Any] | None) -> Open:
        settings = self._settings
        check_kind("meta", meta, Mapping, "a dict of what can be JSON")
        try:
            text = msgspec.json.encode(meta or {}).decode()
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"meta cannot be written as JSON: {error}") from None
        max_age_ms = int(settings.max_age * 1000)
        return Open(owner, settings.lease_ms, meta=text, max_age_ms=max_age_ms)


def _head(state: LogState) -> Head:
    name: Literal["open", "stopping", "closed"] = "open"
    if state.closed:
        name = "closed"
    elif state.stop:
        name = "stopping"
    meta: dict[str, Any] = {}
    if state.meta:
        try:
            meta = msgspec.json.decode(state.meta, type=dict[str, Any])
        except DECODE_ERRORS:
            raise unreadable("its meta was changed") from None
    cursor = str(LogCursor(state.epoch, state.last))
    return Head(name, cursor, state.epoch, meta, state.stop or None)


def open_log(
    url: str | Engine = "memory:",
    *,
    lease: float = 15.0,
    keep: float = 600.0,
    interval: float = 0.05,
    ahead: int = 4096,
    outage: float = 30.0,
    max_age: float = 24 * 3600.0,
    max_bytes: int = 64 * 1024 * 1024,
) -> Log:
    """Logs on an engine: ``async with open_log("sqlite:///logs.db") as log: …``.

    Args:
        url: ``memory:``; ``sqlite:///path``; ``redis://host:port``, also ``rediss``, ``valkey``,
            ``redis+cluster``, ``redis+sentinel``; an `Engine`, which you connect and close.
        lease: seconds of silence after which a writer counts as dead; its readers end the log
            within twice that time.
        keep: seconds for which a closed log is kept, so that late readers can read it.
        interval: maximum seconds for which events wait to be appended together.
        ahead: limit of events that wait for the engine; at the limit, reading the stream pauses.
        outage: seconds without a response of the engine after which a writer gives up.
        max_age: maximum seconds for which a log may be open.
        max_bytes: limit of bytes in a log; a longer response ends as `limit_exceeded`.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: the URL names no engine, or a number is not above 0, or a time longer than an
            engine can store.
    """
    settings = Settings(
        lease=lease,
        keep=keep,
        interval=interval,
        ahead=ahead,
        outage=outage,
        max_age=max_age,
        max_bytes=max_bytes,
    )
    if isinstance(url, str):
        return Log(engine_of(url), settings, owns_engine=True)
    if not callable(getattr(url, "ask", None)):
        raise TypeError(f"an engine is a URL, as a text, or an `Engine`, not {url!r:.100}")
    return Log(url, settings, owns_engine=False)


def engine_of(url: str) -> Engine:
    """The engine that a URL names.

    Raises:
        ValueError: the URL names no engine.
    """
    parts = split_engine_url(url)
    match parts.scheme:
        case "memory":
            return MemoryEngine()
        case "sqlite" if len(parts.path) > 1:
            from streamlib.durable.sqlite import SqliteEngine

            return SqliteEngine(parts.path.removeprefix("/"))
        case scheme if scheme.startswith(("redis", "valkey")) and parts.netloc:
            return _redis_engine(url)
        case _:
            raise ValueError("an engine is memory:, sqlite:///path or redis://host:port")


def _redis_engine(url: str) -> Engine:
    try:
        from streamlib.durable.redis import RedisEngine
    except ImportError as error:
        raise ValueError("Redis needs the extra: pip install 'streamlib[redis]'") from error
    return RedisEngine(url)
