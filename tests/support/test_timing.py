"""What other processes took of the time is told from what this one used itself."""

from __future__ import annotations

import time

import anyio

from tests.support.timing import TICK, watching


async def test_watch_counts_when_this_process_did_not_run() -> None:
    async with watching() as watch:
        await anyio.sleep(2 * TICK)
        time.sleep(0.2)  # noqa: ASYNC251  # as if another process had the core
        await anyio.sleep(2 * TICK)
        assert watch.stolen >= 0.2 - 2 * TICK


async def test_watch_counts_no_work_of_this_process() -> None:
    async with watching() as watch:
        await anyio.sleep(2 * TICK)
        before = watch.stolen
        began, cpu = time.monotonic(), time.process_time()
        while time.process_time() - cpu < 0.2:
            pass
        took = time.monotonic() - began
        assert watch.stolen - before <= took - 0.2 + 2 * TICK
