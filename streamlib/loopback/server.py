"""The server of the loopback provider: anyio sockets and h11, to make any fault of a network.

It sends one response for each request, in HTTP chunks of a given size and at a given pace. A fault
occurs after `at` chunks of the body:

    truncate     the body ends cleanly, but too early
    disconnect   the connection is reset in the middle of a chunk
    malformed    a chunk that is not of the wire
    stall        silence until the client disconnects
"""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import anyio
import h11
import msgspec
from anyio.abc import SocketAttribute, SocketStream, TaskStatus
from msgspec import Struct

from streamlib.errors import StreamError
from streamlib.loopback.responses import EchoedItem, echo_response, scripted_response
from streamlib.loopback.strict import StrictProvider
from streamlib.request.prompt import Prompt
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import encode_body, encoder, error_body
from streamlib.wires.routes import Route, route
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import WireApi

Fault: TypeAlias = Literal["truncate", "disconnect", "malformed", "stall"]
Responder: TypeAlias = Callable[[Prompt, Any], Sequence[ResponseEvent]]
"""(prompt, wire API) -> the events of the response."""

JSON: Final = "application/json"


class Behaviour(Struct, frozen=True):
    """How the server responds.

    Attributes:
        recordings: bodies to send unchanged, one a request, in order and then from the start;
            without any, the response is made from the request.
        chunk: bytes in an HTTP chunk; None: one event.
        pace: seconds between chunks.
        fault: what goes wrong.
        at: chunks of the body before it goes wrong.
        status: sent instead of 200; from 400 on with an error of the wire.
        headers: sent beside the usual ones.
        failing: only the first so many requests get the fault or the error; the later ones
            succeed, with the recordings from the first on. None: all. Requests that no wire has do
            not count.
        strict: refuse what the real service refuses, with its error, and sign what is given out:
            `streamlib.loopback.strict`. Recordings are sent as they are.
        turns: items of responses to make, one response a request, in order and then from the
            start; without any, the response is an echo of the request.
    """

    recordings: tuple[bytes, ...] = ()
    chunk: int | None = None
    pace: float = 0.0
    fault: Fault | None = None
    at: int = 3
    status: int = 200
    headers: dict[str, str] = {}
    failing: int | None = None
    strict: bool = False
    turns: tuple[tuple[EchoedItem, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.fault is not None and self.fault not in get_args(Fault):
            raise ValueError(f"no fault {self.fault!r}; one of {', '.join(get_args(Fault))}")
        if self.failing is not None and self.failing < 0:
            raise ValueError(f"failing is how many requests fail, 0 or more: not {self.failing}")


LIMIT_HEADERS: Final = {
    "anthropic-ratelimit-requests-limit": "1000",
    "anthropic-ratelimit-requests-remaining": "999",
    "anthropic-ratelimit-tokens-limit": "100000",
    "anthropic-ratelimit-tokens-remaining": "99000",
}
"""Rate limits of the loopback provider, so that a user interface can show some."""


async def serve(
    behaviour: Behaviour | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    answers: Responder = echo_response,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until cancelled.

    Args:
        behaviour: how it responds; without faults by default.
        host: address to listen on.
        port: 0 is any free port.
        answers: makes the events of a response where there is no recording.
        task_status: gets the base URL once the server listens:
            `url = await group.start(serve)` is `http://127.0.0.1:PORT`.
    """
    provider = Loopback(behaviour or Behaviour(), answers)
    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    async with listener:
        bound = listener.extra(SocketAttribute.local_port)
        task_status.started(f"http://{host}:{bound}")
        await listener.serve(provider.connection)


@asynccontextmanager
async def running(behaviour: Behaviour | None = None, *, port: int = 0) -> AsyncGenerator[str]:
    """Serves while the block runs; yields the base URL.

    An exception of the block is raised as it is, and not inside a task group's exception group.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        try:
            yield await group.start(partial(serve, behaviour, port=port))
        except Exception as error:  # noqa: BLE001  # raised again below, outside of the group
            raised = error
        group.cancel_scope.cancel()
    if raised is not None:
        raise raised


class ServedResponse(NamedTuple):
    """One response: its status, media type and body, and how it is sent."""

    status: int
    media_type: str
    chunks: Iterator[bytes]
    behaviour: Behaviour


class Loopback:
    """What all connections share: the behaviour, and which recording is next.

    Attributes:
        behaviour: of all requests, before `failing` is applied.
    """

    def __init__(self, behaviour: Behaviour, respond: Responder) -> None:
        self.behaviour = behaviour
        self._respond = respond
        """Makes the events of a response where there is no recording."""
        self._requests = 0
        """Requests of a wire so far; `Behaviour.failing` counts these."""
        self._recordings_sent = 0
        """Recordings that were sent to requests which should succeed."""
        self._turns_sent = 0
        """Scripted turns that were sent."""
        self._strict: StrictProvider | None = None
        """Rules and signatures; None where every request is taken."""
        if behaviour.strict:
            self._strict = StrictProvider()

    def next_behaviour(self) -> Behaviour:
        """Counts a request and returns how it is responded to."""
        self._requests += 1
        behaviour = self.behaviour
        if behaviour.failing is None:
            return behaviour
        is_error = behaviour.status >= 400
        if self._requests <= behaviour.failing:
            recordings = behaviour.recordings[:1]
            if is_error:
                recordings = ()  # an HTTP error has the wire's own body
            return msgspec.structs.replace(behaviour, recordings=recordings)
        status = 200 if is_error else behaviour.status
        return msgspec.structs.replace(behaviour, fault=None, status=status)

    async def connection(self, stream: SocketStream) -> None:
        """Serves one connection, request after request, until either side closes it."""
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

    def response(
        self, matched: Route | None, body: bytes, headers: dict[str, str], path: str
    ) -> ServedResponse:
        """The response to a request; `matched` is None for a path of no wire."""
        if matched is None:
            not_found = b'{"error":{"message":"no such path","type":"not_found_error"}}'
            return ServedResponse(404, JSON, iter([not_found]), Behaviour())
        wire_api = matched.wire_api
        if self._strict is not None:
            refused = self._strict.check(wire_api, body, headers, matched.model)
            if refused is not None:
                behaviour = Behaviour(headers=refused.headers)
                return ServedResponse(refused.status, JSON, iter([refused.body]), behaviour)
        try:
            prompt = parse_request(wire_api, body, headers=headers, path=path)
        except StreamError as error:
            return _error_response(matched, error.info, Behaviour(status=400))
        behaviour = self.next_behaviour()
        if behaviour.recordings:
            chunks = _chunks(self._next_recording(behaviour), behaviour.chunk)
            media_type = encoder(wire_api).media_type
            return ServedResponse(behaviour.status, media_type, chunks, behaviour)
        if behaviour.status >= 400:
            kind: ErrorKind = "overloaded" if behaviour.status >= 500 else "rate_limited"
            error_info = ErrorInfo(kind, "the loopback provider was configured to fail")
            return _error_response(matched, error_info, behaviour)
        return self._made_response(behaviour, matched, prompt, body)

    def _made_response(
        self, behaviour: Behaviour, matched: Route, prompt: Prompt, body: bytes
    ) -> ServedResponse:
        """A response made from the request: a stream or a complete body."""
        wire_api = matched.wire_api
        prompt = msgspec.structs.replace(prompt, model=prompt.model or matched.model)
        events = self._events(prompt, wire_api)
        if self._strict is not None:
            events = self._strict.signed(wire_api, events, body)
        # Where the path says whether it streams (Gemini, Bedrock), the body does not.
        streams = prompt.stream if matched.stream is None else matched.stream
        if not streams:
            complete = encode_body(wire_api, accumulate(events), model=prompt.model)
            return ServedResponse(200, JSON, iter([complete]), behaviour)
        encode = encoder(wire_api, model=prompt.model)
        encoded = [encode.feed(event) for event in events]
        encoded.append(encode.close())
        chunks: Iterable[bytes] = filter(None, encoded)
        if behaviour.chunk:
            chunks = _chunks(b"".join(encoded), behaviour.chunk)
        return ServedResponse(200, encode.media_type, iter(chunks), behaviour)

    def _events(self, prompt: Prompt, wire_api: WireApi) -> Sequence[ResponseEvent]:
        """The events of a response: the next scripted turn, else what the responder makes."""
        turns = self.behaviour.turns
        if not turns:
            return self._respond(prompt, wire_api)
        items = turns[self._turns_sent % len(turns)]
        self._turns_sent += 1
        return scripted_response(items, prompt, wire_api)

    def _next_recording(self, behaviour: Behaviour) -> bytes:
        """The next recording. A request that should fail does not use it up."""
        recordings = behaviour.recordings
        recording = recordings[self._recordings_sent % len(recordings)]
        if behaviour.failing is None or self._requests > behaviour.failing:
            self._recordings_sent += 1
        return recording


def _error_response(matched: Route, error: ErrorInfo, behaviour: Behaviour) -> ServedResponse:
    body = msgspec.json.encode(error_body(matched.wire_api, error))
    return ServedResponse(behaviour.status, JSON, iter([body]), behaviour)


def _chunks(body: bytes, size: int | None) -> Iterator[bytes]:
    """The body in chunks of this size; None: in one."""
    size = size or max(1, len(body))
    for start in range(0, len(body), size):
        yield body[start : start + size]


class _Connection:
    """HTTP/1.1 by h11 over one socket."""

    def __init__(self, stream: SocketStream, provider: Loopback) -> None:
        self._stream = stream
        self._provider = provider
        self._http = h11.Connection(h11.SERVER)
        """HTTP state of the connection; a new cycle begins with each request."""

    async def run(self) -> None:
        while True:
            request = await self._event()
            if not isinstance(request, h11.Request):
                return
            body = await self._body()
            await self._respond(request, body)
            # After a disconnect, a stall or `connection: close` there is no next request.
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
                data = b""  # h11's form of the end of input
            self._http.receive_data(data)

    async def _body(self) -> bytes:
        body = bytearray()
        event = await self._event()
        while isinstance(event, h11.Data):
            body += event.data
            event = await self._event()
        return bytes(body)

    async def _respond(self, request: h11.Request, body: bytes) -> None:
        path = request.target.decode("ascii", "replace")
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        response = self._provider.response(route(path), body, headers, path)
        behaviour = response.behaviour
        response_headers = {
            "content-type": response.media_type,
            "request-id": "req_loopback",
            **LIMIT_HEADERS,
            **behaviour.headers,
        }
        header_list = list(response_headers.items())
        await self._send(h11.Response(status_code=response.status, headers=header_list))
        chunks = response.chunks
        if request.method == b"HEAD":  # its response has no body (RFC 9110)
            chunks = iter(())
        for n, chunk in enumerate(chunks):
            if behaviour.fault and n == behaviour.at:
                ended = await self._make_fault(behaviour.fault, chunk)
                if ended:
                    return
            await self._send(h11.Data(data=chunk))
            await anyio.sleep(behaviour.pace)
        await self._send(h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send(data)

    async def _make_fault(self, fault: Fault, chunk: bytes) -> bool:
        """Makes the fault; returns whether it ended the response."""
        match fault:
            case "truncate":
                await self._send(h11.EndOfMessage())
            case "malformed":
                await self._send(h11.Data(data=b'data: {"broken\n\n'))
                return False
            case "disconnect":
                # Past h11: the chunk's size is sent, but only half of its bytes.
                await self._stream.send(b"%x\r\n" % len(chunk) + chunk[: len(chunk) // 2])
                _reset_on_close(self._stream)
            case "stall":
                # Returns only when the client disconnects: it has sent its request.
                await self._stream.receive(1)
        return True


def _reset_on_close(stream: SocketStream) -> None:
    """Makes the socket send RST instead of FIN when it is closed: SO_LINGER with 0 seconds."""
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
