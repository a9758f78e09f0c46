"""Rules of Gemini Interactions.

Numbers are those of docs/wires/interactions.md. Fields and types are those of google-genai 3.4.0
(``_gaos/types/interactions``). Google publishes no list of its errors: a message is our own unless
a user has reported it.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from streamlib.providers.models import traits
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    check_repeated_calls,
    missing_key,
    names,
    object_of,
    schemas_in,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in
from streamlib_parsers.wires.interactions import CALLS, RESULTS

FIELDS: Final = names(
    """
    model agent agent_config input system_instruction tools generation_config response_format
    response_modalities response_mime_type stream background store previous_interaction_id
    continuation_token cached_content environment labels safety_settings service_tier webhook_config
    """
)
SETTINGS: Final = names(
    """
    temperature top_p seed stop_sequences max_output_tokens thinking_level thinking_summaries
    tool_choice speech_config image_config video_config transcription_config
    """
)
LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
CONTENTS: Final[dict[str, frozenset[str]]] = {
    "text": names("type text annotations"),
    "image": names("type data uri mime_type resolution"),
    "audio": names("type data uri mime_type channels sample_rate processing"),
    "document": names("type data uri mime_type resolution processing"),
    "video": names("type data uri mime_type resolution name processing"),
}
"""Type of a content -> its fields."""

STEPS: Final[dict[str, tuple[str, ...]]] = {
    "user_input": (),
    "model_output": (),
    "thought": (),
    "function_call": ("id", "name", "arguments"),
    "function_result": ("call_id", "result"),
    **dict.fromkeys(CALLS, ("id",)),
    **dict.fromkeys(RESULTS, ("call_id",)),
}
"""Type of a step -> the fields that it requires."""

TOOLS: Final = names(
    """
    function google_search url_context code_execution file_search google_maps computer_use
    mcp_server retrieval tool_search
    """
)
FUNCTION_FIELDS: Final = names("type name description parameters defer_loading short_description")
FUNCTION_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")

STAND_IN: Final = "skip_thought_signature_validator"
"""Documented value in place of a signature (docs, "Thought signatures", FAQ)."""


def steps_of(request: StrictRequest) -> list[JsonObject]:
    """The steps of the input; an input of contents is one step."""
    value = request.body.get("input")
    if isinstance(value, str):
        value = [{"type": "text", "text": value}]
    if isinstance(value, dict):
        value = [value]
    steps = objects_in(value)
    if steps and all(step.get("type") in CONTENTS for step in steps):
        return [{"type": "user_input", "content": steps}]
    return steps


def check_fields(request: StrictRequest) -> None:
    """No field is unknown (SDK, ``CreateModelInteraction``, ``CreateAgentInteraction``)."""
    unknown = unknown_key(request.body, FIELDS)
    if unknown is not None:
        raise Rejection(f"Unknown parameter '{unknown}'.", code="parameter_unknown")
    if ("model" in request.body) == ("agent" in request.body):
        raise Rejection("Exactly one of model and agent must be set.")


def check_agent(request: StrictRequest) -> None:
    """Only a model has `generation_config` (I8; SDK: ``CreateAgentInteraction`` lacks it)."""
    if "agent" in request.body and "generation_config" in request.body:
        raise Rejection("generation_config is not supported for agents.")
    if "model" in request.body and "agent_config" in request.body:
        raise Rejection("agent_config is not supported for models.")


def check_background(request: StrictRequest) -> None:
    """A background interaction is stored (I9; docs, "Background execution")."""
    if request.body.get("background") and request.body.get("store") is False:
        raise Rejection("background requires store.")


def check_steps(request: StrictRequest) -> None:
    """Steps are known and complete, and contents have data (I2; SDK, ``StepParam``)."""
    body = request.body
    if (
        not body.get("input")
        and not {"previous_interaction_id", "continuation_token"} & body.keys()
    ):
        raise Rejection("input is required.")
    for n, step in enumerate(steps_of(request)):
        kind = string(step.get("type"))
        if kind not in STEPS:
            raise Rejection(f"input[{n}]: unknown step type '{kind}'.")
        missing = missing_key(step, STEPS[kind])
        if missing is not None:
            raise Rejection(f"input[{n}]: {missing} is required.")
        if kind == "function_call" and not isinstance(step["arguments"], dict):
            raise Rejection(f"input[{n}].arguments: must be an object.")
        for m, content in enumerate(objects_in(step.get("content"))):
            _check_content(content, f"input[{n}].content[{m}]")


def _check_content(content: JsonObject, path: str) -> None:
    kind = string(content.get("type"))
    # Clients send function results among the contents, and the server accepts them (rig).
    if kind == "function_result":
        return
    if kind not in CONTENTS:
        raise Rejection(f"{path}: unknown content type '{kind}'.")
    unknown = unknown_key(content, CONTENTS[kind])
    if unknown is not None:
        raise Rejection(f"{path}: unknown parameter '{unknown}'.", code="parameter_unknown")
    if kind == "text" and not string(content.get("text")):
        raise Rejection(f"{path}: text must not be empty.")
    if kind != "text" and not (content.get("data") or content.get("uri")):
        raise Rejection(f"{path}: data or uri is required.")


def check_call_ids(request: StrictRequest) -> None:
    """No two calls have the same id (see `check_repeated_calls`)."""
    steps = [step for step in steps_of(request) if step.get("type") == "function_call"]
    check_repeated_calls([step["id"] for step in steps])


def check_pairs(request: StrictRequest) -> None:
    """Every call has one result, and every result a call."""  # rule I4
    waiting: set[str] = set()
    for step in steps_of(request):
        kind = step.get("type")
        if kind == "function_call":
            waiting.add(step["id"])
        elif kind == "function_result":
            # The call may be in the interaction that this one continues.
            if step["call_id"] not in waiting and "previous_interaction_id" not in request.body:
                raise Rejection(f"No function call found for call_id '{step['call_id']}'.")
            waiting.discard(step["call_id"])
        elif kind == "user_input" and waiting:
            break
    if waiting:
        raise Rejection(f"Function call '{min(waiting)}' has no result.")


def check_signatures(request: StrictRequest) -> None:
    """Signatures are those that were issued; an empty one is refused (I3; js-genai#1735)."""
    for n, step in enumerate(steps_of(request)):
        if step.get("type") != "thought":
            continue
        signature = string(step.get("signature"))
        if not signature:
            raise Rejection(f"input[{n}]: a thought needs its signature.")
        stand_in = base64.b64encode(STAND_IN.encode()).decode()
        if signature != stand_in and request.ledger.read("interactions", signature, "") is None:
            raise Rejection(f"input[{n}]: Thought signature is not valid.")


def check_signed_calls(request: StrictRequest) -> None:
    """Calls follow a signed thought of their turn (I3; pi#2172, obsidian-gemini#1269)."""
    if not traits(request.model).signed_calls:
        return
    is_signed = False
    for n, step in enumerate(steps_of(request)):
        kind = step.get("type")
        if kind in ("user_input", "function_result"):
            is_signed = False
        elif kind == "thought":
            is_signed = True
        elif kind == "function_call" and not is_signed:
            raise Rejection(f"Function call is missing a thought_signature: input[{n}].")


def check_settings(request: StrictRequest) -> None:
    """Settings are known, and the level exists (I6; SDK, ``GenerationConfig``)."""
    config = object_of(request.body.get("generation_config"))
    unknown = unknown_key(config, SETTINGS)
    if unknown is not None:
        raise Rejection(
            f"Unknown parameter 'generation_config.{unknown}'.", code="parameter_unknown"
        )
    level = config.get("thinking_level")
    if level is not None and level not in LEVELS:
        raise Rejection(f"Thinking level {level} is not supported.")
    accepted = traits(request.model)
    if level is not None and not accepted.thinking:
        raise Rejection("Thinking is not enabled for this model.")
    for name in ("temperature", "top_p"):
        if name in config and not accepted.sampling:
            raise Rejection(f"{name} is not supported for this model.")


def check_tools(request: StrictRequest) -> None:
    """Tools are known, functions have names, and no `required` is empty (I5; pi#2172)."""
    functions: set[str] = set()
    for n, tool in enumerate(objects_in(request.body.get("tools"))):
        kind = string(tool.get("type"))
        if kind not in TOOLS:
            raise Rejection(f"tools[{n}]: unknown tool type '{kind}'.")
        if kind != "function":
            continue
        unknown = unknown_key(tool, FUNCTION_FIELDS)
        if unknown is not None:
            raise Rejection(f"Unknown parameter 'tools[{n}].{unknown}'.", code="parameter_unknown")
        if not FUNCTION_NAME.fullmatch(string(tool.get("name"))):
            raise Rejection(f"tools[{n}]: invalid function name.")
        functions.add(tool["name"])
        for path, schema in schemas_in(tool.get("parameters")):
            if schema.get("required") == []:
                raise Rejection(f"tools[{n}].parameters{path}.required: must not be empty.")
    choice = object_of(request.body.get("generation_config")).get("tool_choice")
    allowed = object_of(object_of(choice).get("allowed_tools")).get("tools")
    if allowed and not set(allowed) <= functions:
        raise Rejection("tool_choice names a function that is not declared.")


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_agent,
    check_background,
    check_steps,
    check_call_ids,
    check_pairs,
    check_signatures,
    check_signed_calls,
    check_settings,
    check_tools,
)
"""The rules of this wire, in their order."""
