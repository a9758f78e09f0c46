"""The settings of a Converse request: from a `Prompt`, and back; `build_tools` has the tools.

Some are fields of Converse, some are fields that Converse passes on to the model. Numbers such as
B22 are the rows of the rule table in docs/wires/converse.md; S1, S2 and T8 are those of
docs/wires/messages.md.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.effort import level, nearest
from streamlib.request.json_objects import merged, nested, rest_of
from streamlib.request.prompt import EFFORTS, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT, no_schemas, strict_schema
from streamlib.request.target import BuildContext
from streamlib.wires import claude
from streamlib.wires.bedrock import CLAUDE, family_of
from streamlib.wires.claude_betas import report_lost_betas, required_betas
from streamlib.wires.converse.build_parts import ConverseContext
from streamlib.wires.converse.build_tools import claude_tool_fields, forces_call
from streamlib.wires.settings import (
    Setting,
    SettingsTable,
    output_limit,
    put,
    stop_sequences,
    take,
    without_settings,
)
from streamlib_parsers.items import JsonObject

MODEL_FIELDS: Final = "additionalModelRequestFields"
"""The key whose fields Converse passes on to the model as they are."""
SERVICE_TIERS: Final = {
    "priority": "priority",
    "default": "default",
    "flex": "flex",
    "reserved": "reserved",
    "standard_only": "default",
}
"""`Prompt.service_tier` -> Bedrock's name of it."""
MISMATCH_PATH: Final = f"{MODEL_FIELDS}.thinking.block_binding.prefix_mismatch_behavior"
METADATA: Final = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{1,256}")
"""A key or value of `requestMetadata`."""
MAX_METADATA: Final = 16
STOP_SEQUENCE_PATHS: Final = ("/stop_sequence", "/delta/stop_sequence")
"""JSON pointers of the stop sequence that ended Claude's output: in a body, in a stream."""
REASONING_USAGE_PATH: Final = "/usage/output_tokens_details"
"""JSON pointer of Claude's count of reasoning tokens."""


# --- fields for the model itself ---


def model_fields(
    prompt: Prompt, choice: JsonObject, context: ConverseContext, *, unreasoned_tool_turn: bool
) -> JsonObject:
    """`additionalModelRequestFields`: only keys the model's family knows, others are refused.

    `max_tokens` is among them where a thinking budget raised it.
    """  # rule B22
    target, report, family = context.target, context.report, context.family
    if family is CLAUDE:
        thinking_fields = _claude_thinking(
            prompt, choice, context, unreasoned_tool_turn=unreasoned_tool_turn
        )
        # a `top_k` that Claude refuses beside thinking is reported with the other settings
        thinking = thinking_fields.get("thinking")
        prompt = claude.without_refused_while_thinking(prompt, thinking, context)
        # the only family that takes Messages settings here
        return {**_top_k(prompt, context), **claude_tool_fields(prompt, choice), **thinking_fields}
    report_lost_betas(prompt, context)
    if choice.keys() == {"none"}:
        reason = "Converse has no choice none: the model may still call"
        report.dropped("/tool_choice", reason)
    if prompt.thinking_mismatch is not None:
        report.dropped("/thinking_mismatch", f"{target.model} has no setting for it")
    if prompt.parallel_tools is not None:
        report.dropped("/parallel_tools", "Converse cannot limit how many calls come at once")
    return merged(_top_k(prompt, context), _thinking_level(prompt, context))


def _top_k(prompt: Prompt, context: ConverseContext) -> JsonObject:
    target, family = context.target, context.family
    if prompt.top_k is None:
        return {}
    if family.top_k and target.traits.sampling:
        return nested(family.top_k, prompt.top_k)
    context.report.dropped("/top_k", f"{target.model} takes no top_k")
    return {}


def _claude_thinking(
    prompt: Prompt, choice: JsonObject, context: ConverseContext, *, unreasoned_tool_turn: bool
) -> JsonObject:
    """Thinking, effort and beta headers, which are in the body here."""
    fields = claude.thinking(
        prompt,
        context,
        max_tokens=prompt.max_output_tokens,
        forced_call=forces_call(choice),
        unreasoned_tool_turn=unreasoned_tool_turn,
    )
    thinking: JsonObject | None = fields.get("thinking")
    claude.report_unsent_mismatch(prompt, thinking, context)
    effort = claude.effort(prompt, context, thinking)
    if effort:
        fields["output_config"] = {"effort": effort}
    passed_on = (prompt.extra or {}).get(MODEL_FIELDS)
    body = fields
    if isinstance(passed_on, dict):
        body = merged(fields, passed_on)
    betas = required_betas(body, context.target.provider.headers.get(ANTHROPIC_BETA))
    if betas:
        fields["anthropic_beta"] = betas
    return fields


