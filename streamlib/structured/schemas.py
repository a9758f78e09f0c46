"""The JSON Schema of a class, made by the class's own library.

    json_schema(City)         {"type": "object", "properties": {"name": {"type": "string"}}, …}
    json_schema(list[City])   {"type": "array", "items": {"$ref": "#/$defs/City"}, "$defs": …}

Both libraries may put the class itself behind a root `$ref`, which every wire refuses: it is
replaced by what it refers to.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.structured.libraries import msgspec_schema, type_adapter, uses_pydantic

WRAPPER_KEY: Final = "value"
"""The only key of the object that wraps a value which is not an object itself."""

DEFINITIONS: Final = "#/$defs/"
NAMED: Final = ("properties", "$defs", "patternProperties")
"""Keywords that hold schemas by name: the keys inside are names, not keywords."""
VALUES: Final = ("enum", "const", "default", "examples")
"""Keywords that hold values and no schemas."""
JSON_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",  # before int, of which it is a subclass
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    tuple: "array",
}


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a class.

    Args:
        kind: a pydantic model, a msgspec Struct, a dataclass, a TypedDict, an attrs class, or a
            type made of such (`list[City]`, a union, `Annotated[…]`).

    Returns:
        A new dict. Its root is never a `$ref`; an enum states its type; OpenAPI's ``discriminator``
        is left out, since the values of the tag say the same.

    Raises:
        TypeError: the class's library has no schema for it.
    """
    if uses_pydantic(kind):
        schema = _of_pydantic(kind)
    else:
        schema = _of_msgspec(kind)
    return _with_inlined_root(_completed(schema))


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object: the schema itself, or of an object that holds its value.

    Returns:
        The schema unchanged if its values are objects; else the schema of ``{"value": …}``, with
        the definitions still at the root.
    """
    if schema.get("type") == "object":
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    wrapper: dict[str, Any] = {
        "type": "object",
        "properties": {WRAPPER_KEY: inner},
        "required": [WRAPPER_KEY],
        "additionalProperties": False,
    }
    if "$defs" in schema:
        wrapper["$defs"] = schema["$defs"]
    return wrapper


def _of_pydantic(kind: Any) -> dict[str, Any]:
    adapter = type_adapter(kind)
    try:
        schema: dict[str, Any] = adapter.json_schema()
    except Exception as error:  # pydantic's own kind of error, which only pydantic can name
        if type(error).__module__.partition(".")[0] != "pydantic":
            raise
        raise TypeError(f"{kind!r:.100} has no JSON Schema: {error}") from error
    return schema


def _of_msgspec(kind: Any) -> dict[str, Any]:
    try:
        return msgspec_schema(kind)
    except TypeError as error:
        raise TypeError(f"{kind!r:.100} has no JSON Schema: {error}") from error


def _completed(node: Any) -> Any:
    """The schema with the types of its enums, and without ``discriminator``."""
    if isinstance(node, list):
        return [_completed(element) for element in node]
    if not isinstance(node, dict):
        return node
    completed: dict[str, Any] = {}
    for key, value in node.items():
        if key in VALUES:
            completed[key] = value
        elif key in NAMED and isinstance(value, dict):
            completed[key] = {name: _completed(child) for name, child in value.items()}
        elif key != "discriminator":
            completed[key] = _completed(value)
    values = completed.get("enum")
    if isinstance(values, list) and values and "type" not in completed:
        completed["type"] = type_of_values(values)
    return completed


def type_of_values(values: list[Any]) -> str | list[str]:
    """The ``type`` of a schema that allows these values, of which there is at least one."""
    kinds = {_type_of(value) for value in values}
    if "number" in kinds:
        kinds.discard("integer")  # it is a number too
    return kinds.pop() if len(kinds) == 1 else sorted(kinds)


def _type_of(value: Any) -> str:
    for python_type, kind in JSON_TYPES.items():
        if isinstance(value, python_type):
            return kind
    return "object"


def _with_inlined_root(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    definitions = schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return schema
    name = reference.removeprefix(DEFINITIONS)
    if name not in definitions:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
    # Keywords beside the `$ref`, such as a description of this use, are about the root.
    root: dict[str, Any] = {**definitions[name], **rest}
    others = {key: value for key, value in definitions.items() if key != name}
    if _refers_to(reference, [definitions[name], others]):
        others = definitions  # a class that refers to itself
    if others:
        root["$defs"] = others
    return root


def _refers_to(reference: str, node: Any) -> bool:
    if isinstance(node, list):
        return any(_refers_to(reference, element) for element in node)
    if not isinstance(node, dict):
        return False
    if node.get("$ref") == reference:
        return True
    return any(_refers_to(reference, value) for value in node.values())
