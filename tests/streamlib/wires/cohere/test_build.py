"""Requests of Cohere's v2 chat: built, decoded, and built again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    Audio,
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
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    StreamError,
    Text,
    ToolSpec,
    accumulate,
    build,
    parse_body,
    parse_request,
    user,
)
from streamlib.wires.cohere.build_messages import ATTACHED
from tests.support.cases import each_case

MODEL = "cohere:command-a-reasoning-08-2025"
CALL = FunctionCall("c1", "f", '{"a": 1.0}')
TOOL = ToolSpec("f", schema={"type": "object", "properties": {}})
PNG = Image("iVBORw0KGgo=", media_type="image/png")
DOCUMENT = {"type": "document", "document": {"data": {"text": "3 degrees"}, "id": "d"}}


def sent(*items: ResponseItem, **settings: Any) -> tuple[Any, list[str]]:
    """The body, and the paths of the report."""
    request = build(Prompt(list(items), **settings), MODEL)
    return msgspec.json.decode(request.body), [change.path for change in request.report]


def messages(*items: ResponseItem) -> Any:
    body, report = sent(*items)
    assert report == []
    return body["messages"]


def test_response_goes_back_as_it_came() -> None:
    """Invariant 5: contents in their order, the plan, the calls, citations by their content."""
    cited = {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "tool", "id": "t"}]}
    message = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}],
        "tool_plan": "I will look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0}'}}
        ],
        "citations": [{**cited, "content_index": 1}, {**cited, "type": "PLAN"}],
    }
    body = msgspec.json.encode({"id": "r", "finish_reason": "TOOL_CALL", "message": message})
    origin = Origin("cohere", "cohere", "https://api.cohere.com", "command-a-reasoning-08-2025")
    response = accumulate(parse_body("cohere", body, origin=origin))
    sent_again = messages(user("?"), *response.items, CALL.output("1"))
    assert sent_again[1] == message
    assert sent_again[2] == {"role": "tool", "tool_call_id": "c1", "content": "1"}


def test_plan_without_a_call_is_sent_as_text() -> None:
    plan = Message("assistant", [Text("I will look.")], phase="commentary")
    body, report = sent(user("?"), plan, user("!"))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "I will look."}]
    assert report == ["/input/1"]


def test_each_response_is_a_message_of_its_own() -> None:
    first = Message("assistant", [Text("a")], response_id="r1")
    second = Message("assistant", [Text("b")], response_id="r2")
    assert [message["role"] for message in messages(user("?"), first, second)] == [
        "user",
        "assistant",
        "assistant",
    ]


def test_images_of_results_follow_in_a_user_message() -> None:
    body, report = sent(user("?"), CALL, CALL.output([Text("a"), PNG]))
    assert body["messages"][2]["content"] == [{"type": "text", "text": "a"}]
    assert body["messages"][3]["content"][1]["type"] == "image_url"
    assert report == ["/input/2"]


def test_media_that_cohere_lacks_are_reported() -> None:
    notes = Document(data=b"The port is 17.", media_type="text/plain", name="notes.txt")
    pdf = Document("JVBERi0=", media_type="application/pdf")
    audio = Audio("AAAA", media_type="audio/wav", transcript="Hello")
    body, report = sent(user("?", notes, pdf, audio, PNG))
    kinds = [content["type"] for content in body["messages"][0]["content"]]
    assert kinds == ["text", "text", "text", "image_url"]
    assert report == ["/input/0/content/1", "/input/0/content/2", "/input/0/content/3"]


@pytest.mark.parametrize(
    ("reasoning", "thinking", "decoded"),
    [
        ("off", {"type": "disabled"}, "off"),
        ("low", {"type": "enabled", "token_budget": 2048}, ReasoningOptions("low")),
        (500, {"type": "enabled", "token_budget": 500}, ReasoningOptions(budget=500)),
        (ReasoningOptions(), {"type": "enabled"}, ReasoningOptions()),
        (ReasoningOptions(budget=0), {"type": "disabled"}, "off"),
        (None, None, None),
    ],
)
def test_thinking_has_a_number_of_tokens(reasoning: Any, thinking: Any, decoded: Any) -> None:
    body, report = sent(user("?"), reasoning=reasoning)
    assert body.get("thinking") == thinking
    # the wire has no levels: what one becomes is said, as on the other wires
    assert report == (["/reasoning"] if reasoning == "low" else [])
    assert parse_request("cohere", msgspec.json.encode(body)).reasoning == decoded


def test_model_that_does_not_think_gets_no_thinking() -> None:
    request = build(Prompt("?", reasoning="high"), "cohere:command-a-03-2025")
    assert b"thinking" not in request.body
    assert [change.path for change in request.report] == ["/reasoning"]


@pytest.mark.parametrize(
    ("choice", "word", "report"),
    [
        ("auto", None, []),
        ("required", "REQUIRED", []),
        ("none", "NONE", []),
        ("f", "REQUIRED", ["/tool_choice"]),
    ],
)
def test_tool_choice_cannot_name_a_tool(choice: str, word: str | None, report: list[str]) -> None:
    body, paths = sent(user("?"), tools=[TOOL, ToolSpec("g")], tool_choice=choice)
    assert (body.get("tool_choice"), paths) == (word, report)


def test_the_only_tool_can_be_named() -> None:
    body, report = sent(user("?"), tools=[TOOL], tool_choice="f")
    assert (body["tool_choice"], report) == ("REQUIRED", [])


def test_strict_is_for_all_tools() -> None:
    strict = msgspec.structs.replace(TOOL, strict=True)
    body, report = sent(user("?"), tools=[strict])
    assert (body["strict_tools"], report) == (True, [])
    other = ToolSpec("g")
    body, report = sent(user("?"), tools=[strict, other])
    assert ("strict_tools" in body, report) == (False, ["/tools/0/strict"])


def test_free_form_call_is_a_function_with_one_text() -> None:
    call = CustomToolCall("c1", "f", "x = 1")
    body, report = sent(user("?"), call, call.output("1"))
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"input":"x = 1"}'
    assert report == ["/input/1"]


def test_failed_output_is_marked_in_its_text() -> None:
    body, report = sent(user("?"), CALL, CALL.output("no", is_error=True))
    assert body["messages"][2]["content"] == "[error] no"
    assert report == ["/input/2/is_error"]


def test_nothing_to_send_is_refused() -> None:
    with pytest.raises(StreamError) as refused:
        build(Prompt("", instructions="x"), MODEL)
    assert refused.value.info.code == "empty_input"


def test_documents_go_through_extra_and_are_decoded_there() -> None:
    extra = {"documents": ["a", {"id": "d", "data": {"text": "b"}}], "safety_mode": "OFF"}
    body, report = sent(user("?"), extra=extra)
    assert (body["documents"], report) == (extra["documents"], [])
    prompt = parse_request("cohere", msgspec.json.encode(body))
    assert prompt.extra == extra


def test_document_of_a_result_keeps_its_form() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [DOCUMENT]},
        ],
    }
    prompt = parse_request("cohere", msgspec.json.encode(body))
    request = build(prompt, MODEL)
    assert msgspec.json.decode(request.body)["messages"][2]["content"] == [DOCUMENT]
    # Another wire gets its JSON as text.
    other = build(prompt, "custom:m", base_url="http://x")
    assert "3 degrees" in msgspec.json.decode(other.body)["messages"][2]["content"]


def test_unknown_content_goes_back_only_to_cohere() -> None:
    item = Opaque("hologram", {"type": "hologram", "light": 1}, origin=Origin("cohere"))
    answer = messages(user("?"), item)[1]
    assert answer["content"] == [{"type": "hologram", "light": 1}]


def test_reasoning_of_another_origin_is_text() -> None:
    """Invariant 6: Cohere would take it for its own."""
    reasoning = Reasoning("Hm", signature="c2ln", origin=Origin("messages"))
    body, report = sent(user("?"), reasoning)
    assert body["messages"][1]["content"][0]["type"] == "text"
    assert b"c2ln" not in msgspec.json.encode(body)
    assert report == ["/input/1"]


@pytest.mark.parametrize("citations", [1, [1], {"a": 1}])
def test_value_that_is_not_a_list_of_citations_is_reported(citations: Any) -> None:
    """A response may have anything in that key; it raised TypeError in the next request."""
    reasoning = Reasoning("Hm", native={"citations": citations}, origin=Origin("cohere"))
    body, report = sent(user("?"), reasoning)
    assert body["messages"][1]["content"] == [{"type": "thinking", "thinking": "Hm"}]
    assert len(report) == 1


def test_empty_text_beside_calls_is_not_a_message() -> None:
    """Clients write one; replayed without it, the request is the same for the model."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for content in ("", [{"type": "text", "text": ""}]):
        message = {"role": "assistant", "content": content, "tool_calls": [call]}
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, message]}
        prompt = parse_request("cohere", msgspec.json.encode(body))
        assert [type(item).__name__ for item in prompt.items] == ["Message", "FunctionCall"]


