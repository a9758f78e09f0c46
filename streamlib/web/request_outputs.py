"""Outputs of tools as a page keeps them: text, JSON, or the content parts that encoders write."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib.web.parsed_request import ParsedRequest
from streamlib.web.request_body import json_text
from streamlib.web.request_files import PROVIDERS_FILE, file_from_data, file_from_url
from streamlib_parsers.items import Audio, ContentPart, Document, Image, Output, Refusal, Text


def output_value(value: Any, path: str, parsed: ParsedRequest) -> Output:
    """The output of a call: a text as it is, parts as parts, any other value as JSON.

    Args:
        value: the JSON value.
        path: JSON pointer of the value, for the report.
        parsed: receives the report.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if not isinstance(value, list) or not value:
        return json_text(value)
    try:
        parts = msgspec.convert(value, list[ContentPart])
    except msgspec.ValidationError:
        return json_text(value)
    checked: list[ContentPart] = []
    for index, part in enumerate(parts):
        taken = _checked(part, f"{path}/{index}", parsed)
        if taken is not None:
            checked.append(taken)
    return tuple(checked)


def parts_of_text(text: str) -> Any:
    """The content parts that `text_or_json` wrote as a text, where the text is such a list."""
    if not text.startswith('[{"type":'):
        return text
    try:
        msgspec.json.decode(text, type=list[ContentPart])
    except (msgspec.DecodeError, RecursionError):
        return text
    return msgspec.json.decode(text)


def _checked(part: ContentPart, path: str, parsed: ParsedRequest) -> ContentPart | None:
    """The part without what only the server may set: its wire's own fields, ids of files."""
    match part:
        case Text():
            return Text(part.text)
        case Refusal():
            return Refusal(part.refusal)
        case Image() | Document() | Audio():
            return _checked_file(part, path, parsed)


def _checked_file(
    part: Image | Document | Audio, path: str, parsed: ParsedRequest
) -> ContentPart | None:
    if part.url:
        result = file_from_url(
            part.url,
            part.media_type,
            part.name,
            takes_urls=parsed.context.takes_urls,
            kind=type(part),
        )
    elif part.data:
        result = file_from_data(part.data, part.media_type, part.name, kind=type(part))
    else:
        parsed.dropped(path, PROVIDERS_FILE)
        return None
    if result.part is None:
        parsed.dropped(path, result.reason)
    return result.part
