"""Decodes content parts of a Chat Completions request.

    {"type": "text"}         Text      {"type": "file"}         Document
    {"type": "image_url"}    Image     {"type": "input_audio"}  Audio

A key that no typed field holds stays in `native`, of the part or, for a key of its inner object,
under the name of that object.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib.wires.chat.build_parts import is_list
from streamlib.wires.json_objects import rest_of
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Refusal,
    Text,
)

AUDIO_SUBTYPES: Final = {"mp3": "mpeg", "m4a": "mp4"}
"""`input_audio.format` -> subtype of the media type; other formats are their own subtype."""


def text_of(content: Any) -> str:
    """Content as one text: a string, or the texts of its parts."""
    # None (no content) is skipped below, as blank parts are.
    parts: list[Any] = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        if isinstance(part, dict) and part:
            texts.append(part["text"])
        elif part:
            # Anything but a string raises in `join`, and the request is refused.
            text: Any = part
            texts.append(text)
    return "\n\n".join(texts)


def content_parts(content: Any) -> tuple[ContentPart, ...]:
    """The parts of a message: a text is one part."""
    if isinstance(content, str):
        content = [content] if content else []
    parts: list[ContentPart] = []
    for block in content or ():
        if isinstance(block, str):
            parts.append(Text(block))
        else:
            parts.append(_part(block))
    return tuple(parts)


def assistant_parts(content: Any) -> tuple[Text | Refusal, ...] | None:
    """The parts of an assistant message if its content is a list of OpenAI's own parts, else None.

    A list of one plain text also gives None: it means the same as a string.
    """
    if not isinstance(content, list):
        return None
    parts: list[Text | Refusal] = []
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                parts.append(Text(text, native=rest_of(block, "type", "text")))
            case {"type": "refusal", "refusal": str(refusal)}:
                parts.append(Refusal(refusal, native=rest_of(block, "type", "refusal")))
            case _:
                return None
    if is_list(parts) or any(isinstance(part, Refusal) for part in parts):
        return tuple(parts)
    return None


def _part(block: JsonObject) -> ContentPart:
    """One part. A part of an unknown kind is its JSON as text, and goes back as received."""
    block = {key: value for key, value in block.items() if value is not None}
    part = _known_part(block)
    if part is not None:
        return part
    native = block if "type" in block else None
    return Text(msgspec.json.encode(block).decode(), native=native)


def _known_part(block: JsonObject) -> ContentPart | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text, native=rest_of(block, "type", "text"))
        case {"type": "image_url", "image_url": image}:
            return _image(image, block)
        case {"type": "file", "file": file}:
            return _file(file, block)
        case {"type": "document_url", "document_url": str(url)}:
            return _document_by_url(url, block)
        case {"type": "input_audio", "input_audio": audio}:
            return _audio(audio, block)
        case _:
            return None


def _native(block: JsonObject, inner: Any, *typed_keys: str) -> JsonObject | None:
    """The keys of a part, and of the object inside it, that no typed field holds.

    Args:
        block: the part.
        inner: the object under its kind; some servers have a text there.
        typed_keys: keys of `inner` that have a field.
    """
    kind = block["type"]
    native = rest_of(block, "type", kind) or {}
    inner_rest = rest_of(inner, *typed_keys) if isinstance(inner, dict) else None
    if inner_rest:
        native[kind] = inner_rest
    return native or None


def _image(image: Any, block: JsonObject) -> Image:
    native = _native(block, image, "url", "detail") or {}
    if isinstance(image, str):
        url = image
    else:
        url = image.get("url")
        if image.get("detail") is not None:
            native["detail"] = image["detail"]
    media_type, data = _data_url(url)
    if data:
        return unchecked(Image)(data, media_type=media_type, native=native or None)
    return unchecked(Image)(url=url, media_type=media_type, native=native or None)


def _document_by_url(url: str, block: JsonObject) -> Document:
    """Mistral's part: its type stays in `native`, so that it goes back in this form."""
    native = rest_of(block, "document_url", "document_name")
    name = block.get("document_name")
    media_type, data = _data_url(url)
    if data:
        return unchecked(Document)(data, media_type=media_type, name=name, native=native)
    return unchecked(Document)(url=url, name=name, native=native)


def _file(file: Any, block: JsonObject) -> Document:
    """Reads a file. If it has content and an id, one becomes a field, the other is in `native`."""
    content, name, file_id = file.get("file_data"), file.get("filename"), file.get("file_id")
    if not content:
        native = _native(block, file, "file_id")
        return unchecked(Document)(None, None, file_id, name=name, native=native)
    native = _native(block, file, "file_data", "filename")
    media_type, data = _data_url(content)
    if data:
        return unchecked(Document)(data, None, None, media_type, name, native=native)
    # For providers that take a URL in place of the bytes, the builder writes one there.
    if isinstance(content, str) and "://" in content[:16]:
        return unchecked(Document)(None, content, None, media_type, name, native=native)
    return unchecked(Document)(content, None, None, media_type, name, native=native)


def _audio(audio: Any, block: JsonObject) -> Audio:
    if isinstance(audio, str):  # Mistral: the bytes, or where they are
        if audio.startswith(("https://", "http://")):
            return unchecked(Audio)(url=audio, native=_native(block, audio))
        return unchecked(Audio)(audio, native=_native(block, audio))
    audio_format = str(audio.get("format") or "wav")
    subtype = AUDIO_SUBTYPES.get(audio_format, audio_format)
    native = _native(block, audio, "data", "format")
    return unchecked(Audio)(audio["data"], media_type=f"audio/{subtype}", native=native)


def _data_url(url: Any) -> tuple[str | None, str | None]:
    """Media type and base64 text of a `data:` URL; (None, None) for anything else."""
    prefix, comma, data = str(url or "").partition(",")
    if not comma or not prefix.startswith("data:") or not prefix.endswith(";base64"):
        return None, None
    media_type = prefix.removeprefix("data:").removesuffix(";base64")
    return media_type or None, data
