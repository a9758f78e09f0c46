"""Rules of Gemini's generateContent.

Numbers are those of docs/wires/gemini.md. Fields are those of google-genai 3.4.0 (``types.py``).
Messages of errors are those that users reported, if any did (google-gemini/gemini-cli). Google's
JSON reader also accepts snake_case names, so fields are read as camelCase.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.request.json_objects import camel_case
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    canonical,
    check_repeated_calls,
    names,
    object_of,
    schemas_in,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

FIELDS: Final = names(
    """
    contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent
    serviceTier store continuationToken labels modelArmorConfig model
    """
)
PART_DATA: Final = names(
    """
    text inlineData fileData functionCall functionResponse executableCode codeExecutionResult
    toolCall toolResponse
    """
)
"""Members of a part, of which each part has exactly one."""

PART_FIELDS: Final = PART_DATA | names(
    """
    thought thoughtSignature videoMetadata mediaResolution partMetadata audioTranscription
    mediaProcessing speechMetadata documentMetadata spreadsheetMetadata audioMetadata
    """
)
TOOL_FIELDS: Final = names(
    """
    functionDeclarations googleSearch googleSearchRetrieval googleMaps codeExecution urlContext
    computerUse fileSearch retrieval enterpriseWebSearch parallelAiSearch exaAiSearch mcpServers
    """
)
DECLARATION_FIELDS: Final = names(
    "name description parameters parametersJsonSchema response responseJsonSchema behavior"
)
SETTINGS: Final = names(
    """
    modelSelectionConfig responseJsonSchema audioTimestamp candidateCount enableAffectiveDialog
    frequencyPenalty logprobs maxOutputTokens mediaResolution presencePenalty responseLogprobs
    responseMimeType responseModalities responseSchema routingConfig seed speechConfig stopSequences
    temperature thinkingConfig topK topP enableEnhancedCivicAnswers responseFormat
    translationConfig audioTranscriptionConfig imageConfig
    """
)
SCHEMA_FIELDS: Final = names(
    """
    anyOf default description enum example format items maxItems maxLength maxProperties maximum
    minItems minLength minProperties minimum nullable pattern properties propertyOrdering required
    title type
    """
)
"""Fields of ``Schema`` on the Developer API."""  # rule G12

FUNCTION_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
STOP_LIMIT: Final = 5

PLACEHOLDERS: Final = (
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
)
"""Documented values in place of a signature (docs, "Thought signatures", FAQ)."""


def turns_of(request: StrictRequest) -> list[JsonObject]:
    """The contents of a request."""
    return objects_in(request.body.get("contents"))


def parts_of(turn: JsonObject) -> list[JsonObject]:
    """The parts of a content, with names in camelCase."""
    return [camel_case(part) for part in objects_in(turn.get("parts"))]


def _unknown(name: str, path: str) -> Rejection:
    return Rejection(
        f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."
    )


def _check_keys(values: JsonObject, known: Iterable[str], path: str) -> None:
    unknown = unknown_key(values, known)
    if unknown is not None:
        raise _unknown(unknown, path)


def check_fields(request: StrictRequest) -> None:
    """No field is unknown (G12; the error of Google's JSON reader)."""
    body = camel_case(request.body)
    _check_keys(body, FIELDS, "")
    settings = camel_case(object_of(body.get("generationConfig")))
    _check_keys(settings, SETTINGS, "generation_config")
    for n, turn in enumerate(turns_of(request)):
        _check_keys(turn, ("role", "parts"), f"contents[{n}]")
        for m, part in enumerate(parts_of(turn)):
            _check_keys(part, PART_FIELDS, f"contents[{n}].parts[{m}]")


def check_contents(request: StrictRequest) -> None:
    """There are contents, they have roles and parts, and parts have data (G7, G8; genkit#3690)."""
    turns = turns_of(request)
    if not turns:
        raise Rejection("* GenerateContentRequest.contents: contents is not specified\n")
    for n, turn in enumerate(turns):
        if turn.get("role", "user") not in ("user", "model"):
            raise Rejection("Please use a valid role: user, model.")
        if not parts_of(turn):
            raise Rejection(
                f"* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty.\n"
            )
        for m, part in enumerate(parts_of(turn)):
            data = PART_DATA & part.keys()
            path = f"GenerateContentRequest.contents[{n}].parts[{m}].data"
            is_empty = part.get("text") == "" and "thoughtSignature" not in part
            if not data or is_empty:
                raise Rejection(
                    f"* {path}: required oneof field 'data' must have one initialized field\n"
                )
            if len(data) > 1:
                raise Rejection(f"oneof field 'data' is already set at 'contents[{n}].parts[{m}]'")


def check_calls(request: StrictRequest) -> None:
    """Calls have names and object arguments, and responses are objects (G14, G21, G22)."""
    for path, part in _function_parts(request):
        for kind, field in (("functionCall", "args"), ("functionResponse", "response")):
            value = part.get(kind)
            if value is None:
                continue
            if not FUNCTION_NAME.fullmatch(string(value.get("name"))):
                raise Rejection(f"Invalid function name at '{path}.{kind}.name'.")
            if not isinstance(value.get(field, {}), dict):
                raise Rejection(
                    f"Invalid value at '{path}.{kind}.{field}' (type.googleapis.com/"
                    "google.protobuf.Struct)"
                )
        response = object_of(part.get("functionResponse"))
        if "$ref" in canonical(response.get("response")) and not response.get("parts"):
            raise Rejection(f"Invalid part reference in '{path}.function_response.response'.")


def check_call_ids(request: StrictRequest) -> None:
    """No two calls have the same id (see `check_repeated_calls`)."""
    calls = [object_of(part.get("functionCall")) for _, part in _function_parts(request)]
    check_repeated_calls([call.get("id") for call in calls])


def _function_parts(request: StrictRequest) -> Iterator[tuple[str, JsonObject]]:
    for n, turn in enumerate(turns_of(request)):
        for m, part in enumerate(parts_of(turn)):
            if "functionCall" in part or "functionResponse" in part:
                yield f"contents[{n}].parts[{m}]", part


def _count(turn: JsonObject, kind: str) -> int:
    return len([part for part in parts_of(turn) if kind in part])


def check_call_places(request: StrictRequest) -> None:
    """A turn of calls follows a user turn or function responses (G1; gemini-cli#26486)."""
    previous_role = ""
    for turn in turns_of(request):
        role = turn.get("role", "user")
        if _count(turn, "functionCall") and (role != "model" or previous_role != "user"):
            raise Rejection(
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
        previous_role = role


def check_pairing(request: StrictRequest) -> None:
    """The turn after calls has as many responses as there were calls, and nothing else (G2-G4).

    Sources: gemini-cli#4504 and #11814, pydantic-ai.
    """
    calls: list[str] = []
    for turn in [*turns_of(request), {"role": "user", "parts": []}]:
        parts = parts_of(turn)
        names = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if names and not calls:
            raise Rejection(
                "Please ensure that function response turn comes immediately after a function call "
                "turn."
            )
        has_other_parts = bool(names) and len(names) != len(parts)
        if sorted(names) != sorted(calls) or has_other_parts:
            raise Rejection(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]


def check_signatures(request: StrictRequest) -> None:
    """A signature is one that was issued for its part, or a documented placeholder."""  # rule G6
    for turn in turns_of(request):
        for part in parts_of(turn):
            signature = part.get("thoughtSignature")
            if signature is None or is_placeholder(signature):
                continue
            content = signed_content(part)
            if request.ledger.read("gemini", signature, content) is None:
                raise Rejection("Thought signature is not valid.")


def signed_content(part: JsonObject) -> str:
    """The content that a signature covers: the name of a call, and nothing of a text.

    No source says that arguments are covered, and some clients add defaults to them (Claude Code:
    ``replace_all``). In a stream the signature of a text follows it on an empty part.
    """
    return string(object_of(part.get("functionCall")).get("name"))


def is_placeholder(signature: Any) -> bool:
    """Whether a signature is a placeholder, in plain text or in base64."""
    encoded = [base64.b64encode(text.encode()).decode() for text in PLACEHOLDERS]
    return signature in PLACEHOLDERS or signature in encoded


def check_signed_calls(request: StrictRequest) -> None:
    """Gemini 3: the first call of each step of the current turn is signed.

    Source: docs, "Thought signatures". The current turn begins after the last user content that is
    not only function responses.
    """  # rule G5
    if not traits(request.model).signed_calls:
        return
    turns = turns_of(request)
    start = 0
    for n, turn in enumerate(turns):
        if turn.get("role", "user") == "user" and not _count(turn, "functionResponse"):
            start = n
    for n, turn in enumerate(turns[start:], start):
        calls = [part for part in parts_of(turn) if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            name = calls[0]["functionCall"]["name"]
            raise Rejection(
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly, and missing thought_signature may lead to "
                f"degraded model performance. Additional data, function call `{name}` , position "
                f"{n + 1}."
            )


def check_thinking(request: StrictRequest) -> None:
    """Thinking has a budget or a level, not both, and only for models that reason."""  # rule G10
    thinking = _thinking_config(request)
    known = ("includeThoughts", "thinkingBudget", "thinkingLevel")
    _check_keys(thinking, known, "generation_config.thinking_config")
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        raise Rejection("You can only set only one of thinking budget and thinking level.")
    if thinking and _is_gemini(request) and not traits(request.model).thinking:
        raise Rejection("Thinking is not enabled for this model.")


def check_thinking_level(request: StrictRequest) -> None:
    """The model has the thinking level (G11; pydantic-ai's probes)."""
    level = _thinking_config(request).get("thinkingLevel")
    if level is None or not _is_gemini(request):
        return
    accepted = traits(request.model)
    if "level" not in accepted.thinking or string(level).lower() not in accepted.efforts:
        raise Rejection(f"Thinking level {level} is not supported for this model.")


def check_thinking_budget(request: StrictRequest) -> None:
    """The budget is in the model's range; 0 turns thinking off, -1 is dynamic."""  # rule G11
    budget = _thinking_config(request).get("thinkingBudget")
    accepted = traits(request.model)
    if budget is None or budget == -1 or accepted.budgets is None:
        return
    fewest, most = accepted.budgets
    if budget == 0 and accepted.thinking_off != "budget_0":
        raise Rejection("Budget 0 is invalid. This model only works in thinking mode.")
    if budget != 0 and not fewest <= budget <= most:
        raise Rejection(
            f"The thinking budget {budget} is invalid. Please choose a value between {fewest} "
            f"and {most}."
        )


def _thinking_config(request: StrictRequest) -> JsonObject:
    settings = camel_case(object_of(camel_case(request.body).get("generationConfig")))
    return camel_case(object_of(settings.get("thinkingConfig")))


def _is_gemini(request: StrictRequest) -> bool:
    return request.model.lower().startswith("gemini-")


def check_settings(request: StrictRequest) -> None:
    """The model accepts penalties, stop sequences and the output schema (G18, G23, G24)."""
    body = camel_case(request.body)
    settings = camel_case(object_of(body.get("generationConfig")))
    accepted = traits(request.model)
    for name in ("presencePenalty", "frequencyPenalty"):
        if name in settings and not accepted.penalties:
            raise Rejection("Penalty is not enabled for this model.")
    if len(settings.get("stopSequences") or ()) > STOP_LIMIT:
        raise Rejection("The number of stop sequences must be at most 5.")
    has_schema = "responseSchema" in settings or "responseJsonSchema" in settings
    if "responseSchema" in settings and "responseJsonSchema" in settings:
        raise Rejection("Only one of response_schema and response_json_schema can be set.")
    if has_schema and settings.get("responseMimeType") not in ("application/json", "text/x.enum"):
        raise Rejection(
            "Response schema is only supported when response_mime_type is application/json."
        )
    is_json = settings.get("responseMimeType") == "application/json"
    if is_json and body.get("tools") and not accepted.typed_tools:
        raise Rejection(
            "Function calling with a response mime type: 'application/json' is unsupported"
        )
    schema = settings.get("responseSchema")
    _check_schema(schema, "generation_config.response_schema")


def check_tools(request: StrictRequest) -> None:
    """Kinds of tools are known; declarations have valid names and schemas (G12-G14, G17)."""
    body = camel_case(request.body)
    hosted = 0
    declared = 0
    for n, raw in enumerate(objects_in(body.get("tools"))):
        tool = camel_case(raw)
        _check_keys(tool, TOOL_FIELDS, f"tools[{n}]")
        hosted += bool(tool.keys() - {"functionDeclarations"})
        for m, declaration in enumerate(objects_in(tool.get("functionDeclarations"))):
            declared += 1
            path = f"tools[{n}].function_declarations[{m}]"
            _check_declaration(camel_case(declaration), path)
    accepted = traits(request.model)
    switch = camel_case(object_of(body.get("toolConfig"))).get("includeServerSideToolInvocations")
    if hosted and declared and not accepted.mixed_tools:
        raise Rejection(
            "Built-in tools ({google_search}) and Function Calling cannot be combined in the same "
            "request."
        )
    if hosted and declared and not switch:
        raise Rejection(
            "Please enable tool_config.include_server_side_tool_invocations to use built-in tools "
            "with function calling."
        )


def _check_declaration(declaration: JsonObject, path: str) -> None:
    _check_keys(declaration, DECLARATION_FIELDS, path)
    if not FUNCTION_NAME.fullmatch(string(declaration.get("name"))):
        raise Rejection(
            f"Invalid function name at '{path}.name'. Must start with a letter or an underscore."
        )
    if "parameters" in declaration and "parametersJsonSchema" in declaration:
        raise Rejection(f"parameters and parameters_json_schema are exclusive at '{path}'.")
    _check_schema(declaration.get("parameters"), f"{path}.parameters")
    for inner_path, schema in schemas_in(declaration.get("parametersJsonSchema")):
        if "$schema" in schema and inner_path:
            raise _unknown("$schema", f"{path}.parameters_json_schema{inner_path}")


def _check_schema(schema: Any, path: str) -> None:
    """A schema in Google's own format has only the fields of ``Schema``."""  # rule G12
    for inner_path, inner in schemas_in(schema):
        _check_keys(inner, SCHEMA_FIELDS, f"{path}{inner_path}")
        values = inner.get("enum")
        if values is not None and not all(isinstance(value, str) and value for value in values):
            raise Rejection(f"{path}{inner_path}.enum: cannot be empty")


def check_tool_config(request: StrictRequest) -> None:
    """A choice of functions needs functions; allowed names need a forced mode."""  # rule G15
    body = camel_case(request.body)
    config = camel_case(object_of(body.get("toolConfig")))
    choice = camel_case(object_of(config.get("functionCallingConfig")))
    if not choice:
        return
    tools = [camel_case(tool) for tool in objects_in(body.get("tools"))]
    declared = [tool for tool in tools if tool.get("functionDeclarations")]
    if not declared:
        raise Rejection("Function calling config is set without function_declarations.")
    if choice.get("allowedFunctionNames") and choice.get("mode") not in ("ANY", "VALIDATED"):
        raise Rejection("allowed_function_names should only be set when mode is ANY or VALIDATED.")


def check_cached_content(request: StrictRequest) -> None:
    """Cached content exists, is for this model, and is not repeated in the request."""  # rule G16
    body = camel_case(request.body)
    name = body.get("cachedContent")
    if name is None:
        return
    # On Vertex the project and the location stand before the name.
    cached_for = request.ledger.cached.get("/".join(string(name).split("/")[-2:]))
    if cached_for is None:
        raise Rejection("CachedContent not found (or permission denied)", status=403)
    if cached_for != request.model:
        raise Rejection(
            f"Model used by GenerateContent request (models/{request.model}) and CachedContent "
            f"(models/{cached_for}) has to be the same."
        )
    if body.keys() & {"systemInstruction", "tools", "toolConfig"}:
        raise Rejection(
            "CachedContent can not be used with GenerateContent request setting "
            "system_instruction, tools or tool_config."
        )


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_contents,
    check_calls,
    check_call_ids,
    check_call_places,
    check_pairing,
    check_signatures,
    check_signed_calls,
    check_thinking,
    check_thinking_level,
    check_thinking_budget,
    check_settings,
    check_tools,
    check_tool_config,
    check_cached_content,
)
"""The rules of this wire, in their order."""
