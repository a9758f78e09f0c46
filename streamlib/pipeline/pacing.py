"""Stages of time: for screens that draw at intervals, for an even pace, for silence that lasts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from streamlib.pipeline.endings import LIMIT_REACHED, STOPPED, OpenItems
from streamlib.pipeline.machine import Clock, PlainMachine
from streamlib.pipeline.numbers import check_seconds
from streamlib.pipeline.stages import Keep
from streamlib.pipeline.streamed_texts import TextKey, bare_delta, joined, text_key
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import TEXT_DELTAS, Completed, Failed, ResponseEvent, TextDelta

BEGINNING: Final = float("-inf")
"""The time before the first delta."""


class _Coalesce(PlainMachine):
    """Joins the deltas of each text, so that each is drawn at most once in `interval` seconds.

    Deltas of several texts are buffered side by side, one joined delta for each, and let out
    together in the order in which they were first seen. Any other event lets out what is buffered,
    and follows it. If the interval has passed, a delta is let out at once: the first is never late.
    """

    def __init__(self, interval: float, clock: Clock) -> None:
        super().__init__()
        self._interval = interval
        self._clock = clock
        self._deltas: dict[TextKey, list[TextDelta]] = {}
        """Deltas of each text since its last emitted one, in the order of their first."""
        self._characters = 0
        """Characters of these deltas."""
        self._round: deque[TextKey] = deque()
        """The texts that `expire` lets out before the interval begins again."""
        self._next = BEGINNING
        """Time from which deltas may be emitted."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The very first delta, and all that is buffered before another kind of event.

        Time lets out the others, in `expire`: what has arrived together is joined before.
        """
        if not isinstance(event, TEXT_DELTAS):
            if not self._deltas:
                return [event]
            return [*self.close(), event]
        self._deltas.setdefault(text_key(event), []).append(event)
        self._characters += len(event.delta)
        if self._next == BEGINNING:
            events = self.close()
            if not event.delta:
                self._next = BEGINNING
            return events
        return []

    def due(self) -> float | None:
        """Seconds until buffered deltas must be emitted; None where none are."""
        if self._round:
            return 0.0
        if not self._deltas:
            return None
        return max(0.0, self._next - self._clock())

    def expire(self) -> list[ResponseEvent]:
        """The delta of one text whose time has come, with all that has arrived of it.

        A slow screen asks for the next one when it has drawn this one. Until then that one grows.
        """
        if not self._round:
            now = self._clock()
            if not self._deltas or now < self._next:
                return []
            self._round.extend(self._deltas)
            self._next = now + self._interval
        delta = joined(self._deltas.pop(self._round.popleft()))
        self._characters -= len(delta.delta)
        return [delta]

    def close(self) -> list[ResponseEvent]:
        """All buffered deltas, one of each text."""
        if not self._deltas:
            return []
        events: list[ResponseEvent] = [joined(deltas) for deltas in self._deltas.values()]
        self._deltas.clear()
        self._characters = 0
        self._round.clear()
        self._next = self._clock() + self._interval
        return events

    @property
    def buffered(self) -> int:
        """Characters of the buffered deltas."""
        return self._characters


def coalesce(interval: float = 1 / 60) -> Keep:
    """At most one delta of each text in `interval` seconds, for screens: ``coalesce(1 / 30)``.

    Each text stays the same and in order, and the first token is not delayed. Deltas of texts that
    grow at once are no longer interleaved within an interval; they keep their order towards every
    other event. A screen that draws slowly gets, each time, all that has arrived of a text.
    0.5 us an event; buffers the deltas of one interval.

    Raises:
        ValueError: the interval is negative.
    """
    check_seconds("interval", interval, may_be_zero=True)
    return Keep(lambda clock: _Coalesce(interval, clock), f"coalesce({interval:g})")


# --- an even pace ---

Unit: TypeAlias = Literal["word", "character"]

_UNITS: Final[dict[str, re.Pattern[str]]] = {
    "word": re.compile(r"\s*\S+\s*|\s+"),
    "character": re.compile(r".", re.DOTALL),
}
"""How text is cut. A word has the white space around it."""


LONGEST_WORD: Final = 100
"""Characters after which a word does not wait for its rest: some scripts have no spaces."""


class _Waiting:
    """Text that waits for its turn, or another event, which follows the text before it."""

    __slots__ = ("arrived", "event", "is_text", "is_whole")

    def __init__(self, event: ResponseEvent, arrived: float, *, is_whole: bool) -> None:
        self.event = event
        self.arrived = arrived
        """When its first character arrived."""
        self.is_text = isinstance(event, TEXT_DELTAS)
        self.is_whole = is_whole
        """Nothing can be added to it: a word that is not whole waits for its rest."""


class _Smooth(PlainMachine):
    """Lets out text so evenly that the last character that has arrived leaves just in time."""

    def __init__(self, by: Unit, lag: float, clock: Clock) -> None:
        super().__init__()
        self._pattern = _UNITS[by]
        self._is_by_word = by == "word"
        self._lag = lag
        self._clock = clock
        self._queue: deque[_Waiting] = deque()
        self._units = 0
        """Texts in the queue."""
        self._characters = 0
        """Characters of these texts."""
        self._newest = 0.0
        """When the last delta arrived."""
        self._last = BEGINNING
        """When the last text was let out."""

    @property
    def waiting(self) -> bool:
        """The end of the source waits until the text is out."""
        return bool(self._queue)

    @property
    def buffered(self) -> int:
        """Characters that wait."""
        return self._characters

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        now = self._clock()
        if not isinstance(event, TEXT_DELTAS):
            if not self._queue:
                return [event]
            self._queue[-1].is_whole = True
            self._queue.append(_Waiting(event, now, is_whole=True))
            return []
        self._newest = now
        if self._last == BEGINNING:  # the first token is never late
            if event.delta:
                self._last = now
            return [event]
        self._queue_text(event, now)
        return []

    def due(self) -> float | None:
        if not self._queue:
            return None
        return max(0.0, self._next_time() - self._clock())

    def expire(self) -> list[ResponseEvent]:
        events: list[ResponseEvent] = []
        now = self._clock()
        while self._queue and self._next_time() <= now:
            waiting = self._queue.popleft()
            events.append(waiting.event)
            if waiting.is_text:
                self._note_removed(waiting)
                self._last = now
        return events

    def close(self) -> list[ResponseEvent]:
        events = [waiting.event for waiting in self._queue]
        self._queue.clear()
        self._units = 0
        self._characters = 0
        return events

    def _next_time(self) -> float:
        """When the head of the queue leaves."""
        head = self._queue[0]
        if not head.is_text:
            return BEGINNING
        latest = head.arrived + self._lag
        if not head.is_whole:
            return latest
        # So that the last one in the queue leaves when it has waited for `lag` seconds.
        left = self._newest + self._lag - self._last
        return min(latest, self._last + max(0.0, left) / self._units)

    def _note_removed(self, waiting: _Waiting) -> None:
        delta: Any = waiting.event
        self._units -= 1
        self._characters -= len(delta.delta)

    def _queue_text(self, delta: TextDelta, now: float) -> None:
        text = delta.delta
        is_cut = False
        last = self._queue[-1] if self._queue else None
        if last is not None and last.is_text and not last.is_whole:
            known: Any = last.event
            if text_key(known) == text_key(delta):
                # The rest of a word.
                text = known.delta + text
                delta = joined([known, delta])
                is_cut = True
                self._note_removed(self._queue.pop())
            else:
                last.is_whole = True
        units = self._pattern.findall(text) or [text]
        arrived = now
        if is_cut and last is not None:
            arrived = last.arrived
        for number, unit in enumerate(units):
            is_last = number == len(units) - 1
            is_whole = not (is_last and self._is_by_word) or unit[-1:].isspace()
            if len(unit) > LONGEST_WORD:
                is_whole = True
            part = delta if unit == text else bare_delta(delta, unit)
            waiting = _Waiting(part, arrived, is_whole=is_whole)
            self._queue.append(waiting)
            self._units += 1
            self._characters += len(unit)
            arrived = now


def smooth(by: Unit = "word", lag: float = 0.5) -> Keep:
    """Text at an even pace, however it arrives: ``smooth()``.

    The pace follows the model's, and no text is more than `lag` seconds late. The first token is
    let out at once; an event that stands behind waiting text waits with it, the end of the stream
    too. 2 us a word; buffers the text of `lag` seconds.

    Args:
        by: what is let out at once: "word" or "character".
        lag: seconds that text may wait.

    Raises:
        ValueError: the lag is negative, or `by` is something else.
    """
    check_seconds("lag", lag, may_be_zero=True)
    if by not in _UNITS:
        raise ValueError(f"smooth works by {' or '.join(_UNITS)}, not by {by!r}")
    return Keep(lambda clock: _Smooth(by, lag, clock), f"smooth({by!r}, {lag:g})")


# --- silence ---


class Deadline(PlainMachine):
    """Ends a response that is silent, or takes too long.

    Args:
        gap: seconds without an event; None: any.
        total: seconds of the whole response; None: any.
        clock: seconds.
        terminal: the terminal event, after a "gap" or the "total".
    """

    def __init__(
        self,
        gap: float | None,
        total: float | None,
        clock: Clock,
        terminal: Callable[[str], Completed | Failed],
    ) -> None:
        super().__init__()
        self._gap = gap
        self._total = total
        self._clock = clock
        self._terminal = terminal
        self._began = clock()
        self._last = self._began
        """Time of the last event."""
        self._items = OpenItems()

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event itself."""
        if self.done:
            return []
        self._last = self._clock()
        self._items.feed(event)
        return [event]

    def due(self) -> float | None:
        """Seconds until the time is up."""
        if self._items.has_ended:
            return None
        times: list[float] = []
        if self._gap is not None:
            times.append(self._last + self._gap)
        if self._total is not None:
            times.append(self._began + self._total)
        return max(0.0, min(times) - self._clock())

    def expire(self) -> list[ResponseEvent]:
        """The end of the response, if the time is up."""
        now = self._clock()
        if self._total is not None and now >= self._began + self._total:
            return self._end("total")
        if self._gap is not None and now >= self._last + self._gap:
            return self._end("gap")
        return []

    def _end(self, phase: str) -> list[ResponseEvent]:
        self.done = True
        self.ending = self._items.end(self._terminal(phase), LIMIT_REACHED)
        return list(self.ending)


def timeout(gap: float | None = None, total: float | None = None) -> Keep:
    """Ends a response that is silent, or takes too long: ``timeout(gap=30, total=300)``.

    It ends with `Failed`: kind ``stalled`` after a gap, ``deadline`` after the total, open items
    incomplete. In a run a further response's times begin with its first event. 0.4 us an event;
    buffers the open item.

    Args:
        gap: seconds without an event, the wait for the first one included.
        total: seconds of the whole response.

    Raises:
        ValueError: neither is given, or one is not positive.
    """
    if gap is None and total is None:
        raise ValueError("timeout needs a gap, a total, or both")
    for name, seconds in (("gap", gap), ("total", total)):
        if seconds is not None:
            check_seconds(name, seconds)

    def terminal(phase: str) -> Failed:
        is_gap = phase == "gap"
        kind: ErrorKind = "stalled" if is_gap else "deadline"
        message = f"no event for {gap:g} s" if is_gap else f"no end within {total:g} s"
        return Failed(ErrorInfo(kind, message, is_gap, code=STOPPED, detail={"phase": phase}))

    return Keep(lambda clock: Deadline(gap, total, clock, terminal), "timeout()")
