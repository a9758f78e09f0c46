"""CPU time without the garbage collector, for tests that compare two times.

A collection walks the objects that earlier tests left in the process, which would slow the larger
of two inputs more. `timeit` also switches the collector off.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
