"""`Prompt.output_schema` of classes, and the ways to ask for it, on every wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import attrs
import msgspec
import pydantic
import pytest

from streamlib import Prompt, Request, StreamError, ToolSpec, Traits, WireApi, build, parse_request
from streamlib.request.prompt import STRUCTURED
from streamlib.testing import MODEL, loopback
from streamlib_parsers import FunctionCall, assistant
from streamlib_parsers.outputs import OUTPUT_TOOL
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case


class City(msgspec.Struct):
    name: str
    people: int


class Model(pydantic.BaseModel):
    name: str
    people: int


@dataclass
class Data:
    name: str
    people: int


class Entry(TypedDict):
    name: str
    people: int


@attrs.define
class Attrs:
    name: str
    people: int


CLASSES: list[Any] = [City, Model, Data, Entry, Attrs]
OSLO = '{"name": "Oslo", "people": 700000}'
TOOL = ToolSpec("look", schema={"type": "object", "properties": {}})


def built(wire: WireApi, *, model: str = "custom:m", **settings: Any) -> Request:
    if wire in ("converse", "invoke"):
        model = "custom:anthropic.claude-opus-4-1"
    return build(Prompt("hi", **settings), model, wire_api=wire, base_url="http://x")


def text_of(request: Request) -> str:
    """The body without the escapes of JSON inside JSON."""
    return request.body.decode().replace("\\", "")


@pytest.mark.parametrize("kind", CLASSES)
def test_schema_of_a_class_is_stored(kind: Any) -> None:
    schema = Prompt("hi", output_schema=kind).schema
    assert schema is not None
    assert list(schema["properties"]) == ["name", "people"]
    assert schema["type"] == "object"


@pytest.mark.parametrize("kind", CLASSES)
def test_schema_of_a_list_is_wrapped_in_an_object(kind: Any) -> None:
    schema = Prompt("hi", output_schema=list[kind]).schema
    assert schema is not None
    assert schema["required"] == ["value"]
    assert schema["properties"]["value"]["type"] == "array"
    assert "$ref" not in schema


@each_case("wire", WIRE_APIS)
def test_native_mode_sends_the_schema_of_every_class(wire: WireApi) -> None:
    for kind in CLASSES:
        request = built(wire, output_schema=kind)
        assert '"people":{' in text_of(request)
        assert request.report == [] or kind is Model  # it adds titles, which are taken as well
        assert OUTPUT_TOOL not in text_of(request)


@each_case("wire", WIRE_APIS)
def test_tool_mode_sends_a_tool_that_has_to_be_called(wire: WireApi) -> None:
    request = built(wire, output_schema=City, structured="tool")
    prompt = parse_request(wire, request.body, path=request.url)
    assert [tool.name for tool in prompt.tools] == [OUTPUT_TOOL]
    assert prompt.output_schema is None
    if wire == "ollama":
        assert [change.path for change in request.report] == ["/tool_choice"]
    else:
        assert prompt.tool_choice in (OUTPUT_TOOL, "required")
        assert request.report == []


@each_case("wire", WIRE_APIS)
def test_tool_mode_lets_own_tools_be_called_first(wire: WireApi) -> None:
    request = built(wire, output_schema=City, structured="tool", tools=[TOOL])
    prompt = parse_request(wire, request.body, path=request.url)
    assert [tool.name for tool in prompt.tools] == ["look", OUTPUT_TOOL]
    if wire != "ollama":
        assert prompt.tool_choice == "required"


@each_case("wire", WIRE_APIS)
def test_json_mode_puts_the_schema_into_the_instructions(wire: WireApi) -> None:
    request = built(wire, output_schema=City, structured="json_mode", instructions="Be brief.")
    prompt = parse_request(wire, request.body, path=request.url)
    assert prompt.instructions is not None
    assert prompt.instructions.startswith("Be brief.\n\n")
    assert '"people":{"type":"integer"}' in prompt.instructions
    paths = [change.path for change in request.report]
    if wire in ("messages", "converse", "invoke"):  # Claude has no JSON mode
        assert paths == ["/output_schema"]
    else:
        assert paths == []
        assert prompt.output_schema == {"type": "object"}


@each_case("mode", STRUCTURED)
@each_case("wire", WIRE_APIS)
def test_request_of_each_mode_is_decoded_and_built_again(wire: WireApi, mode: str) -> None:
    """Invariant 12 for what the modes make of a prompt."""
    request = built(wire, output_schema=City, structured=mode)
    prompt = parse_request(wire, request.body, headers=request.headers, path=request.url)
    again = build(prompt, "custom:" + request.model, wire_api=wire, base_url="http://x")
    assert msgspec.json.decode(again.body) == msgspec.json.decode(request.body)


def test_schema_that_is_not_an_object_is_wrapped_and_reported() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    for mode in ("tool", "json_mode"):
        request = built("chat", output_schema=schema, structured=mode)
        assert [change.path for change in request.report] == ["/output_schema"]
        assert '"required":["value"]' in text_of(request)


def test_mode_that_is_unknown_or_impossible_is_an_error() -> None:
    mode: Any = "regex"
    with pytest.raises(ValueError, match="structured is one of native, tool, json_mode"):
        Prompt("hi", output_schema=City, structured=mode)
    with pytest.raises(StreamError, match="forbids"):
        built("chat", output_schema=City, structured="tool", tool_choice="none")
    with pytest.raises(StreamError, match="of its own"):
        built("chat", output_schema=City, structured="tool", tools=[ToolSpec(OUTPUT_TOOL)])


def test_mode_without_a_schema_changes_nothing() -> None:
    assert built("chat", structured="tool").body == built("chat").body


@each_case("wire", WIRE_APIS)
async def test_output_of_each_mode_is_parsed(wire: WireApi) -> None:
    turns = ((assistant(OSLO),), (FunctionCall("c1", OUTPUT_TOOL, OSLO),))
    async with loopback(wire, strict=True, turns=turns) as client:
        for kind in (City, Model):
            prompt = Prompt("A city?", output_schema=kind)
            response = await client.respond(prompt, MODEL)
            assert response.parsed(kind).people == 700_000
            prompt = Prompt("A city?", output_schema=kind, structured="tool")
            response = await client.respond(prompt, MODEL)
            assert response.parsed(kind).people == 700_000


@pytest.mark.parametrize(
    ("model", "wire_api"),
    [
        ("anthropic:claude-3-5-sonnet-20241022", "messages"),
        ("anthropic:claude-3-7-sonnet-20250219", "messages"),
        ("anthropic:claude-3-haiku-20240307", "messages"),
        ("anthropic:claude-opus-4-20250514", "messages"),
        ("anthropic:claude-sonnet-4-0", "messages"),
        ("bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0", "converse"),
        ("bedrock:anthropic.claude-3-5-haiku-20241022-v1:0", "invoke"),
        ("bedrock:us.amazon.nova-pro-v1:0", "converse"),
        ("bedrock:amazon.nova-2-lite-v1:0", "converse"),
        ("bedrock:us.meta.llama3-3-70b-instruct-v1:0", "converse"),
        ("bedrock:cohere.command-r-plus-v1:0", "converse"),
    ],
)
def test_schema_is_not_sent_to_a_model_without_them(
    model: str, wire_api: WireApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    request = build(Prompt("hi", output_schema=City), model, wire_api=wire_api)
    body = msgspec.json.decode(request.body)
    assert not {"output_config", "outputConfig", "output_format"} & body.keys()
    (change,) = request.report
    assert (change.action, change.path) == ("dropped", "/output_schema")
    assert "structured='tool'" in change.reason
    with_tool = build(Prompt("hi", output_schema=City, structured="tool"), model, wire_api=wire_api)
    assert OUTPUT_TOOL.encode() in with_tool.body
    assert not any(change.path == "/output_schema" for change in with_tool.report)


@pytest.mark.parametrize(
    ("model", "wire_api"),
    [
        ("anthropic:claude-opus-4-1-20250805", "messages"),
        ("anthropic:claude-sonnet-4-5", "messages"),
        ("anthropic:claude-opus-5", "messages"),
        ("bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0", "converse"),
        ("bedrock:qwen.qwen3-32b-v1:0", "converse"),
    ],
)
def test_schema_is_sent_to_a_model_that_takes_it(
    model: str, wire_api: WireApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    request = build(Prompt("hi", output_schema=City), model, wire_api=wire_api)
    assert b'"json_schema"' in request.body
    old = model.partition(":")[2]
    request = build(
        Prompt("hi", output_schema=City),
        model,
        wire_api=wire_api,
        models={old: Traits(schemas=False)},
    )
    assert b'"json_schema"' not in request.body
