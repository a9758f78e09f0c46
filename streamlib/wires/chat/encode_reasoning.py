"""Keys of a Chat message that carry reasoning of this wire beside its text, for replay."""

from __future__ import annotations

from typing import Any

from streamlib_parsers.items import JsonObject, Reasoning
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    TEXT_OF,
)


def reasoning_keys(item: Reasoning) -> JsonObject:
    """The detail lists and the opaque state of reasoning made on this wire.

    Texts in the lists are empty: deltas have carried them. A signature that no list carries gets a
    list in OpenRouter's form.
    """
    native = item.native or {}
    keys: JsonObject = {}
    for key in REASONING_DETAIL_KEYS:
        elements = native.get(key)
        if elements:
            keys[key] = [_with_text(element, "") for element in elements]
    if item.signature and not _has_signature(keys):
        detail = {"type": "reasoning.text", "text": "", "signature": item.signature, "index": 0}
        keys["reasoning_details"] = [detail]
    if native.get(OPAQUE_REASONING_KEY):
        keys[OPAQUE_REASONING_KEY] = native[OPAQUE_REASONING_KEY]
    return keys


def _has_signature(keys: dict[str, list[dict[str, Any]]]) -> bool:
    for elements in keys.values():
        for element in elements:
            if element.get("signature"):
                return True
    return False


def has_details(delta: JsonObject) -> bool:
    """Whether a delta has one of the lists."""
    return any(key in delta for key in REASONING_DETAIL_KEYS)


def with_reasoning(delta: JsonObject, text: str) -> JsonObject:
    """A delta whose lists have the text that came before it: in a body they are complete.

    Text of several elements is in the first.
    """
    filled = dict(delta)
    for key in REASONING_DETAIL_KEYS:
        elements = list(delta.get(key, ()))
        for position, element in enumerate(elements):
            if element.get("type") in TEXT_OF:
                elements[position] = _with_text(element, text)
                break
        if elements:
            filled[key] = elements
    return filled


def _with_text(element: JsonObject, text: str) -> JsonObject:
    key = TEXT_OF.get(str(element.get("type")))
    if key not in element:
        return element
    return {**element, key: text}
