"""Structured output: JSON Schemas of classes, and JSON that is used while it grows.

json_schema(City)                the schema that `Prompt(output_schema=City)` sends
TypedJson(City)                  a partial object of a class: `stream.partial(index, City)`
JsonItems("/cities", City)       the elements of a list as they close, from fragments of text
EventItems("/cities", City)      the same from the events of a response
json_items(stream, "/cities", City)    the same from a stream: the only one that waits
"""

from __future__ import annotations

from msgspec import UNSET

from streamlib.structured.json_items import JsonItems
from streamlib.structured.stream_items import EventItems, json_items
from streamlib.structured.typed_json import TypedJson
from streamlib_parsers.classes.schemas import json_schema

__all__ = ["UNSET", "EventItems", "JsonItems", "TypedJson", "json_items", "json_schema"]
