"""The fold: events -> `Response`. Pure, incremental, and the same for every wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

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
    StopReason,
    TokenCount,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

ResponseStatus: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled"]


class Choice(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One of the answers that were asked for (n > 1), in the order of its index."""

    index: int
    items: tuple[ResponseItem, ...] = ()
    stop_reason: StopReason | None = None
    native_stop_reason: str | None = None


class Timing(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Seconds since the request was sent, filled by the client: events hold no clock."""

    first_byte: float | None = None
    first_token: float | None = None
    last: float | None = None
    tokens_per_second: float | None = None
    longest_gap: float | None = None


class Response(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What a stream said, whole or so far.

    status: `completed`; `incomplete` (not ended yet, or stopped by length or a filter); `failed`; `cancelled`.
    items, text, reasoning, calls and stop_reason are those of choice 0; `choices` holds all of them.
    """

    response_id: str | None = None
    model: str | None = None
    status: ResponseStatus = "incomplete"
    items: tuple[ResponseItem, ...] = ()
    choices: tuple[Choice, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    native_stop_reason: str | None = None
    stop_sequence: str | None = None
    error: ErrorInfo | None = None
    metadata: JsonObject = {}
    rate_limits: RateLimits | None = None
    notices: tuple[Notice, ...] = ()
    timing: Timing | None = None

    @property
    def text(self) -> str:
        """The answer: every text part of choice 0, joined without separators. Turns that a compaction gives back are not of it."""
        return "".join(
            item.text
            for item in self.items
            if isinstance(item, Message) and item.role == "assistant"
        )

    @property
    def reasoning(self) -> str:
        """The thoughts of choice 0: summaries, then content, item by item."""
        return "".join(item.text for item in self.items if isinstance(item, Reasoning))

    @property
    def refusal(self) -> str:
        """The words with which the model declined, or ""."""
        messages = [item for item in self.items if isinstance(item, Message)]
        return "".join(
            part.refusal for item in messages for part in item.content if isinstance(part, Refusal)
        )

    @property
    def calls(self) -> list[FunctionCall | CustomToolCall]:
        """The calls to answer: whole ones only."""
        return [
            item
            for item in self.items
            if isinstance(item, (FunctionCall, CustomToolCall)) and item.status == "completed"
        ]

    @property
    def unfinished(self) -> bool:
        """Whether the turn goes on: calls are to be answered, or the provider paused and wants the history back."""
        return self.stop_reason in ("tool_calls", "pause")


class Accumulator:
    """Folds events one by one; `.response` may be asked for at any moment and is made only then."""

    def __init__(self) -> None:
        self._growing: dict[int, OpenItem] = {}
        self._done: dict[int, ResponseItem] = {}
        self._facts: dict[str, Any] = {"metadata": {}}
        self._notices: list[Notice] = []
        self._terminal: Completed | Failed | None = None

    def feed(self, event: ResponseEvent) -> None:
        """Takes one event; events must come in their order."""
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        elif not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a {type(event).__name__} is no event of a stream")

    @property
    def response(self) -> Response:
        """What was said so far."""
        items = tuple(self.item(index) for index in sorted({*self._growing, *self._done}))
        ends = _ends(self._terminal) if isinstance(self._terminal, Completed) else ()
        return Response(
            status=self._status(),
            items=tuple(item for item in items if item.choice == 0),
            choices=_choices(items, {end.choice: end for end in ends}),
            notices=tuple(self._notices),
            **self._facts,
        )

    def item(self, index: int) -> ResponseItem:
        """The item of that index, whole or as far as it has come; KeyError where none has begun."""
        item = self._done.get(index) or self._growing[index].snapshot("incomplete")
        return msgspec.structs.replace(item, response_id=self._facts.get("response_id"))

    def _status(self) -> ResponseStatus:
        match self._terminal:
            case Completed():
                return (
                    "incomplete"
                    if self._terminal.stop_reason in ("length", "content_filter")
                    else "completed"
                )
            case Failed():
                return "cancelled" if self._terminal.error.kind == "cancelled" else "failed"
            case _:
                return "incomplete"

    # --- one method a kind of event ---

    def _text(self, event: OutputTextDelta | ReasoningContentDelta) -> None:
        self._growing[event.index].part(event.content_index).fragments.append(event.delta)

    def _arguments(self, event: FunctionCallArgumentsDelta) -> None:
        self._growing[event.index].arguments.append(event.delta)

    def _summary(self, event: ReasoningSummaryDelta) -> None:
        self._growing[event.index].summary.setdefault(event.summary_index, []).append(event.delta)

    def _refusal(self, event: RefusalDelta) -> None:
        self._growing[event.index].part(event.content_index).refusal_fragments.append(event.delta)

    def _media(self, event: MediaDelta) -> None:
        part = self._growing[event.index].part(event.content_index)
        part.media_type = event.media_type or part.media_type
        part.data.extend([event.data] if event.data else [])
        part.transcript_fragments.extend([event.transcript] if event.transcript else [])

    def _annotation(self, event: AnnotationAdded) -> None:
        self._growing[event.index].part(event.content_index).annotations.append(event.annotation)

    def _added(self, event: OutputItemAdded) -> None:
        self._growing[event.index] = OpenItem(event.index, event.item)

    def _item_done(self, event: OutputItemDone) -> None:
        self._growing.pop(event.index, None)
        self._done[event.index] = event.item

    def _created(self, event: Created) -> None:
        self._facts.update(response_id=event.response_id, model=event.model)

    def _usage(self, event: TokenCount) -> None:
        self._facts["usage"] = event.usage

    def _rate_limits(self, event: RateLimits) -> None:
        self._facts["rate_limits"] = event

    def _more_metadata(self, event: ResponseMetadata) -> None:
        self._facts["metadata"] = {**self._facts["metadata"], **event.values}

    def _notice(self, event: Notice) -> None:
        self._notices.append(event)

    def _completed(self, event: Completed) -> None:
        self._terminal = event
        self._facts.update(
            stop_reason=event.stop_reason,
            native_stop_reason=event.native_stop_reason,
            stop_sequence=event.stop_sequence,
        )
        for name in ("response_id", "model", "usage"):
            self._facts[name] = getattr(event, name) or self._facts.get(name)

    def _failed(self, event: Failed) -> None:
        self._terminal = event
        self._facts["error"] = event.error


_HANDLERS: dict[type, Any] = {
    OutputTextDelta: Accumulator._text,
    ReasoningContentDelta: Accumulator._text,
    FunctionCallArgumentsDelta: Accumulator._arguments,
    ReasoningSummaryDelta: Accumulator._summary,
    RefusalDelta: Accumulator._refusal,
    MediaDelta: Accumulator._media,
    AnnotationAdded: Accumulator._annotation,
    OutputItemAdded: Accumulator._added,
    OutputItemDone: Accumulator._item_done,
    Created: Accumulator._created,
    TokenCount: Accumulator._usage,
    RateLimits: Accumulator._rate_limits,
    ResponseMetadata: Accumulator._more_metadata,
    Notice: Accumulator._notice,
    Completed: Accumulator._completed,
    Failed: Accumulator._failed,
}


def accumulate(events: Iterable[ResponseEvent]) -> Response:
    """The response that `events` tell."""
    accumulator = Accumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response


def _ends(terminal: Completed) -> tuple[FinishedChoice, ...]:
    """How each choice ended. An event made by hand may not say it apart: then there is one choice, and it ended as the answer did."""
    return terminal.choices or (
        FinishedChoice(0, terminal.stop_reason, terminal.native_stop_reason),
    )


def _choices(items: tuple[ResponseItem, ...], ends: dict[int, Any]) -> tuple[Choice, ...]:
    indexes = sorted({item.choice for item in items} | set(ends))
    return tuple(
        Choice(
            index,
            tuple(item for item in items if item.choice == index),
            ends[index].stop_reason if index in ends else None,
            ends[index].native_stop_reason if index in ends else None,
        )
        for index in indexes
    )
