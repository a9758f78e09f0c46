"""The server of `streamlib gateway`: its signals, and what happens to open streams when it stops.

SIGHUP           reads the route file again; one that makes no sense changes nothing
SIGTERM, SIGINT  accepts no more connections and lets open streams, and responses in the
                 background, finish for `--grace` seconds; the others then end with an error
a second one     ends them at once

It also closes connections that send no request: a client that opens many and sends half of its
headers would leave none to others.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn

from streamlib.gateway.log_text import log_text
from streamlib.providers import Provider
from streamlib.providers.loopback import loopback_at
from streamlib.testing import running as running_loopback
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.gateway import Gateway, RouteTable

TICK_SECONDS: Final = 0.05
"""Seconds between two looks of a stopping server at whether a second signal came."""

HEADER_SECONDS: Final = 10.0
"""Seconds in which a connection must send the headers of a request; clients take milliseconds."""

TICKS: Final = 10
"""Ticks of uvicorn, a second, between two looks for such connections."""

SPARE: Final = 100
"""Connections above the limit that are accepted until the next look, and open files of other kinds:
the log, stores, recordings."""

SPARE_SECONDS: Final = 3.0
"""Seconds after `--grace` until connections are closed by force: more than a stream needs to end
(`streamlib.asgi.END_SECONDS`)."""

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
        connections: int,
        parent: int | None = None,
    ) -> None:
        """Prepares the server.

        Args:
            config: uvicorn's settings; the timeout of its graceful shutdown is set here.
            running: the gateway to serve.
            grace: seconds for open streams to finish.
            read_routes: reads routes and clients again.
            connections: connections of clients that may be open.
            parent: process id of the parent, whose end stops the server; None without one.
        """
        self._connections = connection_limit(connections)
        # Beyond these, uvicorn responds with 503.
        config.limit_concurrency = self._connections + SPARE
        config.timeout_graceful_shutdown = math.ceil(grace + SPARE_SECONDS)
        super().__init__(config)
        self.was_interrupted = False
        """Whether Ctrl-C stopped the server."""
        self._running = running
        self._grace = grace
        self._read_routes = read_routes
        self._parent = parent
        self._waiting: dict[Any, tuple[float, object]] = {}
        """Connection without a request under way -> since when, and its last request."""
        self._is_urgent = False
        """Whether a second signal came, which ends open streams at once."""
        self._is_outdated = False
        """Whether SIGHUP came and the routes were not read again yet."""
        self._has_terminal = os.isatty(0)
        self._stack = AsyncExitStack()
        """Ends the loopback provider, if a route needs it."""
        self._loopback: Provider | None = None
        """The loopback provider, once it runs."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until a signal ends it."""
        if hasattr(signal, "SIGHUP"):  # not on Windows
            signal.signal(signal.SIGHUP, self._hang_up)
        super().run(sockets)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves, with the loopback provider beside it if a route goes there."""
        async with self._stack:
            await self._running.use(await self._with_loopback(self._running.table))
            # The modules live as long as the server: no collection need walk through them again,
            # which holds all streams for a tenth of a second.
            gc.collect()
            gc.freeze()
            await super().serve(sockets)

    async def _with_loopback(self, table: RouteTable) -> RouteTable:
        """The routes with the address of the loopback provider, which is known once it runs."""
        if self._loopback is None and _needs_loopback(table):
            self._loopback = loopback_at(await self._stack.enter_async_context(running_loopback()))
        if self._loopback is None:
            return table
        return table.using(self._loopback)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handles a signal to stop. uvicorn's own handler would raise it again at its end."""
        if self.should_exit:
            self._is_urgent = True
        self.should_exit = True
        if sig == signal.SIGINT:
            self.was_interrupted = True

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        # SIGHUP also comes when the terminal that started the gateway is closed: then it stops.
        if self._has_terminal and not _has_terminal():
            self.should_exit = True
        self._is_outdated = True

    async def on_tick(self, counter: int) -> bool:
        """Called by uvicorn ten times a second; returns whether the server must stop."""
        if self._is_outdated:
            self._is_outdated = False
            await self._reload()
        is_over = len(self.server_state.connections) > self._connections
        if is_over or counter % TICKS == 0:
            self._close_waiting()
        if self._parent is not None and os.getppid() != self._parent:
            self.should_exit = True
        return await super().on_tick(counter)

    def _close_waiting(self) -> None:
        """Closes connections whose headers are late; the oldest at once, where there are too many.

        uvicorn has a limit for the time between two requests alone.
        """
        now = anyio.current_time()
        waiting: dict[Any, tuple[float, object]] = {}
        for connection in self.server_state.connections:
            # uvicorn's name for a request under way, or the last one.
            request = getattr(connection, "cycle", None)
            if request is not None and not request.response_complete:
                continue
            since, last = self._waiting.get(connection, (now, request))
            waiting[connection] = (since if last is request else now, request)
        self._waiting = waiting
        excess = len(self.server_state.connections) - self._connections
        for connection, (since, _) in sorted(waiting.items(), key=lambda entry: entry[1][0]):
            if excess <= 0 and now - since < HEADER_SECONDS:
                break
            excess -= 1
            connection.transport.close()

    async def _reload(self) -> None:
        try:
            table = self._read_routes()
            await self._running.use(await self._with_loopback(table))
        except (ValueError, OSError, StreamError) as error:
            _log.error("the routes stay as they are: %s", log_text(str(error)))
            return
        clients = len(table.clients.clients)
        _log.info("the routes were read again: %d, for %d clients", len(table.rules), clients)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts no more connections, and ends those that are open."""
        self._running.readiness.block("draining", "the gateway is stopping")
        _log.info("stopping: %s open, up to %g seconds", self._under_way(), self._grace)
        async with anyio.create_task_group() as group:
            group.start_soon(self._end_streams)
            await super().shutdown(sockets)
            group.cancel_scope.cancel()

    async def _end_streams(self) -> None:
        until = anyio.current_time() + self._grace
        # Polled, because a signal handler cannot set an event of the event loop.
        while anyio.current_time() < until and not self._is_urgent:  # noqa: ASYNC110
            await anyio.sleep(TICK_SECONDS)
        _log.info("%s did not finish", self._under_way())
        self._running.end_streams()

    def _under_way(self) -> str:
        text = f"{len(self._running.streams)} streams"
        if self._running.background_count:
            text += f" and {self._running.background_count} responses in the background"
        return text


def connection_limit(wanted: int) -> int:
    """How many connections may be open, with as many to providers: as the system allows.

    Args:
        wanted: the limit, unless the system allows fewer.
    """
    if sys.platform == "win32":
        return wanted
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * (wanted + SPARE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY:
            needed = min(needed, hard)
        # macOS has a further limit, which nothing names.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        needed = min(needed, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return max(1, min(wanted, needed // 2 - SPARE))


def _needs_loopback(table: RouteTable) -> bool:
    """Whether a route goes to a loopback provider that nobody else runs."""
    for rule in table.rules:
        for target in rule.targets:
            if target.base_url is None and target.model.startswith("loopback:"):
                return True
    return False


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
