"""JSON schemas as each wire's structured output takes them; every keyword that had to go is in the report."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from streamlib.report import Report
from streamlib_parsers.items import JsonObject, WireApi


class SchemaRules(Struct, frozen=True):
    """What a wire's strict mode takes.

    keywords: those it knows; the others go into the description. closed: objects get `additionalProperties: false`.
    all_required: every property is required (an optional one becomes nullable).
    """

    keywords: frozenset[str]
    closed: bool = False
    all_required: bool = False


_COMMON: Final = frozenset(
    {
        "type",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "title",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "format",
        "minItems",
    }
)
RULES: Final[dict[WireApi, SchemaRules]] = {"messages": SchemaRules(_COMMON, closed=True)}
"""Wires that are not here take any JSON schema."""

NESTED: Final = ("properties", "$defs", "definitions")
LISTED: Final = ("anyOf", "allOf", "oneOf")


def strict_schema(schema: JsonObject, wire_api: WireApi, path: str, report: Report) -> JsonObject:
    """The schema as the wire takes it."""
    rules = RULES.get(wire_api)
    return _node(schema, rules, path, report) if rules else schema


def _node(node: Any, rules: SchemaRules, path: str, report: Report) -> Any:
    if not isinstance(node, dict):
        return node
    node = {("anyOf" if key == "oneOf" else key): value for key, value in node.items()}
    moved = {key: node[key] for key in node if key not in rules.keywords}
    kept = {key: _child(key, value, rules, f"{path}/{key}", report) for key, value in node.items() if key not in moved}
    if moved:
        report.add("changed", path, f"not taken here, moved into the description: {', '.join(sorted(moved))}")
        words = ", ".join(f"{key}: {value}" for key, value in moved.items())
        kept["description"] = f"{kept['description']} ({words})" if kept.get("description") else f"({words})"
    if rules.closed and (kept.get("type") == "object" or "properties" in kept):
        kept["additionalProperties"] = False
    return kept


def _child(key: str, value: Any, rules: SchemaRules, path: str, report: Report) -> Any:
    if key in NESTED and isinstance(value, dict):
        return {name: _node(child, rules, f"{path}/{name}", report) for name, child in value.items()}
    if key in LISTED and isinstance(value, list):
        return [_node(child, rules, f"{path}/{at}", report) for at, child in enumerate(value)]
    return _node(value, rules, path, report) if key == "items" else value
