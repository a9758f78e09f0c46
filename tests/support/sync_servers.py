"""A scripted server for tests without an event loop, in a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal

from tests.support.scripted_server import Script, Server, scripted


@contextmanager
def scripted_thread(*scripts: Script) -> Iterator[Server]:
    """See `scripted`."""
    with (
        start_blocking_portal(name="scripted") as portal,
        portal.wrap_async_context_manager(scripted(*scripts)) as server,
    ):
        yield server


def closes(server: Server, seconds: float = 2.0) -> bool:
    """Waits until no connection is open; False if one still is after so many seconds."""
    until = time.monotonic() + seconds
    while server.open and time.monotonic() < until:
        time.sleep(0.002)
    return server.open == 0
