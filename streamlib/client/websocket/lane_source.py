"""The source of a stream on a lane: it sends the request, and yields the response's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import anyio

from streamlib.client.retry import RetryPolicy
from streamlib.client.sources import HttpSource, ResponseSource
from streamlib.client.websocket.continuation import Continuation, LaneRequest, continuation
from streamlib.client.websocket.lane_socket import LaneSocket
from streamlib.transport import HttpResponse
from streamlib.transport.deadlines import FOREVER, Deadlines
from streamlib.transport.websocket import SocketClosed
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import RateLimits
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.stream_error import StreamError, invalid_request
from streamlib_parsers.wires.responses.lanes import NOT_FOUND, Turn, create_message


class LaneConnection(Protocol):
    """What lanes need of their `Connection`."""

    @property
    def slots(self) -> anyio.CapacityLimiter:
        """Requests wait here until a response may run."""
        ...

    @property
    def handshake(self) -> HttpSource:
        """Authenticates each handshake; knows the key that has to be masked."""
        ...

    def check_loop(self) -> None:
        """Raises unless the running event loop is that of the client."""
        ...

    async def usable_socket(self) -> LaneSocket:
        """The socket for a request."""
        ...

    def note_request(self, source: LaneSource, /) -> None:
        """A request is sent: the next one of its lane may continue it."""
        ...

    def last_request(self, lane: str | None, /) -> LaneSource | None:
        """The latest request of a lane."""
        ...

    def steering(self, prompt: str | Sequence[ResponseItem], /) -> tuple[ResponseItem, ...]:
        """The messages to steer with."""
        ...

    async def send_steering(
        self, socket: LaneSocket, response_id: str, items: tuple[ResponseItem, ...], /
    ) -> None:
        """Sends messages of steering, and waits for what the server says to them."""
        ...


class LaneResponse:
    """The messages of one response, as an `HttpResponse`: each chunk is a message.

    Args:
        socket: where they arrive.
        turn: the response.
        headers: of the handshake, for the first response of a socket.
    """

    status = 200
    chunks_are_messages = True

    def __init__(self, socket: LaneSocket, turn: Turn, headers: Mapping[str, str]) -> None:
        self._socket = socket
        self._turn = turn
        self.headers = headers
        self.chunks = self
        self.read_timeout = self
        """A message that waits already needs no timeout scope (about 10 us)."""
        self._seconds = FOREVER
        """How long the next read may wait."""

    def start(self, seconds: float) -> None:
        """See `ReadTimeout`."""
        self._seconds = seconds

    def __aiter__(self) -> LaneResponse:
        return self

    async def __anext__(self) -> bytes:
        message = self._turn.next_message()
        if message is not None:
            return message
        with anyio.fail_after(self._seconds):
            message = await self._socket.next_message(self._turn)
        if message is None:
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        """Nobody reads the response any more."""
        self._socket.release(self._turn)


class LaneSource(ResponseSource):
    """Sends a request on a lane; each attempt sends it anew, on another socket if it has to.

    Hooks run for the handshake, and know nothing of it.

    Args:
        connection: has the sockets.
        lane: its name, None for the lane without one.
        wanted: the request.
    """

    def __init__(self, connection: LaneConnection, lane: str | None, wanted: LaneRequest) -> None:
        self.connection = connection
        self.lane = lane
        self.wanted = wanted
        self.slots: anyio.CapacityLimiter | None = connection.slots
        self.socket: LaneSocket | None = None
        """The socket of the latest attempt."""
        self.turn: Turn | None = None
        """The response of the latest attempt."""
        self.continued: str | None = None
        """The response that the latest attempt continued instead of sending the whole input."""
        self.accumulator = Accumulator()
        """That of the stream, which has read the response."""
        self.sent = False
        """The latest attempt sent at least a part of the request."""
        self._sends_all = False
        """The server does not know the response to continue: the whole input is sent."""

    @property
    def may_repeat(self) -> bool:
        """Whether it is certain that the latest attempt had no effect."""
        return not self.sent or (self.turn is not None and self.turn.refused)

    def check_loop(self) -> None:
        """See `ResponseSource`."""
        self.connection.check_loop()

    async def send(self, deadlines: Deadlines) -> HttpResponse:
        """Sends the request. The transport of a connection has the deadlines of its client."""
        del deadlines
        self.sent = False
        self.turn = None
        socket = await self.connection.usable_socket()
        known = self._continuation(socket)
        if known is None:
            self.continued = None
            message = create_message(self.wanted.request.body, self.lane)
        else:
            self.continued = known.response_id
            message = create_message(self.wanted.request.body, self.lane, *known)
        self.socket = socket
        self.connection.note_request(self)
        try:
            self.turn = await socket.request(self.lane, message, self._note_sent)
        except SocketClosed as closed:
            failure = closed.info
        else:
            headers = socket.headers
            socket.headers = {}
            return LaneResponse(socket, self.turn, headers)
        raise StreamError(failure)

    def _note_sent(self) -> None:
        self.sent = True

    def _continuation(self, socket: LaneSocket) -> Continuation | None:
        previous = self.connection.last_request(self.lane)
        if self._sends_all or previous is None or previous.socket is not socket:
            return None
        return continuation(previous.wanted, previous.accumulator.response, self.wanted)

    def give_up_continuation(self) -> None:
        """The next attempt sends the whole input."""
        self._sends_all = True

    def name_page(self, info: ErrorInfo) -> ErrorInfo:
        """See `ResponseSource`."""
        return self.connection.handshake.name_page(info)

    def name_server(self, info: ErrorInfo) -> ErrorInfo:
        """See `ResponseSource`."""
        return self.connection.handshake.name_server(info)

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """See `ResponseSource`."""
        return self.connection.handshake.redact(info)

    def redact_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """See `ResponseSource`."""
        return self.connection.handshake.redact_headers(headers)

    def redact_rate_limits(self, event: RateLimits) -> RateLimits:
        """See `ResponseSource`."""
        return self.connection.handshake.redact_rate_limits(event)


class SuccessorSource(LaneSource):
    """Sends nothing: the server begins the response by itself, after another one was steered.

    Args:
        steered: the source of the stream that was steered.
        wanted: the request as it would be if it were sent.
    """

    def __init__(self, steered: LaneSource, wanted: LaneRequest) -> None:
        super().__init__(steered.connection, steered.lane, wanted)
        self._steered = steered

    async def send(self, deadlines: Deadlines) -> HttpResponse:
        """Waits until the server said whether there is such a response."""
        del deadlines
        self.sent = True  # by the steering
        socket = self._steered.socket
        target = self._steered.turn
        if socket is None or target is None:
            raise invalid_request("a response that was not sent has no successor", "not_steered")
        self.socket = socket
        await socket.wait(_Announced(target))
        if target.successor is None:
            failure = socket.lanes.failure
            raise StreamError(failure or ErrorInfo("truncated", "the connection was closed"))
        self.turn = target.successor
        # Without one, the next request continues the response that was steered.
        if self.turn.failure is None:
            self.connection.note_request(self)
        return LaneResponse(socket, self.turn, {})


class _Announced:
    """The goal of a task that waits for the successor of a response."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def ready(self) -> bool:
        """Whether the successor began, or the server said that there is none."""
        return self._turn.successor is not None and self._turn.successor.ready


class LaneRetry(RetryPolicy, frozen=True, kw_only=True):
    """Sends again only what certainly had no effect.

    A request whose connection was lost may have been executed, and stored: it is not repeated. One
    that the server refused is; and one whose previous response it does not know any more is sent
    again at once, with the whole input.

    Attributes:
        source: the source of the stream.
        policy: how often, and after which delay.
    """

    source: LaneSource
    policy: RetryPolicy

    def wait(
        self,
        failure: ErrorInfo,
        attempt: int,
        elapsed: float,
        random: float,
        total: float | None = None,
    ) -> float | None:
        """See `RetryPolicy`."""
        if failure.code == NOT_FOUND and self.source.continued is not None:
            self.source.give_up_continuation()
            return 0.0
        if not self.source.may_repeat:
            return None
        return self.policy.wait(failure, attempt, elapsed, random, total)
