"""An ASGI application as a transport of httpx and httpx2, which delivers what is sent at once.

Their own transports run the application to its end before the client sees a byte, and know no read
timeout.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

import anyio
import httpx
import httpx2
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream


class StreamingASGI(httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport):
    """Serves requests in the block of its HTTP client, whose end ends those that are under way.

    Args:
        app: the application.
        library: `httpx` or `httpx2`, whose requests it serves.
    """

    def __init__(self, app: Any, library: Any = httpx) -> None:
        self._app = app
        self._library = library
        self._group: TaskGroup | None = None
        self._responses: list[_Messages] = []
        """Every one, since an SDK that has failed leaves its response open."""

    async def __aenter__(self) -> StreamingASGI:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        assert self._group is not None
        self._group.cancel_scope.cancel()
        for messages in self._responses:
            await messages.aclose()
        await self._group.__aexit__(kind, error, traceback)

    async def handle_async_request(self, request: Any) -> Any:
        """Serves one request of the library."""
        assert self._group is not None
        send, receive = anyio.create_memory_object_stream[dict[str, Any]](1000)
        body = await request.aread()
        self._group.start_soon(self._run, request, body, send)
        read = request.extensions.get("timeout", {}).get("read")
        messages = _Messages(receive, self._library.ReadTimeout, read)
        self._responses.append(messages)
        start = await messages.next()
        return self._library.Response(
            start["status"], headers=start["headers"], stream=messages, request=request
        )

    async def _run(
        self, request: Any, body: bytes, messages: MemoryObjectSendStream[dict[str, Any]]
    ) -> None:
        url = request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0],
            "query_string": url.query,
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        is_read = False

        async def receive() -> dict[str, Any]:
            nonlocal is_read
            if is_read:
                await anyio.sleep_forever()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            try:
                await messages.send(message)
            except anyio.BrokenResourceError:
                raise OSError("the client has left") from None

        async with messages:
            await self._app(scope, receive, send)


class _Messages(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """The messages of one response, each within the read timeout of its request."""

    def __init__(
        self,
        messages: MemoryObjectReceiveStream[dict[str, Any]],
        late: type[Exception],
        read: float | None,
    ) -> None:
        self._messages = messages
        self._late = late
        self._read = read

    async def next(self) -> dict[str, Any]:
        """The next message."""
        try:
            with anyio.fail_after(self._read):
                return await self._messages.receive()
        except TimeoutError:
            raise self._late("the read timed out") from None

    async def aclose(self) -> None:
        """The client reads no further."""
        self._messages.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            message = await self.next()
            yield message.get("body", b"")
            if not message.get("more_body"):
                return
