"""Rules of Bedrock's Converse.

Numbers are those of docs/wires/converse.md. Shapes, patterns and limits are those of botocore
1.44.5 (``bedrock-runtime/2023-09-30/service-2.json``); messages of errors are those that users
reported, if any did (strands, dify, pentagi).
"""

from __future__ import annotations

import re
from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    all_blocks,
    check_claude_budget,
    check_repeated_calls,
    first_repeated,
    is_claude,
    missing_key,
    names,
    object_of,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

BLOCKS: Final = names(
    """
    text image document video audio toolUse toolResult reasoningContent cachePoint guardContent
    citationsContent searchResult toolAddition toolRemoval
    """
)
"""Members of ``ContentBlock``."""

RESULT_PARTS: Final = frozenset({"json", "text", "image", "document", "video", "searchResult"})
"""Members of ``ToolResultContentBlock``."""

FIELDS: Final = names(
    """
    messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields
    additionalModelResponseFieldPaths outputConfig performanceConfig serviceTier requestMetadata
    promptVariables
    """
)
"""Fields of the body; the model is named in the path."""

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
CLAUDE_CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DOCUMENT_NAME: Final = re.compile(r"(?!.*\s\s)[\w\s()\[\]-]{1,200}", re.ASCII)
FORMATS: Final[dict[str, frozenset[str]]] = {
    "image": frozenset({"png", "jpeg", "gif", "webp"}),
    "document": names("pdf csv doc docx xls xlsx html txt md"),
}
CACHE_LIMIT: Final = 4


def extra_fields(request: StrictRequest) -> JsonObject:
    """Fields that Converse passes to the model unchanged."""
    return object_of(request.body.get("additionalModelRequestFields"))


def _constraint(value: Any, path: str, constraint: str) -> Rejection:
    return Rejection(
        f"1 validation error detected: Value '{value}' at '{path}' failed to satisfy constraint: "
        f"{constraint}"
    )


def check_fields(request: StrictRequest) -> None:
    """Fields are known, and there are messages (botocore: ``ConverseRequest``)."""
    unknown = unknown_key(request.body, FIELDS)
    if unknown is not None:
        raise Rejection(f"#: extraneous key [{unknown}] is not permitted")
    if not objects_in(request.body.get("messages")):
        raise Rejection("A conversation must have at least one message. Try again.")


def check_settings(request: StrictRequest) -> None:
    """Settings are in their ranges (B23; botocore: ``InferenceConfiguration``)."""
    settings = object_of(request.body.get("inferenceConfig"))
    unknown = unknown_key(settings, ("maxTokens", "temperature", "topP", "stopSequences"))
    if unknown is not None:
        raise Rejection(f"#/inferenceConfig: extraneous key [{unknown}] is not permitted")
    if settings.get("maxTokens", 1) < 1:
        constraint = "Member must have value greater than or equal to 1"
        raise _constraint(settings["maxTokens"], "inferenceConfig.maxTokens", constraint)
    for name in ("temperature", "topP"):
        if not 0 <= settings.get(name, 0) <= 1:
            constraint = "Member must have value less than or equal to 1"
            raise _constraint(settings[name], f"inferenceConfig.{name}", constraint)


def check_blocks(request: StrictRequest) -> None:
    """Each block has exactly one member, and a known one (botocore: its unions)."""
    for path, _, block in all_blocks(request):
        if len(block) != 1 or unknown_key(block, BLOCKS) is not None:
            raise Rejection(f"The content block at {path} must have exactly one known member.")
        result = object_of(block.get("toolResult"))
        for part in objects_in(result.get("content")):
            if len(part) != 1 or unknown_key(part, RESULT_PARTS) is not None:
                raise Rejection(f"The tool result at {path} must have known members.")
    for n, block in enumerate(objects_in(request.body.get("system"))):
        if len(block) != 1 or unknown_key(block, ("text", "guardContent", "cachePoint")):
            raise Rejection(f"The content block at system.{n} must have one known member.")


def check_roles(request: StrictRequest) -> None:
    """The user's turn is first, turns alternate and are not empty (B4, B5; pydantic-ai, litellm).

    Converse joins adjacent turns of one role for some models; other models refuse them.
    """
    turns = objects_in(request.body["messages"])
    for n, turn in enumerate(turns):
        if turn.get("role") not in ("user", "assistant", "system"):
            constraint = "Member must satisfy enum value set: [user, assistant, system]"
            raise _constraint(turn.get("role"), f"messages.{n + 1}.member.role", constraint)
        if not objects_in(turn.get("content")):
            raise Rejection(f"The content field in the Message object at messages.{n} is empty.")
    if turns[0]["role"] == "assistant":
        raise Rejection(
            "A conversation must start with a user message. Try again with a conversation that "
            "starts with a user message."
        )
    for n in range(1, len(turns)):
        if turns[n]["role"] == turns[n - 1]["role"]:
            raise Rejection(
                "A conversation must alternate between user and assistant roles. Make sure the "
                "conversation alternates between user and assistant roles and try again."
            )


