"""An open item: fragments of its text are collected, and joined where a snapshot shows them.

Used by the parsers (for the item of `OutputItemDone`) and by the accumulator (for the partial
response).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from msgspec.structs import replace

from streamlib_parsers.growing_text import GrowingText
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    CustomToolCall,
    FunctionCall,
    Image,
    ItemStatus,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    Text,
)

V = TypeVar("V")

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
"""What an item without parts or paragraphs has."""


OtherText: TypeAlias = Literal["refusal", "data", "transcript"]
"""A refusal; base64 text of an image or audio; what is spoken in the audio."""

MIXED: Final = 3
"""Parts that an `OpenPart` becomes at most: a text, a refusal, a medium."""


class OpenPart:
    """One content part of an open item: text, refusal or media.

    Where a wire mixes them, each becomes a part of its own.
    """

    __slots__ = ("annotations", "fragments", "media_type", "others")

    def __init__(self) -> None:
        self.fragments = GrowingText()
        """Text deltas."""
        self.annotations: list[JsonObject] = []
        """Citations of the text, in the order received."""
        self.media_type: str | None = None
        """The last media type reported; None until the wire names one."""
        # Most parts hold text alone, and have none of these.
        self.others: Mapping[OtherText, GrowingText] = NOTHING
        """Fragments of what is not text, by its kind."""

    def other(self, kind: OtherText) -> GrowingText:
        """The fragments of one kind, created at first use."""
        fragments = self.others.get(kind)
        if fragments is None:
            if not isinstance(self.others, dict):
                self.others = {}
            fragments = self.others[kind] = GrowingText()
        return fragments

    def parts(self) -> tuple[ContentPart, ...]:
        """The parts accumulated so far; an empty text part if nothing was received."""
        text = Text(self.fragments.joined(), tuple(self.annotations))
        # A snapshot may be taken after every event.
        if not (self.others or self.media_type):
            return (text,)
        parts: list[ContentPart] = []
        if self.fragments or self.annotations:
            parts.append(text)
        refusal = self.others.get("refusal")
        if refusal:
            parts.append(Refusal(refusal.joined()))
        if self.media_type or self.others.get("data") or self.others.get("transcript"):
            parts.append(self._media())
        return tuple(parts) or (text,)

    def _media(self) -> ContentPart:
        data = self._joined("data")
        if (self.media_type or "").startswith("image/"):
            return unchecked(Image)(data=data, media_type=self.media_type)
        transcript = self._joined("transcript")
        return unchecked(Audio)(data=data, media_type=self.media_type, transcript=transcript)

    def _joined(self, kind: OtherText) -> str | None:
        fragments = self.others.get(kind)
        return fragments.joined() if fragments else None


class PartsText:
    """The text of several parts as one text, which grows at its end while they come in order."""

    __slots__ = ("_last", "_length", "_text")

    def __init__(self) -> None:
        self._text = GrowingText()
        self._last = -1
        """Number of the part that `_text` ends with."""
        self._length = 0
        """Characters of that part."""

    def joined(self, parts: Mapping[int, OpenPart], changed: Mapping[int, OpenPart]) -> str:
        """The text of all parts; `changed` are those that grew since the last call."""
        if changed and min(changed) < self._last:
            # A part before the end grew.
            changed = parts
            self._text.clear()
        for number in sorted(changed):
            if number != self._last:
                self._last = number
                self._length = 0
            text = parts[number].fragments.joined()
            self._text.append(text[self._length :])
            self._length = len(text)
        return self._text.joined()


class ShownParts:
    """What a snapshot showed of an item's parts, so that the next makes only what changed."""

    __slots__ = ("content", "paragraphs", "text")

    def __init__(self) -> None:
        self.content: InOrder[ContentPart] = InOrder()
        """The parts of a message."""
        self.text = PartsText()
        """The parts of reasoning."""
        self.paragraphs: InOrder[str] = InOrder()
        """Its summary."""


