"""Deltas of items that came without any: a stage such as `aggregate` drops them, and encoders write
text, arguments and media from deltas only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import msgspec

from streamlib.request.report import Change
from streamlib_parsers.events import (
    AnnotationAdded,
    FunctionCallArgumentsDelta,
    MediaDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.item_text import STREAMED_FIELDS, call_text
from streamlib_parsers.items import Audio, Message, Reasoning, Refusal, ResponseItem, Text

DELTAS: Final = frozenset(
    {
        OutputTextDelta,
        ReasoningContentDelta,
        ReasoningSummaryDelta,
        RefusalDelta,
        FunctionCallArgumentsDelta,
        MediaDelta,
        AnnotationAdded,
    }
)


class _Encoder(Protocol):
    """As `streamlib.wires.encoders.Encoder`, which cannot be imported here: a circle."""

    media_type: str

    @property
    def report(self) -> list[Change]: ...

    def feed(self, event: ResponseEvent) -> bytes: ...

    def close(self) -> bytes: ...


class WithMissingDeltas:
    """An encoder that gives each item without deltas as one delta a part, before its end."""

    def __init__(self, encoder: _Encoder) -> None:
        self._encoder = encoder
        self.media_type = encoder.media_type
        # Indexes of the items that were opened.
        self._opened: set[int] = set()
        # Those of them that had no delta yet.
        self._without: set[int] = set()

    @property
    def report(self) -> list[Change]:
        """What the wire could not carry, so far."""
        return self._encoder.report

    def feed(self, event: ResponseEvent) -> bytes:
        """Returns the bytes of one event."""
        # Most events are deltas: one look-up finds them; an `isinstance` that misses costs more.
        kind = type(event)
        if kind in DELTAS:
            if self._without:
                self._without.discard(event.index)  # type: ignore[union-attr]
        elif isinstance(event, OutputItemAdded):
            self._opened.add(event.index)
            self._without.add(event.index)
        elif isinstance(event, OutputItemDone):
            return self._complete(event) + self._encoder.feed(event)
        return self._encoder.feed(event)

    def _complete(self, event: OutputItemDone) -> bytes:
        """Returns what the encoder had of an item before its end, had it been streamed."""
        index, item = event.index, event.item
        out = b""
        if index not in self._opened:
            self._opened.add(index)
            self._without.add(index)
            out = self._encoder.feed(OutputItemAdded(index, skeleton(item)))
        if index in self._without:
            self._without.discard(index)
            for delta in deltas_of(index, item):
                out += self._encoder.feed(delta)
        return out

    def close(self) -> bytes:
        """Returns the end of the stream."""
        return self._encoder.close()


def skeleton(item: ResponseItem) -> ResponseItem:
    """The item as it was when it opened: without what its deltas fill."""
    fields: dict[str, Any] = {"status": "incomplete"}
    for name in STREAMED_FIELDS.get(type(item), ()):
        fields[name] = () if isinstance(getattr(item, name), tuple) else ""
    return msgspec.structs.replace(item, **fields)


def deltas_of(index: int, item: ResponseItem) -> Iterator[ResponseEvent]:
    """The deltas that a parser would have made of a complete item, one a part."""
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
