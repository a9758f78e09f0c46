"""Reads a stream or a run, encodes its events and writes the bytes, with pings while it is silent.

    source ── first event of a response ── start ── bytes … ── end of the encoder
                │ failed before it: `refuse`, with a status of its own
                └ silent for `ping` seconds: start and a ping; a later failure is part of the stream

Two tasks a response, however many events: one reads and writes, one sleeps until a ping is due.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Sequence
from typing import Final, Protocol

import anyio

from streamlib.client.stream import RETRY_SAFE_EVENTS
from streamlib.client.stream_timing import TOKEN_EVENTS
from streamlib.errors import StreamError
from streamlib.pipeline.tee import EventLists
from streamlib.web.failure_log import log_failure
from streamlib.web.http_errors import INTERNAL, public_error
from streamlib.web.public_errors import ErrorText
from streamlib.web.sources import AnyEncoder, EventSource, OnDone
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, Passthrough, ResponseMetadata, RunEvent

DONE_SECONDS: Final = 30.0
"""How long `on_done` may take after the reader has left, or while the server stops."""

INTERNAL_EVENTS: Final = frozenset({Passthrough, ResponseMetadata})
"""Events that hold a provider's own objects: no reader gets them."""

_log: Final = logging.getLogger("streamlib.web")


class Output(Protocol):
    """Receives the bytes of a response."""

    async def start(self) -> None:
        """Begins the response. Called once, before the first `write`."""
        ...

    async def refuse(self, error: ErrorInfo) -> None:
        """Responds with an error instead of a stream. No other method is called then."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends bytes of the stream."""
        ...


class EventSender:
    """Sends the events of one source: `transfer` and `send_pings` in two tasks, then `finish`."""

    def __init__(
        self,
        source: EventSource,
        encode: AnyEncoder,
        output: Output,
        *,
        ping: float | None,
        error_text: ErrorText,
        on_done: OnDone | None,
    ) -> None:
        self._source = source
        self._encode = encode
        self._output = output
        self._ping = ping
        self._error_text = error_text
        self._on_done = on_done
        self._waiting: list[RunEvent] = []
        """Events before the first of a response: after a failure they are not sent."""
        self._started = False
        """Set once the response has begun: from then on a failure is part of the stream."""
        self.refused = False
        """Set when an error was sent in place of a stream."""
        self._logged: ErrorInfo | None = None
        """The failure that was logged: a source may emit it, and raise it too."""
        self._last_write = -math.inf
        """Event loop time, in seconds, of the last write."""
        self._lock = anyio.Lock(fast_acquire=True)
        """Held while bytes are written: both tasks write."""

    # --- the reading task ---

    async def transfer(self) -> None:
        """Sends everything, from entering the source to the end of the encoder.

        Raises:
            Exception: What the application's own code raised inside the source. The error part was
                sent before.
        """
        try:
            async with self._source as events:
                batches = EventLists(events)  # type: ignore[arg-type]
                while True:
                    try:
                        batch = await batches.batch()
                    except StopAsyncIteration:
                        break
                    await self._send(batch)
        except StreamError as error:
            await self._send([Failed(error.info)])
        except Exception:
            # A reader of a truncated stream without a reason would wait, or try again for nothing.
            if self._started:
                await self._write([Failed(INTERNAL)])
                await self._end()
            raise
        await self._end()

    async def _send(self, batch: Sequence[RunEvent]) -> None:
        """Sends the events of one read, or buffers those before the first of a response."""
        last = batch[-1]
        if type(last) is Failed:
            self._log_failure(last.error)
            # Without the provider's own text, whether it is sent or not.
            failed = Failed(public_error(last.error, self._error_text), seq=last.seq)
            batch = [*batch[:-1], failed]
        if self._started and not self._waiting:
            await self._write(batch)
            return
        self._waiting += batch
        if _is_undecided(batch):
            return
        failure = self._early_failure()
        if failure is not None:
            self.refused = True
            await self._output.refuse(failure)
            return
        waiting = self._waiting
        self._waiting = []
        await self._write(waiting)

    def _log_failure(self, error: ErrorInfo) -> None:
        """Logs a failure once: the reader gets a text about its kind and nothing more."""
        if error is self._logged:
            return
        self._logged = error
        log_failure(error)

    def _early_failure(self) -> ErrorInfo | None:
        """The failure before any output, while a status can still be sent; None without one."""
        last = self._waiting[-1]
        # A cancelled stream is not an error: the stream itself ends with this event.
        if self._started or not isinstance(last, Failed) or last.error.kind == "cancelled":
            return None
        for event in self._waiting:
            if type(event) in TOKEN_EVENTS:
                return None
        return last.error

    async def _write(self, events: Sequence[RunEvent]) -> None:
        """Writes the events at once: each write is a system call and a chunk on the socket."""
        feed = self._encode.feed
        frames: list[bytes] = []
        for event in events:
            if type(event) not in INTERNAL_EVENTS:
                frames.append(feed(event))
        data = b"".join(frames)
        if data:
            await self._write_bytes(data)

    async def _end(self) -> None:
        """Writes what is left, and the end of the encoder."""
        if self.refused:
            return
        waiting = self._waiting
        self._waiting = []
        await self._write(waiting)
        await self._write_bytes(self._encode.close())

    async def _write_bytes(self, data: bytes) -> None:
        async with self._lock:
            if not self._started:
                self._started = True
                await self._output.start()
            if data:
                await self._output.write(data)
            self._last_write = anyio.current_time()

    # --- pings ---

    async def send_pings(self) -> None:
        """Writes a ping whenever nothing was written for `ping` seconds, until it is cancelled."""
        if self._ping is None:
            return
        seconds = self._ping
        while True:
            await anyio.sleep(seconds)
            seconds = self._last_write + self._ping - anyio.current_time()
            if seconds > 0:
                continue
            seconds = self._ping
            # While a write is blocked the reader has bytes waiting already.
            if not self.refused and not self._lock.statistics().locked:
                await self._write_bytes(self._ping_bytes())

    def _ping_bytes(self) -> bytes:
        make = getattr(self._encode, "ping", None)
        if make is not None:
            ping: bytes = make()
            return ping
        if self._encode.media_type.startswith("text/event-stream"):
            return b": ping\n\n"
        return b"\n"

    # --- the end ---

    async def finish(self, *, is_cancelled: bool) -> None:
        """Calls `on_done` with the response, whatever ended it.

        Args:
            is_cancelled: Whether the request is being cancelled. Then what `on_done` raises is
                logged, since it must not replace the cancellation.
        """
        if self._on_done is None:
            return
        deadline = anyio.current_time() + DONE_SECONDS
        with anyio.CancelScope(shield=True, deadline=deadline) as scope:
            try:
                result = self._on_done(self._source.response)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                if not is_cancelled:
                    raise
                _log.exception("on_done failed")
        if scope.cancelled_caught:
            _log.error("on_done took longer than %.0f seconds and was cancelled", DONE_SECONDS)


def _is_undecided(batch: Sequence[RunEvent]) -> bool:
    """Whether nothing of a response and no failure is among these events."""
    for event in batch:
        if type(event) not in RETRY_SAFE_EVENTS or type(event) is Failed:
            return False
    return True