class InOrder(Generic[V]):
    """Values by their number: the items of a choice, the parts of an item.

    A snapshot may be taken after every event, and an event changes one value. So the owner puts
    only what changed, and `shown` copies one reference for each value.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        """Numbers of the values, sorted."""
        self._values: list[V] = []
        """The values of `_numbers`."""
        self._shown: tuple[V, ...] | None = None
        """The values as a tuple; None once one of them changed."""

    def put(self, number: int, value: V) -> None:
        """Adds a value, or replaces the one of this number."""
        self._shown = None
        numbers = self._numbers
        if numbers and numbers[-1] == number:  # mostly it is the newest
            self._values[-1] = value
            return
        position = bisect.bisect_left(numbers, number)
        if position < len(numbers) and numbers[position] == number:
            self._values[position] = value
        else:
            numbers.insert(position, number)
            self._values.insert(position, value)

    def get(self, number: int) -> V:
        """The value of a number, which must be there."""
        numbers = self._numbers
        position = bisect.bisect_left(numbers, number)
        if position == len(numbers) or numbers[position] != number:
            raise KeyError(number)
        return self._values[position]

    def remove(self, number: int) -> bool:
        """Removes the value of a number, which must be there; returns whether it was the last."""
        position = bisect.bisect_left(self._numbers, number)
        del self._numbers[position], self._values[position]
        self._shown = None
        return not self._values

    def shown(self) -> tuple[V, ...]:
        """The values, for a snapshot: copied only where one changed since the last."""
        if self._shown is None:
            self._shown = tuple(self._values)
        return self._shown


class OpenItem:
    """One item between its `OutputItemAdded` and its `OutputItemDone`."""

    __slots__ = (
        "_fields",
        "_shown",
        "agent",
        "arguments",
        "changed_parts",
        "changed_summary",
        "closed",
        "forced_incomplete",
        "free_text",
        "index",
        "item",
        "parts",
        "size",
        "summary",
    )

    def __init__(self, index: int, item: ResponseItem) -> None:
        self.index = index
        """The item's `index` in every event about it."""
        self.item = item
        """The skeleton of `OutputItemAdded`; once closed, the final item."""
        self.agent = item.agent
        """The item's agent, which every event about it names."""
        self._fields: dict[str, Any] | None = None
        """See `fields`; None until the first one."""
        # A response may have thousands of calls, which have none of these.
        self.parts: Mapping[int, OpenPart] = NOTHING
        """Content parts by `content_index`."""
        self.changed_parts: Mapping[int, OpenPart] = NOTHING
        """Those that changed since several were shown; until then the same dict."""
        self.summary: Mapping[int, GrowingText] = NOTHING
        """Fragments of summary paragraphs by `summary_index`."""
        self.changed_summary: Mapping[int, GrowingText] = NOTHING
        """Those that changed since they were shown; until then the same dict."""
        self._shown: ShownParts | None = None
        """What was shown of parts and paragraphs; None as long as none was, or one part alone."""
        self.arguments = GrowingText()
        """Fragments of a call's arguments or input."""
        self.size = 0
        """Characters of arguments received, checked against `Limits.argument_bytes`."""
        self.closed = False
        """Set once `OutputItemDone` was emitted."""
        self.free_text = False
        """Set by a wire where the arguments are a program or prose, not JSON."""
        self.forced_incomplete = False
        """Set by `EventAssembler.mark_incomplete`: the item ends `incomplete` whatever the wire
        reports."""

    @property
    def fields(self) -> dict[str, Any]:
        """Typed fields that arrived later (signature, native, encrypted_content ...).

        They replace the skeleton's.
        """
        if self._fields is None:
            self._fields = {}
        return self._fields

    def name_agent(self, agent: str | None) -> None:
        """Sets the agent, where an event names it after the item was added."""
        self.agent = agent
        self.item = replace(self.item, agent=agent)

    def part(self, content_index: int) -> OpenPart:
        """The part at `content_index`, which changes; created at first use."""
        part = self.changed_parts.get(content_index)
        if part is None:
            if not isinstance(self.parts, dict) or not isinstance(self.changed_parts, dict):
                self.parts = self.changed_parts = {}
            part = self.parts.get(content_index)
            if part is None:
                part = self.parts[content_index] = OpenPart()
            self.changed_parts[content_index] = part
        return part

    def paragraph(self, summary_index: int) -> GrowingText:
        """The summary paragraph at `summary_index`, which changes; created at first use."""
        paragraph = self.changed_summary.get(summary_index)
        if paragraph is None:
            if not isinstance(self.summary, dict) or not isinstance(self.changed_summary, dict):
                self.summary = self.changed_summary = {}
            paragraph = self.summary.get(summary_index)
            if paragraph is None:
                paragraph = self.summary[summary_index] = GrowingText()
            self.changed_summary[summary_index] = paragraph
        return paragraph

    def clear_parts(self) -> None:
        """Forgets the content parts."""
        self.parts = self.changed_parts = NOTHING
        self.changed_summary = self.summary
        self._shown = None

    def clear(self) -> None:
        """Forgets everything that arrived after the skeleton."""
        self._fields = None
        self.clear_parts()
        self.summary = self.changed_summary = NOTHING
        self.arguments.clear()

    def text(self) -> str:
        """The text received, of all parts in order."""
        texts = [part.fragments.joined() for _, part in sorted(self.parts.items())]
        return "".join(texts)

    # What a snapshot shows. What did not change since the last is not made anew: an item may have
    # thousands of parts, and a snapshot may be taken after every event.

    def content(self) -> tuple[ContentPart, ...]:
        """The content of a message, part by part in order."""
        if len(self.parts) == 1:
            [only] = self.parts.values()
            return only.parts()
        content = self._shown_parts().content
        for number, part in self.changed_parts.items():
            for position, content_part in enumerate(part.parts()):
                content.put(MIXED * number + position, content_part)
        self.changed_parts = {}
        return content.shown()

    def reasoning(self) -> str:
        """The content of reasoning: the text of all parts in order."""
        if len(self.parts) == 1:
            [only] = self.parts.values()
            return only.fragments.joined()
        text = self._shown_parts().text.joined(self.parts, self.changed_parts)
        self.changed_parts = {}
        return text

    def paragraphs(self) -> tuple[str, ...]:
        """The summary of reasoning, paragraph by paragraph in order."""
        paragraphs = self._shown_parts().paragraphs
        for number, paragraph in self.changed_summary.items():
            paragraphs.put(number, paragraph.joined())
        self.changed_summary = {}
        return paragraphs.shown()

    def _shown_parts(self) -> ShownParts:
        if self._shown is None:
            self._shown = ShownParts()
        return self._shown

    def snapshot(self, status: ItemStatus, response_id: str | None = None) -> ResponseItem:
        """The item accumulated so far: skeleton, streamed text, fields that arrived later."""
        if response_id is None:
            response_id = self.item.response_id
        with_streamed = SNAPSHOTS.get(type(self.item))
        if with_streamed is None:
            shown: ResponseItem = replace(self.item, status=status, response_id=response_id)
        else:
            shown = with_streamed(self, status, response_id)
        if self._fields:
            later = {**self._fields, "status": status, "response_id": response_id}
            shown = replace(shown, **later)
        return shown


