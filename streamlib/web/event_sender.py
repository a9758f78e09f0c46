"""Reads a stream or a run, encodes its events and writes the bytes, with pings while it is silent.

    source ── first event of a response ── head ── bytes … ── end of the encoder
                │ failed before it: `refuse`, with a status of its own
                └ silent for `ping` seconds: head and a ping; a later failure is part of the stream

One mechanism for every framework: where there is no ASGI server, `byte_iterator` takes its place.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from streamlib.asgi import COMMENT, AsgiExchange, Pings
from streamlib.client.stream import RETRY_SAFE_EVENTS
from streamlib.web.http_errors import INTERNAL, public_error
from streamlib.web.public_errors import ErrorText
from streamlib.web.sources import AnyEncoder, EventSource, OnDone
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import TOKEN_EVENTS, Failed, Passthrough, ResponseMetadata, RunEvent
from streamlib_parsers.stream_error import StreamError

DONE_SECONDS: Final = 30.0
"""How long `on_done` may take after the reader has left, or while the server stops."""

INTERNAL_EVENTS: Final = frozenset({Passthrough, ResponseMetadata})
"""Events that hold a provider's own objects: no reader gets them."""

_log: Final = logging.getLogger("streamlib.web")


class EventSender:
    """Sends the events of one source, once.

    Args:
        source: what is read.
        encode: the encoder.
        exchange: the response that is written.
        refuse: sends an error in place of a stream.
        ping: as in `StreamResponse`, and so are the others.
    """

    def __init__(
        self,
        source: EventSource,
        encode: AnyEncoder,
        exchange: AsgiExchange,
        refuse: Callable[[ErrorInfo], Awaitable[None]],
        *,
        ping: float | None,
        error_text: ErrorText,
        on_done: OnDone | None,
    ) -> None:
        self._source = source
        self._encode = encode
        self._exchange = exchange
        self._refuse = refuse
        self._pings = Pings(self._ping_bytes, ping)
        self._error_text = error_text
        self._on_done = on_done
        self._waiting: list[RunEvent] = []
        """Events before the first of a response: after a failure they are not sent."""
        self._is_refused = False
        """Set when an error was sent in place of a stream."""
        self._logged: ErrorInfo | None = None
        """The failure that was logged: a source may emit it, and raise it too."""

    async def serve(self) -> None:
        """Sends the stream until its end or until the client leaves, and calls `on_done`.

        Raises:
            Exception: what the application's own code raised, after everything else.
        """
        failure: Exception | None = None
        try:
            async with self._exchange.while_connected(self._pings):
                await self._transfer()
        except Exception as error:  # noqa: BLE001
            # Raised below: the response is ended first.
            failure = error
        except BaseException:
            await self._finish(is_cancelled=True)
            raise
        try:
            await self._finish(is_cancelled=False)
        except Exception as error:  # noqa: BLE001
            failure = failure or error
        await self._exchange.end()
        if failure is not None:
            raise failure

    # --- the stream ---

    async def _transfer(self) -> None:
        """Sends everything, from entering the source to the end of the encoder.

        Raises:
            Exception: what the application's own code raised inside the source. The error part was
                sent before.
        """
        try:
            async with self._source as events:
                batches = getattr(events, "batches", None)
                if batches is not None:
                    async for batch in batches():
                        await self._send(batch)
                else:
                    async for event in events:
                        await self._send([event])
        except StreamError as error:
            await self._send([Failed(error.info)])
        except Exception:
            # A reader of a truncated stream without a reason would wait, or try again for nothing.
            if self._exchange.is_started:
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
        if self._exchange.is_started and not self._waiting:
            await self._write(batch)
            return
        self._waiting += batch
        if _is_undecided(batch):
            return
        failure = self._early_failure()
        if failure is not None:
            self._is_refused = True
            await self._refuse(failure)
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
        if (
            self._exchange.is_started
            or not isinstance(last, Failed)
            or last.error.kind == "cancelled"
        ):
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
            await self._exchange.write(data)

    async def _end(self) -> None:
        """Writes what is left, and the end of the encoder."""
        if self._is_refused:
            return
        waiting = self._waiting
        self._waiting = []
        await self._write(waiting)
        await self._exchange.write(self._encode.close())

    def _ping_bytes(self) -> bytes:
        make = getattr(self._encode, "ping", None)
        if make is not None:
            ping: bytes = make()
            return ping
        if self._encode.media_type.startswith("text/event-stream"):
            return COMMENT
        return b"\n"

    # --- the end ---

    async def _finish(self, *, is_cancelled: bool) -> None:
        """Calls `on_done` with the response, whatever ended it.

        Args:
            is_cancelled: whether the request is being cancelled. Then what `on_done` raises is
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


TEXT_CHARACTERS: Final = 500
"""Characters of a failure in the log."""


def log_failure(error: ErrorInfo) -> None:
    """Logs a failure as one line: kind, status or address, and the provider's text. It has no key.

    Args:
        error: the failure as the client reported it. One that somebody stopped is not logged.
    """
    if error.kind == "cancelled":
        return
    text = str(StreamError(error))[:TEXT_CHARACTERS]
    # As a literal: a line break or an escape sequence of the provider cannot forge another line.
    _log.warning("the response of a model failed: %r", text)
