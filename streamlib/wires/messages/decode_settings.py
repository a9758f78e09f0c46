"""Settings of a Messages request as fields of `Prompt`: the inverse of `build_settings.py`."""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.prompt import ReasoningOptions
from streamlib_parsers.items import CacheMark, JsonObject, ToolOptions, ToolSpec

PROMPT_KEYS: Final = frozenset(
    {
        "cache_control",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
"""Keys of the body that fields of `Prompt` hold; the others go into `extra`."""
TYPED_KEYS: Final = {
    "metadata": frozenset({"user_id"}),
    "output_config": frozenset({"effort", "format"}),
    "thinking": frozenset({"type", "budget_tokens", "display", "block_binding"}),
}
"""Keys inside a setting that fields of `Prompt` hold; the others go into `extra`, too."""
TOOL_KEYS: Final = frozenset(
    {
        "type",
        "name",
        "description",
        "input_schema",
        "strict",
        "cache_control",
        "defer_loading",
        "eager_input_streaming",
        "input_examples",
        "allowed_callers",
    }
)
"""Keys of a tool that typed fields hold; the others go into `ToolOptions.native`."""
TOOL_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
"""Type of `tool_choice` -> `Prompt.tool_choice`; `tool` has the name of one."""
OFF: Final = frozenset({"disabled", "between_tools"})
"""Types of `thinking` with which the model does not think first."""


def extra(settings: JsonObject) -> JsonObject | None:
    """The settings that no field of `Prompt` holds, nested as in the body."""
    rest: JsonObject = {}
    for key, value in settings.items():
        if key not in PROMPT_KEYS:
            rest[key] = value
    for key, typed_keys in TYPED_KEYS.items():
        untyped = _without(settings.get(key) or {}, typed_keys)
        if untyped:
            rest[key] = untyped
    effort = (settings.get("output_config") or {}).get("effort")
    if effort and (settings.get("thinking") or {}).get("type") in OFF:
        # a level although thinking is off, which other wires cannot express
        rest.setdefault("output_config", {})["effort"] = effort
    return rest or None


def _without(values: JsonObject, keys: frozenset[str]) -> JsonObject:
    """The entries with other keys, without nulls."""
    return {key: value for key, value in values.items() if key not in keys and value is not None}


def tool(declared: JsonObject) -> ToolSpec:
    """A tool of `tools`."""
    if (declared.get("type") or "custom") != "custom":
        # a tool of Anthropic's own; some have no name
        return ToolSpec(
            declared.get("name") or declared["type"],
            native=declared,
            native_wire="messages",
            provider_run=read_hosted("messages", declared),
        )
    native = _without(declared, TOOL_KEYS)
    options = ToolOptions(
        defer_loading=declared.get("defer_loading"),
        eager_input_streaming=declared.get("eager_input_streaming"),
        input_examples=declared.get("input_examples") or (),
        allowed_callers=declared.get("allowed_callers") or (),
        native=native or None,
        native_wire="messages" if native else None,
    )
    return ToolSpec(
        declared["name"],
        declared.get("description"),
        declared.get("input_schema"),
        declared.get("strict"),
        cache=mark(declared.get("cache_control")),
        options=None if options == ToolOptions() else options,
    )


def mark(marker: Any) -> CacheMark | None:
    """A `cache_control`."""
    if marker is None:
        return None
    return CacheMark(marker.get("ttl"))


def tool_choice(choice: JsonObject | None) -> tuple[str | None, bool | None]:
    """`Prompt.tool_choice` and `.parallel_tools`."""
    if not choice:
        return None, None
    parallel_tools: bool | None = None
    if choice.get("disable_parallel_tool_use"):
        parallel_tools = False
    if choice["type"] == "tool":
        return choice.get("name"), parallel_tools
    return TOOL_CHOICES[choice["type"]], parallel_tools


def reasoning(
    thinking: JsonObject | None, output_config: JsonObject
) -> ReasoningOptions | Literal["off"] | None:
    """`Prompt.reasoning`."""
    effort = output_config.get("effort")
    if thinking:
        if thinking["type"] == "disabled":
            return "off"
        if thinking["type"] in OFF:
            return ReasoningOptions(effort="off", off_form=thinking["type"])
        return ReasoningOptions(
            effort=effort,
            budget=thinking.get("budget_tokens"),
            display=thinking.get("display"),
        )
    if effort:
        return ReasoningOptions(effort=effort, effort_only=True)
    return None


def thinking_mismatch(thinking: JsonObject | None) -> Literal["error", "drop_block"] | None:
    """`Prompt.thinking_mismatch`."""
    binding: JsonObject = (thinking or {}).get("block_binding") or {}
    value: Literal["error", "drop_block"] | None = binding.get("prefix_mismatch_behavior")
    return value
