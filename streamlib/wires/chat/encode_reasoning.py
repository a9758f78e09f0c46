"""Keys of a Chat message that carry reasoning of this wire beside its text, for replay."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.items import JsonObject, Reasoning
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    TEXT_OF,
)

TEXT_ONLY_KEYS: Final = frozenset({"type", "text", "thinking", "index", "format"})
"""Keys of an element that add nothing to the text that was streamed."""


def reasoning_keys(item: Reasoning, *, textless: bool) -> JsonObject:
    """Returns the detail lists and the opaque state of reasoning made on this wire.

    A signature that no list carries gets a list in OpenRouter's form.

    Args:
        item: The reasoning.
        textless: Leave the text empty, since deltas have carried it.
    """
    native = item.native or {}
    keys: JsonObject = {}
    for key in REASONING_DETAIL_KEYS:
        elements = native.get(key)
        if elements and textless:
            elements = [_without_text(element) for element in elements]
        if elements:
            keys[key] = elements
    if item.signature and not _has_signature(keys):
        text = item.content
        if textless:
            text = ""
        detail = {"type": "reasoning.text", "text": text, "signature": item.signature, "index": 0}
        keys["reasoning_details"] = [detail]
    if native.get(OPAQUE_REASONING_KEY):
        keys[OPAQUE_REASONING_KEY] = native[OPAQUE_REASONING_KEY]
    return keys


def has_more_than_text(keys: JsonObject) -> bool:
    """Whether such keys carry more than text: a signature, encrypted reasoning, an id."""
    if OPAQUE_REASONING_KEY in keys:
        return True
    for key in REASONING_DETAIL_KEYS:
        for element in keys.get(key, ()):
            if any(element[name] not in (None, "") for name in element.keys() - TEXT_ONLY_KEYS):
                return True
    return False


def _has_signature(keys: dict[str, list[dict[str, Any]]]) -> bool:
    for elements in keys.values():
        for element in elements:
            if element.get("signature"):
                return True
    return False


def _without_text(element: JsonObject) -> JsonObject:
    key = TEXT_OF.get(str(element.get("type")))
    if key not in element:
        return element
    return {**element, key: ""}
