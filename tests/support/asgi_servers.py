"""ASGI applications on a socket: under uvicorn on asyncio, under hypercorn on trio.

Tests that use them have the fixture `asgi_server`, which skips them if hypercorn is missing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import uvicorn

GRACE = 1
"""Seconds in which open streams may finish when a server is stopped."""


class Served:
    """A running server: its URL, and how it is told to stop."""

    def __init__(self, url: str, stop: Callable[[], None]) -> None:
        self.url = url
        self.stop = stop


def on_asyncio() -> bool:
    """Whether the running event loop is asyncio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@asynccontextmanager
async def serving_app(app: Any, **options: Any) -> AsyncGenerator[Served]:
    """Serves an application on a port of its own, until the block ends.

    Options are uvicorn's.
    """
    serve = _uvicorn if on_asyncio() else _hypercorn
    ended = anyio.Event()
    async with anyio.create_task_group() as group:
        server: Served = await group.start(partial(serve, app, ended, options))
        try:
            yield server
        finally:
            server.stop()
            with anyio.move_on_after(5, shield=True):
                await ended.wait()
            group.cancel_scope.cancel()


async def _uvicorn(
    app: Any, ended: anyio.Event, options: dict[str, Any], *, task_status: Any
) -> None:
    config = uvicorn.Config(
        app,
        **{"port": 0, "log_level": "critical", "timeout_graceful_shutdown": GRACE, **options},
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = True

    async def tell() -> None:
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await anyio.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        task_status.started(Served(f"http://127.0.0.1:{port}", stop))

    async with anyio.create_task_group() as group:
        group.start_soon(tell)
        await server._serve()  # `serve` would install handlers for the test run's signals
    ended.set()


async def _hypercorn(
    app: Any, ended: anyio.Event, options: dict[str, Any], *, task_status: Any
) -> None:
    from hypercorn.config import Config
    from hypercorn.trio import serve

    opened: list[socket.socket] = []

    class RememberingConfig(Config):
        """hypercorn closes neither its listeners nor, at a cancellation, what it was given."""

        def create_sockets(self) -> Any:
            sockets = super().create_sockets()
            opened.extend(sockets.insecure_sockets)
            return sockets

    config = RememberingConfig()
    config.bind = ["127.0.0.1:0"]
    config.graceful_timeout = GRACE
    config.errorlog = None
    stopped = anyio.Event()
    async with anyio.create_task_group() as group:

        async def run(*, task_status: Any) -> None:
            try:
                await serve(
                    app, config, mode="asgi", shutdown_trigger=stopped.wait, task_status=task_status
                )
            finally:
                for listener in opened:
                    listener.close()
            ended.set()

        urls: list[str] = await group.start(run)
        task_status.started(Served(urls[0], stopped.set))
