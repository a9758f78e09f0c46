"""Tools of a real MCP server, over its standard input and output: offered, called, and in a run."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from streamlib import (
    Audio,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Prompt,
    Text,
    ToolSpec,
    agent,
    build,
)
from streamlib.testing import MODEL, scripted
from streamlib_parsers.protocol import WIRE_APIS
from tests.real.conftest import ABSENT

pytestmark = pytest.mark.real

mcp = pytest.importorskip("mcp", reason=f"{ABSENT}: mcp is not installed")
SERVER = Path(__file__).with_name("mcp_server.py")


@asynccontextmanager
async def connected() -> AsyncIterator[Any]:
    """A session with the server."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def test_tools_of_a_server_are_offered_and_called() -> None:
    async with connected() as session:
        specs = {tool.name: ToolSpec.from_mcp(tool) for tool in (await session.list_tools()).tools}

        async def output(name: str, arguments: str) -> FunctionCallOutput:
            call = FunctionCall("call_1", name, arguments)
            return call.output_mcp(await session.call_tool(name, call.parsed()))

        forecast = await output("forecast", '{"city": "Rome"}')
        added = await output("add", '{"a": 1, "b": 2}')
        failed = await output("fail", '{"city": "Ur"}')
        shown = await output("show", "{}")
    assert list(specs) == ["forecast", "add", "fail", "show"]
    assert specs["forecast"].description == "The weather in a city."
    schema = specs["forecast"].schema
    assert schema is not None
    assert schema["properties"]["days"]["default"] == 1
    assert schema["required"] == ["city"]
    for wire_api in WIRE_APIS:
        prompt = Prompt("Hi.", tools=list(specs.values()))
        build(prompt, "custom:m", base_url="http://127.0.0.1", wire_api=wire_api)
    assert forecast == FunctionCallOutput("call_1", forecast.output)
    assert FunctionCall("", "", str(forecast.output)).parsed() == {"city": "Rome", "degrees": 19.5}
    assert added == FunctionCallOutput("call_1", "3")
    assert failed.is_error
    assert failed.output == "Error executing tool fail"
    assert [type(part) for part in shown.output] == [
        Text,
        Image,
        Audio,
        Text,
        Document,
        Text,
        Text,
    ]
    assert shown.output[-1] == Text('{"count":6}')


async def test_tools_of_a_server_run_in_an_agent() -> None:
    turns = [
        [FunctionCall("", "add", '{"a": 1, "b": 2}'), FunctionCall("", "fail", '{"city": "Ur"}')],
        "Done.",
    ]
    async with connected() as session, scripted(turns, strict=True) as client:
        tools = [ToolSpec.from_mcp(tool) for tool in (await session.list_tools()).tools]

        async def call_tool(call: FunctionCall) -> FunctionCallOutput:
            return call.output_mcp(await session.call_tool(call.name, call.parsed()))

        handlers = {FunctionCall: call_tool}
        async with agent(client, "Go.", tools, MODEL, handlers=handlers) as run:
            outputs = [event async for event in run if isinstance(event, FunctionCallOutput)]
    assert sorted((str(output.output)[:5], output.is_error) for output in outputs) == [
        ("3", False),
        ("Error", True),
    ]
    assert run.response.text == "Done."
