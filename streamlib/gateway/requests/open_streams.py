"""Open requests of the gateway, so that it can end them when it stops.

Each stream then ends with an error of its wire, never as if it were complete.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import anyio

from streamlib_parsers.errors import ErrorInfo

STOPPING: Final = ErrorInfo(
    "overloaded",
    "the gateway is stopping: send the request again",
    retryable=True,
    retry_after=1.0,
    code="stopping",
)
"""Error of a stream that is ended early. The client may retry, here or at another gateway."""


class OpenStreams:
    """The open requests of a gateway."""

    def __init__(self) -> None:
        self._stops: set[Callable[[], None]] = set()
        """For each request, the function that ends it."""
        self._emptied: anyio.Event | None = None
        """Set when no request is left; None if nobody waits for that."""
        self._has_ended = False
        """Whether `end` was called: a request that begins later ends at once."""

    def begin(self) -> None:
        """Allows requests to begin, again after `end`."""
        self._has_ended = False

    def __len__(self) -> int:
        """Number of open requests."""
        return len(self._stops)

    @contextmanager
    def entered(self, stop: Callable[[], None]) -> Generator[None]:
        """Counts a request as open while the block runs.

        Args:
            stop: ends the request early; it must not wait.
        """
        self._stops.add(stop)
        try:
            # This request was still being read when `end` ended the others.
            if self._has_ended:
                stop()
            yield
        finally:
            self._stops.discard(stop)
            if not self._stops and self._emptied is not None:
                self._emptied.set()

    async def wait_until_empty(self) -> None:
        """Waits until no request is open."""
        while self._stops:
            self._emptied = anyio.Event()
            await self._emptied.wait()

    def end(self) -> None:
        """Ends all open requests, and each that begins from now on."""
        self._has_ended = True
        for stop in list(self._stops):
            stop()
