"""A connection that carries several responses: `Client.connect`. Experimental.

async with client.connect("openai:gpt-5") as connection:
    async with connection.stream("Draft a plan.", lane="planner") as stream:
        async for event in stream: ...
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, Self

import anyio
import msgspec
from msgspec import Struct

from streamlib.client.attempt import AnyParser, Clock, Parse
from streamlib.client.auth import KeyStore
from streamlib.client.credentials import ApiKey
from streamlib.client.hooks import AttemptHooks, OnEvent
from streamlib.client.options import StreamOptions
from streamlib.client.retry import RetryPolicy
from streamlib.client.sources import HttpSource, LoopGuard, ResponseSource
from streamlib.client.stream_config import ErrorMode, StreamConfig
from streamlib.client.websocket.continuation import LaneRequest
from streamlib.client.websocket.lane_socket import LaneSocket
from streamlib.client.websocket.lane_source import LaneRetry, LaneSource
from streamlib.client.websocket.lane_stream import HookedLaneStream, LaneStream
from streamlib.providers.websocket import WebSocketSettings
from streamlib.request.build import Request, build_for
from streamlib.request.headers import checked_headers, joined_headers
from streamlib.request.prompt import Prompt
from streamlib.request.target import Target
from streamlib.transport import HttpResponse
from streamlib.transport.closing import ShieldedAwait
from streamlib.transport.deadlines import Deadlines, deadline_error
from streamlib.transport.websocket import Upgrade, load_websockets, open_websocket
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Message, ResponseItem, ToolSpec, user
from streamlib_parsers.limits import Limits
from streamlib_parsers.stream_error import StreamError, invalid_request
from streamlib_parsers.wires.responses.lanes import LANE_NAME, steer_message

CLOSED: Final = ErrorInfo("cancelled", "the connection was closed before the response was complete")

StreamConfigurer = Callable[
    [Request, ResponseSource, Sequence[ToolSpec], StreamOptions], StreamConfig
]
"""Request, source, tools, options -> the configuration of a stream."""


class ConnectionConfig(Struct, frozen=True, kw_only=True):
    """What a connection has from its client.

    Attributes:
        target: where it goes.
        settings: limits and headers; None: the provider has no WebSocket.
        keys: the client's keys.
        key: a key for this connection alone.
        headers: of the handshake, beside the provider's.
        errors: what a failure of a stream does; None: as the client says.
        limits: limits of what is read.
        deadlines: how long is waited for what.
        retry: when a failed handshake or a refused request is sent again.
        loop_guard: shared by all requests of the client.
        hooks: run for the handshake.
        on_event: sees each event of each response.
        stream_config: makes the configuration of a stream.
        watched: adds the client's telemetry to it.
        require_open: raises if the client is closed.
        clock: seconds, on a clock that runs steadily.
        now: the current time with a time zone.
        jitter: a random number from 0 to 1.
        ssl_context: None: certificates as the system has them.
    """

    target: Target
    settings: WebSocketSettings | None
    keys: KeyStore
    key: ApiKey | None
    headers: Mapping[str, str]
    errors: ErrorMode | None
    limits: Limits
    deadlines: Deadlines
    retry: RetryPolicy
    loop_guard: LoopGuard
    hooks: AttemptHooks | None
    on_event: OnEvent | None
    stream_config: StreamConfigurer
    watched: Callable[[StreamConfig, Prompt | None], StreamConfig]
    require_open: Callable[[], None]
    clock: Clock
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    ssl_context: ssl.SSLContext | None


class Connection:
    """One WebSocket connection to one model, used with `async with`. Experimental.

    Where its socket is lost or too old, the next request opens another one and sends its whole
    history; a response that ran on the lost one fails as `truncated`, and is not repeated. Made by
    `Client.connect`.
    """

    def __init__(self, config: ConnectionConfig) -> None:
        if config.settings is None:
            name = config.target.provider.name
            raise invalid_request(f"{name} does not offer Responses over WebSocket", "no_websocket")
        self.settings = config.settings
        self.slots = anyio.CapacityLimiter(self.settings.in_flight)
        """Requests wait here until a response may run."""
        self._config = config
        self.handshake = _handshake(config, self.settings)
        """Authenticates each handshake; knows the key that has to be masked."""
        self._sockets: list[LaneSocket] = []
        """Open sockets, the newest last: requests go there, older ones end their responses."""
        self._opening = anyio.Lock()
        """Held while a socket is opened: of several requests one opens it."""
        self._last: dict[str | None, LaneSource] = {}
        """The latest request of each lane, to be continued."""
        self._closed = False
        """Set by `aclose`."""

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<Connection {self._config.target.provider.name} {state}>"

    async def __aenter__(self) -> Self:
        self.check_loop()
        attempt = 0
        while True:
            try:
                await self.usable_socket()
            except StreamError as error:
                failure = error.info
            else:
                return self
            delay = self._config.retry.wait(failure, attempt, 0.0, self._config.jitter())
            if delay is None:
                raise StreamError(failure)
            attempt += 1
            await anyio.sleep(delay)

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connection. Streams that are open end as `cancelled`."""
        self._closed = True
        # All of them, even if the caller is cancelled: each takes `CLOSING_SECONDS` at most.
        with anyio.CancelScope(shield=True):
            await ShieldedAwait(self._close_sockets())

    async def _close_sockets(self) -> None:
        cancelled: BaseException | None = None
        while self._sockets:
            try:
                await self._sockets.pop().aclose(CLOSED)
            except anyio.get_cancelled_exc_class() as error:
                # asyncio's own, which knows no shield: the other sockets are closed first.
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem],
        lane: str | None = None,
        *,
        dialects: Sequence[str] | None = None,
        strict: bool = False,
        strict_origin: bool = False,
        errors: ErrorMode | None = None,
    ) -> LaneStream:
        """Prepares the stream of one response, to be used with `async with`.

        Responses of several lanes run side by side, those of one lane one after the other. Where
        the history continues the last response of its lane, only what is new is sent.

        Args:
            prompt: a `Prompt`, a history, or a text.
            lane: 1 to 256 letters, digits, `_`, `.` and `-`; None: the lane without a name.
            dialects: as of `Client.stream`.
            strict: as of `Client.stream`.
            strict_origin: as of `Client.stream`.
            errors: as of `Client.stream`.

        Raises:
            StreamError: `invalid_request`; the request cannot be built, the lane's name is wrong,
                or there are too many lanes (code `lane`).
            RuntimeError: the client or the connection is closed.
        """
        self._config.require_open()
        if self._closed:
            raise RuntimeError("the connection is closed")
        self._check_lane(lane)
        if not isinstance(prompt, Prompt):
            prompt = Prompt(prompt)
        if prompt.background or (prompt.extra or {}).get("background"):
            raise invalid_request("a WebSocket has no responses in the background", "background")
        target = self._config.target
        request = build_for(prompt, target, strict=strict, strict_origin=strict_origin)
        source = LaneSource(self, lane, LaneRequest(prompt, target, request, prompt.items))
        options = StreamOptions(dialects=dialects, errors=errors or self._config.errors)
        config = self._config.stream_config(request, source, prompt.tools, options)
        config = self._config.watched(config, prompt)
        retry = LaneRetry(within=config.retry.within, source=source, policy=config.retry)
        parse = partial(_parser_without_headers, config.parse)
        return self._make_stream(msgspec.structs.replace(config, retry=retry, parse=parse))

    async def steer(self, response_id: str, prompt: str | Sequence[ResponseItem]) -> None:
        """Steers a response of this connection by its id: see `LaneStream.steer`."""
        items = self.steering(prompt)
        await self.send_steering(await self.usable_socket(), response_id, items)

    def _check_lane(self, lane: str | None) -> None:
        if lane is None:
            return
        settings = self.settings
        if settings.lanes == 0:
            name = self._config.target.provider.name
            raise invalid_request(f"{name} has no lanes: one response at a time", "lane")
        if not LANE_NAME.fullmatch(lane):
            message = "the name of a lane is 1 to 256 letters, digits, '_', '.' and '-'"
            raise invalid_request(message, "lane")
        used = self._last.keys() - {None}
        if not self._sockets or not self._sockets[-1].usable:
            used = set()  # the request opens another one
        if lane not in used and len(used) >= settings.lanes:
            raise invalid_request(f"a connection has at most {settings.lanes} lanes", "lane")

    # --- for the streams of the connection ---

    def steering(self, prompt: str | Sequence[ResponseItem]) -> tuple[ResponseItem, ...]:
        """The messages to steer with.

        Raises:
            StreamError: `invalid_request`, code `steer`.
        """
        if not self.settings.steers:
            name = self._config.target.provider.name
            raise invalid_request(f"{name} cannot steer responses", "steer")
        items = (user(prompt),) if isinstance(prompt, str) else tuple(prompt)
        for item in items:
            if not isinstance(item, Message) or item.role != "user":
                raise invalid_request("only user messages can steer a response", "steer")
        return items

    async def send_steering(
        self, socket: LaneSocket, response_id: str, items: tuple[ResponseItem, ...]
    ) -> None:
        """Sends messages of steering, and waits for what the server says to them."""
        request = build_for(Prompt(items), self._config.target)
        message = steer_message(response_id, request.body)
        deadlines = self._config.deadlines
        try:
            with anyio.fail_after(deadlines.idle):
                await socket.steer(response_id, message)
        except TimeoutError:
            failure = deadline_error("idle", deadlines)
        except StreamError as error:
            failure = self.handshake.redact(error.info)
        else:
            return
        raise StreamError(failure)

    def _make_stream(self, config: StreamConfig) -> LaneStream:
        if self._config.on_event is not None:
            return HookedLaneStream(config, self._config.on_event)
        return LaneStream(config)

    def check_loop(self) -> None:
        """Raises unless the running event loop is that of the client."""
        self._config.loop_guard.check()

    def note_request(self, source: LaneSource) -> None:
        """A request is sent: the next one of its lane may continue it."""
        self._last[source.lane] = source

    def last_request(self, lane: str | None) -> LaneSource | None:
        """The latest request of a lane."""
        return self._last.get(lane)

    async def usable_socket(self) -> LaneSocket:
        """The socket for a request: the newest one, or another if it is lost or too old.

        Raises:
            StreamError: it could not be opened.
        """
        async with self._opening:
            if self._closed:
                raise StreamError(CLOSED)
            if self._sockets:
                newest = self._sockets[-1]
                await newest.look()
                if self._takes_request(newest):
                    return newest
            await self._close_unused()
            opened = await self._open()
            if self._closed:  # by another task, meanwhile
                await opened.aclose(CLOSED)
                raise StreamError(CLOSED)
            self._sockets.append(opened)
            # Lanes are counted anew on another socket, and no response is known there.
            self._last.clear()
            return opened

    def _takes_request(self, socket: LaneSocket) -> bool:
        """Whether a socket is open, not too old, and free."""
        if not socket.usable:
            return False
        # A server with one response at a time refuses a second, and cannot cancel the first.
        if self.settings.in_flight == 1 and any(turn.abandoned for turn in socket.lanes.running):
            return False
        seconds = self.settings.seconds
        return seconds is None or self._config.clock() - socket.opened_at < seconds

    async def _close_unused(self) -> None:
        """Closes the sockets on which nobody reads a response any more."""
        for socket in list(self._sockets):
            if all(turn.abandoned for turn in socket.lanes.running):
                self._sockets.remove(socket)
                await socket.aclose(CLOSED)

    async def _open(self) -> LaneSocket:
        source = self.handshake
        await source.run_request_hook()
        try:
            upgrade = await source.send(self._config.deadlines)
        except StreamError as error:
            failure = source.redact(error.info)
        else:
            try:
                return await self._opened(upgrade)
            except BaseException:
                await upgrade.aclose()  # the hook raised, or its task was cancelled
                raise
        raise StreamError(failure)

    async def _opened(self, upgrade: HttpResponse) -> LaneSocket:
        source = self.handshake
        await source.run_response_hook(upgrade)
        if not isinstance(upgrade, Upgrade) or upgrade.socket is None:
            raise StreamError(source.redact(_refusal(upgrade)))
        config = self._config
        return LaneSocket(
            upgrade.socket, self.settings.buffered_bytes, config.clock, upgrade.headers
        )


