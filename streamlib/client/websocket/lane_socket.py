"""One socket and its responses: whoever reads a response reads the socket for all of them.

There is no task in the background. Of the tasks that wait for a message one reads the socket and
hands what arrives to the others; when it has its own, it passes the reading on. A task that sends
reads meanwhile too, so that pings are answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import anyio

from streamlib.client.attempt import Clock
from streamlib.transport.closing import CLOSING_SECONDS
from streamlib.transport.websocket import SocketClosed, WebSocket
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.wires.responses.lanes import Lanes, Turn

QUIET_SECONDS: Final = 1.0
"""Seconds without a read after which a socket is checked before a request is sent."""

LOOK_SECONDS: Final = 0.002
"""Maximum seconds of that check: what the server sent is in the socket already."""


class Goal(Protocol):
    """What a task waits for."""

    @property
    def ready(self) -> bool:
        """Whether it need not wait any more."""
        ...


class _Sent:
    """The goal of a task that sends."""

    def __init__(self) -> None:
        self.ready = False


class LaneSocket:
    """An open socket, its lanes, and the tasks that wait for them.

    Args:
        socket: the connection.
        buffered_bytes: how many bytes of one response wait for their reader.
        clock: seconds, on a clock that runs steadily.
        headers: response headers of the handshake.
    """

    def __init__(
        self, socket: WebSocket, buffered_bytes: int, clock: Clock, headers: dict[str, str]
    ) -> None:
        self.lanes = Lanes(buffered_bytes)
        self.opened_at = clock()
        """When the handshake was done, by the clock."""
        self.headers = headers
        """Headers of the handshake: only the first response shows them."""
        self._socket = socket
        self._clock = clock
        self._read_at = self.opened_at
        """When something was read last, by the clock."""
        self._reader: Goal | None = None
        """What the task that reads waits for; None if nobody reads."""
        self._read_scope: anyio.CancelScope | None = None
        """Ends the read of the task that reads, for `wake`."""
        self._waiting: dict[int, tuple[Goal, anyio.Event]] = {}
        """The tasks that wait while another one reads, by the id of their goal, in order."""
        self._closed = False
        """Set by `aclose`."""
        self._receive(b"")  # what came with the handshake

    @property
    def usable(self) -> bool:
        """Whether a further request may be sent."""
        return not (self._closed or self.lanes.retired or self.lanes.failure is not None)

    # --- requests ---

    async def request(self, lane: str | None, message: bytes, on_start: Callable[[], None]) -> Turn:
        """Sends a request; returns its response, of which nothing is read yet.

        Args:
            lane: its name, None for the lane without one.
            message: the request.
            on_start: called right before the first byte is written.

        Raises:
            SocketClosed: the connection ended before the request was sent.
        """
        turn = self.lanes.expect(lane)
        sent = False

        def note_start() -> None:
            nonlocal sent
            sent = True
            on_start()

        try:
            await self._send(message, note_start)
        except BaseException:
            if sent:
                turn.abandon()
            else:
                self.lanes.forget(lane, turn)
            raise
        return turn

    async def steer(self, response_id: str, message: bytes) -> None:
        """Sends a message of steering, and waits for what the server says to it.

        Raises:
            StreamError: the server refused it, or the connection ended before it answered.
        """
        steering = self.lanes.steer(response_id)
        try:
            await self._send(message, lambda: None)
            await self.wait(steering)
        except SocketClosed as closed:
            steering.end(closed.info)
        finally:
            self.lanes.forget_steering(steering)
        if steering.failure is not None:
            raise StreamError(steering.failure)

    async def _send(self, message: bytes, on_start: Callable[[], None]) -> None:
        """Sends while this task reads, if no other one does."""
        sent = _Sent()
        failures: list[SocketClosed] = []

        async def run() -> None:
            try:
                await self._socket.send(message, on_start)
            except SocketClosed as closed:
                failures.append(closed)
            sent.ready = True
            self.wake(sent)

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await self.wait(sent)
            if not sent.ready:  # the socket was lost meanwhile, and the task that sends sees it
                group.cancel_scope.deadline = anyio.current_time() + CLOSING_SECONDS
        if failures:
            # A close frame that was read meanwhile says more than a failed write.
            raise SocketClosed(self.lanes.failure or failures[0].info)
        if not sent.ready and self.lanes.failure is not None:
            raise SocketClosed(self.lanes.failure)

    # --- waiting ---

    async def next_message(self, turn: Turn) -> bytes | None:
        """The next message of a response; None after its last.

        Raises:
            StreamError: the connection ended before its last message, or too much of it waited.
        """
        message = turn.next_message()
        if message is None and not turn.ready:
            await self.wait(turn)
            message = turn.next_message()
        if message is None and turn.failure is not None:
            raise StreamError(turn.failure)
        return message

    async def look(self) -> None:
        """Reads what a socket received that nobody read for a while: a ping, or a close."""
        if self._clock() - self._read_at < QUIET_SECONDS or self._reader is not None:
            return
        with anyio.move_on_after(LOOK_SECONDS):
            await self.wait(_Sent())

    async def wait(self, goal: Goal) -> None:
        """Waits until the goal is ready or the connection ended."""
        while not goal.ready and self.lanes.failure is None and not self._closed:
            if self._reader is None:
                await self._read(goal)
                continue
            woken = anyio.Event()
            self._waiting[id(goal)] = (goal, woken)
            try:
                await woken.wait()
            except BaseException:
                del self._waiting[id(goal)]
                # It may have been woken to read: another one has to.
                self._pass_on()
                raise
            del self._waiting[id(goal)]
            if goal.ready:
                # Also where it was woken to read, and became ready meanwhile in another way.
                self._pass_on()

    async def _read(self, goal: Goal) -> None:
        """Reads the socket until the goal is ready."""
        self._reader = goal
        try:
            with anyio.CancelScope() as self._read_scope:
                while not goal.ready and self.lanes.failure is None and not self._closed:
                    self._receive(await self._socket.read())
                    if self._socket.has_output:
                        await self._socket.flush()
        except SocketClosed as closed:
            self._fail(closed.info)
        finally:
            self._reader = None
            self._read_scope = None
            self._pass_on()

    def _receive(self, data: bytes) -> None:
        self._read_at = self._clock()
        for message in self._socket.feed(data):
            self.lanes.receive(message)
        for goal, woken in self._waiting.values():
            if goal.ready:
                woken.set()
        closed = self._socket.closed
        if closed is not None:
            self._fail(closed)
        elif self.lanes.failure is not None:  # a message that is none of this wire
            self._wake_all()

    def wake(self, goal: Goal) -> None:
        """Another task made the goal ready: wakes the task that waits for it, if one does."""
        waiting = self._waiting.get(id(goal))
        if waiting is not None:
            waiting[1].set()
        elif goal is self._reader and self._read_scope is not None:
            self._read_scope.cancel()

    def _pass_on(self) -> None:
        """Wakes a task to read, the first that waits, if nobody reads."""
        if self._reader is not None:
            return
        for _, woken in self._waiting.values():
            if not woken.is_set():
                woken.set()
                return

    def _fail(self, failure: ErrorInfo) -> None:
        self.lanes.fail(failure)
        self._wake_all()

    def _wake_all(self) -> None:
        for _, woken in self._waiting.values():
            woken.set()

    # --- the end ---

    def release(self, turn: Turn) -> None:
        """Nobody reads the response any more. The wire has no way to cancel it."""
        turn.abandon()
        self.wake(turn)

    async def aclose(self, failure: ErrorInfo) -> None:
        """Closes the socket; responses that run fail."""
        self._closed = True
        self._fail(failure)
        if self._read_scope is not None:
            self._read_scope.cancel()
        await self._socket.aclose()
