"""Positions in a response: of items, notices and unknown events, by frame, event and byte."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib.inspection.document import InspectedItem, InspectedNotice, UnknownEvent
from streamlib.inspection.event_text import item_label
from streamlib.inspection.frames import Step
from streamlib_parsers.events import (
    TEXT_DELTAS,
    Completed,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    ResponseEvent,
)
from streamlib_parsers.items import ResponseItem, tag


class _OpenItem(Struct):
    """An item whose end was not read yet."""

    frame: int
    event: int
    characters: int = 0


class Positions:
    """Reads the frames once and notes positions.

    Attributes:
        events: all events, in order.
        items: closed items, in the order in which they start.
        notices: all notices, in order.
        unknown_events: unknown events, each kind once, at its first occurrence.
        characters: number of characters of all texts and arguments.
        event_counts: number of events of each type.
        is_completed: whether the wire completed the response.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.events: list[ResponseEvent] = []
        self.items: list[InspectedItem] = []
        self.notices: list[InspectedNotice] = []
        self.unknown_events: list[UnknownEvent] = []
        self.characters = 0
        self.event_counts: dict[str, int] = {}
        self.is_completed = False
        self._open: dict[int, _OpenItem] = {}
        """Item index -> the open item."""
        self._unknown: dict[str, int] = {}
        """Kind of an unknown event -> its index in `unknown_events`."""
        failed_frame = _failed_frame(steps)
        for number, step in enumerate(steps):
            for event in step.events:
                self._add(event, step.start, number, is_cut=number == failed_frame)
        self.items.sort(key=_index_of)

    def _add(self, event: ResponseEvent, byte: int, frame: int, *, is_cut: bool) -> None:
        number = len(self.events)
        self.events.append(event)
        name = tag(type(event))
        self.event_counts[name] = self.event_counts.get(name, 0) + 1
        if isinstance(event, TEXT_DELTAS):
            self.characters += len(event.delta)
            self._open[event.index].characters += len(event.delta)
        elif isinstance(event, OutputItemAdded):
            self._open[event.index] = _OpenItem(frame, number)
        elif isinstance(event, OutputItemDone):
            self._close(event, frame, is_cut=is_cut)
        elif isinstance(event, Notice):
            notice = InspectedNotice(
                code=event.code, detail=event.detail, index=event.index, byte=byte, frame=frame
            )
            self.notices.append(notice)
        elif isinstance(event, Passthrough):
            self._add_unknown(event.event, byte, frame)
        elif isinstance(event, Completed):
            self.is_completed = True

    def _close(self, event: OutputItemDone, frame: int, *, is_cut: bool) -> None:
        number = len(self.events) - 1
        opened = self._open.pop(event.index, None) or _OpenItem(frame, number)
        item: ResponseItem = event.item
        closed = InspectedItem(
            index=event.index,
            type=tag(type(item)),
            label=item_label(item),
            choice=item.choice,
            first_frame=opened.frame,
            last_frame=frame,
            first_event=opened.event,
            last_event=number,
            status=item.status,
            # Before `Failed` the parser closes all open items.
            truncated=is_cut and item.status == "incomplete",
            characters=opened.characters,
        )
        self.items.append(closed)

    def _add_unknown(self, name: str, byte: int, frame: int) -> None:
        number = self._unknown.get(name)
        if number is None:
            self._unknown[name] = len(self.unknown_events)
            self.unknown_events.append(UnknownEvent(event=name, byte=byte, frame=frame))
            return
        known = self.unknown_events[number]
        self.unknown_events[number] = UnknownEvent(
            event=name, byte=known.byte, frame=known.frame, count=known.count + 1
        )


def _failed_frame(steps: Sequence[Step]) -> int | None:
    """Number of the frame that failed the response; None if it did not fail."""
    for number in range(len(steps) - 1, -1, -1):
        # Those after the terminal event have no events.
        if steps[number].is_read:
            events = steps[number].events
            return number if any(isinstance(event, Failed) for event in events) else None
    return None


def _index_of(item: InspectedItem) -> int:
    return item.index
