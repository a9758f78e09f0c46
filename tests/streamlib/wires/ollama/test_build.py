"""Requests to Ollama's native API: one text a message, argument bytes kept, losses reported."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    CacheOptions,
    Compaction,
    CustomToolCall,
    Document,
    FunctionCall,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Refusal,
    Request,
    ResponseItem,
    ServerToolCall,
    Text,
    ToolSpec,
    accumulate,
    build,
    parse_body,
    parser,
    user,
)
from tests.support.cases import each_case
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

HERE = Origin("ollama")
REASONING = Reasoning("hm", origin=HERE)
MESSAGE = Message("assistant", [Text("so")], origin=HERE)
CALL = FunctionCall("call_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE)
OTHER = FunctionCall("call_2", "f", "{}", origin=HERE)
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/png")


def built(*items: ResponseItem, **settings: Any) -> Request:
    return build(Prompt(input=items or (user("hi"),), **settings), "ollama:qwen3:4b")


def body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def sent(*items: ResponseItem, **settings: Any) -> list[dict[str, Any]]:
    return body(built(*items, **settings))["messages"]  # type: ignore[no-any-return]


def changes(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


# --- the provider ---


def test_the_native_api_is_the_default_and_needs_no_key() -> None:
    request = built()
    assert (request.url, request.wire_api, body(request)["model"]) == (
        "http://localhost:11434/api/chat",
        "ollama",
        "qwen3:4b",
    )


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        ("chat", "/v1/chat/completions"),
        ("responses", "/v1/responses"),
        ("messages", "/v1/messages"),
    ],
)
def test_the_compatible_endpoints_are_there_too(wire: Any, path: str) -> None:
    assert (
        build(Prompt(input="x"), "ollama:m", wire_api=wire).url == f"http://localhost:11434{path}"
    )


def test_compatible_endpoint_takes_reasoning_but_no_tool_choice() -> None:
    reasoning = Reasoning("hm", origin=Origin("chat", "ollama"), response_id="r")
    message = Message("assistant", [Text("so")], response_id="r")
    prompt = Prompt(
        input=[user("x"), reasoning, message, user("y")],
        tools=[TOOL],
        tool_choice="required",
        reasoning="minimal",
    )
    request = build(prompt, "ollama:m", wire_api="chat")
    assert body(request)["messages"][1] == {"role": "assistant", "content": "so", "reasoning": "hm"}
    assert ("tool_choice" in body(request), body(request)["reasoning_effort"]) == (False, "low")


# --- messages ---


def test_response_is_one_message_with_reasoning_text_and_calls() -> None:
    request = built(
        user("go"), REASONING, MESSAGE, CALL, CALL.output("1"), user("and?"), instructions="s"
    )
    assert body(request)["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "so",
            "thinking": "hm",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "f", "arguments": {"b": 1.0, "a": [100000.0]}},
                }
            ],
        },
        {"role": "tool", "tool_name": "f", "tool_call_id": "call_1", "content": "1"},
        {"role": "user", "content": "and?"},
    ]
    assert request.report == []


def test_o2_arguments_keep_their_bytes() -> None:
    assert b'"arguments":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


@pytest.mark.parametrize(
    ("arguments", "value"), [("", {}), ("[1]", {"_raw": "[1]"}), ("nonsense", {"_raw": "nonsense"})]
)
def test_o2_arguments_are_always_an_object(arguments: str, value: Any) -> None:
    call = FunctionCall("c", "f", arguments)
    assert (
        sent(user("x"), call, call.output("y"))[1]["tool_calls"][0]["function"]["arguments"]
        == value
    )


def test_o3_results_follow_the_order_of_their_calls() -> None:
    messages = sent(user("x"), CALL, OTHER, OTHER.output("2"), CALL.output("1"), user("y"))
    assert [message.get("content") for message in messages[2:]] == ["1", "2", "y"]


def test_unknown_keys_of_a_call_are_replayed() -> None:
    call = msgspec.structs.replace(CALL, native={"x": 1, "function": {"y": 2}})
    entry = sent(user("x"), call, call.output("1"))[1]["tool_calls"][0]
    assert (entry["x"], entry["function"]["y"]) == (1, 2)


def test_texts_of_two_responses_are_two_messages() -> None:
    assert [message["content"] for message in sent(user("x"), MESSAGE, MESSAGE)] == [
        "x",
        "so",
        "so",
    ]


def test_lost_order_in_a_response_is_reported() -> None:
    request = built(user("x"), CALL, MESSAGE, CALL.output("1"))
    assert ([message["role"] for message in body(request)["messages"]], changes(request)) == (
        ["user", "assistant", "tool"],
        [("changed", "/input/2")],
    )


def test_o1_images_are_bytes_beside_the_text() -> None:
    message = sent(user("see", PNG, Image(data="/9j/AAAA")))[0]
    assert message == {"role": "user", "content": "see", "images": ["iVBORw0KGgo=", "/9j/AAAA"]}


def test_o1_several_texts_are_one() -> None:
    assert sent(
        Message(
            "user", [Text("a"), Text("b"), Document("aGk=", media_type="text/plain", name="n.txt")]
        )
    )[0]["content"] == ("a\n\nb\n\n[n.txt]\nhi")


@pytest.mark.parametrize(
    "part",
    [
        Image(url="https://x/y.png"),
        Document("JVBERi0="),
        Document(file_id="f"),
        Audio("AAAA"),
        Image(file_id="f"),
    ],
)
def test_o6_what_cannot_be_sent_is_reported(part: Any) -> None:
    request = built(user("x", part))
    assert (body(request)["messages"][0]["content"], changes(request)) == (
        "x",
        [("dropped", "/input/0")],
    )


def test_images_of_results_and_responses_move_to_a_user_message() -> None:
    request = built(user("x"), CALL, CALL.output([Text("see"), PNG]), user("y"))
    assert body(request)["messages"][2:4] == [
        {"role": "tool", "tool_name": "f", "tool_call_id": "call_1", "content": "see"},
        {"role": "user", "content": "[attached to the message above]", "images": ["iVBORw0KGgo="]},
    ]
    drawn = built(user("x"), Message("assistant", [Text("see"), PNG]), user("y"))
    assert [message["role"] for message in body(drawn)["messages"]] == [
        "user",
        "assistant",
        "user",
        "user",
    ]
    assert (changes(request), changes(drawn)) == (
        [("changed", "/input/2")],
        [("changed", "/input/1")],
    )


def test_failed_call_is_marked_in_its_text() -> None:
    request = built(user("x"), CALL, CALL.output("no", is_error=True))
    assert body(request)["messages"][2]["content"] == "[error] no"
    assert changes(request) == [("changed", "/input/2/is_error")]


def test_refusals_developers_and_compactions_are_plain_text() -> None:
    items = [
        Message("developer", [Text("d")]),
        user("x"),
        Message("assistant", [Refusal("no")]),
        Compaction("before"),
    ]
    assert [(message["role"], message["content"]) for message in sent(*items)] == [
        *(("system", "d"), ("user", "x"), ("assistant", "no"), ("user", "before"))
    ]


def test_free_form_call_is_sent_as_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    request = built(
        user("x"), call, call.output("ok"), tools=[ToolSpec("patch", format={"type": "text"})]
    )
    assert body(request)["messages"][1]["tool_calls"][0]["function"] == {
        "name": "patch",
        "arguments": {"input": "*** Begin"},
    }
    assert body(request)["messages"][2]["tool_name"] == "patch"
    assert {path for _, path in changes(request)} == {"/input/1", "/tools/0/format"}


@pytest.mark.parametrize(
    "item",
    [
        ServerToolCall("s", "x", "{}", origin=HERE),
        Opaque("x", {}, origin=HERE),
        Reasoning("", origin=HERE),
        Compaction(None, "g"),
    ],
)
def test_items_ollama_lacks_are_dropped_and_reported(item: ResponseItem) -> None:
    request = built(user("x"), item, user("y"))
    assert ([message["role"] for message in body(request)["messages"]], changes(request)) == (
        ["user", "user"],
        [("dropped", "/input/1")],
    )


def test_foreign_reasoning_is_text() -> None:
    foreign = Reasoning("hm", signature="s", origin=Origin("messages"), response_id="r")
    request = built(user("x"), foreign, user("y"))
    assert body(request)["messages"][1] == {"role": "assistant", "content": "<think>\nhm\n</think>"}
    assert changes(request) == [("downgraded", "/input/1")]


# --- settings ---


def test_o4_settings_of_the_model_are_in_options() -> None:
    sent = body(
        built(
            max_output_tokens=9,
            temperature=0.5,
            top_p=0.9,
            top_k=3,
            seed=1,
            presence_penalty=0.1,
            frequency_penalty=0.2,
            stop=["END"],
            extra={"options": {"num_ctx": 32768}, "keep_alive": "5m"},
        )
    )
    assert sent["options"] == {
        "num_predict": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "seed": 1,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stop": ["END"],
        "num_ctx": 32768,
    }
    assert (sent["keep_alive"], sent["stream"]) == ("5m", True)


@each_case(
    "options, think, reported",
    [
        (None, None, False),
        ("off", False, False),
        ("low", "low", False),
        ("high", "high", False),
        ("minimal", "low", True),
        ("max", "high", True),
        (3000, "medium", True),
        (ReasoningOptions(), True, False),
        (ReasoningOptions("low", summary="auto"), "low", True),
    ],
)
def test_o5_thinking_is_on_off_or_a_level(options: Any, think: Any, reported: bool) -> None:
    request = built(reasoning=options)
    assert (body(request).get("think"), bool(request.report)) == (think, reported)


def test_structured_output_logprobs_and_tools() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}
    sent = body(built(output_schema=schema, logprobs=2, tools=[TOOL, ToolSpec("g")], stream=False))
    assert (sent["format"], sent["logprobs"], sent["top_logprobs"], sent["stream"]) == (
        schema,
        True,
        2,
        False,
    )
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "does f", "parameters": TOOL.schema},
        },
        {
            "type": "function",
            "function": {"name": "g", "parameters": {"type": "object", "properties": {}}},
        },
    ]


def test_o6_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        tools=[msgspec.structs.replace(TOOL, strict=True)],
        tool_choice="required",
        parallel_tools=False,
        verbosity="low",
        n=2,
        metadata={"a": "b"},
        service_tier="flex",
        user_id="u",
        cache=CacheOptions(breakpoints=[0]),
    )
    assert {path for _, path in changes(request)} == {
        *(
            "/tools/0/strict",
            "/tool_choice",
            "/parallel_tools",
            "/verbosity",
            "/n",
            "/metadata",
            "/service_tier",
            "/user_id",
        ),
        "/cache/breakpoints",
    }
    assert built(tools=[TOOL], tool_choice="auto").report == []


# --- law 5 ---


@each_recording("ollama-native", [*STREAMS, *BODIES])
def test_recorded_response_is_replayed_exactly(recording: Recording) -> None:
    if recording.path.suffix in BODIES:
        response = accumulate(parse_body("ollama", recording.body))
    else:
        p = parser("ollama")
        response = accumulate([*p.feed(recording.body), *p.close()])
    if response.error is not None or not response.items:
        return
    request = built(
        user("x"), *response.items, *(call.output("y") for call in response.calls), user("z")
    )
    messages = msgspec.json.decode(
        msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])["messages"],
        type=list[msgspec.Raw],
    )
    again = accumulate(parse_body("ollama", b'{"message":%s,"done":true}' % bytes(messages[1])))
    assert [msgspec.structs.replace(item, response_id=None) for item in again.items] == list(
        response.items
    )


@given(st.lists(st.sampled_from(["say", "call", "draw"]), max_size=6))
def test_each_request_begins_with_the_previous_one(turns: list[str]) -> None:
    history: list[ResponseItem] = [user("go")]
    requests = [built(*history, tools=[TOOL], instructions="s")]
    for n, turn in enumerate(turns):
        call = FunctionCall(f"c{n}", "f", "{}", origin=HERE)
        items_of_turn: dict[str, list[ResponseItem]] = {
            "say": [REASONING, MESSAGE, user(f"u{n}")],
            "call": [REASONING, call, call.output([Text("see"), PNG])],
            "draw": [Message("assistant", [PNG], origin=HERE), user(f"u{n}")],
        }
        history += items_of_turn[turn]
        requests.append(built(*history, tools=[TOOL], instructions="s"))
    for shorter, longer in pairwise(requests):
        assert _elements(longer)[: len(_elements(shorter))] == _elements(shorter)


def _elements(request: Request) -> list[bytes]:
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    return [
        bytes(sent["tools"]),
        *map(bytes, msgspec.json.decode(sent["messages"], type=list[msgspec.Raw])),
    ]
