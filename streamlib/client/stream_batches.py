"""The events of a stream in lists, one list per read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from streamlib_parsers.events import ResponseEvent


class Batches:
    """Async iterator over the batches of a stream: see `ResponseStream.batches`."""

    def __init__(self, next_batch: Callable[[], Awaitable[list[ResponseEvent]]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> Batches:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        return await self._next_batch()
