"""Responses of several agents in a client: every call is answered, the text is the root's."""

from __future__ import annotations

import msgspec
import pytest

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    InvalidOutput,
    Message,
    OutputTextDelta,
    Prompt,
    ResponseItem,
    Text,
    ToolSpec,
    agent,
    run_calls,
)
from streamlib.structured import json_items
from streamlib.testing import MODEL, scripted
from streamlib_parsers import Response
from streamlib_parsers.outputs import OUTPUT_TOOL

BEE = "/root/bee"


class Answer(msgspec.Struct):
    n: int


def bee(text: str) -> Message:
    return Message("assistant", [Text(text)], agent=BEE)


def root(text: str) -> Message:
    return Message("assistant", [Text(text)])


def look(place: str) -> str:
    return f"looked at {place}"


CALLS: list[ResponseItem] = [
    bee("I look around."),
    FunctionCall("call_bee", "look", '{"place": "attic"}', agent=BEE),
    FunctionCall("call_root", "look", '{"place": "cellar"}'),
]


async def test_run_answers_the_calls_of_every_agent() -> None:
    turns: list[list[ResponseItem]] = [CALLS, [bee("Done."), root("Nothing there.")]]
    async with scripted(turns, wire_api="responses") as client:
        async with agent(client, "Look", [look], MODEL) as run:
            async for _ in run:
                pass
        assert run.response.text == "Nothing there."
        sent = client.requests[1].prompt.items
    outputs = {item.call_id: item.output for item in sent if isinstance(item, FunctionCallOutput)}
    assert outputs == {"call_bee": "looked at attic", "call_root": "looked at cellar"}
    calls = {item.call_id: item.agent for item in sent if isinstance(item, FunctionCall)}
    assert calls == {"call_bee": BEE, "call_root": None}


async def test_run_calls_answers_every_agent() -> None:
    outputs = await run_calls(Response(items=tuple(CALLS), stop_reason="tool_calls"), [look])
    assert [output.call_id for output in outputs] == ["call_bee", "call_root"]


async def test_call_of_the_output_tool_is_the_roots_alone() -> None:
    call = FunctionCall("c", OUTPUT_TOOL, '{"n": 1}', agent=BEE)
    mine = FunctionCall("d", OUTPUT_TOOL, '{"n": 2}')
    both = Response(items=(call, mine), stop_reason="tool_calls", status="completed")
    assert both.parsed(Answer) == Answer(2)
    (output,) = await run_calls(Response(items=(call,), stop_reason="tool_calls"), [look])
    assert isinstance(output, FunctionCallOutput)
    assert output.is_error


async def test_text_of_a_stream_is_the_roots() -> None:
    turn: list[ResponseItem] = [bee("scratch"), root("Hello")]
    async with scripted([turn], wire_api="responses") as client:
        async with client.stream("Hi", MODEL) as stream:
            assert "".join([delta async for delta in stream.text()]) == "Hello"
        assert stream.response.text == "Hello"
        assert list(stream.response.by_agent()) == [None, BEE]


async def test_events_of_a_stream_name_the_agent() -> None:
    turn: list[ResponseItem] = [bee("scratch"), root("Hello")]
    said: dict[str | None, str] = {}
    async with (
        scripted([turn], wire_api="responses") as client,
        client.stream("Hi", MODEL) as stream,
    ):
        async for event in stream:
            if isinstance(event, OutputTextDelta):
                said[event.agent] = said.get(event.agent, "") + event.delta
    assert said == {BEE: "scratch", None: "Hello"}


async def test_items_of_a_stream_are_the_roots() -> None:
    turn: list[ResponseItem] = [bee('{"value": [{"n": 1}]}'), root('{"value": [{"n": 2}]}')]
    async with (
        scripted([turn], wire_api="responses") as client,
        client.stream("Hi", MODEL) as stream,
    ):
        found = [item async for item in json_items(stream, "/value", Answer)]
    assert found == [Answer(2)]


async def test_parsed_needs_an_output_of_the_root() -> None:
    async with scripted([[bee('{"n": 1}')]], wire_api="responses") as client:
        response = await client.respond(Prompt("Hi", tools=[ToolSpec.of(look)]), MODEL)
    with pytest.raises(InvalidOutput):
        response.parsed(Answer)
