"""Puts items in sequence for client wires without blocks, on which the deltas of two items that are
open at the same time would mix.

    open 0 · "Hel" of 0 · open 1 · "B" of 1 · "lo" of 0 · close 0 · close 1   ->   "Hel" "lo" · "B"

If a message or reasoning opens while another one of its choice is open, its events are buffered
until that one closes. Calls are not reordered, because those wires number them.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.events import OutputItemAdded, OutputItemDone, ResponseEvent
from streamlib_parsers.items import Message, Reasoning

SEQUENTIAL: Final = (Message, Reasoning)
"""Kinds of items whose deltas these wires cannot tell apart."""


class ItemSequencer:
    """Delays messages and reasoning, so that each choice has one open at a time, in order of start.

    It only changes the order of events; `EventTranslator` numbers them afterwards.
    """

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Choice -> index of its open item."""
        self._buffered: dict[int, list[ResponseEvent]] = {}
        """Item index -> events of an item that waits, in the order in which items opened."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """Returns the event and those that waited for it; nothing if it has to wait itself."""
        if isinstance(event, OutputItemAdded) and isinstance(event.item, SEQUENTIAL):
            open_index = self._open.setdefault(event.item.choice, event.index)
            if open_index != event.index:
                self._buffered[event.index] = []
        if self._buffered:
            # Events without an item (`TokenCount`) do not wait.
            buffer = self._buffered.get(getattr(event, "index", -1))
            if buffer is not None:
                buffer.append(event)
                return []
        if type(event) is OutputItemDone and self._open.get(event.item.choice) == event.index:
            return [event, *self._release(event.item.choice)]
        return [event]

    def _release(self, choice: int) -> list[ResponseEvent]:
        """The buffered events of a choice, up to those of an item that is still open."""
        del self._open[choice]
        released: list[ResponseEvent] = []
        # A copy, because the loop removes entries.
        for index, events in list(self._buffered.items()):
            added = events[0]
            if not isinstance(added, OutputItemAdded) or added.item.choice != choice:
                continue
            released += self._buffered.pop(index)
            # The item is still open: its next events pass, and later items continue to wait.
            if not isinstance(events[-1], OutputItemDone):
                self._open[choice] = index
                break
        return released
