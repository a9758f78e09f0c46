"""What the gateway has under way, so that it can end it when it stops.

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
"""What ends a stream early. Its client may try again: at another gateway, or at the next one."""

END_SECONDS: Final = 1.0
"""How long a client may take to receive the error that ends its stream."""


class OpenStreams:
    """Requests under way."""

    def __init__(self) -> None:
        self._stops: set[Callable[[], None]] = set()
        """Functions that end one each."""
        self._emptied: anyio.Event | None = None
        """Set when none is left, for who waits for that."""
        self._has_ended = False
        """Set by `end`: whatever begins later ends at once."""

    def begin(self) -> None:
        """Lets requests begin, also after `end`."""
        self._has_ended = False

    def __len__(self) -> int:
        """How many there are."""
        return len(self._stops)

    @contextmanager
    def entered(self, stop: Callable[[], None]) -> Generator[None]:
        """One more while the block runs.

        Args:
            stop: Ends it early; it must not wait.
        """
        self._stops.add(stop)
        try:
            # Its request was still being read when the others ended.
            if self._has_ended:
                stop()
            yield
        finally:
            self._stops.discard(stop)
            if not self._stops and self._emptied is not None:
                self._emptied.set()

    async def wait_until_empty(self) -> None:
        """Waits until none is left."""
        while self._stops:
            self._emptied = anyio.Event()
            await self._emptied.wait()

    def end(self) -> None:
        """Ends all of them, and each that begins from now on."""
        self._has_ended = True
        for stop in list(self._stops):
            stop()
