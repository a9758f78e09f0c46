"""JSON text as a value of a class, read by the class's own library."""

from __future__ import annotations

import functools
import re
from typing import Any, Final

import msgspec

from streamlib.structured.libraries import (
    json_decoder,
    made_once,
    type_adapter,
    uses_pydantic,
)
from streamlib.structured.pointers import dict_key_path, pointer_of, walked
from streamlib.structured.schemas import DEFINITIONS, WRAPPER_KEY, json_schema
from streamlib_parsers.errors import InvalidOutput, ParseFailure
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any, is_json_bytes, scrub

FENCE: Final = "```"

ATTRS_PACKAGES: Final = ("attr", "attrs")
"""Packages of attrs, which streamlib does not need."""

_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_MESSAGE_AND_PATH: Final = re.compile(r"(.*) - at `(.*)`", re.DOTALL)
"""Its last ` - at `: the message may quote a value of the JSON, which may hold one too."""


def typed_value(text: str, kind: Any) -> Any:
    """The value of a class that a JSON text holds.

    The text may be inside a Markdown fence. Where the JSON of the class is not an object, the value
    may be in an object with the only key ``value``. A null for a field that may be absent but not
    null is read as absent: strict modes require every field, so that the model writes a null.

    Args:
        text: JSON, complete.
        kind: the class, or a type made of classes.

    Raises:
        InvalidOutput: the text is not JSON, or not such a value.
        TypeError: the class's library cannot read the class.
    """
    data = unfenced(text).encode("utf-8", "surrogatepass")
    prefix = ""
    wrapped = _certainly_wrapped(data, kind)
    if wrapped is not None:
        data, prefix = wrapped, f"/{WRAPPER_KEY}"
    try:
        return _decoded(data, kind)
    except InvalidOutput as failure:
        latest = failure
    for other_form in (_cleaned, _unwrapped, _without_nulls):
        other = other_form(data, kind)
        if other is None or (prefix and other_form is _unwrapped):
            continue
        data = other
        if other_form is _unwrapped:  # the wrapper is in the text, so it is in the path
            prefix = f"/{WRAPPER_KEY}"
        try:
            return _decoded(data, kind)
        except InvalidOutput as failure:
            latest = failure
    raise InvalidOutput(latest.problem, prefix + latest.path, text) from latest.__cause__


def unfenced(text: str) -> str:
    """The text inside a Markdown fence; a text without one unchanged."""
    stripped = text.strip()
    if not stripped.startswith(FENCE):
        return text
    _, _, inner = stripped.partition("\n")
    return inner.removesuffix(FENCE)


def is_object(kind: Any) -> bool:
    """Whether the JSON of a class is an object, whatever its value."""
    return _root_schema(kind).get("type") == "object"


def is_wrapper_of(kind: Any) -> bool:
    """Whether an object with the key ``value`` is one around a class, and not of that class."""
    return made_once(_is_wrapper_of, kind)


def _is_wrapper_of(kind: Any) -> bool:
    schema = _root_schema(kind)
    return not _may_have_wrapper_key(schema, schema.get("$defs", {}))


def _may_have_wrapper_key(schema: Any, definitions: dict[str, Any]) -> bool:
    """Whether a value of a schema may be an object with the key ``value``."""
    schema = _resolved(schema, definitions)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return any(_may_have_wrapper_key(choice, definitions) for choice in choices)
    if schema.get("type") != "object":
        return "type" not in schema
    properties: JsonObject = schema.get("properties", {})
    return not properties or WRAPPER_KEY in properties


def _root_schema(kind: Any) -> dict[str, Any]:
    """The schema of a class; empty if its library has none, though it can read the class."""
    return made_once(_schema_or_none, kind)


def _schema_or_none(kind: Any) -> dict[str, Any]:
    try:
        return json_schema(kind)
    except TypeError:
        return {}