# --- what is sent of each item, and what the report says ---

HERE = Origin("cohere")
URL = Image(url="https://x/a.png")


def plan(text: str, **fields: Any) -> Message:
    return Message("assistant", (Text(text),), "commentary", **fields)


def said(text: str, **fields: Any) -> Message:
    return Message("assistant", (Text(text),), **fields)


SENT: list[tuple[list[ResponseItem], list[Any], list[tuple[str, str]]]] = [
    (
        [Message("user", ())],
        [],
        [("dropped", "/input/1")],
    ),
    (
        [Message("user", (Text(""), Text("a")))],
        [{"role": "user", "content": "a"}],
        [("dropped", "/input/1/content/0")],
    ),
    (
        [Message("system", (Text("a"), URL))],
        [{"role": "system", "content": "a"}],
        [("dropped", "/input/1")],
    ),
    (
        [Message("developer", (Text("a"),))],
        [{"role": "system", "content": "a"}],
        [],
    ),
    (
        [said("")],
        [],
        [("dropped", "/input/1/content/0")],
    ),
    (
        [ServerToolCall("s1", "web", origin=HERE), ServerToolResult("s1", "web", [], origin=HERE)],
        [],
        [("dropped", "/input/1"), ("dropped", "/input/2")],
    ),
    (
        [Message("assistant", ())],
        [],
        [("dropped", "/input/1")],
    ),
    (
        [Message("assistant", (Text("a"), PNG))],
        [
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": ATTACHED},
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                    },
                ],
            },
        ],
        [("changed", "/input/1/content/1")],
    ),
    (
        [plan("a"), plan("b"), CALL, CALL.output("1")],
        [
            {
                "role": "assistant",
                "tool_plan": "ab",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": 1.0}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
        ],
        [("changed", "/input/2")],
    ),
    (
        [CALL, said("late"), CALL.output("1")],
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "late"}],
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": 1.0}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
        ],
        [("changed", "/input/2")],
    ),
    (
        [Reasoning("", ("a", "b"), origin=HERE)],
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "a\n\nb"}]}],
        [],
    ),
    (
        [Reasoning("a", signature="c2ln", origin=HERE)],
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "a", "signature": "c2ln"}],
            }
        ],
        [],
    ),
    (
        [Reasoning("", origin=HERE)],
        [],
        [("dropped", "/input/1")],
    ),
    (
        [Compaction("so far", origin=HERE)],
        [{"role": "user", "content": "so far"}],
        [("changed", "/input/1")],
    ),
    (
        [Compaction(encrypted_content="x", origin=HERE)],
        [],
        [("dropped", "/input/1")],
    ),
    (
        [FunctionCall("c1", "f", ""), CALL.output([Text("a"), URL])],
        [
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": ATTACHED},
                    {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
                ],
            },
        ],
        [("changed", "/input/2")],
    ),
    (
        [CALL, CALL.output([Text("a")], is_error=True)],
        [
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": 1.0}'},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "text", "text": "[error]"}, {"type": "text", "text": "a"}],
            },
        ],
        [("changed", "/input/2/is_error")],
    ),
    (
        [Message("user", (Image(url="https://x/a.png", name="a.png"),))],
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}],
            }
        ],
        [("dropped", "/input/1/content/0/name")],
    ),
    (
        [Message("user", (Audio(transcript="said"),))],
        [{"role": "user", "content": "said"}],
        [("changed", "/input/1/content/0")],
    ),
]


