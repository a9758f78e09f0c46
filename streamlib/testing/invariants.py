"""The laws that every list of events keeps, as checks that say which one was broken.

    check(events)            numbered, bracketed, one terminal, valid text, no half call: raises `LawBroken`
    Watch()                  the same while the events come
    log(events)              what two readings of one body must have in common, to the byte
    fold(events)             adjacent deltas joined, for where text is held back (dialects, encoders)

`LawBroken` is an `AssertionError`: in a test these functions are assertions, and they need no library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

import msgspec

from streamlib_parsers.events import (
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
)

_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(ResponseEvent).decode
_TERMINAL: Final = (Completed, Failed)


class InvariantViolation(AssertionError):
    """A promise that did not hold. `law`: its name."""

    def __init__(self, law: str, detail: str) -> None:
        super().__init__(f"{law}: {detail}")
        self.invariant = law


def check(events: Iterable[ResponseEvent]) -> None:
    """Every law that can be seen in one whole list of events."""
    events = list(events)
    for event in events:
        _typed(event)
    watch = InvariantChecker()
    watch.feed(events)
    watch.close()


def log(events: Iterable[Any]) -> list[bytes | str]:
    """Events (or frames) as text, `seq` and all: what must not depend on the cuts."""
    return [_line(event) for event in events]


def _line(event: Any) -> bytes | str:
    try:
        return _ENCODE.encode(event)
    except (
        OverflowError,
        TypeError,
        ValueError,
    ):  # a number or a text that JSON cannot hold: shown as it is
        return repr(event)


# --- one stream, event by event ---


class InvariantChecker:
    """Follows a stream and raises at the first event that breaks a law.

    open: the indexes of the items that are not closed. done: the closed ones. ended: the terminal event was seen.
    """

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.done: dict[int, ResponseItem] = {}
        self.ended = False
        self._count = 0
        self._created = False
        self._said: dict[int, dict[tuple[str, int], list[str]]] = {}
        self._replaced: set[int | None] = set()

    def feed(self, events: Iterable[ResponseEvent]) -> None:
        """The next events."""
        for event in events:
            _hold(
                not self.ended, "one terminal", f"{type(event).__name__} after the terminal event"
            )
            _hold(event.seq == self._count, "numbered", f"seq {event.seq} in place {self._count}")
            self._place(event)
            self._count += 1

    def close(self) -> None:
        """The stream is over: the terminal event was seen, and what was said is what the items hold."""
        _hold(self.ended, "one terminal", "the stream ended without its terminal event")
        for index, item in self.done.items():
            if index not in self._replaced:
                _same(self._said[index], item, index)

    def _place(self, event: ResponseEvent) -> None:
        if isinstance(event, OutputItemAdded):
            self._added(event)
        elif isinstance(event, OutputItemDone):
            self._inside(event.index, "OutputItemDone")
            self.open.remove(event.index)
            self.done[event.index] = _sound(event.item)
        elif isinstance(event, _TERMINAL):
            _hold(not self.open, "brackets", f"items {sorted(self.open)} are open at the end")
            self.ended = True
        elif isinstance(event, Notice):
            self._replaced.update([event.index] if event.code == "text_replaced" else [])
        elif isinstance(event, Created):
            _hold(not self._created, "order", "a second Created")
            self._created = True
        elif isinstance(event, RateLimits) or getattr(event, "index", None) is None:
            pass
        else:
            self._grow(event)

    def _added(self, event: OutputItemAdded) -> None:
        _hold(self._created, "order", "an item before Created")
        _hold(
            event.index == len(self._said),
            "brackets",
            f"item {event.index} begins in place {len(self._said)}",
        )
        _hold(
            event.item.status == "incomplete",
            "brackets",
            f"item {event.index} is complete before it grew",
        )
        self.open.add(event.index)
        self._said[event.index] = {}

    def _grow(self, event: Any) -> None:
        self._inside(event.index, type(event).__name__)
        place = _PLACE.get(type(event))
        if place is not None:
            _valid(event.delta, type(event).__name__)
            part = getattr(event, place[1]) if len(place) > 1 else 0
            self._said[event.index].setdefault((_TEXT[type(event)], part), []).append(event.delta)

    def _inside(self, index: int, what: str) -> None:
        _hold(index in self.open, "brackets", f"{what} for item {index}, which is not open")


def _typed(event: ResponseEvent) -> None:
    """Each field holds what its type says: an event that was written down can be read again."""
    try:
        _DECODE(_ENCODE.encode(event))
    except msgspec.ValidationError as error:
        raise InvariantViolation("typed", f"{type(event).__name__}: {error}") from None
    except (
        OverflowError,
        ValueError,
        RecursionError,
    ):  # numbers past 64 bits, halves of emoji: other laws speak of them
        pass


def _hold(held: bool, law: str, detail: str) -> None:  # noqa: FBT001  # it is an assertion
    if not held:
        raise InvariantViolation(law, detail)


def _sound(item: ResponseItem) -> ResponseItem:
    """The item itself: its text is valid, and a call that may be answered is whole."""
    try:
        msgspec.json.encode(item)
    except UnicodeEncodeError as error:
        raise InvariantViolation("valid text", f"{type(item).__name__}: {error}") from None
    except (
        OverflowError,
        ValueError,
    ):  # numbers that JSON of 64 bits cannot hold are not about text
        pass
    if isinstance(item, FunctionCall) and item.status == "completed" and item.arguments:
        try:
            json.loads(item.arguments)
        except (ValueError, RecursionError):
            raise InvariantViolation(
                "whole calls", f"{item.name} is callable with {item.arguments[:80]!r}"
            ) from None
    return item


def _valid(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvariantViolation("valid text", f"{what} {text[:40]!r}") from None


def _same(said: dict[tuple[str, int], list[str]], item: ResponseItem, index: int) -> None:
    """Joined deltas are the item's text."""
    for kind, text in _texts(item).items():
        joined = "".join(
            "".join(pieces) for (what, _), pieces in sorted(said.items()) if what == kind
        )
        _hold(
            joined == text,
            "brackets",
            f"item {index}: its {kind} is {text[:60]!r}, its deltas said {joined[:60]!r}",
        )


