"""An open item: fragments of its text are collected in lists and joined once, for a snapshot.

Used by the parsers (for the item of `OutputItemDone`) and by the accumulator (for the partial
response).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

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


class OpenPart:
    """One content part of an open item: text, refusal or media.

    Where a wire mixes them, each becomes a part of its own.
    """

    __slots__ = (
        "annotations",
        "data",
        "fragments",
        "media_type",
        "refusal_fragments",
        "transcript_fragments",
    )

    def __init__(self) -> None:
        self.fragments: list[str] = []
        """Text deltas."""
        self.annotations: list[JsonObject] = []
        """Citations of the text, in the order received."""
        self.data: list[str] = []
        """Base64 text of an image or audio."""
        self.media_type: str | None = None
        """The last media type reported; None until the wire names one."""
        self.refusal_fragments: list[str] = []
        """Refusal deltas."""
        self.transcript_fragments: list[str] = []
        """Deltas of the transcript of the audio."""

    def parts(self) -> Iterator[ContentPart]:
        """The parts accumulated so far; an empty text part if nothing was received."""
        has_media = bool(self.data or self.media_type or self.transcript_fragments)
        has_text = bool(self.fragments or self.annotations)
        if has_text or not (self.refusal_fragments or has_media):
            yield Text("".join(self.fragments), tuple(self.annotations))
        if self.refusal_fragments:
            yield Refusal("".join(self.refusal_fragments))
        if has_media:
            yield self._media()

    def _media(self) -> ContentPart:
        data = "".join(self.data) or None
        if (self.media_type or "").startswith("image/"):
            return Image(data=data, media_type=self.media_type)
        transcript = "".join(self.transcript_fragments) or None
        return Audio(data=data, media_type=self.media_type, transcript=transcript)


class OpenItem:
    """One item between its `OutputItemAdded` and its `OutputItemDone`."""

    __slots__ = (
        "arguments",
        "closed",
        "fields",
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
        self.fields: dict[str, Any] = {}
        """Typed fields that arrived later (signature, native, encrypted_content ...); they replace
        the skeleton's."""
        self.parts: dict[int, OpenPart] = {}
        """Content parts by `content_index`."""
        self.summary: dict[int, list[str]] = {}
        """Fragments of summary paragraphs by `summary_index`."""
        self.arguments: list[str] = []
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

    def part(self, content_index: int) -> OpenPart:
        """The part at `content_index`, created at first use."""
        part = self.parts.get(content_index)
        if part is None:
            part = self.parts[content_index] = OpenPart()
        return part

    def text(self) -> str:
        """The text received, of all parts in order."""
        texts = ["".join(part.fragments) for _, part in sorted(self.parts.items())]
        return "".join(texts)

    def snapshot(self, status: ItemStatus) -> ResponseItem:
        """The item accumulated so far: skeleton, streamed text, fields that arrived later."""
        changes: dict[str, Any] = {}
        read_streamed = SNAPSHOT_FIELDS.get(type(self.item))
        if read_streamed is not None:
            changes = read_streamed(self)
        changes.update(self.fields)
        changes["status"] = status
        return msgspec.structs.replace(self.item, **changes)


def _message(open_item: OpenItem) -> dict[str, Any]:
    if not open_item.parts:
        return {}
    content: list[ContentPart] = []
    for _, part in sorted(open_item.parts.items()):
        content.extend(part.parts())
    return {"content": tuple(content)}


def _reasoning(open_item: OpenItem) -> dict[str, Any]:
    streamed: dict[str, Any] = {}
    if open_item.parts:
        streamed["content"] = open_item.text()
    if open_item.summary:
        paragraphs = ["".join(fragments) for _, fragments in sorted(open_item.summary.items())]
        streamed["summary"] = tuple(paragraphs)
    return streamed


def _arguments(open_item: OpenItem) -> dict[str, Any]:
    if not open_item.arguments:
        return {}
    return {"arguments": "".join(open_item.arguments)}


def _input(open_item: OpenItem) -> dict[str, Any]:
    if not open_item.arguments:
        return {}
    return {"input": "".join(open_item.arguments)}


SNAPSHOT_FIELDS: Final[dict[type, Callable[[OpenItem], dict[str, Any]]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _arguments,
    ServerToolCall: _arguments,
    CustomToolCall: _input,
}
"""Reads the streamed fields of each kind of item; kinds that are not listed arrive complete."""
