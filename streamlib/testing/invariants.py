"""Checks of the invariants of an event list; a failure names the invariant that is violated.

    check(events)         numbered, bracketed, one terminal event, valid text, no truncated call
    InvariantChecker()    the same checks, event by event while a stream is read
    log(events)           the events as text, byte for byte: equal for every partition of one body
    join_deltas(events)   adjacent deltas joined, for where text is buffered (dialects, encoders)

Checks raise `InvariantViolation`. It is an `AssertionError`, so in a test these functions are
assertions, whatever library runs the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final, TypeAlias

import msgspec

from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    TextDelta,
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

TextKey: TypeAlias = tuple[str, int]
"""Identifies a text of an item: its kind (a value of `TEXT_KINDS`), and the number of its part."""

_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(ResponseEvent).decode


class InvariantViolation(AssertionError):
    """An invariant does not hold.

    Attributes:
        invariant: name of the invariant.
    """

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(invariant, detail)  # both: pickle calls the class with them
        self.invariant = invariant

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


def check(events: Iterable[ResponseEvent]) -> None:
    """Checks every invariant that a complete list of events can show.

    Raises:
        InvariantViolation: the first invariant that does not hold.
    """
    events = list(events)
    for event in events:
        _check_field_types(event)
    checker = InvariantChecker()
    checker.feed(events)
    checker.close()


def log(events: Iterable[Any]) -> list[bytes | str]:
    """Events (or frames) as text, `seq` included: equal for every partition."""
    return [_log_line(event) for event in events]


def _log_line(event: Any) -> bytes | str:
    try:
        return _ENCODE.encode(event)
    except (OverflowError, TypeError, ValueError):
        # JSON cannot represent a number or a text of it, so it is compared by its repr.
        return repr(event)


# --- one stream, event by event ---


class InvariantChecker:
    """Follows a stream and raises `InvariantViolation` at the first event that violates one.

    Attributes:
        open: indexes of the items that are open.
        done: the closed items by index.
        ended: whether the terminal event was read.
    """

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.done: dict[int, ResponseItem] = {}
        self.ended = False
        self._count = 0
        """Number of events read so far, which is the `seq` of the next one."""
        self._created = False
        """Whether `Created` was read."""
        self._texts: dict[int, dict[TextKey, list[str]]] = {}
        """Item index -> deltas by text, for every item that was ever opened."""
        self._replaced: set[int | None] = set()
        """Items whose final text may differ from their deltas, because a notice says so."""

    def feed(self, events: Iterable[ResponseEvent]) -> None:
        """Checks the next events."""
        for event in events:
            name = type(event).__name__
            _require(not self.ended, "one terminal", f"{name} after the terminal event")
            _require(
                event.seq == self._count, "numbered", f"seq {event.seq}, expected {self._count}"
            )
            self._check_event(event)
            self._count += 1

    def close(self) -> None:
        """Checks that a terminal event was read, and that joined deltas equal the items."""
        _require(self.ended, "one terminal", "the stream ended without its terminal event")
        for index, item in self.done.items():
            if index not in self._replaced:
                _check_text(self._texts[index], item, index)

    def _check_event(self, event: ResponseEvent) -> None:
        match event:
            case OutputTextDelta() | ReasoningContentDelta() | RefusalDelta():
                self._append(event, event.content_index)
            case FunctionCallArgumentsDelta():
                self._append(event, 0)
            case ReasoningSummaryDelta():
                self._append(event, event.summary_index)
            case OutputItemAdded():
                self._check_added(event)
            case OutputItemDone():
                self._check_done(event)
            case MediaDelta() | AnnotationAdded() | ItemProgress():
                self._require_open(event.index, type(event).__name__)
            case Completed() | Failed():
                _require(
                    not self.open, "brackets", f"items {sorted(self.open)} are open at the end"
                )
                self.ended = True
            case Notice(code="text_replaced"):
                self._replaced.add(event.index)
            case Created():
                _require(not self._created, "order", "a second Created")
                self._created = True
            case _:  # rate limits, token counts, metadata, unknown events may occur anywhere
                pass

    def _check_added(self, event: OutputItemAdded) -> None:
        _require(self._created, "order", "an item before Created")
        expected = len(self._texts)
        _require(event.index == expected, "brackets", f"item {event.index}, expected {expected}")
        _require(
            event.item.status == "incomplete",
            "brackets",
            f"item {event.index} is complete before its deltas",
        )
        self.open.add(event.index)
        self._texts[event.index] = {}

    def _check_done(self, event: OutputItemDone) -> None:
        self._require_open(event.index, "OutputItemDone")
        self.open.remove(event.index)
        _check_item(event.item)
        self.done[event.index] = event.item

    def _append(self, event: TextDelta, part: int) -> None:
        name = type(event).__name__
        self._require_open(event.index, name)
        _check_unicode(event.delta, name)
        key = (TEXT_KINDS[type(event)], part)
        self._texts[event.index].setdefault(key, []).append(event.delta)

    def _require_open(self, index: int, event: str) -> None:
        _require(index in self.open, "brackets", f"{event} for item {index}, which is not open")


def _check_field_types(event: ResponseEvent) -> None:
    """Each field has its declared type, so that a written event can be read again."""
    try:
        _DECODE(_ENCODE.encode(event))
    except msgspec.ValidationError as error:
        raise InvariantViolation("typed", f"{type(event).__name__}: {error}") from None
    except (OverflowError, ValueError, RecursionError):
        # Integers past 64 bits and lone surrogates are checked by other invariants.
        pass


def _require(condition: bool, invariant: str, detail: str) -> None:  # noqa: FBT001  # an assertion
    if not condition:
        raise InvariantViolation(invariant, detail)


def _check_item(item: ResponseItem) -> None:
    """An item's text is valid Unicode, and a completed call has complete arguments."""
    try:
        msgspec.json.encode(item)
    except UnicodeEncodeError as error:
        raise InvariantViolation("valid text", f"{type(item).__name__}: {error}") from None
    except (OverflowError, ValueError):
        # A provider's integers past 64 bits are valid JSON that msgspec cannot encode.
        pass
    # Empty arguments mean `{}`, so they are complete.
    if isinstance(item, FunctionCall) and item.status == "completed" and item.arguments:
        try:
            json.loads(item.arguments)
        except (ValueError, RecursionError):
            detail = f"{item.name} is callable with {item.arguments[:80]!r}"
            raise InvariantViolation("complete calls", detail) from None


