"""Stages that wait for a call for each unit of the text: an async `map_text`, and `guard`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace as with_fields

from streamlib.pipeline.calls import Call, SlotMachine
from streamlib.pipeline.endings import TERMINAL, OpenItems
from streamlib.pipeline.text_events import TextEvents, text_edit
from streamlib.pipeline.units import TextMachine, text_of
from streamlib_parsers.events import (
    TEXT_DELTAS,
    Completed,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
)
from streamlib_parsers.items import ContentPart, Message, Text

GuardMode: TypeAlias = Literal["hold", "watch"]

AT_ONCE = 4
"""Calls of an async `map_text` that run at once."""


class UnitCalls(SlotMachine):
    """Base of the two: a call for each unit of the text."""

    def __init__(
        self, units: Callable[[], TextMachine], function: Callable[[str], Any], at_once: int
    ) -> None:
        super().__init__(function, at_once)
        self._make_units = units
        self._units = TextEvents(text_edit(units, changes=False))

    @property
    def buffered(self) -> int:
        """Characters that wait for the end of their unit, or for a call."""
        waiting = [slot.event for slot in self.slots]
        return self._units.buffered + _length_of(waiting)

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What waits for no call."""
        if self.done:
            return []
        return self.take(self._units.feed(event))

    def close(self) -> list[ResponseEvent]:
        """What waits for no call; the rest follows from `expire`."""
        if self.done:
            return []
        return self.take(self._units.close())

    def arguments(self, event: ResponseEvent) -> list[str] | None:
        """The unit that a delta is."""
        if isinstance(event, OutputTextDelta) and event.delta:
            return [event.delta]
        return None

    def divided(self, text: str) -> list[str]:
        """The units of a text of which there were no deltas."""
        machine = self._make_units()
        return machine.feed(text) + machine.close()


class MapUnitsAsync(UnitCalls):
    """The machine of `map_text` with an async function.

    Args:
        units: makes what cuts a text into units.
        function: from a unit to what is shown for it.
    """

    def __init__(self, units: Callable[[], TextMachine], function: Callable[[str], Any]) -> None:
        super().__init__(units, function, AT_ONCE)
        self.answers: dict[str, str] = {}
        """A unit -> what is shown for it: of the calls of one event."""
        self.requested: list[str] | None = None
        """Where a list, units are collected and stay as they are."""
        self._texts = TextEvents(text_edit(lambda: _Answered(self)))

    def arguments_later(self, event: ResponseEvent) -> list[str]:
        """Units of the strings that repeat the text, and of a text without deltas."""
        if isinstance(event, OutputTextDelta):
            return []
        requested = self.requested = []
        self._texts.texts_of(event)
        self.requested = None
        return requested

    def checked(self, result: Any) -> str:
        """The text that the function returned."""
        return text_of(result, "map_text")

    def finished(self, event: ResponseEvent, calls: list[Call]) -> list[ResponseEvent]:
        """The event with the function's texts."""
        self.answers = {call.argument: call.result for call in calls}
        return self._texts.feed(event)


class _Answered:
    """Puts the results of calls in place of the units."""

    buffered = 0

    def __init__(self, stage: MapUnitsAsync) -> None:
        self._stage = stage

    def feed(self, text: str) -> list[str]:
        stage = self._stage
        if stage.requested is not None:
            stage.requested += stage.divided(text)
            return [text]
        if text in stage.answers:
            return [stage.answers[text]]
        return [stage.answers[unit] for unit in stage.divided(text)]

    def close(self) -> list[str]:
        return []


