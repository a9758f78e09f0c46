"""A bound for the memory of all streams of a gateway: where they hold more, the largest end.

A response is kept until its end: for its client's encoder, for the state that is stored, for the
log. A model that never stops would take all memory, long before the limit of one response.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    TOKEN_EVENTS,
    AnnotationAdded,
    Failed,
    MediaDelta,
    Notice,
    OutputItemDone,
    ResponseEvent,
    ResponseMetadata,
)

HELD_BYTES: Final = 256 << 20
"""Bytes that all streams may hold: some 1,000 of 1,900 tokens each."""

DELTA_BYTES: Final = 32
"""Bytes of a delta beside its text: references in the lists of a parser, a response, an encoder."""

COPIES: Final = 2
"""How often a text is there: its deltas, and the whole text at the end."""

STORED: Final = frozenset({AnnotationAdded, Notice, OutputItemDone, ResponseMetadata})
"""Events without a delta that a response keeps: results of the provider's tools, citations …"""

STORED_BYTES: Final = 500
"""Bytes of such an event beside its texts: its objects in a response and in an encoder."""

STORED_COPIES: Final = 5
"""How often its JSON is there: in a response, and for Responses clients in an envelope, in an item
and in the whole response at the end. Two streams of 256 MiB took 2.4 GB."""


COUNTED: Final = TOKEN_EVENTS | STORED
"""Events that are held until the end of their response."""


class StreamMemory:
    """What the streams of a gateway hold."""

    def __init__(self, limit: int = HELD_BYTES) -> None:
        """Holds nothing yet.

        Args:
            limit: bytes that all streams may hold together.
        """
        self.limit = limit
        self.used = 0
        """Bytes that all streams hold."""
        self.streams = 0
        """Number of open streams."""

    def failure_of(self, size: int) -> ErrorInfo | None:
        """Why a stream of this size has to end; None: it may go on.

        The largest ends, since it holds more than its share; others go on.
        """
        if self.used <= self.limit or size * self.streams < self.limit:
            return None
        message = f"the streams of this gateway hold more than {self.limit >> 20} MiB"
        return ErrorInfo("limit_exceeded", message, code="memory")


class HeldBatches:
    """The batches of one stream, counted: an async iterator that ends with `Failed` if need be."""

    def __init__(self, batches: AsyncIterator[list[ResponseEvent]], memory: StreamMemory) -> None:
        """Opens the account of a stream; `close` closes it."""
        self._batches = batches
        self._memory = memory
        self._size = 0
        self._open: dict[int, int] = {}
        """Index of an open item -> bytes that are counted of it."""
        self._has_failed = False
        memory.streams += 1

    def __aiter__(self) -> HeldBatches:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        if self._has_failed:
            raise StopAsyncIteration
        batch = await anext(self._batches)
        size = 0
        for event in batch:
            size += self._added_by(event)
        self._size += size
        self._memory.used += size
        failure = self._memory.failure_of(self._size)
        if failure is None:
            return batch
        self._has_failed = True
        return [Failed(failure)]

    def _added_by(self, event: ResponseEvent) -> int:
        """The bytes that the stream holds beyond those that are counted."""
        if type(event) not in COUNTED:
            return 0
        size = size_of(event)
        index: int | None = getattr(event, "index", None)
        if index is None:
            return size
        if isinstance(event, OutputItemDone):
            # Its deltas are counted already.
            return max(0, size - self._open.pop(index, 0))
        self._open[index] = self._open.get(index, 0) + size
        return size

    def close(self) -> None:
        """The stream holds nothing any more."""
        self._memory.used -= self._size
        self._memory.streams -= 1
        self._size = 0


def size_of(event: ResponseEvent) -> int:
    """The bytes that an event of `COUNTED` takes until the end of its response."""
    if type(event) in STORED:
        return STORED_BYTES + STORED_COPIES * len(msgspec.json.encode(event))
    if isinstance(event, MediaDelta):
        text = event.data
    else:
        text = event.delta  # type: ignore[union-attr]
    return DELTA_BYTES + COPIES * sys.getsizeof(text)
