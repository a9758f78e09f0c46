"""Parameters arrive as text; the tool's JSON schema, and nothing else, says what they are.

    {"type": "string"}     "123" -> "123"           {"type": "integer"}   "108.0" -> 108        {"type": "boolean"}   "1" -> true
    {"type": "array"}      "['a']" -> ["a"]         {}                    "123" -> "123"        what does not fit     stays text

A value that does not fit is handed on as text: the caller's validation tells the model. Values are made as JSON text, so that a number
or an object the model wrote as JSON keeps its own spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.python_literals import literal, number
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import dumps, is_json

Entities: TypeAlias = Literal["never", "escaped", "always"]
"""Whether character references in a value are read. escaped: only in a value with `&lt;` in it and no `<`: its writer escaped it."""

HOPS: Final = 16
"""So deep are references and alternatives followed."""
ORDER: Final = ("null", "integer", "number", "boolean", "object", "array", "string")
"""In this order the types of an alternative are tried."""
NAMED: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class Parameter(Struct, frozen=True):
    """One parameter as written. is_string: what the call itself says of it, which rules over the schema."""

    key: str
    text: str
    is_string: bool | None = None


def arguments_text(
    schema: JsonObject,
    parameters: Sequence[Parameter],
    entities: Entities,
    notice: Callable[[str, str], None],
    *,
    json_if_untyped: bool = False,
) -> str:
    """The arguments of a call as a JSON object. Of a parameter that comes twice the last one stands, with a Notice.

    json_if_untyped: of a parameter that the schema says nothing of, what parses is JSON.
    """
    members: dict[str, str] = {}
    for parameter in parameters:
        if parameter.key in members:
            notice("duplicate_parameter", parameter.key)
        text = parameter.text
        if entities == "always" or (entities == "escaped" and "&lt;" in text and "<" not in text):
            text = unescaped(text)
        if parameter.is_string is None:
            own = property_schema(schema, parameter.key, schema)
            members[parameter.key] = coerced(text, own, schema, json_if_untyped=json_if_untyped)
        else:
            members[parameter.key] = (
                dumps(text) if parameter.is_string else _json(text) or dumps(text)
            )
    return "{" + ",".join(f"{dumps(key)}:{value}" for key, value in members.items()) + "}"


def coerced(
    text: str, schema: JsonObject, root: JsonObject, *, json_if_untyped: bool = False
) -> str:
    """`text` as the JSON that `schema` makes of it. json_if_untyped: where the schema says nothing, JSON is JSON."""
    types: set[str] = set()
    members: list[Any] = []
    for one in _alternatives(schema, root, HOPS):
        types.update(_types(one))
        if not _types(one):
            members.extend(one.get("enum") or ([one["const"]] if "const" in one else []))
    member = _member(text, members)
    if member is not None:
        return member
    if not types:
        return (_json(text) if json_if_untyped and not members else None) or dumps(text)
    return _typed(text, types) or dumps(text)


def property_schema(schema: JsonObject, key: str | int, root: JsonObject) -> JsonObject:
    """The schema of a member, or with a number of an array's items; `{}` where the schema says nothing of it."""
    for one in _alternatives(schema, root, HOPS):
        found = one.get("items") if isinstance(key, int) else (one.get("properties") or {}).get(key)
        if isinstance(found, dict):
            return found
    return {}


def is_array(schema: JsonObject, root: JsonObject) -> bool:
    """Whether an array is what the schema wants."""
    return any("array" in _types(one) for one in _alternatives(schema, root, HOPS))


def unescaped(text: str) -> str:
    """The five entities of XML and character references; everything else stays as it stands, and nothing is read twice."""
    first, *rest = text.split("&")
    return first + "".join(_reference(part) for part in rest)


def _reference(part: str) -> str:
    name, semicolon, behind = part[:12].partition(";")
    character = NAMED.get(name) or (_numbered(name[1:]) if name.startswith("#") else None)
    return "&" + part if not semicolon or character is None else character + behind + part[12:]


def _numbered(digits: str) -> str | None:
    base = 16 if digits[:1] in ("x", "X") else 10
    digits = digits[1:] if base == 16 else digits
    if not (digits.isascii() and digits.isalnum()):
        return None
    try:
        code = int(digits, base)
    except ValueError:
        return None
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


# --- what a schema allows ---


def _alternatives(schema: Any, root: JsonObject, hops: int) -> Iterable[JsonObject]:
    """The schema and everything it refers to or offers as an alternative."""
    if not isinstance(schema, dict) or hops <= 0:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _alternatives(_referred(reference, root), root, hops - 1)
    for word in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(word)
        for branch in branches[:HOPS] if isinstance(branches, list) else ():
            yield from _alternatives(branch, root, hops // 2)


def _referred(reference: str, root: JsonObject) -> Any:
    """`#/$defs/Point` -> its schema."""
    value: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        value = (
            value.get(name.replace("~1", "/").replace("~0", "~"))
            if isinstance(value, dict)
            else None
        )
    return value if reference.startswith("#/") else None


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    types = (
        {declared}
        if isinstance(declared, str)
        else {one for one in declared if isinstance(one, str)}
        if isinstance(declared, list)
        else set()
    )
    return types | {"null"} if types and schema.get("nullable") is True else types


def _member(text: str, members: Sequence[Any]) -> str | None:
    """The member of an enumeration that `text` spells."""
    if text in [member for member in members if isinstance(member, str)]:
        return dumps(text)
    spelled = text.strip().lower()
    return next(
        (
            dumps(member)
            for member in members
            if not isinstance(member, str) and dumps(member).lower() == spelled
        ),
        None,
    )


# --- what a text is ---


def _typed(text: str, types: set[str]) -> str | None:
    trimmed = text.strip()
    textual = "string" in types
    if trimmed == "null" and textual:
        return "null" if "null" in types else None
    if trimmed.lower() in ("null", "none") and not textual:
        return "null"
    for name in ORDER:
        if name in types and name in _READERS:
            value = _READERS[name](trimmed, textual)
            if value is not None:
                return value
    return None


def _integer(text: str, textual: bool) -> str | None:  # noqa: FBT001  # one signature for the table
    try:
        value = number(text)
    except ValueError:
        return None
    return str(int(value)) if value == int(value) else None


def _number(text: str, textual: bool) -> str | None:  # noqa: FBT001
    if text[:1] in tuple("-0123456789") and is_json(text):
        return text if abs(float(text)) != float("inf") else None
    try:
        return dumps(number(text))
    except ValueError:
        return None


def _boolean(text: str, textual: bool) -> str | None:  # noqa: FBT001
    word = text.lower()
    if word in ("true", "false"):
        return word
    return None if textual else {"1": "true", "0": "false"}.get(text)


def _container(kind: type, empty: str) -> Callable[[str, bool], str | None]:
    def read(text: str, textual: bool) -> str | None:  # noqa: FBT001
        if not text:
            return None if textual else empty
        value = decoded(text)
        if isinstance(value, str):  # double-encoded
            text, value = value, decoded(value)
        if isinstance(value, kind):
            return text
        try:
            value = literal(text)
            return dumps(value) if isinstance(value, kind) else None
        except (ValueError, RecursionError):
            return None

    return read


_READERS: Final[dict[str, Callable[[str, bool], str | None]]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": _container(dict, "{}"),
    "array": _container(list, "[]"),
}


def _json(text: str) -> str | None:
    """`text` if it is JSON, without the white space around it."""
    text = text.strip()
    return text if text and is_json(text) else None
