"""Chat requests: providers' rules are met by values, changes are reported, history is replayed."""

from __future__ import annotations

import json
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
    Provider,
    Reasoning,
    ReasoningOptions,
    Refusal,
    Request,
    ResponseItem,
    ServerToolCall,
    StreamError,
    Text,
    ToolSpec,
    accumulate,
    build,
    parse_body,
    parse_request,
    parser,
    user,
)
from streamlib.providers.models import Traits
from streamlib.providers.names import Charset
from streamlib.providers.shapes import (
    ANYTHING,
    EFFORT,
    ENABLE_THINKING,
    GOOGLE,
    REASONING_ENABLED,
    REASONING_OBJECT,
    TEMPLATE_ENABLE_THINKING,
    TEMPLATE_THINKING,
    THINKING_TYPE,
    ChatShape,
    Thinking,
)
from tests.support.shared import (
    BODIES,
    CORPUS,
    PAYLOADS,
    STREAMS,
    Recording,
    each_recording,
    require,
)

HERE = Origin("chat")
REASONING = Reasoning("hm", origin=HERE, response_id="r1")
TEXT = Message("assistant", [Text("so")], origin=HERE, response_id="r1")
CALL = FunctionCall("call_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE, response_id="r1")
OTHER = FunctionCall("call_2", "g", "{}", origin=HERE, response_id="r1")
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/jpeg")
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def built(
    *items: ResponseItem,
    shape: ChatShape = ANYTHING,
    model: str = "m",
    traits: Traits | None = None,
    **settings: Any,
) -> Request:
    provider = Provider("there", base_url="http://x", chat=shape)
    return build(
        Prompt(input=items or (user("hi"),), **settings),
        model,
        provider=provider,
        models={model: traits} if traits else None,
    )


def body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def sent(*items: ResponseItem, **settings: Any) -> list[dict[str, Any]]:
    return body(built(*items, **settings))["messages"]  # type: ignore[no-any-return]


def roles(*items: ResponseItem, **settings: Any) -> list[str]:
    return [message["role"] for message in sent(*items, **settings)]


def changes(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


# --- one answer, one message ---


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
    assert changes(request) == [("changed", "/input/1")]


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


def test_c3_image_of_a_result_moves_behind_all_results() -> None:
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


# --- thoughts ---


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "reasoning_text"])
def test_c6_reasoning_is_sent_under_the_providers_key(key: str) -> None:
    assert sent(user("x"), REASONING, TEXT, user("y"), shape=ChatShape(reasoning_echo=(key,)))[
        1
    ] == {
        "role": "assistant",
        "content": "so",
        key: "hm",
    }


def test_c6_reasoning_is_sent_in_tags_or_parts() -> None:
    tags = sent(
        user("x"), REASONING, TEXT, user("y"), shape=ChatShape(reasoning_echo=("think_tags",))
    )[1]
    assert tags == {"role": "assistant", "content": "<think>\nhm\n</think>\n\nso"}
    signed = msgspec.structs.replace(REASONING, signature="Sig", native={"closed": True})
    parts = sent(
        user("x"), signed, TEXT, user("y"), shape=ChatShape(reasoning_echo=("thinking_parts",))
    )[1]
    assert parts["content"] == [
        {
            "type": "thinking",
            "thinking": [{"type": "text", "text": "hm"}],
            "signature": "Sig",
            "closed": True,
        },
        {"type": "text", "text": "so"},
    ]


def test_c6_reasoning_without_a_field_is_dropped_and_reported() -> None:
    request = built(user("x"), REASONING, TEXT, user("y"), shape=ChatShape())
    assert (body(request)["messages"][1], changes(request)) == (
        {"role": "assistant", "content": "so"},
        [("dropped", "/input/1")],
    )


def test_c6_reasoning_is_sent_only_beside_calls() -> None:
    shape = ChatShape(reasoning_echo=("reasoning_content",), echo_turns="calls")
    second = [msgspec.structs.replace(item, response_id="r2") for item in (REASONING, TEXT)]
    request = built(user("x"), REASONING, CALL, CALL.output("1"), *second, user("y"), shape=shape)
    messages = body(request)["messages"]
    assert (messages[1]["reasoning_content"], "reasoning_content" in messages[3]) == ("hm", False)
    assert changes(request) == [("dropped", "/input/4")]