# A snapshot may be taken after every event: the fields are passed by name, since `replace` takes
# twice as long with a dict of them.


def _message(open_item: OpenItem, status: ItemStatus, response_id: str | None) -> Message:
    item: Any = open_item.item
    content: tuple[ContentPart, ...] = item.content
    if open_item.parts:
        content = open_item.content()
    message: Message = replace(item, content=content, status=status, response_id=response_id)
    return message


def _reasoning(open_item: OpenItem, status: ItemStatus, response_id: str | None) -> Reasoning:
    item: Any = open_item.item
    content: str = item.content
    summary: tuple[str, ...] = item.summary
    if open_item.parts:
        content = open_item.reasoning()
    if open_item.summary:
        summary = open_item.paragraphs()
    reasoning: Reasoning = replace(
        item, content=content, summary=summary, status=status, response_id=response_id
    )
    return reasoning


def _arguments(
    open_item: OpenItem, status: ItemStatus, response_id: str | None
) -> FunctionCall | ServerToolCall:
    item: Any = open_item.item
    arguments: str = item.arguments
    if open_item.arguments:
        arguments = open_item.arguments.joined()
    call: FunctionCall | ServerToolCall = replace(
        item, arguments=arguments, status=status, response_id=response_id
    )
    return call


def _input(open_item: OpenItem, status: ItemStatus, response_id: str | None) -> CustomToolCall:
    item: Any = open_item.item
    text: str = item.input
    if open_item.arguments:
        text = open_item.arguments.joined()
    call: CustomToolCall = replace(item, input=text, status=status, response_id=response_id)
    return call


SNAPSHOTS: Final[dict[type, Callable[[OpenItem, ItemStatus, str | None], ResponseItem]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _arguments,
    ServerToolCall: _arguments,
    CustomToolCall: _input,
}
"""Makes the item with what was streamed, for each kind; kinds that are not listed arrive
complete."""
