"""Content blocks of a Converse request as parts: the inverse of `build_parts.py`."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from streamlib.wires.converse.build_parts import (
    AUDIO_FORMATS,
    DOCUMENT_FORMATS,
    DOCUMENT_KEYS,
    IMAGE_FORMATS,
)
from streamlib.wires.json_objects import rest_of
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import Audio, ContentPart, Document, Image, JsonObject, Text


class _Source(NamedTuple):
    """The source of a media block: `data` (base64) or `url` (an S3 location)."""

    data: str | None
    url: str | None
    media_type: str | None
    native: JsonObject | None


def part_of(block: JsonObject) -> ContentPart | None:
    """The part for a block, or None if there is no part type for it."""
    if not block:
        raise ValueError("an empty content block")
    if len(block) > 1:
        return None
    match next(iter(block)):
        case "text":
            return Text(msgspec.convert(block["text"], str))
        case "image":
            return _image(block["image"])
        case "document":
            return _document(block["document"])
        case "audio":
            return _audio(block["audio"])
        case "guardContent":
            return _guard_content(block["guardContent"])
        case _:
            return None


def _image(image: JsonObject) -> Image | None:
    source = _source(image, "image", "image", IMAGE_FORMATS)
    if source is None:
        return None
    return unchecked(Image)(
        source.data, source.url, media_type=source.media_type, native=source.native
    )


def _audio(audio: JsonObject) -> Audio | None:
    source = _source(audio, "audio", "audio", AUDIO_FORMATS)
    if source is None:
        return None
    return unchecked(Audio)(
        source.data, source.url, media_type=source.media_type, native=source.native
    )


def _document(document: JsonObject) -> Document | None:
    name = document.get("name")
    source = _source(document, "document", "application", DOCUMENT_FORMATS)
    if source is None:
        return None
    return unchecked(Document)(
        source.data, source.url, media_type=source.media_type, name=name, native=source.native
    )


def _guard_content(content: JsonObject) -> ContentPart | None:
    """A block that a guardrail examines: a text or an image, with its own keys in `native`."""
    if len(content) != 1:
        return None
    if "text" in content:
        native = {key: value for key, value in content["text"].items() if key != "text"}
        return Text(content["text"]["text"], native={"guardContent": native})
    if "image" not in content:
        return None
    image = _image(content["image"])
    if image is None:
        return None
    native = dict(image.native or {})
    native["guardContent"] = {}
    return msgspec.structs.replace(image, native=native)


def _source(block: JsonObject, member: str, kind: str, formats: dict[str, str]) -> _Source | None:
    """The source of a media block, or None where it is of an unknown kind.

    Args:
        member: the block's name.
        kind: left half of the media type where `formats` lacks the block's format.
        formats: media type -> `format`.
    """
    format_ = block.get("format")
    media_type = _media_type(format_, kind, formats)
    source = block["source"]
    native: JsonObject = {key: block[key] for key in (*DOCUMENT_KEYS, "error") if key in block}
    unknown = rest_of(block, "format", "source", "name", *native) or {}
    source_rest = rest_of(source, "bytes", "text", "s3Location") or {}
    if format_ and media_type and formats.get(media_type) != format_:
        # another name of a format, or one that has no media type: sent again as it is
        native["format"] = format_
    data = source.get("bytes")
    url: str | None = None
    if "s3Location" in source:
        location = source["s3Location"]
        url = location["uri"]
        if "bucketOwner" in location:
            native["bucketOwner"] = location["bucketOwner"]
        location_rest = rest_of(location, "uri", "bucketOwner")
        if location_rest:
            source_rest["s3Location"] = location_rest
    elif "text" in source:
        # parts hold base64
        data = msgspec.to_builtins(str(source["text"]).encode("utf-8"))
        native["source"] = "text"
        media_type = media_type or "text/plain"
    if data is None and url is None:
        return None
    if source_rest:
        unknown["source"] = source_rest
    if unknown:
        native[member] = unknown
    return _Source(data, url, media_type, native or None)


def _media_type(format_: str | None, kind: str, formats: dict[str, str]) -> str | None:
    for media_type, known in formats.items():
        if known == format_:
            return media_type
    if format_:
        return f"{kind}/{format_}"
    return None
