"""Content parts of Chat Completions: what a caller says, and what may be said beside it.

    Text {"type":"text"} · Image {"type":"image_url"} · Document {"type":"file"} · Audio {"type":"input_audio"}

Chat takes files as bytes or by id and PDFs only, so documents that are text are sent as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.request.history import IndexedItem
from streamlib.request.media import data_url, media_type
from streamlib.request.report import Report
from streamlib_parsers.items import Audio, ContentPart, Document, Image, JsonObject, Refusal, Text

AUDIO_FORMATS: Final = {
    "mpeg": "mp3",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
    "x-flac": "flac",
    "mp4": "m4a",
    "x-m4a": "m4a",
}
"""Media subtypes whose format has another name; the others are their own."""
TEXTUAL: Final = ("application/json", "application/xml", "application/yaml", "application/x-yaml")


def text_part(text: str) -> JsonObject:
    """Plain text."""
    return {"type": "text", "text": text}


def wire_part(part: ContentPart, one: IndexedItem, report: Report) -> JsonObject | None:
    """The part, or None where Chat has no words for it. A part of a kind we do not know goes back as it came."""
    native = native_of(part, one)
    return native if "type" in native else PARTS[type(part)](part, native, one, report)


def native_of(part: ContentPart, one: IndexedItem) -> JsonObject:
    """What this wire said of the part; what another wire said of it is not ours to send."""
    origin = one.item.origin
    made_here = origin is None or origin.wire_api in ("chat", None)
    return (part.native or {}) if made_here else {}


def _text(part: Any, native: JsonObject, one: IndexedItem, report: Report) -> JsonObject:
    return {**text_part(part.text), **native}


def _refusal(part: Any, native: JsonObject, one: IndexedItem, report: Report) -> JsonObject:
    return text_part(part.refusal)


def _image(part: Any, native: JsonObject, one: IndexedItem, report: Report) -> JsonObject:
    if part.file_id:
        report.add("changed", one.path, "an image by its id is a file in Chat")
        return {"type": "file", "file": {"file_id": part.file_id}}
    detail = {"detail": native["detail"]} if "detail" in native else {}
    return {"type": "image_url", "image_url": {"url": data_url(part), **detail}}


def _document(part: Any, native: JsonObject, one: IndexedItem, report: Report) -> JsonObject:
    if part.file_id:
        return {"type": "file", "file": {"file_id": part.file_id}}
    kind = media_type(part)
    if part.data is not None and (kind.startswith("text/") or kind in TEXTUAL):
        report.add("changed", one.path, "Chat takes PDFs only: a document of text is sent as text")
        return text_part(f"[{part.name or kind}]\n{plain_text(part.data)}")
    if part.data is None:
        report.add(
            "changed",
            one.path,
            "Chat has no URLs of files: sent in the place of the bytes, which some providers take",
        )
    return {
        "type": "file",
        "file": {"filename": part.name or "document.pdf", "file_data": data_url(part)},
    }


def _audio(part: Any, native: JsonObject, one: IndexedItem, report: Report) -> JsonObject | None:
    if part.data is None:
        report.dropped(one.path, "Chat takes audio as bytes only")
        return text_part(part.transcript) if part.transcript else None
    kind = media_type(part).removeprefix("audio/").partition(";")[0]
    return {
        "type": "input_audio",
        "input_audio": {"data": part.data, "format": AUDIO_FORMATS.get(kind, kind)},
    }


PARTS: Final[dict[type, Callable[[Any, JsonObject, IndexedItem, Report], JsonObject | None]]] = {
    Text: _text,
    Refusal: _refusal,
    Image: _image,
    Document: _document,
    Audio: _audio,
}


def plain_text(data: str) -> str:
    """The text that base64 text holds; what is no base64 is taken for the text itself."""
    try:
        return msgspec.convert(data, bytes).decode("utf-8", "replace")
    except msgspec.ValidationError:
        return data
