"""Rules of Ollama's chat API: it decodes JSON into Go types, and refuses what does not fit.

Numbers are those of docs/wires/ollama.md. Types are those of Ollama's ``api/types.go`` and of the
client ollama 0.6.3; unknown fields are ignored by its server.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    check_call_ids,
    object_of,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

ROLES: Final = ("system", "user", "assistant", "tool")
LEVELS: Final = ("low", "medium", "high")


def _type_error(value: Any, field: str, expected: str) -> Rejection:
    return Rejection(
        f"json: cannot unmarshal {_go_kind(value)} into Go struct field {field} of type {expected}"
    )


def _go_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def check_model(request: StrictRequest) -> None:
    """The request names a model (``server/routes.go``)."""
    if not isinstance(request.body.get("model"), str) or not request.body["model"]:
        raise Rejection("model is required")


def check_messages(request: StrictRequest) -> None:
    """Content is one text, images are base64 in their own field, arguments are objects (O1, O2)."""
    messages = request.body.get("messages")
    if messages is not None and not isinstance(messages, list):
        raise _type_error(messages, "ChatRequest.messages", "[]api.Message")
    for message in objects_in(messages):
        if message.get("role") not in ROLES:
            raise Rejection(
                f"invalid role: {message.get('role')}, must be one of [{' '.join(ROLES)}]"
            )
        for field in ("content", "thinking", "tool_name", "tool_call_id"):
            value = message.get(field, "")
            if value is not None and not isinstance(value, str):
                raise _type_error(value, f"ChatRequest.messages.{field}", "string")
        _check_images(message)
        _check_calls(message)


def _check_images(message: JsonObject) -> None:
    for image in message.get("images") or ():
        try:
            base64.b64decode(image, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise Rejection("illegal base64 data at input byte 0") from None


def _check_calls(message: JsonObject) -> None:
    for call in objects_in(message.get("tool_calls")):
        arguments = object_of(call.get("function")).get("arguments")
        if not isinstance(arguments, dict):
            field = "ChatRequest.messages.tool_calls.function.arguments"
            raise _type_error(arguments, field, "api.ToolCallFunctionArguments")


def check_tools(request: StrictRequest) -> None:
    """A tool is a function with a name; hosted tools do not exist (O6, B1)."""
    for n, tool in enumerate(objects_in(request.body.get("tools"))):
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            raise Rejection(f"tools[{n}]: only tools of type function are supported")
        if not isinstance(function.get("name"), str):
            raise _type_error(function.get("name"), "ChatRequest.tools.function.name", "string")
        parameters = function.get("parameters", {})
        if not isinstance(parameters, dict):
            raise _type_error(parameters, "ChatRequest.tools.function.parameters", "struct")


def check_think(request: StrictRequest) -> None:
    """``think`` is a boolean or a level."""  # rule O5
    think = request.body.get("think")
    if think is None or isinstance(think, bool):
        return
    if think not in LEVELS:
        raise Rejection(
            f"invalid think value: {think!r} (must be high, medium, low, true, or false)"
        )


def check_options(request: StrictRequest) -> None:
    """Options are an object with typed values (O4; ``Options.FromMap``)."""
    options = request.body.get("options")
    if options is None:
        return
    if not isinstance(options, dict):
        raise _type_error(options, "ChatRequest.options", "map[string]interface {}")
    for name in ("num_predict", "num_ctx", "top_k", "seed"):
        value = options.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise Rejection(f'option "{name}" must be of type integer')
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty"):
        value = options.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Rejection(f'option "{name}" must be of type float32')
    if not isinstance(options.get("stop", []), list):
        raise Rejection('option "stop" must be of type array')


RULES: Final[tuple[Rule, ...]] = (
    check_model,
    check_messages,
    check_call_ids,
    check_tools,
    check_think,
    check_options,
)
"""The rules of this wire, in their order."""
