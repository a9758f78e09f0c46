"""Content parts as the contents of an Interactions step.

Rules have the numbers of the rule table in docs/wires/interactions.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from streamlib.request.media import media_type
from streamlib.request.report import Report
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Refusal,
    Text,
)
from streamlib_parsers.wires.interactions import ByteOffsets

DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def contents(parts: Iterable[ContentPart], path: str, report: Report) -> list[JsonObject]:
    """The contents of a step or of a result; empty texts are left out."""  # rule I2
    sent: list[JsonObject] = []
    for index, part in enumerate(parts):
        part_path = f"{path}/content/{index}"
        body = content(part, part_path, report)
        if body is None:
            continue
        if body.get("type") == "text" and not body.get("text"):
            report.dropped(part_path, "empty text")
            continue
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
            return {**_text(part, path, report), **native}
        case Refusal():
            return {"type": "text", "text": part.refusal}
        case Image() | Document() | Audio():
            return _media(part, path, report)


def _text(part: Text, path: str, report: Report) -> JsonObject:
    body: JsonObject = {"type": "text", "text": part.text}
    annotations: list[JsonObject] = []
    offsets = ByteOffsets(part.text)
    for annotation in part.annotations:
        if isinstance(annotation.get("type"), str):
            annotations.append(offsets.in_bytes(annotation))
        else:
            report.dropped(f"{path}/annotations", "a citation of another wire")
    if annotations:
        body["annotations"] = annotations
    return body


def _media(part: Image | Document | Audio, path: str, report: Report) -> JsonObject | None:
    part = _with_inline_data(part)
    uri = part.url or part.file_id
    if not part.data and not uri:
        return _without_data(part, path, report)
    mime = part.media_type
    if part.data:
        mime = media_type(part)
    kind = _kind(part, mime or "")
    body: JsonObject = {"type": kind}
    if part.data:
        body["data"] = part.data
    else:
        body["uri"] = uri
    if mime:
        body["mime_type"] = mime
    if part.name and kind == "video":
        body["name"] = part.name
    elif part.name:
        report.dropped(f"{path}/name", f"Interactions has no name of a {kind}")
    if isinstance(part, Audio) and part.transcript:
        report.dropped(f"{path}/transcript", "Interactions has no transcript beside audio")
    return {**body, **(part.native or {})}


def _with_inline_data(part: Image | Document | Audio) -> Image | Document | Audio:
    """The part; if its URL is a `data:` URL, with the bytes of that as its data."""
    inline = DATA_URL.fullmatch(part.url or "")
    if inline is None:
        return part
    media_type = inline[1] or part.media_type
    return msgspec.structs.replace(part, data=inline[2], url=None, media_type=media_type)


def _without_data(part: Image | Document | Audio, path: str, report: Report) -> JsonObject | None:
    if isinstance(part, Audio) and part.transcript:
        report.add("changed", path, "audio stored by another provider, sent as its transcript")
        return {"type": "text", "text": part.transcript}
    report.dropped(path, "a part without data")
    return None


def _kind(part: Image | Document | Audio, mime: str) -> str:
    """The wire's type of a part; video has no class of its own."""
    if isinstance(part, Image):
        return "image"
    if isinstance(part, Audio):
        return "audio"
    if mime.startswith("video/"):
        return "video"
    return "document"
