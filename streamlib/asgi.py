"""One HTTP request on an ASGI server, and its response, without a framework.

    request ── headers ── bytes … ── end
                 │ the client disconnects: what its block does is cancelled
                 │ nothing was written for some seconds: a ping
                 └ stopped by the application, or cancelled by the server: `end_early`

A response has three tasks, however many events: one writes it, one waits for the client to
disconnect, one sleeps until a ping is due.
"""

from __future__ import annotations

import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

import anyio
from msgspec import Struct

Scope: TypeAlias = MutableMapping[str, Any]
"""The server's description of a request: ``method``, ``path``, ``headers``, ``client`` …; a
framework adds keys such as ``user`` and ``session``."""

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
"""Headers as ASGI takes them; a name may occur twice."""

Headers: TypeAlias = Mapping[str, str] | Sequence[tuple[bytes, bytes]]

Head: TypeAlias = tuple[int, Headers]
"""Status and headers of a response."""

UNBUFFERED: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Nothing between the server and the client may store or buffer a stream; nginx reads the second
one."""

SSE_HEADERS: Final = {"content-type": "text/event-stream", **UNBUFFERED}
"""Headers of a stream of server-sent events."""

COMMENT: Final = b": ping\n\n"
"""A ping of server-sent events: readers ignore comments."""

END_SECONDS: Final = 1.0
"""Seconds in which a client must receive the end of a response that ends early."""

WITHOUT_BODY: Final = frozenset({204, 304})
"""Statuses of responses that have no body, and no length of one."""


class Pings(Struct, frozen=True):
    """What is written while a response is silent: proxies close a silent connection.

    Attributes:
        data: makes the bytes of a ping, which readers ignore.
        seconds: silence before a ping; None: there are no pings.
        until: when the response ends by itself, on the event loop's clock: no ping from then on.
    """

    data: Callable[[], bytes]
    seconds: float | None
    until: float = math.inf


def comments(seconds: float | None, until: float = math.inf) -> Pings:
    """Pings of server-sent events; the arguments are those of `Pings`."""
    return Pings(lambda: COMMENT, seconds, until)


class AsgiExchange:
    """One HTTP request and its response."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, head: Callable[[], Head] | None = None
    ) -> None:
        """Prepares the response; nothing is sent yet.

        Args:
            scope: of the request.
            receive: receives messages of the server.
            send: sends messages to the server.
            head: see the attribute.
        """
        self.scope = scope
        self.receive = receive
        self.head = head
        """Makes status and headers for a `write` or a ping that comes before `start`."""
        self.is_started = False
        """Whether headers were sent: after that, a failure can only be part of the body."""
        self.is_ended = False
        """Whether the last bytes were sent: a client that disconnects then has everything."""
        self.client_left = False
        """Whether the client disconnected before that, so that nobody reads the response."""
        self._send = send
        self._tasks: anyio.CancelScope | None = None
        """Cancelled when the client disconnects, and by `stop`; None before the block."""
        self._is_stopped = False
        self._last_write = -math.inf
        """Time of the last write, on the event loop's clock."""
        self._write_lock = anyio.Lock(fast_acquire=True)
        """Held while the server takes bytes; pings are written by another task."""

    # --- the request ---

    @property
    def method(self) -> str:
        """The method, in capital letters."""
        method: str = self.scope["method"]
        return method

    @property
    def path(self) -> str:
        """The path, relative to the path at which a framework mounted the application."""
        path: str = self.scope["path"]
        root: str = self.scope.get("root_path", "").rstrip("/")
        if root and path.startswith(root + "/"):
            return path[len(root) :]
        return path

    def header(self, name: str) -> str | None:
        """The value of a request header, by its lower-case name; None if it is missing."""
        wanted = name.encode()
        for key, value in self.scope["headers"]:
            if key == wanted:
                text: str = value.decode("latin-1")
                return text
        return None

    def query(self, name: str) -> list[str]:
        """All values of a query parameter."""
        raw: bytes = self.scope.get("query_string", b"")
        values = parse_qs(raw.decode("latin-1"), keep_blank_values=True)
        return values.get(name, [])

    # --- while the client is there ---

    @asynccontextmanager
    async def while_connected(
        self,
        pings: Pings | None = None,
        end_early: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncGenerator[None]:
        """Runs the block until the client disconnects; code after the block always runs.

        Args:
            pings: what is written while the block is silent.
            end_early: sends the end of a response that `stop` ends, or that the server cancels:
                without it a client would have to guess from the connection that it is not complete.

        Raises:
            Exception: what the block raised, not wrapped in a group. What the server itself raises
                while it is listened to or pinged comes in a group.
        """
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as group:
                self._tasks = group.cancel_scope
                if self._is_stopped or self.client_left:
                    group.cancel_scope.cancel()
                group.start_soon(self._wait_for_disconnect)
                if pings is not None and pings.seconds is not None:
                    group.start_soon(self._send_pings, pings, pings.seconds)
                try:
                    yield
                except anyio.get_cancelled_exc_class():
                    raise
                except BaseException as error:  # noqa: BLE001
                    # Raised below, where no task group wraps it; Ctrl-C, too.
                    failure = error
                # The other tasks wait for what no longer matters.
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            await self._end_early(end_early)
            raise
        if self._is_stopped:
            await self._end_early(end_early)
        if failure is not None:
            raise failure

    def stop(self) -> None:
        """Ends the response early: its block is cancelled, then `end_early` is called."""
        self._is_stopped = True
        self._cancel()

    def leave(self) -> None:
        """Ends the response as if its client had disconnected."""
        self.client_left = True
        self._cancel()

    def _cancel(self) -> None:
        if self._tasks is not None:
            self._tasks.cancel()

    async def _wait_for_disconnect(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        # Servers report it after a complete response, too.
        if not self.is_ended:
            self.leave()

    async def _end_early(self, end_early: Callable[[], Awaitable[None]] | None) -> None:
        if end_early is None or self.is_ended or self.client_left:
            return
        with anyio.move_on_after(END_SECONDS, shield=True):
            await end_early()

    async def _send_pings(self, pings: Pings, silence: float) -> None:
        seconds = silence
        while True:
            await anyio.sleep(seconds)
            if anyio.current_time() >= pings.until:
                return
            seconds = self._last_write + silence - anyio.current_time()
            if seconds > 0:
                continue
            seconds = silence
            # While a write is blocked the client is not reading: it has bytes waiting already.
            if not self.is_ended and not self._write_lock.locked():
                await self.write(pings.data())

    # --- the response ---

    async def respond(self, status: int, headers: Headers | None = None, body: bytes = b"") -> None:
        """Sends a response that is not a stream."""
        fields = raw_headers(headers or {})
        if status not in WITHOUT_BODY:
            fields.append((b"content-length", str(len(body)).encode()))
        await self.start(status, fields)
        if self.scope.get("method") == "HEAD":
            body = b""
        await self.write(body, more=False)

    async def start(self, status: int, headers: Headers) -> None:
        """Sends status and headers."""
        self.is_started = True
        fields = raw_headers(headers)
        await self._send_message(
            {"type": "http.response.start", "status": status, "headers": fields}
        )

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Sends bytes, after the headers; waits while the client reads more slowly.

        Args:
            data: bytes of the body.
            more: whether further bytes follow.
        """
        async with self._write_lock:
            if not self.is_started and self.head is not None:
                await self.start(*self.head())
            if more and not data:
                return
            # Before it is sent: whoever cancels the last write must not send another end.
            self.is_ended = not more
            await self._send_message(
                {"type": "http.response.body", "body": data, "more_body": more}
            )
            self._last_write = anyio.current_time()

    async def write_all(self, frames: AsyncIterable[bytes]) -> None:
        """Sends frames as they come, and the end of the body."""
        async for data in frames:
            await self.write(data)
        await self.end()

    async def end(self) -> None:
        """Ends the body, unless the client disconnected or the response never began."""
        if self.is_started and not self.is_ended and not self.client_left:
            await self.write(b"", more=False)

    async def _send_message(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            # ASGI 2.4: the server reports in this way that the client disconnected.
            self.leave()


def raw_headers(headers: Headers) -> RawHeaders:
    """Headers as ASGI takes them."""
    if not isinstance(headers, Mapping):
        return list(headers)
    # A value may hold a model's name, and that any character: one that no header can carry
    # becomes "?".
    return [
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in headers.items()
    ]
