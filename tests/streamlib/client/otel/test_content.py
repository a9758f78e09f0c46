"""Content as the conventions write it: every item, and nothing that redaction should have taken."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from streamlib import (
    ApplyPatchCall,
    ComputerCall,
    Document,
    FunctionCall,
    Image,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    Refusal,
    Response,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    ShellCall,
    Text,
    ToolSpec,
    build,
    user,
)
from streamlib.client.otel.content import ContentWriter, item_parts
from streamlib.pipeline import map_async, map_text, replace
from streamlib.testing.strategies import histories
from streamlib_parsers.items import CustomToolCall
from streamlib_parsers.response import Choice
from tests.support.cases import each_case

PNG = "iVBORw0KGgo="
PLAIN = ContentWriter()
REDACTING = ContentWriter(replace("secret", "***"))
ITEMS: dict[str, ResponseItem] = {
    "text": user("a secret"),
    "document": user(Document(url="https://a.example/secret")),
    "refusal": Message("assistant", (Refusal("no secret"),)),
    "reasoning": Reasoning("about a secret", signature="sealed"),
    "call": FunctionCall("c", "f", '{"secret": ["secret", {"a": "secret"}], "n": 1}'),
    "broken call": FunctionCall("c", "f", '{"a": "secret'),
    "custom call": CustomToolCall("c", "f", "secret"),
    "output": FunctionCall("c", "f").output("secret"),
    "parts": FunctionCall("c", "f").output([Text("secret"), Image(data=PNG)]),
    "server call": ServerToolCall("c", "search", '{"q": "secret"}'),
    "server result": ServerToolResult("c", "search", [{"title": "secret"}]),
    "computer": ComputerCall("c", [{"type": "type", "text": "secret"}]),
    "screen": ComputerCall("c").output(Image(data=PNG)),
    "shell": ShellCall("c", {"commands": ["cat secret"]}),
    "patch": ApplyPatchCall("c", {"diff": "secret"}),
    "opaque": Opaque("kind", {"encrypted": "secret"}),
}


@each_case("name", ITEMS)
def test_redacted_item_holds_nothing_of_it(name: str) -> None:
    parts = REDACTING.parts(ITEMS[name])
    text = json.dumps(parts)
    assert "secret" not in text
    assert PNG not in text
    assert "sealed" not in text
    assert all(isinstance(part["type"], str) for part in parts)


def test_names_and_ids_of_a_part_stay() -> None:
    writer = ContentWriter(map_text(str.upper))
    [part] = writer.parts(FunctionCall("c1", "find", '{"name": "ada", "id": "x"}'))
    assert part == {
        "type": "tool_call",
        "id": "c1",
        "name": "find",
        "arguments": {"NAME": "ADA", "ID": "X"},
    }


def test_instructions_and_tools_are_redacted_too() -> None:
    tool = ToolSpec("f", "finds the secret", schema={"type": "object", "title": "secret"})
    attributes = REDACTING.of_prompt(Prompt("x", instructions="secret", tools=[tool]))
    assert "secret" not in json.dumps(attributes)
    [definition] = attributes["gen_ai.tool.definitions"]
    assert (definition["type"], definition["name"]) == ("function", "f")


def test_bytes_of_an_image_are_written_where_asked_for() -> None:
    item = user(Image(data=PNG, media_type="image/png"), Image(url="data:image/png;base64,AA=="))
    assert [part.get("content") for part in item_parts(item)] == ["", ""]
    blob, uri = item_parts(item, with_bytes=True)
    assert (blob["type"], blob["content"]) == ("blob", PNG)
    assert (uri["type"], uri["uri"]) == ("uri", "data:image/png;base64,AA==")


def test_neighbours_of_one_role_are_one_message() -> None:
    call = FunctionCall("c", "f", "{}")
    last = Message("developer", (Text("e"),))
    items: list[ResponseItem] = [user("a"), Reasoning("b"), call, call.output("d"), last]
    messages: Any = PLAIN.of_prompt(Prompt(items))["gen_ai.input.messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "system"]


def test_each_choice_is_a_message() -> None:
    choices = tuple(Choice(index, (Message("assistant", (Text("x"),)),)) for index in range(2))
    assert len(PLAIN.of_response(Response(choices=choices))["gen_ai.output.messages"]) == 2


def test_request_of_the_callers_own_is_read() -> None:
    request = build("secret", "openai:gpt-5")
    [message] = REDACTING.of_request(None, request)["gen_ai.input.messages"]
    assert message == {"role": "user", "parts": [{"type": "text", "content": "***"}]}
    broken = msgspec.structs.replace(request, body=b"[]")
    assert REDACTING.of_request(None, broken)["gen_ai.input.messages"] == []


def test_stage_that_needs_a_loop_is_refused() -> None:
    async def nothing(event: Any) -> Any:
        return event

    with pytest.raises(TypeError):
        ContentWriter(map_async(nothing))


@given(histories("responses", images=True))
def test_any_history_is_json(items: list[ResponseItem]) -> None:
    messages = PLAIN.of_prompt(Prompt(items))["gen_ai.input.messages"]
    roles = {message["role"] for message in json.loads(msgspec.json.encode(messages))}
    assert roles <= {"system", "user", "assistant", "tool"}