def check_texts(request: StrictRequest) -> None:
    """No text is blank (B2; langchain-aws, strands)."""
    for path, _, block in all_blocks(request):
        if "text" in block and not string(block["text"]).strip():
            raise Rejection(
                f"The text field in the ContentBlock object at {path} is blank. Add text to the "
                "text field, and try again."
            )
    for n, block in enumerate(objects_in(request.body.get("system"))):
        if "text" in block and not string(block["text"]).strip():
            constraint = "Member must have length greater than or equal to 1"
            raise _constraint("", f"system.{n + 1}.member.text", constraint)


def check_block_roles(request: StrictRequest) -> None:
    """Calls and reasoning are in assistant turns; results and media in user turns."""  # rule B13
    for path, turn, block in all_blocks(request):
        kind = next(iter(block))
        role = turn["role"]
        if kind in ("toolUse", "reasoningContent") and role != "assistant":
            raise Rejection(f"The {kind} block at {path} is only allowed in assistant messages.")
        if kind in ("image", "document", "video", "audio") and role != "user":
            raise Rejection(f"The {kind} block at {path} is only allowed in user messages.")
        is_result = kind == "toolResult" and "type" not in block["toolResult"]
        if is_result and role != "user":
            raise Rejection(f"The toolResult block at {path} is only allowed in user messages.")


def check_media(request: StrictRequest) -> None:
    """Formats and document names are valid, and a document has a text beside it (B11, B12)."""
    names: list[str] = []
    for path, turn, block in all_blocks(request):
        for kind, formats in FORMATS.items():
            media = block.get(kind)
            if media is None:
                continue
            missing = missing_key(media, ("format", "source"))
            if missing is not None or media["format"] not in formats:
                constraint = f"Member must satisfy enum value set: [{', '.join(sorted(formats))}]"
                raise _constraint(media.get("format"), f"{path}.{kind}.format", constraint)
        document = block.get("document")
        if document is None:
            continue
        names.append(string(document.get("name")))
        if not DOCUMENT_NAME.fullmatch(names[-1]):
            raise Rejection(
                "The file name can only contain alphanumeric characters, whitespace characters, "
                "hyphens, parentheses, and square brackets. The name can't contain more than one "
                "consecutive whitespace character."
            )
        texts = [other for other in objects_in(turn["content"]) if "text" in other]
        if not texts:
            raise Rejection(f"A text block is required beside the document at {path}.")
    if first_repeated(names) is not None:
        raise Rejection("Messages can not contain duplicate document names.")


def check_calls(request: StrictRequest) -> None:
    """Ids and names fit their patterns, inputs are objects (B8, B9; botocore: ``ToolUseBlock``)."""
    pattern = CALL_ID
    if is_claude(request):
        pattern = CLAUDE_CALL_ID
    for path, _, block in all_blocks(request):
        for kind in ("toolUse", "toolResult"):
            member = block.get(kind)
            if member is not None and not pattern.fullmatch(string(member.get("toolUseId"))):
                constraint = f"Member must satisfy regular expression pattern: {pattern.pattern}"
                raise _constraint(member.get("toolUseId"), f"{path}.{kind}.toolUseId", constraint)
        call = block.get("toolUse")
        if call is None:
            continue
        if not TOOL_NAME.fullmatch(string(call.get("name"))):
            constraint = f"Member must satisfy regular expression pattern: {TOOL_NAME.pattern}"
            raise _constraint(call.get("name"), f"{path}.toolUse.name", constraint)
        if not isinstance(call.get("input"), dict):
            raise Rejection(
                f"The format of the value at {path}.toolUse.input is invalid. Provide a json object"
                " for the field and try again."
            )


def check_call_ids(request: StrictRequest) -> None:
    """No two calls have the same id (see `check_repeated_calls`)."""
    calls = [block["toolUse"] for _, _, block in all_blocks(request) if "toolUse" in block]
    check_repeated_calls([call["toolUseId"] for call in calls])


