"""WebSocket connections: the sans-I/O protocol of `websockets` over anyio's byte streams.

    upgrade = await open_websocket(url, headers, deadlines, max_size)
    await upgrade.socket.send(b"{}")
    messages = upgrade.socket.feed(await upgrade.socket.read())

Runs on asyncio and on trio and starts no task that outlives a call. Whoever reads also answers
pings (`flush`). A message that is sent is split into fragments, so that a ping is answered between
two of them. Proxies are not supported. `websockets` is imported when it is first needed.
"""

from __future__ import annotations

import importlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream

from streamlib.transport.closing import CLOSING_SECONDS, ShieldedAwait
from streamlib.transport.deadlines import Deadlines, Phase, deadline_error
from streamlib.transport.errors import FailurePoint, classify_exception
from streamlib_parsers.errors import ErrorInfo, ErrorKind, limit_exceeded
from streamlib_parsers.redaction import redact
from streamlib_parsers.stream_error import StreamError, invalid_request

READ_BYTES: Final = 64 * 1024
"""Maximum bytes of one read."""

FRAGMENT_BYTES: Final = 64 * 1024
"""Longer messages are sent in fragments of this many bytes."""

HANDSHAKE_HEADERS: Final = frozenset(
    {
        "connection",
        "content-length",
        "content-type",
        "host",
        "upgrade",
        "sec-websocket-accept",
        "sec-websocket-extensions",
        "sec-websocket-key",
        "sec-websocket-version",
    }
)
"""Headers of the handshake itself, and those of a body: the request's own are not sent."""

CLOSE_KINDS: Final[dict[int, ErrorKind]] = {
    1002: "invalid_request",
    1003: "invalid_request",
    1007: "invalid_request",
    1008: "permission",
    1009: "request_too_large",
    1011: "server_error",
    1013: "overloaded",
    3000: "authentication",
    3003: "permission",
    3008: "stalled",
}
"""Close code (RFC 6455, 7.4, and IANA's registry) to kind; any other is `truncated`."""

_RETRYABLE_CLOSES: Final = frozenset({"server_error", "overloaded", "stalled", "truncated"})

LOST: Final = (
    OSError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.BusyResourceError,  # TLS renewed its keys while a message was sent
)
"""Exceptions of sockets whose connection cannot be used any more."""

SILENT: Final = logging.getLogger("streamlib.websocket.silent")
"""A logger without output, for `websockets`: it would log the handshake's headers, with the key."""
SILENT.setLevel(logging.CRITICAL + 1)
SILENT.propagate = False


