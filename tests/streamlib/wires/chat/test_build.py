"""Chat requests: messages, results, ids and roles meet each provider's rules."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    Compaction,
    FunctionCall,
    Message,
    Opaque,
    Prompt,
    Provider,
    Refusal,
    ResponseItem,
    ServerToolCall,
    Text,
    WireApi,
    assistant,
    build,
    user,
)
from streamlib.providers.models import Traits
from streamlib.providers.names import Charset
from streamlib.providers.shapes import (
    ChatShape,
)
from tests.support.chat_builds import (
    CALL,
    HERE,
    OTHER,
    PNG,
    PNG_PART,
    REASONING,
    TEXT,
    body,
    built,
    changes,
    sent,
)


def roles(*items: ResponseItem, **settings: Any) -> list[str]:
    return [message["role"] for message in sent(*items, **settings)]


# --- one response, one message ---


def test_response_is_one_message_with_reasoning_text_and_calls() -> None:
    request = built(
        user("go"), REASONING, TEXT, CALL, OTHER, CALL.output("1"), OTHER.output("2"), user("and?")
    )
    assert body(request)["messages"] == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "so",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"b": 1.0, "a": [1e5]}'},
                },
                {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        {"role": "tool", "tool_call_id": "call_2", "content": "2"},
        {"role": "user", "content": "and?"},
    ]
    assert request.report == []


def test_arguments_keep_their_bytes() -> None:
    assert json.dumps(CALL.arguments).encode() in built(user("x"), CALL, CALL.output("y")).body


@pytest.mark.parametrize("arguments", ["", "{}"])
def test_c2_call_without_arguments_has_an_empty_object(arguments: str) -> None:
    call = FunctionCall("c", "f", arguments)
    assert (
        sent(user("x"), call, call.output("y"))[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    )


def test_c1_results_follow_the_message_of_their_calls() -> None:
    request = built(user("x"), CALL, OTHER, OTHER.output("2"), user("and?"))
    assert [
        message.get("tool_call_id", message["role"]) for message in body(request)["messages"]
    ] == [*("user", "assistant", "call_2", "call_1", "user")]
    assert changes(request)[0] == ("generated", "/input/1")


def test_result_without_its_call_is_user_text() -> None:
    assert roles(user("x"), CALL.output("1")) == ["user", "user"]


def test_texts_of_one_response_are_joined_of_two_are_not() -> None:
    again = msgspec.structs.replace(TEXT, content=[Text("!")])
    other = msgspec.structs.replace(again, response_id="r2")
    assert [message["content"] for message in sent(user("x"), TEXT, again, user("y"))] == [
        "x",
        "so!",
        "y",
    ]
    assert [message["content"] for message in sent(user("x"), TEXT, other, user("y"))] == [
        "x",
        "so",
        "!",
        "y",
    ]
    nameless = Message("assistant", [Text("a")])
    assert [message["content"] for message in sent(user("x"), nameless, nameless)] == [
        "x",
        "a",
        "a",
    ]


def test_text_after_a_call_moves_before_it_and_is_reported() -> None:
    request = built(user("x"), CALL, TEXT, CALL.output("1"))
    assert [message["role"] for message in body(request)["messages"]] == [
        "user",
        "assistant",
        "tool",
    ]
    assert changes(request) == [("changed", "/input/1")]


def test_reasoning_between_texts_moves_and_is_reported() -> None:
    request = built(user("x"), TEXT, REASONING, TEXT, user("y"))
    assert (body(request)["messages"][1]["content"], changes(request)) == (
        "soso",
        [("changed", "/input/1")],
    )


def test_refusal_is_replayed_as_a_refusal() -> None:
    refusal = Message("assistant", [Refusal("no")], origin=HERE)
    assert sent(user("x"), refusal, user("y"))[1] == {
        "role": "assistant",
        "content": None,
        "refusal": "no",
    }


def test_c4_bare_messages_have_only_common_keys() -> None:
    strict = ChatShape(bare_messages=True)
    call = msgspec.structs.replace(CALL, signature="Sig", native={"x": 1})
    refusal = Message("assistant", [Refusal("no")], origin=HERE, native={"y": 2}, response_id="r1")
    request = built(user("x"), refusal, call, call.output("1"), shape=strict)
    assert body(request)["messages"][1] == {
        "role": "assistant",
        "content": "no",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "f", "arguments": CALL.arguments},
            }
        ],
    }
    # Keys of the call are as lost as those of the message.
    dropped = [("dropped", "/input/1"), ("dropped", "/input/2")]
    assert changes(request) == [("changed", "/input/1"), *dropped]


def test_unknown_keys_and_parts_of_this_wire_are_replayed() -> None:
    call = msgspec.structs.replace(CALL, native={"x": 1, "function": {"y": 2}})
    unknown = Opaque("hologram", {"type": "hologram"}, origin=HERE, response_id="r1")
    message = sent(user("x"), TEXT, unknown, call, call.output("1"))[1]
    assert message["content"] == [{"type": "text", "text": "so"}, {"type": "hologram"}]
    assert (message["tool_calls"][0]["x"], message["tool_calls"][0]["function"]["y"]) == (1, 2)


def test_gemini_signatures_are_replayed_on_calls_and_texts() -> None:
    call = msgspec.structs.replace(
        CALL, signature="Sig1", native={"extra_content": {"google": {"x": 1}}}
    )
    empty = Message("assistant", [], signature="Sig2", origin=HERE, response_id="r1")
    message = sent(user("x"), TEXT, empty, call, call.output("1"))[1]
    assert message["extra_content"] == {"google": {"thought_signature": "Sig2"}}
    assert message["tool_calls"][0]["extra_content"] == {
        "google": {"x": 1, "thought_signature": "Sig1"}
    }


def test_audio_of_a_response_is_replayed_by_its_id() -> None:
    message = Message(
        "assistant",
        [Audio("AAAA", name="audio_1", transcript="hm")],
        origin=HERE,
        native={"audio": {"expires_at": 9}},
    )
    assert sent(user("x"), message, user("y"))[1] == {
        "role": "assistant",
        "content": None,
        "audio": {"id": "audio_1"},
    }
    foreign = built(
        user("x"), msgspec.structs.replace(message, origin=None, native=None), user("y")
    )
    assert (body(foreign)["messages"][1]["content"], changes(foreign)) == (
        "hm",
        [("dropped", "/input/1")],
    )


@pytest.mark.parametrize(
    "item",
    [
        ServerToolCall("s", "search", "{}", origin=HERE),
        Opaque("mcp", {"type": "mcp", "id": "1"}, origin=HERE),
    ],
)
def test_items_chat_lacks_are_dropped_and_reported(item: ResponseItem) -> None:
    request = built(user("x"), item, user("y"))
    assert ([message["role"] for message in body(request)["messages"]], changes(request)) == (
        ["user", "user"],
        [("dropped", "/input/1")],
    )


def test_compaction_is_its_text() -> None:
    assert sent(user("x"), Compaction("before"), user("y"))[1] == {
        "role": "user",
        "content": "before",
    }
    assert changes(built(user("x"), Compaction(None, "gAAA"))) == [("dropped", "/input/1")]


def test_c7_message_without_content_is_dropped() -> None:
    request = built(user("x"), Message("user", ()), Message("assistant", [Text("")]), user("y"))
    assert ([message["content"] for message in body(request)["messages"]], changes(request)) == (
        ["x", "y"],
        [("dropped", "/input/1"), ("dropped", "/input/2")],
    )


@pytest.mark.parametrize(
    ("form", "content"), [("null", {"content": None}), ("empty", {"content": ""}), ("omit", {})]
)
def test_c7_provider_decides_the_content_beside_calls(form: Any, content: dict[str, Any]) -> None:
    message = sent(user("x"), CALL, CALL.output("1"), shape=ChatShape(assistant_content=form))[1]
    assert {key: value for key, value in message.items() if key == "content"} == content


# --- tool results ---


def test_c3_image_of_a_result_moves_after_all_results() -> None:
    request = built(
        user("x"), CALL, OTHER, CALL.output([Text("see"), PNG]), OTHER.output("2"), user("and?")
    )
    *_, first, second, moved, last = body(request)["messages"]
    assert (first["content"], second["content"], last["content"]) == ("see", "2", "and?")
    assert moved == {
        "role": "user",
        "content": [{"type": "text", "text": "[attached to the result of call_1]"}, PNG_PART],
    }
    assert changes(request) == [("changed", "/input/3")]


def test_c3_result_of_an_image_alone_refers_to_the_next_message() -> None:
    assert sent(user("x"), CALL, CALL.output([PNG]))[2]["content"] == "[see the next message]"


def test_c3_providers_that_take_parts_get_parts() -> None:
    request = built(
        user("x"), CALL, CALL.output([Text("see"), PNG]), shape=ChatShape(tool_parts=True)
    )
    assert (body(request)["messages"][2]["content"], request.report) == (
        [{"type": "text", "text": "see"}, PNG_PART],
        [],
    )


def test_failed_call_is_marked_in_its_text() -> None:
    request = built(user("x"), CALL, CALL.output("no such city", is_error=True))
    assert (body(request)["messages"][2]["content"], changes(request)) == (
        "[error] no such city",
        [("changed", "/input/2/is_error")],
    )


# --- ids and names ---

MISTRAL = Charset("a-zA-Z0-9", 9, shortest=9)


@pytest.mark.parametrize(
    "call_id", ["call_1", "functions.f:0", "toolu_01L8DKSzJDJUgSqUJ6TDqfCH", "x", ""]
)
def test_ids_fit_the_provider_on_call_and_result(call_id: str) -> None:
    call = FunctionCall(call_id, "f", "{}")
    provider = Provider("mistral-like", base_url="http://x", call_ids=MISTRAL)
    messages = body(
        build(Prompt(input=[user("x"), call, call.output("y")]), "m", provider=provider)
    )["messages"]
    fitted = messages[1]["tool_calls"][0]["id"]
    assert (len(fitted), fitted.isalnum(), fitted) == (9, True, messages[2]["tool_call_id"])


def test_id_that_fits_is_unchanged() -> None:
    call = FunctionCall("gSIMJiOkT", "f", "{}")
    provider = Provider("mistral-like", base_url="http://x", call_ids=MISTRAL)
    assert (
        build(Prompt(input=[user("x"), call, call.output("y")]), "m", provider=provider).report
        == []
    )


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8, unique=True))
def test_ids_stay_distinct_whatever_follows(ids: list[str]) -> None:
    calls = [FunctionCall(call_id, "f", "{}", response_id="r") for call_id in ids]
    provider = Provider("mistral-like", base_url="http://x", call_ids=MISTRAL)
    history = [user("x"), *calls, *(call.output("y") for call in calls)]
    fitted = [
        call["id"]
        for call in body(build(Prompt(input=history), "m", provider=provider))["messages"][1][
            "tool_calls"
        ]
    ]
    first = body(
        build(Prompt(input=[user("x"), calls[0], calls[0].output("y")]), "m", provider=provider)
    )["messages"][1]["tool_calls"]
    assert (len(set(fitted)), first[0]["id"]) == (len(ids), fitted[0])


def test_models_that_number_calls_get_their_own_id_form() -> None:
    shape = ChatShape(call_id="functions.{name}:{n}")
    request = built(user("x"), CALL, OTHER, CALL.output("1"), OTHER.output("2"), shape=shape)
    messages = body(request)["messages"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["functions.f:0", "functions.g:1"]
    assert [message["tool_call_id"] for message in messages[2:]] == [
        "functions.f:0",
        "functions.g:1",
    ]
    assert {action for action, _ in changes(request)} == {"renamed"}


# --- roles ---


def test_system_messages_keep_their_position() -> None:
    inside = [user("x"), Message("system", [Text("Be kind.")]), user("y")]
    assert roles(*inside, instructions="Be terse.") == ["system", "user", "system", "user"]


def test_developer_is_system_if_the_role_is_unknown() -> None:
    message = Message("developer", [Text("Be kind.")])
    assert roles(message, user("x"), shape=ChatShape(developer_role=True)) == ["developer", "user"]
    assert roles(message, user("x")) == ["system", "user"]


def test_roles_a_provider_refuses_are_replaced() -> None:
    provider = Provider("there", base_url="http://x", roles={"system": "developer"})
    request = build(Prompt(input=[user("x")], instructions="s"), "m", provider=provider)
    assert body(request)["messages"][0]["role"] == "developer"


def test_c5_one_system_message_first_and_later_ones_as_user_text() -> None:
    shape = ChatShape(inner_system=False)
    request = built(
        Message("system", [Text("b")]),
        user("x"),
        Message("system", [Text("c")]),
        shape=shape,
        instructions="a",
    )
    assert [(message["role"], message["content"]) for message in body(request)["messages"]] == [
        ("system", "a\n\nb"),
        ("user", "x"),
        ("user", "<system>\nc\n</system>"),
    ]
    assert changes(request) == [("changed", "/input/2")]


def test_c8_neighbours_are_joined_if_turns_must_alternate() -> None:
    shape = ChatShape(alternate=True)
    text = Message("assistant", [Text("a")])
    messages = sent(user("x"), user("y"), text, text, user("z"), shape=shape)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]),
        ("assistant", "a\n\na"),
        ("user", "z"),
    ]


def test_c9_assistant_is_added_between_tool_and_user() -> None:
    request = built(
        user("x"), CALL, CALL.output("1"), user("y"), shape=ChatShape(tool_then_user=False)
    )
    assert [message["role"] for message in body(request)["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert changes(request) == [("generated", "/input/3")]


def test_c10_request_that_ends_with_the_assistant() -> None:
    assert sent(user("x"), TEXT)[-1] == {"role": "assistant", "content": "so"}
    assert sent(user("x"), TEXT, shape=ChatShape(prefill="prefix"))[-1] == {
        "role": "assistant",
        "content": "so",
        "prefix": True,
    }
    request = built(user("x"), TEXT, traits=Traits(prefill=False))
    assert (body(request)["messages"][-1], changes(request)) == (
        {"role": "user", "content": "Continue."},
        [("generated", "/input")],
    )


def test_openais_chat_gets_at_most_four_stop_sequences() -> None:
    """Found by the strict provider: OpenAI refuses a fifth."""
    prompt = Prompt(input="hi", stop=["a", "b", "c", "d", "e"])
    request = build(prompt, "openai:gpt-4o", wire_api="chat")
    assert msgspec.json.decode(request.body)["stop"] == ["a", "b", "c", "d"]
    assert [(change.action, change.path) for change in request.report] == [("changed", "/stop")]


def test_openais_chat_gets_call_ids_of_forty_characters() -> None:
    """Found by the strict provider: OpenAI refuses longer ones, other servers do not."""
    call = FunctionCall("toolu_" + "x" * 40, "f", "{}")
    prompt = Prompt(input=[user("hi"), call, call.output("18")])
    request = build(prompt, "openai:gpt-4o", wire_api="chat")
    messages = msgspec.json.decode(request.body)["messages"]
    call_id = messages[1]["tool_calls"][0]["id"]
    assert len(call_id) == 40
    assert messages[2]["tool_call_id"] == call_id
    kept = build(prompt, "custom:m", wire_api="chat", base_url="http://x")
    assert call.call_id.encode() in kept.body


@pytest.mark.parametrize("wire_api", ["chat", "ollama"])
def test_system_messages_alone_are_sent(wire_api: WireApi) -> None:
    system = Message("system", (Text("Be brief."),))
    for prompt in (Prompt(instructions="Be brief."), Prompt([system])):
        request = build(prompt, "custom:m", wire_api=wire_api, base_url="http://x")
        assert body(request)["messages"] == [{"role": "system", "content": "Be brief."}]
        assert request.report == []


@pytest.mark.parametrize("model", ["mistral:m", "deepseek:deepseek-chat", "minimax:m"])
def test_system_messages_alone_are_sent_to_providers(model: str) -> None:
    request = build(Prompt(instructions="Be brief.", tools=[]), model, wire_api="chat")
    assert [message["role"] for message in body(request)["messages"]] == ["system"]


PREFIX = {"role": "assistant", "content": "The answer is"}


@pytest.mark.parametrize(
    ("model", "mark"),
    [
        ("mistral:m", "prefix"),
        ("deepseek:deepseek-chat", "prefix"),
        ("deepseek:deepseek-reasoner", "prefix"),
        ("moonshot:kimi-k2.5", "partial"),
        ("moonshot:moonshot-v1-8k", "partial"),
        ("moonshot-cn:kimi-k3", "partial"),
        ("kimi-coding:k3", "partial"),
        ("qwen:qwen3-max", "partial"),
    ],
)
def test_assistant_message_at_the_end_is_marked(model: str, mark: str) -> None:
    def messages(*items: ResponseItem) -> list[dict[str, Any]]:
        sent = body(build(Prompt(items), model, wire_api="chat"))["messages"]
        return [{key: message.get(key) for key in (*PREFIX, mark)} for message in sent]

    turns = (user("x"), assistant("The answer is"))
    assert messages(*turns)[-1] == {**PREFIX, mark: True}
    # Amid the conversation it is a message like any other.
    assert [message[mark] for message in messages(*turns, user("y"))] == [None] * 3


@pytest.mark.parametrize(
    "model",
    ["vllm:qwen3", "vllm:kimi-k2", "vllm:deepseek-v3", "llamacpp:m", "sglang:m", "sglang:kimi-k2"],
)
def test_assistant_message_at_the_end_is_continued_by_the_body(model: str) -> None:
    fields = {"continue_final_message": True}
    if not model.startswith("sglang"):
        fields["add_generation_prompt"] = False
    turns = (user("x"), assistant("The answer is"))
    request = build(Prompt(turns), model, wire_api="chat")
    sent = body(request)
    assert {key: sent.get(key) for key in fields} == fields
    assert sent["messages"][-1]["content"] == "The answer is"
    assert request.report == []
    assert not fields.keys() & body(build(Prompt((*turns, user("y"))), model, wire_api="chat"))
    own = build(Prompt(turns, extra={"continue_final_message": False}), model, wire_api="chat")
    assert body(own)["continue_final_message"] is False


def test_user_message_follows_a_refused_assistant_message() -> None:
    request = build(Prompt([user("x"), assistant("The answer is")]), "perplexity:sonar")
    assert body(request)["messages"][-1] == {"role": "user", "content": "Continue."}
    assert [change.action for change in request.report] == ["generated"]
