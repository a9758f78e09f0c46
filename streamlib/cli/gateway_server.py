"""How `streamlib gateway` serves: what its signals do, and what happens to open streams at its end.

SIGHUP           reads the route file again; one that makes no sense changes nothing
SIGTERM, SIGINT  accepts no more connections and lets open streams, and responses in the
                 background, finish for `--grace` seconds; the others then end with an error
a second one     ends them at once
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn

from streamlib.errors import StreamError
from streamlib.gateway.log_text import log_text
from streamlib.gateway.open_streams import END_SECONDS

if TYPE_CHECKING:
    from streamlib.gateway import Gateway, RouteTable

TICK_SECONDS: Final = 0.05
"""How often a server that is stopping looks whether it should hurry."""

SPARE_SECONDS: Final = 2.0
"""After the end of all streams, until connections are closed whatever their clients do."""

_log: Final = logging.getLogger("streamlib.gateway")


class GatewayServer(uvicorn.Server):
    """uvicorn's server with the signals above."""

    def __init__(
        self,
        config: uvicorn.Config,
        running: Gateway,
        *,
        grace: float,
        read_routes: Callable[[], RouteTable],
        parent: int | None = None,
    ) -> None:
        """Prepares it.

        Args:
            config: Of uvicorn; its time for a graceful shutdown is set here.
            running: The gateway that it serves.
            grace: Seconds for open streams to finish.
            read_routes: Reads routes and clients again.
            parent: The process without which it stops; None: it has none.
        """
        config.timeout_graceful_shutdown = math.ceil(grace + END_SECONDS + SPARE_SECONDS)
        super().__init__(config)
        self.was_interrupted = False
        """Set by Ctrl-C."""
        self._running = running
        self._grace = grace
        self._read_routes = read_routes
        self._parent = parent
        self._is_urgent = False
        """Set by a second signal."""
        self._is_outdated = False
        """Set by SIGHUP, until the routes were read again."""
        self._has_terminal = os.isatty(0)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until a signal ends it."""
        if hasattr(signal, "SIGHUP"):  # not on Windows
            signal.signal(signal.SIGHUP, self._hang_up)
        super().run(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop. uvicorn's own raises the first one again at its end."""
        if self.should_exit:
            self._is_urgent = True
        self.should_exit = True
        if sig == signal.SIGINT:
            self.was_interrupted = True

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        # A terminal that is closed sends it too: whoever has started the gateway there is gone.
        if self._has_terminal and not _has_terminal():
            self.should_exit = True
        self._is_outdated = True

    async def on_tick(self, counter: int) -> bool:
        """Runs ten times a second; returns whether the server stops."""
        if self._is_outdated:
            self._is_outdated = False
            await self._reload()
        if self._parent is not None and os.getppid() != self._parent:
            self.should_exit = True
        return await super().on_tick(counter)

    async def _reload(self) -> None:
        try:
            table = self._read_routes()
            await self._running.use(table)
        except (ValueError, OSError, StreamError) as error:
            _log.error("the routes stay as they are: %s", log_text(str(error)))
            return
        clients = len(table.clients.clients)
        _log.info("the routes were read again: %d, for %d clients", len(table.rules), clients)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts no more connections, and ends what is under way."""
        self._running.readiness.block("draining", "the gateway is stopping")
        _log.info("stopping: %s open, up to %g seconds", self._under_way(), self._grace)
        async with anyio.create_task_group() as group:
            group.start_soon(self._end_streams)
            await super().shutdown(sockets)
            group.cancel_scope.cancel()

    async def _end_streams(self) -> None:
        until = anyio.current_time() + self._grace
        # A handler of signals sets no event of a loop.
        while anyio.current_time() < until and not self._is_urgent:  # noqa: ASYNC110
            await anyio.sleep(TICK_SECONDS)
        _log.info("%s did not finish", self._under_way())
        self._running.end_streams()

    def _under_way(self) -> str:
        text = f"{len(self._running.streams)} streams"
        if self._running.background_count:
            text += f" and {self._running.background_count} responses in the background"
        return text


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
