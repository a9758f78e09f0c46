"""Every field of `Prompt` on every wire: it reaches the request, or the report names it."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec

from streamlib import (
    CacheMark,
    CacheOptions,
    Prompt,
    ReasoningOptions,
    StreamError,
    ToolOptions,
    ToolSpec,
    WireApi,
    build,
    parse_request,
)
from streamlib.wires.settings import NAMES, Setting, put, take
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
    "cache.compare": CacheOptions(compare="resp_1"),
    "cache.prewarm": CacheOptions(prewarm=True),
    "reasoning.summary": ReasoningOptions("high", summary="auto"),
    "reasoning.display": ReasoningOptions("high", display="omitted"),
    "reasoning.budget": ReasoningOptions(budget=2048),
    "tools.cache": [msgspec.structs.replace(TOOL, cache=CacheMark())],
    "tools.options": [msgspec.structs.replace(TOOL, options=ToolOptions(defer_loading=True))],
    "tools.strict": [msgspec.structs.replace(TOOL, strict=True)],
}
"""Field, or field and what of it -> a value."""
NOT_SETTINGS = {
    "input",
    "extra",
    "extra_wire",
    "model",
    "stream",
    "headers",
    "cache",
    "name",
    "version",
}
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

ZEROS: dict[str, tuple[Any, ...]] = {
    "parallel_tools": (False,),
    "reasoning": (0, ReasoningOptions(budget=0)),
    "max_output_tokens": (0,),
    "temperature": (0, 0.0),
    "top_p": (0, 0.0),
    "top_k": (0,),
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "stop": ([""],),
    "seed": (0,),
    "n": (0,),
    "logprobs": (0,),
    "service_tier": ("",),
    "conversation_id": ("",),
    "user_id": ("",),
    "background": (False,),
}
"""Field -> values that are false in Python, and are settings all the same."""
WITHOUT_ZERO = {"output_schema", "verbosity", "metadata", "thinking_mismatch", "tool_choice"}
"""Fields of which no value is false, or the empty one says nothing or is refused."""


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
    if name in VALUES and not is_reported:
        new = leaves_of([other_body, other_headers]) - leaves_of([body, headers])
        assert VALUES[name] in new


VALUES: dict[str, Any] = {
    "instructions": "Be terse.",
    "max_output_tokens": 77,
    "temperature": 0.5,
    "top_p": 0.75,
    "top_k": 5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "stop": "END",
    "seed": 7,
    "n": 2,
    "logprobs": 3,
    "metadata": "a",
    "service_tier": "priority",
    "conversation_id": "c1",
    "user_id": "u1",
}
"""Setting -> what a wire that has it sends, wherever: no wire has another word or number for it."""


def leaves_of(value: Any) -> set[Any]:
    """The texts and numbers in a JSON value, at any depth."""
    if isinstance(value, dict):
        return set().union(*[leaves_of(of) for of in value.values()])
    if isinstance(value, list):
        return set().union(*[leaves_of(of) for of in value])
    return {value}


# --- zeros ---


def test_every_setting_of_a_wire_has_its_zeros() -> None:
    named = {name for name in NAMES if "." not in name} - {"cache"}
    assert named - WITHOUT_ZERO == ZEROS.keys()


@each_case("wire", WIRE_APIS)
@each_case("name", ZEROS)
def test_a_zero_is_sent_or_reported(wire: WireApi, name: str) -> None:
    base = BASES.get(name, {})
    body, headers, _ = sent(wire, **base)
    for zero in ZEROS[name]:
        other_body, other_headers, report = sent(wire, **{**base, name: zero})
        is_reported = any(path.split("/")[1] == name for path in report)
        assert (other_body, other_headers) != (body, headers) or is_reported, zero


BODIES: dict[WireApi, dict[str, Any]] = {
    "messages": {"max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "interactions": {"input": "hi"},
    "converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "ollama": {"messages": [{"role": "user", "content": "hi"}]},
    "cohere": {"messages": [{"role": "user", "content": "hi"}]},
}
"""The smallest request of each wire with a table of settings."""
SAYS_NOTHING: dict[str, Any] = {
    "stop": [],
    "logprobs": False,
    "": [],  # `include` of Responses
    # Ollama: clients write the default so
    "output_schema": "",
}
"""Setting -> the zero that is the wire's default, so that it may be left out."""


def rows() -> list[tuple[WireApi, Setting, str]]:
    """Each path of each row: the table that builders and decoders read."""
    found: list[tuple[WireApi, Setting, str]] = []
    for wire in BODIES:
        table = importlib.import_module(f"streamlib.wires.{wire}.settings").SETTINGS
        for row in table.rows:
            found.extend((wire, row, path) for path in (row.path, *row.also) if path)
    return found


def is_same(value: Any, zero: Any) -> bool:
    """Whether a value is this zero, or a list of it; 0 and 0.0 are one number, 0 and False not."""
    if value == [zero]:
        return True
    return value == zero and isinstance(value, bool) == isinstance(zero, bool)


@each_case("case", rows())
def test_a_zero_of_a_body_comes_back_or_is_reported(case: tuple[WireApi, Setting, str]) -> None:
    """A zero of the wrong type may also be refused."""
    wire, row, path = case
    zeros: tuple[Any, ...] = (0, 0.0, False, "", [])
    for zero in zeros:
        if is_same(SAYS_NOTHING.get(row.name), zero):
            continue
        body = {"model": "m", **BODIES[wire]}
        put(body, path, zero)
        try:
            prompt = parse_request(wire, msgspec.json.encode(body))
        except StreamError:
            continue
        request = build(prompt, "custom:m", wire_api=wire, base_url="http://x")
        again = msgspec.json.decode(request.body)
        kept = [take(again, other) for other in (row.path, *row.also) if other]
        is_zero_of_logprobs = row.name == "logprobs" and prompt.logprobs == 0
        is_kept = any(is_same(value, zero) for value in kept) or is_zero_of_logprobs
        assert is_kept or request.report, (zero, kept)
