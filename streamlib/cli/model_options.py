"""Options of a question that set up the request: model, model settings, schema."""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from streamlib.cli.arguments import CommandError, did_you_mean
from streamlib.cli.exit_codes import USAGE
from streamlib.request.prompt import Prompt
from streamlib_parsers.items import JsonObject

MODEL_VARIABLE: Final = "STREAMLIB_MODEL"
"""Environment variable with the model of questions without `--model`."""

LOOPBACK_MODEL: Final = "loopback:echo"
"""The model if none was named."""

NO_MODEL: Final = (
    f"no model was named: the loopback provider responds (-m PROVIDER:MODEL or {MODEL_VARIABLE})"
)

OPTIONS: Final = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "seed",
    "reasoning",
    "verbosity",
    "tool_choice",
    "parallel_tools",
    "logprobs",
    "cache",
    "metadata",
    "service_tier",
    "conversation_id",
    "user_id",
    "structured",
    "thinking_mismatch",
    "extra",
)
"""Fields of `Prompt` that `-o` sets."""

LISTS: Final = ("stop",)
"""Keys that may be given several times."""

OBJECTS: Final = ("metadata", "extra")
"""Keys whose value is JSON."""

_FIELD: Final = re.compile(r"(?P<name>\w+)(?: +(?P<type>\w+))?(?: *: *(?P<about>.+))?$", re.DOTALL)
_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def chosen_model(named: str | None) -> str | None:
    """The model named on the command line, else in the environment; None if neither names one."""
    return named or os.environ.get(MODEL_VARIABLE) or None


def read_options(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Fields of `Prompt` from `-o KEY VALUE`.

    Raises:
        CommandError: an unknown key, or a value that the key cannot have.
    """
    kinds = typing.get_type_hints(Prompt)
    options: dict[str, Any] = {}
    for key, text in pairs:
        if key not in OPTIONS:
            hint = did_you_mean(key, list(OPTIONS)) or f"; one of {', '.join(OPTIONS)}"
            raise CommandError(f"-o {key}: no such option{hint}", USAGE)
        try:
            value: Any = text
            if key in LISTS:
                value = [*options.get(key, ()), text]
            elif key in OBJECTS:
                value = msgspec.json.decode(text)
            options[key] = msgspec.convert(value, kinds[key], strict=False)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise CommandError(f"-o {key} {text}: {error}", USAGE) from None
    return options


def read_schema(text: str) -> JsonObject:
    """A JSON schema: JSON, the name of a file with JSON, or names of fields with their types.

    Args:
        text: for example ``name, age int: in years``.

    Raises:
        CommandError: the text is none of these.
    """
    if text.lstrip().startswith("{"):
        return _decoded(text.encode(), "--schema")
    path = Path(text)
    if text.endswith(".json") or (os.path.sep in text and path.exists()):
        try:
            return _decoded(path.read_bytes(), text)
        except OSError as error:
            raise CommandError(f"{text}: {error.strerror}") from None
    return _schema_of_fields(text)


def _decoded(data: bytes, name: str) -> JsonObject:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise CommandError(f"{name}: not a JSON schema: {error}", USAGE) from None


def _schema_of_fields(text: str) -> JsonObject:
    separator = "\n" if "\n" in text else ","
    properties: JsonObject = {}
    for part in text.split(separator):
        if not part.strip():
            continue
        field = _FIELD.match(part.strip())
        kind = None
        if field is not None:
            kind = _TYPES.get(field["type"] or "str")
        if field is None or kind is None:
            types = ", ".join(_TYPES)
            raise CommandError(
                f"--schema: {part.strip()!r} is not NAME, NAME TYPE or NAME TYPE: TEXT, "
                f"where TYPE is {types}",
                USAGE,
            )
        properties[field["name"]] = {"type": kind}
        if field["about"]:
            properties[field["name"]]["description"] = field["about"].strip()
    if not properties:
        raise CommandError("--schema: it names no field", USAGE)
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def schema_problem(text: str, schema: JsonObject) -> str | None:
    """Why a response does not follow the schema; None if no problem was found.

    Checked are JSON syntax, the required fields, and the type of each field. Other keywords of the
    schema are not checked.
    """
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return f"it is not JSON: {error}"
    return _type_problem(value, schema, "it")


def _type_problem(value: Any, schema: JsonObject, name: str) -> str | None:
    kind = schema.get("type")
    expected = _PYTHON_TYPES.get(str(kind))
    is_flag = isinstance(value, bool) and kind in ("integer", "number")
    if expected is not None and (is_flag or not isinstance(value, expected)):
        return f"{name} is no {kind}"
    if not isinstance(value, dict):
        return None
    for key in schema.get("required") or ():
        if key not in value:
            return f"{name} has no {key}"
    for key, child in (schema.get("properties") or {}).items():
        if key in value and isinstance(child, dict):
            problem = _type_problem(value[key], child, key)
            if problem is not None:
                return problem
    return None


_FENCE: Final = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)^ {0,3}\1[`~]* *$", re.MULTILINE | re.DOTALL
)


def first_code_block(text: str) -> str | None:
    """The contents of the first complete fenced code block; None if there is none."""
    block = _FENCE.search(text + "\n")
    if block is None:
        return None
    return block[2]


_OPTION_NAMES: Final = {
    # The command line takes keys from environment variables alone.
    " or api_key=": "",
    ": pass api_key= together with base_url=": ", so it is not sent there",
    ": use api_key=": ": keys are read from environment variables",
    "base_url=": "--base-url",
}
"""Argument in the library's error messages -> its replacement here. The order matters, because the
last argument is part of another."""


def with_option_names(message: str) -> str:
    """Replaces arguments of the library in a message by options of the command."""
    for argument, option in _OPTION_NAMES.items():
        message = message.replace(argument, option)
    return message
