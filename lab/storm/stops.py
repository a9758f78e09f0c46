"""The ways to stop a stream, or not to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.lowlevel

from streamlib.client.stream import ResponseStream
from streamlib_parsers import Completed, Failed, Response, ResponseEvent


class Observed:
    """What one stream delivered."""

    def __init__(self, stream: ResponseStream, n: int) -> None:
        self.stream = stream
        self.n = n
        """Number of the stream, from which it takes how long it waits."""
        self.read_to_end = False
        """Set when the iteration ended by itself."""
        self.after_terminal = 0
        """Events after the terminal one."""
        self._has_ended = False

    @property
    def delay(self) -> float:
        """Seconds until it is stopped: from nothing to longer than a response takes."""
        return (self.n % 41) * 0.001

    @property
    def response(self) -> Response:
        """The response, after its end or as far as it came."""
        return self.stream.response

    def note(self, event: ResponseEvent) -> None:
        """An event was delivered."""
        if self._has_ended:
            self.after_terminal += 1
        if isinstance(event, (Completed, Failed)):
            self._has_ended = True


async def read_all(seen: Observed) -> None:
    async with seen.stream:
        async for event in seen.stream:
            seen.note(event)
    seen.read_to_end = True


async def read_batches(seen: Observed) -> None:
    async with seen.stream:
        async for batch in seen.stream.batches():
            for event in batch:
                seen.note(event)
    seen.read_to_end = True


def break_after(count: int) -> Callable[[Observed], Awaitable[None]]:
    """Leaves the loop after so many events."""

    async def stop(seen: Observed) -> None:
        left = count
        async with seen.stream:
            async for event in seen.stream:
                seen.note(event)
                left -= 1
                if not left:
                    break

    return stop


async def break_after_a_batch(seen: Observed) -> None:
    async with seen.stream:
        async for batch in seen.stream.batches():
            for event in batch:
                seen.note(event)
            break


async def raise_within(seen: Observed) -> None:
    try:
        async with seen.stream:
            async for event in seen.stream:
                seen.note(event)
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass


async def time_out(seen: Observed) -> None:
    with anyio.move_on_after(seen.delay):
        await read_all(seen)


async def fail_after(seen: Observed) -> None:
    try:
        with anyio.fail_after(seen.delay):
            await read_batches(seen)
    except TimeoutError:
        pass


async def cancel_from_another_task(seen: Observed) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(read_all, seen)
        await anyio.sleep(seen.delay)
        group.cancel_scope.cancel()


async def close_from_another_task(seen: Observed) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(read_all, seen)
        await anyio.sleep(seen.delay)
        await seen.stream.aclose()
    seen.read_to_end = False


async def close_and_cancel(seen: Observed) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(read_all, seen)
        await anyio.sleep(seen.delay)
        group.start_soon(seen.stream.aclose)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def close_unread(seen: Observed) -> None:
    async with seen.stream:
        await seen.stream.aclose()
        async for event in seen.stream:
            seen.note(event)


async def enter_only(seen: Observed) -> None:
    async with seen.stream:
        pass


async def close_before_entering(seen: Observed) -> None:
    await seen.stream.aclose()
    async with seen.stream:
        async for event in seen.stream:
            seen.note(event)


async def read_the_rest(seen: Observed) -> None:
    with anyio.move_on_after(seen.delay):
        await read_all(seen)
    for event in seen.stream.rest():
        seen.note(event)


async def pause_between_events(seen: Observed) -> None:
    async with seen.stream:
        async for event in seen.stream:
            seen.note(event)
            await anyio.sleep(0.001)
    seen.read_to_end = True


STOPS: Final[dict[str, Callable[[Observed], Awaitable[None]]]] = {
    "read all": read_all,
    "read batches": read_batches,
    "pause between events": pause_between_events,
    "break after 1 event": break_after(1),
    "break after 4 events": break_after(4),
    "break after a batch": break_after_a_batch,
    "raise within": raise_within,
    "time out": time_out,
    "fail after": fail_after,
    "cancel from another task": cancel_from_another_task,
    "close from another task": close_from_another_task,
    "close and cancel": close_and_cancel,
    "close unread": close_unread,
    "enter only": enter_only,
    "close before entering": close_before_entering,
    "read the rest": read_the_rest,
}
"""Every way by name."""
