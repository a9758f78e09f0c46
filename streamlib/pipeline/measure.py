"""Times and counts of a stream, without changing it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from streamlib.pipeline.machine import Clock, PlainMachine, Stage
from streamlib.pipeline.stages import Keep
from streamlib_parsers.accumulate import Timing
from streamlib_parsers.events import (
    TEXT_DELTAS,
    TOKEN_EVENTS,
    Completed,
    ResponseEvent,
    TokenCount,
)

GAPS: Final = 10_000
"""Gaps that percentiles are made of, the latest ones: 80 KB, minutes of the fastest models."""

USES: Final = 10_000
"""Uses that a `Measure` keeps, the latest ones: it may be kept for as long as the program runs."""


class MeasuredUse(PlainMachine):
    """What a `Measure` has seen of one stream; readable while it runs.

    Attributes:
        events: number of events so far.
        characters: text in deltas so far.
        output_tokens: as the provider has counted them last; None: not yet.
        buffered_seconds: name of a stage of the pipeline -> seconds in which it held text.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.events = 0
        self.characters = 0
        self.output_tokens: int | None = None
        self.buffered_seconds: dict[str, float] = {}
        self._clock = clock
        self._start = clock()
        """Time at which the pipeline was entered."""
        self._last = self._start
        """Time of the latest event."""
        self._first: float | None = None
        """Time of the first token."""
        self._last_token = self._start
        self._longest = 0.0
        """Longest time between two events."""
        self._gaps: deque[float] = deque(maxlen=GAPS)
        """Times between tokens."""
        self._looked = self._start
        """When `look` was called last."""
        self._holding: list[str] = []
        """The stages that held text then."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event, counted."""
        now = self._clock()
        self.events += 1
        gap = now - self._last
        self._longest = max(self._longest, gap)
        self._last = now
        kind = type(event)
        if kind in TOKEN_EVENTS:
            if isinstance(event, TEXT_DELTAS):
                self.characters += len(event.delta)
            if self._first is None:
                self._first = now
            else:
                self._gaps.append(now - self._last_token)
            self._last_token = now
        elif isinstance(event, (TokenCount, Completed)) and event.usage is not None:
            self.output_tokens = event.usage.output_tokens
        return [event]

    def look(self, stages: Iterable[tuple[Stage, PlainMachine]]) -> None:
        """Notes which stages hold text: the pipeline calls it after each event."""
        now = self._clock()
        for name in self._holding:
            seconds = self.buffered_seconds.get(name, 0.0)
            self.buffered_seconds[name] = seconds + now - self._looked
        self._looked = now
        self._holding = [stage.name for stage, machine in stages if machine.buffered]

    @property
    def timing(self) -> Timing:
        """First token and last event, in seconds since the pipeline was entered, and the longest
        wait between two events."""
        return Timing(
            first_token=self.first_token,
            last=self._last - self._start,
            longest_gap=self._longest,
        )

    @property
    def first_token(self) -> float | None:
        """Seconds until the first token; None: there was none."""
        if self._first is None:
            return None
        return self._first - self._start

    def gap(self, percent: float) -> float | None:
        """The time between two tokens that so many percent of them do not exceed, in seconds.

        Of the latest 10,000 gaps; None where there was none.
        """
        if not self._gaps:
            return None
        gaps = sorted(self._gaps)
        position = max(0, -(-len(gaps) * percent // 100) - 1)
        return gaps[min(int(position), len(gaps) - 1)]

    @property
    def p50(self) -> float | None:
        """The median gap, in seconds."""
        return self.gap(50)

    @property
    def p95(self) -> float | None:
        """The gap that one in twenty exceeds, in seconds."""
        return self.gap(95)

    @property
    def p99(self) -> float | None:
        """The gap that one in a hundred exceeds, in seconds."""
        return self.gap(99)

    @property
    def tokens_per_second(self) -> float | None:
        """Output tokens a second between the first token and the last.

        None before the provider has counted them: some report 0 tokens when a response begins.
        """
        if not self.output_tokens or self._first is None or self._last_token <= self._first:
            return None
        return self.output_tokens / (self._last_token - self._first)

    def row(self) -> dict[str, float | int | None]:
        """Everything as one row of a table, seconds and numbers."""
        row: dict[str, float | int | None] = {
            "events": self.events,
            "characters": self.characters,
            "output_tokens": self.output_tokens,
            "first_token": self.first_token,
            "last": self._last - self._start,
            "longest_gap": self._longest,
            "p50": self.p50,
            "p95": self.p95,
            "p99": self.p99,
            "tokens_per_second": self.tokens_per_second,
        }
        for name, seconds in self.buffered_seconds.items():
            row[f"buffered {name}"] = seconds
        return row


class Measure(Keep):
    """Counts and times events without changing them: a stage, whose uses it keeps.

        measure = Measure()
        async with stream.pipe(measure, coalesce(1 / 30)) as events: …
        events.of(measure).first_token      # in this pipeline
        [use.row() for use in measure.uses]  # in all

    Attributes:
        uses: what it has seen, one for each pipeline; of the latest 10,000.
    """

    def __init__(self) -> None:
        super().__init__(self._begin, "Measure()")
        self.uses: deque[MeasuredUse] = deque(maxlen=USES)

    def _begin(self, clock: Clock) -> PlainMachine:
        use = MeasuredUse(clock)
        self.uses.append(use)
        return use

    def renewed(self, machine: PlainMachine, clock: Clock) -> PlainMachine:
        """The same one: a run is one use."""
        del clock
        return machine