def _decoded(data: bytes, kind: Any) -> Any:
    if uses_pydantic(kind):
        return _decoded_by_pydantic(data, kind)
    try:
        return json_decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        if not is_json_bytes(data):  # malformed, not only truncated
            raise InvalidOutput("not JSON") from error
        message, path = _message_and_path(error)
        tokens = dict_key_path(data, path, functools.partial(_msgspec_path, kind=kind))
        missing = _MISSING.fullmatch(message)
        if missing is not None:
            tokens = [*tokens, missing[1]]
        refusal = _refusal_of_attrs(error.__cause__)
        if refusal is not None:
            message, attribute = refusal
            tokens = [*tokens, attribute]
        raise InvalidOutput(message, pointer_of(tokens)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidOutput(f"not JSON: {error}") from error
    except UnicodeError as error:
        raise InvalidOutput("not JSON: invalid Unicode") from error


def _msgspec_path(data: bytes, kind: Any) -> str:
    """The path at which msgspec refuses the data; "" if it names none, or accepts the data."""
    try:
        json_decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        return _message_and_path(error)[1]
    return ""


def _message_and_path(error: msgspec.ValidationError) -> tuple[str, str]:
    """What msgspec says is wrong, and where: "" for the root."""
    text = str(error)
    # That of a validator may quote anything, also what stands before a path.
    validator_text = str(error.__cause__ or "")
    if not text.startswith(validator_text):
        validator_text = ""
    match = _MESSAGE_AND_PATH.fullmatch(text, len(validator_text))
    if match is None:
        return text, ""
    return validator_text + match[1], match[2]


def _refusal_of_attrs(error: BaseException | None) -> tuple[str, str] | None:
    """What a validator of attrs says is wrong, and its attribute; None of another error.

    Some of their errors have a sentence, the attribute and more as arguments; the text of such an
    error is all of them.
    """
    arguments = error.args if error is not None else ()
    if len(arguments) < 2 or not isinstance(arguments[0], str):
        return None
    kind = type(arguments[1])
    if kind.__name__ != "Attribute" or kind.__module__.partition(".")[0] not in ATTRS_PACKAGES:
        return None
    return arguments[0], str(arguments[1].name)


def _decoded_by_pydantic(data: bytes, kind: Any) -> Any:
    try:
        return type_adapter(kind).validate_json(data)
    except ValueError as error:
        list_errors: Any = getattr(error, "errors", None)
        if list_errors is None:  # not pydantic's
            raise
        first = list_errors()[0]
        problem, location = str(first["msg"]), first["loc"]
        try:
            value = msgspec.json.decode(data)
        except DECODE_ERRORS:
            raise InvalidOutput(f"not JSON: {problem}") from error
        raise InvalidOutput(problem, pointer_of(walked(value, location))) from error


# --- other forms of the same value, tried if the text itself was refused ---


def _cleaned(data: bytes, kind: Any) -> bytes | None:
    """The JSON without halves of surrogate pairs, which libraries refuse; None without any."""
    del kind
    try:
        msgspec.json.decode(data)
    except DECODE_ERRORS:
        pass
    else:
        return None
    try:
        return msgspec.json.encode(scrub(decode_any(data)))
    except (ParseFailure, ValueError, RecursionError):
        return None


def _unwrapped(data: bytes, kind: Any) -> bytes | None:
    """The value in an object whose only key is ``value``; None for anything else."""
    if is_object(kind):
        return None
    try:
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return None
    if set(members) != {WRAPPER_KEY}:
        return None
    return bytes(members[WRAPPER_KEY])


def _certainly_wrapped(data: bytes, kind: Any) -> bytes | None:
    """As `_unwrapped`, for a class of which no value has the key; None for any other.

    A class whose fields may all be absent, in a union, takes the wrapper for an object of it.
    """
    if is_object(kind) or not data.lstrip().startswith(b"{") or not is_wrapper_of(kind):
        return None
    return _unwrapped(_cleaned(data, kind) or data, kind)


def _without_nulls(data: bytes, kind: Any) -> bytes | None:
    """The text without nulls that mean absent fields; None if there are none."""
    schema = _root_schema(kind)
    try:
        value = msgspec.json.decode(data)
        pruned = _pruned(value, schema, schema.get("$defs", {}))
    except DECODE_ERRORS:
        return None
    if pruned == value:
        return None
    return msgspec.json.encode(pruned)


def _pruned(value: Any, schema: Any, definitions: dict[str, Any]) -> Any:
    schema = _resolved(schema, definitions)
    if isinstance(value, list):
        element_schema = schema.get("items", {})
        return [_pruned(element, element_schema, definitions) for element in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    pruned: dict[str, Any] = {}
    for key, child in value.items():
        child_schema = properties.get(key, schema.get("additionalProperties", {}))
        if child is None and key in properties and key not in required:
            if not _takes_null(child_schema, definitions):
                continue
        pruned[key] = _pruned(child, child_schema, definitions)
    return pruned


def _resolved(schema: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """What a schema refers to; of a choice between one schema and null, that schema."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _resolved(definitions.get(reference.removeprefix(DEFINITIONS)), definitions)
    choices = schema.get("anyOf", ())
    others = [choice for choice in choices if choice != {"type": "null"}]
    if len(others) == 1:
        return _resolved(others[0], definitions)
    return schema


def _takes_null(schema: Any, definitions: dict[str, Any]) -> bool:
    if not isinstance(schema, dict) or not schema:
        return True
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(DEFINITIONS)
        return _takes_null(definitions.get(name), definitions)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return any(_takes_null(choice, definitions) for choice in schema[key])
    kinds = schema.get("type")
    if kinds is None:
        return True
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds)
