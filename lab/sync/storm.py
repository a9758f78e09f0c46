"""Streams in many threads, ended in every way: what is left open afterwards is counted."""

from __future__ import annotations

import gc
import random
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from lab.systems import descriptors
from streamlib import StreamError, SyncClient, SyncStream
from tests.support.client_streams import FRAMES
from tests.support.clients import make_request
from tests.support.response_bodies import HELLO
from tests.support.scripted_server import END, HANG, RST, Script, Server, Wait, chunk, head
from tests.support.sync_clients import make_sync_client
from tests.support.sync_servers import closes, scripted_thread


def paced(seconds: float) -> Script:
    """A response in one chunk for each event."""
    steps: list[Any] = [head()]
    for frame in FRAMES:
        steps += [chunk(frame), Wait(seconds)]
    return [*steps, END]


SCRIPTS: Final[tuple[Script, ...]] = (
    paced(0.0005),
    paced(0.0),
    [head(), chunk(HELLO), HANG],
    [head(), chunk(HELLO), RST],
)
"""What the requests get, in turn: two complete responses, one that stalls, one that breaks."""


def read_through(stream: SyncStream) -> None:
    """Reads to the end, of a stalled response until somebody closes it."""
    with stream:
        stop_later(stream)
        for _ in stream:
            pass


def read_batches(stream: SyncStream) -> None:
    """The same in batches."""
    with stream:
        stop_later(stream)
        for _ in stream.batches():
            pass


def read_text(stream: SyncStream) -> None:
    """The same as text, looking at the snapshot each time."""
    with stream:
        stop_later(stream)
        for _ in stream.text():
            assert stream.snapshot.text


def leave(stream: SyncStream) -> None:
    """Leaves the loop at the second event."""
    with stream:
        next(stream)
        for _ in stream:
            break


def fail(stream: SyncStream) -> None:
    """An exception in the block."""
    with suppress(LookupError), stream:
        next(stream)
        raise LookupError


def abandon(stream: SyncStream) -> None:
    """Enters it and forgets it."""
    stream.__enter__()
    next(stream)


def only_prepare(stream: SyncStream) -> None:
    """Never enters it."""


WAYS: Final = (read_through, read_batches, read_text, leave, fail, abandon, only_prepare)


def stop_later(stream: SyncStream) -> None:
    """Another thread closes the stream soon."""
    threading.Timer(0.05, stream.close).start()


def run_storm(streams: int, threads: int) -> dict[str, Any]:
    """Runs the streams and returns what was left open, with the ways that were taken."""
    began = time.monotonic()
    ways: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    with scripted_thread(*SCRIPTS) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the abandoned ones
        with make_sync_client(server.url) as client:  # imports and a pool are no leaks
            client.stream(make_request(server.url)).__enter__().close()
        closes(server)
        threads_before = threading.active_count()
        descriptors_before = descriptors()
        with make_sync_client(server.url, connections=threads) as client:
            _run(client, server, streams, threads, ways, errors)
            gc.collect()  # abandoned streams in cycles
        no_sockets = closes(server)
        return {
            "streams": sum(ways.values()),
            "threads": threads,
            "ways": dict(ways),
            "errors": dict(errors),
            "requests": len(server.requests),
            "sockets left": 0 if no_sockets else server.open,
            "threads left": _left(threading.active_count, threads_before),
            "descriptors left": _left(descriptors, descriptors_before),
            "seconds": round(time.monotonic() - began, 1),
        }


def _run(
    client: SyncClient,
    server: Server,
    streams: int,
    threads: int,
    ways: Counter[str],
    errors: Counter[str],
) -> None:
    numbers = iter(range(streams))
    lock = threading.Lock()

    def worker(seed: int) -> None:
        rng = random.Random(seed)
        while True:
            with lock:
                n = next(numbers, None)
            if n is None:
                return
            way = rng.choice(WAYS)
            kind = ""
            try:
                way(client.stream(make_request(server.url)))
            except StreamError as error:
                kind = error.kind
            except Exception as error:  # noqa: BLE001  # counted, and must be none
                kind = type(error).__name__
            with lock:
                ways[way.__name__] += 1
                if kind:
                    errors[kind] += 1

    workers = [threading.Thread(target=worker, args=(n,)) for n in range(threads)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()


def _left(count: Callable[[], int], before: int) -> int:
    """How many more there are than before, once timers and closing threads had time to end."""
    until = time.monotonic() + 3
    while count() > before and time.monotonic() < until:
        time.sleep(0.01)
    return max(0, count() - before)
