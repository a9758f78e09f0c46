"""What kind of bytes a part holds, told by how base64 text begins."""

from __future__ import annotations

from typing import Final

from streamlib_parsers.items import Audio, Document, Image

SIGNS: Final[dict[str, str]] = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": "application/pdf",
    "SUQz": "audio/mpeg",
    "T2dnUw": "audio/ogg",
}
"""The first base64 characters of a format."""

FALLBACK: Final[dict[type, str]] = {
    Image: "image/png",
    Document: "application/pdf",
    Audio: "audio/wav",
}


def media_type(part: Image | Document | Audio) -> str:
    """The media type: as the bytes say where they are images (providers refuse a wrong one), else as the part says."""
    found = next((kind for sign, kind in SIGNS.items() if (part.data or "").startswith(sign)), None)
    if isinstance(part, Image) and found and found.startswith("image/"):
        return found
    return part.media_type or found or FALLBACK[type(part)]


def data_url(part: Image | Document | Audio) -> str:
    """The bytes as a `data:` URL, or the part's own URL."""
    return f"data:{media_type(part)};base64,{part.data}" if part.data else part.url or ""
