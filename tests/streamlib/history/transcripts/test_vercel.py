"""UI messages that a server of the AI SDK keeps: signatures, instructions, states of calls."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    Audio,
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Opaque,
    Origin,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    ShellCall,
    Text,
    user,
)
from streamlib.history import dump_transcript, load_transcript
from tests.support.conversation_facts import facts_of

Part = dict[str, Any]


def loaded(*parts: Part) -> list[ResponseItem]:
    """The items of one assistant message."""
    return load_transcript([{"id": "1", "role": "assistant", "parts": [*parts]}], "vercel").items


def tool(state: str, **fields: Any) -> Part:
    return {"type": "tool-ls", "toolCallId": "c", "state": state, "input": {"a": 1}, **fields}


def test_transcript_holds_what_no_page_may_send() -> None:
    messages = [
        {"id": "0", "role": "system", "parts": [{"type": "text", "text": "Be brief."}]},
        {"id": "1", "role": "assistant", "parts": [{"type": "reasoning", "text": "hm"}]},
    ]
    transcript = load_transcript(messages)
    assert transcript.format == "vercel"
    assert transcript.instructions == "Be brief."
    assert transcript.items == [Reasoning("hm")]
    assert load_transcript({"id": "chat", "messages": messages}, "vercel").items == [
        Reasoning("hm")
    ]


@pytest.mark.parametrize(
    ("part", "output"),
    [
        (tool("output-available", output="x"), FunctionCallOutput("c", "x")),
        (tool("output-available", output={"b": 1}), FunctionCallOutput("c", '{"b":1}')),
        (tool("output-error", errorText=""), FunctionCallOutput("c", "", is_error=True)),
        (
            tool("output-denied", approval={"id": "a", "approved": False, "reason": "no"}),
            FunctionCallOutput("c", "no", is_error=True),
        ),
    ],
)
def test_states_of_a_call_are_outputs(part: Part, output: FunctionCallOutput) -> None:
    assert loaded(part) == [FunctionCall("c", "ls", '{"a":1}'), output]


def test_waiting_and_truncated_calls_have_no_output() -> None:
    approval = {"id": "a"}
    for state in ("input-available", "approval-requested"):
        assert loaded(tool(state, approval=approval)) == [FunctionCall("c", "ls", '{"a":1}')]
    [call] = loaded(tool("input-streaming"))
    assert call.status == "incomplete"
    [again] = load_transcript(dump_transcript([call], "vercel")).items
    assert again.status == "incomplete"


SIGNED: list[Any] = [
    Reasoning("hm", signature="Eq", origin=Origin("messages", "anthropic")),
    Reasoning(encrypted_content="Em", redacted=True, origin=Origin("messages", "anthropic")),
    Reasoning("hm", signature="Br", origin=Origin("converse", "bedrock")),
    Reasoning(
        summary=("One.", "Two."),
        id="rs_1",
        encrypted_content="gA",
        origin=Origin("responses", "openai"),
    ),
    FunctionCall("c", "ls", "{}", signature="Ci", origin=Origin("gemini", "google")),
    Message("assistant", (Text(""),), signature="Cj", origin=Origin("gemini", "vertex")),
]


@pytest.mark.parametrize("item", SIGNED, ids=range(len(SIGNED)))
def test_state_stands_where_the_sdk_keeps_it(item: ResponseItem) -> None:
    dumped = dump_transcript([user("Go"), item], "vercel")
    assert dumped.report == []
    [_, again] = load_transcript(dumped).items
    assert again == item
    assert item.origin is not None
    assert f"'{item.origin.provider}': {{" in str(dumped)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"provider_name": "anthropic", "signature": "Eq"}, ("Eq", None)),
        ({"provider_name": "openai", "signature": "gA", "id": "rs_1"}, (None, "gA")),
        ({"provider_name": "novelty", "signature": "x"}, (None, None)),
    ],
)
def test_state_that_pydantic_ai_keeps_is_read(state: Part, expected: Any) -> None:
    part = {"type": "reasoning", "text": "hm", "providerMetadata": {"pydantic_ai": state}}
    transcript = load_transcript([{"id": "1", "role": "assistant", "parts": [part]}])
    [item] = transcript.items
    assert isinstance(item, Reasoning)
    assert (item.signature, item.encrypted_content) == expected
    assert bool(transcript.report) == (expected == (None, None))


def test_what_a_part_cannot_hold_is_reported() -> None:
    items: list[ResponseItem] = [
        Message("developer", (Text("Be brief."),)),
        Message("user", (Image(file_id="f"), Text("Go"))),
        Reasoning("hm", signature="x", origin=Origin("chat")),
        Message("assistant", (Refusal("No."),)),
        Message("assistant", (Text("a", annotations=({"url": "b"},)),)),
        FunctionCall("c", "ls", "[1]"),
        ShellCall("s", {"commands": ["ls"]}),
        Opaque("novelty", {}),
        FunctionCallOutput("none", "x"),
    ]
    dumped = dump_transcript(items, "vercel")
    named = {change.path.split("/")[2] for change in dumped.report}
    assert named == {str(index) for index in range(len(items))}


def test_order_of_parallel_outputs_is_reported() -> None:
    calls = [FunctionCall("a", "ls", "{}"), FunctionCall("b", "ls", "{}")]
    outputs = [FunctionCallOutput("a", "1"), FunctionCallOutput("b", "2")]
    assert dump_transcript([user("Go"), *calls, *outputs], "vercel").report == []
    dumped = dump_transcript([user("Go"), *calls, *reversed(outputs)], "vercel")
    assert [(change.action, change.path) for change in dumped.report] == [("changed", "/input/4")]


def test_items_come_back_step_by_step() -> None:
    items: list[ResponseItem] = [
        user("Go"),
        FunctionCall("a", "ls", '{"x":1.0}'),
        CustomToolCall("b", "run", "print(1)"),
        FunctionCallOutput("a", (Text("see"), Image("iVBORw0KGgo=", media_type="image/png"))),
        CustomToolCall("b", "run", "").output("1", is_error=True),
        Message("assistant", (Text("Done"), Audio("UklGRg==", media_type="audio/wav"))),
        Message("assistant", (Text("by a helper"),), agent="helper"),
    ]
    dumped = dump_transcript(items, "vercel", instructions="Be brief.")
    assert [message["role"] for message in dumped] == ["system", "user", "assistant"]
    again = load_transcript(dumped.dumps()).items
    assert facts_of(again) == facts_of(items)
    assert [type(item) for item in again] == [type(item) for item in items]
    assert again[-1].agent == "helper"


def test_hosted_results_stay_in_their_place() -> None:
    items: list[ResponseItem] = [
        user("Go"),
        ServerToolCall("s", "search", '{"query":"x"}'),
        ServerToolResult("s", "search", [1]),
        Message("assistant", (Text("Found"),)),
    ]
    again = load_transcript(dump_transcript(items, "vercel")).items
    assert facts_of(again) == facts_of(items)


def test_message_id_that_repeats_is_an_error() -> None:
    message = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    with pytest.raises(ValueError, match="/messages/1/id is that of /messages/0"):
        load_transcript([message, message])
    with pytest.raises(ValueError, match="/messages/0/parts/0"):
        load_transcript([{**message, "parts": [{"type": "text", "text": 3}]}])
