"""When the bytes of a capture were received, and the silences between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isfinite
from typing import Final

from streamlib.inspection.capture import Capture
from streamlib.inspection.document import Silence, Silences
from streamlib.inspection.frames import Step

THRESHOLD: Final = 0.5
"""Seconds; shorter silences are not listed."""

MAX_SILENCES: Final = 500
"""Limit of listed silences of one kind; the longest are kept."""


class Clock:
    """Tells when the bytes of a capture were received.

    Attributes:
        is_known: whether times are known: the capture is a recording.
        times: seconds from the request to each chunk.
        ends: offset of the end of each chunk, in bytes.
        bytes: number of bytes in all chunks.
    """

    def __init__(self, capture: Capture) -> None:
        self.is_known = capture.is_recorded
        self.times: list[float] = []
        self.ends: list[int] = []
        self.bytes = len(capture.recording.body)
        end = 0
        seconds = 0.0
        for chunk in capture.recording.chunks:
            end += len(chunk.data)
            # A damaged file may contain a value that is not a time.
            if isfinite(chunk.at):
                seconds = chunk.at
            self.times.append(seconds)
            self.ends.append(end)

    def seconds(self, offset: int) -> float | None:
        """Seconds from the request to the chunk with this byte; None if no chunk was received."""
        if not self.times:
            return None
        # The end of input has no byte at its offset: it belongs to the last chunk.
        index = min(bisect_left(self.ends, offset + 1), len(self.times) - 1)
        return self.times[index]


class Waits:
    """Finds the silences of a recording.

    A wait of at least the threshold between two chunks is a silence without bytes. Between two such
    waits chunks arrive without a pause; if they finish no frame for at least the threshold, that is
    a silence without a frame. So no moment is in both.
    """

    def __init__(self, clock: Clock, steps: Sequence[Step]) -> None:
        self._clock = clock
        self._frame_ends = [step.end for step in steps]
        """Offset of the end of each frame."""
        self.no_bytes: list[Silence] = []
        """Silences without bytes, in order of time."""
        self.no_frame: list[Silence] = []
        """Silences with bytes but without a finished frame, in order of time."""
        self.longest_wait: Silence | None = None
        """The longest wait between two chunks, even if it is below the threshold."""
        if clock.is_known and clock.times:
            self._find()

    def _find(self) -> None:
        times, ends = self._clock.times, self._clock.ends
        begin = 0
        """Number of the first chunk whose bytes have finished no frame yet."""
        longest = 0
        """Number of the chunk after the longest wait."""
        is_finishing = self._finishes_frame(0)
        for index in range(1, len(times)):
            if is_finishing:
                begin = index - 1 if self._is_inside_frame(ends[index - 1]) else index
            is_finishing = self._finishes_frame(index)
            wait = times[index] - times[index - 1]
            if longest == 0 or wait > times[longest] - times[longest - 1]:
                longest = index
            if wait >= THRESHOLD:
                self._add_unfinished(begin, index - 1)
                self.no_bytes.append(self._silence(index - 1, index, ends[index - 1]))
                begin = index
            elif is_finishing:
                self._add_unfinished(begin, index)
        if not is_finishing:
            self._add_unfinished(begin, len(times) - 1)
        if longest:
            self.longest_wait = self._silence(longest - 1, longest, ends[longest - 1])

    def _add_unfinished(self, first: int, last: int) -> None:
        """Adds the time between two chunks as a silence without a frame, if it is long enough."""
        times, ends = self._clock.times, self._clock.ends
        if first >= last or times[last] - times[first] < THRESHOLD:
            return
        frame = bisect_left(self._frame_ends, ends[first])
        start = self._frame_ends[frame - 1] if frame else 0
        self.no_frame.append(self._silence(first, last, start, ends[last] - ends[first]))

    def _silence(self, first: int, last: int, offset: int, received: int = 0) -> Silence:
        times = self._clock.times
        frame = min(bisect_left(self._frame_ends, offset + 1), len(self._frame_ends) - 1)
        return Silence(
            start=times[first], end=times[last], byte=offset, frame=max(0, frame), bytes=received
        )

    def _finishes_frame(self, chunk: int) -> bool:
        """Whether a frame ends with one of the bytes of a chunk."""
        start = self._clock.ends[chunk - 1] if chunk else 0
        index = bisect_left(self._frame_ends, start + 1)
        return index < len(self._frame_ends) and self._frame_ends[index] <= self._clock.ends[chunk]

    def _is_inside_frame(self, offset: int) -> bool:
        index = bisect_left(self._frame_ends, offset)
        return index == len(self._frame_ends) or self._frame_ends[index] != offset


def silences_of(waits: Waits) -> Silences:
    """The silences of a document, the longest ones in order of time."""
    return Silences(
        threshold=THRESHOLD,
        no_bytes=_longest(waits.no_bytes),
        no_frame=_longest(waits.no_frame),
    )


def longest(silences: Sequence[Silence]) -> Silence | None:
    """The longest silence; None if there is none."""
    return max(silences, key=_length, default=None)


def _longest(silences: Sequence[Silence]) -> tuple[Silence, ...]:
    """The longest silences, in order of time."""
    chosen = sorted(silences, key=_length, reverse=True)[:MAX_SILENCES]
    return tuple(sorted(chosen, key=_start))


def _length(silence: Silence) -> float:
    return silence.end - silence.start


def _start(silence: Silence) -> float:
    return silence.start
