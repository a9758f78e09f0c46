"""Helpers for the tests of every framing: reads a body in chunks, measures growth of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.framing import Frame, Framing
from tests.support.partitions import byte_by_byte
from tests.support.timing import cpu_seconds


class Reading(NamedTuple):
    """All results of a framing for a body; they may not depend on the partition."""

    frames: list[Frame]
    failure: ErrorInfo | None
    blank: bool

    @property
    def data(self) -> list[bytes | None]:
        """Returns the payloads alone."""
        return [frame.data for frame in self.frames]

    @property
    def kind(self) -> str | None:
        """Returns the kind of the failure, None where there is none."""
        return self.failure.kind if self.failure else None


def read(framing: Framing, chunks: Iterable[bytes]) -> Reading:
    """Feeds the chunks, then closes the framing."""
    frames = [frame for chunk in chunks for frame in framing.feed(chunk)]
    frames += framing.close()
    failure = framing.failure.info if framing.failure else None
    return Reading(frames, failure, framing.blank)


def growth(
    framing: Callable[[], Framing], body: Callable[[int], bytes], size: int, attempts: int = 6
) -> float:
    """Returns how many times longer a body of twice the size takes, in chunks of 1 KiB.

    The best of several attempts, in CPU time: other processes can make an attempt look slower than
    it is, and nothing makes quadratic code (4.0) look linear (2.0).
    """
    small, large = byte_by_byte(body(size), 1024), byte_by_byte(body(2 * size), 1024)
    _keep_freed_memory()
    return min(_seconds(framing, large) / _seconds(framing, small) for _ in range(attempts))


def _keep_freed_memory() -> None:
    """Makes glibc keep freed memory, by one large block that is freed.

    Until then, a buffer over 128 KiB is returned to the system each time and its pages are faulted
    in again, which costs more than the parsing and starts at one size, as a step.
    """
    bytearray(24 << 20)


def _seconds(framing: Callable[[], Framing], chunks: list[bytes]) -> float:
    return cpu_seconds(lambda: read(framing(), chunks), tries=3)
