"""Documents that are text, for wires that take no such files: their text is sent instead."""

from __future__ import annotations

from typing import Final

import msgspec

TEXTUAL: Final = ("application/json", "application/xml", "application/yaml", "application/x-yaml")
"""Media types of text beside `text/*`."""


def is_text(media_type: str) -> bool:
    """Whether a document of this media type can be sent as text."""
    return media_type.startswith("text/") or media_type in TEXTUAL


def plain_text(data: str) -> str:
    """The text in base64 `data`. Data that is not base64 is taken as the text itself."""
    try:
        return msgspec.convert(data, bytes).decode("utf-8", "replace")
    except msgspec.ValidationError:
        return data


def text_of_document(data: str, label: str) -> str:
    """The text of a document under its label, which is its name or its media type."""
    return f"[{label}]\n{plain_text(data)}"