def test_c6_required_reasoning_that_is_missing_is_filled_in() -> None:
    shape = ChatShape(reasoning_echo=("reasoning_content",), echo_turns="calls", echo_filler=" ")
    request = built(
        user("x"),
        CALL,
        CALL.output("1"),
        msgspec.structs.replace(TEXT, response_id="r2"),
        user("y"),
        shape=shape,
    )
    messages = body(request)["messages"]
    assert (messages[1]["reasoning_content"], "reasoning_content" in messages[3]) == (" ", False)
    assert changes(request) == [("generated", "/input/1")]


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "hm",
        "signature": "Sig",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 1},
]
OPENROUTER = ChatShape(reasoning_echo=("reasoning_details", "reasoning"))


def test_c6_reasoning_details_are_replayed_complete_and_once() -> None:
    reasoning = msgspec.structs.replace(
        REASONING, native={"reasoning_details": DETAILS}, signature="Sig"
    )
    request = built(
        user("x"), reasoning, CALL, OTHER, CALL.output("1"), OTHER.output("2"), shape=OPENROUTER
    )
    message = body(request)["messages"][1]
    assert (message["reasoning_details"], "reasoning" in message, request.report) == (
        DETAILS,
        False,
        [],
    )


def test_c6_lists_of_several_items_are_one_list_in_order() -> None:
    reasoning = [
        msgspec.structs.replace(
            REASONING, native={"reasoning_details": [element]}, content=element.get("text", "")
        )
        for element in DETAILS
    ]
    assert (
        sent(user("x"), *reasoning, TEXT, user("y"), shape=OPENROUTER)[1]["reasoning_details"]
        == DETAILS
    )


def test_c6_encrypted_details_do_not_replace_the_text() -> None:
    reasoning = msgspec.structs.replace(REASONING, native={"reasoning_details": DETAILS[1:]})
    message = sent(user("x"), reasoning, TEXT, user("y"), shape=OPENROUTER)[1]
    assert (message["reasoning_details"], message["reasoning"]) == (DETAILS[1:], "hm")


def test_c6_details_without_their_text_get_it_back() -> None:
    details = [{**DETAILS[0], "text": ""}, DETAILS[1]]
    reasoning = msgspec.structs.replace(REASONING, native={"reasoning_details": details})
    assert (
        sent(user("x"), reasoning, TEXT, user("y"), shape=OPENROUTER)[1]["reasoning_details"]
        == DETAILS
    )


def test_c6_edited_reasoning_is_sent_as_edited() -> None:
    """A typed field wins."""
    reasoning = msgspec.structs.replace(
        REASONING, content="ah", native={"reasoning_details": DETAILS}
    )
    request = built(user("x"), reasoning, TEXT, user("y"), shape=OPENROUTER)
    message = body(request)["messages"][1]
    assert (message["reasoning"], "reasoning_details" in message, changes(request)) == (
        "ah",
        False,
        [("changed", "/input/1")],
    )


def test_c6_keys_of_copilot_and_litellm_are_replayed() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "Sig"}]
    reasoning = msgspec.structs.replace(
        REASONING, native={"thinking_blocks": blocks, "reasoning_opaque": "O"}
    )
    message = sent(user("x"), reasoning, TEXT, user("y"))[1]
    assert (
        message["thinking_blocks"],
        message["reasoning_opaque"],
        "reasoning_content" in message,
    ) == (blocks, "O", False)


@pytest.mark.parametrize(
    ("foreign", "content"),
    [
        (
            Reasoning("hm", signature="s", origin=Origin("messages"), response_id="r"),
            "<think>\nhm\n</think>\n\nso",
        ),
        (
            Reasoning(
                "hm",
                native={"reasoning_details": DETAILS},
                origin=Origin("chat", "elsewhere"),
                response_id="r",
            ),
            "<think>\nhm\n</think>\n\nso",
        ),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses"), response_id="r"), "so"),
        (
            Reasoning(summary=["a", "b"], encrypted_content="gAAA", origin=Origin("responses")),
            "<think>\na\n\nb\n</think>\n\nso",
        ),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), "so"),
    ],
)
def test_foreign_state_is_downgraded_and_reported(foreign: Any, content: str) -> None:
    message = Message(
        "assistant", [Text("so")], origin=foreign.origin, response_id=foreign.response_id
    )
    request = built(user("x"), foreign, message, user("y"))
    assert body(request)["messages"][1] == {"role": "assistant", "content": content}
    assert [path for _, path in changes(request)] == ["/input/1"]
    assert b"gAAA" not in request.body
    assert b"Sig" not in request.body