def _parser_without_headers(
    parse: Parse, headers: Mapping[str, str] | None, received_at: datetime | None
) -> AnyParser:
    """The parser of a response, which has no rate limits where it has no headers of its own."""
    return parse(headers or None, received_at)


class _UpgradeTransport:
    """Sends the handshake of an `HttpSource`."""

    def __init__(self, limits: Limits, ssl_context: ssl.SSLContext | None) -> None:
        self._max_size = limits.event_bytes
        self._ssl_context = ssl_context

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """See `Transport`."""
        return await open_websocket(url, headers, deadlines, self._max_size, self._ssl_context)

    async def aclose(self) -> None:
        """Nothing: each socket is closed by its connection."""


def _handshake(config: ConnectionConfig, settings: WebSocketSettings) -> HttpSource:
    load_websockets()
    # Headers as of any request to this target.
    request = build_for(Prompt("-"), config.target)
    headers = joined_headers(settings.headers, request.headers)
    headers = joined_headers(headers, checked_headers(config.headers))
    handshake = msgspec.structs.replace(request, method="GET", headers=headers, body=b"", report=[])
    return HttpSource(
        _UpgradeTransport(config.limits, config.ssl_context),
        handshake,
        config.keys,
        config.target.provider,
        config.key,
        config.now,
        config.loop_guard,
        config.hooks,
    )


def _refusal(response: HttpResponse) -> ErrorInfo:
    """Why the server did not open a WebSocket."""
    body = getattr(response, "body", b"")
    error = classify(response.status, body, response.headers)
    if response.status == 426 or 200 <= response.status < 400:
        message = (
            f"the server opens no WebSocket (HTTP {response.status}): "
            "send the request with `Client.stream`"
        )
        return ErrorInfo("invalid_request", message, status=response.status, code="no_websocket")
    return error
