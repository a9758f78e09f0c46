"""One attempt: sends a request, waits for the response headers, and turns the body into events.

Each wait has its deadline. Only cancellations are raised here; any other failure becomes the
`Failed` event of the attempt. Between two calls no timeout scope is open and no task runs; within
one read there is at most one scope, and none if the transport ends a late read by itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec

from streamlib.client.body import BodyCollector, MessageFeeder
from streamlib.client.sources import ResponseSource
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.transport import HttpResponse, ReadTimeout
from streamlib.transport.closing import CLOSING_SECONDS, ShieldedAwait
from streamlib.transport.content_encoding import decode_content
from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib.transport.deadlines import FOREVER, Phase, deadline_error
from streamlib.transport.errors import FailurePoint, classify_exception
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, limit_exceeded
from streamlib_parsers.events import Failed, RateLimits, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import Parser
from streamlib_parsers.resumable import ResumableParser
from streamlib_parsers.stream_error import StreamError

HEAD_BYTES: Final = 64 * 1024
"""Maximum size of the response headers."""

ERROR_BYTES: Final = 64 * 1024
"""Bytes of an error's body that are read at most."""

ERROR_SECONDS: Final = 10.0
"""Maximum time to wait for an error's body."""

DRAIN_BYTES: Final = 64 * 1024
"""Bytes that are read at most after the end, so that the connection can be reused."""

STREAM_MEDIA_TYPES: Final = (
    "text/event-stream",
    "application/json",
    "application/x-ndjson",
    "application/vnd.amazon.eventstream",
)
"""Media types of responses. Any other is named in the message of a malformed response."""

Clock: TypeAlias = Callable[[], float]
"""Seconds, on a clock that runs steadily."""

AnyParser: TypeAlias = Parser | ResumableParser
"""A `ResumableParser` reads a stream that knows its position."""

Parse: TypeAlias = Callable[[Mapping[str, str] | None, datetime | None], AnyParser]
"""Creates the parser of a response from its headers and the time they were received."""


def fast_clock(clock: Clock) -> Clock:
    """`time.monotonic` in place of anyio's clock, if both show the same.

    asyncio's loops run on the monotonic clock; anyio looks up its loop each time (0.7 us).
    """
    if clock is anyio.current_time and abs(clock() - time.monotonic()) < 0.01:
        return time.monotonic
    return clock


