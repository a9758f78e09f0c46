"""Events that a pipeline stage dropped, or that a `Response` does not have, and an encoder needs.

Encoders write text, arguments and media from deltas only, and only of items that were added and
ended. `aggregate` drops the deltas; `only` may drop any kind of event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from streamlib.request.report import Change, Report
from streamlib_parsers.events import (
    TOKEN_EVENTS,
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    MediaDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.item_text import STREAMED_FIELDS, call_text
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    Audio,
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)
from streamlib_parsers.response import Choice, Response

DELTAS: Final = TOKEN_EVENTS | {AnnotationAdded}

CALLS: Final = (FunctionCall, CustomToolCall, *BUILT_IN_CALLS)
"""Items that the caller answers."""

BEGUN_BY: Final[dict[type, ResponseItem]] = {
    OutputTextDelta: Message("assistant", status="incomplete"),
    RefusalDelta: Message("assistant", status="incomplete"),
    MediaDelta: Message("assistant", status="incomplete"),
    ReasoningContentDelta: Reasoning(status="incomplete"),
    ReasoningSummaryDelta: Reasoning(status="incomplete"),
}
"""The item that a delta opens if none was added. Arguments of a call do not name their tool."""


class _Encoder(Protocol):
    """The same as `streamlib.wires.encoders.Encoder`, whose import here would be circular."""

    media_type: str

    @property
    def report(self) -> list[Change]: ...

    def feed(self, event: ResponseEvent) -> bytes: ...

    def close(self) -> bytes: ...


class WithMissingDeltas:
    """An encoder that adds what a stage dropped, or names it in the report.

    Content of an item that no delta carried is written before the item's end, one delta per part. A
    text delta whose item was never added opens an item. What cannot be restored is in the report.
    """

    def __init__(
        self, encoder: _Encoder, keep_alive: bytes = b"", report: Report | None = None
    ) -> None:
        self._encoder = encoder
        self.media_type = encoder.media_type
        self.headers: Mapping[str, str] = getattr(encoder, "headers", {})
        """Headers of the protocol's own, beside the content type."""
        self._keep_alive = keep_alive
        """What `ping` returns."""
        self._latest: dict[int, type] = {}
        """Item index -> class of its latest delta. Most deltas have the class of the one before."""
        self._streamed: dict[int, set[type]] = {}
        """All kinds of deltas that came, by item; an item has an entry once it was opened."""
        self._ended: set[int] = set()
        """Indexes of the items whose end the encoder got."""
        self._waiting: dict[int, OutputItemDone] = {}
        """Ends of items whose deltas were dropped, by index, that wait for an item before them."""
        self._next = 0
        """The first item that is neither done nor has deltas."""
        self._missing: set[int] = set()
        """Indexes of items of unknown kind: deltas came without an `OutputItemAdded`."""
        self._has_ended = False
        """Whether the terminal event came, or the stream ended without one."""
        self._report = report or Report()
        """What could not be restored. The responses of a run share one report."""

    @property
    def report(self) -> list[Change]:
        """What the wire could not carry, so far."""
        return self._encoder.report + self._report.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        # Most events are deltas: one look-up finds them; an `isinstance` that misses costs more.
        kind = type(event)
        if kind in DELTAS:
            index: int = event.index  # type: ignore[union-attr, assignment]
            if self._latest.get(index) is not kind:
                return self._on_new_kind(index, event)
        elif isinstance(event, OutputItemAdded):
            self._streamed[event.index] = set()
        elif isinstance(event, OutputItemDone):
            if self._streamed.get(event.index) or not any(deltas_of(event.index, event.item)):
                out = self._complete(event) + self._encoder.feed(event)
            else:
                out = b""
                self._waiting[event.index] = event
            if self._waiting:
                out += self._release()
            return out
        elif isinstance(event, (Completed, Failed)):
            return self._end() + self._encoder.feed(event)
        return self._encoder.feed(event)

    def _on_new_kind(self, index: int, delta: ResponseEvent) -> bytes:
        """The bytes of a delta whose class its item's last delta did not have."""
        out = b""
        if index not in self._streamed:
            item = BEGUN_BY.get(type(delta))
            if item is None:
                # The item's end, if it comes, has the name of a call and all of its arguments.
                self._missing.add(index)
                return b""
            self._streamed[index] = set()
            item = msgspec.structs.replace(item, agent=delta.agent)
            out = self._encoder.feed(OutputItemAdded(index, item, agent=item.agent))
        self._latest[index] = type(delta)
        self._streamed[index].add(type(delta))
        out += self._encoder.feed(delta)
        if self._waiting:
            out += self._release()
        return out

    def _release(self) -> bytes:
        """The waiting items that need not wait any more, in their order.

        An item whose deltas were dropped waits until each item before it is done or has deltas: the
        texts of all items come with their ends then, and must keep their order.
        """
        out = b""
        while True:
            event = self._waiting.pop(self._next, None)
            if event is not None:
                out += self._complete(event) + self._encoder.feed(event)
            elif not self._is_written(self._next):
                return out
            self._next += 1

    def _end(self) -> bytes:
        """The waiting items at the end, although one before them never came."""
        if self._has_ended:
            return b""
        self._has_ended = True
        out = b""
        for index in sorted(self._waiting):
            event = self._waiting.pop(index)
            out += self._complete(event) + self._encoder.feed(event)
        self._note_missing()
        return out

    def _is_written(self, index: int) -> bool:
        """Whether an item is done, or had deltas."""
        return index in self._ended or bool(self._streamed.get(index))

    def _complete(self, event: OutputItemDone) -> bytes:
        """The bytes that a streamed item would have had before its end."""
        index, item = event.index, event.item
        self._ended.add(index)
        self._missing.discard(index)
        out = b""
        if index not in self._streamed:
            self._streamed[index] = set()
            out = self._encoder.feed(OutputItemAdded(index, skeleton(item), agent=item.agent))
        streamed = self._streamed[index]
        for delta in deltas_of(index, item):
            if type(delta) not in streamed:
                out += self._encoder.feed(delta)
        return out

    def _note_missing(self) -> None:
        """Reports the items that readers of the encoded response do not get complete."""
        for index in sorted(self._missing):
            self._report.dropped(f"/items/{index}", "its OutputItemAdded never came")
        for index in sorted(self._streamed.keys() - self._ended):
            self._report.dropped(f"/items/{index}", "its OutputItemDone never came")

    def close(self) -> bytes:
        """The end of the stream."""
        return self._end() + self._encoder.close()

    def ping(self) -> bytes:
        """Bytes that readers ignore, to send while the model is silent."""
        return self._keep_alive


