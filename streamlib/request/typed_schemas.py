"""JSON Schema where every node states its type: the subset that Moonshot takes.

Moonshot refuses everything else with 400. Every node has one `type`, never a list, but none beside
`anyOf`; no branch of `anyOf` is null; null and "" are not values of an enum; objects list what they
require, and only what they have.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.schemas import with_subschemas
from streamlib_parsers.items import JsonObject

TYPES_BY_KEYWORD: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
"""The type of a node without one, by the first keyword of this table that it has."""
SCALARS: Final[dict[type, str]] = {bool: "boolean", int: "integer", float: "number"}
EMPTY: Final = (None, "")


def typed_schema(schema: Any) -> Any:
    """The schema in that subset; a value that is not an object is returned unchanged."""
    if not isinstance(schema, dict):
        return schema
    node: JsonObject = {}
    for key, value in schema.items():
        if key != "nullable":
            node[key] = with_subschemas(key, value, "", lambda child, _: typed_schema(child))
    if isinstance(node.get("anyOf"), list):
        node = _without_null_branch(node)
    if "anyOf" in node or "$ref" in node:
        return node
    node = _without_empty_values(_with_one_type(node))
    if node.get("type") == "object":
        node["required"] = _required(node)
    return node


def _without_null_branch(node: JsonObject) -> JsonObject:
    """`anyOf` without null; a choice of one schema is that schema."""
    branches: list[Any] = []
    for branch in node["anyOf"]:
        if not (isinstance(branch, dict) and branch.get("type") == "null"):
            branches.append(branch)
    rest = {key: value for key, value in node.items() if key not in ("type", "anyOf")}
    if len(branches) == 1 and isinstance(branches[0], dict):
        return {**rest, **branches[0]}
    return {**rest, "anyOf": branches}


def _with_one_type(node: JsonObject) -> JsonObject:
    kind = node.get("type")
    if isinstance(kind, list):
        return {**node, "type": _first_type(kind)}
    if kind or node.keys() & {"if", "then", "else"}:
        return dict(node)
    return {**node, "type": _inferred_type(node)}


def _first_type(kinds: list[Any]) -> str:
    for kind in kinds:
        if isinstance(kind, str) and kind not in ("", "null"):
            return kind
    return "string"


def _inferred_type(node: JsonObject) -> str:
    """The type that the other keywords imply."""
    for key, kind in TYPES_BY_KEYWORD.items():
        if key in node:
            return kind
    example = node.get("const")
    values = node.get("enum")
    if isinstance(values, list):
        example = next((value for value in values if value not in EMPTY), None)
    return SCALARS.get(type(example), "string")


def _without_empty_values(node: JsonObject) -> JsonObject:
    """Drops null and "" from an enum, and an enum of nothing else."""
    values = node.get("enum")
    if not isinstance(values, list) or node.get("type") in ("object", "array"):
        return node
    remaining = [value for value in values if value not in EMPTY]
    if remaining:
        node["enum"] = remaining
    else:
        del node["enum"]
    return node


def _required(node: JsonObject) -> list[str]:
    """Names of required properties that the object has."""
    names = node.get("required")
    if not isinstance(names, list):
        return []
    properties = node.get("properties")
    required: list[str] = []
    for name in names:
        if not isinstance(name, str):
            continue
        if not isinstance(properties, dict) or name in properties:
            required.append(name)
    return required
