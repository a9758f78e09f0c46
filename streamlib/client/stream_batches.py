"""What a reader returns in lists, one list per read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """Async iterator over lists that a function returns; it raises `StopAsyncIteration` at the end.

    A class and not a generator: a generator that is left early stays suspended in its source.

    Args:
        next_batch: returns the next list.
        begin: called before the first list; it raises where the source cannot be read again.
    """

    def __init__(
        self,
        next_batch: Callable[[], Awaitable[list[T]]],
        begin: Callable[[], object] | None = None,
    ) -> None:
        self._next_batch = next_batch
        self._begin = begin

    def __aiter__(self) -> Batches[T]:
        return self

    async def __anext__(self) -> list[T]:
        if self._begin is not None:
            self._begin()
            self._begin = None
        return await self._next_batch()
