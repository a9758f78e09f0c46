"""Settings of a Converse request, and the fields that Converse passes on to the model.

Tools are in `build_tools.py`. Numbers such as B22 are the rows of the rule table in
docs/wires/converse.md; S1, S2 and T8 are those of docs/wires/messages.md.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.effort import level, nearest
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT, strict_schema
from streamlib.wires import claude
from streamlib.wires.bedrock import CLAUDE
from streamlib.wires.claude_betas import report_lost_betas, required_betas
from streamlib.wires.converse.build_tools import claude_tool_fields, forces_call
from streamlib.wires.converse.context import ConverseContext
from streamlib.wires.lost_settings import (
    report_conversation,
    report_unsupported,
    stop_sequences,
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
METADATA: Final = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{1,256}")
"""A key or value of `requestMetadata`."""
MAX_METADATA: Final = 16
UNSUPPORTED: Final = (
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "n",
    "logprobs",
    "verbosity",
    "user_id",
)
"""Settings of other wires that Converse does not have."""
SAMPLING: Final = {"temperature": "temperature", "topP": "top_p"}
"""Field of `inferenceConfig` -> the prompt's."""
STOP_SEQUENCE_PATHS: Final = ("/stop_sequence", "/delta/stop_sequence")
"""JSON pointers of the stop sequence that ended Claude's output: in a body, in a stream."""
REASONING_USAGE_PATH: Final = "/usage/output_tokens_details"
"""JSON pointer of Claude's count of reasoning tokens."""


# --- fields for the model itself ---


def model_fields(
    prompt: Prompt, choice: JsonObject, context: ConverseContext, *, unreasoned_tool_turn: bool
) -> JsonObject:
    """`additionalModelRequestFields`: only keys the model's family knows, others are refused (B22).

    `max_tokens` is among them where a thinking budget raised it.
    """
    target, report, family = context.target, context.report, context.family
    fields: JsonObject = {}
    if prompt.top_k is not None and family.top_k and target.traits.sampling:
        fields = nested(family.top_k, prompt.top_k)
    elif prompt.top_k is not None:
        report.dropped("/top_k", f"{target.model} takes no top_k (B22)")
    # the only family that takes Messages settings here
    if family is CLAUDE:
        fields.update(claude_tool_fields(prompt, choice))
        thinking_fields = _claude_thinking(
            prompt, choice, context, unreasoned_tool_turn=unreasoned_tool_turn
        )
        fields.update(thinking_fields)
        thinking: JsonObject | None = fields.get("thinking")
        if prompt.top_k is not None and "top_k" in fields:
            # decided last, for the thinking that is sent depends on the rest
            if claude.is_refused_while_thinking("top_k", prompt.top_k, thinking, context):
                del fields["top_k"]
        return fields
    report_lost_betas(prompt, context)
    if choice.keys() == {"none"}:
        report.dropped(
            "/tool_choice", "Converse has no choice none: the model may still call (B16)"
        )
    if prompt.thinking_mismatch is not None:
        report.dropped("/thinking_mismatch", f"{target.model} has no setting for it (B22)")
    if prompt.parallel_tools is not None:
        report.dropped("/parallel_tools", "Converse cannot limit how many calls come at once")
    return merged(fields, _thinking_level(prompt, context))


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
    # options without a level (for example only a summary) still switch thinking on
    requested = level(options) or "medium"
    if requested == "off" and family.thinking_off:
        return dict(family.thinking_off)
    if requested == "off" or not family.effort:
        report.dropped(
            "/reasoning", f"{target.model}: thinking cannot be set or switched off here (B22)"
        )
        return {}
    chosen = nearest(requested, family.efforts)
    if chosen != options.effort:
        report.add("changed", "/reasoning", f"{target.model}: effort {chosen}")
    return merged(dict(family.thinking_on), nested(family.effort, chosen))


# --- settings of Converse ---


def inference_config(
    prompt: Prompt,
    raised_max_tokens: int | None,
    thinking: JsonObject | None,
    context: ConverseContext,
) -> JsonObject:
    """`inferenceConfig`.

    Args:
        raised_max_tokens: `max_tokens` where a thinking budget raised it.
        thinking: Claude's `thinking` that is sent.
    """
    target, report = context.target, context.report
    report_unsupported(prompt, UNSUPPORTED, "Converse", report)
    report_conversation(prompt, "Converse", context)
    config: JsonObject = {}
    # no default, unlike Messages: Converse knows the default of each model
    max_tokens = raised_max_tokens or prompt.max_output_tokens
    limit = target.traits.max_output
    if max_tokens is not None and limit and max_tokens > limit:
        report.add("changed", "/max_output_tokens", f"{target.model} gives at most {limit} (S2)")
        max_tokens = limit
    if max_tokens is not None:
        config["maxTokens"] = max_tokens
    for key, name in SAMPLING.items():
        value = getattr(prompt, name)
        if value is None or claude.is_refused_while_thinking(name, value, thinking, context):
            continue
        _add_sampling(config, key, name, value, context)
    config = claude.without_second_sampling(config, "topP", context)
    stop = stop_sequences(prompt, report)
    if stop:
        config["stopSequences"] = stop
    return config


def _add_sampling(
    config: JsonObject, key: str, name: str, value: float, context: ConverseContext
) -> None:
    """Adds a sampling parameter, between 0 and 1 (B23), where the model takes it (S1)."""
    target, report = context.target, context.report
    if not target.traits.sampling:
        report.dropped(f"/{name}", f"{target.model} takes no sampling parameters (S1)")
        return
    if not 0 <= value <= 1:
        report.add("changed", f"/{name}", "between 0 and 1 (B23)")
        value = min(1.0, max(0.0, value))
    config[key] = value


def output_config(prompt: Prompt, context: ConverseContext) -> JsonObject | None:
    """`outputConfig`: the schema of the output, as JSON text inside the JSON."""
    schema = prompt.schema
    if schema is None:
        return None
    # a format in `extra` is the caller's: it needs its schema
    has_own_format = "outputConfig" in (prompt.extra or {})
    if context.family is CLAUDE and schema == ANY_OBJECT and not has_own_format:
        # a strict schema without properties would allow nothing but `{}`
        context.report.dropped("/output_schema", "Claude has no JSON mode: it takes a schema")
        return None
    if context.family is CLAUDE:
        # Claude has the schema rules of Messages; other models take any schema
        schema = strict_schema(schema, "messages", "/output_schema", context.report)
    definition = {"schema": msgspec.json.encode(schema).decode("utf-8")}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def request_metadata(prompt: Prompt, report: Report) -> dict[str, str]:
    """`requestMetadata`: the pairs that the API takes."""
    pairs: dict[str, str] = {}
    for key, value in (prompt.metadata or {}).items():
        is_valid = METADATA.fullmatch(key) and (not value or METADATA.fullmatch(value))
        if is_valid and len(pairs) < MAX_METADATA:
            pairs[key] = value
        else:
            report.dropped(
                f"/metadata/{key}", f"at most {MAX_METADATA} pairs of at most 256 plain characters"
            )
    return pairs


def service_tier(prompt: Prompt, report: Report) -> JsonObject | None:
    """`serviceTier`."""
    if not prompt.service_tier:
        return None
    if prompt.service_tier in SERVICE_TIERS:
        return {"type": SERVICE_TIERS[prompt.service_tier]}
    report.dropped("/service_tier", f"one of {', '.join(SERVICE_TIERS)}")
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
