"""Decodes and builds large requests in threads, so that other clients are not delayed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread

Result = TypeVar("Result")

INLINE_BYTES: Final = 64 << 10
"""Maximum bytes of a body that the event loop itself decodes: at most some 20,000 values."""

WORKERS: Final = 4
"""Number of large requests that are decoded at the same time. Each one takes turns with the event
loop in the interpreter; a turn lasts five milliseconds."""


class Workers:
    """Runs long work on large requests in threads, beside the event loop."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(WORKERS)

    async def run(self, size: int, function: Callable[..., Result], *arguments: object) -> Result:
        """Calls a function without I/O, in a thread if the request is large.

        Args:
            size: size of the request body in bytes.
            function: function to call.
            *arguments: arguments of the function.
        """
        if size <= INLINE_BYTES:
            return function(*arguments)
        call = partial(function, *arguments)
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)
