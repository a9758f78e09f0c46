"""Decodes the settings of a Cohere request into those of a `Prompt`.

What `Prompt` has no field for (`documents`, `citation_options`, `safety_mode`, `priority`) goes
into `extra`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from streamlib.request.effort import BUDGETS
from streamlib.request.prompt import Effort, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib.wires.cohere.build import CHOICES, SETTINGS
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

READ: Final = frozenset(
    {"model", "tools", "stream", "tool_choice", "stop_sequences", *SETTINGS.values()}
)
"""Fields of the body whose value always fits a field of `Prompt`. Other fields are read if `Prompt`
can express their complete value; if not, they go into `extra`."""

_CHOICE_OF: Final = {wire_name: choice for choice, wire_name in CHOICES.items()}


def settings(body: JsonObject) -> Prompt:
    """Decodes everything but the messages."""
    extra = {key: value for key, value in body.items() if key not in READ}
    values: JsonObject = {}
    for name, wire_name in SETTINGS.items():
        if wire_name in body:
            values[name] = body[wire_name]
    choice = body.get("tool_choice")
    if choice is not None and choice not in _CHOICE_OF:
        extra["tool_choice"] = choice
    # Each of these takes what it can express out of `extra`.
    strict = _strict(extra) if body.get("tools") else None
    reasoning = _reasoning(extra)
    schema = _schema(extra)
    logprobs = 0 if extra.get("logprobs") is True else None
    if logprobs is not None:
        del extra["logprobs"]
    return Prompt(
        tools=[_tool(tool, strict=strict) for tool in body.get("tools") or ()],
        tool_choice=_CHOICE_OF.get(str(choice)),
        reasoning=reasoning,
        output_schema=schema,
        stop=body.get("stop_sequences") or (),
        logprobs=logprobs,
        extra=extra or None,
        model=body.get("model"),
        stream=bool(body.get("stream")),
        **values,
    )


def _strict(extra: JsonObject) -> bool | None:
    strict = extra.get("strict_tools")
    if not isinstance(strict, bool):
        return None
    del extra["strict_tools"]
    return strict


def _reasoning(extra: JsonObject) -> Literal["off"] | ReasoningOptions | None:
    """Thinking; a form with further keys stays in `extra`."""
    thinking = extra.get("thinking")
    if not isinstance(thinking, dict) or not thinking.keys() <= {"type", "token_budget"}:
        return None
    kind, budget = thinking.get("type"), thinking.get("token_budget")
    if kind == "disabled" and budget is None:
        del extra["thinking"]
        return "off"
    if kind != "enabled" or not isinstance(budget, int | None) or isinstance(budget, bool):
        return None
    if budget is not None and budget <= 0:
        return None
    del extra["thinking"]
    for name, tokens in BUDGETS.items():
        if tokens == budget:
            # The builder writes this number for a level, which other wires can use.
            return ReasoningOptions(msgspec.convert(name, Effort))
    return ReasoningOptions(budget=budget)


def _schema(extra: JsonObject) -> JsonObject | None:
    """The output schema. A format without a schema stays in `extra`, unless it means any JSON."""
    response_format = extra.get("response_format")
    if not isinstance(response_format, dict) or response_format.get("type") != "json_object":
        return None
    if not response_format.keys() <= {"type", "json_schema"}:
        return None
    schema: Any = response_format.get("json_schema")
    if schema is None:
        schema = ANY_OBJECT
    if not isinstance(schema, dict):
        return None
    del extra["response_format"]
    return schema


def _tool(tool: JsonObject, *, strict: bool | None) -> ToolSpec:
    function = tool.get("function")
    if not isinstance(function, dict):
        return ToolSpec(str(tool.get("name") or tool["type"]), native=tool, native_wire="cohere")
    rest = {key: value for key, value in tool.items() if key not in ("type", "function")}
    typed = ("name", "description", "parameters")
    function_rest = {key: value for key, value in function.items() if key not in typed}
    if function_rest:
        rest["function"] = function_rest
    options = None
    if rest:
        options = ToolOptions(native=rest, native_wire="cohere")
    return ToolSpec(
        function["name"],
        function.get("description"),
        function.get("parameters"),
        strict=strict,
        options=options,
    )
