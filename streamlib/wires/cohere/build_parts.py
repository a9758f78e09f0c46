"""Content parts as the contents of Cohere's messages.

Rules have the numbers of the rule table in docs/wires/cohere.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamlib.request.media import media_type
from streamlib.request.report import Report
from streamlib.wires.text_documents import is_text, text_of_document
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Refusal,
    Text,
)


def contents(parts: Iterable[ContentPart], path: str, report: Report) -> list[JsonObject]:
    """The contents of a message; empty texts are left out (H2)."""
    sent: list[JsonObject] = []
    for index, part in enumerate(parts):
        body = content(part, f"{path}/content/{index}", report)
        if body is not None:
            sent.append(body)
    return sent


def content(part: ContentPart, path: str, report: Report) -> JsonObject | None:
    """One content; None, and reported, if nothing of the part can be sent."""
    native = part.native or {}
    match part:
        case Text() if "type" in native:
            # A content of a kind that has no part type is kept complete in `native`.
            return native
        case Text():
            return _text(part.text, native, path, report)
        case Refusal():
            return _text(part.refusal, {}, path, report)
        case Image():
            return _image(part, path, report)
        case Document(data=str(data)) if is_text(media_type(part)):
            report.add("changed", path, "a document of text is sent as text (H3)")
            return _text(text_of_document(data, part.name or media_type(part)), {}, path, report)
        case Audio(transcript=str(transcript)):
            report.add("changed", path, "Cohere takes no audio: its transcript is sent (H3)")
            return _text(transcript, {}, path, report)
        case _:
            report.dropped(path, f"Cohere takes no {type(part).__name__.lower()} (H3)")
            return None


def _text(text: str, native: JsonObject, path: str, report: Report) -> JsonObject | None:
    if not text:
        report.dropped(path, "empty text (H2)")
        return None
    return {"type": "text", "text": text, **native}


def _image(part: Image, path: str, report: Report) -> JsonObject | None:
    url = part.url
    if part.data:
        url = f"data:{media_type(part)};base64,{part.data}"
    if not url:
        report.dropped(path, "an image stored by another provider (H3)")
        return None
    if part.name:
        report.dropped(f"{path}/name", "Cohere has no name of an image")
    return {"type": "image_url", "image_url": {"url": url, **(part.native or {})}}
