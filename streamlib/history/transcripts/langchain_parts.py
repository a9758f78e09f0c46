"""Content parts of LangChain: its own forms of images and files, and those of providers.

{"type": "image" | "audio" | "file", "base64" | "url" | "file_id": …, "mime_type": …}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from streamlib.history.transcripts.draft import decoded
from streamlib.history.transcripts.source import object_at, text_at
from streamlib.request.report import Report
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Message,
    Refusal,
    Text,
    WireApi,
)
from streamlib_parsers.json_text import first_text

MediaKind: TypeAlias = Callable[..., Image | Audio | Document]

KINDS: Final[dict[str, MediaKind]] = {
    "image": Image,
    "audio": Audio,
    "file": Document,
    "video": Document,
    "text-plain": Document,
}
"""Type of LangChain's own block -> its part."""


def content_parts(content: Any, path: str) -> tuple[ContentPart, ...]:
    """The parts of a content: a text is one."""
    if content is None or content == "":
        return ()
    blocks: list[Any] = content if isinstance(content, list) else [content]
    parts: list[ContentPart] = []
    for index, block in enumerate(blocks):
        block_path = f"{path}/content/{index}"
        if isinstance(block, str):
            parts.append(Text(block))
        else:
            parts.append(content_part(object_at(block, block_path), block_path))
    return tuple(parts)


def content_part(block: JsonObject, path: str) -> ContentPart:
    """The part of a block."""
    kind = text_at(block, "type", path)
    if kind == "text":
        return Text(text_at(block, "text", path))
    make = KINDS.get(kind)
    if make is not None:
        part = _own_part(make, block, path)
        if part is not None:
            return part
    wire_api: WireApi = "messages" if "source" in block else "chat"
    element = msgspec.json.encode({"role": "user", "content": [block]})
    [item] = decoded(wire_api, [(path, element)]).items
    if isinstance(item, Message) and item.content:
        return item.content[0]
    return Text(msgspec.json.encode(block).decode())


def _own_part(make: MediaKind, block: JsonObject, path: str) -> ContentPart | None:
    """The part of LangChain's own block; `data` and `source_type` are of its older form."""
    if isinstance(block.get("text"), str):
        return Text(block["text"])
    data, url = first_text(block, "base64", "data"), first_text(block, "url")
    file_id: str | None = None
    if not (data or url):
        is_named = "file_id" in block or block.get("source_type") == "id"
        file_id = first_text(block, "file_id", "id") if is_named else None
        if file_id is None:
            return None
    extras = block.get("extras")
    named = extras if isinstance(extras, dict) else block
    media_type = text_at(block, "mime_type", path) or None
    name = first_text(named, "filename")
    if data:
        return unchecked(make)(data=data, media_type=media_type, name=name)
    return unchecked(make)(url=url, file_id=file_id, media_type=media_type, name=name)


# --- writing ---


def written_content(
    content: Sequence[ContentPart], path: str, report: Report
) -> str | list[JsonObject]:
    """The content of a message that is no response: one text as a text, else blocks."""
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return [written_part(part, path, report) for part in content]


def written_part(part: ContentPart, path: str, report: Report) -> JsonObject:
    """The block of a part."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Refusal():
            return {"type": "refusal", "refusal": part.refusal}
        case _:
            block: JsonObject = {"type": "file"}
            if isinstance(part, (Image, Audio)):
                block["type"] = type(part).__name__.lower()
            if isinstance(part, Audio) and part.transcript:
                report.dropped(f"{path}/transcript", "an audio block has no transcript")
            sources = {"base64": part.data, "url": part.url, "file_id": part.file_id}
            block |= {key: value for key, value in sources.items() if value}
            if part.media_type:
                block["mime_type"] = part.media_type
            if part.name:
                block["extras"] = {"filename": part.name}
            return block
