"""Calls as models write them: tools, and helpers that spell a call in one dialect."""

# ruff: noqa: RUF001  # DeepSeek writes its tokens with a full-width bar
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamlib_parsers import ToolSpec

Call = tuple[str, Any]
"""(name, decoded arguments)."""


def tool(name: str, **properties: Any) -> ToolSpec:
    """A tool whose parameters have these schemas, or these types."""
    schemas = {
        key: {"type": value} if isinstance(value, str) else value
        for key, value in properties.items()
    }
    return ToolSpec(name, schema={"type": "object", "properties": schemas})


TOOLS = [
    tool("f", k="string", n="integer", s="string", x="number", b="boolean", a="array", o="object"),
    tool("g"),
    tool("functions.weird"),
    tool("ns.tool-1", k="string"),
]


@dataclass(frozen=True)
class Form:
    """A text in a dialect, and what must be read from it."""

    name: str
    dialects: tuple[str, ...]
    text: str
    calls: list[Call]
    output: str = ""
    reasoning: str = ""
    tools: Sequence[ToolSpec] = field(default_factory=lambda: TOOLS)


ANTML = "antml:"
M = "]<]minimax[>["
KIMI = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")


def kimi(header: str, arguments: str, end: str = "<|tool_call_end|>") -> str:
    """One call of Kimi K2."""
    return f"<|tool_call_begin|>{header}<|tool_call_argument_begin|>{arguments}{end}"


def invoke(prefix: str, name: str, **values: str) -> str:
    """Anthropic's form."""
    parameters = "".join(
        f'<{prefix}parameter name="{key}">{value}</{prefix}parameter>\n'
        for key, value in values.items()
    )
    return f'<{prefix}invoke name="{name}">\n{parameters}</{prefix}invoke>'


def xai(name: str, **values: str) -> str:
    """Grok's form."""
    parameters = "".join(
        f'<xai:parameter name="{key}">{value}</xai:parameter>' for key, value in values.items()
    )
    return f'<xai:function_call name="{name}">{parameters}</xai:function_call>'


def function(name: str, **values: str) -> str:
    """Qwen3-Coder's form."""
    return (
        f"<function={name}>\n"
        + "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
        + "</function>"
    )


CODE = "def a():\n    if x < 3:\n        pass\n"
K = '{"k": "v"}'
F1 = [("f", {"k": "v"})]
DSML = "｜DSML｜"


def long_forms() -> list[Form]:
    """Calls with a long string: it is emitted while it is written."""
    value = "x" * 60 + "\nif a < b && c: pass\n" + "y" * 40
    calls = [("f", {"n": 3, "k": value, "s": "v"})]
    pairs = "".join(
        f"<arg_key>{key}</arg_key><arg_value>{text}</arg_value>"
        for key, text in (("n", "3"), ("k", value), ("s", "v"))
    )
    arguments = "".join(
        f'<|open|>argument key="{key}"<|sep|>{text}<|close|>argument<|sep|>'
        for key, text in (("n", "3"), ("k", value), ("s", "v"))
    )
    texts = {
        "xai": xai("f", n="3", k=value, s="v"),
        "anthropic": invoke(ANTML, "f", n="3", k=value, s="v"),
        "qwen3_coder": f"<tool_call>\n{function('f', n='3', k=value, s='v')}\n</tool_call>",
        "glm47": f"<tool_call>f{pairs}</tool_call>",
        "deepseek_v32": invoke(DSML, "f", n="3", k=value, s="v"),
        "minimax_m2": f"<minimax:tool_call>\n{invoke('', 'f', n='3', k=value, s='v')}\n"
        "</minimax:tool_call>",
        "kimi_k3": f'<|open|>call tool="f" index="1"<|sep|>{arguments}<|close|>call<|sep|>',
    }
    return [Form(f"{name}-long", (name,), text, calls) for name, text in texts.items()]
