"""Gemini Interactions: the contents of a `model_output` step while they arrive.

A delta names no content. Text deltas are one part until a delta of another kind comes; audio
arrives in fragments; an image, a document or a video is complete in its delta, unless the next one
names no media type. Annotations belong to the last text, and count its UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.base64_text import joined_base64
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import Audio, ContentPart, Document, Image, JsonObject, Text
from streamlib_parsers.json_text import objects_at, rest_of, string_or_none
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.interactions.byte_offsets import ByteOffsets
from streamlib_parsers.wires.interactions.events import MEDIA_KINDS

_PART_CLASSES: Final[dict[str, type[Image | Audio | Document]]] = {"image": Image, "audio": Audio}
"""The wire's type -> part class. Others are documents, as no part is for video."""

_TYPED: Final = ("type", "data", "uri", "mime_type", "name")


class TextContent:
    """A text, and what is known of its annotations."""

    def __init__(self, native: JsonObject | None = None) -> None:
        self.native = native
        """Further keys of the content."""
        self.offsets: ByteOffsets | None = None
        """The text, once an annotation needs its offsets; None until the first annotation."""
        self.waiting: list[JsonObject] = []
        """Annotations of text that has not arrived yet."""


class MediaContent:
    """An image, audio, a document or a video."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        """The wire's type."""
        self.fields: dict[str, Any] = {}
        """The latest value of every key but the bytes."""
        self.fragments: list[str] = []
        """Fragments of the base64 text."""

    def part(self) -> Image | Audio | Document:
        """The content part."""
        native = {key: value for key, value in self.fields.items() if key not in _TYPED}
        if self.kind == "video" and not self._media_type().startswith("video/"):
            native["type"] = "video"
        make: Callable[..., Image | Audio | Document] = _PART_CLASSES.get(self.kind, Document)
        return unchecked(make)(
            data=joined_base64(self.fragments) or None,
            url=string_or_none(self.fields, "uri"),
            media_type=self._media_type() or None,
            name=string_or_none(self.fields, "name"),
            native=native or None,
        )

    def _media_type(self) -> str:
        return string_or_none(self.fields, "mime_type") or ""


def part_of(content: JsonObject) -> ContentPart | None:
    """The part of a complete content; None for a kind that has no part type."""
    kind = string_or_none(content, "type")
    if kind == "text" and isinstance(content.get("text"), str):
        annotations = objects_at(content, "annotations")
        native = rest_of(content, "type", "text", "annotations")
        if annotations:
            offsets = ByteOffsets(content["text"])
            annotations = [offsets.in_characters(annotation) for annotation in annotations]
        return Text(content["text"], annotations, native=native)
    if kind in MEDIA_KINDS:
        media = MediaContent(kind)
        media.fields.update(content)
        data = string_or_none(content, "data")
        if data:
            media.fragments.append(data)
        return media.part()
    return None


class Contents:
    """The parts of one message."""

    def __init__(self, assembler: EventAssembler, item: OpenItem) -> None:
        self._assembler = assembler
        self._item = item
        self._parts: list[TextContent | MediaContent] = []
        """Contents by index. Empty while one plain text arrives, for which `text` is not called."""
        self._unknown: dict[str, JsonObject] = {}
        """Contents of a kind that has no part type, by their position in the wire's list."""

    def text(self, text: str) -> None:
        """Appends to the open text, or begins one."""
        self._note_plain_text()
        if not self._parts or not isinstance(self._parts[-1], TextContent):
            self._parts.append(TextContent())
        part = len(self._parts) - 1
        self._item.part(part)  # an empty text is a part too
        self._assembler.text(self._item, text, part)

    def annotations(self, annotations: list[JsonObject]) -> None:
        """Annotations of the last text; those of text that is still to come wait for it."""
        self._note_plain_text()
        part, content = self._last_text()
        content.waiting += annotations
        self._emit_annotations(part, content)

    def media(self, content: JsonObject) -> None:
        """A delta with bytes or an address, or such a content of a complete step."""
        self._note_plain_text()
        kind = str(content["type"])
        media = self._continued(content)
        if media is None:
            media = MediaContent(kind)
            self._parts.append(media)
        media.fields.update(content)
        media.fields.pop("data", None)
        part = len(self._parts) - 1
        data = string_or_none(content, "data")
        if data:
            media.fragments.append(data)
            media_type = string_or_none(content, "mime_type")
            self._assembler.media(self._item, part, media_type, data)
        else:
            self._item.part(part)

    def complete(self, content: JsonObject) -> None:
        """One content of a complete step: each is a part of its own."""
        kind = string_or_none(content, "type")
        if kind == "text" and isinstance(content.get("text"), str):
            native = rest_of(content, "type", "text", "annotations")
            self._parts.append(TextContent(native))
            self.text(content["text"])
            self.annotations(objects_at(content, "annotations"))
        elif kind in MEDIA_KINDS:
            self.media(content)
        else:
            position = len(self._parts) + len(self._unknown)
            self._unknown[str(position)] = content

    def finish(self) -> None:
        """Emits waiting annotations, and sets the parts that no single delta determines."""
        # The parts set below must have all text.
        self._assembler.flush_surrogates(self._item)
        for part, content in enumerate(self._parts):
            if isinstance(content, TextContent):
                self._emit_annotations(part, content, is_final=True)
        if self._unknown:
            native = {**(self._item.item.native or {}), "content": self._unknown}
            self._item.fields["native"] = native
        if any(isinstance(part, MediaContent) or part.native for part in self._parts):
            self._item.fields["content"] = tuple(map(self._part, range(len(self._parts))))

    def _note_plain_text(self) -> None:
        """Adds the first text, which was emitted without this class, to the list of contents."""
        if not self._parts and self._item.parts:
            self._parts.append(TextContent())

    def _last_text(self) -> tuple[int, TextContent]:
        """The last text and its index, or a new one."""
        for part in range(len(self._parts) - 1, -1, -1):
            content = self._parts[part]
            if isinstance(content, TextContent):
                return part, content
        content = TextContent()
        self._parts.append(content)
        return len(self._parts) - 1, content

    def _emit_annotations(self, part: int, content: TextContent, *, is_final: bool = False) -> None:
        if not content.waiting:
            return
        if content.offsets is None:
            content.offsets = ByteOffsets()
        text = self._item.part(part).fragments.joined()
        content.offsets.extend(text[content.offsets.length :])
        waiting, content.waiting = content.waiting, []
        for number, annotation in enumerate(waiting):
            if not is_final and not content.offsets.reaches(annotation, in_bytes=True):
                # Later annotations wait too, so that they keep the provider's order.
                content.waiting = waiting[number:]
                return
            self._assembler.annotation(self._item, content.offsets.in_characters(annotation), part)

    def _continued(self, content: JsonObject) -> MediaContent | None:
        """The media that a delta is a fragment of, if any."""
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, MediaContent) or last.kind != content["type"]:
            return None
        if content.get("uri") or last.fields.get("uri"):
            return None
        if last.kind == "audio" or not content.get("mime_type"):
            return last
        return None

    def _part(self, index: int) -> ContentPart:
        content = self._parts[index]
        if isinstance(content, MediaContent):
            return content.part()
        received = self._item.part(index)
        text = received.fragments.joined()
        return Text(text, tuple(received.annotations), native=content.native)