def _thinking_level(prompt: Prompt, context: ConverseContext) -> JsonObject:
    """Thinking of the families that take a level."""
    options = prompt.thinking
    if options is None:
        return {}
    target, report, family = context.target, context.report, context.family
    if options.display is not None:
        report.dropped("/reasoning/display", f"{target.model} has no display of reasoning")
    # options without a level (for example only a summary) still switch thinking on
    requested = level(options) or "medium"
    if requested == "off" and family.thinking_off:
        return dict(family.thinking_off)
    if requested == "off" or not family.effort:
        reason = f"{target.model}: thinking cannot be set or switched off here"
        report.dropped("/reasoning", reason)
        return {}
    chosen = nearest(requested, family.efforts)
    if chosen != options.effort:
        report.add("changed", "/reasoning", f"{target.model}: effort {chosen}")
    return merged(dict(family.thinking_on), nested(family.effort, chosen))


# --- settings of Converse ---


def fitted(
    prompt: Prompt,
    raised_max_tokens: int | None,
    thinking: JsonObject | None,
    context: ConverseContext,
) -> Prompt:
    """The prompt with the limit of tokens and the sampling parameters that the model takes.

    Args:
        raised_max_tokens: `max_tokens` where a thinking budget raised it.
        thinking: Claude's `thinking` that is sent.
    """
    if raised_max_tokens is not None:
        prompt = replace(prompt, max_output_tokens=raised_max_tokens)
    prompt = claude.without_refused_while_thinking(prompt, thinking, context)
    if not context.target.traits.sampling:
        reason = f"{context.target.model} takes no sampling parameters"
        return without_settings(prompt, ("temperature", "top_p"), reason, context.report)
    for name in ("temperature", "top_p"):
        value = getattr(prompt, name)
        if value is not None and not 0 <= value <= 1:
            context.report.add("changed", f"/{name}", "between 0 and 1")
            prompt = replace(prompt, **{name: min(1.0, max(0.0, value))})
    return claude.without_second_sampling(prompt, context)


