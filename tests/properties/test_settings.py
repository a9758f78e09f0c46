"""Every field of `Prompt` on every wire: it reaches the request, or the report names it."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib import (
    CacheMark,
    CacheOptions,
    Prompt,
    ReasoningOptions,
    ToolOptions,
    ToolSpec,
    WireApi,
    build,
)
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case

TOOL = ToolSpec("f", schema={"type": "object", "properties": {}})
SETTINGS: dict[str, Any] = {
    "instructions": "Be terse.",
    "tools": [TOOL],
    "tool_choice": "required",
    "parallel_tools": False,
    "reasoning": "high",
    "verbosity": "low",
    "output_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
    "structured.tool": "tool",
    "structured.json_mode": "json_mode",
    "max_output_tokens": 77,
    "temperature": 0.5,
    "top_p": 0.75,
    "top_k": 5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "stop": ["END"],
    "seed": 7,
    "n": 2,
    "logprobs": 3,
    "metadata": {"team": "a"},
    "service_tier": "priority",
    "conversation_id": "c1",
    "user_id": "u1",
    "thinking_mismatch": "drop_block",
    "background": True,
    "cache.ttl": CacheOptions("1h"),
    "cache.breakpoints": CacheOptions(breakpoints=[9]),
    "cache.instructions": CacheOptions(instructions=CacheMark()),
    "cache.automatic": CacheOptions(automatic=CacheMark()),
    "reasoning.summary": ReasoningOptions("high", summary="auto"),
    "reasoning.display": ReasoningOptions("high", display="omitted"),
    "reasoning.budget": ReasoningOptions(budget=2048),
    "tools.cache": [msgspec.structs.replace(TOOL, cache=CacheMark())],
    "tools.options": [msgspec.structs.replace(TOOL, options=ToolOptions(defer_loading=True))],
    "tools.strict": [msgspec.structs.replace(TOOL, strict=True)],
}
"""Field, or field and what of it -> a value."""
NOT_SETTINGS = {"input", "extra", "extra_wire", "model", "stream", "headers", "cache"}
"""What is sent anyway, describes the request itself, or has its own tests."""
BASES: dict[str, dict[str, Any]] = {
    # these say something about others, and alone nothing
    "tool_choice": {"tools": [TOOL]},
    "parallel_tools": {"tools": [TOOL]},
    "thinking_mismatch": {"reasoning": "high"},
    "structured.tool": {"output_schema": {"type": "object", "properties": {}}},
    "structured.json_mode": {"output_schema": {"type": "object", "properties": {}}},
    "reasoning.summary": {"reasoning": ReasoningOptions("high")},
    "reasoning.display": {"reasoning": ReasoningOptions("high")},
    "tools.cache": {"tools": [TOOL]},
    "tools.options": {"tools": [TOOL]},
    "tools.strict": {"tools": [TOOL]},
}

SENT_ANYWAY = {("interactions", "reasoning.summary")}
"""Settings that equal what the wire's builder asks for by itself."""


def sent(wire: WireApi, **settings: Any) -> tuple[Any, dict[str, str], list[str]]:
    request = build(Prompt("hi", **settings), "custom:m", wire_api=wire, base_url="http://x")
    report = [change.path for change in request.report]
    return msgspec.json.decode(request.body), request.headers, report


def test_every_setting_has_a_value() -> None:
    named = {name.partition(".")[0] for name in SETTINGS}
    assert set(Prompt.__struct_fields__) - NOT_SETTINGS <= named


@each_case("wire", WIRE_APIS)
@each_case("name", SETTINGS)
def test_a_setting_is_sent_or_reported(wire: WireApi, name: str) -> None:
    """B3: `strict=True` passed where a wire had no place for it."""
    field = name.partition(".")[0]
    base = BASES.get(name, {})
    body, headers, _ = sent(wire, **base)
    other_body, other_headers, report = sent(wire, **{**base, field: SETTINGS[name]})
    is_reported = any(path.split("/")[1] == field for path in report)
    is_sent = (other_body, other_headers) != (body, headers) or (wire, name) in SENT_ANYWAY
    assert is_sent or is_reported
