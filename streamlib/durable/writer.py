"""Writes the events of a stream or a run to a log. Readers get them after they are appended.

Two tasks run inside the caller's `write`: one reads the stream, one appends. Events are appended
together after each `interval`; the first event, the first token, the output of a call, and the end
of an item or of a response are appended at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Final

import anyio
import msgspec

from streamlib.client.stream import ResponseStream
from streamlib.durable.hub import Hub
from streamlib.durable.reaper import stopped
from streamlib.durable.records import Engine, LogError, encode_event, endings, is_terminal
from streamlib.durable.rules import Append, Open, Result
from streamlib.durable.settings import COMMIT_BYTES, Settings
from streamlib.pipeline.branches import owned
from streamlib.pipeline.reading import EventLists
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import TOKEN_EVENTS, Event, Failed, OutputItemDone, RunEvent
from streamlib_parsers.stream_error import StreamError

CLOSING_SECONDS: Final = 2.0
"""Seconds for which a cancelled writer may append the end."""

RETRY_SECONDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds before an engine that did not respond is asked again; the last value repeats."""

BROKE_OFF: Final = ErrorInfo("truncated", "the stream ended without an end", retryable=True)

LINGER_STEP: Final = 0.5
"""Seconds between two looks at a closed log while its writer could still restore it."""


