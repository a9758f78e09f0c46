"""Settings of a Messages request: tokens, tools, the choice of a tool, thinking, sampling.

Numbers such as S2 are the rows of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from typing import Final

from streamlib.request.context import BuildContext
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT, strict_schema
from streamlib.request.tool_options import option_fields
from streamlib.wires import claude
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib.wires.lost_settings import (
    report_conversation,
    report_unsupported,
    stop_sequences,
)
from streamlib.wires.messages.build_cache import marker
from streamlib_parsers.items import JsonObject, ToolSpec

DEFAULT_MAX_TOKENS: Final = 32_000
VERSION_WITHOUT_SAMPLING: Final = "2026-10-21"
"""From this `anthropic-version` on the API refuses sampling parameters."""
SAMPLING: Final = ("temperature", "top_p", "top_k")
UNSUPPORTED: Final = ("presence_penalty", "frequency_penalty", "seed", "n", "logprobs")
"""Settings of other wires that Messages does not have."""
TOOL_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
"""`Prompt.tool_choice` -> the wire's type; anything else is the name of a tool."""
FORCED: Final = ("any", "tool")
"""Types of `tool_choice` that force a call."""


def max_tokens(prompt: Prompt, context: BuildContext) -> int:
    """`max_tokens`, which the API requires: the prompt's or a default, within the model's limit."""
    limit = context.target.traits.max_output
    requested = prompt.max_output_tokens
    if requested is None:
        return min(DEFAULT_MAX_TOKENS, limit or DEFAULT_MAX_TOKENS)
    if limit and requested > limit:
        context.report.add(
            "changed", "/max_output_tokens", f"{context.target.model} gives at most {limit} (S2)"
        )
        return limit
    return requested


# --- tools ---


def tools(prompt: Prompt, report: Report) -> list[JsonObject]:
    """`tools`."""
    return [_tool(tool, f"/tools/{index}", report) for index, tool in enumerate(prompt.tools)]


def _tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    body = tool.native
    if body is None:
        body = _signature(tool, path, report)
    if tool.cache is not None:
        body = {**body, "cache_control": marker(tool.cache.ttl)}
    # the fields have the same names on the wire
    return body | option_fields(tool)


def _signature(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    body: JsonObject = {"name": tool.name}
    # an empty description is refused
    if tool.description:
        body["description"] = tool.description
    if tool.format is not None:
        report.add(
            "changed",
            f"{path}/format",
            "Messages has no free-form tools: it takes one string, input",
        )
        body["input_schema"] = free_form_schema()
        return body
    body["input_schema"] = object_schema(tool, f"{path}/schema", report, "S5")
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body


def tool_choice(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`tool_choice`, or None where it is not sent (S6: never without tools)."""
    if not prompt.tools:
        for name in ("tool_choice", "parallel_tools"):
            if getattr(prompt, name) is not None:
                context.report.dropped(f"/{name}", "there are no tools (S6)")
        return None
    choice: JsonObject | None = None
    if prompt.tool_choice in TOOL_CHOICES:
        choice = {"type": TOOL_CHOICES[prompt.tool_choice]}
    elif prompt.tool_choice:
        choice = {"type": "tool", "name": prompt.tool_choice}
    if is_forced(choice) and not context.target.traits.forced_tools:
        context.report.add(
            "changed",
            "/tool_choice",
            f"{context.target.model} takes no forced tool choice: auto (T7)",
        )
        choice = {"type": "auto"}
    if prompt.parallel_tools is False:
        # the flag is part of the choice, so there must be one; `none` does not take it
        choice = choice or {"type": "auto"}
        if choice["type"] == "none":
            context.report.dropped("/parallel_tools", "no call is allowed")
        else:
            choice["disable_parallel_tool_use"] = True
    return choice


def is_forced(choice: JsonObject | None) -> bool:
    """Whether a `tool_choice` forces a call."""
    return choice is not None and choice["type"] in FORCED


# --- thinking, output, sampling ---


def output_config(
    prompt: Prompt, thinking: JsonObject | None, context: BuildContext
) -> JsonObject | None:
    """`output_config`: the effort beside adaptive thinking, and the schema of the output."""
    config: JsonObject = {}
    effort = claude.effort(prompt, context, thinking)
    if effort:
        config["effort"] = effort
    if prompt.schema == ANY_OBJECT:
        # A strict schema without properties would allow nothing but `{}`.
        context.report.dropped("/output_schema", "Messages has no JSON mode: it takes a schema")
    elif prompt.schema is not None:
        schema = strict_schema(prompt.schema, "messages", "/output_schema", context.report)
        config["format"] = {"type": "json_schema", "schema": schema}
    if prompt.verbosity:
        context.report.dropped("/verbosity", "Messages has no verbosity")
    return config or None


def sampling(prompt: Prompt, thinking: JsonObject | None, context: BuildContext) -> JsonObject:
    """The sampling parameters that model, version and thinking allow (S1)."""
    target, report = context.target, context.report
    report_unsupported(prompt, UNSUPPORTED, "Messages", report)
    version = target.provider.headers.get("anthropic-version", "")
    # versions are dates, so they compare as text
    is_allowed = target.traits.sampling and version < VERSION_WITHOUT_SAMPLING
    values: JsonObject = {}
    for name in SAMPLING:
        value = getattr(prompt, name)
        if value is None:
            continue
        if not is_allowed:
            report.dropped(f"/{name}", f"{target.model} takes no sampling parameters (S1)")
        elif not claude.is_refused_while_thinking(name, value, thinking, context):
            values[name] = value
    return claude.without_second_sampling(values, "top_p", context)


def renamed_settings(prompt: Prompt, context: BuildContext) -> JsonObject:
    """Settings that only need the wire's name."""
    body: JsonObject = {}
    stop = stop_sequences(prompt, context.report)
    if stop:
        body["stop_sequences"] = stop
    user_id = prompt.user_id
    for key, value in (prompt.metadata or {}).items():
        if key == "user_id" and not user_id:
            user_id = value
        elif value != user_id:
            context.report.dropped(f"/metadata/{key}", "Messages takes user_id alone")
    if user_id:
        body["metadata"] = {"user_id": user_id}
    if prompt.service_tier:
        body["service_tier"] = prompt.service_tier
    report_conversation(prompt, "Messages", context)
    return body
