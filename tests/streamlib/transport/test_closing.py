"""Closing completes through a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from streamlib.transport.closing import ShieldedAwait, exhaust
from tests.support.loops import asyncio_alone


@pytest.mark.parametrize(("chunk", "reads"), [(b"", 4096), (b"x" * 768, 1024)])
async def test_exhaust_ends_and_closes_an_endless_body(chunk: bytes, reads: int) -> None:
    """A mebibyte, of which each chunk counts 256 bytes more than it has."""
    seen: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                seen.append("read")
                yield chunk
        finally:
            seen.append("closed")

    chunks = endless()
    await exhaust(chunks)
    assert seen == ["read"] * reads + ["closed"]


@asyncio_alone
async def test_cancellation_is_raised_after_closing_completes() -> None:
    done: list[int] = []

    async def closing() -> None:
        for n in range(5):
            await asyncio.sleep(0)
            done.append(n)

    async def run() -> None:
        await ShieldedAwait(closing())

    for wait in range(4):
        done.clear()
        task = asyncio.create_task(run())
        for _ in range(wait + 1):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == [0, 1, 2, 3, 4]


@asyncio_alone
async def test_cancellation_wins_over_a_failure_to_close() -> None:
    async def closing() -> None:
        await asyncio.sleep(0)
        raise BrokenPipeError

    async def run() -> None:
        await ShieldedAwait(closing())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(BrokenPipeError):
        await run()


@asyncio_alone
async def test_task_that_is_thrown_away_closes_what_it_waits_for() -> None:
    """As when an event loop ends while a connection is being closed."""
    ended: list[str] = []

    async def closing() -> None:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append("went on")
        finally:
            ended.append("closed")

    held = closing()  # else Python would close it with the last reference to it

    async def run() -> None:
        await ShieldedAwait(held)

    thrown_away = run()
    thrown_away.send(None)
    thrown_away.close()
    assert ended == ["closed"]


async def test_scope_within_a_shielded_wait_catches_its_own() -> None:
    """It escaped, and ended the task and the group around it."""
    caught: list[bool] = []

    async def coroutine() -> None:
        with anyio.CancelScope(deadline=anyio.current_time() - 1) as scope:
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
        caught.append(scope.cancelled_caught)

    with anyio.CancelScope(shield=True):
        await ShieldedAwait(coroutine())
    assert caught == [True]
