"""The server under the loopback provider: anyio sockets and h11, so that every fault a network has can be made.

One response a request, with a chosen size of HTTP chunk and a chosen pace. Faults happen after `at` chunks of the body:

    truncate     the stream ends cleanly, in the middle
    disconnect   the connection is reset, in the middle of a chunk
    malformed    a chunk that is not this wire
    stall        silence until the client goes
"""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import anyio
import h11
import msgspec
from anyio.abc import SocketAttribute, SocketStream, TaskStatus
from msgspec import Struct

from streamlib.errors import StreamError
from streamlib.loopback.responses import echo_response
from streamlib.request.prompt import Prompt
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import encode_body, encoder, error_body
from streamlib.wires.routes import Route, route
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent

Fault: TypeAlias = Literal["truncate", "disconnect", "malformed", "stall"]
Answer: TypeAlias = Callable[[Prompt, Any], Sequence[ResponseEvent]]


class Behaviour(Struct, frozen=True):
    """How the server answers.

    recordings: bodies to send as they are, one a request, in turn; without any, the answer is made of the request.
    chunk: bytes in one HTTP chunk (None: one event). pace: seconds between chunks. fault, at: what goes wrong, after how many chunks.
    status, headers: sent instead of 200, and beside the usual headers. failing: how many requests get the fault or the error, the first
    so many (None: all); those behind them go well, and get the recordings from the first on. What is no request of a wire does not count.
    """

    recordings: tuple[bytes, ...] = ()
    chunk: int | None = None
    pace: float = 0.0
    fault: Fault | None = None
    at: int = 3
    status: int = 200
    headers: dict[str, str] = {}
    failing: int | None = None

    def __post_init__(self) -> None:
        if self.fault is not None and self.fault not in get_args(Fault):
            raise ValueError(f"no fault {self.fault!r}; one of {', '.join(get_args(Fault))}")
        if self.failing is not None and self.failing < 0:
            raise ValueError(f"failing is how many requests fail, 0 or more: not {self.failing}")


LIMIT_HEADERS = {
    "anthropic-ratelimit-requests-limit": "1000",
    "anthropic-ratelimit-requests-remaining": "999",
    "anthropic-ratelimit-tokens-limit": "100000",
    "anthropic-ratelimit-tokens-remaining": "99000",
}
"""The loopback provider has limits too, so that a screen that shows them can be tried."""