# --- who says what ---


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


def test_c9_assistant_stands_between_tool_and_user_if_required() -> None:
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


# --- what is said ---


@pytest.mark.parametrize(
    ("part", "sent_as"),
    [
        (PNG, PNG_PART),
        (
            Image(url="https://x/y.png", native={"detail": "low"}),
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        ),
        (Image(file_id="file_1"), {"type": "file", "file": {"file_id": "file_1"}}),
        (
            Document("JVBERi0=", name="a.pdf"),
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            },
        ),
        (Document(file_id="file_1"), {"type": "file", "file": {"file_id": "file_1"}}),
        (
            Document(url="https://x/a.pdf"),
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "https://x/a.pdf"}},
        ),
        (
            Document("aGk=", media_type="text/markdown", name="a.md"),
            {"type": "text", "text": "[a.md]\nhi"},
        ),
        (
            Audio("AAAA", media_type="audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        ),
        (
            Audio("AAAA", media_type="audio/wav"),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ),
        (Audio(url="https://x/a.mp3", transcript="hm"), {"type": "text", "text": "hm"}),
        (Text("{}", native={"type": "hologram"}), {"type": "hologram"}),
    ],
)
def test_images_documents_and_audio_in_every_form(part: Any, sent_as: dict[str, Any]) -> None:
    assert sent(user("see", part))[0]["content"] == [{"type": "text", "text": "see"}, sent_as]


def test_native_of_another_wires_part_is_not_sent() -> None:
    message = Message(
        "user", [Text("{}", native={"type": "container_upload"})], origin=Origin("messages")
    )
    assert sent(message)[0]["content"] == "{}"


def test_images_of_an_assistant_move_into_a_user_message() -> None:
    drawn = Message("assistant", [Text("see"), PNG], origin=HERE, response_id="r1")
    request = built(user("x"), drawn, CALL, CALL.output("1"), user("y"))
    messages = body(request)["messages"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
    ]
    assert messages[3]["content"] == [
        {"type": "text", "text": "[attached to the answer above]"},
        PNG_PART,
    ]
    assert changes(request) == [("changed", "/input/1")]


@pytest.mark.parametrize(
    ("form", "contents"),
    [
        ("auto", ["one", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]]),
        ("string", ["one", "one\n\ntwo"]),
        (
            "parts",
            [
                [{"type": "text", "text": "one"}],
                [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            ],
        ),
    ],
)
def test_content_is_a_string_or_parts_as_the_provider_takes(form: Any, contents: list[Any]) -> None:
    items = [user("one"), Message("user", [Text("one"), Text("two")])]
    assert [
        message["content"] for message in sent(*items, shape=ChatShape(content=form))
    ] == contents


# --- caching ---


def test_cache_markers_are_on_the_last_part_at_most_four() -> None:
    shape = ChatShape(cache_control=True)
    history = [
        user("a"),
        TEXT,
        user("b"),
        msgspec.structs.replace(TEXT, response_id="r2"),
        user("c"),
        CALL,
        CALL.output("1"),
    ]
    messages = sent(*history, shape=shape, cache=CacheOptions("1h", range(7)))
    marked = [message["role"] for message in messages if isinstance(message.get("content"), list)]
    assert marked == ["assistant", "user", "tool"]
    assert messages[-1]["content"][-1] == {
        "type": "text",
        "text": "1",
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }


def test_unsupported_cache_breakpoints_are_reported() -> None:
    assert changes(built(cache=CacheOptions(breakpoints=[0]))) == [
        ("dropped", "/cache/breakpoints")
    ]
    assert built(cache="auto").report == []


# --- thinking ---