def check_pairing(request: StrictRequest) -> None:
    """The next user turn begins with one result for each call, and has no others (B6; strands)."""
    turns = objects_in(request.body["messages"])
    called: list[str] = []
    for n, turn in enumerate([*turns, {"role": "user", "content": []}]):
        blocks = objects_in(turn["content"])
        results = [block["toolResult"]["toolUseId"] for block in blocks if _is_result(block)]
        orphans = [call_id for call_id in results if call_id not in called]
        if turn["role"] == "user" and len(results) > len(called):
            raise Rejection(
                f"The number of toolResult blocks at messages.{n}.content exceeds the number of "
                "toolUse blocks of previous turn."
            )
        unanswered = [call_id for call_id in called if call_id not in results]
        if unanswered or orphans:
            raise Rejection(
                f"Expected toolResult blocks at messages.{n}.content for the following Ids: "
                f"{', '.join(unanswered)}"
            )
        is_late = not all(_is_result(block) for block in blocks[: len(results)])
        if is_late and is_claude(request):
            raise Rejection(
                f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(called)}."
            )
        called = [block["toolUse"]["toolUseId"] for block in blocks if _is_call(block)]
        if first_repeated(called) is not None:
            raise Rejection(f"The toolUse blocks at messages.{n}.content contain duplicate Ids.")


def _is_call(block: JsonObject) -> bool:
    return "toolUse" in block and "type" not in block["toolUse"]


def _is_result(block: JsonObject) -> bool:
    return "toolResult" in block and "type" not in block["toolResult"]


def check_results(request: StrictRequest) -> None:
    """A failed result has content (B3; aws-samples#15)."""
    for path, _, block in all_blocks(request):
        result = object_of(block.get("toolResult"))
        if result.get("status", "success") not in ("success", "error"):
            constraint = "Member must satisfy enum value set: [success, error]"
            raise _constraint(result["status"], f"{path}.toolResult.status", constraint)
        if result.get("status") == "error" and not result.get("content"):
            raise Rejection(f"The toolResult at {path} has status error and no content.")


def check_tools(request: StrictRequest) -> None:
    """Names, descriptions and schemas are valid; a history with calls needs tools (B1, B9, B10)."""
    config = request.body.get("toolConfig")
    if config is None:
        for _, _, block in all_blocks(request):
            if _is_call(block) or _is_result(block):
                raise Rejection(
                    "The toolConfig field must be defined when using toolUse and toolResult "
                    "content blocks."
                )
        return
    tools = objects_in(object_of(config).get("tools"))
    names: list[str] = []
    if not tools:
        constraint = "Member must have length greater than or equal to 1"
        raise _constraint([], "toolConfig.tools", constraint)
    for n, tool in enumerate(tools):
        if len(tool) != 1 or unknown_key(tool, ("toolSpec", "systemTool", "cachePoint")):
            raise Rejection(f"The tool at toolConfig.tools.{n} must have one known member.")
        if "toolSpec" in tool:
            _check_spec(tool["toolSpec"], f"toolConfig.tools.{n}.toolSpec")
            names.append(tool["toolSpec"]["name"])
    if first_repeated(names) is not None:
        raise Rejection(f"The tool {first_repeated(names)} is already defined at toolConfig.tools.")
    _check_choice(object_of(config).get("toolChoice"), names)


def _check_spec(spec: JsonObject, path: str) -> None:
    if not TOOL_NAME.fullmatch(string(spec.get("name"))):
        constraint = f"Member must satisfy regular expression pattern: {TOOL_NAME.pattern}"
        raise _constraint(spec.get("name"), f"{path}.name", constraint)
    if spec.get("description") == "":
        constraint = "Member must have length greater than or equal to 1"
        raise _constraint("", f"{path}.description", constraint)
    schema = object_of(object_of(spec.get("inputSchema")).get("json"))
    if schema.get("type") != "object":
        raise Rejection(f"The value at {path}.inputSchema.json.type must be one of: object.")


def _check_choice(choice: Any, names: list[str]) -> None:
    """The choice is one of ``auto``, ``any``, ``tool``: there is no ``none``."""  # rule B16
    if choice is None:
        return
    members = object_of(choice)
    if len(members) != 1 or unknown_key(members, ("auto", "any", "tool")) is not None:
        raise Rejection("The toolChoice field must have exactly one known member.")
    if "tool" in members and members["tool"].get("name") not in names:
        raise Rejection("The toolChoice field names a tool that toolConfig.tools does not define.")


