"""One text after the other, for clients' wires that have no blocks: there, words of two texts that grow at the same time would mix.

    begin 0 · "Hel" of 0 · begin 1 · "B" of 1 · "lo" of 0 · end 0 · end 1      ->      "Hel" "lo" · "B"

Held back: what is said of a text or thought that begins while another one is open, until that one ends. Calls have indexes of their own.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.events import OutputItemAdded, OutputItemDone, ResponseEvent
from streamlib_parsers.items import Message, Reasoning

SPOKEN: Final = (Message, Reasoning)


class ItemSequencer:
    """Puts the texts of each choice in a row, in the order in which they begin."""

    def __init__(self) -> None:
        self._speaking: dict[int, int] = {}
        self._held: dict[int, list[ResponseEvent]] = {}

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event, with what waited for it; nothing where it has to wait."""
        if isinstance(event, OutputItemAdded) and isinstance(event.item, SPOKEN):
            speaking = self._speaking.setdefault(event.item.choice, event.index)
            self._held.update({event.index: []} if speaking != event.index else {})
        held = self._held.get(getattr(event, "index", -1)) if self._held else None
        if held is not None:
            held.append(event)
            return []
        if type(event) is OutputItemDone and self._speaking.get(event.item.choice) == event.index:
            return [event, *self._next(event.item.choice)]
        return [event]

    def _next(self, choice: int) -> list[ResponseEvent]:
        """What was held, up to a text that is still open."""
        del self._speaking[choice]
        out: list[ResponseEvent] = []
        for index, events in list(self._held.items()):
            first, last = events[0], events[-1]
            if (
                isinstance(first, OutputItemAdded)
                and first.item.choice == choice
                and choice not in self._speaking
            ):
                out += self._held.pop(index)
                if not isinstance(last, OutputItemDone):
                    self._speaking[choice] = index
        return out
