"""Parts of messages and of tool results as Converse content blocks.

Numbers such as B12 are the rows of the rule table in docs/wires/converse.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import msgspec

from streamlib.request.json_objects import merged
from streamlib.request.media import media_type
from streamlib.request.report import Action
from streamlib.request.target import BuildContext
from streamlib.wires.bedrock import BedrockFamily
from streamlib_parsers.items import Audio, ContentPart, Document, Image, JsonObject, Refusal, Text
from streamlib_parsers.notes import BESIDE, split_note


@dataclass(frozen=True, slots=True)
class ConverseContext(BuildContext):
    """The context of one build, with the family of its model."""

    family: BedrockFamily
    document_names: dict[str, int] = field(default_factory=dict)
    """Document names in use -> the last number tried for a second document of that name.

    Filled while parts are built: a request may hold a name only once.
    """  # rule B11


def member_block(member: str, value: JsonObject, native: JsonObject | None) -> JsonObject:
    """A block of one member, with the keys in `native` that belong in it, and beside it."""
    inside, siblings = split_note(native, BESIDE)
    return with_siblings({member: {**value, **inside}}, siblings)


def with_siblings(block: JsonObject, siblings: JsonObject) -> JsonObject:
    """A block with keys beside its member, which stays the first, and what it is."""
    return {**block, **siblings, **block}


MAX_NAME_LENGTH: Final = 200
"""The longest name of a document, in characters."""
IMAGE_FORMATS: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
DOCUMENT_FORMATS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
AUDIO_FORMATS: Final = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
}
DOCUMENT_KEYS: Final = ("context", "citations")
"""Members of a document that no typed field holds."""
NATIVE_MEMBERS: Final = frozenset(
    {
        "text",
        "json",
        "video",
        "audio",
        "document",
        "searchResult",
        "image",
        "toolAddition",
        "toolRemoval",
    }
)
"""Blocks that have no part type: decoding keeps them complete in the `native` of a text."""


def part_block(part: ContentPart, path: str, context: ConverseContext) -> JsonObject | None:
    """The block of a part, or None if Converse has none for it."""
    native = part.native or {}
    block: JsonObject | None
    match part:
        case Text():
            # the block itself, of a kind that has no part type
            if native.keys() & NATIVE_MEMBERS:
                return native
            block = {"text": part.text}
        case Refusal():
            block = {"text": part.refusal}
        case Image():
            block = _image(part, path, context)
        case Document():
            block = _document(part, path, context)
        case Audio():
            block = _audio(part, path, context)
    if block and "guardContent" in native:
        return _guard_content(block, native)
    return block


def _guard_content(block: JsonObject, native: JsonObject) -> JsonObject:
    """A block that a guardrail examines; its other keys (`qualifiers`) are in `native`."""
    if "text" in block:
        return {"guardContent": {"text": {"text": block["text"], **native["guardContent"]}}}
    return {"guardContent": block}


# --- media ---


def _image(part: Image, path: str, context: ConverseContext) -> JsonObject | None:
    block = _media(part, IMAGE_FORMATS, path, context)
    if block is None:
        return None
    return {"image": block}


def _document(part: Document, path: str, context: ConverseContext) -> JsonObject | None:
    block = _media(part, DOCUMENT_FORMATS, path, context)
    if block is None:
        return None
    block["name"] = _document_name(part, path, context)
    native = part.native or {}
    for key in DOCUMENT_KEYS:
        if key in native:
            block[key] = native[key]
    return {"document": block}


def _audio(part: Audio, path: str, context: ConverseContext) -> JsonObject | None:
    # the audio itself is missing: only its transcript is left
    if part.transcript and not part.data:
        return {"text": part.transcript}
    block = _media(part, AUDIO_FORMATS, path, context)
    if block is None:
        return None
    return {"audio": block}


def _media(
    part: Image | Document | Audio, formats: dict[str, str], path: str, context: ConverseContext
) -> JsonObject | None:
    """`format` and `source`; None, and reported, if Converse does not take one of them."""
    # rule B13
    native = part.native or {}
    # without parameters such as `; charset=utf-8`
    mime = media_type(part).partition(";")[0].strip().lower()
    source = _source(part)
    if source is None:
        reason = "Converse takes bytes or an S3 location, no URL and no file id"
        context.report.dropped(path, f"{reason}")
        return None
    # the caller's media type counts more than the name; a guessed one counts less
    format_ = formats.get(mime)
    format_of_name = _format_of_name(part, formats)
    if format_ is None or (format_of_name and not part.media_type):
        format_ = format_of_name
    if native.get("format") == mime.rpartition("/")[2]:
        format_ = native["format"]
    if format_ is None:
        context.report.dropped(path, f"Converse has no format for {mime}")
        return None
    block = {"format": format_, "source": source}
    if "error" in native:
        block["error"] = native["error"]
    # members that this version does not know are under the name of the block
    return merged(block, native.get(type(part).__name__.lower()) or {})


def _format_of_name(part: Image | Document | Audio, formats: dict[str, str]) -> str | None:
    """The format by the file extension; any other text is `txt`."""
    extension = (part.name or "").rpartition(".")[2].lower()
    if extension in formats.values():
        return extension
    if isinstance(part, Document) and (part.media_type or "").startswith("text/"):
        return "txt"
    return None


def _source(part: Image | Document | Audio) -> JsonObject | None:
    if part.data and part.native and part.native.get("source") == "text":
        return {"text": msgspec.convert(part.data, bytes).decode("utf-8", "replace")}
    if part.data:
        return {"bytes": part.data}
    if part.url is None or not part.url.startswith("s3://"):
        return None
    location = {"uri": part.url}
    if part.native and "bucketOwner" in part.native:
        location["bucketOwner"] = part.native["bucketOwner"]
    return {"s3Location": location}


# --- names of documents ---


def _document_name(part: Document, path: str, context: ConverseContext) -> str:
    """A name as the API takes it, unique in the request.

    It is the same in every request of a conversation, so that the cached prefix matches.
    """  # rule B11
    original = (part.name or "").strip()
    name = _unique(_clean(original) or "document", context.document_names)
    if name == original:
        return name
    action: Action = "generated"
    if original:
        action = "renamed"
    context.report.add(action, path, f"a document is named {name!r}")
    return name


def _clean(name: str) -> str:
    """The name with allowed characters only, without two blanks in a row, at most 200 long."""
    allowed = re.sub(r"[^a-zA-Z0-9\s\-()\[\]]+", "-", name)
    clean = re.sub(r"\s+", " ", allowed)[:MAX_NAME_LENGTH]
    if clean == name:
        return name
    # replaced characters leave dashes at the ends
    return clean.strip(" -")


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, or the name with the next free number.

    Args:
        taken: names in use -> the last number tried for them.
    """
    numbered = name
    while numbered in taken:
        taken[name] = taken.get(name, 1) + 1
        suffix = f" ({taken[name]})"
        numbered = f"{name[: MAX_NAME_LENGTH - len(suffix)]}{suffix}"
    # a later document may have the numbered name as its own
    taken[numbered] = 1
    return numbered
