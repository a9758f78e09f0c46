"""One attempt: a request goes out, the head of an answer comes, and its bytes become events, each within its deadline.

Nothing here raises but a cancellation: whatever goes wrong is the `Failed` event of the attempt. Between two calls no timeout scope is
alive and no task runs; within one read there is at most one scope, and none where the transport ends a silent read by itself.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import urlsplit

import anyio
import msgspec

from streamlib.client.auth import ApiKey, KeyStore, RedactedHeaders, RequestAuth, origin_of
from streamlib.errors import StreamError, invalid_request
from streamlib.providers import Provider
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request
from streamlib.transport import HttpResponse, IteratorResponse, Transport
from streamlib.transport.closing import CLOSING_SECONDS, ShieldedAwait
from streamlib.transport.content_encoding import decode_content
from streamlib.transport.deadlines import FOREVER, Deadlines, DeadlineTimer, Phase, deadline_error
from streamlib.transport.errors import FailurePoint, classify_exception
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, limit_exceeded
from streamlib_parsers.events import Failed, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import Parser

HEAD_BYTES: Final = 64 * 1024
"""The most that an answer's headers may be."""
ERROR_BYTES: Final = 64 * 1024
"""The most that is read of an error's body."""
ERROR_SECONDS: Final = 10.0
"""The longest that is waited for it."""
DRAIN_BYTES: Final = 64 * 1024
"""The most that is read after the end to keep a connection."""

NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE: Final = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
DEFAULT_HEADERS: Final = {"accept-encoding": "identity", "user-agent": "streamlib"}

STREAM_MEDIA_TYPES: Final = (
    "text/event-stream",
    "application/json",
    "application/x-ndjson",
    "application/vnd.amazon.eventstream",
)
"""Media types that need no mention when the body turns out to be something else."""

Clock = Callable[[], float]
Parse = Callable[[Mapping[str, str] | None, datetime | None], Parser]


class Source(Protocol):
    """Where an answer comes from."""

    slots: anyio.CapacityLimiter | None

    async def send(self) -> HttpResponse:
        """The answer, as soon as its head is there."""
        ...

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """The failure without any key."""
        ...

    def redact_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The answer's headers without any key."""
        ...


class HttpSource:
    """A request, sent anew for every attempt, with the key as it is then."""

    def __init__(
        self,
        transport: Transport,
        request: Request,
        keys: KeyStore,
        provider: Provider,
        key: ApiKey | None,
        deadlines: Deadlines,
        now: Callable[[], datetime],
    ) -> None:
        self._transport = transport
        self._request = request
        self._keys = keys
        self._provider = provider
        self._key = key
        self._deadlines = deadlines
        self._now = now
        self._stamp = RequestAuth(RedactedHeaders())
        self.slots: anyio.CapacityLimiter | None = getattr(transport, "slots", None)

    async def send(self) -> HttpResponse:
        """See `Source`."""
        request = self._request
        origin_of(request.url)
        self._stamp = await self._keys.stamp(request, self._provider, self._now(), self._key)
        headers = validated_headers({**DEFAULT_HEADERS, **request.headers, **self._stamp.headers})
        try:
            return await self._transport.send(
                request.method, request.url, headers, request.body, self._deadlines
            )
        except (
            anyio.get_cancelled_exc_class()
        ) as error:  # the frames it came through hold the headers
            raise error.with_traceback(None) from None

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """See `Source`."""
        return self._stamp.redact(info)

    def redact_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """See `Source`."""
        shown: dict[str, str] = self._stamp.redact_value(dict(headers))
        return shown


class BytesSource:
    """Bytes that are there already, or come from a library of the caller's."""

    slots: anyio.CapacityLimiter | None = None

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = chunks

    async def send(self) -> HttpResponse:
        """See `Source`."""
        return IteratorResponse(self._chunks)

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """Nothing is known that would have to be hidden."""
        return info

    def redact_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The same."""
        return headers


def fast_clock(clock: Clock) -> Clock:
    """asyncio's loops run on the monotonic clock: there it is read directly, since anyio looks for its loop each time (0.7 us)."""
    return (
        time.monotonic
        if clock is anyio.current_time and abs(clock() - time.monotonic()) < 0.01
        else clock
    )


