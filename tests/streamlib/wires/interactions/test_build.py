"""Interactions requests: the rules I1 to I9 of docs/wires/interactions.md."""

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
    FunctionCallOutput,
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
    ServerToolResult,
    StreamError,
    Text,
    ToolSpec,
    build,
    user,
)
from streamlib.wires.interactions.build_steps import NO_SIGNATURE
from tests.support.cases import each_case
from tests.support.interactions_frames import completed, created, read, step, text

HERE = Origin("interactions")
CALL = FunctionCall("c1", "f", '{"a": 1.0}', origin=HERE)


def built(prompt: Any, model: str = "google:gemini-3.5-flash", **settings: Any) -> Request:
    if not isinstance(prompt, Prompt):
        prompt = Prompt(prompt, **settings)
    return build(prompt, model, wire_api="interactions")


def body(prompt: Any, *args: Any, **settings: Any) -> Any:
    return msgspec.json.decode(built(prompt, *args, **settings).body)


def steps(items: list[ResponseItem], **settings: Any) -> Any:
    return body(items, **settings)["input"]


def paths(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


def test_request_goes_to_the_provider_that_offers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    google = built("Hi")
    assert google.url == "https://generativelanguage.googleapis.com/v1beta/interactions"
    vertex = build("Hi", "vertex:gemini-3.5-flash", wire_api="interactions")
    base = "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global"
    assert vertex.url == f"{base}/interactions"


@pytest.mark.parametrize(
    ("model", "wire_api"),
    [
        ("gemini-3.5-flash", "gemini"),
        ("deep-research-preview-04-2026", "interactions"),
        ("antigravity-preview-09-2026", "interactions"),
        ("gemini-omni-1.2-flash", "interactions"),
    ],
)
def test_model_that_exists_only_there_chooses_the_wire(model: str, wire_api: str) -> None:
    assert build("Hi", f"google:{model}").wire_api == wire_api


def test_agent_is_named_and_takes_no_settings_of_a_model() -> None:
    """I8: background and the agent's own settings are fields of the request."""
    prompt = Prompt("Go", temperature=0.5, extra={"background": True, "store": True})
    request = built(prompt, "google:deep-research-preview-04-2026")
    sent = msgspec.json.decode(request.body)
    assert sent["agent"] == "deep-research-preview-04-2026"
    assert not sent.keys() & {"model", "generation_config"}
    assert (sent["background"], sent["store"]) == (True, True)
    assert paths(request) == [("dropped", "/temperature")]


def test_background_of_a_prompt_is_stored() -> None:
    request = built(Prompt("Go", background=True))
    sent = msgspec.json.decode(request.body)
    assert (sent["background"], sent["store"]) == (True, True)
    assert paths(request) == []


def test_signed_reasoning_goes_back_unchanged() -> None:
    """I3: stateless, with `store: false`; every output step in its order."""
    signature = {"type": "thought_signature", "signature": "c2ln"}
    summary = {"type": "thought_summary", "content": text("**A**")}
    annotation = {"type": "url_citation", "url": "u", "start_index": 2, "end_index": 6}
    citing = {"type": "text_annotation_delta", "annotations": [annotation]}
    search = {"type": "google_search_call", "arguments": {"queries": ["x"]}, "signature": "c2ln"}
    response = read(
        created(),
        step(0, {"type": "thought"}, summary, signature),
        step(1, {"type": "google_search_call", "id": "s"}, search),
        step(2, {"type": "model_output"}, text("é 世 x"), citing),
        step(3, {"type": "function_call", "id": "c", "name": "f", "arguments": {}}),
        completed("requires_action"),
    )
    sent = body([user("Hi"), *response.items, response.calls[0].output("1")])
    assert sent["store"] is False
    assert sent["input"][1:] == [
        {"type": "thought", "signature": "c2ln", "summary": [text("**A**")]},
        {"type": "google_search_call", "id": "s", **search},
        {"type": "model_output", "content": [{**text("é 世 x"), "annotations": [annotation]}]},
        {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
        {"type": "function_result", "call_id": "c", "name": "f", "result": "1"},
    ]


def test_call_without_signed_reasoning_gets_the_stand_in() -> None:
    """I3: for models that want signatures, once a turn."""
    history = [user("Hi"), CALL, CALL.output("1"), user("And?"), CALL, CALL.output("2")]
    request = built(history)
    kinds = [sent["type"] for sent in msgspec.json.decode(request.body)["input"]]
    turn = ["user_input", "thought", "function_call", "function_result"]
    assert kinds == turn * 2
    assert [path for action, path in paths(request) if action == "generated"] == [
        "/input/1",
        "/input/4",
    ]
    assert (
        NO_SIGNATURE
        not in build(
            Prompt(history), "google:gemini-2.5-flash", wire_api="interactions"
        ).body.decode()
    )


def test_unsigned_reasoning_is_sent_as_text() -> None:
    items = [user("Hi"), Reasoning("Hm."), Reasoning(encrypted_content="x"), user("So?")]
    request = built(items)
    sent = msgspec.json.decode(request.body)["input"]
    assert sent[1]["content"] == [text("<think>\nHm.\n</think>")]
    assert paths(request) == [("downgraded", "/input/1"), ("dropped", "/input/2")]


def test_stored_interaction_is_continued() -> None:
    """I9: only what is new is sent; a result answers a call that the server stores."""
    prompt = Prompt([FunctionCallOutput("c1", "18")], extra={"previous_interaction_id": "v1_a"})
    request = built(prompt)
    sent = msgspec.json.decode(request.body)
    assert sent["previous_interaction_id"] == "v1_a"
    assert sent["store"] is True
    assert sent["input"] == [{"type": "function_result", "call_id": "c1", "result": "18"}]
    assert request.report == []


def test_output_of_a_stored_response_is_kept_on_responses_too() -> None:
    """It became user text, and the API refused the request."""
    prompt = Prompt([FunctionCallOutput("c1", "18")], extra={"previous_response_id": "resp_1"})
    request = build(prompt, "openai:gpt-5.5")
    (item,) = msgspec.json.decode(request.body)["input"]
    assert (item["type"], item["call_id"]) == ("function_call_output", "c1")


def test_output_without_call_or_stored_history_is_text() -> None:
    request = built([FunctionCallOutput("c1", "18")])
    assert paths(request) == [("downgraded", "/input/0")]


def test_continuation_needs_no_input() -> None:
    extra = {"previous_interaction_id": "v1_a", "continuation_token": "t"}
    assert "input" not in body(Prompt((), extra=extra))
    with pytest.raises(StreamError, match="nothing to send"):
        built(())


def test_system_messages_are_one_text() -> None:
    """I1."""
    items = [Message("developer", [Text("b")]), user("Hi"), Message("system", [Text("c")])]
    sent = body(Prompt(items, instructions="a"))
    assert sent["system_instruction"] == "a\n\nb"
    assert sent["input"][1]["content"] == [text("<system>\nc\n</system>")]


def test_media_are_contents_by_their_kind() -> None:
    items = [
        user(
            "x",
            Image("iVBORw0KGgo=", media_type="image/jpeg"),
            Image(url="data:image/png;base64,QUJD"),
            Document(url="https://x/d.pdf", media_type="application/pdf"),
            Document("QUJD", media_type="video/mp4"),
            Audio("QUJD", media_type="audio/wav"),
            Audio(transcript="hello"),
        )
    ]
    request = built(items)
    (sent,) = msgspec.json.decode(request.body)["input"]
    assert sent["content"] == [
        text("x"),
        {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"},
        {"type": "image", "data": "QUJD", "mime_type": "image/png"},
        {"type": "document", "uri": "https://x/d.pdf", "mime_type": "application/pdf"},
        {"type": "video", "data": "QUJD", "mime_type": "video/mp4"},
        {"type": "audio", "data": "QUJD", "mime_type": "audio/wav"},
        text("hello"),
    ]
    assert {action for action, _ in paths(request)} == {"changed"}


def test_result_may_hold_contents_and_an_error() -> None:
    """I4."""
    image = Image("iVBORw0KGgo=", media_type="image/png")
    output = CALL.output([Text("see"), image], is_error=True)
    result = steps([user("Hi"), CALL, output])[-1]
    assert result == {
        "type": "function_result",
        "call_id": "c1",
        "name": "f",
        "result": [text("see"), {"type": "image", "data": image.data, "mime_type": "image/png"}],
        "is_error": True,
    }


def test_empty_required_is_left_out_everywhere() -> None:
    """I5: pi#2172."""
    schema = {
        "type": "object",
        "required": [],
        "properties": {"a": {"type": "object", "required": []}, "b": {"enum": ["required"]}},
    }
    request = built("Hi", tools=[ToolSpec("f", "F.", schema)])
    (tool,) = msgspec.json.decode(request.body)["tools"]
    assert "required" not in tool["parameters"]
    assert tool["parameters"]["properties"] == {
        "a": {"type": "object"},
        "b": {"enum": ["required"]},
    }
    assert paths(request) == [("changed", "/tools/0/schema")]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "any"),
        ("none", "none"),
        ("f", {"allowed_tools": {"mode": "any", "tools": ["f"]}}),
    ],
)
def test_tool_choice_is_part_of_the_configuration(choice: str, sent: Any) -> None:
    config = body("Hi", tools=[ToolSpec("f")], tool_choice=choice)["generation_config"]
    assert config["tool_choice"] == sent


