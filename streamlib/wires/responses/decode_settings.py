"""Decodes the settings of an OpenAI Responses request: everything but input and tools.

A setting that `Prompt` has becomes a typed field. The rest stays in `Prompt.extra`, which only this
wire sends again.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.request.prompt import EFFORTS, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib_parsers.items import JsonObject, ToolSpec

READ: Final = frozenset(
    {
        # The type of a WebSocket message.
        "type",
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "text",
        "include",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_logprobs",
        "metadata",
        "service_tier",
        "safety_identifier",
        "user",
        "prompt_cache_key",
        "prompt_cache_options",
        "stream",
    }
)
"""Keys with a field in `Prompt`; the others go into `extra`."""

LOGPROBS: Final = "message.output_text.logprobs"

ENCRYPTED: Final = "reasoning.encrypted_content"

INCLUDED: Final = frozenset({ENCRYPTED, LOGPROBS})
"""Elements of `include` that the builder writes by itself."""

NAMED_KINDS: Final = ("function", "custom")
"""Kinds of tools that a choice names by their name; it names other tools by their kind."""


def rest_of(block: JsonObject, *read: str) -> JsonObject | None:
    """The keys that no typed field holds."""
    rest = {key: value for key, value in block.items() if key not in read and value is not None}
    return rest or None


def tool_choice(choice: Any, tools: list[ToolSpec]) -> str | None:
    """The choice or the tool's name; a form that the builder would not write stays in `extra`."""
    if isinstance(choice, dict) and not _choice_exceeds(choice, tools):
        choice = choice.get("name") or choice["type"]
    if isinstance(choice, str):
        return choice
    return None


def _choice_exceeds(choice: Any, tools: list[ToolSpec]) -> bool:
    """Whether the choice names no tool of this request, or names it in the form of another kind."""
    if not isinstance(choice, dict):
        return False
    kind, name = choice["type"], choice.get("name")
    if kind not in NAMED_KINDS:
        return not any(_is_of_kind(tool, kind) for tool in tools) or choice.keys() != {"type"}
    offered = [tool for tool in tools if tool.name == name]
    # The builder takes a tool outside the list (a stored prompt has its own) for a function.
    offered_kind = "function"
    if offered:
        offered_kind = _kind(offered[0])
    return kind != offered_kind or choice.keys() != {"type", "name"}


def _is_of_kind(tool: ToolSpec, kind: str) -> bool:
    """Whether a choice of this kind means the tool, and the builder writes it so again."""
    is_native = (tool.native or {}).get("type") == kind
    return is_native and (tool.name == kind or tool.provider_run is not None)


def _kind(tool: ToolSpec) -> str:
    if tool.native is not None:
        return str(tool.native.get("type"))
    if tool.format is not None:
        return "custom"
    return "function"


def reasoning_options(reasoning: Any) -> ReasoningOptions | None:
    """`Prompt.reasoning` of the field of the same name; an unknown effort is left out."""
    if not reasoning:
        return None
    effort = reasoning.get("effort")
    if effort == "none":
        effort = "off"
    elif effort not in EFFORTS:
        effort = None
    summary = reasoning.get("summary")
    if effort is None and summary is None:
        return None
    return ReasoningOptions(effort, summary=summary)


def logprobs(fields: JsonObject) -> int | None:
    """`Prompt.logprobs`: `top_logprobs`, or 0 where `include` alone requests them."""
    count: int | None = fields.get("top_logprobs")
    if count is None and LOGPROBS in (fields.get("include") or ()):
        # Only the chosen tokens.
        return 0
    return count


def extra_fields(
    fields: JsonObject, tools: list[ToolSpec], *, has_lifetimes: bool
) -> JsonObject | None:
    """Unknown keys, and the parts of known ones that `Prompt` cannot hold.

    Args:
        fields: The body.
        tools: Its tools.
        has_lifetimes: Whether a breakpoint of the input has a lifetime of its own.

    Returns:
        `Prompt.extra`, None if there is nothing.
    """
    extra = {key: value for key, value in fields.items() if key not in READ}
    for key, rest in (
        ("text", _text_rest(fields.get("text") or {})),
        ("reasoning", _reasoning_rest(fields.get("reasoning") or {})),
    ):
        if rest:
            extra[key] = rest
    if _include_exceeds(fields):
        extra["include"] = fields["include"]
    if _choice_exceeds(fields.get("tool_choice"), tools):
        extra["tool_choice"] = fields["tool_choice"]
    cache_rest = _cache_options_rest(fields, has_lifetimes=has_lifetimes)
    if cache_rest:
        extra["prompt_cache_options"] = cache_rest
    if fields.get("safety_identifier") and fields.get("user"):
        extra["user"] = fields["user"]
    return extra or None


def output_schema(text_format: JsonObject) -> JsonObject | None:
    """`Prompt.output_schema` of `text.format`."""
    if text_format.get("type") == "json_object":
        return ANY_OBJECT
    schema: JsonObject | None = text_format.get("schema")
    return schema


def _include_exceeds(fields: JsonObject) -> bool:
    """Whether the builder would not request the same by itself."""
    include: set[str] = set(fields.get("include") or ())
    if not include <= INCLUDED:
        return True
    # For a model that does not think, the builder leaves the element out, and reports it.
    model = fields.get("model")
    if ENCRYPTED in include and isinstance(model, str) and not traits(model).thinking:
        return True
    # For a stored response the builder requests encrypted reasoning only beside `reasoning`.
    is_plain = fields.get("store") is True and reasoning_options(fields.get("reasoning")) is None
    return is_plain and ENCRYPTED in include


def _text_rest(text: JsonObject) -> JsonObject:
    """`text` for `extra`: name and description of a strict format, any other format complete."""
    rest = rest_of(text, "verbosity", "format") or {}
    text_format = text.get("format") or {}
    kind = text_format.get("type", "text")
    format_rest: JsonObject | None = text_format
    if kind in ("text", "json_object"):
        format_rest = rest_of(text_format, "type")
    elif kind == "json_schema" and text_format.get("strict") is True:
        format_rest = rest_of(text_format, "type", "schema", "strict")
    if format_rest:
        rest["format"] = format_rest
    return rest


def _reasoning_rest(reasoning: JsonObject) -> JsonObject | None:
    if reasoning.get("effort") in (None, "none", *EFFORTS):
        return rest_of(reasoning, "effort", "summary")
    return rest_of(reasoning, "summary")


def _cache_options_rest(fields: JsonObject, *, has_lifetimes: bool) -> JsonObject | None:
    options: JsonObject = fields.get("prompt_cache_options") or {}
    if has_lifetimes:
        # The builder writes no lifetime of the request then.
        return options
    return rest_of(options, "ttl")
