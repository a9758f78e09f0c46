"""Who reads a socket that several tasks wait for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import anyio
import msgspec
import pytest

from streamlib.client.websocket.lane_socket import LaneSocket
from streamlib.transport.websocket import WebSocket
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.wires.responses.lanes import Turn
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


def lane_socket(memory: MemorySocket) -> LaneSocket:
    return LaneSocket(cast("WebSocket", memory), 1000, anyio.current_time, {})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
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