class SocketClosed(Exception):
    """The connection is closed; `info` is the failure."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


class Upgrade:
    """The response to an opening handshake, as an `HttpResponse`.

    Attributes:
        status: HTTP status; 101 if there is a socket.
        headers: names in lower case.
        body: body of a refusal.
        socket: None if the server refused.
    """

    def __init__(
        self, status: int, headers: dict[str, str], body: bytes, socket: WebSocket | None
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.socket = socket
        self.chunks: AsyncIterator[bytes] = _single(body)

    async def aclose(self) -> None:
        """Closes the socket."""
        if self.socket is not None:
            await self.socket.aclose()


async def _single(body: bytes) -> AsyncIterator[bytes]:
    yield body


def load_websockets() -> Any:
    """The module `websockets.client`, where `websockets.uri` is loaded too.

    Raises:
        StreamError: `invalid_request`, code `websockets_missing`: it is not installed.
    """
    try:
        importlib.import_module("websockets.uri")
        return importlib.import_module("websockets.client")
    except ModuleNotFoundError:
        message = (
            "Responses over WebSocket need the package websockets: "
            "pip install 'streamlib[websocket]'"
        )
        # Raised without the exception, which adds nothing to the message.
        error = invalid_request(message, "websockets_missing")
    raise error


async def open_websocket(
    url: str,
    headers: Mapping[str, str],
    deadlines: Deadlines,
    max_size: int,
    ssl_context: ssl.SSLContext | None = None,
) -> Upgrade:
    """Connects, and performs the opening handshake.

    Args:
        url: the URL, with `https:` or `http:` as for a request.
        headers: headers of the handshake, the key among them.
        deadlines: `connect` applies to TCP and TLS together, `headers` to the handshake.
        max_size: maximum bytes of a message; a longer one ends the connection.
        ssl_context: TLS context; None: one with the system's certificates.

    Raises:
        StreamError: there is no connection, or no response to the handshake.
    """
    client = load_websockets()
    uri = importlib.import_module("websockets.uri")
    parts = urlsplit(url)
    scheme = "wss" if parts.scheme == "https" else "ws"
    parsed = uri.parse_uri(parts._replace(scheme=scheme, fragment="").geturl())
    protocol = client.ClientProtocol(parsed, max_size=max_size, logger=SILENT)
    stream: ByteStream = await _within(
        "connect", deadlines, lambda: _connect(parsed.host, parsed.port, scheme, ssl_context)
    )
    request = protocol.connect()
    for name, value in headers.items():
        if name not in HANDSHAKE_HEADERS:
            request.headers[name] = value
    protocol.send_request(request)
    del request, headers  # a traceback shows the locals of this frame
    try:
        upgrade: Upgrade = await _within(
            "headers", deadlines, lambda: _shake_hands(stream, protocol, max_size)
        )
    except BaseException:
        await ShieldedAwait(anyio.aclose_forcefully(stream))
        raise
    return upgrade


async def _connect(
    host: str, port: int, scheme: str, ssl_context: ssl.SSLContext | None
) -> ByteStream:
    if scheme == "ws":
        return await anyio.connect_tcp(host, port)
    return await anyio.connect_tcp(
        host, port, tls=True, ssl_context=ssl_context, tls_standard_compatible=False
    )


async def _within(phase: Phase, deadlines: Deadlines, step: Callable[[], Awaitable[Any]]) -> Any:
    """Awaits a step of the opening within its deadline.

    Raises:
        StreamError: it failed, or took too long.
    """
    failure: ErrorInfo
    try:
        with anyio.fail_after(getattr(deadlines, phase)):
            return await step()
    except TimeoutError:
        failure = deadline_error(phase, deadlines)
    except StreamError as error:
        failure = error.info
    except (*LOST, anyio.EndOfStream) as e:
        failure = classify_exception(
            e, FailurePoint(has_response=False, phase=phase, deadlines=deadlines)
        )
    # Raised outside of `except`: the frames of the original exception hold the headers.
    raise StreamError(failure)


async def _shake_hands(stream: ByteStream, protocol: Any, max_size: int) -> Upgrade:
    await stream.send(b"".join(protocol.data_to_send()))
    events: list[Any] = []
    while not events and protocol.handshake_exc is None:
        try:
            protocol.receive_data(await stream.receive(READ_BYTES))
        except anyio.EndOfStream:
            protocol.receive_eof()
            events = protocol.events_received()
            break
        events = protocol.events_received()
    if not events:
        message = "the server answered the handshake with something that is not HTTP"
        raise StreamError(ErrorInfo("malformed", message, code="handshake"))
    response = events[0]
    headers: dict[str, str] = {}
    for name, value in response.headers.raw_items():
        lowered = name.lower()
        if lowered in headers:
            value = f"{headers[lowered]}, {value}"  # noqa: PLW2901
        headers[lowered] = value
    if protocol.handshake_exc is None:
        socket = WebSocket(stream, protocol, events[1:], max_size)
        return Upgrade(response.status_code, headers, b"", socket)
    await ShieldedAwait(anyio.aclose_forcefully(stream))
    if response.status_code == 101:
        message = f"the server's handshake is wrong: {protocol.handshake_exc}"
        raise StreamError(ErrorInfo("malformed", redact(message), code="handshake"))
    return Upgrade(response.status_code, headers, bytes(response.body or b""), None)


class WebSocket:
    """An open connection.

    One task at a time may `read`, another one may `send` meanwhile.

    Args:
        stream: the socket, behind TLS.
        protocol: a `websockets.client.ClientProtocol` or `websockets.server.ServerProtocol` whose
            handshake is done.
        early: frames that were received together with the handshake.
        max_size: bytes of a message, for the error about a longer one.
    """

    def __init__(self, stream: ByteStream, protocol: Any, early: list[Any], max_size: int) -> None:
        self._stream = stream
        self._protocol = protocol
        self._early = early
        """Frames that `feed` returns first."""
        self._max_size = max_size
        self._fragments = bytearray()
        """The received part of the current message. One buffer, since a peer may send any number of
        fragments, empty ones too."""
        self._writing = anyio.Lock()
        """Held while bytes are written: half a frame must not be followed by another."""
        self._sending = anyio.Lock()
        """Held while a message is sent: its fragments follow one another."""
        self._is_broken = False
        """Set if writing ended in the middle of a frame."""

    # --- receiving ---

    async def read(self) -> bytes:
        """Bytes from the peer, for `feed`.

        Raises:
            SocketClosed: the connection ended.
        """
        try:
            return await self._stream.receive(READ_BYTES)
        except anyio.EndOfStream:
            self._protocol.receive_eof()
            raise self._closed() from None
        except LOST as error:
            self._protocol.receive_eof()
            raise self._closed(type(error).__name__) from None

    def feed(self, data: bytes) -> list[bytes]:
        """The complete messages of what was read. Afterwards look at `closed` and `has_output`."""
        if data:
            self._protocol.receive_data(data)
        frames = [*self._early, *self._protocol.events_received()]
        self._early = []
        messages: list[bytes] = []
        for frame in frames:
            if frame.opcode.name not in ("TEXT", "BINARY", "CONT"):
                continue
            self._fragments += frame.data
            if frame.fin:
                messages.append(bytes(self._fragments))
                self._fragments.clear()
        return messages

    @property
    def closed(self) -> ErrorInfo | None:
        """How the peer, or a violation of the protocol, closed the connection; None if open."""
        if self._protocol.state.name == "OPEN":
            return None
        return self._closed().info

    def _closed(self, cause: str = "") -> SocketClosed:
        violation = self._protocol.parser_exc
        name = type(violation).__name__
        if name == "PayloadTooBig":
            return SocketClosed(limit_exceeded("event_bytes", self._max_size).info)
        received = self._protocol.close_rcvd
        if received is not None:
            return SocketClosed(close_error(received.code, received.reason))
        if name in ("ProtocolError", "UnicodeDecodeError"):
            message = redact(f"what was received is not valid WebSocket: {violation}")
            return SocketClosed(ErrorInfo("malformed", message, code=name))
        return SocketClosed(close_error(1006, cause))

    # --- sending ---

    @property
    def has_output(self) -> bool:
        """Whether `flush` has something to write: a pong, or the answer to a close."""
        return bool(self._protocol.writes)

    async def flush(self) -> None:
        """Writes the protocol's own frames, unless another task is writing, which then does it."""
        if not self._writing.locked():
            await self._finish(self._write)

    async def send(self, message: bytes, on_start: Callable[[], None] | None = None) -> None:
        """Sends a text message. Once started it is completed, even if the caller is cancelled.

        Another task must read meanwhile: a peer whose pings are not answered closes the
        connection.

        Args:
            message: UTF-8.
            on_start: called right before the first byte is written.

        Raises:
            SocketClosed: the connection ended before the message was sent.
        """
        async with self._sending:
            if self._is_broken or self._protocol.state.name != "OPEN":
                raise self._closed()
            if on_start is not None:
                on_start()
            await self._finish(lambda: self._send_fragments(message))

    async def _send_fragments(self, message: bytes) -> None:
        last = max(len(message) - 1, 0) // FRAGMENT_BYTES
        for number in range(last + 1):
            start = number * FRAGMENT_BYTES
            fragment = message[start : start + FRAGMENT_BYTES]
            if self._protocol.state.name != "OPEN":
                raise self._closed()
            if number == 0:
                self._protocol.send_text(fragment, number == last)
            else:
                self._protocol.send_continuation(fragment, number == last)
            await self._write()

    async def _write(self) -> None:
        """Writes everything that the protocol has to send."""
        async with self._writing:
            while self._protocol.writes:
                data = b"".join(self._protocol.data_to_send())
                if data:  # no bytes: the end of the stream, which `aclose` makes
                    await self._stream.send(data)

    async def _finish(self, step: Callable[[], Awaitable[None]]) -> None:
        """Runs a step to its end: if the caller is cancelled, it has `CLOSING_SECONDS` left.

        Raises:
            SocketClosed: the connection ended, or the step was given up.
        """
        finished = anyio.Event()
        scope = anyio.CancelScope(shield=True)
        failures: list[SocketClosed] = []

        async def run() -> None:
            with scope:
                try:
                    await step()
                except SocketClosed as closed:
                    failures.append(closed)
                except LOST as error:
                    failures.append(self._closed(type(error).__name__))
            finished.set()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                try:
                    await finished.wait()
                except BaseException:
                    scope.deadline = anyio.current_time() + CLOSING_SECONDS
                    raise
        finally:
            if scope.cancel_called:
                self._is_broken = True
                await anyio.aclose_forcefully(self._stream)  # wakes the task that reads
        if failures:
            raise failures[0]

    # --- the end ---

    async def aclose(self) -> None:
        """Sends a close frame if that is possible at once, and closes the socket."""
        await ShieldedAwait(self._close())

    async def _close(self) -> None:
        try:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLOSING_SECONDS):
                if self._protocol.state.name == "OPEN" and not self._sending.locked():
                    self._protocol.send_close(1000)
                if not self._is_broken:
                    await self._write()
        except LOST:
            pass
        finally:
            # asyncio's own cancellation knows no shield: it may have ended the write.
            await anyio.aclose_forcefully(self._stream)


def close_error(code: int, reason: str) -> ErrorInfo:
    """The failure of a response that ran when the connection was closed.

    Args:
        code: close code of the frame; 1006 if there was none.
        reason: the frame's text, or what ended the connection.
    """
    kind = CLOSE_KINDS.get(code, "truncated")
    message = "the WebSocket was closed before the response was complete"
    if code == 1006:
        message = "the connection was lost before the response was complete"
    shown = redact(reason[:200]).strip()
    if shown:
        message += f" ({code}: {shown})"
    else:
        message += f" ({code})"
    return ErrorInfo(
        kind,
        message,
        kind in _RETRYABLE_CLOSES,
        code=f"websocket_{code}",
        detail={"close_code": code, "reason": shown},
    )