@pytest.mark.parametrize(
    ("reasoning", "config", "reported"),
    [
        ("low", {"thinking_level": "low", "thinking_summaries": "auto"}, []),
        ("off", {"thinking_level": "minimal"}, ["/reasoning"]),
        (2000, {"thinking_level": "low", "thinking_summaries": "auto"}, ["/reasoning"]),
        (ReasoningOptions("high", display="omitted"), {"thinking_level": "high"}, []),
        (ReasoningOptions(summary="none"), {"thinking_summaries": "none"}, []),
    ],
)
def test_reasoning_is_a_level(reasoning: Any, config: Any, reported: list[str]) -> None:
    """I6."""
    request = built("Hi", reasoning=reasoning)
    assert msgspec.json.decode(request.body).get("generation_config") == config
    assert [change.path for change in request.report] == reported


def test_output_schema_is_a_response_format() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    sent = body("Hi", output_schema=schema)["response_format"]
    assert sent == {"type": "text", "mime_type": "application/json", "schema": schema}


# --- what is sent of each item, and what the report says ---

TEXT = {"type": "text", "text": "a"}
PNG = Image("aWNv", media_type="image/png")


def said(*parts: Any) -> Message:
    return Message("user", parts)


def asked(*contents: Any) -> list[Any]:
    return [{"type": "user_input", "content": list(contents)}]


