"""No socket outlives its connection."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import anyio
import pytest

from streamlib import StreamError
from streamlib.client import Client
from streamlib.client.websocket import connection as connections
from streamlib.transport.websocket import Upgrade
from tests.support.websocket_scripts import EXPECT, FOREVER, response_frames, scripted_socket

pytestmark = pytest.mark.anyio


@pytest.fixture
def upgrades(monkeypatch: pytest.MonkeyPatch) -> list[Upgrade]:
    """Every socket that is opened."""
    opened: list[Upgrade] = []
    open_websocket = connections.open_websocket

    async def recorded(*arguments: Any) -> Upgrade:
        opened.append(await open_websocket(*arguments))
        return opened[-1]

    monkeypatch.setattr(connections, "open_websocket", recorded)
    return opened


async def require_closed(upgrades: list[Upgrade], count: int) -> None:
    assert len(upgrades) == count
    for upgrade in upgrades:
        assert upgrade.socket is not None
        with pytest.raises(anyio.ClosedResourceError):
            await upgrade.socket._stream.send(b"x")


async def test_a_socket_that_opens_too_late_is_closed(upgrades: list[Upgrade]) -> None:
    """The connection is closed by another task, here by a hook, during a handshake."""
    async with scripted_socket([FOREVER]) as server:

        async def close(response: Any) -> None:
            if len(upgrades) == 2:
                await connection.aclose()

        async with Client(on_response=close) as client:
            connection = client.connect("loopback:m", base_url=server.url)
            async with connection:
                connection._sockets[0].lanes.retired = True
                with pytest.raises(StreamError, match="closed"):
                    await connection.usable_socket()
            await require_closed(upgrades, 2)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("moment", ["reading", "closing"])
async def test_native_cancellation_leaves_no_socket(upgrades: list[Upgrade], moment: str) -> None:
    """asyncio's own `Task.cancel` knows no shield: 40 of 40 connections stayed open."""
    script = [EXPECT, response_frames("r1")[0], FOREVER]
    reading, leaving = asyncio.Event(), asyncio.Event()

    async def talk() -> None:
        async with (
            Client() as client,
            client.connect("loopback:m", base_url=server.url) as connection,
            connection.stream("x") as stream,
        ):
            await anext(stream)
            reading.set()
            await leaving.wait()

    async with scripted_socket(script) as server:
        for yields in range(40):
            reading.clear()
            leaving.clear()
            task = asyncio.ensure_future(talk())
            await reading.wait()
            if moment == "closing":
                leaving.set()
            for _ in range(yields):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await require_closed(upgrades, 40)


async def test_a_cancelled_connection_closes_every_socket(upgrades: list[Upgrade]) -> None:
    """An old socket whose response runs, and its successor: one of them stayed open."""
    script = [EXPECT, response_frames("r1")[0], FOREVER]

    async def talk() -> None:
        async with (
            Client() as client,
            client.connect("loopback:m", base_url=server.url) as connection,
            connection.stream("x") as stream,
        ):
            await anext(stream)
            connection._sockets[0].lanes.retired = True
            await connection.usable_socket()
            # The exits run cancelled.
            group.cancel_scope.cancel()
            await anyio.sleep_forever()

    async with scripted_socket(script) as server:
        async with anyio.create_task_group() as group:
            group.start_soon(talk)
        await require_closed(upgrades, 2)
