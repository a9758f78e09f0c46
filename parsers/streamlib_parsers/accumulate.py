"""Events to a `Response`: pure, incremental, the same for every wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Event,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.open_items import InOrder, OpenItem
from streamlib_parsers.response import (
    NO_OUTPUT,
    Choice,
    Response,
    ResponseStatus,
    Timing,
)

__all__ = [
    "NO_OUTPUT",
    "Accumulator",
    "Choice",
    "Response",
    "ResponseStatus",
    "Timing",
    "accumulate",
]
"""`Response` and its parts are exported here too, for programs written before 0.2.0."""


NO_ITEMS: Final[tuple[ResponseItem, ...]] = ()


class Accumulator:
    """Accumulates events one by one. `response` is built only when it is read."""

    def __init__(self) -> None:
        self._open: dict[int, OpenItem] = {}
        """Items between their Added and their Done, by index."""
        self._changed: dict[int, OpenItem] = {}
        """Those of them that changed since they were last shown: a response may have thousands of
        calls that are open until its end, and an event changes one."""
        self._choices: dict[int, InOrder[ResponseItem]] = {}
        """The items of each choice, by its index: final ones, and open ones as they were when last
        shown."""
        self._choice_of: dict[int, int] = {}
        """Index of each item to its choice."""
        self._fields: dict[str, Any] = {"metadata": {}}
        """Fields of `Response` that an event set."""
        self._is_metadata_shown = False
        """A snapshot holds the dict of `metadata`: it must not change any more."""
        self._base: Response | None = None
        """The response without items, for the next snapshot; None once one of its fields changed.
        Most events change none, and a response is made from one in half the time."""
        self._notices: list[Notice] = []
        self._terminal: Completed | Failed | None = None
        """The terminal event, once it arrived."""
        self._seq = -1
        """`seq` of the last event."""

    def feed(self, event: ResponseEvent) -> None:
        """Takes one event; events must arrive in their order.

        Raises:
            TypeError: the argument is not an event.
            ValueError: the event belongs to an item whose `OutputItemAdded` was not fed, or that
                is done: the events are not those of a stream from its start.
        """
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            if event.agent is not None:
                self._name_agent(event)
            try:
                handler(self, event)
            except KeyError:
                raise ValueError(_not_open(event)) from None
        elif not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(event).__name__
            raise TypeError(f"a {kind} is not an event: pass what a parser or a stream returns")
        self._seq = event.seq

    @property
    def response(self) -> Response:
        """The response accumulated so far.

        Cheap enough to be read after every event: its cost does not depend on the length of the
        text nor on how many items are open, and on their number, or that of the parts of an item,
        only as one reference is copied for each.
        """
        for index in self._changed:
            self._show(index)
        self._changed.clear()
        choices = self._shown_choices()
        own_items = NO_ITEMS
        if 0 in self._choices:
            own_items = self._choices[0].shown()
        base = self._base
        if base is None:
            base = self._base = Response(notices=tuple(self._notices), **self._fields)
            self._is_metadata_shown = True
        status = self._status()
        return msgspec.structs.replace(base, status=status, items=own_items, choices=choices)

    def item(self, index: int) -> ResponseItem:
        """The item of an index, final or accumulated so far.

        Raises:
            KeyError: no item with this index has started.
        """
        if index not in self._choice_of:
            raise KeyError(f"no item with the index {index} has started")
        if index in self._changed:
            self._show(index)
            del self._changed[index]
        return self._choices[self._choice_of[index]].get(index)

    def _show(self, index: int) -> None:
        """Takes what an open item has so far among the items that are shown."""
        item = self._open[index].snapshot("incomplete", self._fields.get("response_id"))
        # Among those of its choice since `_item_added`: a snapshot changes no choice.
        self._choices[item.choice].put(index, item)

    def _shown_choices(self) -> tuple[Choice, ...]:
        """The choices, by index, each with its items and how it ended."""
        if self._terminal is None or isinstance(self._terminal, Failed):
            if len(self._choices) == 1:  # mostly: nothing to sort
                [(number, own)] = self._choices.items()
                return (Choice(number, own.shown()),)
            return tuple(
                [Choice(number, self._choices[number].shown()) for number in sorted(self._choices)]
            )
        ends = {choice.choice: choice for choice in _finished_choices(self._terminal)}
        choices: list[Choice] = []
        for number in sorted({*ends, *self._choices}):
            items = NO_ITEMS
            if number in self._choices:
                items = self._choices[number].shown()
            end = ends.get(number)
            if end is None:
                choices.append(Choice(number, items))
            else:
                choices.append(Choice(number, items, end.stop_reason, end.native_stop_reason))
        return tuple(choices)

    def endings(self, error: ErrorInfo) -> list[ResponseEvent]:
        """The events that end this response here: open items become incomplete, then `Failed`.

        For the events of a stream whose rest is lost, such as a log that its writer left. They are
        not fed: do that with each.

        Args:
            error: why the response ends.

        Returns:
            Empty if the response has ended already.
        """
        if self._terminal is not None:
            return []
        endings: list[ResponseEvent] = []
        seq = self._seq
        for index, open_item in sorted(self._open.items()):
            seq += 1
            item = open_item.snapshot("incomplete")
            endings.append(OutputItemDone(index, item, seq=seq, agent=item.agent))
        endings.append(Failed(error, seq=seq + 1))
        return endings

    def _status(self) -> ResponseStatus:
        if self._terminal is None:  # mostly
            return "incomplete"
        match self._terminal:
            case Completed(stop_reason="length" | "content_filter"):
                return "incomplete"
            case Completed():
                return "completed"
            case Failed(error=ErrorInfo(kind="cancelled")):
                return "cancelled"
            case Failed():
                return "failed"

    def _change(self, index: int) -> OpenItem:
        """The open item that an event is about: it changes."""
        open_item = self._changed[index] = self._open[index]
        return open_item

    def _name_agent(self, event: ResponseEvent) -> None:
        """Sets the agent of an open item that was added without one."""
        open_item = self._open.get(getattr(event, "index", -1))
        if open_item is not None and open_item.agent is None:
            open_item.name_agent(event.agent)

    # --- one method for each kind of event ---

    def _text(self, event: OutputTextDelta) -> None:
        self._change(event.index).part(event.content_index).fragments.append(event.delta)

    def _reasoning(self, event: ReasoningContentDelta) -> None:
        self._change(event.index).part(event.content_index).fragments.append(event.delta)

    def _arguments(self, event: FunctionCallArgumentsDelta) -> None:
        self._change(event.index).arguments.append(event.delta)

    def _summary(self, event: ReasoningSummaryDelta) -> None:
        self._change(event.index).paragraph(event.summary_index).append(event.delta)

    def _refusal(self, event: RefusalDelta) -> None:
        self._change(event.index).part(event.content_index).other("refusal").append(event.delta)

    def _media(self, event: MediaDelta) -> None:
        part = self._change(event.index).part(event.content_index)
        part.media_type = event.media_type or part.media_type
        if event.data:
            part.other("data").append(event.data)
        if event.transcript:
            part.other("transcript").append(event.transcript)

    def _annotation(self, event: AnnotationAdded) -> None:
        self._change(event.index).part(event.content_index).annotations.append(event.annotation)

    def _item_added(self, event: OutputItemAdded) -> None:
        self._put(event.index, event.item)
        open_item = OpenItem(event.index, event.item)
        self._open[event.index] = self._changed[event.index] = open_item

    def _item_done(self, event: OutputItemDone) -> None:
        self._open.pop(event.index, None)
        self._changed.pop(event.index, None)
        response_id = self._fields.get("response_id")
        self._put(event.index, msgspec.structs.replace(event.item, response_id=response_id))

    def _put(self, index: int, item: ResponseItem) -> None:
        own = self._choices.get(item.choice)
        if own is None:
            own = self._choices[item.choice] = InOrder()
        before = self._choice_of.setdefault(index, item.choice)
        if before != item.choice:
            self._choice_of[index] = item.choice
            if self._choices[before].remove(index):
                del self._choices[before]
        own.put(index, item)

    def _created(self, event: Created) -> None:
        self._set_response_id(event.response_id)
        self._set("model", event.model)

    def _set(self, field: str, value: Any) -> None:
        self._fields[field] = value
        self._base = None

    def _set_response_id(self, response_id: str | None) -> None:
        if self._fields.get("response_id") == response_id:
            return
        self._set("response_id", response_id)
        for index, choice in self._choice_of.items():
            own = self._choices[choice]
            own.put(index, msgspec.structs.replace(own.get(index), response_id=response_id))

    def _usage(self, event: TokenCount) -> None:
        self._set("usage", event.usage)

    def _rate_limits(self, event: RateLimits) -> None:
        self._set("rate_limits", event)

    def _metadata(self, event: ResponseMetadata) -> None:
        metadata: dict[str, Any] = self._fields["metadata"]
        if self._is_metadata_shown:
            metadata = dict(metadata)
            self._is_metadata_shown = False
        metadata.update(event.values)
        self._set("metadata", metadata)

    def _notice(self, event: Notice) -> None:
        self._notices.append(event)
        self._base = None

    def _completed(self, event: Completed) -> None:
        self._terminal = event
        self._set("stop_reason", event.stop_reason)
        self._set("native_stop_reason", event.native_stop_reason)
        self._set("stop_sequence", event.stop_sequence)
        if event.response_id:
            self._set_response_id(event.response_id)
        if event.model:
            self._set("model", event.model)
        if event.usage:
            self._set("usage", event.usage)

    def _failed(self, event: Failed) -> None:
        self._terminal = event
        self._set("error", event.error)


_E = TypeVar("_E", bound=Event)
_HANDLERS: Final[dict[type[Event], Callable[[Accumulator, Any], None]]] = {}
"""Event class to handler. A table, because `feed` runs for every event and a `match` over structs
takes three times as long; `_on` lets the type checkers compare the two."""


def _on(kind: type[_E], handler: Callable[[Accumulator, _E], None]) -> None:
    _HANDLERS[kind] = handler


_on(OutputTextDelta, Accumulator._text)
_on(ReasoningContentDelta, Accumulator._reasoning)
_on(FunctionCallArgumentsDelta, Accumulator._arguments)
_on(ReasoningSummaryDelta, Accumulator._summary)
_on(RefusalDelta, Accumulator._refusal)
_on(MediaDelta, Accumulator._media)
_on(AnnotationAdded, Accumulator._annotation)
_on(OutputItemAdded, Accumulator._item_added)
_on(OutputItemDone, Accumulator._item_done)
_on(Created, Accumulator._created)
_on(TokenCount, Accumulator._usage)
_on(RateLimits, Accumulator._rate_limits)
_on(ResponseMetadata, Accumulator._metadata)
_on(Notice, Accumulator._notice)
_on(Completed, Accumulator._completed)
_on(Failed, Accumulator._failed)


def _not_open(event: ResponseEvent) -> str:
    index = getattr(event, "index", None)
    return (
        f"{type(event).__name__} for item {index}, which is not open: "
        "an accumulator needs every event of a stream from its start"
    )


def accumulate(events: Iterable[ResponseEvent]) -> Response:
    """The response of a list of events.

    Raises:
        TypeError: they are no events.
        ValueError: the events do not begin at the start of a stream.
    """
    if not isinstance(events, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"accumulate() takes a list of events, not a {type(events).__name__}: "
            "what a stream received so far is `stream.response`"
        )
    accumulator = Accumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response


def _finished_choices(terminal: Completed) -> tuple[FinishedChoice, ...]:
    """How each choice ended.

    An event made by hand may lack `choices`: then there is one, and it ended as the response did.
    """
    if terminal.choices:
        return terminal.choices
    return (FinishedChoice(0, terminal.stop_reason, terminal.native_stop_reason),)
