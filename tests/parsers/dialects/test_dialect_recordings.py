"""Dialects on recorded responses and on the attack vectors of other projects."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    FunctionCall,
    ToolSpec,
    accumulate,
    parser,
)
from streamlib_parsers.dialects import DIALECTS
from tests.support.dialect_calls import (
    TOOLS,
    tool,
)
from tests.support.dialect_streams import (
    chat,
    filtered,
    outcome,
    splits_of,
)
from tests.support.metrics import figure
from tests.support.shared import MISSING, WIRES, Recording, each_recording, each_vector, recordings

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]


FOLDER = "text-tool-dialects"
OF_RECORDING = {
    "deepseek32": "deepseek_v32",
    "glm47": "glm47",
    "kimi-k2": "kimi_k2",
    "minimax-m2": "minimax_m2",
    "minimax-m3": "minimax_m3",
}
OF_RECORDING |= {"qwen3xml": "qwen3_coder", "xai": "xai"}


def typed_tools(calls: Iterable[dict[str, Any]]) -> list[ToolSpec]:
    """Tools whose schemas say what the expected values are."""
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return [
        tool(call["name"], **{key: names[type(value)] for key, value in call["arguments"].items()})
        for call in calls
    ]


@each_recording(FOLDER, (".txt",))
def test_recorded_texts_yield_their_calls_for_every_split(recording: Recording) -> None:
    text, expected = recording.body.decode(), recording.expected
    dialect = next(
        name for start, name in OF_RECORDING.items() if recording.path.name.startswith(start)
    )
    tools = typed_tools(expected["tool_calls"])
    unsplit = filtered([text], [dialect], tools)
    output, _, calls, _ = outcome(unsplit)
    assert (output, calls) == (
        expected["content"],
        [(call["name"], call["arguments"]) for call in expected["tool_calls"]],
    )
    for index in range(len(text) + 1):
        assert join_deltas(filtered([text[:index], text[index:]], [dialect], tools)) == join_deltas(
            unsplit
        ), index
    for chunks in splits_of(text, count=30):
        assert join_deltas(filtered(chunks, [dialect], tools)) == join_deltas(unsplit), chunks


@pytest.mark.parametrize("folder", WIRES)
def test_recorded_responses_are_unchanged_by_all_dialects(folder: str) -> None:
    dialects = [name for name in DIALECTS if name != "think:open"]
    recorded = recordings(folder)
    if not recorded:
        pytest.skip(f"{MISSING}: recordings of {folder}")
    for recording in recorded:
        wire: Any = recording.wire
        plain, with_dialects = (parser(wire), parser(wire, tools=TOOLS, dialects=dialects))
        body = recording.body
        before = accumulate([*plain.feed(body), *plain.close()])
        after = accumulate([*with_dialects.feed(body), *with_dialects.close()])
        if any(
            notice.code == "text_replaced" and notice not in before.notices
            for notice in after.notices
        ):
            assert "</think>" in before.text  # some servers lose the opening tag
            assert before.text.startswith(after.reasoning[:50])
        else:
            assert after == before, recording.path.name


GENERATED = {
    "opens-1e5": '<xai:function_call name="f">' * 100_000,
    "spaces-1e6": "<think>" + " " * 10**6,
}


@each_vector("tag_security_vectors")
def test_text_of_others_never_becomes_a_call(vector: dict[str, Any]) -> None:
    text = vector.get("text") or GENERATED[vector["id"]]
    names = vector.get("declared") or ["Read", "A", "B", "f"]
    typed = {spec.name: spec for spec in typed_tools(vector["calls"])}
    tools = [typed.get(name, ToolSpec(name)) for name in names]
    dialects = ["xai", "think"] if vector.get("quirk", True) else []
    deltas = deltas_of(vector["where"], text)
    started = time.process_time()
    events = chat(deltas, tools=tools, dialects=dialects)
    seconds = time.process_time() - started
    response = accumulate(events)
    calls = [call for call in response.calls if call.call_id != "native"]
    assert [
        {"name": call.name, "arguments": json.loads(call.arguments)}
        for call in calls
        if isinstance(call, FunctionCall)
    ] == vector["calls"]
    if vector["where"] == "assistant_delta":
        assert seconds < 3  # the vector says 1 s, on a machine of its own; growth is tested above
        assert vector["calls"] or response.text == text
    figure(f"{'recovered' if vector['calls'] else 'attack'}/{vector['id']}")


def deltas_of(source: str, text: str) -> list[dict[str, Any]]:
    """Deltas with the text where the vector has it.

    Text of a user or a tool is never part of a response: there the model answers `ok`.
    """
    match source:
        case "assistant_delta":
            return [
                {"content": text[index : index + 50_000]} for index in range(0, len(text), 50_000)
            ]
        case "reasoning_delta":
            return [{"reasoning_content": text}]
        case "tool_args_delta":
            return [
                {
                    "tool_calls": [
                        {"index": 0, "id": "native", "function": {"name": "A", "arguments": text}}
                    ]
                }
            ]
        case _:
            return [{"content": "ok"}]
