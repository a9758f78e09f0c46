"""An open item: fragments of its text are collected, and joined where a snapshot shows them.

Used by the parsers (for the item of `OutputItemDone`) and by the accumulator (for the partial
response).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

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

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
"""What an item without parts or paragraphs has."""


OtherText: TypeAlias = Literal["refusal", "data", "transcript"]
"""A refusal; base64 text of an image or audio; what is spoken in the audio."""


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


class OpenItem:
    """One item between its `OutputItemAdded` and its `OutputItemDone`."""

    __slots__ = (
        "_fields",
        "agent",
        "arguments",
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
        self.summary: Mapping[int, GrowingText] = NOTHING
        """Fragments of summary paragraphs by `summary_index`."""
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
        """The part at `content_index`, created at first use."""
        part = self.parts.get(content_index)
        if part is None:
            if not isinstance(self.parts, dict):
                self.parts = {}
            part = self.parts[content_index] = OpenPart()
        return part

    def paragraph(self, summary_index: int) -> GrowingText:
        """The summary paragraph at `summary_index`, created at first use."""
        paragraph = self.summary.get(summary_index)
        if paragraph is None:
            if not isinstance(self.summary, dict):
                self.summary = {}
            paragraph = self.summary[summary_index] = GrowingText()
        return paragraph

    def clear_parts(self) -> None:
        """Forgets the content parts."""
        self.parts = NOTHING

    def clear(self) -> None:
        """Forgets everything that arrived after the skeleton."""
        self._fields = None
        self.parts = NOTHING
        self.summary = NOTHING
        self.arguments.clear()

    def text(self) -> str:
        """The text received, of all parts in order."""
        texts = [part.fragments.joined() for _, part in sorted(self.parts.items())]
        return "".join(texts)

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
    if len(open_item.parts) == 1:
        [part] = open_item.parts.values()
        content = part.parts()
    elif open_item.parts:
        all_parts: list[ContentPart] = []
        for _, part in sorted(open_item.parts.items()):
            all_parts.extend(part.parts())
        content = tuple(all_parts)
    message: Message = replace(item, content=content, status=status, response_id=response_id)
    return message


def _reasoning(open_item: OpenItem, status: ItemStatus, response_id: str | None) -> Reasoning:
    item: Any = open_item.item
    content: str = item.content
    summary: tuple[str, ...] = item.summary
    if open_item.parts:
        content = open_item.text()
    if open_item.summary:
        paragraphs = [fragments.joined() for _, fragments in sorted(open_item.summary.items())]
        summary = tuple(paragraphs)
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
