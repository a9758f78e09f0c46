"""Who reads a socket that several tasks wait for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import anyio
import msgspec
import pytest

from streamlib import StreamError
from streamlib.client.websocket.lane_socket import LaneSocket
from streamlib.transport.websocket import SocketClosed, WebSocket
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.wires.responses.lanes import Turn
from tests.support.loops import asyncio_alone
from tests.support.websocket_scripts import response_frames

pytestmark = pytest.mark.anyio


class MemorySocket:
    """A socket whose messages are put into it."""

    closed: ErrorInfo | None = None
    has_output = False

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._added = anyio.Event()
        self.reads = 0

    def put(self, *frames: dict[str, Any]) -> None:
        self._messages.extend(msgspec.json.encode(frame) for frame in frames)
        self._added.set()

    async def read(self) -> bytes:
        self.reads += 1
        while not self._messages:
            self._added = anyio.Event()
            await self._added.wait()
        return b"data"

    def feed(self, data: bytes) -> list[bytes]:
        messages, self._messages = self._messages, []
        return messages

    async def send(self, message: bytes, on_start: Any) -> None:
        on_start()

    async def aclose(self) -> None:
        pass


def lane_socket(memory: MemorySocket, buffered_bytes: int = 1000) -> LaneSocket:
    return LaneSocket(cast("WebSocket", memory), buffered_bytes, anyio.current_time, {})


@asyncio_alone
async def test_a_task_cancelled_as_it_should_read_wakes_another(anyio_backend: str) -> None:
    """The reader got its message and woke the second, which is cancelled: the third reads."""
    memory = MemorySocket()
    socket = lane_socket(memory)
    turns: list[Turn] = [await socket.request(name, b"{}", lambda: None) for name in "abc"]
    got: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def read(number: int) -> None:
        await socket.next_message(turns[number])
        got.append("abc"[number])
        if number == 0:
            tasks[1].cancel()  # it has been woken, and did not run yet

    for number in range(3):
        tasks.append(asyncio.create_task(read(number)))
        await anyio.wait_all_tasks_blocked()
    memory.put(response_frames("r1", lane="a")[0])
    await anyio.wait_all_tasks_blocked()
    memory.put(response_frames("r3", lane="c")[0])
    with anyio.fail_after(2):
        await asyncio.wait(tasks)
    assert tasks[1].cancelled()
    assert got == ["a", "c"]


async def test_one_task_reads_at_a_time() -> None:
    memory = MemorySocket()
    socket = lane_socket(memory)
    turns = [await socket.request(name, b"{}", lambda: None) for name in "abcd"]
    memory.reads = 0
    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            for turn in turns:
                group.start_soon(socket.next_message, turn)
            await anyio.wait_all_tasks_blocked()
            assert memory.reads == 1
            for name in "abcd":
                memory.put(response_frames(f"r{name}", lane=name)[0])


async def test_request_that_was_not_sent_leaves_no_response() -> None:
    """Of the next one on its lane every message would be taken for its own."""
    memory = MemorySocket()
    socket = lane_socket(memory)

    async def refuse(message: bytes, on_start: Any) -> None:
        raise SocketClosed(ErrorInfo("connection", "before the first byte"))

    memory.send = refuse  # type: ignore[method-assign]
    with pytest.raises(SocketClosed):
        await socket.request("a", b"{}", lambda: None)
    assert socket.lanes.running == []


async def test_message_of_no_wire_wakes_every_task() -> None:
    memory = MemorySocket()
    socket = lane_socket(memory)
    turns = [await socket.request(name, b"{}", lambda: None) for name in "ab"]
    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            for turn in turns:
                group.start_soon(socket.wait, turn)
            await anyio.wait_all_tasks_blocked()
            memory._messages.append(b"not JSON")
            memory.put()
    assert [turn.failure and turn.failure.kind for turn in turns] == ["malformed"] * 2


async def test_a_closed_socket_wakes_every_task() -> None:
    memory = MemorySocket()
    socket = lane_socket(memory)
    turns = [await socket.request(name, b"{}", lambda: None) for name in "abc"]
    lost = ErrorInfo("cancelled", "closed")
    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            for turn in turns:
                group.start_soon(socket.wait, turn)
            await anyio.wait_all_tasks_blocked()
            await socket.aclose(lost)
    assert [turn.failure for turn in turns] == [lost, lost, lost]
    assert not socket.usable


async def test_a_closed_stream_passes_the_reading_on() -> None:
    """Closed when it was its turn to read: the others waited for ever."""
    memory = MemorySocket()
    socket = lane_socket(memory)
    turns = {lane: await socket.request(lane, b"{}", lambda: None) for lane in "abc"}
    received: list[str] = []

    async def read(lane: str) -> None:
        if await socket.next_message(turns[lane]):
            received.append(lane)
        if lane == "a":  # which has read for all, and has just woken the reader of b
            socket.release(turns["b"])

    with anyio.fail_after(2):
        async with anyio.create_task_group() as group:
            for lane in "abc":
                group.start_soon(read, lane)
                await anyio.wait_all_tasks_blocked()
            memory.put(response_frames("r1", lane="a")[0])
            await anyio.wait_all_tasks_blocked()
            memory.put(response_frames("r3", lane="c")[0])
    assert received == ["a", "c"]


async def test_an_exceeded_limit_is_named_after_the_end_too() -> None:
    """The last message came behind it, and the response was `truncated`."""
    socket = lane_socket(MemorySocket(), buffered_bytes=300)
    turn = await socket.request("a", b"{}", lambda: None)
    for frame in response_frames("r1", "word " * 100, lane="a"):
        socket.lanes.receive(msgspec.json.encode(frame))
    assert turn.ended
    while turn.messages:
        await socket.next_message(turn)
    with pytest.raises(StreamError) as raised:
        await socket.next_message(turn)
    assert raised.value.info.code == "buffered_bytes"
