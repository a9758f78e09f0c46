"""CPU time without the garbage collector, and what other processes took of a machine's time.

The first is for tests that compare two times. A collection walks the objects that earlier tests
left in the process, which would slow the larger of two inputs more. `timeit` also switches the
collector off. The second is for tests of deadlines on sockets, which have no clock but the real
one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import anyio

TICK: Final = 0.01
"""Seconds between two looks at the clock."""


@contextmanager
def no_collections() -> Iterator[None]:
    """Switches the garbage collector off while the block runs."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_seconds(run: Callable[[], object], tries: int = 1) -> float:
    """Seconds of CPU that `run` takes; the shortest of several tries."""
    times: list[float] = []
    with no_collections():
        for _ in range(tries):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
    return min(times)


class Watch:
    """Counts the time that other processes had while this one should have run.

    That is by how much timers of the loop were late, less the CPU time that this process used
    meanwhile: work of its own that keeps the loop busy does not count.
    """

    def __init__(self) -> None:
        self._stolen = 0.0
        self._began = time.monotonic()
        self._cpu = time.process_time()

    @property
    def stolen(self) -> float:
        """Seconds so far."""
        late = time.monotonic() - self._began - TICK
        return self._stolen + max(0.0, late - (time.process_time() - self._cpu))

    async def run(self) -> None:
        """Looks at the clock until it is cancelled."""
        while True:
            self._began = time.monotonic()
            self._cpu = time.process_time()
            await anyio.sleep(TICK)
            self._stolen = self.stolen


@asynccontextmanager
async def watching() -> AsyncIterator[Watch]:
    """Watches while the block runs."""
    watch = Watch()
    async with anyio.create_task_group() as group:
        group.start_soon(watch.run)
        yield watch
        group.cancel_scope.cancel()
