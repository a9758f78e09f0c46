"""What a run of responses needs beside its loop: to be a source of `pipe`, and the right client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal, Self, TypeVar

import anyio

from streamlib.client.stream import ResponseStream
from streamlib_parsers.events import RunEvent

ClientT = TypeVar("ClientT")


class PipedRun:
    """Base of `AgentRun`: how it is iterated, piped, and ended within its block."""

    pipe: ClassVar = ResponseStream.pipe
    """The events through stages: ``run.pipe(coalesce(1 / 30))``; see `streamlib.pipeline`."""
    is_run = True
    """Its events are those of several responses."""
    _stream: ResponseStream
    _state: Literal["response", "calls", "answered", "ended"]
    _calls: anyio.CancelScope | None = None
    """The scope of the running calls."""

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return not hasattr(self, "_group")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        raise NotImplementedError

    async def aclose(self) -> None:
        """Closes the connection and cancels running calls; the block is still to be left."""
        self._state = "ended"
        if self._calls is not None:
            self._calls.cancel()
        await self._stream.aclose()

    async def _cancellable(self, run_calls: Callable[[], Awaitable[None]]) -> None:
        with anyio.CancelScope() as self._calls:
            await run_calls()


def check_async(client: ClientT) -> ClientT:
    """The client; refuses a `SyncClient`, whose streams are read without `await`.

    Raises:
        TypeError: it says what to write.
    """
    if not hasattr(client, "aclose"):
        raise TypeError(
            f"agent() needs a `Client`, not a {type(client).__name__}: it is used with "
            "`async with`; without an event loop, call `run_calls` between two responses"
        )
    return client
