"""Gemini's parts as JSON objects whose values are not decoded yet: what the machine of that wire and its calls read them with.

A part has one member with its data and others beside it. What becomes no typed field of an item is kept in its `native`, in the shape
of the part, so that the part can be written again:

    {"inlineData":{"mimeType":"image/png","data":"…","x":1},"thoughtSignature":"s","y":2}   ->  {"inlineData":{"x":1},"y":2}

All functions raise msgspec's errors on values of a wrong type.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw

from streamlib_parsers.items import Audio, Document, Image, JsonObject

Object: TypeAlias = dict[str, Raw]
Index: TypeAlias = Annotated[int, Meta(ge=0, le=1023)]
"""Of a candidate. `candidateCount` is at most 8; each one costs memory, whatever it says."""

NULL: Final = Raw(b"null")

as_object: Final = msgspec.json.Decoder(Object).decode
as_objects: Final = msgspec.json.Decoder(list[Object]).decode
as_string: Final = msgspec.json.Decoder(str).decode
as_value: Final = msgspec.json.decode
_as_index: Final = msgspec.json.Decoder(Index).decode
_as_reason: Final = msgspec.json.Decoder(int | str).decode


def present(values: Object) -> Object:
    """The members that are not null: serialisers write the unset ones so."""
    return {key: value for key, value in values.items() if value != NULL}


def optional(values: Object, key: str) -> str | None:
    """A string that may be missing or null."""
    raw = values.get(key, NULL)
    return None if raw == NULL else as_string(raw)


def is_true(values: Object, key: str) -> bool:
    """Whether a flag is set."""
    return key in values and as_value(values[key]) is True


def index_of(raw: Raw) -> int:
    """An index: whole and not negative, `1.0` too."""
    value = as_value(raw)
    return _as_index(
        b"%d" % value
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15
        else raw
    )


def reason_of(values: Object, key: str) -> str | int | None:
    """An enum, by name or number. 0 and "" are what serialisers write for an unset one: it counts if it is true."""
    raw = values.get(key, NULL)
    return None if raw == NULL else _as_reason(raw)


def rest(values: Object, *typed: str) -> JsonObject | None:
    """What no typed field holds."""
    return {key: as_value(value) for key, value in values.items() if key not in typed} or None


def state(
    part: Object, kind: str, *typed: str, inner: JsonObject | None = None, named: bool = False
) -> dict[str, Any]:
    """The fields that any part gives its item: `signature` and `native`, each only if there is one.

    kind: the member that holds the data. typed: further members that have a field. inner: what is left of the data.
    named: `native` says the kind, as it does on items that stand for several.
    """
    native: JsonObject = {"type": kind} if named else {}
    native |= rest(part, kind, "thoughtSignature", *typed) or {}
    native |= {kind: inner} if inner else {}
    signature = optional(part, "thoughtSignature")
    return ({"signature": signature} if signature else {}) | ({"native": native} if native else {})


def media_of(blob: Object) -> Image | Audio | Document:
    """The content part of `inlineData` or `fileData`, by its media type; video is a Document, since no part is made for it."""
    media_type = optional(blob, "mimeType")
    kinds: dict[str, type[Image | Audio | Document]] = {"image": Image, "audio": Audio}
    made = kinds.get((media_type or "").partition("/")[0].lower(), Document)
    name = optional(blob, "displayName") or None
    return made(
        data=optional(blob, "data"), url=optional(blob, "fileUri"), media_type=media_type, name=name
    )


def arguments_of(call: Object) -> str:
    """`args`, in the provider's own bytes; "" where there are none."""
    return bytes(call.get("args", b"")).decode("utf-8", "replace")