@pytest.mark.parametrize(
    ("style", "options", "fields"),
    [
        (EFFORT, "high", {"reasoning_effort": "high"}),
        (EFFORT, "off", {"reasoning_effort": "none"}),
        (EFFORT, 3000, {"reasoning_effort": "medium"}),
        (EFFORT, ReasoningOptions(), {}),
        (THINKING_TYPE, "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        (THINKING_TYPE, 3000, {"thinking": {"type": "enabled", "budget_tokens": 3000}}),
        (THINKING_TYPE, "off", {"thinking": {"type": "disabled"}}),
        (ENABLE_THINKING, "medium", {"enable_thinking": True, "thinking_budget": 10_000}),
        (ENABLE_THINKING, ReasoningOptions(), {"enable_thinking": True}),
        (ENABLE_THINKING, "off", {"enable_thinking": False}),
        (REASONING_OBJECT, "max", {"reasoning": {"effort": "xhigh"}}),
        (REASONING_OBJECT, 3000, {"reasoning": {"max_tokens": 3000}}),
        (REASONING_OBJECT, ReasoningOptions(), {"reasoning": {"enabled": True}}),
        (REASONING_OBJECT, "off", {"reasoning": {"enabled": False}}),
        (REASONING_ENABLED, "low", {"reasoning": {"enabled": True}, "reasoning_effort": "low"}),
        (
            TEMPLATE_ENABLE_THINKING,
            ReasoningOptions(),
            {"chat_template_kwargs": {"enable_thinking": True}},
        ),
        (TEMPLATE_THINKING, "off", {"chat_template_kwargs": {"thinking": False}}),
        (GOOGLE, 3000, {"extra_body": {"google": {"thinking_config": {"thinking_budget": 3000}}}}),
        (Thinking(on={"think": 1}), "low", {"think": 1}),
        (Thinking(on={"think": 1}), "off", {}),
        (None, "low", {}),
    ],
)
def test_thinking_is_requested_in_the_providers_form(
    style: Thinking | None, options: Any, fields: dict[str, Any]
) -> None:
    without = body(built(shape=ChatShape(thinking=style)))
    sent = body(built(shape=ChatShape(thinking=style), reasoning=options))
    assert {key: value for key, value in sent.items() if key not in without} == fields


@pytest.mark.parametrize(
    ("style", "options"),
    [
        (EFFORT, 3000),
        (ENABLE_THINKING, "low"),
        (REASONING_OBJECT, "max"),
        (Thinking(on={"think": 1}), "low"),
        (None, "low"),
    ],
)
def test_changed_thinking_is_reported(style: Thinking | None, options: Any) -> None:
    assert [
        path for _, path in changes(built(shape=ChatShape(thinking=style), reasoning=options))
    ] == ["/reasoning"]


def test_model_gets_a_level_it_takes() -> None:
    request = built(traits=Traits(efforts=("low", "high"), thinking_off=""), reasoning="max")
    assert (body(request)["reasoning_effort"], changes(request)) == (
        "high",
        [("changed", "/reasoning")],
    )
    always = built(traits=Traits(efforts=("low", "high"), thinking_off=""), reasoning="off")
    assert (body(always)["reasoning_effort"], changes(always)) == (
        "low",
        [("changed", "/reasoning")],
    )
    never = built(traits=Traits(thinking=()), reasoning="low")
    assert ("reasoning_effort" in body(never), changes(never)) == (
        False,
        [("dropped", "/reasoning")],
    )


def test_summary_and_display_are_dropped() -> None:
    assert changes(built(reasoning=ReasoningOptions("low", summary="auto", display="omitted"))) == [
        ("dropped", "/reasoning/summary"),
        ("dropped", "/reasoning/display"),
    ]


# --- tools and settings ---


def test_tools_functions_free_form_and_hosted() -> None:
    hosted = {"type": "web_search", "x": 1}
    grammar = {"type": "grammar", "syntax": "lark", "definition": "a"}
    tools = [
        TOOL,
        ToolSpec("p", format=grammar),
        ToolSpec("q", format={"type": "text"}),
        ToolSpec("w", native=hosted),
        ToolSpec("s", strict=True),
    ]
    assert body(built(tools=tools))["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "does f", "parameters": TOOL.schema},
        },
        {
            "type": "custom",
            "custom": {
                "name": "p",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "a"}},
            },
        },
        {"type": "custom", "custom": {"name": "q", "format": {"type": "text"}}},
        hosted,
        {
            "type": "function",
            "function": {
                "name": "s",
                "parameters": {"type": "object", "properties": {}},
                "strict": True,
            },
        },
    ]


