"""The settings of a Messages request, tools included: from a `Prompt`, and back.

What `Prompt` has no field for goes into `Prompt.extra`, nested as in the body. Numbers such as S2
are the rows of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.json_objects import rest_of
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT, no_schemas, strict_schema
from streamlib.request.target import BuildContext
from streamlib.request.tool_options import option_fields
from streamlib.wires import claude
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib.wires.cache_marks import comparison, marked, take_mark
from streamlib.wires.settings import (
    Setting,
    SettingsTable,
    left_in_extra,
    output_limit,
    put,
    stop_sequences,
    take,
    take_object,
    without_settings,
)
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

DEFAULT_MAX_TOKENS: Final = 32_000
VERSION_WITHOUT_SAMPLING: Final = "2026-10-21"
"""From this `anthropic-version` on the API refuses sampling parameters."""


def max_tokens(prompt: Prompt, context: BuildContext) -> int:
    """`max_tokens`, which the API requires: the prompt's or a default, within the model's limit."""
    requested = output_limit(prompt, context)
    if requested is None:
        return min(DEFAULT_MAX_TOKENS, context.target.traits.max_output or DEFAULT_MAX_TOKENS)
    return requested


def fitted(prompt: Prompt, thinking: JsonObject | None, context: BuildContext) -> Prompt:
    """The prompt without sampling parameters that model, version or thinking refuse."""  # rule S1
    target = context.target
    version = target.provider.headers.get("anthropic-version", "")
    # versions are dates, so they compare as text
    if target.traits.sampling and version < VERSION_WITHOUT_SAMPLING:
        prompt = claude.without_refused_while_thinking(prompt, thinking, context)
        return claude.without_second_sampling(prompt, context)
    reason = f"{target.model} takes no sampling parameters"
    return without_settings(prompt, claude.SAMPLING, reason, context.report)


# --- tools ---


def wire_tools(prompt: Prompt, report: Report) -> list[JsonObject]:
    """`tools`."""
    return [_wire_tool(tool, f"/tools/{index}", report) for index, tool in enumerate(prompt.tools)]


def _wire_tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    body = tool.native
    if body is None:
        body = _signature(tool, path, report)
    if tool.cache is not None:
        body = marked(body, tool.cache.ttl)
    # the fields have the same names on the wire
    return body | option_fields(tool)


def _signature(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    body: JsonObject = {"name": tool.name}
    # an empty description is refused
    if tool.description:
        body["description"] = tool.description
    if tool.format is not None:
        body["input_schema"] = free_form_schema("Messages", path, report)
        return body
    body["input_schema"] = object_schema(tool, f"{path}/schema", report)
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body


TOOL_KEYS: Final = frozenset(
    {
        "type",
        "name",
        "description",
        "input_schema",
        "strict",
        "defer_loading",
        "eager_input_streaming",
    }
)
"""Keys of a tool that typed fields hold; the others go into `ToolOptions.native`."""


def read_tool(declared: JsonObject) -> ToolSpec:
    """A tool of `tools`."""
    if (declared.get("type") or "custom") != "custom":
        # a tool of Anthropic's own; some have no name
        return ToolSpec(
            declared.get("name") or declared["type"],
            native=declared,
            native_wire="messages",
            provider_run=read_hosted("messages", declared),
        )
    cache = take_mark(declared)
    # an empty list says something else than none, and has no typed field
    filled = [key for key in ("input_examples", "allowed_callers") if declared.get(key)]
    native = rest_of(declared, *TOOL_KEYS, *filled)
    options = ToolOptions(
        defer_loading=declared.get("defer_loading"),
        eager_input_streaming=declared.get("eager_input_streaming"),
        input_examples=declared.get("input_examples") or (),
        allowed_callers=declared.get("allowed_callers") or (),
        native=native,
        native_wire="messages" if native else None,
    )
    return ToolSpec(
        declared["name"],
        declared.get("description"),
        declared.get("input_schema"),
        declared.get("strict"),
        cache=cache,
        options=None if options == ToolOptions() else options,
    )


# --- the choice of a tool ---

TOOL_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
"""`Prompt.tool_choice` -> the wire's type; anything else is the name of a tool."""

FORCED: Final = ("any", "tool")
"""Types of `tool_choice` that force a call."""