@each_case("items, written, report", SENT)
def test_items_are_sent_as_messages(
    items: list[ResponseItem], written: list[Any], report: list[tuple[str, str]]
) -> None:
    request = build(Prompt([user("x"), *items]), MODEL)
    body = msgspec.json.decode(request.body)
    assert body["messages"] == [{"role": "user", "content": "x"}, *written]
    assert [(change.action, change.path) for change in request.report] == report
    assert all(change.reason for change in request.report)


def test_stream_is_asked_for_unless_it_is_false() -> None:
    for stream, sent_stream in ((None, True), (True, True), (False, False)):
        body, _ = sent(user("x"), stream=stream)
        assert body["stream"] is sent_stream


@each_case(
    "settings, fields, report",
    [
        ({"logprobs": 0}, {"logprobs": True}, []),
        ({"logprobs": 3}, {"logprobs": True}, ["/logprobs"]),
        ({"logprobs": None}, {}, []),
        ({"tool_choice": "auto", "tools": [TOOL]}, {}, []),
        ({"tool_choice": "none"}, {"tool_choice": "NONE"}, []),
        ({"tool_choice": "required"}, {}, ["/tool_choice"]),
        ({"cache": "auto"}, {}, []),
        ({"n": 2}, {}, ["/n"]),
        ({"seed": 0, "top_k": 0, "top_p": 0.0}, {"seed": 0, "k": 0, "p": 0.0}, []),
        ({"stop": "END"}, {"stop_sequences": ["END"]}, []),
        (
            {"reasoning": ReasoningOptions("high", budget=9)},
            {"thinking": {"type": "enabled", "token_budget": 9}},
            ["/reasoning/effort"],
        ),
    ],
)
def test_settings_are_sent_as_fields(
    settings: dict[str, Any], fields: dict[str, Any], report: list[str]
) -> None:
    body, paths = sent(user("x"), **settings)
    known = {"model", "messages", "stream", "tools"}
    assert {key: value for key, value in body.items() if key not in known} == fields
    assert paths == report