def test_free_form_call_and_its_result() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    messages = sent(user("x"), call, call.output("ok"))
    assert messages[1]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    ]
    assert messages[2] == {"role": "tool", "tool_call_id": "c", "content": "ok"}


def test_free_form_tools_are_functions_if_unknown() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    request = built(
        user("x"),
        call,
        call.output("ok"),
        tools=[ToolSpec("patch", format={"type": "text"})],
        shape=ChatShape(custom_tools=False),
    )
    assert body(request)["tools"][0]["function"]["parameters"]["required"] == ["input"]
    assert body(request)["messages"][1]["tool_calls"][0]["function"] == {
        "name": "patch",
        "arguments": '{"input":"*** Begin"}',
    }
    assert {path for _, path in changes(request)} == {"/input/1", "/tools/0/format"}


def test_lone_surrogate_in_free_text_is_replaced() -> None:
    call = CustomToolCall("c", "patch", "\ud83d")
    assert sent(user("x"), call, call.output("ok"), shape=ChatShape(custom_tools=False))[1][
        "tool_calls"
    ]
    with pytest.raises(StreamError) as caught:
        built(user("\ud83d"))
    assert caught.value.kind == "invalid_request"


def test_s1_parameters_are_an_object() -> None:
    request = built(tools=[ToolSpec("f", schema={"properties": {}})])
    assert body(request)["tools"][0]["function"]["parameters"] == {
        "properties": {},
        "type": "object",
    }
    assert changes(request) == [("changed", "/tools/0/schema")]


def test_s2_strict_schemas_are_fitted_only_if_requested() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}
    fitted = built(
        tools=[ToolSpec("f", schema=schema, strict=True)], shape=ChatShape(strict_schemas=True)
    )
    assert body(fitted)["tools"][0]["function"]["parameters"]["required"] == ["a"]
    assert fitted.report
    as_asked = built(tools=[ToolSpec("f", schema=schema, strict=True)], output_schema=schema)
    assert body(as_asked)["tools"][0]["function"]["parameters"] == schema
    assert body(as_asked)["response_format"]["json_schema"]["schema"] == schema
    assert as_asked.report == []


@pytest.mark.parametrize(
    ("choice", "choices", "sent", "reported"),
    [
        ("auto", {}, "auto", False),
        ("required", {}, "required", False),
        ("none", {}, "none", False),
        ("f", {}, {"type": "function", "function": {"name": "f"}}, False),
        ("p", {}, {"type": "custom", "custom": {"name": "p"}}, False),
        ("required", {"required": "any"}, "any", False),
        ("required", {"required": "auto"}, "auto", True),
        ("f", {"tool": "required"}, "required", True),
        ("none", {"none": ""}, None, True),
    ],
)
def test_s5_tool_choice_in_the_providers_terms(
    choice: str, choices: dict[str, str], sent: Any, reported: bool
) -> None:
    tools = [TOOL, ToolSpec("p", format={"type": "text"})]
    request = built(tools=tools, tool_choice=choice, shape=ChatShape(tool_choices=choices))
    assert (body(request).get("tool_choice"), [path for _, path in changes(request)]) == (
        sent,
        ["/tool_choice"] if reported else [],
    )


def test_s5_forced_choice_becomes_auto_if_the_model_takes_none() -> None:
    request = built(tools=[TOOL], tool_choice="f", traits=Traits(forced_tools=False))
    assert (body(request)["tool_choice"], changes(request)) == (
        "auto",
        [("changed", "/tool_choice")],
    )


def test_s5_choice_without_tools_is_not_sent() -> None:
    request = built(tool_choice="required", parallel_tools=False)
    assert changes(request) == [("dropped", "/tool_choice"), ("dropped", "/parallel_tools")]


def test_every_setting_has_its_wire_name() -> None:
    sent_body = body(
        built(
            *(),
            max_output_tokens=9,
            temperature=0.5,
            top_p=0.9,
            top_k=3,
            presence_penalty=0.1,
            frequency_penalty=0.2,
            stop=["END"],
            seed=1,
            n=2,
            logprobs=3,
            metadata={"a": "b"},
            service_tier="flex",
            verbosity="low",
            user_id="u",
            tools=[TOOL],
            parallel_tools=False,
        )
    )
    assert {
        key: value for key, value in sent_body.items() if key not in ("messages", "tools", "model")
    } == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "parallel_tool_calls": False,
        "max_tokens": 9,
        "stop": ["END"],
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "logprobs": True,
        "top_logprobs": 3,
        "seed": 1,
        "n": 2,
        "verbosity": "low",
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "user": "u",
    }


