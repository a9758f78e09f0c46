"""Converts content parts to those of Chat Completions.

    Text      {"type": "text"}         Document  {"type": "file"}
    Image     {"type": "image_url"}    Audio     {"type": "input_audio"}

Chat takes files as bytes or by id, and PDFs only: documents of text are sent as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, without_none
from streamlib.request.media import data_url, media_type
from streamlib.request.report import Report
from streamlib.wires.text_documents import is_text, text_of_document
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Message,
    Refusal,
    Text,
)

AUDIO_FORMATS: Final = {
    "mpeg": "mp3",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
    "x-flac": "flac",
    "mp4": "m4a",
    "x-m4a": "m4a",
}
"""Subtype of an `audio/*` media type -> `input_audio.format`; other subtypes are formats too."""


def text_part(text: str) -> JsonObject:
    """A part of plain text."""
    return {"type": "text", "text": text}


def wire_part(
    part: ContentPart, entry: IndexedItem, report: Report, *, document_urls: bool = False
) -> JsonObject | None:
    """Converts one content part.

    Args:
        part: the part.
        entry: the item it belongs to: its origin decides whether `native` may be sent.
        report: receives what had to change.
        document_urls: the provider takes documents as `document_url`, and audio as a text: its
            bytes or its URL (Mistral).

    Returns:
        The wire's object, or None if Chat has none for it.
    """
    native = _native(part, entry)
    if document_urls or native.get("type") == "document_url":
        mistral = _mistral_part(part, native)
        if mistral is not None:
            return {**mistral, **native}
    if "type" in native:
        # A part of a kind that we do not know goes back as received.
        return native
    match part:
        case Text():
            return {**text_part(part.text), **native}
        case Image():
            body = _image(part, native, entry, report)
        case Document():
            body = _document(part, entry, report)
        case Audio():
            audio = _audio(part, entry, report)
            if audio is None:
                return None
            body = audio
        case Refusal():
            return _refusal(part, native, entry)
    # Keys of the object inside a part are in `native` under its name.
    return merged(body, {key: value for key, value in native.items() if key != "detail"})


def _refusal(part: Refusal, native: JsonObject, entry: IndexedItem) -> JsonObject:
    """A refusal part in an assistant message; in any other message its text."""
    if isinstance(entry.item, Message) and entry.item.role == "assistant":
        return {"type": "refusal", "refusal": part.refusal, **native}
    return text_part(part.refusal)


def is_list(parts: Sequence[ContentPart]) -> bool:
    """Whether the parts need a list, because one string cannot hold them."""
    return len(parts) > 1 or any(part.native for part in parts)


def _native(part: ContentPart, entry: IndexedItem) -> JsonObject:
    """The part's `native`, if it is from this wire: servers refuse another wire's keys."""
    origin = entry.item.origin
    if origin is not None and origin.wire_api not in ("chat", None):
        return {}
    return part.native or {}


def _image(part: Image, native: JsonObject, entry: IndexedItem, report: Report) -> JsonObject:
    if part.file_id:
        report.add("changed", entry.path, "an image by its id is a file in Chat")
        return {"type": "file", "file": {"file_id": part.file_id}}
    image: JsonObject = {"url": data_url(part)}
    if "detail" in native:
        image["detail"] = native["detail"]
    return {"type": "image_url", "image_url": image}


def _document(part: Document, entry: IndexedItem, report: Report) -> JsonObject:
    if part.file_id:
        return {"type": "file", "file": {"file_id": part.file_id}}
    kind = media_type(part)
    if part.data is not None and is_text(kind):
        report.add(
            "changed", entry.path, "Chat takes PDFs only: a document of text is sent as text"
        )
        return text_part(text_of_document(part.data, part.name or kind))
    if part.url is not None:
        report.add(
            "changed",
            entry.path,
            "Chat has no URLs of files: sent in the place of the bytes, which some providers take",
        )
    if part.data is None and part.url is None:
        return {"type": "file", "file": without_none({"file_id": part.file_id})}
    file = {"filename": part.name or "document.pdf", "file_data": data_url(part)}
    return {"type": "file", "file": file}


def _mistral_part(part: ContentPart, native: JsonObject) -> JsonObject | None:
    """A part that has a form of its own at Mistral; None for the others."""
    if isinstance(part, Document):
        return _document_by_url(part)
    # Keys of the object inside need that object.
    if isinstance(part, Audio) and "input_audio" not in native and (part.data or part.url):
        return {"type": "input_audio", "input_audio": part.data or part.url}
    return None


def _document_by_url(part: Document) -> JsonObject | None:
    """Mistral's part: a URL, or the bytes as a `data:` URL. None for a file id or a text file."""
    is_text_file = part.data is not None and is_text(media_type(part))
    if is_text_file or not (part.data or part.url):
        return None
    body: JsonObject = {"type": "document_url", "document_url": data_url(part)}
    if part.name:
        body["document_name"] = part.name
    return body


def _audio(part: Audio, entry: IndexedItem, report: Report) -> JsonObject | None:
    if part.data is None:
        report.dropped(entry.path, "Chat takes audio as bytes only")
        if not part.transcript:
            return None
        return text_part(part.transcript)
    # `audio/wav; codecs=1` has parameters after the subtype.
    subtype = media_type(part).removeprefix("audio/").partition(";")[0]
    audio = {"data": part.data, "format": AUDIO_FORMATS.get(subtype, subtype)}
    return {"type": "input_audio", "input_audio": audio}
