"""Sends frames that come from elsewhere to one client, with keep-alives between them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Final

import anyio
from starlette.types import Receive, Send

from streamlib.gateway.headers import raw_headers
from streamlib.gateway.open_streams import END_SECONDS

STREAM_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Nothing between the gateway and the client may store or buffer a stream; nginx reads the
second."""


class EventStream:
    """Server-sent events on their way to one client."""

    def __init__(self, send: Send, headers: Mapping[str, str], ping: bytes, keep_alive: float):
        """Prepares a stream.

        Args:
            send: Of the request (ASGI).
            headers: Beside those of a stream.
            ping: What readers ignore.
            keep_alive: Seconds of silence before it is sent.
        """
        self._send = send
        self._headers = {"content-type": "text/event-stream", **STREAM_HEADERS, **headers}
        self._ping = ping
        self._keep_alive = keep_alive
        self._scope: anyio.CancelScope | None = None
        """Cancels all tasks of the stream; set while it is sent."""
        self._is_stopped = False
        self._is_started = False
        """Set when the headers are sent."""
        self._ended = False
        """Set when the last bytes are sent."""
        self._last_write = anyio.current_time()
        self._write_lock = anyio.Lock(fast_acquire=True)
        """Held while the server takes bytes; the keep-alive task writes too."""

    def stop(self) -> None:
        """Ends the stream early."""
        self._is_stopped = True
        if self._scope is not None:
            self._scope.cancel()

    async def run(
        self,
        frames: AsyncGenerator[bytes],
        receive: Receive,
        last_frame: Callable[[], bytes] | None = None,
    ) -> None:
        """Sends frames until their end, or until the client disconnects; then closes them.

        Args:
            frames: What is sent.
            receive: Of the request (ASGI).
            last_frame: Makes the frame that ends a stream which is stopped.
        """
        await self._serve(frames, receive)
        if self._is_stopped and last_frame is not None and not self._ended:
            with anyio.move_on_after(END_SECONDS), suppress(OSError):
                if not self._is_started:
                    await self._start()
                await self._write(last_frame(), more=False)

    async def _serve(self, frames: AsyncGenerator[bytes], receive: Receive) -> None:
        async with aclosing(frames), anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            if self._is_stopped:
                return
            group.start_soon(_wait_for_disconnect, receive, group.cancel_scope)
            try:
                await self._start()
                group.start_soon(self._send_keep_alives, group.cancel_scope)
                async for data in frames:
                    if data:
                        await self._write(data)
                await self._write(b"", more=False)
            except OSError:
                pass  # some servers raise one when the client has disconnected
            # The other two tasks wait for what no longer matters.
            group.cancel_scope.cancel()

    async def _start(self) -> None:
        headers = raw_headers(self._headers)
        self._is_started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        async with self._write_lock:
            # Before it is sent: whoever cancels the last write must not send another end.
            self._ended = not more
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
            self._last_write = anyio.current_time()

    async def _send_keep_alives(self, scope: anyio.CancelScope) -> None:
        try:
            await self._ping_when_silent()
        except OSError:
            scope.cancel()  # as above

    async def _ping_when_silent(self) -> None:
        while True:
            seconds = self._last_write + self._keep_alive - anyio.current_time()
            if seconds > 0:
                await anyio.sleep(seconds)
            elif self._write_lock.locked():
                # The client is not reading: it has bytes waiting already.
                await anyio.sleep(self._keep_alive)
            else:
                await self._write(self._ping)


async def _wait_for_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
