"""Types of parameters that arrive as text: the tool's JSON schema decides, and nothing else.

    {"type": "string"}   "123"   -> "123"      {"type": "integer"}   "108.0" -> 108
    {"type": "array"}    "['a']" -> ["a"]      {"type": "boolean"}   "1"     -> true
    {}                   "123"   -> "123"      what does not fit stays text

A value that does not fit is passed on as text: the caller's validation tells the model. Values are
made as JSON text, so that a number or object the model wrote as JSON keeps its own spelling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.python_literals import literal, number
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import dumps, is_json

Entities: TypeAlias = Literal["never", "escaped", "always"]
"""Whether character references in a value are read.

escaped: only in a value with `&lt;` and without `<`, whose writer escaped it."""

MAX_DEPTH: Final = 16
"""References and alternatives that are followed, one inside the other: a schema may refer to
itself."""

ORDER: Final = ("null", "integer", "number", "boolean", "object", "array", "string")
"""The order in which the types of an alternative are tried."""
NAMED: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
"""The entities of XML."""
ALIASES: Final = {
    "float": "number",
    "double": "number",
    "int": "integer",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
"""Names of types in other languages, which some tools declare."""
NESTED: Final = frozenset({"arguments", "parameters", "input"})
"""Names of members that some models write around their arguments."""
LONGEST_REFERENCE: Final = 12
"""Characters of a character reference, its semicolon included."""


class Parameter(Struct, frozen=True):
    """One parameter as the model wrote it.

    Args:
        key: its name.
        text: its value.
        is_string: the type that the call itself reports, which decides where the schema allows
            both; None: none.
    """

    key: str
    text: str
    is_string: bool | None = None


def parameter_value(
    schema: JsonObject,
    parameter: Parameter,
    entities: Entities,
    *,
    json_if_untyped: bool = False,
) -> str:
    """The value of a parameter as JSON.

    Args:
        schema: of the tool's arguments.
        parameter: as the model wrote it.
        entities: whether character references in the value are read.
        json_if_untyped: whether a value without a schema is JSON where it parses.
    """
    text = parameter.text
    if entities == "always" or (entities == "escaped" and "&lt;" in text and "<" not in text):
        text = unescaped(text)
    own_schema = property_schema(schema, parameter.key, schema)
    if parameter.is_string is None:
        return coerced(text, own_schema, schema, json_if_untyped=json_if_untyped)
    types, _ = _allowed(own_schema, schema)
    if parameter.is_string:
        # A tool that wants a number gets one, although the model calls it a string.
        as_other = _typed(text, types) if types and "string" not in types else None
        return as_other or dumps(text)
    if types == {"string"}:
        return dumps(text)
    return _json(text) or _typed(text, types) or dumps(text)


def unwrapped(arguments: str, schema: JsonObject) -> str:
    """Arguments without the wrapper that some models write around them.

    A wrapper is an only member with one of the names `NESTED` for which the tool has no parameter:
    `{"arguments": {"k": 1}}`, also with the inner object as a string. At least one key of the inner
    object is a parameter of the tool.

    Args:
        arguments: a JSON object as text.
        schema: of the tool's arguments.
    """
    value = decoded(arguments)
    properties = schema.get("properties")
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(properties, dict):
        return arguments
    key, inner = next(iter(value.items()))
    if key not in NESTED or key in properties:
        return arguments
    wrapped = decoded(inner) if isinstance(inner, str) else inner
    # As vLLM does: another object is a value that the model meant, under a name of its own.
    if not isinstance(wrapped, dict) or properties.keys().isdisjoint(wrapped):
        return arguments
    if isinstance(inner, str):
        return inner
    # Not written anew: numbers keep their spelling.
    members = arguments.strip()[1:-1]
    written = members[members.index("{") :].strip()
    # A wrapper that stands twice stays.
    return written if is_json(written) else arguments


def json_object_text(members: Mapping[str, str]) -> str:
    """A JSON object of members whose values are JSON texts."""
    return "{" + ",".join(f"{dumps(key)}:{value}" for key, value in members.items()) + "}"


def coerced(
    text: str, schema: JsonObject, root: JsonObject, *, json_if_untyped: bool = False
) -> str:
    """`text` as JSON of the type that the schema allows; as a JSON string where none fits.

    Args:
        text: the value as the model wrote it.
        schema: of the value.
        root: the schema that `$ref` refers into.
        json_if_untyped: whether a value that the schema does not type is JSON where it parses.
    """
    types, constants = _allowed(schema, root)
    constant = _constant_spelled(text, constants)
    if constant is not None:
        return constant
    if types:
        return _typed(text, types) or dumps(text)
    if json_if_untyped and not constants:
        return _json(text) or dumps(text)
    return dumps(text)


def is_text(schema: JsonObject, root: JsonObject, *, json_if_untyped: bool = False) -> bool:
    """Whether a value is a string whatever it is; the arguments are those of `coerced`."""
    types, constants = _allowed(schema, root)
    if constants:
        return False
    if types:
        return types == {"string"}
    return not json_if_untyped


def property_schema(schema: JsonObject, key: str | int, root: JsonObject) -> JsonObject:
    """The schema of a property; an integer key means the items' schema; `{}` without one."""
    for alternative in _alternatives(schema, root, MAX_DEPTH):
        if isinstance(key, int):
            own_schema = alternative.get("items")
        else:
            own_schema = (alternative.get("properties") or {}).get(key)
        if isinstance(own_schema, dict):
            return own_schema
    return {}


def is_array(schema: JsonObject, root: JsonObject) -> bool:
    """Whether the schema allows an array."""
    return any(
        "array" in _types(alternative) for alternative in _alternatives(schema, root, MAX_DEPTH)
    )


