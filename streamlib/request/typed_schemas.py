"""JSON schemas where every node says its type: the subset that Moonshot takes, which answers 400 to everything else.

Every node has one `type`, never a list, but none beside `anyOf`; no branch of `anyOf` is null; null and "" are no values of an enum;
objects list what they require, and only what they have.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.items import JsonObject

NAMED: Final = ("properties", "patternProperties", "$defs", "definitions")
"""Keywords that hold schemas by name."""
LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE: Final = (
    "items",
    "contains",
    "not",
    "additionalProperties",
    "propertyNames",
    "if",
    "then",
    "else",
)
SIGNS: Final = {
    **dict.fromkeys(("properties", "required", "additionalProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems"), "array"),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"
    ),
}
"""Keywords that tell the type of a node without one."""
SCALARS: Final[dict[type, str]] = {bool: "boolean", int: "integer", float: "number"}


def typed_schema(schema: Any) -> Any:
    """The schema in that subset; what is no object is given back."""
    if not isinstance(schema, dict):
        return schema
    node = {key: _child(key, value) for key, value in schema.items() if key != "nullable"}
    if isinstance(node.get("anyOf"), list):
        node = _choice(node)
    if "anyOf" in node or "$ref" in node:
        return node
    node = _filled(_typed(node))
    return {**node, "required": _required(node)} if node.get("type") == "object" else node


def _child(key: str, value: Any) -> Any:
    if key in NAMED and isinstance(value, dict):
        return {name: typed_schema(child) for name, child in value.items()}
    if key in LISTED and isinstance(value, list):
        return [typed_schema(child) for child in value]
    return typed_schema(value) if key in SINGLE else value


def _choice(node: JsonObject) -> JsonObject:
    """`anyOf` without null; a choice of one is that one."""
    branches = [
        branch
        for branch in node["anyOf"]
        if not (isinstance(branch, dict) and branch.get("type") == "null")
    ]
    rest = {key: value for key, value in node.items() if key not in ("type", "anyOf")}
    return (
        {**rest, **branches[0]}
        if len(branches) == 1 and isinstance(branches[0], dict)
        else {**rest, "anyOf": branches}
    )


def _typed(node: JsonObject) -> JsonObject:
    kind = node.get("type")
    if isinstance(kind, list):
        return {
            **node,
            "type": next(
                (one for one in kind if isinstance(one, str) and one not in ("", "null")), "string"
            ),
        }
    return node if kind or node.keys() & {"if", "then", "else"} else {**node, "type": _told(node)}


def _told(node: JsonObject) -> str:
    """The type that the other keywords tell."""
    told = next((kind for key, kind in SIGNS.items() if key in node), None)
    values = node.get("enum")
    first: Any = (
        next((value for value in values if value not in (None, "")), None)
        if isinstance(values, list)
        else node.get("const")
    )
    return told or SCALARS.get(type(first), "string")


def _filled(node: JsonObject) -> JsonObject:
    """Without empty values of an enum."""
    if not isinstance(node.get("enum"), list) or node.get("type") in ("object", "array"):
        return node
    values = [value for value in node["enum"] if value not in (None, "")]
    return (
        {**node, "enum": values}
        if values
        else {key: value for key, value in node.items() if key != "enum"}
    )


def _required(node: JsonObject) -> list[str]:
    names, known = node.get("required"), node.get("properties")
    listed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [name for name in listed if not isinstance(known, dict) or name in known]
