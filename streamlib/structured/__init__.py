"""Structured output: JSON Schemas of classes, and JSON that is used while it grows.

json_schema(City)                the schema that `Prompt(output_schema=City)` sends
TypedJson(City)                  a partial object of a class: `stream.partial(index, City)`
JsonItems("/cities", City)       the elements of a list as they close, from fragments of text
EventItems("/cities", City)      the same from the events of a response
json_items(stream, "/cities", City)    the same from a stream: the only one that waits
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from streamlib.lazy import lazy

if TYPE_CHECKING:
    from streamlib.structured.item_reader import JsonItems
    from streamlib.structured.schemas import json_schema
    from streamlib.structured.stream_items import EventItems, json_items
    from streamlib.structured.typed_json import TypedJson

__all__ = ["UNSET", "EventItems", "JsonItems", "TypedJson", "json_items", "json_schema"]

# `build` needs the schemas alone.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.structured.item_reader": ("JsonItems",),
        "streamlib.structured.schemas": ("json_schema",),
        "streamlib.structured.stream_items": ("EventItems", "json_items"),
        "streamlib.structured.typed_json": ("TypedJson",),
    },
)
