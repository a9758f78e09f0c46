"""Sources of responses: an HTTP request that is sent for each attempt, or bytes from anywhere."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Callable, Mapping
from datetime import datetime
from typing import Final
from uuid import uuid4

import anyio
import msgspec
from anyio.lowlevel import EventLoopToken, current_token

from streamlib.client.auth import KeyStore
from streamlib.client.credentials import ApiKey, RedactedHeaders, RequestAuth
from streamlib.client.hooks import (
    AttemptHooks,
    AttemptRequest,
    AttemptResponse,
    attempt_request,
    call_hook,
    changed_headers,
)
from streamlib.client.origins import origin_of
from streamlib.client.unreachable import name_page, name_server
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib.transport import HttpResponse, IteratorResponse, Transport
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import RateLimits
from streamlib_parsers.stream_error import invalid_request

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110."""

HEADER_VALUE: Final = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
"""Printable ASCII, blanks and tabs within: no line break, so that no value can add a header."""

DEFAULT_HEADERS: Final = {"accept-encoding": "identity", "user-agent": "streamlib"}


class LoopGuard:
    """Keeps the connections of a client to the event loop of its first request.

    A pool of connections that another loop opened fails with whatever its library raises then, and
    only sometimes: where a connection is reused, or where a request waits for one.
    """

    def __init__(self) -> None:
        self._loop: EventLoopToken | None = None
        """The loop of the first request."""

    def check(self) -> None:
        """Raises unless the running event loop is that of the first request.

        Raises:
            StreamError: `invalid_request`, code `event_loop`.
        """
        loop = current_token()
        if self._loop is None:
            self._loop = loop
        elif loop != self._loop:
            message = (
                "a Client belongs to the event loop of its first request, and its connections "
                "cannot be used from another: create one Client in each event loop"
            )
            raise invalid_request(message, "event_loop")


