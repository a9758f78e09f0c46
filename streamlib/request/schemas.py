"""JSON Schema as each wire's strict structured output takes it; every change is in the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.providers.wire_specs import WIRE_SPECS, SchemaRules
from streamlib.request.report import Report
from streamlib.structured.schemas import type_of_values
from streamlib_parsers.items import JsonObject, WireApi

ANY_OBJECT: Final[JsonObject] = {"type": "object"}
"""As `Prompt.output_schema`: any JSON object, the "JSON mode" of most wires."""
NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords that hold schemas by name."""
NESTED: Final = frozenset(
    {"anyOf", "allOf", "oneOf", "prefixItems", "items", "contains"}
) | frozenset({"not", "if", "then", "else", "additionalProperties", "propertyNames"})
"""Keywords that hold a schema, or a list of them."""
NULL: Final = {"type": "null"}
TYPED_BY: Final = frozenset({"type", "anyOf", "oneOf", "$ref"})
"""Keywords of which a schema has one where each must have a type."""
NO_TYPE: Final = "it has no type"
NO_ITEMS: Final = "its items have no type"
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
    "pattern": "string",
    "minLength": "string",
    "maxLength": "string",
}
"""The type of a schema without one, by the first keyword of this table that it has."""


def strict_schema(schema: JsonObject, wire_api: WireApi, path: str, report: Report) -> JsonObject:
    """The schema as the wire takes it; `path` is its JSON pointer in the prompt."""
    rules = WIRE_SPECS[wire_api].schema_rules
    if rules is None:
        return schema
    fitted: JsonObject = _node(schema, rules, path, report, Report())
    return fitted


def can_be_strict(schema: JsonObject, wire_api: WireApi, path: str, report: Report) -> bool:
    """Whether the wire's strict mode takes the schema; if not, the report says why.

    It takes none that allows any type somewhere (`Any`, an attribute without an annotation, a
    bare `list`): that is sent as it is, and not as strict. An object with keys of any name
    (`dict[str, Any]`) is closed nevertheless, as on every wire with a strict mode.
    """
    rules = WIRE_SPECS[wire_api].schema_rules
    if rules is None or not rules.typed:
        return True
    untyped = Report()
    _node(schema, rules, path, Report(), untyped)
    for change in untyped.changes:
        report.add("changed", change.path, f"{change.reason}: the schema is not sent as strict")
    return not untyped.changes


def implied_type(node: JsonObject) -> str | list[str] | None:
    """The type of a schema without one, by its values or its keywords; None if neither has one."""
    values = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(values, list) and values:
        return type_of_values(values)
    for key, kind in TYPES_BY_KEYWORD.items():
        if key in node:
            return kind
    return None


def _node(node: Any, rules: SchemaRules, path: str, report: Report, untyped: Report) -> Any:
    if not isinstance(node, dict):
        if node is True:
            untyped.add("changed", path, NO_TYPE)
        return node
    node = _without_single_all_of(node, rules)
    node = _with_implied_type(node, rules)
    fitted: JsonObject = {}
    unknown: JsonObject = {}

    def fit(child: Any, child_path: str) -> Any:
        return _node(child, rules, child_path, report, untyped)

    for key, value in node.items():
        # Strict modes know no other choice than `anyOf`.
        fitted_key = "anyOf" if key == "oneOf" else key
        if fitted_key in rules.keywords:
            # That of an object is false below, whatever it was.
            is_replaced = key == "additionalProperties"
            fitted[fitted_key] = value if is_replaced else with_subschemas(key, value, path, fit)
        else:
            unknown[key] = value
    if unknown:
        names = ", ".join(sorted(unknown))
        report.add("changed", path, f"not taken here, moved into the description: {names}")
        fitted["description"] = _description(fitted.get("description"), unknown)
    if fitted.get("type") == "object" or "properties" in fitted:
        _close(fitted, path, report)
    if rules.all_required and isinstance(fitted.get("properties"), dict):
        _require_all(fitted, path, report)
    _note_untyped(fitted, path, untyped)
    if rules.bare_refs:
        return _bare_ref(fitted)
    return fitted


def _without_single_all_of(node: JsonObject, rules: SchemaRules) -> JsonObject:
    """An `allOf` of one schema is that schema, where the wire knows no `allOf`."""
    schemas = node.get("allOf")
    if "allOf" in rules.keywords or not isinstance(schemas, list) or len(schemas) != 1:
        return node
    only = schemas[0]
    if not isinstance(only, dict):
        return node
    rest = {key: value for key, value in node.items() if key != "allOf"}
    return {**only, **rest}


