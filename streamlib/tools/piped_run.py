"""What makes a run of responses a source of `streamlib.pipeline.pipe`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal, Self

import anyio

from streamlib.client.stream import ResponseStream
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib_parsers.events import RunEvent


class PipedRun:
    """Base of `AgentRun`: how it is iterated, piped, and ended within its block."""

    pipe: ClassVar = pipe_method
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
