"""Ctrl-C at many places: the socket is closed each time, and the client goes on working.

`by_line` raises `KeyboardInterrupt` before a line of our code or of anyio's portal, one line after
the other; `by_time` has a real signal raise it after a random time, wherever the main thread is.
"""

from __future__ import annotations

import gc
import linecache
import random
import signal
import sys
import time
import warnings
from types import FrameType
from typing import Any, Final

from lab.sync.storm import paced
from lab.systems import need
from streamlib import SyncClient
from tests.support.clients import make_request
from tests.support.response_bodies import HELLO
from tests.support.scripted_server import HANG, Script, Server, chunk, head
from tests.support.sync_clients import make_sync_client
from tests.support.sync_servers import closes, scripted_thread

TRACED: Final = ("streamlib/client/sync/", "streamlib/client/stream.py", "anyio/from_thread.py")
"""Files whose lines count as places. A line that begins with `with` does not: a trace function can
raise between the block and the release of its lock, where Python looks for no signal."""


AGAIN_SECONDS: Final = 1.0
"""After an interrupt that had no effect comes another."""


class InterruptAt:
    """Traces the running thread and raises `KeyboardInterrupt` at the n-th line."""

    def __init__(self, n: int) -> None:
        self.lines = 0
        self.at: str | None = None
        self._n = n

    def __enter__(self) -> InterruptAt:
        # A measurement of coverage goes on afterwards.
        self._former = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._former)

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        caller = frame.f_back.f_code.co_name if frame.f_back else ""
        if "__del__" in {frame.f_code.co_name, caller}:
            return None  # Python ignores what is raised in a finalizer
        if any(part in frame.f_code.co_filename for part in TRACED):
            return self._line
        return None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if line.lstrip().startswith("with "):
                return self._line
            self.lines += 1
            if self.lines == self._n:
                self.at = f"{frame.f_code.co_name}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line


def read_some(client: SyncClient, server: Server) -> None:
    """Opens a stream, reads three events and closes it, with the response still going on."""
    with client.stream(make_request(server.url)) as stream:
        for n, _ in enumerate(stream):
            if n == 3:
                break


def read_stalled(client: SyncClient, server: Server) -> None:
    """Reads a response that stalls: without an interrupt it would never return."""
    with client.stream(make_request(server.url)) as stream:
        for _ in stream:
            pass


def by_line(count: int) -> dict[str, Any]:
    """Interrupts at so many lines, spread over all that a stream runs through."""
    with (
        scripted_thread([*paced(0.0)[:-1], HANG]) as server,
        make_sync_client(server.url) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of streams whose block was never entered
        read_some(client, server)
        with InterruptAt(0) as counted:
            read_some(client, server)
        step = max(1, counted.lines // count)
        return _interrupt_all(client, server, range(1, counted.lines, step), counted.lines)


def _interrupt_all(client: SyncClient, server: Server, places: range, lines: int) -> dict[str, Any]:
    left_open: list[str | None] = []
    distinct: set[str] = set()
    slowest = 0.0
    interrupted = 0
    for n in places:
        with InterruptAt(n) as interrupt:
            try:
                read_some(client, server)
            except KeyboardInterrupt:
                interrupted += 1
                distinct.add(interrupt.at or "")
        began = time.monotonic()
        if not _is_closed(server):
            left_open.append(interrupt.at)
        slowest = max(slowest, time.monotonic() - began)
    read_some(client, server)
    return {
        "lines": lines,
        "interrupts": interrupted,
        "places": len(distinct),
        "sockets left open": left_open,
        "slowest close": round(slowest, 3),
    }


def by_time(count: int, seconds: float = 0.01) -> dict[str, Any]:
    """Interrupts so many stalled streams by a signal, after up to so many seconds."""
    rng = random.Random(1)
    stalled: Script = [head(), chunk(HELLO), HANG]
    need("lab.sync interrupts", "signal.setitimer")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    left_open = 0
    slowest = 0.0
    interrupted = 0
    try:
        with (
            scripted_thread(stalled) as server,
            make_sync_client(server.url) as client,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            for _ in range(count):
                began = time.monotonic()
                delay = rng.uniform(0.0001, seconds)
                try:
                    # Again later: Python ignores what is raised in a callback of its own imports.
                    signal.setitimer(signal.ITIMER_REAL, delay, AGAIN_SECONDS)
                    read_stalled(client, server)
                except KeyboardInterrupt:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    interrupted += 1
                left_open += not _is_closed(server)
                slowest = max(slowest, time.monotonic() - began - delay)
    finally:
        signal.signal(signal.SIGALRM, before)
    return {
        "interrupts": interrupted,
        "sockets left open": left_open,
        "slowest close": round(slowest, 3),
    }


def _is_closed(server: Server) -> bool:
    """Whether every socket is closed; one whose block was never entered, by the collector."""
    gc.collect()
    return closes(server)
