"""Rules that OpenAI's Responses and Chat Completions share: functions, strict schemas, models.

Messages of errors, their ``param`` and their ``code`` are those that users reported, if any did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from streamlib.providers.models import OPENAI, longest_prefix, traits
from streamlib.testing.provider.strict.rules import (
    Rejection,
    StrictRequest,
    below,
    names,
    schemas_in,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
LONGEST_NAME: Final = 64
SAMPLING: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs")

UNSUPPORTED_KEYWORDS: Final = names(
    """
    allOf oneOf not if then else dependentRequired dependentSchemas patternProperties
    propertyNames unevaluatedProperties contains minProperties maxProperties uniqueItems
    """
)
"""Keywords that strict mode refuses (docs, "Structured Outputs", supported schemas).

``default`` is accepted (measured: openai-agents-python#4390).
"""


def unknown_parameter(path: str) -> Rejection:
    """The rejection of a field that the service does not know (pydantic-ai#3653)."""
    return Rejection(f"Unknown parameter: '{path}'.", path, "unknown_parameter")


def check_keys(values: JsonObject, known: Iterable[str], path: str = "") -> None:
    """No key of the object at a path is unknown."""
    unknown = unknown_key(values, known)
    if unknown is not None:
        raise unknown_parameter(below(path, unknown))


def missing_parameter(path: str) -> Rejection:
    """The rejection of a request without a required field."""
    message = f"Missing required parameter: '{path}'."
    return Rejection(message, path, "missing_required_parameter")


def wrong_value(path: str, value: Any, supported: tuple[str, ...]) -> Rejection:
    """The rejection of a value that is not supported (langchain-litellm#197)."""
    names = ", ".join(f"'{name}'" for name in supported[:-1])
    names = f"{names}, and '{supported[-1]}'" if names else f"'{supported[-1]}'"
    message = f"Invalid value: '{value}'. Supported values are: {names}."
    return Rejection(message, path, "invalid_value")


def too_long(path: str, longest: int, value: str) -> Rejection:
    """The rejection of a text above its maximum length (camel-ai/camel#2215)."""
    return Rejection(
        f"Invalid '{path}': string too long. Expected a string with maximum length {longest}, but "
        f"got a string with length {len(value)} instead.",
        path,
        "string_above_max_length",
    )


def empty_array(path: str) -> Rejection:
    """The rejection of an empty list that must have an element."""
    return Rejection(
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty "
        "array instead.",
        path,
        "empty_array",
    )


def wrong_type(path: str, expected: str, value: Any) -> Rejection:
    """The rejection of a value of the wrong type."""
    kinds = {type(None): "null", str: "a string", list: "an array", dict: "an object"}
    kind = kinds.get(type(value), "a number")
    message = f"Invalid type for '{path}': expected {expected}, but got {kind} instead."
    return Rejection(message, path, "invalid_type")


def check_name(name: Any, path: str) -> None:
    """A name has 1 to 64 letters, digits, ``_`` and ``-`` (docs, ``function.name``)."""
    if not NAME.fullmatch(string(name)):
        raise Rejection(
            f"Invalid '{path}': string does not match pattern. Expected a string that matches the "
            "pattern '^[a-zA-Z0-9_-]+$'.",
            path,
            "invalid_value",
        )
    if len(name) > LONGEST_NAME:
        raise too_long(path, LONGEST_NAME, name)


def check_function(function: JsonObject, path: str, *, strict: bool) -> None:
    """A function has a valid name and the schema of an object (``invalid_function_parameters``)."""
    check_name(function.get("name"), f"{path}.name")
    schema = function.get("parameters")
    if schema is None:
        return
    name = function["name"]
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Rejection(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: "
            f'"object"\', got \'type: "{_type_of(schema)}"\'.',
            f"{path}.parameters",
            "invalid_function_parameters",
        )
    for keyword in ("oneOf", "anyOf", "allOf", "enum", "not"):
        if keyword in schema:
            raise Rejection(
                f"Invalid schema for function '{name}': schema must have type 'object' and not "
                "have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
                f"{path}.parameters",
                "invalid_function_parameters",
            )
    if strict:
        check_schema(schema, f"function '{name}'", f"{path}.parameters")
        return


def _type_of(schema: Any) -> Any:
    if isinstance(schema, dict):
        return schema.get("type")
    return None


def check_schema(schema: JsonObject, owner: str, path: str) -> None:
    """A strict schema is typed and closed, requires all properties, and knows its keywords only."""
    code = "invalid_json_schema"
    if owner.startswith("function"):
        code = "invalid_function_parameters"
    for inner_path, inner in schemas_in(schema):
        context = f"Invalid schema for {owner}: In context=({inner_path}), "
        for keyword in inner:
            if keyword in UNSUPPORTED_KEYWORDS:
                raise Rejection(f"{context}'{keyword}' is not permitted.", path, code)
        is_object = inner.get("type") == "object" or "properties" in inner
        if is_object and inner.get("additionalProperties") is not False:
            message = f"{context}'additionalProperties' is required to be supplied and to be false."
            raise Rejection(message, path, code)
        properties = inner.get("properties") or {}
        if is_object and sorted(inner.get("required") or ()) != sorted(properties):
            raise Rejection(
                f"{context}'required' is required to be supplied and to be an array including "
                "every key in properties.",
                path,
                code,
            )
        if not inner.keys() & {"type", "anyOf", "$ref"}:  # apexive/odoo-llm#212
            raise Rejection(f"{context}schema must have a 'type' key.", path, code)
        if inner.get("type") == "array" and "items" not in inner:  # garrytan/gbrain#831
            raise Rejection(f"{context}array schema missing items.", path, code)


def is_thinking(request: StrictRequest, effort: Any) -> bool:
    """Whether the model reasons: decided by the request's effort, else by the model's default."""
    if longest_prefix(request.model, OPENAI) is None:
        return False
    accepted = traits(request.model)
    if not accepted.thinking or effort == "none":
        return False
    return effort is not None or accepted.thinking_default


def check_effort(request: StrictRequest, effort: Any, path: str) -> None:
    """The model has the level of effort; a model that does not reason has none."""  # rule S2
    if effort is None or longest_prefix(request.model, OPENAI) is None:
        return
    accepted = traits(request.model)
    if not accepted.thinking:
        message = f"Unsupported parameter: '{path}' is not supported with this model."
        raise Rejection(message, path, "unsupported_parameter")
    supported = accepted.efforts
    if accepted.thinking_off == "none":
        supported = ("none", *supported)
    if effort not in supported:
        names = ", ".join(f"'{name}'" for name in supported)
        raise Rejection(
            f"Unsupported value: '{effort}' is not supported with the '{request.model}' model. "
            f"Supported values are: {names}.",
            path,
            "unsupported_value",
        )


def check_sampling(request: StrictRequest, effort: Any) -> None:
    """A model that reasons accepts no sampling parameters."""  # rule S4
    if not is_thinking(request, effort) or traits(request.model).sampling:
        return
    for name in SAMPLING:
        if name in request.body and request.body[name] is not None:
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            raise Rejection(message, name, "unsupported_parameter")


def tool_names(request: StrictRequest) -> list[str]:
    """The names of all tools, including those inside Chat's ``function`` and ``custom``."""
    names: list[str] = []
    for tool in objects_in(request.body.get("tools")):
        inner: Any = tool.get(string(tool.get("type")))
        if isinstance(inner, dict):
            names.append(string(inner.get("name")))
        else:
            names.append(string(tool.get("name")))
    return names
