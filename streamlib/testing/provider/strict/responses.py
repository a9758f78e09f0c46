"""Rules of OpenAI's Responses.

Numbers are those of docs/wires/responses.md; fields and items are those of openai 3.54.0
(``types/responses``). The conversation that the rules read is the stored one of
``previous_response_id``, then the input.
"""

from __future__ import annotations

import re
from typing import Any, Final

from streamlib.testing.provider.strict.openai import (
    check_effort,
    check_function,
    check_keys,
    check_name,
    check_sampling,
    check_schema,
    empty_array,
    is_thinking,
    missing_parameter,
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
    first_repeated,
    names,
    object_of,
    string,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

FIELDS: Final = names(
    """
    access_programs background background_options context_management conversation image include
    input instructions max_output_tokens max_tool_calls metadata model moderation
    parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
    prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options
    temperature text tool_choice tools top_logprobs top_p truncation user client_metadata
    """
)
"""Fields of a request. Codex sends ``client_metadata`` (codex-rs, ``ResponsesApiRequest``)."""

ITEM_FIELDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "message": "content phase role id status",
        "file_search_call": "queries results status",
        "computer_call": "action actions call_id pending_safety_checks status",
        "computer_call_output": "acknowledged_safety_checks call_id output status",
        "web_search_call": "action status",
        "function_call": "arguments async call_id caller name namespace status",
        "function_call_output": "call_id caller name namespace output status",
        "tool_search_call": "arguments call_id execution status",
        "tool_search_output": "call_id execution status tools",
        "additional_tools": "role tools",
        "configuration_update": "reasoning text",
        "reasoning": "content encrypted_content summary",
        "compaction": "encrypted_content",
        "image_generation_call": "action background error output_format quality result "
        "revised_prompt size status svg_usage",
        "code_interpreter_call": "code container_id outputs status",
        "local_shell_call": "action call_id status",
        "local_shell_call_output": "output status",
        "shell_call": "action call_id caller environment status",
        "shell_call_output": "call_id caller max_output_length output status",
        "apply_patch_call": "call_id caller operation status",
        "apply_patch_call_output": "call_id caller output status",
        "mcp_list_tools": "error server_label tools",
        "mcp_approval_request": "arguments name server_label",
        "mcp_approval_response": "approval_request_id approve reason",
        "mcp_call": "approval_request_id arguments error name output server_label status",
        "custom_tool_call": "async call_id caller input name namespace status",
        "custom_tool_call_output": "call_id caller output",
        "compaction_trigger": "",
        "item_reference": "",
        "program": "call_id code fingerprint",
        "program_output": "call_id result status",
    }.items()
}
"""Type of an input item -> its fields, without ``type`` and ``id``.

Reasoning has a ``status`` in the SDK's type, which the service refuses (litellm#13420,
haskell-agent#689); a custom call has none there, and Codex sends it (codex-rs, ``ResponseItem``).
"""