def test_names_of_fields_are_the_providers() -> None:
    shape = ChatShape(
        max_tokens="max_completion_tokens",
        user="safety_identifier",
        conversation="metadata.session",
    )
    sent = body(
        built(
            shape=shape, max_output_tokens=9, user_id="u", conversation_id="c", metadata={"a": "b"}
        )
    )
    assert (sent["max_completion_tokens"], sent["safety_identifier"], sent["metadata"]) == (
        9,
        "u",
        {"a": "b", "session": "c"},
    )


@pytest.mark.parametrize(
    ("name", "sent_as"), [("c", "c"), ("a\r\nb: c", None), ("é", None), ("a\x00", None)]
)
def test_conversation_id_never_breaks_a_header(name: str, sent_as: str | None) -> None:
    provider = Provider("there", base_url="http://x", conversation_header="x-conv")
    assert (
        build(Prompt(input="x", conversation_id=name), "m", provider=provider).headers.get("x-conv")
        == sent_as
    )


def test_settings_a_provider_lacks_are_reported() -> None:
    request = built(shape=ChatShape(user=""), user_id="u", top_k=3)
    assert changes(request) == [("dropped", "/top_k"), ("dropped", "/user_id")]


def test_s3_max_tokens_stays_under_the_models_limit() -> None:
    request = built(max_output_tokens=999, traits=Traits(max_output=100))
    assert (body(request)["max_tokens"], changes(request)) == (
        100,
        [("changed", "/max_output_tokens")],
    )


def test_s4_sampling_only_for_models_that_take_it() -> None:
    thinker = Traits(thinking=("level",), sampling=False, thinking_default=False)
    assert body(built(temperature=0.5, traits=thinker))["temperature"] == 0.5
    assert changes(built(temperature=0.5, traits=thinker, reasoning="low")) == [
        ("dropped", "/temperature")
    ]
    assert changes(built(logprobs=0, traits=Traits(thinking=("adaptive",), sampling=False))) == [
        ("dropped", "/logprobs")
    ]


def test_request_without_streaming_has_no_stream_options() -> None:
    sent = body(built(stream=False))
    assert (sent["stream"], "stream_options" in sent) == (False, False)
    assert "stream_options" not in body(built(shape=ChatShape(stream_usage=False)))


def test_structured_output_as_the_provider_takes_it() -> None:
    schema = {
        "title": "My answer",
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    assert body(built(output_schema=schema))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "My_answer", "schema": schema, "strict": True},
    }
    fitted = built(output_schema=schema, shape=ChatShape(strict_schemas=True))
    assert body(fitted)["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    plain = built(output_schema=schema, shape=ChatShape(output="json_object"))
    assert (body(plain)["response_format"], changes(plain)) == (
        {"type": "json_object"},
        [("changed", "/output_schema")],
    )
    assert changes(built(output_schema=schema, shape=ChatShape(output=""))) == [
        ("dropped", "/output_schema")
    ]


def test_provider_values_are_merged_key_by_key() -> None:
    provider = Provider(
        "there",
        base_url="http://x",
        unsupported={"seed": "it has none"},
        rename={"stop": "stop_words"},
        defaults={"stream_options": {"include_obfuscation": False}},
        overrides={"n": 1},
    )
    prompt = Prompt(
        input="x",
        seed=1,
        stop=["END"],
        n=3,
        extra={"stream_options": {"chunk_include_usage": True}},
    )
    request = build(prompt, "m", provider=provider)
    sent = body(request)
    assert (sent["stop_words"], sent["n"], "seed" in sent) == (["END"], 1, False)
    assert sent["stream_options"] == {
        "include_obfuscation": False,
        "include_usage": True,
        "chunk_include_usage": True,
    }


def test_empty_input_is_an_invalid_request() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(instructions="s"), "m", provider=Provider("there", base_url="http://x"))
    assert caught.value.kind == "invalid_request"


# --- law 5 ---


