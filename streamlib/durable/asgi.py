"""One HTTP request and its response on an ASGI server, without a framework."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

import anyio
import msgspec

from streamlib.durable.errors import LogError

Scope: TypeAlias = MutableMapping[str, Any]
"""The server's description of a request: ``method``, ``path``, ``headers``, ``client`` …; a
framework adds keys such as ``user`` and ``session``."""

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

SECURITY_HEADERS: Final = {
    # A log contains JSON from a model: no browser may read it as a page or a script.
    "x-content-type-options": "nosniff",
    # Protects against embedding by other sites without CORS; `fetch` with CORS still works.
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every response."""

SSE_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # else nginx would buffer events
}

RETRY_AFTER: Final = "1"
"""Seconds after which a client may retry while the engine does not respond."""


class Exchange:
    """One HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.headers_sent = False
        """Whether headers were sent: after that, a failure can only end the body."""
        self._receive = receive
        self._send = send
        self._serving = anyio.CancelScope()
        """Cancelled when the client disconnects."""
        self.client_left = False
        """Whether the client disconnected, so that nobody reads the response."""

    @property
    def path(self) -> str:
        """The path, relative to the path at which a framework mounted the application."""
        path: str = self.scope["path"]
        root: str = self.scope.get("root_path", "")
        if root and path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) :]
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

    async def respond(
        self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        """Sends a response without a stream."""
        fields = dict(headers or {})
        if status not in {204, 304}:
            fields.setdefault("content-length", str(len(body)))
        await self._start(status, fields)
        if self.method == "HEAD":
            body = b""
        await self._send_message({"type": "http.response.body", "body": body})

    async def refuse(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Sends an error: ``{"error": {"kind", "message"}}``."""
        body = msgspec.json.encode({"error": {"kind": kind, "message": message}})
        fields = {"content-type": "application/json", "cache-control": "no-store"}
        fields.update(headers or {})
        await self.respond(status, fields, body)

    async def refuse_log_error(self, error: LogError) -> None:
        """Sends the status for an error of a log; the body quotes nothing of the log."""
        match error.kind:
            case "gone" if error.known:
                await self.refuse(410, "gone", "the log was deleted, or has expired")
            case "gone":
                await self.refuse(404, "gone", "there is no such log")
            case "rewound":
                await self.refuse(
                    410, "rewound", "the log lost events that were read: read it from its start"
                )
            case _:
                fields = {"retry-after": RETRY_AFTER}
                await self.refuse(503, "unavailable", "logs cannot be read at the moment", fields)

    # --- streams ---

    @asynccontextmanager
    async def while_connected(self) -> AsyncGenerator[None]:
        """Runs the block until the client disconnects; code after the block always runs."""
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            self._serving = group.cancel_scope
            group.start_soon(self._wait_until_client_left)
            try:
                yield
            except Exception as error:  # noqa: BLE001
                # Raised below, so that no task group wraps it.
                failure = error
            group.cancel_scope.cancel()
        if failure is not None and not self.client_left:
            raise failure

    async def start_stream(self, headers: Mapping[str, str]) -> None:
        """Sends the status and the headers of a stream of server-sent events."""
        await self._start(200, {**SSE_HEADERS, **headers})

    async def write(self, data: bytes) -> None:
        """Sends bytes of a stream; waits while the client reads more slowly."""
        if data:
            message = {"type": "http.response.body", "body": data, "more_body": True}
            await self._send_message(message)

    async def end_stream(self) -> None:
        """Ends a stream, unless the client disconnected or the stream never began."""
        if self.headers_sent and not self.client_left:
            await self._send_message({"type": "http.response.body", "body": b""})

    async def _wait_until_client_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.client_left = True
        self._serving.cancel()

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.headers_sent = True
        fields = {**SECURITY_HEADERS, **headers}
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
        await self._send_message(
            {"type": "http.response.start", "status": status, "headers": encoded}
        )

    async def _send_message(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            # ASGI 2.4: the server reports in this way that the client disconnected.
            self._leave()


class Silence:
    """Times of keep-alives and of the end of a response.

    Args:
        ping: Seconds without data before a keep-alive is sent; None: never.
        lifetime: Seconds after which the response ends by itself; None: never.
    """

    def __init__(self, ping: float | None, lifetime: float | None = None) -> None:
        self._ping = math.inf if ping is None else ping
        self._ends_at = math.inf
        if lifetime is not None:
            self._ends_at = anyio.current_time() + lifetime

    @property
    def is_over(self) -> bool:
        """Whether the response has reached its lifetime."""
        return anyio.current_time() >= self._ends_at

    @property
    def seconds(self) -> float:
        """Seconds to wait for data before a keep-alive or the end is due."""
        return max(0.0, min(self._ping, self._ends_at - anyio.current_time()))
