"""Names under which Chat Completions servers send reasoning, and the lists they send for replay.

Reasoning text has several names. Some servers send a list beside it that must be sent back
unchanged in the next request; its elements arrive in fragments:

    {"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm"}]}
    {"reasoning_details":[{"type":"reasoning.text","index":0,"text":".","signature":"S"}]}
      -> [{"type":"reasoning.text","index":0,"text":"Hm.","signature":"S"}]
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import string_at

__all__ = [
    "OPAQUE_REASONING_KEY",
    "REASONING_DETAIL_KEYS",
    "REASONING_KEYS",
    "RECEIVED_KEY",
    "TEXT_OF",
    "ReasoningDetails",
    "text_of_detail",
]

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Names of the reasoning text, the preferred first.

Servers that send two of them send the same text in both.
"""

RECEIVED_KEY: Final = "received_key"
"""Key in `native` of reasoning: the name its text came by, where that is not the preferred one."""

REASONING_DETAIL_KEYS: Final = ("reasoning_details", "thinking_blocks")
"""Lists that carry reasoning for replay: OpenRouter, MiniMax, Vercel; LiteLLM."""

OPAQUE_REASONING_KEY: Final = "reasoning_opaque"
"""Copilot's encrypted reasoning."""

TEXT_OF: Final = {"reasoning.text": "text", "reasoning.summary": "summary", "thinking": "thinking"}
"""Key of the text by the type of an element of those lists.

Elements of any other type (`reasoning.encrypted`) are never joined.
"""


class _Element:
    """One element of such a list while fragments may still continue it."""

    __slots__ = ("fields", "fragments")

    def __init__(self) -> None:
        self.fields: JsonObject = {}
        """Every key received; a later value that is not null replaces an earlier one."""
        self.fragments: list[str] = []
        """The text received so far."""

    def add(self, fragment: JsonObject) -> None:
        for key, value in fragment.items():
            # Fragments repeat the keys of the schema with null; the value received first stays.
            if value is not None or key not in self.fields:
                self.fields[key] = value
        self.fragments.append(text_of_detail(fragment))

    def is_continued_by(self, fragment: JsonObject) -> bool:
        """Whether `fragment` has the same type and index, and this element is not signed yet."""
        kind = fragment.get("type")
        if str(kind) not in TEXT_OF or kind != self.fields.get("type"):
            return False
        if fragment.get("index") != self.fields.get("index"):
            return False
        # Text after the signature belongs to the next element; other keys may still come late.
        return not (self.fields.get("signature") and text_of_detail(fragment))

    def joined(self) -> JsonObject:
        text = "".join(self.fragments)
        if not text:
            return self.fields
        return self.fields | {TEXT_OF[self.fields["type"]]: text}


class ReasoningDetails:
    """The elements of one such list, joined from the fragments of all deltas."""

    def __init__(self) -> None:
        self._elements: list[_Element] = []

    def add(self, fragments: list[JsonObject]) -> None:
        """Add the list of one delta; its first element may continue the last one so far."""
        for position, fragment in enumerate(fragments):
            # Elements of one list are apart, even if they look alike.
            may_continue = position == 0 and bool(self._elements)
            if not may_continue or not self._elements[-1].is_continued_by(fragment):
                self._elements.append(_Element())
            self._elements[-1].add(fragment)

    def joined(self) -> list[JsonObject]:
        """The list as a complete body would have it."""
        return [element.joined() for element in self._elements]


def text_of_detail(element: JsonObject) -> str:
    """The text of one element of such a list; "" for encrypted and unknown elements."""
    kind = element.get("type")
    if isinstance(kind, str) and kind in TEXT_OF:
        return string_at(element, TEXT_OF[kind])
    return ""