def validated_headers(headers: Mapping[str, str]) -> RedactedHeaders:
    """The headers, with names in lower case. One that could end its line and begin another is refused, without showing its value."""
    for name, value in headers.items():
        if not NAME.fullmatch(name):
            raise invalid_request(
                "a header's name holds characters that no header's name may", "header"
            )
        if not VALUE.fullmatch(value):
            raise invalid_request(
                f"the header {name} holds characters that no header may", "header"
            )
    return RedactedHeaders({name.lower(): value for name, value in headers.items()})


class Attempt:
    """One answer. `open`, then `read` until it gives nothing, then `close`; `abort` and `interrupt` end it from outside."""

    def __init__(
        self,
        source: Source,
        parse: Parse,
        watch: DeadlineTimer,
        wire_api: WireApi,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self.finished = False
        """Every event was given, or is about to be."""
        self.last_read_at = 0.0
        """When the last bytes came."""
        self.pending: list[ResponseEvent] = []
        """Events that are given together with the first of the body."""
        self.headers: Mapping[str, str] = {}
        self.status: int | None = None
        self._source = source
        self._parse = parse
        self._watch = watch
        self._wire_api: WireApi = wire_api
        self._limits = limits
        self._clock = clock
        self._answer: HttpResponse | None = None
        self._slots: anyio.CapacityLimiter | None = None
        self._scope: anyio.CancelScope | None = None
        self._chunks: AsyncIterator[bytes]
        self._read_timeout = FOREVER
        self._parser = parse(None, None)
        self._feeder: Parser | BodyCollector = self._parser

    # --- the head ---

    async def open(self, now: Callable[[], datetime]) -> ErrorInfo | None:
        """Waits for the head of the answer; the failure, where it comes to none. What the head says is given with the first event."""
        self._clock = fast_clock(self._clock)
        try:
            answer = await self._head()
            failure = answer if isinstance(answer, ErrorInfo) else await self._begin(answer, now())
        except BaseException:
            await self.close()
            raise
        self._watch.restart()
        if failure is not None and not self.finished:
            failure = self._source.redact(failure)
            self.pending = self.abort(failure)
        if self.finished:  # or closed by another task meanwhile
            await self.close()
        return failure

    async def _head(self) -> HttpResponse | ErrorInfo:
        phase: Phase = "total"
        began = self._clock()
        with anyio.CancelScope(deadline=_in(self._watch.left)) as scope:
            self._scope = scope
            try:
                await self._queue()
                left, phase = self._watch.head_deadline(self._clock() - began)
                scope.deadline = _in(left)
                self._answer = await self._source.send()
            except Exception as error:  # noqa: BLE001  # whatever an HTTP library raises ends the attempt, not the program
                return classify_exception(
                    error,
                    FailurePoint(
                        has_response=False, phase="first_byte", deadlines=self._watch.deadlines
                    ),
                )
            else:
                return self._answer
            finally:
                self._scope = None
                self._record_wait(began)
        return deadline_error(phase, self._watch.deadlines)

    async def _queue(self) -> None:
        slots = self._source.slots
        if slots is not None:
            await slots.acquire_on_behalf_of(self)
            self._slots = slots

    async def _begin(self, answer: HttpResponse, received_at: datetime) -> ErrorInfo | None:
        """The answer's status and headers: a parser for its body, or the failure they mean."""
        self.status, self.headers = answer.status, self._source.redact_headers(answer.headers)
        self._read_timeout = getattr(answer, "read_timeout", FOREVER)
        self._parser = self._parse(self.headers, received_at)
        self.pending += self._parser.feed(b"")
        if sum(len(name) + len(value) for name, value in self.headers.items()) > HEAD_BYTES:
            return ErrorInfo(
                "malformed",
                f"the head of the answer is longer than {HEAD_BYTES} bytes",
                code="head",
            )
        try:
            self._chunks = decode_content(answer.chunks, self.headers)
        except StreamError as error:
            return error.info
        if 300 <= self.status < 400:
            return _redirect_error(self.status, self.headers)
        if not 200 <= self.status < 300:
            return classify(self.status, await self._error_body(), self.headers, received_at)
        json = (
            self.headers.get("content-type", "").partition(";")[0].strip().lower()
            == "application/json"
        )
        self._feeder = (
            BodyCollector(self._parser, self._limits)
            if json and WIRE_SPECS[self._wire_api].json_is_complete_body
            else self._parser
        )
        return None

    async def _error_body(self) -> bytes:
        body, began = b"", self._clock()
        with (
            contextlib.suppress(Exception),  # an error whose body breaks off is that error still
            anyio.CancelScope(deadline=_in(min(ERROR_SECONDS, self._watch.left))) as self._scope,
        ):
            while len(body) < ERROR_BYTES:
                body += await anext(self._chunks)
        self._scope = None
        self._record_wait(began)
        return body[:ERROR_BYTES]

    # --- the body ---

    async def read(self) -> list[ResponseEvent]:
        """The next events, at least one; none when the answer is over."""
        events: list[ResponseEvent] = []
        while not (events or self.finished):
            chunk = await self._chunk()
            if self.finished:  # closed by another task meanwhile
                return []
            events = (
                self._end(chunk)
                if chunk is None or isinstance(chunk, ErrorInfo)
                else self._take(chunk)
            )
        if self.pending:
            events, self.pending = [*self.pending, *events], []
        return events

    async def body(self) -> bytes | ErrorInfo:
        """The whole body of an answer that is no stream, or what went wrong."""
        whole = bytearray()
        while (chunk := await self._chunk()) is not None:
            if isinstance(chunk, ErrorInfo):
                return self._source.redact(chunk)
            whole += chunk
            if len(whole) > self._limits.response_bytes:
                return limit_exceeded("response_bytes", self._limits.response_bytes).info
        return bytes(whole)

    async def _chunk(self) -> bytes | ErrorInfo | None:
        """The next bytes, None at their end, or what went wrong."""
        left, phase = self._watch.next_deadline()
        began = self._clock()
        try:
            if left >= self._read_timeout:  # the transport ends a longer silence by itself
                return await anext(self._chunks)
            if left > 0:
                with anyio.CancelScope(deadline=_in(left)) as self._scope:
                    return await anext(self._chunks)
        except StopAsyncIteration:
            return None
        except Exception as error:  # noqa: BLE001  # see `_head`
            return classify_exception(
                error, FailurePoint(has_response=True, phase=phase, deadlines=self._watch.deadlines)
            )
        finally:
            self._scope = None
            self._record_wait(began)
        return None if phase == "drain" else deadline_error(phase, self._watch.deadlines)

    def _take(self, chunk: bytes) -> list[ResponseEvent]:
        parser, events = self._parser, self._feeder.feed(chunk)
        arrived = self._feeder.unfiltered_events
        self._watch.note_events(
            events if arrived is None else arrived
        )  # what a dialect holds back is progress, too
        if parser.ended:
            self.finished = True
            return self._with_context(events)
        if parser.complete:
            self._watch.note_complete(has_tail=WIRE_SPECS[self._wire_api].has_tail)
        return events

    def _end(self, failure: ErrorInfo | None) -> list[ResponseEvent]:
        """No more bytes. An answer that is whole is not spoilt by how its connection ended."""
        self.finished = True
        if failure is not None and failure.kind != "truncated" and not self._parser.complete:
            return self._with_context(self._parser.abort(failure))
        events = self._feeder.close()
        last = events[-1] if events else None
        if (
            failure is not None
            and isinstance(last, Failed)
            and last.error.kind in {"truncated", "malformed"}
        ):
            events[-1] = Failed(failure, seq=last.seq)
        return self._with_context(events)

    def _with_context(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """A failure without keys, and with the media type where that explains it."""
        last = events[-1] if events else None
        if isinstance(last, Failed):
            info, media_type = last.error, self.headers.get("content-type", "")
            if (
                info.kind == "malformed"
                and media_type
                and not media_type.lower().startswith(STREAM_MEDIA_TYPES)
            ):
                info = msgspec.structs.replace(
                    info, message=f"{info.message} (content-type: {media_type[:100]})"
                )
            events[-1] = Failed(self._source.redact(info), seq=last.seq)
        return events

    def _record_wait(self, began: float) -> None:
        self.last_read_at = self._clock()
        self._watch.add_waited(self.last_read_at - began)

    # --- the end ---

    def abort(self, error: ErrorInfo) -> list[ResponseEvent]:
        """Ends the attempt: what was held, and the terminal event."""
        self.finished = True
        held, self.pending = self.pending, []
        return [*held, *self._parser.abort(error)]

    def interrupt(self) -> None:
        """Wakes a task that waits for the head, or for bytes under a deadline. One that waits without is woken by `close`."""
        if self._scope is not None:
            self._scope.cancel()

    async def drain(self) -> None:
        """Reads what is left after the end, briefly, so that the connection can be used again."""
        if self._answer is None or not self._parser.complete:
            return
        drain = self._watch.deadlines.drain
        with (
            contextlib.suppress(Exception),
            anyio.CancelScope(deadline=_in(FOREVER if drain is None else drain)) as self._scope,
        ):
            size = 0
            while size < DRAIN_BYTES:
                size += len(await anext(self._chunks))
        self._scope = None

    async def close(self) -> None:
        """Lets go of the connection, at once and whatever is being cancelled."""
        answer, self._answer = self._answer, None
        slots, self._slots = self._slots, None
        try:
            if answer is not None:
                with (
                    contextlib.suppress(Exception),
                    anyio.CancelScope(deadline=_in(CLOSING_SECONDS), shield=True),
                ):
                    await ShieldedAwait(answer.aclose())
        finally:
            if slots is not None:
                slots.release_on_behalf_of(self)


class BodyCollector:
    """A JSON body where a stream was asked for: collected, then read as a whole. What begins otherwise is a stream with a wrong label."""

    def __init__(self, parser: Parser, limits: Limits) -> None:
        self._parser = parser
        self._limits = limits
        self._parts: list[bytes] = []
        self._size = 0
        self._streams: bool | None = None

    @property
    def unfiltered_events(self) -> list[ResponseEvent] | None:
        """As a parser's; nothing arrives of a body that is being collected."""
        return self._parser.unfiltered_events if self._streams else None

    def feed(self, chunk: bytes) -> list[ResponseEvent]:
        """As a parser's."""
        if self._streams:
            return self._parser.feed(chunk)
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size > self._limits.response_bytes:
            return self._parser.abort(
                limit_exceeded("response_bytes", self._limits.response_bytes).info
            )
        if self._streams is None and (begun := chunk.lstrip()):
            self._streams = begun[:1] not in {b"{", b"["}
            if self._streams:
                return self._parser.feed(b"".join(self._parts))
        return []

    def close(self) -> list[ResponseEvent]:
        """As a parser's."""
        events = [] if self._streams else self._parser.feed_body(b"".join(self._parts))
        return [*events, *self._parser.close()]


def _redirect_error(status: int, headers: Mapping[str, str]) -> ErrorInfo:
    location, where = headers.get("location", ""), "an address that is none"
    with contextlib.suppress(ValueError):
        target = urlsplit(location)
        where = (
            f"{target.scheme or 'https'}://{target.hostname}"
            if target.hostname
            else "another path of the same host"
        )
    message = f"the server redirects to {where}: not followed, neither the prompt nor a key was sent there"
    return ErrorInfo("invalid_request", message, status=status, code="redirect")


def _in(seconds: float) -> float:
    return anyio.current_time() + seconds
