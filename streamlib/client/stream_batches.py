"""The events of a stream in lists, one list per read."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable

from streamlib_parsers.events import ResponseEvent


class Batches:
    """Async iterator over the batches of a stream: see `ResponseStream.batches`."""

    def __init__(
        self,
        stream: AsyncIterable[ResponseEvent],
        next_batch: Callable[[], Awaitable[list[ResponseEvent]]],
    ) -> None:
        self._stream = stream
        self._next_batch = next_batch
        self._has_begun = False

    def __aiter__(self) -> Batches:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        if not self._has_begun:
            aiter(self._stream)  # raises if it was read to its end
            self._has_begun = True
        return await self._next_batch()