def unescaped(text: str) -> str:
    """Reads the five entities of XML and character references, once; all else stays as it is."""
    first, *rest = text.split("&")
    return first + "".join(_reference(part) for part in rest)


def _reference(part: str) -> str:
    """The text of what follows an `&`."""
    name, semicolon, following = part[:LONGEST_REFERENCE].partition(";")
    character = NAMED.get(name)
    if character is None and name.startswith("#"):
        character = _numbered(name[1:])
    if not semicolon or character is None:
        return "&" + part
    return character + following + part[LONGEST_REFERENCE:]


def _numbered(digits: str) -> str | None:
    """The character of `65` or `x41`; None where there is none."""
    base = 10
    if digits[:1] in ("x", "X"):
        base, digits = 16, digits[1:]
    if not (digits.isascii() and digits.isalnum()):
        return None
    try:
        code = int(digits, base)
    except ValueError:
        return None
    if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return None
    return chr(code)


# --- what a schema allows ---


def _alternatives(schema: Any, root: JsonObject, depth: int) -> Iterable[JsonObject]:
    """The schema and everything it refers to or offers as an alternative."""
    if not isinstance(schema, dict) or depth <= 0:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _alternatives(_referred(reference, root), root, depth - 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list):
            for branch in branches[:MAX_DEPTH]:
                # Halved: alternatives inside alternatives multiply.
                yield from _alternatives(branch, root, depth // 2)


def _allowed(schema: JsonObject, root: JsonObject) -> tuple[set[str], list[Any]]:
    """The types that the schema allows, and the values that it enumerates without a type."""
    types: set[str] = set()
    constants: list[Any] = []
    for alternative in _alternatives(schema, root, MAX_DEPTH):
        own_types = _types(alternative)
        types.update(own_types)
        if not own_types:
            constants.extend(_constants(alternative))
    return types, constants


def _referred(reference: str, root: JsonObject) -> Any:
    """The schema that `#/$defs/Point` refers to; None where there is none."""
    if not reference.startswith("#/"):
        return None
    value: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        if not isinstance(value, dict):
            return None
        value = value.get(name.replace("~1", "/").replace("~0", "~"))
    return value


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    types: set[str] = set()
    if isinstance(declared, str):
        types.add(declared)
    elif isinstance(declared, list):
        types.update(name for name in declared if isinstance(name, str))
    types = {ALIASES.get(name, name) for name in types}
    if types and schema.get("nullable") is True:
        types.add("null")
    return types


def _constants(schema: Mapping[str, Any]) -> list[Any]:
    """The values that the schema enumerates."""
    enumerated: list[Any] = schema.get("enum") or []
    if not enumerated and "const" in schema:
        return [schema["const"]]
    return enumerated


def _constant_spelled(text: str, constants: Sequence[Any]) -> str | None:
    """The enumerated value that `text` spells, as JSON."""
    if any(isinstance(constant, str) and constant == text for constant in constants):
        return dumps(text)
    spelled = text.strip().lower()
    for constant in constants:
        if not isinstance(constant, str):
            value = dumps(constant)
            if value.lower() == spelled:
                return value
    return None


# --- what a text is ---


def _typed(text: str, types: set[str]) -> str | None:
    """`text` as JSON of the first of the types that it fits; None where it fits none."""
    text = text.strip()
    allows_string = "string" in types
    if text == "null" and allows_string:
        return "null" if "null" in types else None
    if text.lower() in ("null", "none") and not allows_string:
        return "null"
    for name in ORDER:
        if name in types and name in _READERS:
            value = _READERS[name](text, allows_string)
            if value is not None:
                return value
    return None


# One signature for the table `_READERS`: hence the boolean that is not a keyword.


def _integer(text: str, allows_string: bool) -> str | None:  # noqa: FBT001
    try:
        value = number(text)
    except ValueError:
        return None
    if value != int(value):
        return None
    return str(int(value))


def _number(text: str, allows_string: bool) -> str | None:  # noqa: FBT001
    if text.startswith(tuple("-0123456789")) and is_json(text):
        # JSON has no infinity: 1e999 is one in most decoders.
        return None if math.isinf(float(text)) else text
    try:
        return dumps(number(text))
    except ValueError:
        return None


def _boolean(text: str, allows_string: bool) -> str | None:  # noqa: FBT001
    spelled = text.lower()
    if spelled in ("true", "false"):
        return spelled
    if allows_string:
        return None  # then 0 and 1 are as likely text
    return {"1": "true", "0": "false"}.get(text)


def _object(text: str, allows_string: bool) -> str | None:  # noqa: FBT001
    if not text:
        return None if allows_string else "{}"
    return _container(text, dict)


def _array(text: str, allows_string: bool) -> str | None:  # noqa: FBT001
    if not text:
        return None if allows_string else "[]"
    return _container(text, list)


def _container(text: str, kind: type) -> str | None:
    """JSON, JSON inside a JSON string (double-encoded), or a Python literal."""
    value = decoded(text)
    if isinstance(value, str):
        text, value = value, decoded(value)
    if isinstance(value, kind):
        return text
    try:
        value = literal(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, kind):
        return None
    try:
        return dumps(value)
    except (ValueError, RecursionError):
        return None


_READERS: Final[dict[str, Callable[[str, bool], str | None]]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": _object,
    "array": _array,
}
"""By JSON type: the JSON of a text that fits. The flag tells whether a string is allowed, too."""


def _json(text: str) -> str | None:
    """`text` without the white space around it if it is JSON, else None."""
    text = text.strip()
    if text and is_json(text):
        return text
    return None
