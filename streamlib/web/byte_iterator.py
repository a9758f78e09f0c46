"""`iter_bytes`: a stream or a run as an async iterator of bytes, for frameworks without ASGI apps.

A response is served as on an ASGI server, by tasks in a group that the first step of the iteration
opens and the last one closes; the iteration takes the bytes that they send.
"""

from __future__ import annotations

import threading
from typing import Final, Self

import anyio
import anyio.abc
import anyio.from_thread
import anyio.lowlevel

from streamlib.asgi import AsgiExchange, Message
from streamlib.pipeline.branches import leave_group
from streamlib.web.event_sender import EventSender
from streamlib.web.public_errors import ErrorText, public_text
from streamlib.web.sources import (
    AnyEncoder,
    EventSource,
    OnDone,
    UIProtocol,
    check_response,
    encoder_for,
    stream_headers,
)
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed

BUFFER_BYTES: Final = 64 << 10
"""Bytes that may wait for a slow reader before the model's stream is read no further."""


def iter_bytes(
    stream: EventSource,
    protocol: UIProtocol | AnyEncoder,
    *,
    ping: float | None = 15.0,
    on_done: OnDone | None = None,
    error_text: ErrorText = public_text,
) -> ByteIterator:
    """The bytes of a response for a front end, as an async iterator.

        StreamingHttpResponse(iter_bytes(client.stream(prompt, model), "vercel"))   # Django

    Every failure becomes the protocol's error part, even one before the first event: the status
    was sent already.
    Arguments as in `StreamResponse`. Iterate in one task, and inside one cancel scope; ``async
    with`` closes the stream where the loop is left early.
    """
    return ByteIterator(stream, protocol, ping=ping, on_done=on_done, error_text=error_text)


class ByteIterator:
    """What `iter_bytes` returns.

    Attributes:
        headers: the headers to send with the bytes.
    """

    def __init__(
        self,
        stream: EventSource,
        protocol: UIProtocol | AnyEncoder,
        *,
        ping: float | None,
        on_done: OnDone | None,
        error_text: ErrorText,
    ) -> None:
        check_response(stream, ping, on_done, error_text)
        encode = encoder_for(protocol, stream)
        self.headers = {"content-type": encode.media_type, **stream_headers(encode)}
        self._encode = encode
        self._pipe = _Pipe()
        # The framework sends status and headers.
        self._exchange = AsgiExchange({}, self._pipe.receive, self._pipe.send, lambda: (200, {}))
        """Leaving it ends the tasks, but not whoever iterates."""
        self._sender = EventSender(
            stream,
            encode,
            self._exchange,
            self._refuse,
            ping=ping,
            error_text=error_text,
            on_done=on_done,
        )
        self._group: anyio.abc.TaskGroup | None = None
        """Holds the tasks; None before the first step and after the last."""
        self._is_block = False
        """Set inside ``async with``, which opens and closes the group: a single step may be in a
        cancel scope of the caller's, where a group can be neither opened nor closed."""
        self._ended = False
        """Everything was read, or the iterator was closed."""
        self._token: anyio.lowlevel.EventLoopToken | None = None
        """The event loop of the tasks, for `close`."""
        self._thread = 0
        """The thread of that loop."""

    async def __aenter__(self) -> Self:
        self._is_block = True
        if self._group is None and not self._ended:
            await self._start()
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        await self._leave(error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        try:
            if self._group is None:
                await self._start()
            data = await self._pipe.read()
        except BaseException:
            await self._end()
            raise
        if data:
            return data
        await self._end()
        if self._pipe.failure is not None:
            raise self._pipe.failure
        raise StopAsyncIteration

    async def _start(self) -> None:
        self._token = anyio.lowlevel.current_token()
        self._thread = threading.get_ident()
        self._group = await anyio.create_task_group().__aenter__()
        self._group.start_soon(self._serve)

    async def _serve(self) -> None:
        try:
            await self._sender.serve()
        except Exception as error:  # noqa: BLE001
            # Raised by the iteration, where no task group wraps it.
            self._pipe.failure = error
        self._pipe.end()

    async def _refuse(self, error: ErrorInfo) -> None:
        """Writes an early failure as the stream's error part."""
        await self._exchange.write(self._encode.feed(Failed(error)) + self._encode.close())

    async def _end(self) -> None:
        """Ends the iteration after a step."""
        if not self._is_block:
            await self.aclose()
            return
        # `__aexit__` waits for the tasks that this ends.
        self._ended = True
        self._exchange.leave()

    async def aclose(self) -> None:
        """Ends the iteration and closes the connection to the model. A second call does nothing."""
        await self._leave(None)

    async def _leave(self, error: object) -> None:
        self._ended = True
        group = self._group
        self._group = None
        if group is not None:
            await leave_group(group, error)

    def close(self) -> None:
        """Ends the iteration from any thread, without waiting; Django closes its streams so."""
        self._ended = True
        if self._group is None or self._token is None:
            return
        if threading.get_ident() == self._thread:
            self._exchange.leave()
        else:
            anyio.from_thread.run_sync(self._exchange.leave, token=self._token)


class _Pipe:
    """Takes the place of an ASGI server: bytes on their way from the task that sends them to the
    task that iterates."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._ended = False
        """No more bytes will be sent."""
        self.failure: Exception | None = None
        """What the application's own code raised; the iteration raises it after all bytes."""
        self._arrived = anyio.Event()
        """Set when there are bytes, or no more of them; a new one for each wait."""
        self._taken = anyio.Event()
        """Set when the buffer was emptied; a new one for each wait."""

    async def receive(self) -> Message:
        """Receives nothing: whoever iterates leaves by closing the iterator."""
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def send(self, message: Message) -> None:
        """Buffers bytes, and waits while too many of them are not read."""
        self._buffer += message.get("body", b"")
        self._arrived.set()
        while len(self._buffer) > BUFFER_BYTES:
            self._taken = anyio.Event()
            await self._taken.wait()

    def end(self) -> None:
        """Marks the end: no more bytes will be written."""
        self._ended = True
        self._arrived.set()

    async def read(self) -> bytes:
        """All bytes that were written meanwhile; empty at the end."""
        while not self._buffer and not self._ended:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        data = bytes(self._buffer)
        self._buffer.clear()
        self._taken.set()
        return data