def _with_implied_type(node: JsonObject, rules: SchemaRules) -> JsonObject:
    """A schema with its type, if it needs one and something in it says which."""
    kind = implied_type(node)
    if not rules.typed or kind is None or node.keys() & TYPED_BY:
        return node
    typed = {**node, "type": kind}
    # Closed, an object without its properties could only be {}, whatever it requires.
    if "object" in _kinds(typed) and "properties" not in node:
        return node
    return typed


def _close(node: JsonObject, path: str, report: Report) -> None:
    """Allows an object no other keys than its properties."""
    if node.get("additionalProperties") not in (None, False):
        report.add("changed", path, "additionalProperties is false: no other keys are allowed")
    node["additionalProperties"] = False


def _note_untyped(node: JsonObject, path: str, untyped: Report) -> None:
    """Notes a fitted schema without a type, or an array whose elements have none."""
    if not node.keys() & TYPED_BY:
        untyped.add("changed", path, NO_TYPE)
    if "array" in _kinds(node) and node.get("items") in (None, False):
        untyped.add("changed", path, NO_ITEMS)


def _kinds(node: JsonObject) -> list[Any]:
    """The type or types of a schema, as a list."""
    kinds = node.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


def _description(description: str | None, unknown: JsonObject) -> str:
    """The description with the keywords that the wire does not know."""
    moved = ", ".join(f"{key}: {value}" for key, value in unknown.items())
    if description:
        return f"{description} ({moved})"
    return f"({moved})"


def _require_all(node: JsonObject, path: str, report: Report) -> None:
    """Makes every property required; one that was optional may be null instead."""
    required = node.get("required") or ()
    properties: JsonObject = {}
    optional: list[str] = []
    for name, child in node["properties"].items():
        if name in required:
            properties[name] = child
        else:
            properties[name] = _nullable(child)
            optional.append(name)
    if optional:
        names = ", ".join(optional)
        reason = f"every property is required here, these may be null: {names}"
        report.add("changed", path, reason)
    node["properties"] = properties
    node["required"] = list(properties)


def _nullable(node: Any) -> Any:
    """The schema, or null."""
    if not isinstance(node, dict) or not node.keys() & TYPED_BY:
        return node  # any value, so null too
    choices = node.get("anyOf")
    if isinstance(choices, list):
        if NULL in choices:
            return node
        return {**node, "anyOf": [*choices, NULL]}
    if node.get("type") is None or "const" in node:
        return {"anyOf": [node, NULL]}
    kinds = _kinds(node)
    if "null" not in kinds:
        kinds = [*kinds, "null"]
    nullable = {**node, "type": kinds}
    values = node.get("enum")
    if isinstance(values, list) and None not in values:
        nullable["enum"] = [*values, None]
    return nullable


def _bare_ref(node: JsonObject) -> JsonObject:
    """A `$ref` with siblings as a choice of one, beside which siblings may stand."""
    if "$ref" not in node or len(node) == 1:
        return node
    rest = {key: value for key, value in node.items() if key != "$ref"}
    return {"anyOf": [{"$ref": node["$ref"]}], **rest}


def with_subschemas(key: str, value: Any, path: str, change: Callable[[Any, str], Any]) -> Any:
    """The value of a keyword of a schema, with each schema in it changed.

    Args:
        key: the keyword.
        value: its value.
        path: JSON pointer of the schema that has the keyword.
        change: makes another schema of a schema and its pointer.
    """
    if key in NAMED and isinstance(value, dict):
        return {name: change(child, f"{path}/{key}/{name}") for name, child in value.items()}
    if key in NESTED and isinstance(value, list):
        return [change(child, f"{path}/{key}/{index}") for index, child in enumerate(value)]
    if key in NESTED:
        return change(value, f"{path}/{key}")
    return value


def no_schemas(model: str) -> str:
    """The reason in a report for an output schema that the model does not take."""
    return f"{model} takes no output schema: use structured='tool' or 'json_mode'"


# --- the subset that Moonshot takes ---
#
# Moonshot refuses everything else with 400. Every node has one `type`, never a list, but none
# beside `anyOf`; no branch of `anyOf` is null; null and "" are not values of an enum; objects list
# what they require, and only what they have.


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
    if not isinstance(kind, list) and (kind or node.keys() & {"if", "then", "else"}):
        return dict(node)
    typed = {**node, "type": kind or implied_type(node)}
    return {**typed, "type": _first_type(_kinds(typed))}


def _first_type(kinds: list[Any]) -> str:
    for kind in kinds:
        if isinstance(kind, str) and kind not in ("", "null"):
            return kind
    return "string"


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