async def serve(
    behaviour: Behaviour | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    answers: Answer = echo_response,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until cancelled; reports its base URL (`http://127.0.0.1:PORT`) when it listens: `url = await group.start(serve)`."""
    provider = Loopback(behaviour or Behaviour(), answers)
    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    async with listener:
        bound = listener.extra(SocketAttribute.local_port)
        task_status.started(f"http://{host}:{bound}")
        await listener.serve(provider.connection)


@asynccontextmanager
async def running(behaviour: Behaviour | None = None, *, port: int = 0) -> AsyncGenerator[str]:
    """A server beside the block, by its base URL. The block's own exceptions come out plain, not in a task group's wrapping."""
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        try:
            yield await group.start(partial(serve, behaviour, port=port))
        except Exception as error:  # noqa: BLE001  # raised again below, outside of the group
            raised = error
        group.cancel_scope.cancel()
    if raised is not None:
        raise raised


class Served(NamedTuple):
    """One answer: its status and media type, the chunks of its body, and how they are sent."""

    status: int
    media_type: str
    chunks: Iterator[bytes]
    behaviour: Behaviour


class Loopback:
    """What every connection shares: the behaviour, and which recording is next."""

    def __init__(self, behaviour: Behaviour, answers: Answer) -> None:
        self.behaviour = behaviour
        self._answers = answers
        self._asked = 0
        self._sent = 0

    def turn(self) -> Behaviour:
        """How the next request is answered."""
        self._asked += 1
        behaviour = self.behaviour
        if behaviour.failing is None:
            return behaviour
        if self._asked <= behaviour.failing:
            return msgspec.structs.replace(
                behaviour, recordings=() if behaviour.status >= 400 else behaviour.recordings[:1]
            )
        return msgspec.structs.replace(
            behaviour, fault=None, status=200 if behaviour.status >= 400 else behaviour.status
        )

    async def connection(self, stream: SocketStream) -> None:
        """One connection, request after request, until either side is done."""
        async with stream:
            try:
                await _Connection(stream, self).run()
            except (
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
                anyio.EndOfStream,
                h11.RemoteProtocolError,
            ):
                return

    def answer(
        self, found: Route | None, body: bytes, headers: dict[str, str], path: str
    ) -> Served:
        """What is sent for a request."""
        if found is None:
            return Served(
                404,
                "application/json",
                iter([b'{"error":{"message":"no such path","type":"not_found_error"}}']),
                Behaviour(),
            )
        try:
            prompt = parse_request(found.wire_api, body, headers=headers, path=path)
        except StreamError as error:
            return Served(
                400,
                "application/json",
                iter([msgspec.json.encode(error_body(found.wire_api, error.info))]),
                Behaviour(),
            )
        behaviour = self.turn()
        if behaviour.recordings:
            return Served(
                behaviour.status,
                _kind(found),
                _split(self._recording(behaviour), behaviour.chunk),
                behaviour,
            )
        return Served(*self._made(behaviour, found, prompt), behaviour)

    def _made(
        self, behaviour: Behaviour, found: Route, prompt: Prompt
    ) -> tuple[int, str, Iterator[bytes]]:
        wire_api = found.wire_api
        if behaviour.status >= 400:
            error = ErrorInfo(
                "overloaded" if behaviour.status >= 500 else "rate_limited",
                "the loopback provider was told to fail",
            )
            return (
                behaviour.status,
                "application/json",
                iter([msgspec.json.encode(error_body(wire_api, error))]),
            )
        prompt = msgspec.structs.replace(prompt, model=prompt.model or found.model)
        events = self._answers(prompt, wire_api)
        stream = prompt.stream if found.stream is None else found.stream
        if not stream:
            return (
                200,
                "application/json",
                iter([encode_body(wire_api, accumulate(events), model=prompt.model)]),
            )
        encode = encoder(wire_api, model=prompt.model)
        pieces = (
            piece for piece in (*(encode.feed(event) for event in events), encode.close()) if piece
        )
        return (
            200,
            encode.media_type,
            _split(b"".join(pieces), behaviour.chunk) if behaviour.chunk else iter(pieces),
        )

    def _recording(self, behaviour: Behaviour) -> bytes:
        """The next; the first again where this request is to fail, so that the one behind it gets it whole."""
        recording = behaviour.recordings[self._sent % len(behaviour.recordings)]
        self._sent += behaviour.failing is None or self._asked > behaviour.failing
        return recording


def _split(body: bytes, chunk: int | None) -> Iterator[bytes]:
    size = chunk or max(1, len(body))
    return (body[at : at + size] for at in range(0, len(body), size))


def _kind(found: Route) -> str:
    return encoder(found.wire_api).media_type


class _Connection:
    """HTTP/1.1 by h11 over one socket."""

    def __init__(self, stream: SocketStream, provider: Loopback) -> None:
        self._stream = stream
        self._provider = provider
        self._http = h11.Connection(h11.SERVER)

    async def run(self) -> None:
        while True:
            request = await self._event()
            if not isinstance(request, h11.Request):
                return
            body = await self._body()
            await self._respond(request, body)
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _event(self) -> Any:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            try:
                data = await self._stream.receive(65536)
            except anyio.EndOfStream:
                data = b""
            self._http.receive_data(data)

    async def _body(self) -> bytes:
        parts: list[bytes] = []
        while isinstance(event := await self._event(), h11.Data):
            parts.append(bytes(event.data))
        return b"".join(parts)

    async def _respond(self, request: h11.Request, body: bytes) -> None:
        path = request.target.decode("ascii", "replace")
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        status, media_type, chunks, behaviour = self._provider.answer(
            route(path), body, headers, path
        )
        given = {
            "content-type": media_type,
            "request-id": "req_loopback",
            **LIMIT_HEADERS,
            **behaviour.headers,
        }
        await self._send(h11.Response(status_code=status, headers=list(given.items())))
        for n, chunk in enumerate(chunks):
            if behaviour.fault and n == behaviour.at and await self._fail(behaviour.fault, chunk):
                return
            await self._send(h11.Data(data=chunk))
            await anyio.sleep(behaviour.pace)
        await self._send(h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send(data)

    async def _fail(self, fault: Fault, chunk: bytes) -> bool:
        """Makes the fault; whether the response is over with it."""
        match fault:
            case "truncate":
                await self._send(h11.EndOfMessage())
            case "malformed":
                await self._send(h11.Data(data=b'data: {"broken\n\n'))
                return False
            case "disconnect":
                await self._stream.send(b"%x\r\n" % len(chunk) + chunk[: len(chunk) // 2])
                _reset(self._stream)
            case "stall":
                await self._stream.receive(1)
        return True


def _reset(stream: SocketStream) -> None:
    """Closing this socket sends RST instead of FIN."""
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
