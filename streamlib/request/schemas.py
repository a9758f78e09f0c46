"""JSON schemas as each wire's structured output takes them; every keyword that had to go is in the report."""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.schema_rules import SchemaRules
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.report import Report
from streamlib_parsers.items import JsonObject, WireApi

NESTED: Final = ("properties", "$defs", "definitions")
LISTED: Final = ("anyOf", "allOf", "oneOf")


def strict_schema(schema: JsonObject, wire_api: WireApi, path: str, report: Report) -> JsonObject:
    """The schema as the wire takes it."""
    rules = WIRE_SPECS[wire_api].schema_rules
    return _node(schema, rules, path, report) if rules else schema


def _node(node: Any, rules: SchemaRules, path: str, report: Report) -> Any:
    if not isinstance(node, dict):
        return node
    node = _merged(
        {("anyOf" if key == "oneOf" else key): value for key, value in node.items()}, rules
    )
    moved = {key: node[key] for key in node if key not in rules.keywords}
    kept = {
        key: _child(key, value, rules, f"{path}/{key}", report)
        for key, value in node.items()
        if key not in moved
    }
    if moved:
        report.add(
            "changed",
            path,
            f"not taken here, moved into the description: {', '.join(sorted(moved))}",
        )
        words = ", ".join(f"{key}: {value}" for key, value in moved.items())
        kept["description"] = (
            f"{kept['description']} ({words})" if kept.get("description") else f"({words})"
        )
    if rules.closed and (kept.get("type") == "object" or "properties" in kept):
        kept["additionalProperties"] = False
    if rules.all_required and isinstance(kept.get("properties"), dict):
        kept.update(_all_required(kept, path, report))
    return _bare_ref(kept) if rules.bare_refs else kept


def _merged(node: JsonObject, rules: SchemaRules) -> JsonObject:
    """An `allOf` of one is that one, where the wire knows no `allOf`."""
    whole = node.get("allOf")
    if (
        "allOf" in rules.keywords
        or not isinstance(whole, list)
        or len(whole) != 1
        or not isinstance(whole[0], dict)
    ):
        return node
    return {**whole[0], **{key: value for key, value in node.items() if key != "allOf"}}


def _all_required(node: JsonObject, path: str, report: Report) -> JsonObject:
    properties, required = node["properties"], node.get("required") or ()
    optional = [name for name in properties if name not in required]
    if optional:
        report.add(
            "changed",
            path,
            f"every property is required here, these may be null: {', '.join(optional)}",
        )
    return {
        "properties": {
            name: _nullable(child) if name in optional else child
            for name, child in properties.items()
        },
        "required": list(properties),
    }


def _nullable(node: Any) -> Any:
    if not isinstance(node, dict) or not node:
        return node
    kind, choices = node.get("type"), node.get("anyOf")
    if isinstance(choices, list):
        return (
            node if {"type": "null"} in choices else {**node, "anyOf": [*choices, {"type": "null"}]}
        )
    if kind is None or "const" in node:
        return {"anyOf": [node, {"type": "null"}]}
    kinds = kind if isinstance(kind, list) else [kind]
    values = (
        {"enum": [*node["enum"], None]}
        if isinstance(node.get("enum"), list) and None not in node["enum"]
        else {}
    )
    return {**node, "type": kinds if "null" in kinds else [*kinds, "null"], **values}


def _bare_ref(node: JsonObject) -> JsonObject:
    if "$ref" not in node or len(node) == 1:
        return node
    return {
        "anyOf": [{"$ref": node["$ref"]}],
        **{key: value for key, value in node.items() if key != "$ref"},
    }


def _child(key: str, value: Any, rules: SchemaRules, path: str, report: Report) -> Any:
    if key in NESTED and isinstance(value, dict):
        return {
            name: _node(child, rules, f"{path}/{name}", report) for name, child in value.items()
        }
    if key in LISTED and isinstance(value, list):
        return [_node(child, rules, f"{path}/{at}", report) for at, child in enumerate(value)]
    return _node(value, rules, path, report) if key == "items" else value
