"""Images, documents and audio as the data fields of Gemini parts.

Rules have the numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

from streamlib.request.media import media_type
from streamlib.request.target import BuildContext
from streamlib_parsers.items import Audio, Document, Image, JsonObject

RESULT_TYPES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)
"""Media types that a result may hold."""  # rule G20

URL_TYPES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "json": "application/json",
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "xml": "text/xml",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "aac": "audio/aac",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mpeg": "video/mpeg",
}
"""File name extension of a URL -> media type."""

DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def media_field(part: Image | Document | Audio) -> tuple[str, JsonObject] | None:
    """The data field of a media part and its value, or None if the part has no bytes and no URL."""
    inline = DATA_URL.fullmatch(part.url or "")
    if inline:
        part = msgspec.structs.replace(
            part, data=inline[2], url=None, media_type=inline[1] or part.media_type
        )
    uri = part.url or part.file_id
    value: JsonObject = {}
    if part.data:
        field = "inlineData"
        value["mimeType"] = media_type(part)
        value["data"] = part.data
    elif uri:
        field = "fileData"
        # Vertex AI refuses a file without a media type.
        url_type = part.media_type or _type_of_url(uri)
        if url_type:
            value["mimeType"] = url_type
        value["fileUri"] = uri
    else:
        return None
    if part.name:
        value["displayName"] = part.name
    return field, value


def fitted_media_field(
    part: Image | Document | Audio, path: str, context: BuildContext
) -> tuple[str, JsonObject | str] | None:
    """As `media_field`, for what the provider takes; audio without bytes becomes its transcript."""
    provider = context.target.provider
    if part.name and "displayName" in provider.unsupported:
        reason = f"{provider.name}: {provider.unsupported['displayName']}"
        context.report.dropped(f"{path}/name", reason)
        part = msgspec.structs.replace(part, name=None)
    field = media_field(part)
    if field is not None:
        return field
    if isinstance(part, Audio) and part.transcript:
        context.report.add(
            "changed", path, "audio stored by another provider, sent as its transcript"
        )
        return "text", part.transcript
    context.report.dropped(path, "a part without data")
    return None


def _type_of_url(url: str) -> str | None:
    try:
        path = urlsplit(url).path
    except ValueError:
        # Not a URL that Python can split: the server decides.
        return None
    return URL_TYPES.get(path.rpartition(".")[2].lower())