def _texts(item: ResponseItem) -> dict[str, str]:
    if isinstance(item, Message):
        return {
            "text": item.text,
            "refusal": "".join(part.refusal for part in item.content if isinstance(part, Refusal)),
        }
    if isinstance(item, Reasoning):
        return {"thought": item.content, "summary": "".join(item.summary)}
    if isinstance(item, (FunctionCall, ServerToolCall)):
        return {"arguments": item.arguments}
    return {"arguments": item.input} if isinstance(item, CustomToolCall) else {}


# --- adjacent deltas ---

_PLACE: Final[dict[type, tuple[str, ...]]] = {
    OutputTextDelta: ("index", "content_index"),
    ReasoningContentDelta: ("index", "content_index"),
    ReasoningSummaryDelta: ("index", "summary_index"),
    FunctionCallArgumentsDelta: ("index",),
    RefusalDelta: ("index", "content_index"),
}
"""Deltas that may be joined, and what says where they belong."""

_TEXT: Final[dict[type, str]] = {
    OutputTextDelta: "text",
    ReasoningContentDelta: "thought",
    ReasoningSummaryDelta: "summary",
    FunctionCallArgumentsDelta: "arguments",
    RefusalDelta: "refusal",
}


def join_deltas(events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
    """Each run of deltas that go to the same place joined into its first; everything else stays as it is, in order.

    Needed only where text is held back (dialects, encoders): there the places at which deltas are cut are not a promise.
    """
    return [
        event
        for place, run in groupby(events, _place_of)
        for event in (run if place is None else [_join(list(run))])
    ]


def _place_of(event: ResponseEvent) -> tuple[Any, ...] | None:
    fields = _PLACE.get(type(event))
    return None if fields is None else (type(event), *(getattr(event, field) for field in fields))


def _join(run: list[Any]) -> ResponseEvent:
    changes: dict[str, Any] = {"delta": "".join(event.delta for event in run)}
    if "logprobs" in run[0].__struct_fields__ and any(event.logprobs for event in run):
        changes["logprobs"] = [one for event in run for one in event.logprobs or ()]
    joined: ResponseEvent = msgspec.structs.replace(run[0], **changes)
    return joined
