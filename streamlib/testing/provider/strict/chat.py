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
    effort_rejection,
    empty_array,
    function_rejection,
    missing_parameter,
    name_rejection,
    sampling_rejection,
    schema_rejection,
    too_long,
    tool_names,
    unknown_parameter,
    wrong_type,
    wrong_value,
)
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    names,
    object_of,
    objects,
    repeated_call_rejection,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject

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


def check_fields(request: StrictRequest) -> Rejection | None:
    """Fields are known, and a model is named (``unknown_parameter``; open-responses-server#41)."""
    for name in ("model", "messages"):
        if name not in request.body:
            return missing_parameter(name)
    unknown = unknown_key(request.body, FIELDS | request_keys(request.model))
    if unknown is not None:
        return unknown_parameter(unknown)
    if "tools" in request.body and request.body["tools"] is None:
        return wrong_type("tools", "an array of objects", None)
    return None


def check_messages(request: StrictRequest) -> Rejection | None:
    """Messages have known roles and fields, and content where their role needs it (C4, C7)."""
    messages = request.body["messages"]
    if not isinstance(messages, list):
        return wrong_type("messages", "an array of objects", messages)
    if not messages:
        return empty_array("messages")
    for n, message in enumerate(objects(messages)):
        path = f"messages[{n}]"
        role = string(message.get("role"))
        known = MESSAGE_FIELDS.get(role)
        if known is None:
            return wrong_value(f"{path}.role", role, tuple(MESSAGE_FIELDS))
        if role == "assistant":
            known |= message_keys(request.model)
        unknown = unknown_key(message, known)
        if unknown is not None:
            return unknown_parameter(f"{path}.{unknown}")
        rejection = _content_rejection(message, role, path)
        if rejection is not None:
            return rejection
    return None


def _content_rejection(message: JsonObject, role: str, path: str) -> Rejection | None:
    """Content may be null only beside calls, a refusal or audio (C7)."""
    content = message.get("content")
    if content is None:
        beside = ("tool_calls", "function_call", "refusal", "audio")
        is_allowed = role == "assistant" and any(message.get(name) for name in beside)
        if is_allowed:
            return None
        return Rejection(
            "Invalid value for 'content': expected a string, got null.", f"{path}.content"
        )
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return wrong_type(f"{path}.content", "one of an array of objects or string", content)
    if not content:
        return empty_array(f"{path}.content")
    for m, part in enumerate(objects(content)):
        part_path = f"{path}.content[{m}]"
        supported = PARTS.get(role, ("text",))
        if part.get("type") not in supported:
            return wrong_value(f"{part_path}.type", part.get("type"), supported)
        rejection = _part_rejection(part, part_path)
        if rejection is not None:
            return rejection
    return None


def _part_rejection(part: JsonObject, path: str) -> Rejection | None:
    kind = part["type"]
    if kind == "text":
        unknown = unknown_key(part, ("type", "text", "prompt_cache_breakpoint"))
        if unknown is not None:
            return unknown_parameter(f"{path}.{unknown}")
        if not isinstance(part.get("text"), str):
            return wrong_type(f"{path}.text", "a string", part.get("text"))
    if kind == "image_url" and not isinstance(part.get("image_url"), dict):
        return wrong_type(f"{path}.image_url", "an object", part.get("image_url"))
    return None


def check_calls(request: StrictRequest) -> Rejection | None:
    """Calls have ids, names, and arguments as a text (C2, B1)."""
    for n, message in enumerate(objects(request.body["messages"])):
        calls = message.get("tool_calls")
        if calls is None:
            continue
        path = f"messages[{n}].tool_calls"
        if calls == []:
            return empty_array(path)
        for m, call in enumerate(objects(calls)):
            further = call_keys(request.model)
            rejection = _call_rejection(call, f"{path}[{m}]", further)
            if rejection is not None:
                return rejection
    return None


def _call_rejection(call: JsonObject, path: str, further: frozenset[str]) -> Rejection | None:
    kind = string(call.get("type"))
    if kind not in ("function", "custom"):
        return wrong_value(f"{path}.type", kind, ("function", "custom"))
    unknown = unknown_key(call, {"id", "type", kind} | further)
    if unknown is not None:
        return unknown_parameter(f"{path}.{unknown}")
    call_id = call.get("id")
    if not isinstance(call_id, str):
        return missing_parameter(f"{path}.id")
    if len(call_id) > LONGEST_CALL_ID:
        return too_long(f"{path}.id", LONGEST_CALL_ID, call_id)
    inner = object_of(call.get(kind))
    rejection = name_rejection(inner.get("name"), f"{path}.{kind}.name")
    if rejection is not None:
        return rejection
    field = "arguments" if kind == "function" else "input"
    unknown = unknown_key(inner, ("name", field))
    if unknown is not None:
        return unknown_parameter(f"{path}.{kind}.{unknown}")
    if not isinstance(inner.get(field), str):
        return wrong_type(f"{path}.{kind}.{field}", "a string", inner.get(field))
    return None