def _output_config(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """The schema of the output, as JSON text inside the JSON."""
    schema = prompt.schema or {}
    # a format in `extra` is the caller's: it needs its schema
    has_own_format = "outputConfig" in (prompt.extra or {})
    is_claude = family_of(context.target) is CLAUDE
    takes_schemas = context.target.traits.schemas
    if is_claude and schema == ANY_OBJECT and not has_own_format:
        # a strict schema without properties would allow nothing but `{}`
        context.report.dropped("/output_schema", "Claude has no JSON mode: it takes a schema")
        return None
    if not takes_schemas and schema == ANY_OBJECT and not has_own_format:
        context.report.dropped("/output_schema", f"{context.target.model} has no JSON mode")
        return None
    if not takes_schemas and not has_own_format:
        context.report.dropped("/output_schema", no_schemas(context.target.model))
        return None
    if is_claude:
        # Claude has the schema rules of Messages; other models take any schema
        schema = strict_schema(schema, "messages", "/output_schema", context.report)
    definition = {"schema": msgspec.json.encode(schema).decode("utf-8")}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def _read_schema(fields: JsonObject) -> JsonObject | None:
    # `json_schema` is the only type
    take(fields, "outputConfig.textFormat.type")
    text = take(fields, "outputConfig.textFormat.structure.jsonSchema.schema")
    if text is None:
        return None
    return msgspec.json.decode(text, type=dict[str, Any])


def _request_metadata(prompt: Prompt, context: BuildContext) -> dict[str, str] | None:
    """The pairs that the API takes."""
    pairs: dict[str, str] = {}
    for key, value in (prompt.metadata or {}).items():
        is_valid = METADATA.fullmatch(key) and (not value or METADATA.fullmatch(value))
        if is_valid and len(pairs) < MAX_METADATA:
            pairs[key] = value
        else:
            reason = f"at most {MAX_METADATA} pairs of at most 256 plain characters"
            context.report.dropped(f"/metadata/{key}", reason)
    return pairs or None


def _service_tier(prompt: Prompt, context: BuildContext) -> str | None:
    if prompt.service_tier in SERVICE_TIERS:
        return SERVICE_TIERS[prompt.service_tier]
    context.report.dropped("/service_tier", f"one of {', '.join(SERVICE_TIERS)}")
    return None


def response_field_paths(prompt: Prompt, fields: JsonObject, context: ConverseContext) -> list[str]:
    """`additionalModelResponseFieldPaths`: what Claude's responses leave out unless requested."""
    paths: list[str] = []
    if context.family is not CLAUDE:
        return paths
    if prompt.stop:
        paths.extend(STOP_SEQUENCE_PATHS)
    if "thinking" in fields:
        paths.append(REASONING_USAGE_PATH)
    return paths


# --- read from the fields of the model ---

EFFORT_PATHS: Final = (
    f"{MODEL_FIELDS}.output_config.effort",
    f"{MODEL_FIELDS}.reasoningConfig.maxReasoningEffort",
    f"{MODEL_FIELDS}.reasoning_effort",
    f"{MODEL_FIELDS}.reasoning.effort",
    f"{MODEL_FIELDS}.reasoning_config",  # Qwen: the level itself; an object of other models
    "outputConfig.effort",
)
"""Where a level of thinking is, by family of models."""
KIND_PATHS: Final = (f"{MODEL_FIELDS}.thinking.type", f"{MODEL_FIELDS}.reasoningConfig.type")
"""Where thinking is switched on and off: Claude's, Nova's."""
EFFORT_NAMES: Final = {"none": "off"}
"""Levels with another name on the wire -> ours."""

CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
"""Form of `toolChoice` -> `Prompt.tool_choice`; `tool` has the name of one."""


def _read_parallel_tools(fields: JsonObject) -> bool | None:
    """Claude has the limit of one call in its own field of the choice, which is read after it."""
    if take(fields, f"{MODEL_FIELDS}.tool_choice.disable_parallel_tool_use"):
        return False
    return None


def _read_choice(fields: JsonObject) -> str | None:
    claude_choice = take(fields, f"{MODEL_FIELDS}.tool_choice") or {}
    choice = take(fields, "toolConfig.toolChoice")
    if choice:
        form, value = next(iter(choice.items()))
        rest = rest_of(choice, form) or {}
        value_rest = rest_of(value or {}, "name")
        if value_rest:
            rest[form] = value_rest
        if rest:
            # merged over what the builder writes
            put(fields, "toolConfig.toolChoice", rest)
    else:
        # Converse has no `none`: Claude takes it in its own field
        form, value = claude_choice.get("type"), claude_choice
    if form is None:
        return None
    if form == "tool":
        name: str | None = (value or {}).get("name")
        return name
    return CHOICES[form]


def _read_reasoning(fields: JsonObject) -> ReasoningOptions | Literal["off"] | None:
    kind_path, kind = _take_first(fields, KIND_PATHS, (*claude.THINKING_ON, *claude.OFF))
    budget = display = None
    if kind is not None and kind_path == KIND_PATHS[0]:
        budget = take(fields, f"{MODEL_FIELDS}.thinking.budget_tokens")
        display = take(fields, f"{MODEL_FIELDS}.thinking.display")
    if kind in claude.OFF:
        # a level beside it stays, for `extra`
        return claude.off(kind, budget, display)
    effort_path, value = _take_first(fields, EFFORT_PATHS, (*EFFORTS, *EFFORT_NAMES))
    if kind is None and value is None:
        return None
    effort: Any = EFFORT_NAMES.get(value, value)
    is_level_alone = kind is None and effort_path == EFFORT_PATHS[0]
    return ReasoningOptions(effort, budget, display=display, effort_only=is_level_alone)


def _take_first(fields: JsonObject, paths: Iterable[str], known: Container[Any]) -> tuple[str, Any]:
    """The first value that `Prompt` can express, with its path: others stay, for `extra`."""
    for path in paths:
        value = take(fields, path)
        if isinstance(value, str) and value in known:
            return path, value
        if value is not None:
            put(fields, path, value)
    return "", None


SETTINGS: Final = SettingsTable(
    "Converse",
    Setting("max_output_tokens", "inferenceConfig.maxTokens", write=output_limit),
    Setting("temperature", "inferenceConfig.temperature", most=1),
    Setting("top_p", "inferenceConfig.topP"),
    Setting("stop", "inferenceConfig.stopSequences", write=stop_sequences),
    Setting("output_schema", "outputConfig", write=_output_config, read=_read_schema),
    Setting("metadata", "requestMetadata", write=_request_metadata),
    Setting("service_tier", "serviceTier.type", write=_service_tier),
    # `model_fields` writes these, in the form of the model's family: Claude's, Nova's
    Setting("top_k", also=(f"{MODEL_FIELDS}.top_k", f"{MODEL_FIELDS}.inferenceConfig.topK")),
    Setting("parallel_tools", read=_read_parallel_tools),
    Setting("tool_choice", read=_read_choice),
    Setting("reasoning", read=_read_reasoning),
    Setting("reasoning.display"),
    Setting("thinking_mismatch", also=(MISMATCH_PATH,)),
    # cache points between blocks, which `build_cache` writes
    Setting("cache"),
    Setting("cache.ttl"),
    Setting("cache.lifetimes"),
    Setting("cache.breakpoints"),
    Setting("cache.instructions"),
    Setting("cache.automatic"),
)
