"""Stages that wait for a call for each unit of the text: an async `map_text`, and `guard`.

    events ─▶ cut into units ─▶ slots, in order: event, calls ─▶ let out, when its calls have ended

The calls run beside the stream, a few at once; what stands behind a unit waits with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace as with_fields

from streamlib.pipeline.calls import Call
from streamlib.pipeline.endings import TERMINAL, OpenItems
from streamlib.pipeline.machine import PlainMachine
from streamlib.pipeline.text_events import TextEdit, TextEvents
from streamlib.pipeline.units import TextMachine
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


class _Slot:
    """An event, and the calls that it waits for; None: not yet known which."""

    def __init__(self, event: ResponseEvent, calls: list[Call] | None) -> None:
        self.event = event
        self.calls = calls


class UnitCalls(PlainMachine):
    """Base of the two: events in slots, which leave in order when their calls have ended."""

    def __init__(self, rule: TextEdit, function: Callable[[str], Any], at_once: int) -> None:
        super().__init__()
        self._rule = rule
        self._units = TextEvents(rule)
        self._function = function
        self._at_once = at_once
        self._slots: deque[_Slot] = deque()
        self._to_start: deque[Call] = deque()
        self._running: list[Call] = []
        self._waiting_units = 0
        """Slots with calls."""

    @property
    def buffered(self) -> int:
        """Characters that wait for the end of their unit, or for a call."""
        count = self._units.buffered
        for slot in self._slots:
            if isinstance(slot.event, OutputTextDelta):
                count += len(slot.event.delta)
        return count

    @property
    def waiting(self) -> bool:
        """Whether calls have not ended."""
        return bool(self._slots)

    @property
    def full(self) -> bool:
        """Whether as many units wait as calls may run at once."""
        return self._waiting_units >= self._at_once

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What waits for no call."""
        if self.done:
            return []
        return self._take(self._units.feed(event))

    def close(self) -> list[ResponseEvent]:
        """What waits for no call; the rest follows from `expire`."""
        if self.done:
            return []
        return self._take(self._units.close())

    def due(self) -> float | None:
        """0 when the first event need not wait any longer, or another call may begin."""
        if self._slots and self._is_ready(self._slots[0]):
            return 0.0
        if self._to_start and len(self._running_calls()) < self._at_once:
            return 0.0
        return None

    def expire(self) -> list[ResponseEvent]:
        """The events that need not wait any longer."""
        return self._let_out()

    def calls(self) -> list[Callable[[], Awaitable[None]]]:
        """The calls to start now."""
        running = self._running_calls()
        while self._to_start and len(running) < self._at_once:
            running.append(self._to_start.popleft())
        started = [call.run for call in running if call not in self._running]
        self._running = running
        return list(started)

    # --- for the two stages ---

    def units_of(self, event: ResponseEvent) -> list[str]:
        """Units that an event holds, other than those of deltas."""
        raise NotImplementedError

    def finished(self, slot: _Slot) -> list[ResponseEvent]:
        """What is let out for an event whose calls have ended."""
        raise NotImplementedError

    def divided(self, text: str) -> list[str]:
        """The units of a text of which there were no deltas."""
        machine = self._rule.machine(OutputTextDelta, 0, lambda code: None)
        return machine.feed(text) + machine.close()

    # --- slots ---

    def _running_calls(self) -> list[Call]:
        return [call for call in self._running if not call.has_ended]

    def _take(self, events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
        for event in events:
            calls: list[Call] | None = None
            if isinstance(event, OutputTextDelta) and event.delta:
                calls = self._called([event.delta])
            self._slots.append(_Slot(event, calls))
        return self._let_out()

    def _called(self, units: Iterable[str]) -> list[Call]:
        calls = [Call(self._function, unit) for unit in units]
        self._to_start += calls
        self._waiting_units += bool(calls)
        return calls

    def _is_ready(self, slot: _Slot) -> bool:
        return slot.calls is None or all(call.has_ended for call in slot.calls)

    def _let_out(self) -> list[ResponseEvent]:
        events: list[ResponseEvent] = []
        while self._slots and not self.done:
            slot = self._slots[0]
            if slot.calls is None:
                # What it needs depends on the events before it.
                slot.calls = self._called(self.units_of(slot.event))
            if not self._is_ready(slot):
                break
            errors = [call.error for call in slot.calls if call.error is not None]
            if errors and events:
                break  # raised at the next call, after the events before it
            self._slots.popleft()
            self._waiting_units -= bool(slot.calls)
            if errors:
                self._slots.clear()
                self._to_start.clear()
                raise errors[0]
            events += self.finished(slot)
        return events


class MapUnitsAsync(UnitCalls):
    """The machine of `map_text` with an async function.

    Args:
        rule: cuts the text into units.
        function: from a unit to what is shown for it.
    """

    def __init__(self, rule: TextEdit, function: Callable[[str], Any]) -> None:
        super().__init__(rule, function, AT_ONCE)
        self._answers = _Answers(self.divided)
        self._texts = TextEvents(self._answers)

    def units_of(self, event: ResponseEvent) -> list[str]:
        """Units of the strings that repeat the text, and of a text without deltas."""
        if isinstance(event, OutputTextDelta):
            return []
        self._answers.requested = []
        self._texts.texts_of(event)
        requested = self._answers.requested
        self._answers.requested = None
        return requested

    def finished(self, slot: _Slot) -> list[ResponseEvent]:
        """The event with the function's texts."""
        answers = self._answers.answers
        answers.clear()
        for call in slot.calls or ():
            if not isinstance(call.result, str):
                kind = type(call.result).__name__
                raise TypeError(f"the function of map_text returned a {kind}, not text")
            answers[call.argument] = call.result
        return self._texts.feed(slot.event)


class _Answers:
    """The rule that puts the results of calls in place of their units."""

    changes = True
    changes_copies = True
    kinds: frozenset[type] = frozenset({OutputTextDelta})

    def __init__(self, divided: Callable[[str], list[str]]) -> None:
        self.answers: dict[str, str] = {}
        """A unit -> what is shown for it: of the calls of one event."""
        self.requested: list[str] | None = None
        """Where a list, units are collected and stay as they are."""
        self.divided = divided

    def machine(self, kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del kind, choice, note
        return _Answered(self)


class _Answered:
    buffered = 0

    def __init__(self, rule: _Answers) -> None:
        self._rule = rule

    def feed(self, text: str) -> list[str]:
        rule = self._rule
        if rule.requested is not None:
            rule.requested += rule.divided(text)
            return [text]
        if text in rule.answers:
            return [rule.answers[text]]
        return [rule.answers[unit] for unit in rule.divided(text)]

    def close(self) -> list[str]:
        return []


class Guard(UnitCalls):
    """The machine of `guard`.

    Args:
        rule: cuts the text into units.
        check: whether a unit may be shown.
        mode: "hold": units leave when they are checked; "watch": at once.
        ahead: checks that run at once.
    """

    def __init__(
        self, rule: TextEdit, check: Callable[[str], Any], mode: GuardMode, ahead: int
    ) -> None:
        super().__init__(rule, check, ahead)
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
        return sum([len(event.delta) for event in self._behind if isinstance(event, TEXT_DELTAS)])

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
        if type(event) in TERMINAL:
            # Before it, what is left of items that were not closed.
            units = [*self._units.close(), event]
        # Only to be checked: the events themselves are shown, or wait in `_behind`.
        return shown + self._take(units)

    def units_of(self, event: ResponseEvent) -> list[str]:
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

    def finished(self, slot: _Slot) -> list[ResponseEvent]:
        """The event, or the end of the response if a unit must not be shown."""
        event = slot.event
        for number, call in enumerate(slot.calls or ()):
            if not call.result:
                return self._refuse(slot, number)
        if isinstance(event, OutputTextDelta):
            self._streamed.setdefault(event.index, []).append(event.delta)
        if self._holds:
            self._items.feed(event)
            return [event]
        if not _is_end(event):
            return []
        self._allowed += 1
        return self._release()

    def _refuse(self, slot: _Slot, number: int) -> list[ResponseEvent]:
        """The end of the response, since the check has refused a unit of an event."""
        self.done = True
        self._slots.clear()
        self._to_start.clear()
        self._behind.clear()
        events: list[ResponseEvent] = []
        if self._holds and number and isinstance(slot.event, OutputItemDone):
            # Its text came without deltas: what was allowed before that unit stays.
            allowed = "".join([call.argument for call in (slot.calls or [])[:number]])
            events.append(_shortened(slot.event, len(allowed)))
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