def check_call_ids(request: StrictRequest) -> Rejection | None:
    """No two calls have the same id (see `repeated_call_rejection`)."""
    call_ids: list[Any] = []
    for message in objects(request.body["messages"]):
        call_ids += [call.get("id") for call in objects(message.get("tool_calls"))]
    return repeated_call_rejection(call_ids)


def check_pairing(request: StrictRequest) -> Rejection | None:
    """Each call has its tool message directly after its own message (C1; genkit-plugins#225).

    A tool message follows such a message (open-webui-tools#12).
    """
    waiting: list[Any] = []
    answerable: list[Any] = []
    for n, message in enumerate([*objects(request.body["messages"]), {"role": "end"}]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in answerable:
                return Rejection(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    f"messages.[{n}].role",
                )
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            names = ", ".join(string(call_id) for call_id in waiting)
            return Rejection(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {names}",
                f"messages.[{n}].role",
            )
        answerable = [call.get("id") for call in objects(message.get("tool_calls"))]
        waiting = list(answerable)
    return None


def check_tools(request: StrictRequest) -> Rejection | None:
    """Tools are functions or custom ones, with names and schemas (B1; langchain-litellm#197)."""
    tools = request.body.get("tools")
    if tools == []:
        return empty_array("tools")
    for n, tool in enumerate(objects(tools)):
        path = f"tools[{n}]"
        kind = string(tool.get("type"))
        if kind not in ("function", "custom"):
            return wrong_value(f"{path}.type", kind, ("function", "custom"))
        unknown = unknown_key(tool, ("type", kind))
        if unknown is not None:
            return unknown_parameter(f"{path}.{unknown}")
        inner = object_of(tool.get(kind))
        if kind == "custom":
            rejection = name_rejection(inner.get("name"), f"{path}.custom.name")
        else:
            known = ("name", "description", "parameters", "strict")
            unknown = unknown_key(inner, known)
            if unknown is not None:
                return unknown_parameter(f"{path}.function.{unknown}")
            strict = bool(inner.get("strict"))
            rejection = function_rejection(inner, f"{path}.function", strict=strict)
        if rejection is not None:
            return rejection
    return None


def check_tool_choice(request: StrictRequest) -> Rejection | None:
    """A tool choice needs tools, and a named tool must be one of them (S5)."""
    choice = request.body.get("tool_choice")
    if choice is None:
        return None
    if not request.body.get("tools"):
        return Rejection(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are "
            "specified.",
            "tool_choice",
        )
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            return wrong_value("tool_choice", choice, ("none", "auto", "required"))
        return None
    kind = string(object_of(choice).get("type"))
    if kind == "allowed_tools":
        return None
    name = object_of(object_of(choice).get(kind)).get("name")
    if name not in tool_names(request):
        return Rejection(
            "Invalid value for 'tool_choice': the named tool is not one of 'tools'.", "tool_choice"
        )
    return None


def check_settings(request: StrictRequest) -> Rejection | None:
    """Limits, effort and sampling parameters are those that the model accepts (S3, S4)."""
    body = request.body
    if body.get("max_tokens") is not None and traits(request.model).completion_tokens:
        return Rejection(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    if "stream_options" in body and not body.get("stream"):
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return Rejection(message, "stream_options")
    stop = body.get("stop")
    if isinstance(stop, list) and len(stop) > STOP_LIMIT:
        return Rejection(
            "Invalid 'stop': array too long. Expected an array with maximum length 4.",
            "stop",
            "array_above_max_length",
        )
    effort = body.get("reasoning_effort")
    rejection = effort_rejection(request, effort, "reasoning_effort")
    return rejection or sampling_rejection(request, effort)


def check_response_format(request: StrictRequest) -> Rejection | None:
    """The schema of a strict output is valid (S2; beeai-framework#980)."""
    output = object_of(request.body.get("response_format"))
    if not output:
        return None
    if output.get("type") not in ("text", "json_object", "json_schema"):
        supported = ("json_object", "json_schema", "text")
        return wrong_value("response_format.type", output.get("type"), supported)
    unknown = unknown_key(output, ("type", "json_schema"))
    if unknown is not None:
        return unknown_parameter(f"response_format.{unknown}")
    if output["type"] != "json_schema":
        return None
    inner = object_of(output.get("json_schema"))
    path = "response_format.json_schema"
    rejection = name_rejection(inner.get("name"), f"{path}.name")
    if rejection is not None or not inner.get("strict"):
        return rejection
    return schema_rejection(object_of(inner.get("schema")), "response_format", path)


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
