"""docs/prompts.md: its table of the wire APIs that lack an option is what requests report."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import WIRE_APIS, Prompt, ToolSpec, WireApi, build
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")
BEDROCK_MODEL = "custom:anthropic.claude-opus-4-1"
"""On Bedrock the options depend on the family of the model; elsewhere nothing is known of it."""

VALUES: dict[str, Any] = {
    "instructions": "Answer in one word.",
    "tools": [ToolSpec("f", schema={"type": "object"})],
    "tool_choice": "f",
    "parallel_tools": False,
    "reasoning": "low",
    "verbosity": "low",
    "output_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    "structured": "tool",
    "max_output_tokens": 5,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "stop": ["x"],
    "seed": 1,
    "n": 2,
    "logprobs": 1,
    "cache": "auto",
    "metadata": {"a": "b"},
    "service_tier": "default",
    "conversation_id": "c",
    "user_id": "u",
}


def lacks(wire_api: WireApi, option: str) -> bool:
    """Whether a request of the wire leaves the option out, and says so."""
    needed: dict[str, Any] = {}
    if option in {"tool_choice", "parallel_tools"}:
        needed = {"tools": VALUES["tools"]}
    if option == "structured":
        needed = {"output_schema": VALUES["output_schema"]}
    prompt = Prompt("x", **{**needed, option: VALUES[option]})
    model = BEDROCK_MODEL if wire_api in {"converse", "invoke"} else "custom:m"
    request = build(prompt, model, wire_api=wire_api, base_url="http://x")
    return any(
        change.action == "dropped" and change.path.startswith(f"/{option}")
        for change in request.report
    )


@pytest.mark.parametrize("option", VALUES)
def test_page_lists_the_wires_that_lack_an_option(option: str) -> None:
    missing = [f"`{wire_api}`" for wire_api in WIRE_APIS if lacks(wire_api, option)]
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{option}` |")]
    assert row.split("|")[3].strip() == (", ".join(missing) or "—")


def test_page_lists_every_option_of_a_prompt() -> None:
    others = {"input", "thinking_mismatch", "extra", "extra_wire", "headers", "model", "stream"}
    assert set(Prompt.__struct_fields__) == set(VALUES) | others
