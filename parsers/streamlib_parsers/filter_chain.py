"""The filters of a parser, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent


class EventFilter(Protocol):
    """Rewrites the events that the wire's assembler emitted."""

    failure: ErrorInfo | None
    """Set once the filter exceeded a limit: the stream must end with it."""

    def feed(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events to emit for `events`."""
        ...


class FilterChain:
    """Takes the assembler's events through the filters.

    One that exceeds a limit ends the stream.
    """

    def __init__(self, filters: Sequence[EventFilter], assembler: EventAssembler) -> None:
        self.unfiltered: list[ResponseEvent] = []
        """The events of the last `take` as the wire's assembler emitted them."""
        self._filters = filters
        self._assembler = assembler

    def take(self) -> list[ResponseEvent]:
        """The filtered events since the last call."""
        assembler = self._assembler
        events = self.unfiltered = assembler.take()
        for event_filter in self._filters:
            events = event_filter.feed(events)
            if event_filter.failure is not None and not assembler.ended:
                assembler.fail(event_filter.failure)
                events = [*events, *event_filter.feed(assembler.take())]
        return events