def tool_choice(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`tool_choice`, or None where it is not sent (S6: never without tools)."""
    report = context.report
    if not prompt.tools:
        without_settings(prompt, ("tool_choice", "parallel_tools"), "there are no tools", report)
        return None
    choice: JsonObject | None = None
    if prompt.tool_choice in TOOL_CHOICES:
        choice = {"type": TOOL_CHOICES[prompt.tool_choice]}
    elif prompt.tool_choice is not None:
        choice = {"type": "tool", "name": prompt.tool_choice}
    if is_forced(choice) and not context.target.traits.forced_tools:
        reason = f"{context.target.model} takes no forced tool choice: auto"
        report.add("changed", "/tool_choice", reason)
        choice = {"type": "auto"}
    if prompt.parallel_tools is False:
        # the flag is part of the choice, so there must be one; `none` does not take it
        choice = choice or {"type": "auto"}
        if choice["type"] == "none":
            report.dropped("/parallel_tools", "no call is allowed")
        else:
            choice["disable_parallel_tool_use"] = True
    return choice


def is_forced(choice: JsonObject | None) -> bool:
    """Whether a `tool_choice` forces a call."""
    return choice is not None and choice["type"] in FORCED


def _read_choice(fields: JsonObject) -> str | None:
    choice = fields.pop("tool_choice", None)
    if not choice:
        return None
    rest = rest_of(choice, "type", "name")
    if rest:
        # merged over what the builder writes
        fields["tool_choice"] = rest
    if choice["type"] == "tool":
        name: str | None = choice.get("name")
        return name
    for name, kind in TOOL_CHOICES.items():
        if choice["type"] == kind:
            return name
    raise KeyError(choice["type"])


def _read_parallel_tools(fields: JsonObject) -> bool | None:
    """The flag is part of the choice, which is read after it."""
    if take(fields, "tool_choice.disable_parallel_tool_use"):
        return False
    return None


# --- rules ---


def _read_reasoning(fields: JsonObject) -> ReasoningOptions | Literal["off"] | None:
    thinking = fields.get("thinking")
    effort = (fields.get("output_config") or {}).get("effort")
    if not thinking and not effort:
        return None
    if not thinking:
        take(fields, "output_config.effort")
        return ReasoningOptions(effort=effort, effort_only=True)
    kind = thinking["type"]
    budget = take(fields, "thinking.budget_tokens")
    display = take(fields, "thinking.display")
    take(fields, "thinking.type")
    # a level although thinking is off, which other wires cannot express, stays in `extra`
    if kind in claude.OFF:
        return claude.off(kind, budget, display)
    take(fields, "output_config.effort")
    return ReasoningOptions(effort=effort, budget=budget, display=display)


def _format(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    schema = prompt.schema or {}
    if schema == ANY_OBJECT:
        # A strict schema without properties would allow nothing but `{}`.
        context.report.dropped("/output_schema", "Messages has no JSON mode: it takes a schema")
        return None
    if not context.target.traits.schemas:
        context.report.dropped("/output_schema", no_schemas(context.target.model))
        return None
    schema = strict_schema(schema, "messages", "/output_schema", context.report)
    return {"type": "json_schema", "schema": schema}


def _read_schema(fields: JsonObject) -> Any:
    """The schema; what stands beside it stays, and a format without one complete."""
    output_format = take_object(fields, "output_config.format")
    schema = output_format.get("schema")
    rest: JsonObject | None = output_format
    if schema is not None:
        rest = rest_of(output_format, "type", "schema")
    if rest:
        put(fields, "output_config.format", rest)
    return schema


def _user_id(prompt: Prompt, context: BuildContext) -> str | None:
    """The only metadata that the API takes."""
    user_id = prompt.user_id
    for key, value in (prompt.metadata or {}).items():
        if key == "user_id" and user_id is None:
            user_id = value
        elif value != user_id:
            context.report.dropped(f"/metadata/{key}", "Messages' metadata holds only `user_id`")
    return user_id


def _diagnostics(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """Asks why the cache was not used; null in the first request (GA since 2026: no beta)."""
    if context.target.provider.name != "anthropic":
        context.report.dropped("/cache/compare", "only Anthropic itself is known to compare")
        return None
    compared = comparison(prompt, "msg_", context.report)
    if compared is None:
        return None
    return {"previous_message_id": compared or None}


SETTINGS: Final = SettingsTable(
    "Messages",
    # `build` writes these itself, in this order: each depends on the ones before it
    Setting("max_output_tokens", also=("max_tokens",)),
    Setting("parallel_tools", read=_read_parallel_tools),
    Setting("tool_choice", read=_read_choice),
    Setting("reasoning", also=("thinking", "output_config"), read=_read_reasoning),
    Setting("reasoning.display"),
    Setting("thinking_mismatch", also=("thinking.block_binding.prefix_mismatch_behavior",)),
    Setting("output_schema", "output_config.format", write=_format, read=_read_schema),
    Setting("temperature", "temperature", most=1),
    Setting("top_p", "top_p"),
    Setting("top_k", "top_k"),
    Setting("stop", "stop_sequences", write=stop_sequences),
    Setting("user_id", also=("metadata.user_id",)),
    Setting("metadata"),
    Setting("", "metadata.user_id", write=_user_id, read=left_in_extra),
    Setting("service_tier", "service_tier"),
    # marks of blocks, which `build` writes
    Setting("cache"),
    Setting("cache.ttl"),
    Setting("cache.lifetimes"),
    Setting("cache.breakpoints"),
    Setting("cache.instructions"),
    Setting("cache.automatic"),
    Setting("cache.compare", "diagnostics", write=_diagnostics, read=left_in_extra),
)
