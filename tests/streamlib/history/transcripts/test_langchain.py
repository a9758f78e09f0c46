"""Messages of LangChain in their three forms, with the blocks of its providers."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    user,
)
from streamlib.history import Transcript, dump_transcript, load_transcript

Data = dict[str, Any]
CALL = {"name": "ls", "args": {"at": "."}, "id": "c", "type": "tool_call"}
PIXEL = "iVBORw0KGgo="


def message(kind: str, content: Any, **data: Any) -> Data:
    return {"type": kind, "data": {"content": content, **data}}


def load(*messages: Data) -> Transcript:
    return load_transcript([*messages], "langchain")


def response(*blocks: Data, provider: str | None = None, **data: Any) -> list[ResponseItem]:
    """The items of one message of a model."""
    metadata = {"model_provider": provider} if provider else {}
    return load(message("ai", [*blocks], response_metadata=metadata, **data)).items


def test_three_forms_of_a_message_are_read_alike() -> None:
    data = {"content": "", "tool_calls": [CALL], "type": "ai", "response_metadata": {}}
    tool = {"content": "a.txt", "tool_call_id": "c", "status": "error", "type": "tool"}
    forms: list[list[Data]] = [
        [{"type": "ai", "data": data}, {"type": "tool", "data": tool}],
        [
            {"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": data},
            {"lc": 1, "type": "constructor", "id": ["x", "ToolMessage"], "kwargs": tool},
        ],
    ]
    expected = [
        FunctionCall("c", "ls", '{"at":"."}'),
        FunctionCallOutput("c", "a.txt", is_error=True),
    ]
    for form in forms:
        transcript = load_transcript(form)
        assert transcript.format == "langchain"
        assert list(transcript.items) == expected
    assert list(load_transcript([data, tool], "langchain").items) == expected


def test_blocks_of_anthropic_keep_their_signature_and_order() -> None:
    blocks = (
        {"type": "thinking", "thinking": "hm", "signature": "Eq", "index": 0},
        {"type": "text", "text": "I look.", "index": 1},
        {"type": "tool_use", "id": "c", "name": "ls", "input": {"at": "."}, "index": 2},
        {"type": "input_json_delta", "partial_json": "{}"},
    )
    items = response(*blocks, provider="anthropic", tool_calls=[CALL])
    assert [type(item) for item in items] == [Reasoning, Message, FunctionCall]
    assert items[0].signature == "Eq"
    assert {item.origin for item in items} == {Origin("messages", "anthropic")}


def test_results_of_hosted_tools_are_items() -> None:
    items = response(
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        provider="anthropic",
    )
    assert [type(item) for item in items] == [ServerToolCall, ServerToolResult]


def test_blocks_of_openai_keep_encrypted_reasoning() -> None:
    summary = [{"type": "summary_text", "text": "One."}]
    items = response(
        {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gA"},
        {"type": "text", "text": "Hi", "id": "msg_1", "phase": "final_answer", "annotations": []},
        {"type": "function_call", "call_id": "c", "name": "ls", "arguments": '{"at":1.0}'},
        provider="openai",
        tool_calls=[CALL],
    )
    reasoning, text, call = items
    assert isinstance(reasoning, Reasoning)
    assert (reasoning.encrypted_content, reasoning.summary) == ("gA", ("One.",))
    assert isinstance(text, Message)
    assert (text.id, text.phase) == ("msg_1", "final_answer")
    assert isinstance(call, FunctionCall)
    assert call.arguments == '{"at":1.0}'


def test_own_blocks_are_read() -> None:
    items = response(
        {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "Ci"}},
        {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "Em"}},
        {"type": "text", "text": "Hi"},
        {"type": "tool_call", "id": "c", "name": "ls", "args": {}, "extras": {"signature": "Cj"}},
        provider="google_genai",
        tool_calls=[CALL],
    )
    assert [item.signature for item in items] == ["Ci", None, None, "Cj"]
    assert items[0].origin == Origin("gemini", "google")


def test_calls_of_older_clients_are_read() -> None:
    function = {"name": "ls", "arguments": '{"a":1.0}'}
    older = message("ai", "", additional_kwargs={"tool_calls": [{"id": "c", "function": function}]})
    oldest = message("ai", "", additional_kwargs={"function_call": function})
    result = message("function", "a.txt", name="ls")
    assert load(older).items == [FunctionCall("c", "ls", '{"a":1.0}')]
    called, output = load(oldest, result).items
    assert isinstance(called, FunctionCall)
    assert isinstance(output, FunctionCallOutput)
    assert output.call_id == called.call_id
    broken = message("ai", "", invalid_tool_calls=[{**CALL, "args": "{broken"}])
    assert load(broken).items == [FunctionCall("c", "ls", "{broken")]


def test_parts_of_the_user_are_read() -> None:
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    blocks = [
        {"type": "text", "text": "Look"},
        picture,
        {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"},
        {"type": "image", "source": source},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "file", "url": "https://a.test/x.pdf", "mime_type": "application/pdf"},
        "and this",
    ]
    [item] = load(message("human", blocks)).items
    assert isinstance(item, Message)
    kinds = [type(part) for part in item.content]
    assert kinds == [Text, Image, Image, Image, Image, Document, Text]


def test_removals_are_replayed() -> None:
    first = [message("human", "A", id="1"), message("ai", "B", id="2")]
    removal = message("remove", "", id="2")
    assert load(*first, removal, message("human", "C")).items == [user("A"), user("C")]
    everything = message("remove", "", id="__remove_all__")
    assert load(*first, everything, message("human", "C")).items == [user("C")]


def test_roles_of_chat_messages_are_known() -> None:
    transcript = load(message("chat", "A", role="assistant"), message("chat", "B", role="pirate"))
    assert [item.role for item in transcript.items if isinstance(item, Message)] == [
        "assistant",
        "user",
    ]
    assert [change.path for change in transcript.report] == ["/1/role"]


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([message("human", "A", id="1"), message("human", "B", id="1")], "/1/id is that of"),
        ([message("novelty", "A")], "/0/type: no message of LangChain"),
        ([message("ai", [3])], "/0/content/0: not a JSON object"),
        ([message("ai", "", tool_calls=3)], "/0/tool_calls: not a list"),
        ([message("ai", [{"type": 3}])], "/0/content/0/type: not a text"),
        ([{"lc": 1, "id": []}], "/0/kwargs: not a JSON object"),
    ],
)
def test_bad_message_is_an_error_with_its_place(messages: list[Data], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        load_transcript(messages, "langchain")


def test_state_of_an_unknown_provider_is_reported() -> None:
    items: list[ResponseItem] = [Reasoning("hm", signature="x", origin=Origin("chat"))]
    dumped = dump_transcript(items, "langchain")
    assert [change.path for change in dumped.report] == ["/input/0/signature"]


def test_written_messages_have_what_langchain_wants() -> None:
    call = FunctionCall("c", "ls", '{"a":1}')
    items: list[ResponseItem] = [user("Go"), call, call.output("x", is_error=True)]
    dumped = dump_transcript(items, "langchain", instructions="Be brief.")
    assert [one["type"] for one in dumped] == ["system", "human", "ai", "tool"]
    assert dumped[2]["data"]["tool_calls"] == [
        {"name": "ls", "id": "c", "args": {"a": 1}, "type": "tool_call"}
    ]
    assert dumped[3]["data"]["status"] == "error"
    assert [dumped[index]["data"]["content"] for index in (0, 1, 3)] == ["Be brief.", "Go", "x"]
    several = user("Look", Image(data=PIXEL, media_type="image/png"))
    [two] = dump_transcript([several], "langchain")
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    assert two["data"]["content"] == [{"type": "text", "text": "Look"}, picture]
    [none] = dump_transcript([Message("user", ())], "langchain")
    assert none["data"]["content"] == []


def test_two_calls_with_one_id_are_refused() -> None:
    calls: list[Data] = [{"name": name, "args": {}, "id": None} for name in ("a", "b")]
    with pytest.raises(ValueError, match="/0: two calls have the id ''"):
        load(message("ai", "", tool_calls=calls))


def test_fields_without_a_place_are_reported() -> None:
    further = {"refusal": None, "audio": {"id": "a"}, "reasoning_content": "hm"}
    named = message("human", "Hi", name="Ann")
    transcript = load(named, message("ai", "Ho", additional_kwargs=further))
    assert [change.path for change in transcript.report] == [
        "/0/name",
        "/1/additional_kwargs/audio",
    ]
    assert len(transcript.items) == 3
