"""Files in a page's messages: `data:` URLs as parts with their bytes, addresses as they are.

Nothing is fetched here. An address is sent to the model's provider, which may fetch it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import Audio, Document, Image

FileKind: TypeAlias = Callable[..., Image | Audio | Document]

KINDS: Final[dict[str, FileKind]] = {
    "image": Image,
    "audio": Audio,
}
"""Part classes by the first half of a media type; everything else is a document."""

MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9][\w.+-]{0,126}/[A-Za-z0-9][\w.+-]{0,126}", re.ASCII)

NOT_ALLOWED: Final = "addresses of files are not taken"
NOT_AN_ADDRESS: Final = "neither a data: URL nor an http(s) address"
NOT_BASE64: Final = "its data is not base64"
PROVIDERS_FILE: Final = "an id of a file at the provider may be somebody else's"


class FileResult(NamedTuple):
    """A file of a page, or why it is left out."""

    part: Image | Audio | Document | None
    reason: str = ""


def file_from_url(
    url: str,
    media_type: str | None,
    name: str | None,
    *,
    takes_urls: bool,
    kind: FileKind | None = None,
) -> FileResult:
    """The part of a file that a page gives by URL.

    Args:
        url: a `data:` URL, or an address.
        media_type: its media type, which wins over that of the URL.
        name: the file's name.
        takes_urls: whether URLs other than `data:` are accepted.
        kind: the class of the part; None: by its media type.
    """
    if url[:5].lower() == "data:":
        header, comma, content = url[5:].partition(",")
        if not comma:
            return FileResult(None, NOT_AN_ADDRESS)
        of_url, *parameters = header.split(";")
        if "base64" in parameters:
            data = content
        else:
            data = base64.b64encode(unquote_to_bytes(content)).decode()
        return file_from_data(data, media_type or of_url, name, kind=kind)
    if not url[:8].lower().startswith(("https://", "http://")):
        return FileResult(None, NOT_AN_ADDRESS)
    if not takes_urls:
        return FileResult(None, NOT_ALLOWED)
    make = kind or _kind(media_type)
    return FileResult(unchecked(make)(url=url, media_type=_complete(media_type), name=name))


def file_from_data(
    data: str, media_type: str | None, name: str | None, *, kind: FileKind | None = None
) -> FileResult:
    """The part of a file that a page gives as base64; arguments as in `file_from_url`."""
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return FileResult(None, NOT_BASE64)
    make = kind or _kind(media_type)
    return FileResult(unchecked(make)(data=data, media_type=_complete(media_type), name=name))


def _kind(media_type: str | None) -> FileKind:
    first_half = (media_type or "").partition("/")[0].strip().lower()
    return KINDS.get(first_half, Document)


def _complete(media_type: str | None) -> str | None:
    """The media type without parameters; None if it is missing or incomplete (`image/*`)."""
    essence = (media_type or "").partition(";")[0].strip()
    if MEDIA_TYPE.fullmatch(essence) is None:
        return None
    return essence