class Guard(UnitCalls):
    """The machine of `guard`.

    Args:
        units: makes what cuts a text into units.
        check: whether a unit may be shown.
        mode: "hold": units leave when they are checked; "watch": at once.
        ahead: checks that run at once.
    """

    def __init__(
        self,
        units: Callable[[], TextMachine],
        check: Callable[[str], Any],
        mode: GuardMode,
        ahead: int,
    ) -> None:
        super().__init__(units, check, ahead)
        self._holds = mode == "hold"
        self._items = OpenItems()
        self._streamed: dict[int, list[str]] = {}
        """Texts of open items of which there were deltas."""
        self._behind: deque[ResponseEvent] = deque()
        """Where all is shown at once: the end of an item whose checks have not ended, and what
        stands behind it. Whether the item is complete is not known yet."""
        self._allowed = 0
        """Ends in `_behind` whose checks have ended."""

    @property
    def full(self) -> bool:
        """Whether a checked unit has to leave first; never where all is shown at once."""
        return self._holds and super().full

    @property
    def buffered(self) -> int:
        """Characters that are not shown yet."""
        if self._holds:
            return super().buffered
        return _length_of(self._behind)

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What was checked; where all is shown at once, everything but the ends of items."""
        if self._holds or self.done:
            return super().feed(event)
        shown: list[ResponseEvent] = []
        if self._behind or _is_end(event):
            self._behind.append(event)
        else:
            self._items.feed(event)
            shown.append(event)
        units = self._units.feed(event)
        # Only to be checked: the events themselves are shown, or wait in `_behind`.
        return shown + self.take(units)

    def checked(self, result: Any) -> bool:
        """The verdict. What is none, such as a text or an async generator, would be true."""
        if not isinstance(result, bool):
            raise TypeError(f"the check of guard returned a {type(result).__name__}, no bool")
        return result

    def arguments_later(self, event: ResponseEvent) -> list[str]:
        """Units of a message of which there were no deltas, or others."""
        if not isinstance(event, OutputItemDone) or not isinstance(event.item, Message):
            return []
        streamed = "".join(self._streamed.pop(event.index, ()))
        if streamed == event.item.text:
            return []
        units: list[str] = []
        for part in event.item.content:
            if isinstance(part, Text):
                units += self.divided(part.text)
        return units

    def finished(self, event: ResponseEvent, calls: list[Call]) -> list[ResponseEvent]:
        """The event, or the end of the response if a unit must not be shown."""
        allowed = ""
        for call in calls:
            if not call.result:
                return self._refuse(event, allowed)
            allowed += call.argument
        if isinstance(event, OutputTextDelta):
            self._streamed.setdefault(event.index, []).append(event.delta)
        if self._holds:
            self._items.feed(event)
            return [event]
        if not _is_end(event):
            return []
        self._allowed += 1
        return self._release()

    def _refuse(self, event: ResponseEvent, allowed: str) -> list[ResponseEvent]:
        """The end of the response, since the check has refused what stands behind `allowed`."""
        self.done = True
        self.drop()
        self._behind.clear()
        events: list[ResponseEvent] = []
        if self._holds and allowed and isinstance(event, OutputItemDone):
            # Its text came without deltas: what was allowed before that unit stays.
            events.append(_shortened(event, len(allowed)))
            self._items.feed(events[0])
        terminal = Completed(stop_reason="content_filter")
        self.ending = self._items.end(terminal, "a check has refused the text")
        return [*events, *self.ending]

    def _release(self) -> list[ResponseEvent]:
        """What stands behind no unchecked text any more."""
        events: list[ResponseEvent] = []
        while self._behind:
            if _is_end(self._behind[0]):
                if not self._allowed:
                    break
                self._allowed -= 1
            event = self._behind.popleft()
            self._items.feed(event)
            events.append(event)
        return events


def _length_of(events: Iterable[ResponseEvent]) -> int:
    """Characters of the deltas among events."""
    return sum([len(event.delta) for event in events if isinstance(event, TEXT_DELTAS)])


def _is_end(event: ResponseEvent) -> bool:
    """Whether an event ends an item or the response."""
    return isinstance(event, OutputItemDone) or type(event) in TERMINAL


def _shortened(event: OutputItemDone, length: int) -> OutputItemDone:
    """The end of a message that is incomplete: of its texts only so many characters."""
    content: list[ContentPart] = []
    for part in event.item.content if isinstance(event.item, Message) else ():
        if not length:
            break
        if not isinstance(part, Text):
            content.append(part)
            continue
        text = part.text[:length]
        length -= len(text)
        content.append(with_fields(part, text=text))
    return with_fields(event, item=with_fields(event.item, content=content, status="incomplete"))