class ResponseSource:
    """Where a response comes from; this one knows no hooks, no server and no key."""

    slots: anyio.CapacityLimiter | None = None
    """What an attempt acquires before it sends; None if there is no limit."""

    hooks: AttemptHooks | None = None
    """The caller's functions for each attempt; None if there are none."""

    async def run_request_hook(self) -> None:
        """Before each attempt: lets `on_request` see and change its headers."""

    async def run_response_hook(self, response: HttpResponse) -> None:
        """Lets `on_response` see the status and headers of an attempt."""

    def check_loop(self) -> None:
        """Raises `StreamError` if the running event loop is not the one of the connections."""

    async def send(self, deadlines: Deadlines) -> HttpResponse:
        """The response, as soon as its headers are received.

        Args:
            deadlines: of the stream, for what the transport ends by itself.
        """
        raise NotImplementedError

    def name_page(self, info: ErrorInfo) -> ErrorInfo:
        """The failure of a body that is an HTML page, with the URL that it came from."""
        return info

    def name_server(self, info: ErrorInfo) -> ErrorInfo:
        """A failure of `send`, with the server's address if it could not be reached."""
        return info

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """The failure with keys masked."""
        return info

    def redact_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Response headers with keys masked."""
        return headers

    def redact_rate_limits(self, event: RateLimits) -> RateLimits:
        """Rate limits with keys masked in the headers that they quote."""
        return event


class HttpSource(ResponseSource):
    """A request, sent anew for each attempt with the key as it is then.

    Args:
        transport: sends the request.
        request: the request, without a key.
        keys: the client's keys.
        provider: the provider that the request is for.
        key: a key for this request alone; None uses `keys`.
        now: the time, for signatures.
        loop_guard: shared by all requests of a client.
        hooks: functions of the caller to run for each attempt.
    """

    def __init__(
        self,
        transport: Transport,
        request: Request,
        keys: KeyStore,
        provider: Provider,
        key: ApiKey | None,
        now: Callable[[], datetime],
        loop_guard: LoopGuard,
        hooks: AttemptHooks | None = None,
    ) -> None:
        self._transport = transport
        self._request = request
        self._keys = keys
        self._provider = provider
        self._key = key
        self._now = now
        self._auth = RequestAuth(RedactedHeaders())
        """Authentication of the latest attempt: its keys are masked in what the server returns."""
        self._loop_guard = loop_guard
        self.hooks = hooks
        self._attempts = 0
        """Attempts whose hook ran."""
        self._seen: AttemptRequest | None = None
        """What the hooks see of the current attempt's request; None without hooks."""
        self._own_headers = dict(DEFAULT_HEADERS)
        """Headers of the client: the request's own win over them."""
        if provider.idempotency_header is not None:
            # Once for all attempts: the provider recognises the second as the same request.
            self._own_headers[provider.idempotency_header.lower()] = str(uuid4())
        self.slots: anyio.CapacityLimiter | None = getattr(transport, "slots", None)

    def check_loop(self) -> None:
        """See `ResponseSource`."""
        # A transport without slots has no connections: a replay, or one of the user's own.
        if self.slots is not None:
            self._loop_guard.check()

    async def run_request_hook(self) -> None:
        """See `ResponseSource`."""
        if self.hooks is None:
            return
        self._attempts += 1
        self._seen = attempt_request(self._request, self._headers(), self._attempts)
        if self.hooks.on_request is not None:
            await call_hook(self.hooks.on_request, self._seen)

    async def run_response_hook(self, response: HttpResponse) -> None:
        """See `ResponseSource`."""
        if self.hooks is None or self.hooks.on_response is None or self._seen is None:
            return
        headers = self.redact_headers(response.headers)
        seen = AttemptResponse(request=self._seen, status=response.status, headers=headers)
        await call_hook(self.hooks.on_response, seen)

    def _headers(self) -> dict[str, str]:
        """The headers of every attempt, names in lower case, without authentication."""
        headers = {**self._own_headers, **self._request.headers}
        return {name.lower(): value for name, value in headers.items()}

    async def send(self, deadlines: Deadlines) -> HttpResponse:
        """See `ResponseSource`."""
        request = self._request
        origin_of(request.url)  # refuses an invalid URL before a key is looked up for it
        own_headers: Mapping[str, str] = self._own_headers
        if self._seen is not None:
            # Before the key: a signature is over the headers that are sent.
            headers_sent = changed_headers(self._headers(), self._seen.headers)
            own_headers, request_headers = _split(headers_sent, own_headers)
            request = msgspec.structs.replace(request, headers=request_headers)
        self._auth = await self._keys.stamp(request, self._provider, self._now(), self._key)
        # The key comes last: a header of the request must not replace it.
        headers = validated_headers({**own_headers, **request.headers, **self._auth.headers})
        try:
            return await self._transport.send(
                request.method, request.url, headers, request.body, deadlines
            )
        except anyio.get_cancelled_exc_class() as error:
            # The frames that the exception came through hold the headers, and with them the key.
            raise error.with_traceback(None) from None

    def name_page(self, info: ErrorInfo) -> ErrorInfo:
        """See `ResponseSource`."""
        return name_page(info, self._request.url)

    def name_server(self, info: ErrorInfo) -> ErrorInfo:
        """See `ResponseSource`."""
        return name_server(info, self._request.url, self._provider.name)

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """See `ResponseSource`."""
        return self._auth.redact(info)

    def redact_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """See `ResponseSource`."""
        return self._auth.redact_texts(headers)

    def redact_rate_limits(self, event: RateLimits) -> RateLimits:
        """See `ResponseSource`."""
        return msgspec.structs.replace(
            event,
            windows=self._auth.redact_value(event.windows),
            request_id=self._auth.redact_value(event.request_id),
            raw=self._auth.redact_texts(event.raw),
        )


class BytesSource(ResponseSource):
    """Bytes that the caller already has, or reads with another library."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = chunks

    async def send(self, deadlines: Deadlines) -> HttpResponse:
        """See `ResponseSource`."""
        del deadlines
        return IteratorResponse(self._chunks)


def _split(
    headers: Mapping[str, str], own_headers: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Splits headers into those left unsigned (proxies may rewrite them) and the rest."""
    own: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, value in headers.items():
        if name in own_headers:
            own[name] = value
        else:
            others[name] = value
    return own, others


def validated_headers(headers: Mapping[str, str]) -> RedactedHeaders:
    """Headers with their names in lower case.

    Raises:
        StreamError: `invalid_request`; a name or a value that could end its line and begin another
            header. The message does not contain the value.
    """
    validated = RedactedHeaders()
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise invalid_request("a header name contains characters that are invalid", "header")
        if not HEADER_VALUE.fullmatch(value):
            message = f"the header {name} contains characters that are invalid"
            raise invalid_request(message, "header")
        validated[name.lower()] = value
    return validated