SENT: list[tuple[list[ResponseItem], list[Any], list[tuple[str, str]]]] = [
    ([said()], [], [("dropped", "/input/1")]),
    ([said(Text(""), Text("a"))], asked(TEXT), [("dropped", "/input/1/content/0")]),
    ([said(Refusal("a"))], asked(TEXT), []),
    (
        [Message("system", (Text("a"),))],
        asked({"type": "text", "text": "<system>\na\n</system>"}),
        [("changed", "/input/1")],
    ),
    (
        [Message("assistant", (Text("a"),), signature="c2ln", origin=HERE)],
        [{"type": "model_output", "content": [TEXT]}],
        [("dropped", "/input/1/signature")],
    ),
    (
        [Reasoning("b", ("a",), signature="c2ln", origin=HERE)],
        [
            {
                "type": "thought",
                "signature": "c2ln",
                "summary": [TEXT, {"type": "text", "text": "b"}],
            }
        ],
        [],
    ),
    ([Reasoning("", origin=HERE)], [], [("dropped", "/input/1")]),
    (
        [Reasoning("a", origin=HERE)],
        [
            {
                "type": "model_output",
                "content": [{"type": "text", "text": "<think>\na\n</think>"}],
            }
        ],
        [("downgraded", "/input/1")],
    ),
    ([Compaction("a", origin=HERE)], asked(TEXT), [("downgraded", "/input/1")]),
    ([Compaction(encrypted_content="x", origin=HERE)], [], [("dropped", "/input/1")]),
    (
        [CustomToolCall("c1", "f", "a"), CustomToolCall("c1", "f", "a").output("1")],
        [
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {"input": "a"}},
            {"type": "function_result", "call_id": "c1", "name": "f", "result": "1"},
        ],
        [("changed", "/input/1")],
    ),
    (
        [Opaque("x", {"a": 1}, origin=HERE), Opaque("x", {"type": "y", "a": 1}, origin=HERE)],
        [{"type": "x", "a": 1}, {"type": "y", "a": 1}],
        [],
    ),
    (
        [said(Text("é", ({"type": "place_citation", "start_index": 0, "end_index": 1},)))],
        asked(
            {
                "type": "text",
                "text": "é",
                "annotations": [{"type": "place_citation", "start_index": 0, "end_index": 2}],
            }
        ),
        [],
    ),
    (
        [said(Text("a", ({"start": 0},)))],
        asked(TEXT),
        [("dropped", "/input/1/content/0/annotations")],
    ),
    (
        [said(Image(url="data:image/webp;x=1;base64,aWNv"))],
        asked({"type": "image", "data": "aWNv", "mime_type": "image/webp"}),
        [],
    ),
    (
        [said(Image(url="https://x/a.png"))],
        asked({"type": "image", "uri": "https://x/a.png"}),
        [],
    ),
    (
        [said(Document(url="https://x/a", media_type="video/mp4", name="a.mp4"))],
        asked(
            {
                "type": "video",
                "uri": "https://x/a",
                "mime_type": "video/mp4",
                "name": "a.mp4",
            }
        ),
        [],
    ),
    (
        [said(Document(url="https://x/a", media_type="application/pdf", name="a.pdf"))],
        asked({"type": "document", "uri": "https://x/a", "mime_type": "application/pdf"}),
        [("dropped", "/input/1/content/0/name")],
    ),
    (
        [said(Audio("aWNv", media_type="audio/wav", transcript="a"))],
        asked({"type": "audio", "data": "aWNv", "mime_type": "audio/wav"}),
        [("dropped", "/input/1/content/0/transcript")],
    ),
    ([said(Audio(transcript="a"))], asked(TEXT), [("changed", "/input/1/content/0")]),
    (
        [CALL, CALL.output([Text("a"), PNG], is_error=True)],
        [
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1.0}},
            {
                "type": "function_result",
                "call_id": "c1",
                "name": "f",
                "result": [
                    TEXT,
                    {"type": "image", "data": "aWNv", "mime_type": "image/png"},
                ],
                "is_error": True,
            },
        ],
        [],
    ),
    (
        [
            ServerToolCall("s1", "m", "{}", native={"type": "mcp_server_tool_call"}, origin=HERE),
            ServerToolResult("s1", "m", [], native={"type": "mcp_server_tool_result"}, origin=HERE),
        ],
        [
            {"type": "mcp_server_tool_call", "id": "s1", "arguments": {}, "name": "m"},
            {"type": "mcp_server_tool_result", "call_id": "s1", "result": [], "name": "m"},
        ],
        [],
    ),
    (
        [
            ServerToolCall("s1", "google_search", native={"type": "google_search_call"}),
            ServerToolResult("s1", "google_search", native={"type": "google_search_result"}),
        ],
        [
            {"type": "google_search_call", "id": "s1"},
            {"type": "google_search_result", "call_id": "s1"},
        ],
        [],
    ),
    (
        [ServerToolCall("s1", "web", "{}", origin=HERE)],
        [{"type": "model_output", "content": [{"type": "text", "text": "[web {}]"}]}],
        [("downgraded", "/input/1")],
    ),
]


