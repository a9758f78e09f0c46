"""JSON Schema as each wire's strict structured output takes it; every change is in the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.providers.wire_specs import WIRE_SPECS, SchemaRules
from streamlib.request.report import Report
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


def strict_schema(schema: JsonObject, wire_api: WireApi, path: str, report: Report) -> JsonObject:
    """The schema as the wire takes it; `path` is its JSON pointer in the prompt."""
    rules = WIRE_SPECS[wire_api].schema_rules
    if rules is None:
        return schema
    fitted: JsonObject = _node(schema, rules, path, report)
    return fitted


def _node(node: Any, rules: SchemaRules, path: str, report: Report) -> Any:
    if not isinstance(node, dict):
        return node
    node = _with_any_of(node)
    node = _without_single_all_of(node, rules)
    fitted: JsonObject = {}
    unknown: JsonObject = {}

    def fit(child: Any, child_path: str) -> Any:
        return _node(child, rules, child_path, report)

    for key, value in node.items():
        if key in rules.keywords:
            # That of an object is false below, whatever it was.
            is_replaced = key == "additionalProperties"
            fitted[key] = value if is_replaced else with_subschemas(key, value, path, fit)
        else:
            unknown[key] = value
    if unknown:
        names = ", ".join(sorted(unknown))
        report.add("changed", path, f"not taken here, moved into the description: {names}")
        fitted["description"] = _description(fitted.get("description"), unknown)
    if fitted.get("type") == "object" or "properties" in fitted:
        open_to = fitted.get("additionalProperties")
        if open_to not in (None, False):
            report.add("changed", path, "additionalProperties is false: no other keys are allowed")
        fitted["additionalProperties"] = False
    if rules.all_required and isinstance(fitted.get("properties"), dict):
        _require_all(fitted, path, report)
    if rules.bare_refs:
        return _bare_ref(fitted)
    return fitted


def _with_any_of(node: JsonObject) -> JsonObject:
    """`oneOf` as `anyOf`: strict modes know only that."""
    return {"anyOf" if key == "oneOf" else key: value for key, value in node.items()}


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
    if not isinstance(node, dict) or not node:
        return node
    choices = node.get("anyOf")
    if isinstance(choices, list):
        if NULL in choices:
            return node
        return {**node, "anyOf": [*choices, NULL]}
    kinds = node.get("type")
    if kinds is None or "const" in node:
        return {"anyOf": [node, NULL]}
    if not isinstance(kinds, list):
        kinds = [kinds]
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