def check_cache_points(request: StrictRequest) -> None:
    """There are at most four cache points, none directly after a document or reasoning."""
    # rule B14
    count = 0
    holders = [*objects_in(request.body.get("system"))]
    holders += objects_in(object_of(request.body.get("toolConfig")).get("tools"))
    for holder in holders:
        count += "cachePoint" in holder
    previous: JsonObject = {}
    for path, _, block in all_blocks(request):
        if "cachePoint" in block:
            count += 1
            if path.endswith(".0") or "reasoningContent" in previous or "document" in previous:
                raise Rejection(
                    f"The cachePoint at {path} must follow a text, image or tool block."
                )
        previous = block
    if count > CACHE_LIMIT:
        raise Rejection(
            f"You have exceeded the maximum number of cachePoint blocks: {count} > {CACHE_LIMIT}."
        )


def check_sampling(request: StrictRequest) -> None:
    """Newer Claudes accept no sampling parameters (S1 of docs/wires/messages.md)."""
    settings = object_of(request.body.get("inferenceConfig"))
    for name in ("temperature", "topP"):
        if name in settings and is_claude(request) and not traits(request.model).sampling:
            raise Rejection(
                f"The model returned the following errors: `{name}` is deprecated for this model."
            )


def check_budget(request: StrictRequest) -> None:
    """Claude's thinking budget is 1024 tokens or more, below the output limit (T1, T2)."""
    thinking = object_of(extra_fields(request).get("thinking"))
    if thinking.get("type") != "enabled" or not is_claude(request):
        return
    if "budget" not in traits(request.model).thinking:
        raise Rejection('"thinking.type.enabled" is not supported for this model.')
    settings = object_of(request.body.get("inferenceConfig"))
    check_claude_budget({"budget_tokens": 0, **thinking}, settings.get("maxTokens"))


def check_beside_thinking(request: StrictRequest) -> None:
    """While Claude thinks: a temperature of 1, no ``top_k``, no forced call (T6, S1).

    With adaptive thinking Bedrock refuses a forced call up to Claude 4.7 (langchain-aws#1141).
    """
    form = object_of(extra_fields(request).get("thinking")).get("type")
    if form not in ("enabled", "adaptive") or not is_claude(request):
        return
    settings = object_of(request.body.get("inferenceConfig"))
    if settings.get("temperature", 1) != 1 or "top_k" in extra_fields(request):
        raise Rejection("`temperature` may only be set to 1 when thinking is enabled.")
    if settings.get("topP", 1) < 0.95:
        raise Rejection("`top_p` must be greater than or equal to 0.95 when thinking.")
    choice = object_of(object_of(request.body.get("toolConfig")).get("toolChoice"))
    is_forced = "any" in choice or "tool" in choice
    if is_forced and (form == "enabled" or not traits(request.model).forced_while_adaptive):
        raise Rejection("Thinking may not be enabled when tool_choice forces tool use.")


def check_reasoning(request: StrictRequest) -> None:
    """Claude's reasoning has the signature that was issued with its text (B15, T10)."""
    for path, _, block in all_blocks(request):
        reasoning = object_of(block.get("reasoningContent"))
        if not reasoning or not is_claude(request):
            continue
        text = object_of(reasoning.get("reasoningText"))
        if "redactedContent" in reasoning:
            record = request.ledger.read("converse", reasoning["redactedContent"], "")
        else:
            content = string(text.get("text"))
            record = request.ledger.read("converse", text.get("signature"), content)
        if record is None:
            raise Rejection(
                f"The model returned the following errors: {path}: Invalid `signature`"
                " in `thinking` block"
            )


def check_last_turn(request: StrictRequest) -> None:
    """The final turn is an assistant's only if the model accepts that; no turn ends with reasoning
    (A13, A14)."""
    turns = objects_in(request.body["messages"])
    for n, turn in enumerate(turns):
        if "reasoningContent" in objects_in(turn["content"])[-1]:
            raise Rejection(
                f"messages.{n}: The final block in an assistant message cannot be `thinking`."
            )
    last = objects_in(turns[-1]["content"])[-1]
    if turns[-1]["role"] != "assistant" or not is_claude(request):
        return
    if not traits(request.model).prefill and "text" in last:
        raise Rejection(
            "This model does not support assistant message prefill. The conversation must end with "
            "a user message."
        )
    text = string(last.get("text"))
    if text != text.rstrip():
        raise Rejection("final assistant content cannot end with trailing whitespace")


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_settings,
    check_roles,
    check_blocks,
    check_texts,
    check_block_roles,
    check_media,
    check_calls,
    check_pairing,
    check_call_ids,
    check_results,
    check_tools,
    check_cache_points,
    check_sampling,
    check_budget,
    check_beside_thinking,
    check_reasoning,
    check_last_turn,
)
"""The rules of this wire, in their order."""
