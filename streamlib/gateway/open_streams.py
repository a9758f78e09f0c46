"""What the gateway has under way, so that it can end it when it stops.

Each stream then ends with an error of its wire, never as if it were complete.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

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
            yield
        finally:
            self._stops.discard(stop)

    def end(self) -> None:
        """Ends all of them."""
        for stop in list(self._stops):
            stop()