class LogWriter:
    """Writes one stream, or one run of several responses, to one log."""

    def __init__(
        self,
        engine: Engine,
        hub: Hub,
        log_id: str,
        source: ResponseStream | AsyncIterable[RunEvent],
        settings: Settings,
        opened: Result,
        claim: Open,
    ) -> None:
        self._engine = engine
        self._log_id = log_id
        self._source = source
        # Whether other responses may follow the first: then only the source's end ends the log.
        self._is_run = getattr(source, "is_run", not isinstance(source, ResponseStream))
        self._settings = settings
        self._claim = claim
        """The operation that opened the log; it is repeated if the engine lost the log."""
        self._epoch = opened.epoch
        self._stop_reason = opened.stop
        """Reason of a requested stop; "" without one."""
        self._follower = hub.follow(log_id)
        self._follower.lost = False
        self._lines: list[bytes] = []
        """All events until the log is closed, because the engine may lose them."""
        self._appended = 0
        """Number of events that the engine has."""
        self._urgent = True
        """Whether waiting events must be appended at once: a first event or token, or an end."""
        self._has_token = False
        """Whether output of the model was received: readers wait most for its first event."""
        self._bytes = 0
        """Number of bytes in all events."""
        self._waiting_bytes = 0
        """Number of bytes in events that are not appended yet."""
        # Whether the last line is no terminal event.
        self._is_in_response = True
        # Whether the last line is the last one of the log.
        self._ended = False
        # Whether the engine has closed the log after that line.
        self._is_closed = False
        # Whether the log was ended because of its size while the stream continued.
        self._is_cut = False
        # Whether the log was ended because the engine has no more room.
        self._is_full = False
        self._room = anyio.Event()
        """Set when the engine has taken events, so that the reading task may continue."""
        self._next_append = 0.0
        """Earliest time of the next append that is not urgent, on the loop's clock."""
        self._last_contact = anyio.current_time()
        """Time of the engine's last response, on the loop's clock."""
        self._failure: Exception | None = None
        """The exception of the caller's stream, or the reason why the log cannot be written."""
        self._reading = anyio.CancelScope()
        """Cancels the task that reads the stream."""

    async def run(self) -> None:
        """Runs until the log is closed.

        Raises:
            LogError: the log cannot be written; the stream is closed.
        """
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._read_source)
                await self._append_until_closed()
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING_SECONDS):
                self._end(ErrorInfo("cancelled", "the writer was cancelled"))
                await self._append_the_rest()
            raise
        finally:
            self._follower.close()
        if self._failure is not None:
            raise self._failure

    # --- reading the stream ---

    async def _read_source(self) -> None:
        """Adds the stream's events, then the end of the log, however the stream ends."""
        error: ErrorInfo | None = None
        if self._stop_reason:  # stopped before it was started
            self._end(stopped(self._stop_reason))
            return
        try:
            with self._reading:
                async with owned(self._source) as events:
                    await self._add_all(EventLists(events))
        except StreamError as failure:
            error = failure.info
        except Exception as failure:  # noqa: BLE001  # the caller's: raised by `run`
            self._failure = failure
            error = ErrorInfo("truncated", f"the stream raised {type(failure).__name__}")
        if self._stop_reason:
            error = stopped(self._stop_reason)
        self._end(error)

    async def _add_all(self, lists: EventLists) -> None:
        while True:
            try:
                batch = await lists.batch()
            except StopAsyncIteration:
                return
            for event in batch:
                self._add(event)
            await self._wait_for_room()

    def _add(self, event: RunEvent) -> None:
        if self._ended:
            self._refuse_further_events()
            return
        if isinstance(event, Failed) and event.error.kind == "cancelled" and self._stop_reason:
            event = Failed(stopped(self._stop_reason), seq=event.seq)
        line = encode_event(event)
        if self._bytes + len(line) > self._settings.max_bytes:
            self._end_full()
        else:
            self._add_line(event, line)

    def _refuse_further_events(self) -> None:
        """Refuses a second response: events after the terminal one, unless the log ended early."""
        if self._failure is None and not self._is_cut and not self._stop_reason:
            self._failure = ValueError(
                "the events go on after the end of a response: a log holds one response"
            )

    def _add_line(self, event: RunEvent, line: bytes) -> None:
        self._lines.append(line)
        self._bytes += len(line)
        self._waiting_bytes += len(line)
        self._is_in_response = not is_terminal(event)
        self._ended = not self._is_in_response and not self._is_run
        is_output = not isinstance(event, Event)
        if is_output or not self._is_in_response or isinstance(event, OutputItemDone):
            self._urgent = True
        elif not self._has_token and type(event) in TOKEN_EVENTS:
            self._has_token = True
            self._urgent = True
        self._follower.wake()

    def _end(self, error: ErrorInfo | None) -> None:
        """Adds the events that end the log, unless it has ended. None: the source has no more."""
        if isinstance(self._source, ResponseStream):
            for event in self._source.rest():
                self._add(event)
        if self._ended:
            return
        if error is not None or self._is_in_response:
            self._add_endings(error or BROKE_OFF)
        self._ended = True
        self._urgent = True
        self._follower.wake()

    def _add_endings(self, error: ErrorInfo) -> None:
        for event in endings(self._lines, error):
            self._add_line(event, encode_event(event))
        self._ended = True

    def _end_full(self) -> None:
        """Ends the log at its size limit, and closes the stream."""
        self._is_cut = True
        self._reading.cancel()
        limit = self._settings.max_bytes
        error = ErrorInfo(
            "limit_exceeded", f"the log has no room: its limit is {limit:,} bytes", code="max_bytes"
        )
        self._add_endings(error)

    async def _wait_for_room(self) -> None:
        """Waits, and thereby slows the provider, while the engine takes events more slowly."""
        while len(self._lines) - self._appended >= self._settings.ahead:
            self._room = anyio.Event()
            await self._room.wait()

    # --- appending ---

    async def _append_until_closed(self) -> None:
        try:
            while not self._is_closed:
                await self._until_due()
                await self._append()
            await self._linger()
        except Exception as error:  # noqa: BLE001  # raised by `run`, outside of the group
            self._failure = error
            self._reading.cancel()

    async def _append_the_rest(self) -> None:
        try:
            while not self._is_closed:
                await self._append()
        except LogError:
            pass  # the readers end the log

    async def _until_due(self) -> None:
        """Waits until there is something to append, or the lease must be renewed."""
        while True:
            # These are pushes of our own records; the state is asked for other changes.
            self._follower.records.clear()
            if self._follower.lost:
                self._follower.lost = False
                return
            now = anyio.current_time()
            due = self._last_contact + self._settings.lease / 3
            if self._ended and self._appended == len(self._lines):
                return  # a run has ended after its last line was appended
            if self._appended < len(self._lines):
                if self._urgent or self._waiting_bytes >= COMMIT_BYTES:
                    return
                due = min(due, self._next_append)
            if now >= due:
                return
            await self._follower.wait(due - now)

    async def _append(self) -> None:
        """Appends one record; without events it renews the lease, or closes the log."""
        count, size = self._next_lines()
        last = self._appended + count
        closes = self._ended and last == len(self._lines)
        operation = Append(
            self._claim.owner,
            self._epoch,
            self._appended + 1,
            last,
            size=size,
            lease_ms=self._settings.lease_ms,
            closes=closes,
            keep_ms=int(self._settings.keep * 1000),
            # The end of a log is always added: only then may it exceed the setting.
            max_bytes=max(self._settings.max_bytes, self._bytes),
        )
        data = b"".join(self._lines[self._appended : last])
        # Events that come during the append may set it again.
        self._urgent = self._urgent and last < len(self._lines)
        result = await self._ask(operation, data)
        self._next_append = anyio.current_time() + self._settings.interval
        await self._understand(result, last, closes=closes)

    def _next_lines(self) -> tuple[int, int]:
        """The number of lines in the next record, and their bytes."""
        count = size = 0
        for index in range(self._appended, len(self._lines)):
            if count and size + len(self._lines[index]) > COMMIT_BYTES:
                break
            count += 1
            size += len(self._lines[index])
        return count, size

    async def _understand(self, result: Result, last: int, *, closes: bool) -> None:
        """Acts on the result of an append."""
        self._is_closed = False
        match result.status:
            case "ok":
                self._set_appended(last)
                self._is_closed = closes
            case "closed" if self._ended and result.last == len(self._lines):
                self._set_appended(result.last)  # it was appended, but the result was lost
                self._is_closed = True
            case "behind" if result.last <= len(self._lines):
                self._set_appended(result.last)
                self._urgent = True
            case "missing":
                await self._open_again()
            case "full" if not self._is_full:
                self._drop_what_waits()
            case "full":
                raise LogError("full", f"the engine has no room for the log {self._log_id!r}")
            case "gone":
                raise LogError("gone", f"the log {self._log_id!r} was deleted", known=True)
            case _:
                raise LogError("fenced", f"another process took over the log {self._log_id!r}")
        if result.stop and not self._stop_reason:
            self._stop_reason = result.stop
            await self._stop_source()

    def _set_appended(self, count: int) -> None:
        self._appended = count
        self._waiting_bytes = sum([len(line) for line in self._lines[count:]])
        self._room.set()

    async def _open_again(self) -> None:
        """Sends all events again in the same epoch: the engine restarted without the log."""
        claim = msgspec.structs.replace(self._claim, epoch=self._epoch)
        result = await self._ask(claim, b"")
        if result.status != "ok":
            raise LogError("fenced", f"another process took over the log {self._log_id!r}")
        self._appended = 0
        self._urgent = True

    def _drop_what_waits(self) -> None:
        """Drops waiting events: the engine takes no more, so the log ends after those it has."""
        self._is_full = True
        self._bytes -= sum([len(line) for line in self._lines[self._appended :]])
        del self._lines[self._appended :]
        self._ended = False
        self._end_full()

    async def _stop_source(self) -> None:
        if isinstance(self._source, ResponseStream):
            await self._source.aclose()  # the reading task receives the end
        else:
            self._reading.cancel()

    async def _ask(self, operation: Append | Open, data: bytes) -> Result:
        """Asks until the engine responds. Its result shows whether a lost operation was performed.

        Raises:
            LogError: the engine did not respond for `outage` seconds.
        """
        tries = 0
        while True:
            try:
                result = await self._engine.ask(self._log_id, operation, data)
            except LogError as error:
                silent = anyio.current_time() - self._last_contact
                # Memory may have room again soon, as when other logs expire.
                is_outage = error.kind in {"unavailable", "full"}
                if not is_outage or silent > self._settings.outage:
                    raise
                await anyio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
                tries += 1
                continue
            self._last_contact = anyio.current_time()
            return result

    async def _linger(self) -> None:
        """Stays able to send events again that an engine loses which was just restarted."""
        until = anyio.current_time() + self._engine.linger
        while anyio.current_time() < until:
            await anyio.sleep(LINGER_STEP)
            await self._append()
            while not self._is_closed:
                await self._append()
