"""Gemini's parts as JSON objects whose values are not decoded yet, and functions to read them.

A part has one key with its data, and other keys beside it. Keys that become no typed field of an
item are kept in its `native`, in the shape of the part, so that the part can be written again:

    {"inlineData":{"mimeType":"image/png","data":"…","x":1},"thoughtSignature":"s","y":2}
      ->  {"inlineData":{"x":1},"y":2}

All functions raise msgspec's errors on values of a wrong type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw

from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import Audio, Document, Image, JsonObject

Object: TypeAlias = dict[str, Raw]
Index: TypeAlias = Annotated[int, Meta(ge=0, le=1023)]
"""Index of a candidate. `candidateCount` is at most 8, and each candidate costs memory."""

NULL: Final = Raw(b"null")

MAX_EXACT_FLOAT: Final = 1e15
"""A float below it is written without an exponent, and is exact as an integer."""

as_object: Final = msgspec.json.Decoder(Object).decode
as_objects: Final = msgspec.json.Decoder(list[Object]).decode
as_string: Final = msgspec.json.Decoder(str).decode
as_value: Final = msgspec.json.decode
_as_index: Final = msgspec.json.Decoder(Index).decode
_as_reason: Final = msgspec.json.Decoder(int | str).decode

_MEDIA_KINDS: Final[dict[str, type[Image | Audio | Document]]] = {"image": Image, "audio": Audio}
"""First half of the media type -> part class. Others are documents, as no part is for video."""


def present(values: Object) -> Object:
    """The members that are not null; serialisers write those that are not set as null."""
    if NULL not in values.values():
        return values
    return {key: value for key, value in values.items() if value != NULL}


def optional(values: Object, key: str) -> str | None:
    """A string that may be missing or null."""
    raw = values.get(key, NULL)
    if raw == NULL:
        return None
    return as_string(raw)


def is_true(values: Object, key: str) -> bool:
    """Whether a flag is set."""
    return key in values and as_value(values[key]) is True


def index_of(raw: Raw) -> int:
    """An index: an integer that is not negative; a float without a fraction too (`1.0`)."""
    value = as_value(raw)
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_FLOAT:
        return _as_index(b"%d" % value)
    return _as_index(raw)


def reason_of(values: Object, key: str) -> str | int | None:
    """An enum, by name or number. 0 and "" are what serialisers write for one that is not set."""
    raw = values.get(key, NULL)
    if raw == NULL:
        return None
    reason: str | int = _as_reason(raw)
    return reason


def rest(values: Object, *typed: str) -> JsonObject | None:
    """The members that no typed field holds; None if there are none."""
    return {key: as_value(value) for key, value in values.items() if key not in typed} or None


def state(
    part: Object,
    kind: str,
    *typed: str,
    inner: JsonObject | None = None,
    kind_in_native: bool = False,
) -> dict[str, Any]:
    """What any part may set on its item: the fields `signature` and `native`, if there are any.

    Args:
        part: the part.
        kind: its key that holds the data (`text`, `functionCall`, `executableCode` …).
        typed: further keys of the part that have a field.
        inner: members of the data that have no field.
        kind_in_native: write the kind as `type` into `native`.
    """
    native: JsonObject = {}
    if kind_in_native:
        # `executableCode` and `toolCall` both become a `ServerToolCall`: without their kind the
        # request could not write the part again.
        native["type"] = kind
    native |= rest(part, kind, "thoughtSignature", *typed) or {}
    if inner:
        native[kind] = inner
    fields: dict[str, Any] = {}
    signature = optional(part, "thoughtSignature")
    if signature:
        fields["signature"] = signature
    if native:
        fields["native"] = native
    return fields


def media_of(blob: Object) -> Image | Audio | Document:
    """The content part of `inlineData` or `fileData`, by its media type."""
    media_type = optional(blob, "mimeType")
    kind = (media_type or "").partition("/")[0].lower()
    make: Callable[..., Image | Audio | Document] = _MEDIA_KINDS.get(kind, Document)
    return unchecked(make)(
        data=optional(blob, "data"),
        url=optional(blob, "fileUri"),
        media_type=media_type,
        name=optional(blob, "displayName") or None,
    )


def arguments_of(call: Object) -> str:
    """`args`, in the provider's bytes; "" where there are none."""
    return bytes(call.get("args", b"")).decode("utf-8", "replace")