def events_of(response: Response, report: Report | None = None) -> Iterator[ResponseEvent]:
    """The events that a parser would have made of a response: one item after another.

    Args:
        response: The response.
        report: For a body in which an incomplete call would look callable: those are left out, and
            reported here.
    """
    yield Created(response.response_id, response.model)
    choices = _choices_of(response)
    index = 0
    for choice in choices:
        for item in choice.items:
            is_incomplete_call = item.status == "incomplete" and isinstance(item, CALLS)
            if report is not None and is_incomplete_call:
                reason = "an incomplete call is left out: it would look callable"
                report.dropped("/incomplete", reason)
                continue
            yield OutputItemAdded(index, skeleton(item), agent=item.agent)
            yield from deltas_of(index, item)
            yield OutputItemDone(index, item, agent=item.agent)
            index += 1
    if response.metadata:
        yield ResponseMetadata(response.metadata)
    if response.usage is not None:
        yield TokenCount(response.usage)
    if response.error is not None:
        yield Failed(response.error)
        return
    yield Completed(
        response.response_id,
        response.model,
        response.stop_reason or "other",
        response.native_stop_reason,
        response.stop_sequence,
        response.usage,
        tuple([_end_of(choice) for choice in choices]),
    )


def _choices_of(response: Response) -> list[Choice]:
    """The choices; the first is what the response itself says, which a caller may have changed."""
    others = [choice for choice in response.choices if choice.index != 0]
    has_first = len(others) < len(response.choices)
    if others and not has_first and not response.items:
        return others
    end = (response.stop_reason, response.native_stop_reason)
    return [Choice(0, response.items, *end), *others]


def _end_of(choice: Choice) -> FinishedChoice:
    return FinishedChoice(choice.index, choice.stop_reason or "other", choice.native_stop_reason)


def skeleton(item: ResponseItem) -> ResponseItem:
    """The item as it was when it opened: without what its deltas fill."""
    fields: dict[str, Any] = {"status": "incomplete"}
    for name in STREAMED_FIELDS.get(type(item), ()):
        fields[name] = () if isinstance(getattr(item, name), tuple) else ""
    return msgspec.structs.replace(item, **fields)


def deltas_of(index: int, item: ResponseItem) -> Iterator[ResponseEvent]:
    """The deltas that a parser would have made of a complete item, one a part."""
    for delta in _deltas_of(index, item):
        if item.agent is None:
            yield delta
        else:
            yield msgspec.structs.replace(delta, agent=item.agent)


def _deltas_of(index: int, item: ResponseItem) -> Iterator[ResponseEvent]:
    if isinstance(item, Message):
        yield from _deltas_of_message(index, item)
    elif isinstance(item, Reasoning):
        for number, paragraph in enumerate(item.summary):
            yield ReasoningSummaryDelta(index, number, paragraph)
        if item.content:
            yield ReasoningContentDelta(index, 0, item.content)
    elif call_text(item):
        yield FunctionCallArgumentsDelta(index, call_text(item))


def _deltas_of_message(index: int, item: Message) -> Iterator[ResponseEvent]:
    for number, part in enumerate(item.content):
        match part:
            case Text():
                if part.text:
                    yield OutputTextDelta(index, number, part.text)
                for annotation in part.annotations:
                    yield AnnotationAdded(index, number, annotation)
            case Refusal():
                yield RefusalDelta(index, number, part.refusal)
            case _:
                transcript = part.transcript if isinstance(part, Audio) else None
                yield MediaDelta(index, number, part.media_type, part.data, transcript)
