"""Cohere v2 chat: which open item a citation belongs to.

A citation comes after the text that it cites, often between two deltas of it:

    {"start":49,"end":67,"text":"Yukihiro Matsumoto","type":"TEXT_CONTENT","content_index":1,
     "sources":[{"type":"document","id":"doc:0","document":{…}}]}

`start` and `end` count characters of that content. `content_index` is left out where the message
has one content alone.
"""

from __future__ import annotations

from typing import Any

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import Reasoning
from streamlib_parsers.open_items import OpenItem


def add_citation(assembler: EventAssembler, item: OpenItem, citation: dict[str, Any]) -> None:
    """Adds a citation to its item.

    Citations of reasoning stay in its `native`: only texts have annotations.
    """
    if not isinstance(item.item, Reasoning):
        assembler.annotation(item, citation)
        return
    native = item.fields.get("native")
    if native is None:
        native = dict(item.item.native or {})
        known = native.get("citations")
        # A copy, since the list itself was emitted; the content's own key may hold another type.
        native["citations"] = list(known) if isinstance(known, list) else []
        item.fields["native"] = native
    native["citations"].append(citation)


def content_index(citation: dict[str, Any]) -> int | None:
    """The index of the content that a citation names; None if it names none."""
    index = citation.get("content_index")
    if isinstance(index, bool) or not isinstance(index, int):
        return None
    return index
