"""Converts content parts to those of an OpenAI Responses request.

A caller's text is `input_text`, whatever its kind here. A part of a kind that we do not know
goes back as the wire wrote it.
"""  # rule R5

from __future__ import annotations

from typing import Final

from streamlib.request.media import data_url, media_type
from streamlib_parsers.items import Audio, ContentPart, Document, Image, JsonObject, Refusal, Text

EXTENSIONS: Final = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
}
"""Media type of a document -> extension of the file name that it gets if it has no name."""


def native_part(part: ContentPart) -> JsonObject | None:
    """The wire's own object of a part of an unknown kind, else None."""
    if part.native is not None and "type" in part.native:
        return part.native
    return None


def input_part(part: ContentPart) -> JsonObject:
    """The wire's object for a part of what the caller sends."""
    native = native_part(part)
    if native is not None:
        return native
    body = _input_part(part)
    body.update(part.native or {})
    return body


def _input_part(part: ContentPart) -> JsonObject:
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
        case Image():
            return _image(part)
        case Document():
            return _document(part)
        case Audio():
            return _audio(part)
        case Refusal():
            return {"type": "input_text", "text": part.refusal}


def _image(part: Image) -> JsonObject:
    body: JsonObject = {"type": "input_image"}
    if part.file_id is not None:
        body["file_id"] = part.file_id
    elif part.data or part.url:
        body["image_url"] = data_url(part)
    # The types of the API require `detail`.
    body["detail"] = "auto"
    return body


def _document(part: Document) -> JsonObject:
    """A name goes with bytes only, and bytes do not go without one."""
    if part.file_id is not None:
        return {"type": "input_file", "file_id": part.file_id}
    if part.data is None and part.url is None:
        return {"type": "input_file"}
    if part.data is None:
        return {"type": "input_file", "file_url": part.url}
    name = part.name or f"document.{EXTENSIONS.get(media_type(part), 'pdf')}"
    return {"type": "input_file", "filename": name, "file_data": data_url(part)}


def _audio(part: Audio) -> JsonObject:
    """The wire knows two formats: what is not MP3 is sent as WAV."""
    audio_format = "wav"
    if media_type(part) in ("audio/mpeg", "audio/mp3"):
        audio_format = "mp3"
    return {
        "type": "input_audio",
        "input_audio": {"data": part.data or "", "format": audio_format},
    }