@each_recording("openai-chat", [*STREAMS, *BODIES, *PAYLOADS])
def test_recorded_response_is_replayed_exactly(recording: Recording) -> None:
    response = accumulate(_events(recording))
    items = [
        item
        for item in response.items
        if not (isinstance(item, FunctionCall) and item.status == "incomplete")
    ]
    if response.error is not None or not items:
        return
    request = built(user("x"), *items, *(call.output("y") for call in response.calls), user("z"))
    if any(change.action == "renamed" for change in request.report):
        return  # two calls of one id
    messages = msgspec.json.decode(
        msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])["messages"],
        type=list[msgspec.Raw],
    )
    again = accumulate(
        parse_body("chat", b'{"choices":[{"index":0,"message":%s}]}' % bytes(messages[1]))
    )
    assert _replayed(again.items) == _replayed(tuple(items))


def _events(recording: Recording) -> list[Any]:
    p = parser("chat")
    if recording.path.suffix in BODIES:
        return parse_body("chat", recording.body)
    if recording.path.suffix in PAYLOADS:
        return [
            *(event for payload in recording.payloads for event in p.feed_event(payload)),
            *p.close(),
        ]
    return [*p.feed(recording.body), *p.close()]


def _replayed(items: tuple[ResponseItem, ...]) -> Any:
    """What must come back, byte for byte."""
    details = [
        element
        for item in items
        if isinstance(item, Reasoning)
        for element in (item.native or {}).get("reasoning_details", ())
    ]
    messages = [item for item in items if isinstance(item, Message)]
    parts = [part for message in messages for part in message.content]
    calls = [
        (item.call_id, item.name, item.arguments or "{}", item.signature, item.native)
        for item in items
        if isinstance(item, FunctionCall)
    ]
    text = "".join(message.text for message in messages)
    reasoning = "".join(item.text for item in items if isinstance(item, Reasoning))
    refusal = "".join(part.refusal for part in parts if isinstance(part, Refusal))
    return text, reasoning, refusal, calls, details


EXPLAINED = {
    "databricks_empty_response": "the client wrote its own text for a blank response",
    "huggingface_data_extraction": "the client wrote the JSON of the response anew",
    "groq-test_tool_use_failed": "the client put the reasoning into the text",
    "tool_calls_without_id": "the client generated other ids",
}
"""Part of a recording's name -> why its client did not send back what it received."""


def test_recorded_conversation_continues_as_its_client_did() -> None:
    """The assistant message that the recorded client sent next is the one built of the response."""
    compared = 0
    for recording, following in _continued():
        prompt = parse_request("chat", json.dumps(recording.meta["request_json"]).encode())
        response = accumulate(_events(recording))
        history = [
            *prompt.items,
            *response.items,
            *(call.output("y") for call in response.calls),
            user("z"),
        ]
        count = len(recording.meta["request_json"]["messages"])
        messages = sent(*history, instructions=prompt.instructions)
        if not any(name in recording.path.name for name in EXPLAINED):
            assert _gist(messages[count]) == _gist(
                following.meta["request_json"]["messages"][count]
            ), recording.path.name
            compared += 1
    assert compared > 80


def _continued() -> list[tuple[Recording, Recording]]:
    """Pairs of recordings: the second continues after the response of the first."""
    lines = require(CORPUS / "conversations.jsonl").read_text("utf-8").splitlines()
    chats = [
        record["turns"] for record in map(json.loads, lines) if record["wire"] == "openai-chat"
    ]
    pairs = [
        (Recording(CORPUS / recording), Recording(CORPUS / following))
        for turns in chats
        for recording, following in pairwise(turns)
    ]
    return [
        (recording, following) for recording, following in pairs if _goes_on(recording, following)
    ]


def _goes_on(recording: Recording, following: Recording) -> bool:
    before = (recording.meta.get("request_json") or {}).get("messages") or []
    after = (following.meta.get("request_json") or {}).get("messages") or []
    begins = [_gist(turn) for turn in after[: len(before)]] == [_gist(turn) for turn in before]
    return (
        begins
        and len(after) > len(before) > 0
        and after[len(before)]["role"] == "assistant"
        and accumulate(_events(recording)).error is None
    )


def _gist(message: dict[str, Any]) -> Any:
    """Role, text and calls of a message, in whichever form the client writes them."""
    content = message.get("content") or ""
    text = (
        content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
    )
    calls = [
        (
            call["id"],
            call["function"]["name"],
            json.loads(call["function"]["arguments"] or "{}") or {},
        )
        for call in message.get("tool_calls") or ()
    ]
    return message["role"], text.strip(), calls


