"""Times of a stream: when its headers, its first and its last token were received."""

from __future__ import annotations

from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib_parsers.accumulate import Response, Timing
from streamlib_parsers.events import TOKEN_EVENTS, ResponseEvent


class StreamTimes:
    """Times of one stream, in seconds since the last attempt sent its request.

    Args:
        timer: measures the longest wait between two events.
    """

    def __init__(self, timer: DeadlineTimer) -> None:
        self._timer = timer
        self._sent = 0.0
        """When the current attempt sent its request, by the clock."""
        self._first_byte: float | None = None
        """When the response headers were received."""
        self._first_token: float | None = None
        """When the first of `TOKEN_EVENTS` was received."""
        self._last_token: float | None = None
        """When the last of `TOKEN_EVENTS` was received."""

    def start(self, now: float) -> None:
        """An attempt sends its request."""
        self._sent = now
        self._first_byte = None

    def note_headers(self, now: float) -> None:
        """The response headers were received."""
        self._first_byte = now - self._sent

    def note_events(self, events: list[ResponseEvent], now: float) -> None:
        """Events were received."""
        for event in events:
            if type(event) in TOKEN_EVENTS:
                break
        else:
            return
        self._last_token = now - self._sent
        if self._first_token is None:
            self._first_token = self._last_token

    def timing(self, response: Response) -> Timing:
        """The times, with the speed if the number of tokens is known.

        The first token starts the measurement: its own time, which includes the queue and the
        prompt, is not counted.
        """
        first = self._first_token
        last = self._last_token
        tokens = response.usage.output_tokens if response.usage else None
        speed: float | None = None
        if tokens and first is not None and last is not None and last > first:
            speed = tokens / (last - first)
        return Timing(self._first_byte, first, last, speed, self._timer.longest_gap)