REQUIRED_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("summary",),
    "item_reference": ("id",),
}
OUTPUTS: Final[dict[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Type of a call that the caller runs -> type of its output."""

OUTPUT_NAMES: Final[dict[str, str]] = {
    "function_call_output": "tool call found for function call output",
    "custom_tool_call_output": "tool call found for custom tool call output",
    "computer_call_output": "tool call found for computer call output",
    "apply_patch_call_output": "tool call found for apply patch call output",
}
PREFIXES: Final[dict[str, str]] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
"""Type of an item -> prefix of its ids (codex#33176, sub2api#3785)."""

TOOL_TYPES: Final = (
    "function",
    "custom",
    "namespace",
    "tool_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "file_search",
    "code_interpreter",
    "image_generation",
    "computer",
    "computer_use_preview",
    "mcp",
    "local_shell",
    "shell",
    "apply_patch",
    "programmatic_tool_calling",
)
FUNCTION_FIELDS: Final = (
    "type",
    "name",
    "description",
    "parameters",
    "strict",
    "allowed_callers",
    "async",
    "defer_loading",
    "output_schema",
)
LONGEST_ID: Final = 64
LONGEST_CACHE_KEY: Final = 64
ITEM_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "assistant": ("output_text", "refusal"),
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
}
"""Role -> the types of its content parts."""  # rule R5


def input_items(request: StrictRequest) -> list[JsonObject]:
    """The input as items; an input text is one user message."""
    value = request.body.get("input")
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return objects_in(value)


def kind_of(item: JsonObject) -> str:
    """The type of an item; without one it is a message."""
    return string(item.get("type")) or "message"


def conversation(request: StrictRequest) -> list[JsonObject]:
    """The stored conversation, then the input."""
    stored = request.ledger.stored.get(string(request.body.get("previous_response_id")))
    if stored is None:
        return input_items(request)
    return [*stored.items, *input_items(request)]


def check_fields(request: StrictRequest) -> None:
    """Fields are known, and the required ones are there (``unknown_parameter``)."""
    if "model" not in request.body:
        raise missing_parameter("model")
    check_keys(request.body, FIELDS)
    if "tools" in request.body and request.body["tools"] is None:
        raise wrong_type("tools", "an array of objects", None)
    has_input = "input" in request.body or "prompt" in request.body
    if not has_input and not {"previous_response_id", "conversation"} & request.body.keys():
        raise missing_parameter("input")
    if request.body.get("input") == []:
        raise empty_array("input")


def check_previous_response(request: StrictRequest) -> None:
    """The previous response was stored (``previous_response_not_found``)."""
    response_id = request.body.get("previous_response_id")
    if response_id is None:
        return
    if "conversation" in request.body:
        raise Rejection(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
            "previous_response_id",
            "mutually_exclusive_parameters",
        )
    if response_id not in request.ledger.stored:
        raise Rejection(
            f"Previous response with id '{response_id}' not found.",
            "previous_response_id",
            "previous_response_not_found",
        )


def check_items(request: StrictRequest) -> None:
    """Items have known types and fields, and no null in a required field."""  # rule R7
    for n, item in enumerate(input_items(request)):
        path = f"input[{n}]"
        kind = kind_of(item)
        known = ITEM_FIELDS.get(kind)
        if known is None:
            raise wrong_value(path, kind, tuple(ITEM_FIELDS))
        check_keys(item, known | {"type", "id"}, path)
        for name in REQUIRED_FIELDS.get(kind, ()):
            if item.get(name) is None:
                raise missing_parameter(f"{path}.{name}")
        status = item.get("status")
        if status is not None and not isinstance(status, str):
            raise wrong_type(f"{path}.status", "a string", status)


def check_background(request: StrictRequest) -> None:
    """A background response is stored (developers.openai.com, guide "Background mode")."""
    if request.body.get("background") and request.body.get("store") is False:
        raise Rejection("Background mode requires 'store' to be true.", "store")


def check_contents(request: StrictRequest) -> None:
    """Roles are known, and the parts are allowed for their role."""  # rule R5
    for n, item in enumerate(input_items(request)):
        if kind_of(item) != "message":
            continue
        path = f"input[{n}]"
        role = string(item["role"])
        if role not in PARTS:
            raise wrong_value(f"{path}.role", role, tuple(PARTS))
        content = item["content"]
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            raise wrong_type(f"{path}.content", "one of an array of objects or string", content)
        for m, part in enumerate(objects_in(content)):
            if part.get("type") not in PARTS[role]:
                raise wrong_value(f"{path}.content[{m}]", part.get("type"), PARTS[role])
            if part["type"] == "input_image" and isinstance(part.get("image_url"), dict):
                image_path = f"{path}.content[{m}].image_url"
                raise wrong_type(image_path, "an image URL", part["image_url"])


def check_calls(request: StrictRequest) -> None:
    """Calls have ids, names, and arguments as a text; outputs are texts or parts (B8, R6)."""
    for n, item in enumerate(input_items(request)):
        path = f"input[{n}]"
        kind = kind_of(item)
        call_id = item.get("call_id")
        if isinstance(call_id, str) and len(call_id) > LONGEST_ID:
            raise too_long(f"{path}.call_id", LONGEST_ID, call_id)
        if kind in ("function_call", "custom_tool_call"):
            check_name(item["name"], f"{path}.name")
        if kind == "function_call" and not isinstance(item["arguments"], str):
            raise wrong_type(f"{path}.arguments", "a string", item["arguments"])
        if kind in ("function_call_output", "custom_tool_call_output"):
            output = item["output"]
            if not isinstance(output, (str, list)):
                raise wrong_type(f"{path}.output", "one of an array of objects or string", output)
            for m, part in enumerate(objects_in(output)):
                supported = ("input_text", "input_image", "input_file")
                if part.get("type") not in supported:
                    raise wrong_value(f"{path}.output[{m}]", part.get("type"), supported)


def check_ids(request: StrictRequest) -> None:
    """Ids have the prefix of their type, and at most 64 characters."""  # rule R4
    for n, item in enumerate(input_items(request)):
        item_id = item.get("id")
        if item_id is None:
            continue
        path = f"input[{n}].id"
        if not ITEM_ID.fullmatch(string(item_id)):
            raise Rejection(
                f"Invalid '{path}': '{item_id}'. Expected an ID that contains letters, numbers, "
                "underscores, or dashes, but this value contained additional characters.",
                path,
                "invalid_value",
            )
        if len(item_id) > LONGEST_ID:
            raise too_long(path, LONGEST_ID, item_id)
        prefix = PREFIXES.get(kind_of(item))
        is_own = kind_of(item) != "message" or item.get("role") == "assistant"
        if prefix is not None and is_own and not item_id.startswith(prefix):
            message = f"Invalid '{path}': '{item_id}'. Expected an ID that begins with '{prefix}'."
            raise Rejection(message, path, "invalid_value")
    ids = [item["id"] for item in conversation(request) if item.get("id")]
    repeated = first_repeated(ids)
    if repeated is not None:
        message = f"Duplicate item found with id {repeated}. Remove duplicate items from your input"
        raise Rejection(f"{message} and try again.", "input")


def check_stored_items(request: StrictRequest) -> None:
    """An item that is only a reference by id was stored (R1, R2)."""
    stored_ids: set[Any] = set()
    for stored in request.ledger.stored.values():
        stored_ids.update(item.get("id") for item in stored.items)
    for item in input_items(request):
        kind = kind_of(item)
        is_reference = kind == "item_reference"
        if kind == "reasoning" and not item.get("encrypted_content"):
            is_reference = not item.get("content")  # plain reasoning comes from an open model
        if is_reference and item.get("id") not in stored_ids:
            raise Rejection(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` "
                "is set to false. Try again with `store` set to true, or remove this item from "
                "your input.",
                "input",
                None,
                404,
            )


def check_encrypted_content(request: StrictRequest) -> None:
    """Encrypted content was encrypted by this provider (codex#8145, sub2api#2863)."""
    for item in input_items(request):
        content = item.get("encrypted_content")
        if content is not None and request.ledger.read("responses", content, "") is None:
            raise Rejection(
                f"The encrypted content {string(content)[:8]}... could not be verified. Reason: "
                "Encrypted content could not be decrypted or parsed.",
                None,
                "invalid_encrypted_content",
            )


def check_reasoning_places(request: StrictRequest) -> None:
    """Reasoning stands directly before the item that it produced, or both are missing."""
    # rule R3
    items = conversation(request)
    for n, item in enumerate(items):
        if kind_of(item) == "reasoning":
            following: JsonObject = {}
            if n + 1 < len(items):
                following = items[n + 1]
            is_produced = following.get("role", "assistant") == "assistant"
            if not following or not is_produced or kind_of(following).endswith("_output"):
                raise Rejection(
                    f"Item '{item.get('id')}' of type 'reasoning' was provided without its "
                    "required following item.",
                    "input",
                )
        reasoning_id = request.ledger.reasoning_before.get(string(item.get("id")))
        if reasoning_id is None:
            continue
        if n == 0 or kind_of(items[n - 1]) != "reasoning":
            raise Rejection(
                f"Item '{item['id']}' of type '{kind_of(item)}' was provided without its required "
                f"'reasoning' item: '{reasoning_id}'.",
                "input",
            )


def check_pairing(request: StrictRequest) -> None:
    """Each call has one output after it, and each output has its call before it."""  # rule R6
    waiting: dict[tuple[str, Any], JsonObject] = {}
    answered: set[tuple[str, Any]] = set()
    for item in conversation(request):
        kind = kind_of(item)
        if kind in OUTPUTS:
            key = (OUTPUTS[kind], item.get("call_id"))
            if key in waiting or key in answered:
                message = f"Duplicate tool call found for call id {item.get('call_id')}."
                raise Rejection(message, "input")
            waiting[key] = item
        elif kind in OUTPUT_NAMES:
            key = (kind, item.get("call_id"))
            if key not in waiting:
                message = f"No {OUTPUT_NAMES[kind]} with call_id {item.get('call_id')}."
                raise Rejection(message, "input")
            del waiting[key]
            answered.add(key)
    for (_, call_id), call in waiting.items():
        name = kind_of(call).replace("_", " ")
        raise Rejection(f"No tool output found for {name} {call_id}.", "input")


def check_tools(request: StrictRequest) -> None:
    """Tools are known and have valid names and schemas (S1, B1).

    Without ``strict`` the service makes a schema strict if it can, and refuses none (docs,
    "Function calling").
    """
    for n, tool in enumerate(objects_in(request.body.get("tools"))):
        _check_tool(tool, f"tools[{n}]")


def _check_tool(tool: JsonObject, path: str) -> None:
    kind = string(tool.get("type"))
    if kind not in TOOL_TYPES:
        raise wrong_value(f"{path}.type", kind, TOOL_TYPES)
    if kind == "function":
        check_keys(tool, FUNCTION_FIELDS, path)
        check_function(tool, path, strict=bool(tool.get("strict")))
        return
    if kind == "custom":
        check_name(tool.get("name"), f"{path}.name")
        return
    if kind == "namespace":
        for m, inner in enumerate(objects_in(tool.get("tools"))):
            _check_tool(inner, f"{path}.tools[{m}]")


def check_tool_choice(request: StrictRequest) -> None:
    """A tool choice needs tools, and a named tool must be one of them; it has no nesting."""
    # rule S6
    choice = request.body.get("tool_choice")
    if choice is None:
        return
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise wrong_value("tool_choice", choice, ("none", "auto", "required"))
        if choice == "required" and not request.body.get("tools"):
            message = "Tool choice 'required' must be specified with 'tools' parameter."
            raise Rejection(message, "tool_choice")
        return
    values = object_of(choice)
    if "function" in values:
        raise unknown_parameter("tool_choice.function")
    named = values.get("type") in ("function", "custom")
    if named and values.get("name") not in tool_names(request):
        message = f"Tool choice '{values.get('name')}' not found in 'tools' parameter."
        raise Rejection(message, "tool_choice")


def check_settings(request: StrictRequest) -> None:
    """Effort, sampling, keys and the output schema are valid (S2-S5)."""
    body = request.body
    reasoning = object_of(body.get("reasoning"))
    check_keys(reasoning, ("effort", "summary", "generate_summary", "context", "mode"), "reasoning")
    effort = reasoning.get("effort")
    check_effort(request, effort, "reasoning.effort")
    check_sampling(request, effort)
    cache_key = string(body.get("prompt_cache_key"))
    if len(cache_key) > LONGEST_CACHE_KEY:
        raise too_long("prompt_cache_key", LONGEST_CACHE_KEY, cache_key)
    wanted = body.get("include") or ()
    is_known = effort is not None or is_thinking(request, "medium")
    if "reasoning.encrypted_content" in wanted and not is_known and request.model.startswith("gpt"):
        message = "Encrypted content is not supported with this model."
        raise Rejection(message, "include", None)
    output = object_of(object_of(body.get("text")).get("format"))
    if output.get("type") != "json_schema":
        return
    check_name(output.get("name"), "text.format.name")
    if not output.get("strict"):
        return
    schema = object_of(output.get("schema"))
    check_schema(schema, f"response_format '{output['name']}'", "text.format.schema")


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_previous_response,
    check_items,
    check_background,
    check_contents,
    check_calls,
    check_ids,
    check_stored_items,
    check_encrypted_content,
    check_reasoning_places,
    check_pairing,
    check_tools,
    check_tool_choice,
    check_settings,
)
"""The rules of this wire, in their order."""
