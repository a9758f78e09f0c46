"""What the tests of every framing share: one reading of a body cut into chunks, and how its time grows with its size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.framing import Frame, Framing
from tests.support.partitions import byte_by_byte


class Reading(NamedTuple):
    """All that a framing says of a body; it may not depend on the cuts."""

    frames: list[Frame]
    failure: ErrorInfo | None
    blank: bool

    @property
    def data(self) -> list[bytes | None]:
        """The payloads alone."""
        return [frame.data for frame in self.frames]

    @property
    def kind(self) -> str | None:
        """The kind of the failure, None where there is none."""
        return self.failure.kind if self.failure else None


def read(framing: Framing, chunks: Iterable[bytes]) -> Reading:
    """Feed the chunks, then close."""
    frames = [frame for chunk in chunks for frame in framing.feed(chunk)]
    frames += framing.close()
    return Reading(frames, framing.failure.info if framing.failure else None, framing.blank)


def growth(
    framing: Callable[[], Framing], body: Callable[[int], bytes], size: int, attempts: int = 6
) -> float:
    """How many times longer a body of twice the size takes, in chunks of 1 KiB.

    The best of several attempts, in CPU time: other processes can make an attempt look worse than it is, and nothing makes
    quadratic code (4.0) look linear (2.0).
    """
    small, large = byte_by_byte(body(size), 1024), byte_by_byte(body(2 * size), 1024)
    _keep_freed_memory()
    return min(_seconds(framing, large) / _seconds(framing, small) for _ in range(attempts))


def _keep_freed_memory() -> None:
    """One large block, freed, teaches glibc to keep what is freed. Until then a buffer over 128 KiB is given back to the system
    each time and its pages are faulted in anew, which costs more than the parsing and comes in at a size, as a step.
    """
    bytearray(24 << 20)


def _seconds(framing: Callable[[], Framing], chunks: list[bytes]) -> float:
    runs: list[float] = []
    for _ in range(3):
        start = time.process_time()
        read(framing(), chunks)
        runs.append(time.process_time() - start)
    return min(runs)
