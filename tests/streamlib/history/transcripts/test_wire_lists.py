"""Lists of Chat, Messages and Responses: kept whole, not as a request would need them."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Message,
    Origin,
    Prompt,
    Reasoning,
    ResponseItem,
    Text,
    build,
    user,
)
from streamlib.history import dump_transcript, load_transcript
from streamlib_parsers.items import WireApi

CALL = FunctionCall("c", "ls", '{"a":1}')
WIRES: tuple[WireApi, ...] = ("chat", "messages", "responses")
NO_ERRORS: tuple[Literal["chat", "responses"], ...] = ("chat", "responses")
each_wire = pytest.mark.parametrize("wire_api", WIRES)


@each_wire
def test_history_is_kept_as_it_is(wire_api: Any) -> None:
    # What a request would mend: a blank output, a call that waits, the assistant's end.
    items: list[ResponseItem] = [
        user("Go"),
        CALL,
        CALL.output("  "),
        Message("assistant", (Text("Done "),)),
        FunctionCall("d", "ls", "{}"),
    ]
    dumped = dump_transcript(items, wire_api)
    assert dumped.report == []
    again = load_transcript(dumped.dumps(), wire_api).items
    assert [item.call_id for item in again if isinstance(item, FunctionCall)] == ["c", "d"]
    assert [item.output for item in again if isinstance(item, FunctionCallOutput)] == ["  "]
    assert [item.text for item in again if isinstance(item, Message)] == ["Go", "Done "]


@each_wire
def test_instructions_stand_where_the_wire_has_them(wire_api: Any) -> None:
    for items, instructions in (
        ([user("Go")], "Be brief."),
        ([Message("system", (Text("Be brief."),)), user("Go")], None),
    ):
        dumped = dump_transcript(items, wire_api, instructions=instructions)
        assert len(dumped) == (1 if wire_api == "messages" else 2)
        assert dumped.instructions == ("Be brief." if wire_api == "messages" else None)
        for value in (dumped, dumped.dumps()):
            transcript = load_transcript(value, wire_api)
            assert transcript.instructions == "Be brief."
            assert len(transcript.items) == 1


def test_errors_of_tools_keep_their_text() -> None:
    items: list[ResponseItem] = [user("Go"), CALL, CALL.output("boom", is_error=True)]
    for name in NO_ERRORS:
        dumped = dump_transcript(items, name)
        assert [change.path for change in dumped.report] == ["/input/2/is_error"]
        output = load_transcript(dumped).items[2]
        assert isinstance(output, FunctionCallOutput)
        assert output.output == "boom"
    output = load_transcript(dump_transcript(items, "messages")).items[2]
    assert isinstance(output, FunctionCallOutput)
    assert output.is_error


def test_reasoning_of_another_wire_stays_reasoning() -> None:
    made = Reasoning("hm", signature="Eq", origin=Origin("messages", "anthropic"))
    items: list[ResponseItem] = [user("Go"), made, Message("assistant", (Text("Hi"),))]
    for name in NO_ERRORS:
        dumped = dump_transcript(items, name)
        assert [change.path for change in dumped.report] == ["/input/1/signature"]
        reasoning = load_transcript(dumped, name).items[1]
        assert isinstance(reasoning, Reasoning)
        assert (reasoning.text, reasoning.signature) == ("hm", None)


def test_incomplete_calls_are_left_out() -> None:
    cut = FunctionCall("c", "ls", '{"a', status="incomplete")
    dumped = dump_transcript([user("Go"), cut], "chat")
    assert [(change.action, change.path) for change in dumped.report] == [("dropped", "/input/1")]


def test_signed_state_has_its_provider() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "Eq"}
    turns = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": [thinking]}]
    item = load_transcript(turns).items[1]
    assert item.origin == Origin("messages", "anthropic")
    own = Origin("messages", "kimi")
    assert load_transcript(turns, origin=own).items[1].origin == own
    details = [{"type": "reasoning.text", "text": "hm", "signature": "x"}]
    message = {"role": "assistant", "content": "Hi", "reasoning_details": details}
    found = load_transcript([{"role": "user", "content": "Go"}, message], "chat").items[1]
    assert found.origin == Origin("chat", "openrouter")


def test_settings_of_a_request_are_reported() -> None:
    cached = [{"type": "text", "text": "Go", "cache_control": {"type": "ephemeral"}}]
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": "Be brief.",
        "tools": [{"name": "ls", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": cached}],
    }
    transcript = load_transcript(body)
    assert transcript.instructions == "Be brief."
    assert [change.path for change in transcript.report] == ["/max_tokens", "/tools", "/cache"]


@pytest.mark.parametrize(
    ("value", "name", "place"),
    [
        ([{"role": "user", "content": "Hi"}, {"role": "pirate"}], "chat", "/1: not a request"),
        ({"messages": [{"role": "user"}]}, "messages", "/messages/0: not a request"),
        ([{"role": "user", "content": "Hi"}, {"role": "user", "content": 3}], "messages", "/1: "),
        ({"input": [{"type": "function_call", "call_id": {}}]}, "responses", "/input/0: "),
    ],
)
def test_bad_message_is_an_error_with_its_place(value: Any, name: Any, place: str) -> None:
    with pytest.raises(ValueError, match=f"not {name}: {place}"):
        load_transcript(value, name)


def test_call_that_repeats_a_waiting_id_is_an_error() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
    made = {"role": "assistant", "content": None, "tool_calls": calls}
    answered = {"role": "tool", "tool_call_id": "c", "content": "x"}
    asked = {"role": "user", "content": "Go"}
    with pytest.raises(ValueError, match=r"items\[2\]: the call has the id 'c' of items\[1\]"):
        load_transcript([asked, made, made])
    # Kimi and Gemini use an id again once it is answered.
    assert len(load_transcript([asked, made, answered, made, answered]).items) == 5


def test_transcript_is_sent_like_any_history() -> None:
    transcript = load_transcript([{"role": "user", "content": "Go"}])
    prompt = Prompt(transcript.items.user("On"), instructions=transcript.instructions)
    assert len(json.loads(build(prompt, "openai:gpt-5", wire_api="chat").body)["messages"]) == 2