class Attempt:
    """One request/response exchange.

    Call `open`, then `read` until it returns nothing, then `close`. Another task may end it with
    `abort`, `interrupt` and `close`.
    """

    def __init__(
        self,
        source: ResponseSource,
        parse: Parse,
        timer: DeadlineTimer,
        wire_api: WireApi,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self.finished = False
        """Set once no more bytes are needed: `read` then waits no more."""
        self.last_read_at = 0.0
        """When the last wait ended, by the clock."""
        self.pending: list[ResponseEvent] = []
        """Events from the headers, returned together with the first events of the body."""
        self.headers: Mapping[str, str] = {}
        """Response headers to show, keys masked; empty before the response."""
        self.status: int | None = None
        """HTTP status; None before the response."""
        self.reconnected: Sequence[ErrorInfo] = ()
        """The failures after which another connection went on."""
        self._source = source
        self._parse: Parse = parse
        self._timer = timer
        self._wire_api: WireApi = wire_api
        self._limits = limits
        self._clock = clock
        self._now: Callable[[], datetime]
        """The time, as given to `open`."""
        self._received_headers: Mapping[str, str] = {}
        """Response headers to read: a short key may be part of `retry-after` or `gzip`."""
        self._response: HttpResponse | None = None
        """Set when the headers were received, None again once it is closed."""
        self._slots: anyio.CapacityLimiter | None = None
        """The limiter of connections, while this attempt has one of its tokens."""
        self._scope: anyio.CancelScope | None = None
        """The timeout scope of the current wait, for `interrupt`."""
        self._chunks: AsyncIterator[bytes]
        """The decoded body; set with the response."""
        self._read_timeout: ReadTimeout | None = None
        """Ends late reads in place of a timeout scope, if the transport can."""
        self._parser: AnyParser | None = None
        """See `parser`; None until somebody needs it."""
        self._feeder: AnyParser | BodyCollector | MessageFeeder
        """What bytes are fed to: the parser, or the collector of a JSON body. Set with the
        response."""

    @property
    def parser(self) -> AnyParser:
        """The parser of the response; before its headers, one that has read nothing."""
        if self._parser is None:
            self._parser = self._parse(None, None)
        return self._parser

    # --- the response headers ---

    async def open(self, now: Callable[[], datetime]) -> ErrorInfo | None:
        """Sends the request and waits for the response headers.

        Events that the headers yield are returned by the first `read`.

        Args:
            now: the time, for rate limits in the headers.

        Returns:
            The failure, or None if there is a body to read.
        """
        self._clock = fast_clock(self._clock)
        self._now = now
        try:
            failure = await self._exchange(now)
        except BaseException:
            await self.close()
            raise
        self._timer.restart()
        # If another task closed the attempt meanwhile, `abort` has ended it already.
        if failure is not None and not self.finished:
            failure = self._source.redact(failure)
            self.pending = self.abort(failure)
        if self.finished:  # also if another task closed it meanwhile
            await self.close()
        return failure

    async def _exchange(self, now: Callable[[], datetime]) -> ErrorInfo | None:
        """Sends the request and reads the headers, with the caller's hooks before and after.

        Between two steps another task may have closed the attempt: nothing follows its end.
        """
        source = self._source
        has_hooks = source.hooks is not None
        if has_hooks:
            await self._run_hook(source.run_request_hook())
            if self.finished:
                return None
        response = await self._send()
        if isinstance(response, ErrorInfo):
            return response
        if has_hooks and not self.finished:
            await self._run_hook(source.run_response_hook(response))
        if self.finished:
            return None
        return await self._read_head(response, now())

    async def _run_hook(self, hook: Awaitable[None]) -> None:
        """Awaits a hook, which `interrupt` ends. Its time is the caller's own: no deadline."""
        with anyio.CancelScope() as self._scope:
            await hook
        self._scope = None

    async def _send(self) -> HttpResponse | ErrorInfo:
        timer = self._timer
        # While the attempt waits for a slot, only `total` applies.
        phase: Phase = "total"
        began = self._clock()
        with anyio.CancelScope(deadline=_after(timer.left)) as scope:
            self._scope = scope
            try:
                self._source.check_loop()
                await self._acquire_slot()
                left, phase = timer.head_deadline(self._clock() - began)
                scope.deadline = _after(left)
                self._response = await self._source.send(timer.deadlines)
            except Exception as error:  # noqa: BLE001
                # Whatever an HTTP library raises ends the attempt, not the program.
                # A timeout that the library raises here is that of `first_byte`: the transports
                # set it as their read timeout until the headers are received.
                point = FailurePoint(
                    has_response=False, phase="first_byte", deadlines=timer.deadlines
                )
                return self._source.name_server(classify_exception(error, point))
            else:
                return self._response
            finally:
                self._scope = None
                self._record_wait(began)
        # Reached only if the scope expired, or was cancelled by `interrupt`.
        return self._source.name_server(deadline_error(phase, timer.deadlines))

    async def _acquire_slot(self) -> None:
        slots = self._source.slots
        if slots is not None:
            # On behalf of the attempt, not of the task: another task may close it.
            await slots.acquire_on_behalf_of(self)
            self._slots = slots

    async def _read_head(self, response: HttpResponse, received_at: datetime) -> ErrorInfo | None:
        """Prepares to read the body, or returns the failure that status and headers mean."""
        self.status = response.status
        self.headers = self._source.redact_headers(response.headers)
        self._read_timeout = getattr(response, "read_timeout", None)
        headers = self._received_headers = response.headers
        parser = self._parse(headers, received_at)
        self._parser = self._feeder = parser
        # No bytes: the parser returns what it knows from the headers.
        for event in parser.feed(b""):
            if isinstance(event, RateLimits):
                self.pending.append(self._source.redact_rate_limits(event))
            else:
                self.pending.append(event)
        # HTTP libraries have limits of their own; this one holds for every transport.
        size = sum(map(len, headers)) + sum(map(len, headers.values()))
        if size > HEAD_BYTES:
            message = f"response headers exceed {HEAD_BYTES} bytes"
            return ErrorInfo("malformed", message, code="head")
        try:
            self._chunks = decode_content(response.chunks, headers)
        except StreamError as error:
            return error.info
        if 300 <= self.status < 400:
            return _redirect_error(self.status, headers)
        if not 200 <= self.status < 300:
            return self._named(
                classify(self.status, await self._error_body(), headers, received_at)
            )
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "application/json" and WIRE_SPECS[self._wire_api].json_is_complete_body:
            self._feeder = BodyCollector(parser, self._limits)
        if getattr(response, "chunks_are_messages", False):
            self._feeder = MessageFeeder(parser)
        return None

    def _named(self, info: ErrorInfo) -> ErrorInfo:
        """An HTTP error, with its URL where a page for people was sent instead of an API's."""
        if info.status in {404, 405} and _is_page(self._received_headers):
            return self._source.name_page(info)
        return info

    async def _error_body(self) -> bytes:
        body = b""
        began = self._clock()
        deadline = _after(min(ERROR_SECONDS, self._timer.left))
        with (
            # An error whose body ends early, or breaks, is still that error.
            contextlib.suppress(Exception),
            anyio.CancelScope(deadline=deadline) as self._scope,
        ):
            if self._read_timeout is not None:
                self._read_timeout.start(FOREVER)  # the scope ends a late read
            while len(body) < ERROR_BYTES:
                body += await anext(self._chunks)
        self._scope = None
        self._record_wait(began)
        return body[:ERROR_BYTES]

    # --- the body ---

    async def read(self) -> list[ResponseEvent]:
        """The next events, at least one; none after the end."""
        events: list[ResponseEvent] = []
        began = self._clock()
        while not events and not self.finished:
            chunk = await self._next_chunk(began)
            # Parsing that yields no event is no time of the caller's: a flood has deadlines too.
            began = self.last_read_at
            if self.finished:  # another task closed it meanwhile
                return []
            if chunk is None or isinstance(chunk, ErrorInfo):
                events = await self._end_connection(chunk)
                began = self._clock()
            else:
                events = self._feed(chunk)
        # Rate limits from the headers precede the events of the body.
        if self.pending:
            events = [*self.pending, *events]
            self.pending = []
        return events

    async def body(self) -> bytes | ErrorInfo:
        """The complete body of a response that is not a stream, or the failure."""
        body = bytearray()
        while True:
            chunk = await self._next_chunk(self._clock())
            if chunk is None:
                return bytes(body)
            if isinstance(chunk, ErrorInfo):
                return self._source.redact(chunk)
            body += chunk
            if len(body) > self._limits.response_bytes:
                return limit_exceeded("response_bytes", self._limits.response_bytes).info

    async def _next_chunk(self, began: float) -> bytes | ErrorInfo | None:
        """The next bytes, None at their end, or the failure.

        Args:
            began: time from which on the stream waits for them.
        """
        left, phase = self._timer.next_deadline()
        failure: ErrorInfo | None = None
        try:
            if left > 0 and self._read_timeout is not None:
                # The transport ends a late read by itself: no scope is needed (about 10 us).
                self._read_timeout.start(left)
                return await anext(self._chunks)
            if left == FOREVER:
                return await anext(self._chunks)
            if left > 0:
                with anyio.CancelScope(deadline=_after(left)) as self._scope:
                    return await anext(self._chunks)
        except StopAsyncIteration:
            return None
        except Exception as error:  # noqa: BLE001  # see `_send`
            point = FailurePoint(has_response=True, phase=phase, deadlines=self._timer.deadlines)
            failure = classify_exception(error, point)
        finally:
            self._scope = None
            self._record_wait(began)
        if failure is None:  # there was no time left, or the scope expired or was cancelled
            failure = deadline_error(phase, self._timer.deadlines)
        if phase == "drain" and failure.kind == "stalled":
            return None  # the response is complete; the server only left the stream open
        return failure

    def _feed(self, chunk: bytes) -> list[ResponseEvent]:
        parser = self.parser
        events = self._feeder.feed(chunk)
        # Events that a dialect's filter still buffers are progress, too.
        unfiltered = self._feeder.unfiltered_events
        self._timer.note_events(events if unfiltered is None else unfiltered)
        if parser.ended:
            self.finished = True
            return self._with_context(events)
        if parser.complete:
            self._timer.note_complete(has_tail=WIRE_SPECS[self._wire_api].has_tail)
        return events

    async def _end_connection(self, failure: ErrorInfo | None) -> list[ResponseEvent]:
        """The last events, or none where the attempt goes on."""
        return self._end(failure)

    def _end(self, failure: ErrorInfo | None) -> list[ResponseEvent]:
        """The last events: there are no more bytes.

        Args:
            failure: what ended the connection; None at a regular end. A response that is complete
                stays so, however its connection ended.
        """
        self.finished = True
        # A stall or a malformed body is the failure itself. A truncated one is left to the parser:
        # it may find that the bytes so far are a complete response.
        if failure is not None and failure.kind != "truncated" and not self.parser.complete:
            return self._with_context(self.parser.abort(failure))
        events = self._feeder.close()
        if failure is not None and events:
            last = events[-1]
            # The parser knows that the input ended early; the failure says why.
            if isinstance(last, Failed) and last.error.kind in {"truncated", "malformed"}:
                events[-1] = Failed(failure, seq=last.seq)
        return self._with_context(events)

    def _with_context(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """Masks keys in the failure, and adds the media type if that explains it."""
        last = events[-1] if events else None
        if not isinstance(last, Failed):
            return events
        info = last.error
        media_type = self._received_headers.get("content-type", "")
        is_expected = not media_type or media_type.lower().startswith(STREAM_MEDIA_TYPES)
        if info.kind == "malformed" and not is_expected:  # a proxy's HTML page, for instance
            message = f"{info.message} (content-type: {media_type[:100]})"
            info = msgspec.structs.replace(info, message=message)
            if _is_page(self._received_headers):
                info = self._source.name_page(info)
        events[-1] = Failed(self._source.redact(info), seq=last.seq)
        return events

    def _record_wait(self, began: float) -> None:
        self.last_read_at = self._clock()
        self._timer.add_waited(self.last_read_at - began)

    # --- the end ---

    def abort(self, error: ErrorInfo) -> list[ResponseEvent]:
        """Ends the attempt.

        Returns:
            Events that were pending, the ends of open items, and `Failed`.
        """
        self.finished = True
        pending = self.pending
        self.pending = []
        return [*pending, *self.parser.abort(error)]

    def interrupt(self) -> None:
        """Wakes a task that waits for the headers, or for bytes within a timeout scope.

        One that waits without a scope is woken by `close`.
        """
        if self._scope is not None:
            self._scope.cancel()

    async def drain(self) -> None:
        """Reads what follows a complete response, briefly, so that the connection is reusable."""
        if self._response is None or not self.parser.complete:
            return
        self._timer.note_complete(has_tail=False)
        size = 0
        while size < DRAIN_BYTES:
            chunk = await self._next_chunk(self._clock())
            if not isinstance(chunk, bytes):
                return
            size += len(chunk)

    async def close(self) -> None:
        """Releases the connection, even while the task is being cancelled."""
        response = self._response
        self._response = None
        slots = self._slots
        self._slots = None
        try:
            if response is not None:
                deadline = _after(CLOSING_SECONDS)
                with (
                    contextlib.suppress(Exception),
                    anyio.CancelScope(deadline=deadline, shield=True),
                ):
                    await ShieldedAwait(response.aclose())
        finally:
            if slots is not None:
                slots.release_on_behalf_of(self)


def _is_page(headers: Mapping[str, str]) -> bool:
    """Whether the body is an HTML page."""
    return headers.get("content-type", "").lower().startswith("text/html")


def _redirect_error(status: int, headers: Mapping[str, str]) -> ErrorInfo:
    destination = "an invalid address"
    with contextlib.suppress(ValueError):
        url = urlsplit(headers.get("location", ""))
        if url.hostname:
            # Without path and query, which may echo a key.
            destination = f"{url.scheme or 'https'}://{url.hostname}"
        else:
            destination = "another path of the same host"
    message = (
        f"the server redirects to {destination}: redirects are not followed, "
        "and neither the prompt nor a key was sent there"
    )
    return ErrorInfo("invalid_request", message, status=status, code="redirect")


def _after(seconds: float) -> float:
    """The time in a number of seconds, for anyio's deadlines."""
    if seconds == FOREVER:
        return FOREVER  # to look up the loop takes 2 us
    return anyio.current_time() + seconds