def _check_unicode(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvariantViolation("valid text", f"{name} {text[:40]!r}") from None


def _check_text(fragments: dict[TextKey, list[str]], item: ResponseItem, index: int) -> None:
    """The joined deltas of each text equal the text of the item."""
    streamed: dict[str, str] = {}
    for kind, part in sorted(fragments):  # parts may be streamed in any order
        streamed[kind] = streamed.get(kind, "") + "".join(fragments[kind, part])
    for kind, text in _item_texts(item).items():
        joined = streamed.get(kind, "")
        _require(
            joined == text,
            "brackets",
            f"item {index}: its {kind} is {text[:60]!r}, its deltas were {joined[:60]!r}",
        )


def _item_texts(item: ResponseItem) -> dict[str, str]:
    match item:
        case Message():
            refusal = "".join(part.refusal for part in item.content if isinstance(part, Refusal))
            return {"text": item.text, "refusal": refusal}
        case Reasoning():
            return {"reasoning": item.content, "summary": "".join(item.summary)}
        case FunctionCall() | ServerToolCall():
            return {"arguments": item.arguments}
        case CustomToolCall():
            return {"arguments": item.input}
        case _:
            return {}


# --- adjacent deltas ---

TEXT_KINDS: Final[dict[type[TextDelta], str]] = {
    OutputTextDelta: "text",
    ReasoningContentDelta: "reasoning",
    ReasoningSummaryDelta: "summary",
    FunctionCallArgumentsDelta: "arguments",
    RefusalDelta: "refusal",
}
"""Class of a delta -> the kind of text that it appends to."""


def join_deltas(events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
    """Joins adjacent deltas of the same text into one; other events stay, in order.

    Needed only if text is buffered (dialects, encoders), because there the deltas depend on the
    partition.
    """
    joined: list[ResponseEvent] = []
    for text, run in groupby(events, _text_of):
        if text is None:
            joined.extend(run)
        else:
            joined.append(_join(list(run)))
    return joined


def _text_of(event: ResponseEvent) -> tuple[str, int, int] | None:
    """The text that a delta appends to: kind, item, part; None for other events."""
    match event:
        case OutputTextDelta() | ReasoningContentDelta() | RefusalDelta():
            part = event.content_index
        case ReasoningSummaryDelta():
            part = event.summary_index
        case FunctionCallArgumentsDelta():
            part = 0
        case _:
            return None
    return TEXT_KINDS[type(event)], event.index, part


def _join(run: list[Any]) -> ResponseEvent:
    changes: dict[str, Any] = {"delta": "".join(event.delta for event in run)}
    if "logprobs" in run[0].__struct_fields__:
        logprobs = [entry for event in run for entry in event.logprobs or ()]
        if logprobs:
            changes["logprobs"] = logprobs
    joined: ResponseEvent = msgspec.structs.replace(run[0], **changes)
    return joined
