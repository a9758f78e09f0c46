"""Files and addresses that are sent with a question: images, documents, audio, text."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from streamlib.cli.command_error import CommandError
from streamlib_parsers import Audio, Document, Image, Text
from streamlib_parsers.item_base import detected_type

Attachment: TypeAlias = Text | Image | Document | Audio

ATTACHMENT_BYTES: Final = 20 << 20
"""Limit of a file: no provider accepts a larger one inside a request."""

STANDARD_INPUT: Final = "-"


def read_attachment(name: str) -> Attachment:
    """Reads a file, or standard input for `-`; a URL is passed on for the provider to read.

    The type is taken from the first bytes, not from the name. Text becomes a text part.

    Raises:
        CommandError: it cannot be read, is too large, or is of no type that models accept.
    """
    if urlsplit(name).scheme in ("http", "https"):
        return _of_address(name)
    data = _read(name)
    if len(data) > ATTACHMENT_BYTES:
        raise CommandError(
            f"{name}: {len(data):,} bytes; an attachment may have at most {ATTACHMENT_BYTES:,}"
        )
    media_type = media_type_of(data)
    if media_type is None:
        return _text(name, data)
    encoded = b64encode(data).decode("ascii")
    shown = Path(name).name
    if media_type.startswith("image/"):
        return Image(data=encoded, media_type=media_type)
    if media_type.startswith("audio/"):
        return Audio(data=encoded, media_type=media_type)
    return Document(data=encoded, media_type=media_type, name=shown)


def media_type_of(data: bytes) -> str | None:
    """The media type that the first bytes of a file show; None if they show none."""
    return detected_type(b64encode(data[:64]).decode("ascii")) or None


def _of_address(url: str) -> Attachment:
    # Imported late: its tables and the network modules it loads take longer than the rest.
    import mimetypes

    media_type = mimetypes.guess_type(urlsplit(url).path)[0]
    if media_type is None or media_type.startswith("image/"):
        return Image(url=url, media_type=media_type)
    if media_type.startswith("audio/"):
        return Audio(url=url, media_type=media_type)
    return Document(url=url, media_type=media_type)


def _text(name: str, data: bytes) -> Text:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandError(
            f"{name}: neither text nor of a type that models accept (PNG, JPEG, GIF, WebP, PDF, "
            "audio)"
        ) from None
    if "\0" in text:
        raise CommandError(f"{name}: not a file that models accept")
    if name == STANDARD_INPUT:
        return Text(text)
    return Text(f"{Path(name).name}:\n\n{text}")


def _read(name: str) -> bytes:
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read()
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        # The name contains a null byte.
        raise CommandError(f"{name!r}: {error}") from None
