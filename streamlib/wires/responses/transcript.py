"""Items as a list of Responses objects to keep, not to send: with their ids, and whole.

`decode.py` reads it. What the API would refuse is mended by `build.py` when the items are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlib.request.history import IndexedItem
from streamlib.request.target import BuildContext
from streamlib.wires.responses.build_input import ResponsesContext, input_objects, tidy
from streamlib.wires.responses.build_input_rules import InputObject, match_output_kinds, put_back
from streamlib_parsers.items import JsonObject, Opaque, Reasoning
from streamlib_parsers.wires.responses.wire_items import named_body, wire_item


def transcript_list(items: Iterable[IndexedItem], context: BuildContext) -> list[JsonObject]:
    """The objects, in the order of the items."""
    stored = ResponsesContext(context.target, context.report, stored=True)
    listed: list[InputObject] = []
    for entry in items:
        item = entry.item
        if isinstance(item, Opaque) and "content_index" in (item.native or {}):
            put_back(item, entry, listed, context.report)
            continue
        for body in _objects(entry, stored):
            named = named_body(body, item)
            listed.append(InputObject(tidy(named, stored=True), entry))
    match_output_kinds(listed)
    return [body for body, _ in listed]


def _objects(entry: IndexedItem, context: ResponsesContext) -> Iterator[JsonObject]:
    """The objects of one item; reasoning also where no server could read it any more."""
    if isinstance(entry.item, Reasoning):
        yield wire_item(entry.item)
    else:
        yield from input_objects(entry.item, entry, context)
