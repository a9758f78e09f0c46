"""Rules of OpenAI's Chat Completions.

Numbers are those of docs/wires/chat.md. Fields are those of openai 3.54.0
(``types/chat/completion_create_params.py``). Other providers of this wire accept other fields: each
difference is a value of `streamlib.providers.shapes.ChatShape`. Two of them sign what they send,
and are recognized by the model's name: OpenRouter (`anthropic/claude-…`: `chat_signatures.py`) and
Google (`gemini-…`).
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.testing.provider.strict.chat_signatures import (
    SIGNATURE_RULES,
    call_keys,
    message_keys,
    request_keys,
)
from streamlib.testing.provider.strict.openai import (
    check_effort,
    check_function,
    check_keys,
    check_name,
    check_sampling,
    check_schema,
    empty_array,
    missing_parameter,
    too_long,
    tool_names,
    wrong_type,
    wrong_value,
)
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    check_call_ids,
    names,
    object_of,
    string,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

FIELDS: Final = names(
    """
    audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
    max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction
    presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort
    response_format safety_identifier seed service_tier stop store stream stream_options temperature
    tool_choice tools top_logprobs top_p user verbosity web_search_options
    """
)
MESSAGE_FIELDS: Final[dict[str, frozenset[str]]] = {
    "developer": frozenset({"role", "content", "name"}),
    "system": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": names(
        """
        role content name refusal audio tool_calls function_call annotations
        """
    ),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "function": frozenset({"role", "content", "name"}),
}
"""Role -> the fields of its messages. ``annotations`` of a response may be sent back."""

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "developer": ("text",),
    "system": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
"""Role -> the types of its content parts."""

LONGEST_CALL_ID: Final = 40
"""Characters in the id of a call (camel-ai/camel#2215, dify#28987, opencode#12653)."""

STOP_LIMIT: Final = 4


def check_fields(request: StrictRequest) -> None:
    """Fields are known, and a model is named (``unknown_parameter``; open-responses-server#41)."""
    for name in ("model", "messages"):
        if name not in request.body:
            raise missing_parameter(name)
    check_keys(request.body, FIELDS | request_keys(request.model))
    if "tools" in request.body and request.body["tools"] is None:
        raise wrong_type("tools", "an array of objects", None)


def check_messages(request: StrictRequest) -> None:
    """Messages have known roles and fields, and content where their role needs it (C4, C7)."""
    messages = request.body["messages"]
    if not isinstance(messages, list):
        raise wrong_type("messages", "an array of objects", messages)
    if not messages:
        raise empty_array("messages")
    for n, message in enumerate(objects_in(messages)):
        path = f"messages[{n}]"
        role = string(message.get("role"))
        known = MESSAGE_FIELDS.get(role)
        if known is None:
            raise wrong_value(f"{path}.role", role, tuple(MESSAGE_FIELDS))
        if role == "assistant":
            known |= message_keys(request.model)
        check_keys(message, known, path)
        _check_content(message, role, path)


def _check_content(message: JsonObject, role: str, path: str) -> None:
    """Content may be null only beside calls, a refusal or audio."""  # rule C7
    content = message.get("content")
    if content is None:
        beside = ("tool_calls", "function_call", "refusal", "audio")
        is_allowed = role == "assistant" and any(message.get(name) for name in beside)
        if is_allowed:
            return
        raise Rejection(
            "Invalid value for 'content': expected a string, got null.", f"{path}.content"
        )
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong_type(f"{path}.content", "one of an array of objects or string", content)
    if not content:
        raise empty_array(f"{path}.content")
    for m, part in enumerate(objects_in(content)):
        part_path = f"{path}.content[{m}]"
        supported = PARTS.get(role, ("text",))
        if part.get("type") not in supported:
            raise wrong_value(f"{part_path}.type", part.get("type"), supported)
        _check_part(part, part_path)


def _check_part(part: JsonObject, path: str) -> None:
    kind = part["type"]
    if kind == "text":
        check_keys(part, ("type", "text", "prompt_cache_breakpoint"), path)
        if not isinstance(part.get("text"), str):
            raise wrong_type(f"{path}.text", "a string", part.get("text"))
    if kind == "image_url" and not isinstance(part.get("image_url"), dict):
        raise wrong_type(f"{path}.image_url", "an object", part.get("image_url"))


def check_calls(request: StrictRequest) -> None:
    """Calls have ids, names, and arguments as a text (C2, B1)."""
    for n, message in enumerate(objects_in(request.body["messages"])):
        calls = message.get("tool_calls")
        if calls is None:
            continue
        path = f"messages[{n}].tool_calls"
        if calls == []:
            raise empty_array(path)
        for m, call in enumerate(objects_in(calls)):
            further = call_keys(request.model)
            _check_call(call, f"{path}[{m}]", further)


def _check_call(call: JsonObject, path: str, further: frozenset[str]) -> None:
    kind = string(call.get("type"))
    if kind not in ("function", "custom"):
        raise wrong_value(f"{path}.type", kind, ("function", "custom"))
    check_keys(call, {"id", "type", kind} | further, path)
    call_id = call.get("id")
    if not isinstance(call_id, str):
        raise missing_parameter(f"{path}.id")
    if len(call_id) > LONGEST_CALL_ID:
        raise too_long(f"{path}.id", LONGEST_CALL_ID, call_id)
    inner = object_of(call.get(kind))
    check_name(inner.get("name"), f"{path}.{kind}.name")
    field = "arguments" if kind == "function" else "input"
    check_keys(inner, ("name", field), f"{path}.{kind}")
    if not isinstance(inner.get(field), str):
        raise wrong_type(f"{path}.{kind}.{field}", "a string", inner.get(field))


def check_pairing(request: StrictRequest) -> None:
    """Each call has its tool message directly after its own message (C1; genkit-plugins#225).

    A tool message follows such a message (open-webui-tools#12).
    """
    waiting: list[Any] = []
    answerable: list[Any] = []
    for n, message in enumerate([*objects_in(request.body["messages"]), {"role": "end"}]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in answerable:
                raise Rejection(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    f"messages.[{n}].role",
                )
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            names = ", ".join(string(call_id) for call_id in waiting)
            raise Rejection(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {names}",
                f"messages.[{n}].role",
            )
        answerable = [call.get("id") for call in objects_in(message.get("tool_calls"))]
        waiting = list(answerable)


def check_tools(request: StrictRequest) -> None:
    """Tools are functions or custom ones, with names and schemas (B1; langchain-litellm#197)."""
    tools = request.body.get("tools")
    if tools == []:
        raise empty_array("tools")
    for n, tool in enumerate(objects_in(tools)):
        path = f"tools[{n}]"
        kind = string(tool.get("type"))
        if kind not in ("function", "custom"):
            raise wrong_value(f"{path}.type", kind, ("function", "custom"))
        check_keys(tool, ("type", kind), path)
        inner = object_of(tool.get(kind))
        if kind == "custom":
            check_name(inner.get("name"), f"{path}.custom.name")
        else:
            known = ("name", "description", "parameters", "strict")
            check_keys(inner, known, f"{path}.function")
            strict = bool(inner.get("strict"))
            check_function(inner, f"{path}.function", strict=strict)


def check_tool_choice(request: StrictRequest) -> None:
    """A tool choice needs tools, and a named tool must be one of them."""  # rule S5
    choice = request.body.get("tool_choice")
    if choice is None:
        return
    if not request.body.get("tools"):
        raise Rejection(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are "
            "specified.",
            "tool_choice",
        )
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise wrong_value("tool_choice", choice, ("none", "auto", "required"))
        return
    kind = string(object_of(choice).get("type"))
    if kind == "allowed_tools":
        return
    name = object_of(object_of(choice).get(kind)).get("name")
    if name not in tool_names(request):
        raise Rejection(
            "Invalid value for 'tool_choice': the named tool is not one of 'tools'.", "tool_choice"
        )


def check_settings(request: StrictRequest) -> None:
    """Limits, effort and sampling parameters are those that the model accepts (S3, S4)."""
    body = request.body
    if body.get("max_tokens") is not None and traits(request.model).completion_tokens:
        raise Rejection(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    if "stream_options" in body and not body.get("stream"):
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise Rejection(message, "stream_options")
    stop = body.get("stop")
    if isinstance(stop, list) and len(stop) > STOP_LIMIT:
        raise Rejection(
            "Invalid 'stop': array too long. Expected an array with maximum length 4.",
            "stop",
            "array_above_max_length",
        )
    effort = body.get("reasoning_effort")
    check_effort(request, effort, "reasoning_effort")
    check_sampling(request, effort)


def check_response_format(request: StrictRequest) -> None:
    """The schema of a strict output is valid (S2; beeai-framework#980)."""
    output = object_of(request.body.get("response_format"))
    if not output:
        return
    if output.get("type") not in ("text", "json_object", "json_schema"):
        supported = ("json_object", "json_schema", "text")
        raise wrong_value("response_format.type", output.get("type"), supported)
    check_keys(output, ("type", "json_schema"), "response_format")
    if output["type"] != "json_schema":
        return
    inner = object_of(output.get("json_schema"))
    path = "response_format.json_schema"
    check_name(inner.get("name"), f"{path}.name")
    if inner.get("strict"):
        check_schema(object_of(inner.get("schema")), "response_format", path)


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_messages,
    check_calls,
    check_call_ids,
    check_pairing,
    check_tools,
    check_tool_choice,
    check_settings,
    check_response_format,
    *SIGNATURE_RULES,
)
"""The rules of this wire, in their order."""