TURNS = st.sampled_from(["say", "think", "call", "both", "draw"])


@given(
    st.lists(TURNS, max_size=6),
    st.sampled_from(
        [
            ANYTHING,
            ChatShape(),
            OPENROUTER,
            ChatShape(reasoning_echo=("think_tags",), echo_turns="calls"),
        ]
    ),
)
def test_each_request_begins_with_the_previous_one(turns: list[str], shape: ChatShape) -> None:
    history: list[ResponseItem] = [user("go")]
    requests = [built(*history, shape=shape, tools=[TOOL], instructions="s")]
    for n, turn in enumerate(turns):
        history += _turn(turn, n)
        requests.append(built(*history, shape=shape, tools=[TOOL], instructions="s"))
    for shorter, longer in pairwise(requests):
        assert _elements(longer)[: len(_elements(shorter))] == _elements(shorter)


def _turn(kind: str, n: int) -> list[ResponseItem]:
    reasoning = Reasoning(f"hm{n}", origin=HERE, response_id=f"r{n}")
    call = FunctionCall(f"c{n}", "f", "{}", origin=HERE, response_id=f"r{n}")
    text = Message("assistant", [Text(f"t{n}")], origin=HERE, response_id=f"r{n}")
    turns: dict[str, list[ResponseItem]] = {
        "say": [text, user(f"u{n}")],
        "think": [reasoning, text, user(f"u{n}")],
        "call": [reasoning, call, call.output("1")],
        "both": [reasoning, text, call, call.output([Text("see"), PNG])],
        "draw": [Message("assistant", [PNG], origin=HERE, response_id=f"r{n}"), user(f"u{n}")],
    }
    return turns[kind]


def _elements(request: Request) -> list[bytes]:
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    return [
        bytes(sent["tools"]),
        *map(bytes, msgspec.json.decode(sent["messages"], type=list[msgspec.Raw])),
    ]


# --- the official types ---


def test_requests_match_the_official_types() -> None:
    pydantic = pytest.importorskip("pydantic", reason="it comes with the official SDK")
    types = pytest.importorskip(
        "openai.types.chat", reason="the official SDK's types check the request"
    )
    refusal = Message("assistant", [Refusal("no")], origin=HERE)
    custom = CustomToolCall("c", "p", "x", response_id="r1")
    history = [
        Message("developer", [Text("d")]),
        user(
            "see", PNG, Document("JVBERi0=", name="a.pdf"), Audio("AAAA", media_type="audio/mpeg")
        ),
        *(REASONING, TEXT, CALL, custom, CALL.output([Text("1"), PNG]), custom.output("2")),
        *(user("y"), refusal, user("z")),
    ]
    shape = ChatShape(developer_role=True, strict_schemas=True)
    grammar = {"type": "grammar", "syntax": "lark", "definition": "a"}
    tools = [
        TOOL,
        ToolSpec("p", format=grammar),
        ToolSpec("s", "d", {"type": "object"}, strict=True),
    ]
    sent = body(
        built(
            *history,
            shape=shape,
            tools=tools,
            tool_choice="p",
            output_schema={"type": "object"},
            instructions="s",
        )
    )
    message_types = {
        "developer": types.ChatCompletionDeveloperMessageParam,
        "system": types.ChatCompletionSystemMessageParam,
        "user": types.ChatCompletionUserMessageParam,
        "assistant": types.ChatCompletionAssistantMessageParam,
        "tool": types.ChatCompletionToolMessageParam,
    }
    for message in sent["messages"]:
        kind = message_types[message["role"]]
        assert message.keys() <= kind.__required_keys__ | kind.__optional_keys__
        read = pydantic.TypeAdapter(kind).validate_python(message)
        for parts in (read.get("content"), read.get("tool_calls")):
            if parts is not None and not isinstance(parts, str):
                assert len(list(parts)) > 0  # the parts are checked when they are read
    union = types.ChatCompletionToolUnionParam
    assert list(pydantic.TypeAdapter(list[union]).validate_python(sent["tools"]))
    assert pydantic.TypeAdapter(types.ChatCompletionToolChoiceOptionParam).validate_python(
        sent["tool_choice"]
    )