@each_case("items, written, report", SENT)
def test_items_are_sent_as_steps(
    items: list[ResponseItem], written: list[Any], report: list[tuple[str, str]]
) -> None:
    request = built([user("x"), *items], "google:custom-model")
    sent = msgspec.json.decode(request.body)["input"]
    assert sent == [*asked({"type": "text", "text": "x"}), *written]
    assert paths(request) == report
    assert all(change.reason for change in request.report)


def test_system_message_with_media_is_text_and_reported() -> None:
    request = built([Message("system", (Text("a"), PNG)), user("x")], instructions="Be brief.")
    assert msgspec.json.decode(request.body)["system_instruction"] == "Be brief.\n\na"
    assert paths(request) == [("dropped", "/input/0")]


def test_stand_in_is_once_in_a_turn_of_the_model() -> None:
    calls = [FunctionCall(f"c{number}", "f", "{}", origin=HERE) for number in range(4)]
    items: list[ResponseItem] = [user("x"), *calls[:2]]
    items += [call.output("1") for call in calls[:2]]
    items += [calls[2], calls[2].output("1"), user("y"), calls[3], calls[3].output("1")]
    kinds = [step["type"] for step in steps(items)]
    assert kinds.count("thought") == 3
    assert kinds[:4] == ["user_input", "thought", "function_call", "function_call"]
    assert len(built(items).report) == 3


@each_case(
    "settings, fields, report",
    [
        ({"stream": None}, {"stream": True, "store": False}, []),
        ({"stream": False}, {"stream": False, "store": False}, []),
        ({"extra": {"store": True}}, {"stream": True, "store": True}, []),
        ({"tool_choice": "required"}, {}, ["/tool_choice"]),
        ({"tool_choice": "auto"}, {"generation_config": {"tool_choice": "auto"}}, []),
        ({"seed": 0}, {"generation_config": {"seed": 0}}, []),
        ({"temperature": 0, "top_p": 0}, {"generation_config": {"temperature": 0, "top_p": 0}}, []),
        ({"parallel_tools": True}, {}, []),
        ({"parallel_tools": False}, {}, ["/parallel_tools"]),
        ({"cache": "auto"}, {}, []),
        ({"n": 2}, {}, ["/n"]),
    ],
)
def test_settings_are_sent_as_fields(
    settings: dict[str, Any], fields: dict[str, Any], report: list[str]
) -> None:
    request = build(Prompt("x", **settings), "google:custom-model", wire_api="interactions")
    sent = msgspec.json.decode(request.body)
    assert {key: sent.get(key) for key in fields} == fields
    assert [change.path for change in request.report] == report
