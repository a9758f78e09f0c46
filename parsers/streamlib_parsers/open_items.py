"""An item that is still growing: fragments are kept in lists and joined once, when somebody asks for the item.

Used twice, by the parsers (to make the item of `OutputItemDone`) and by the accumulator (to show a snapshot).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from streamlib_parsers.items import (
    Audio,
    Compaction,
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
    """One content part that is still growing: text, words of a refusal, or media. A wire that mixes them gets one part of each."""

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
        self.annotations: list[JsonObject] = []
        self.data: list[str] = []
        self.media_type: str | None = None
        self.refusal_fragments: list[str] = []
        self.transcript_fragments: list[str] = []

    def parts(self) -> Iterator[ContentPart]:
        """The part as it stands."""
        others = bool(
            self.refusal_fragments or self.data or self.media_type or self.transcript_fragments
        )
        if self.fragments or self.annotations or not others:
            yield Text("".join(self.fragments), tuple(self.annotations))
        if self.refusal_fragments:
            yield Refusal("".join(self.refusal_fragments))
        if self.data or self.media_type or self.transcript_fragments:
            yield self._media()

    def _media(self) -> ContentPart:
        data = "".join(self.data) or None
        if (self.media_type or "").startswith("image/"):
            return Image(data=data, media_type=self.media_type)
        return Audio(
            data=data,
            media_type=self.media_type,
            transcript="".join(self.transcript_fragments) or None,
        )


class OpenItem:
    """What was said of one item so far.

    item: the skeleton of `OutputItemAdded`. fields: typed fields that came later (signature, native, encrypted_content …);
    they replace the skeleton's. size: characters of arguments so far. closed: `OutputItemDone` was given, `item` is the whole.
    free_text: the arguments are a program or words, not JSON.
    """

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
        self.item = item
        self.fields: dict[str, Any] = {}
        self.parts: dict[int, OpenPart] = {}
        self.summary: dict[int, list[str]] = {}
        self.arguments: list[str] = []
        self.size = 0
        self.closed = False
        self.free_text = False
        self.forced_incomplete = False

    def part(self, content_index: int) -> OpenPart:
        """The growing part at `content_index`, begun at first use."""
        part = self.parts.get(content_index)
        if part is None:
            part = self.parts[content_index] = OpenPart()
        return part

    def text(self) -> str:
        """The text parts so far, joined."""
        return "".join("".join(part.fragments) for _, part in sorted(self.parts.items()))

    def snapshot(self, status: ItemStatus) -> ResponseItem:
        """The item as it stands: skeleton, then what grew, then what came late."""
        grown = SNAPSHOT_FIELDS.get(type(self.item), _nothing)(self)
        return msgspec.structs.replace(self.item, **{**grown, **self.fields}, status=status)


def _message(open_item: OpenItem) -> dict[str, Any]:
    if not open_item.parts:
        return {}
    return {
        "content": tuple(
            part for _, growing in sorted(open_item.parts.items()) for part in growing.parts()
        )
    }


def _reasoning(open_item: OpenItem) -> dict[str, Any]:
    grown: dict[str, Any] = {}
    if open_item.parts:
        grown["content"] = open_item.text()
    if open_item.summary:
        grown["summary"] = tuple(
            "".join(fragments) for _, fragments in sorted(open_item.summary.items())
        )
    return grown


def _arguments(open_item: OpenItem) -> dict[str, Any]:
    return {"arguments": "".join(open_item.arguments)} if open_item.arguments else {}


def _input(open_item: OpenItem) -> dict[str, Any]:
    return {"input": "".join(open_item.arguments)} if open_item.arguments else {}


def _nothing(open_item: OpenItem) -> dict[str, Any]:
    return {}


SNAPSHOT_FIELDS: Final[dict[type, Callable[[OpenItem], dict[str, Any]]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _arguments,
    ServerToolCall: _arguments,
    CustomToolCall: _input,
    Compaction: _nothing,
}
"""How each kind is made of its fragments; kinds that are not here arrive whole."""
