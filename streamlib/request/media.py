"""The media type of a part, from the beginning of its base64 text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from streamlib.request.history import IndexedItem, content_parts
from streamlib.request.report import Report
from streamlib_parsers.item_base import detected_type
from streamlib_parsers.items import Audio, ComputerCallOutput, Document, Image

Media: TypeAlias = Image | Document | Audio


def media_type(part: Media) -> str:
    """The media type of a part.

    For images the bytes decide, because providers refuse a wrong type; otherwise the part does.
    """
    detected = detected_type(part.data or "")
    if isinstance(part, Image) and detected.startswith("image/"):
        return detected
    return part.media_type or detected or _fallback(part)


def report_corrected_types(items: Iterable[IndexedItem], report: Report) -> None:
    """Reports images that name another type than their bytes have: builders send that of the bytes.

    Args:
        items: the history.
        report: receives a change for each such image.
    """
    for entry in items:
        item = entry.item
        parts = (item.image,) if isinstance(item, ComputerCallOutput) else content_parts(item)
        for part in parts:
            if not isinstance(part, Image) or not part.data or part.media_type is None:
                continue
            sent = media_type(part)
            if sent != part.media_type:
                reason = f"the bytes are {sent}, not {part.media_type}"
                report.add("changed", entry.path, reason)


def data_url(part: Media) -> str:
    """The bytes as a `data:` URL, else the part's own URL."""
    if part.data:
        return f"data:{media_type(part)};base64,{part.data}"
    return part.url or ""


def _fallback(part: Media) -> str:
    match part:
        case Image():
            return "image/png"
        case Document():
            return "application/pdf"
        case Audio():
            return "audio/wav"
