"""Converse out: botocore accepts every request, each rule that makes the API answer 400 is met, and the past is replayed exactly."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    CacheOptions,
    Client,
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
from streamlib.providers.models import Traits
from streamlib.wires.bedrock import FAMILIES
from tests.support.bedrock_readers import answer_of, conversations, request_of, validated
from tests.support.shared import BODIES, PAYLOADS, ROOT, STREAMS, Recording, each_recording
from tests.support.wires import documented

HERE = Origin("converse")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NEWEST = "us.anthropic.claude-opus-5"
NOVA = "amazon.nova-lite-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama3-3-70b-instruct-v1:0"
KIMI = "moonshot.kimi-k2-thinking"
CALL = FunctionCall("tooluse_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE)
THOUGHT = Reasoning("hm", signature="EqQB", origin=HERE)
SEALED = Reasoning(redacted=True, encrypted_content="RXU4RUNr", origin=HERE)
SAID = Message("assistant", [Text("so")], origin=HERE)
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/jpeg")
PDF = Document(data="JVBERi0=", name="report", media_type="application/pdf")


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def built(
    *items: ResponseItem, model: str = CLAUDE, models: Any = None, **settings: Any
) -> Request:
    return build(
        Prompt(input=items or (user("hi"),), **settings), f"bedrock:{model}", models=models
    )


def body(request: Request) -> dict[str, Any]:
    return validated(request)


def turns(request: Request) -> list[tuple[str, list[str]]]:
    return [
        (turn["role"], [next(iter(block)) for block in turn["content"]])
        for turn in body(request)["messages"]
    ]


def fields(request: Request) -> dict[str, Any]:
    return body(request).get("additionalModelRequestFields", {})


def reasons(request: Request) -> list[str]:
    return [change.reason for change in request.report]


# --- order and replay ---


def test_interleaved_thoughts_text_and_calls_keep_their_order() -> None:
    second = msgspec.structs.replace(CALL, call_id="tooluse_2")
    request = built(
        user("go"),
        THOUGHT,
        CALL,
        SEALED,
        SAID,
        second,
        CALL.output("1"),
        second.output("2"),
        tools=[TOOL],
    )
    assert turns(request) == [
        ("user", ["text"]),
        ("assistant", ["reasoningContent", "toolUse", "reasoningContent", "text", "toolUse"]),
        ("user", ["toolResult", "toolResult"]),
    ]
    assert request.report == []


def test_case_46_arguments_go_back_in_their_own_bytes() -> None:
    assert b'"input":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_a_call_without_arguments_has_an_empty_object() -> None:
    empty = FunctionCall("c", "f", "")
    assert b'"input":{}' in built(user("x"), empty, empty.output("y")).body


def test_a_byte_order_mark_before_arguments_is_not_sent() -> None:
    call = FunctionCall("c", "f", '\ufeff{"a": 1.0}')
    assert b'"input":{"a": 1.0}' in built(user("x"), call, call.output("y")).body


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "nonsense", "null"])
def test_a11_input_is_always_an_object(arguments: str) -> None:
    call = FunctionCall("c", "f", arguments)
    request = built(user("x"), call, call.output("y"))
    assert body(request)["messages"][1]["content"][0]["toolUse"]["input"] == {"_raw": arguments}
    assert "(A11)" in reasons(request)[0]


def test_case_17_a_thought_with_a_signature_alone_is_replayed() -> None:
    content = body(built(user("x"), Reasoning("", signature="sig", origin=HERE), user("y")))[
        "messages"
    ][1]["content"]
    assert content == [{"reasoningContent": {"reasoningText": {"text": "", "signature": "sig"}}}]


def test_sealed_thoughts_are_replayed_as_they_came() -> None:
    assert body(built(user("x"), SEALED, user("y")))["messages"][1]["content"] == [
        {"reasoningContent": {"redactedContent": "RXU4RUNr"}}
    ]


def test_cited_text_is_replayed_with_its_citations() -> None:
    note = {
        "title": "policy",
        "location": {"documentChunk": {"documentIndex": 0, "start": 0, "end": 1}},
    }
    cited = Message("assistant", [Text("20 days", [note])], origin=HERE)
    content = body(built(user("x"), cited, user("y")))["messages"][1]["content"]
    assert content == [
        {"citationsContent": {"content": [{"text": "20 days"}], "citations": [note]}}
    ]


def test_a_server_tool_and_its_result_are_replayed_with_their_kind() -> None:
    call = ServerToolCall(
        "s1",
        "nova_code_interpreter",
        '{"snippet": "1"}',
        native={"type": "server_tool_use"},
        origin=HERE,
    )
    native = {"type": "nova_code_interpreter_result", "status": "success"}
    result = ServerToolResult(
        "s1", "nova_code_interpreter", [{"json": {"stdOut": "1"}}], native=native, origin=HERE
    )
    request = built(user("x"), call, result, user("y"), model=NOVA_2)
    content = body(request)["messages"][1]["content"]
    assert content[0]["toolUse"]["type"] == "server_tool_use"
    assert content[1]["toolResult"] == {
        "toolUseId": "s1",
        "content": [{"json": {"stdOut": "1"}}],
        **native,
    }
    assert body(request)["toolConfig"]["tools"] == [
        {"systemTool": {"name": "nova_code_interpreter"}}
    ]


def test_blocks_we_do_not_know_go_back_to_their_own_wire() -> None:
    opaque = Opaque(
        "searchResult", {"searchResult": {"source": "s", "title": "t", "content": []}}, origin=HERE
    )
    assert body(built(user("x"), opaque, user("y")))["messages"][1]["content"] == [opaque.payload]


@each_recording("bedrock-converse", [*STREAMS, *BODIES, *PAYLOADS])
def test_law_5_a_recorded_answer_is_replayed_as_the_provider_said_it(recording: Recording) -> None:
    answer = answer_of(recording)
    items = [
        item
        for item in answer.items
        if item.status == "completed" and not isinstance(item, Reasoning)
    ]
    thoughts = [
        item
        for item in answer.items
        if isinstance(item, Reasoning) and (item.signature or item.redacted)
    ]
    if answer.status == "failed" or not items:
        return
    kept = [item for item in answer.items if item in items or item in thoughts]
    said = [item for item in kept if not (isinstance(item, Message) and not item.text.strip())]
    request = built(
        user("x"),
        *kept,
        *(call.output("y") for call in answer.calls),
        user("z"),
        model=recording.meta.get("model") or CLAUDE,
    )
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    second = (
        msgspec.json.decode(sent["messages"], type=list[dict[str, msgspec.Raw]])[1]["content"]
        if said
        else msgspec.Raw(b"[]")
    )
    again = accumulate(
        parse_body(
            "converse",
            msgspec.json.encode({"output": {"message": {"role": "assistant", "content": second}}}),
        )
    )
    dropped = {change.path for change in request.report if "(B15)" in change.reason}
    expected = [
        _bare(item)
        for at, item in enumerate(kept, 1)
        if item in said and f"/input/{at}" not in dropped
    ]
    assert [_bare(item) for item in again.items] == expected


def _bare(item: Any) -> Any:
    """Everything but who answered; nothing as arguments is an empty object, and `native` beside a text has no place in a union."""
    native = None if isinstance(item, Message) else item.native
    changes = (
        {"arguments": item.arguments or "{}"}
        if isinstance(item, (FunctionCall, ServerToolCall))
        else {}
    )
    return msgspec.structs.replace(item, response_id=None, origin=None, native=native, **changes)


def test_recorded_conversations_are_built_as_their_clients_built_them() -> None:
    """Turn n+1's request from turn n's request and answer: the same blocks with the same values, wherever the client kept them all."""
    compared = 0
    for earlier, later in (
        pair
        for conversation in conversations("bedrock-converse")
        for pair in pairwise(conversation)
    ):
        (first, path), (second, _) = request_of(earlier), request_of(later)
        known, wanted = (
            parse_request("converse", first, path=path),
            parse_request("converse", second, path=path),
        )
        items = [*known.items, *answer_of(earlier).items]
        if [type(item) for item in items] == [type(item) for item in wanted.items[: len(items)]]:
            again = build(
                msgspec.structs.replace(known, input=[*items, *wanted.items[len(items) :]]),
                f"bedrock:{known.model}",
            )
            assert _unstated(body(again)["messages"]) == _unstated(
                msgspec.json.decode(second)["messages"]
            ), earlier.path.name
            compared += 1
    assert compared >= 10


def _unstated(value: Any) -> Any:
    """Without `status: success`, which is what no status means; one recorder wrote dashes down differently."""
    if isinstance(value, dict):
        return {
            key: _unstated(one) for key, one in value.items() if (key, one) != ("status", "success")
        }
    if isinstance(value, str):
        return value.replace("\u2014", "--")
    return [_unstated(one) for one in value] if isinstance(value, list) else value


def test_prefix_law_each_request_begins_with_the_one_before() -> None:
    history: list[ResponseItem] = [
        user("a"),
        THOUGHT,
        CALL,
        CALL.output(""),
        SAID,
        user("", PDF),
        SAID,
        user("b", PDF),
        SAID,
        user("c"),
    ]
    ends = (1, 4, 6, 8, 10)
    elements = [_elements(built(*history[:n], tools=[TOOL], instructions="s")) for n in ends]
    for shorter, longer in pairwise(elements):
        assert longer[: len(shorter)] == shorter


def _elements(request: Request) -> list[bytes]:
    sent = body(request)
    content = [(turn["role"], block) for turn in sent["messages"] for block in turn["content"]]
    return [
        msgspec.json.encode(one)
        for one in (*sent["toolConfig"]["tools"], *sent["system"], *content)
    ]


KINDS = ["think", "text", "call"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=10))
def test_any_interleaving_is_replayed_in_its_order(kinds: list[str]) -> None:
    items: list[ResponseItem] = []
    for n, kind in enumerate(kinds):
        item = {
            "think": Reasoning(f"h{n}", signature=f"s{n}", origin=HERE),
            "text": Message("assistant", [Text(f"t{n}")], origin=HERE),
            "call": FunctionCall(f"c{n}", "f", f'{{"n": {n}.0}}', origin=HERE),
        }[kind]
        items.append(item)
    outputs = [item.output("o") for item in items if isinstance(item, FunctionCall)]
    request = build(
        Prompt([user("x"), *items, *outputs, user("y")]),
        "custom:any",
        wire_api="converse",
        base_url="http://x",
    )
    content = validated(request)["messages"][1]["content"]
    again = accumulate(
        parse_body("converse", msgspec.json.encode({"output": {"message": {"content": content}}}))
    )
    assert [type(item) for item in again.items] == [type(item) for item in items]
    assert [item.signature for item in again.items] == [item.signature for item in items]


ITEMS = st.lists(
    st.sampled_from(
        [
            user("a"),
            user(" "),
            user("", PNG),
            user("", PDF),
            user("see", PDF, Audio(data="AAAA", media_type="audio/wav")),
            SAID,
            Message("assistant", [Text(" \n")]),
            Message("assistant", [Refusal("no")]),
            Message("system", [Text("Be kind.")]),
            THOUGHT,
            SEALED,
            Reasoning("unsigned"),
            CALL,
            CALL.output("1"),
            CALL.output("", is_error=True),
            CustomToolCall("c2", "patch", "x"),
            ServerToolCall("s1", "web", "{}"),
            ServerToolResult("s1", "web", {"a": 1}),
            Compaction("before that"),
        ]
    ),
    min_size=1,
    max_size=8,
)


@given(
    ITEMS,
    st.sampled_from(
        [
            CLAUDE,
            NEWEST,
            NOVA,
            NOVA_2,
            LLAMA,
            KIMI,
            "amazon.titan-text-express-v1",
            "mistral.mistral-7b-instruct-v0:2",
        ]
    ),
)
def test_any_history_is_a_request_that_botocore_accepts(
    items: list[ResponseItem], model: str
) -> None:
    try:
        request = build(Prompt(items, cache="auto", reasoning="low"), model, provider="bedrock")
    except StreamError as error:
        code = error.code
    else:
        code = None
        _whole_pairs(validated(request))
    assert code in (None, "empty_input")


def _whole_pairs(sent: dict[str, Any]) -> None:
    calls = [
        block["toolUse"]["toolUseId"]
        for turn in sent["messages"]
        for block in turn["content"]
        if "toolUse" in block
    ]
    results = [
        block["toolResult"]["toolUseId"]
        for turn in sent["messages"]
        for block in turn["content"]
        if "toolResult" in block
    ]
    assert set(results) - {"s1"} == set(calls) - {"s1"}


# --- rules about content and order ---


def test_b1_calls_in_the_history_bring_their_tools() -> None:
    request = built(user("x"), CALL, CALL.output("y"))
    assert body(request)["toolConfig"] == {
        "tools": [
            {
                "toolSpec": {
                    "name": "f",
                    "inputSchema": {"json": {"type": "object", "properties": {}}},
                }
            }
        ]
    }
    assert fields(request)["tool_choice"] == {"type": "none"}
    assert [(change.action, change.path) for change in request.report] == [("generated", "/tools")]


def test_b2_blank_text_is_dropped_and_reported() -> None:
    request = built(user("hi"), Message("assistant", [Text(" \n")]), user("yo"))
    assert turns(request) == [("user", ["text", "text"])]
    assert reasons(request) == ["blank text (B2)"]


@pytest.mark.parametrize("output", ["", " ", [], [Text("")], [Image(url="https://x/y.png")]])
def test_b3_a_result_is_never_empty(output: Any) -> None:
    request = built(user("x"), CALL, CALL.output(output), tools=[TOOL])
    assert body(request)["messages"][2]["content"][0]["toolResult"]["content"] == [
        {"text": "(no output)"}
    ]
    assert "(B3)" in reasons(request)[-1]


def test_b4_a_conversation_starts_with_a_user_turn() -> None:
    request = built(SAID, user("x"))
    assert body(request)["messages"][0] == {"role": "user", "content": [{"text": "."}]}
    assert [change.action for change in request.report] == ["generated"]


def test_b5_adjacent_turns_of_one_role_are_one() -> None:
    assert turns(built(user("a"), user("b"), SAID, SAID, user("c"))) == [
        ("user", ["text", "text"]),
        ("assistant", ["text"] * 2),
        ("user", ["text"]),
    ]


def test_b6_case_51_every_call_has_its_result_first_in_the_next_turn() -> None:
    other = FunctionCall("tooluse_2", "f", "{}")
    orphan = FunctionCall("gone", "f", "{}").output("lost")
    request = built(user("x"), CALL, other, user("and?"), other.output("2"), orphan, tools=[TOOL])
    assert turns(request)[1:] == [
        ("assistant", ["toolUse", "toolUse"]),
        ("user", ["toolResult", "toolResult", "text", "text", "text"]),
    ]
    assert {change.action for change in request.report} == {"generated", "repaired", "downgraded"}


def test_b7_tool_results_stand_alone_where_the_model_wants_it() -> None:
    mixed = built(user("x"), CALL, CALL.output("1"), user("and?"), tools=[TOOL])
    assert turns(mixed)[-1] == ("user", ["toolResult", "text"])
    split = built(user("x"), CALL, CALL.output("1"), user("and?"), tools=[TOOL], model=LLAMA)
    assert turns(split)[-3:] == [
        ("user", ["toolResult"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]


@pytest.mark.parametrize("call_id", ["functions.f:0", "a b", "x" * 80, "", "é"])
def test_b8_case_50_call_ids_fit_the_same_on_call_and_result(call_id: str) -> None:
    call = FunctionCall(call_id, "f", "{}")
    sent = body(built(user("x"), call, call.output("y")))["messages"]
    fitted = sent[1]["content"][0]["toolUse"]["toolUseId"]
    assert fitted == sent[2]["content"][0]["toolResult"]["toolUseId"]
    assert set(fitted) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_b8_kimis_own_ids_go_back_to_it_unchanged() -> None:
    call = FunctionCall("functions.f:0", "f", "{}", origin=HERE)
    request = built(user("x"), call, call.output("y"), tools=[TOOL], model=KIMI)
    assert body(request)["messages"][1]["content"][0]["toolUse"]["toolUseId"] == "functions.f:0"
    assert request.report == []


def test_case_50_ids_that_are_equal_once_cleaned_stay_apart() -> None:
    one, two = FunctionCall("a.b", "f", "{}"), FunctionCall("a:b", "f", "{}")
    sent = body(built(user("x"), one, two, one.output("1"), two.output("2")))["messages"]
    ids = [block["toolUse"]["toolUseId"] for block in sent[1]["content"]]
    assert len(set(ids)) == 2
    assert ids == [block["toolResult"]["toolUseId"] for block in sent[2]["content"]]


def test_b9_tool_names_are_fitted_and_mapped_back() -> None:
    call = FunctionCall("c", "my.tool", "{}")
    request = built(
        user("x"), call, call.output("y"), tools=[ToolSpec("my.tool")], tool_choice="my.tool"
    )
    sent = body(request)
    assert request.names == {"my_tool": "my.tool"}
    assert sent["toolConfig"]["toolChoice"] == {"tool": {"name": "my_tool"}}
    assert sent["messages"][1]["content"][0]["toolUse"]["name"] == "my_tool"


def test_b10_a_tool_has_a_schema_of_an_object_and_no_empty_description() -> None:
    request = built(
        tools=[
            ToolSpec("a"),
            ToolSpec("b", "", {"anyOf": []}),
            ToolSpec("c", "does", {"type": "object"}, True),
        ]
    )
    specs = [tool["toolSpec"] for tool in body(request)["toolConfig"]["tools"]]
    assert [spec["inputSchema"]["json"]["type"] for spec in specs] == ["object"] * 3
    assert [spec.get("description") for spec in specs] == [None, None, "does"]
    assert specs[2]["strict"] is True
    assert [change.path for change in request.report] == ["/tools/1/schema"]


def test_b11_document_names_are_plain_and_unique() -> None:
    names = ["a.pdf", "a.pdf", "  x  y ", None, "日本", "z" * 300, "ok (1) [2]-3"]
    documents = [msgspec.structs.replace(PDF, name=name) for name in names]
    request = built(user("read", *documents))
    sent = [block["document"]["name"] for block in body(request)["messages"][0]["content"][1:]]
    assert sent == [
        "a-pdf",
        "a-pdf (2)",
        "x y",
        "document",
        "document (2)",
        "z" * 200,
        "ok (1) [2]-3",
    ]
    assert {change.action for change in request.report} == {"renamed", "generated"}


def test_b12_a_document_has_text_beside_it() -> None:
    request = built(user("", PDF))
    assert turns(request) == [("user", ["document", "text"])]
    assert turns(built(user("read", PDF))) == [("user", ["text", "document"])]
    assert [change.action for change in request.report] == ["generated"]


def test_b13_images_and_documents_stand_in_user_turns_only() -> None:
    request = built(user("x"), Message("assistant", [Text("see"), PNG]), user("y"))
    assert turns(request)[1] == ("assistant", ["text"])
    assert "(B13)" in reasons(request)[0]


def test_what_the_model_once_spoke_is_sent_as_text() -> None:
    spoken = Message("assistant", [Audio(data="AAAA", transcript="hello")])
    request = built(user("x"), spoken, user("y"))
    assert body(request)["messages"][1]["content"] == [{"text": "hello"}]
    assert [change.action for change in request.report] == ["changed"]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PNG, {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}),
        (
            Image(
                url="s3://bucket-1/k.gif",
                media_type="image/gif",
                native={"bucketOwner": "123456789012"},
            ),
            None,
        ),
        (
            Document(data="aGk=", media_type="text/plain", name="n"),
            {"document": {"format": "txt", "source": {"bytes": "aGk="}, "name": "n"}},
        ),
        (
            Document(data="aGk=", name="n.md"),
            {"document": {"format": "md", "source": {"bytes": "aGk="}, "name": "n-md"}},
        ),
        (
            Document(data="aGk=", media_type="text/x-python", name="n"),
            {"document": {"format": "txt", "source": {"bytes": "aGk="}, "name": "n"}},
        ),
        (
            Audio(data="AAAA", media_type="audio/mpeg"),
            {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
        ),
        (Audio(transcript="hello"), {"text": "hello"}),
    ],
)
def test_media_in_every_form(part: Any, block: Any) -> None:
    sent = body(built(user("x", part)))["messages"][0]["content"][1]
    assert sent == (
        block
        or {
            "image": {
                "format": "gif",
                "source": {
                    "s3Location": {"uri": "s3://bucket-1/k.gif", "bucketOwner": "123456789012"}
                },
            }
        }
    )


def test_documents_keep_their_context_and_citations() -> None:
    part = msgspec.structs.replace(
        PDF, native={"context": "c", "citations": {"enabled": True}, "detail": "high"}
    )
    sent = body(built(user("x", part)))["messages"][0]["content"][1]["document"]
    assert (sent["context"], sent["citations"]) == ("c", {"enabled": True})
    assert "detail" not in sent


@pytest.mark.parametrize(
    "part",
    [
        Image(url="https://x/y.png"),
        Image(file_id="f"),
        Image(data="AAAA", media_type="image/tiff"),
        Document(url="https://x"),
    ],
)
def test_what_converse_cannot_carry_is_dropped_and_reported(part: Any) -> None:
    request = built(user("x", part))
    assert turns(request) == [("user", ["text"])]
    assert request.report[0].path == "/input/0"


def test_tool_results_carry_images_documents_and_json() -> None:
    parts = [Text('{"a":1}', native={"json": {"a": 1}}), PNG, PDF]
    content = body(built(user("x"), CALL, CALL.output(parts)))["messages"][2]["content"][0][
        "toolResult"
    ]["content"]
    assert [next(iter(one)) for one in content] == ["json", "image", "document"]


def test_b15_thoughts_go_back_to_claude_only() -> None:
    for model, members in (
        (CLAUDE, ["reasoningContent"] * 2 + ["text"]),
        (NOVA_2, ["text"]),
        (LLAMA, ["text"]),
    ):
        request = built(user("x"), THOUGHT, SEALED, SAID, user("y"), model=model)
        assert turns(request)[1] == ("assistant", members)
        assert len(request.report) == 3 - len(members)


def test_b15_kimi_gets_its_thoughts_as_text() -> None:
    content = body(built(user("x"), Reasoning("hm", origin=HERE), SAID, user("y"), model=KIMI))[
        "messages"
    ][1]["content"]
    assert content[0] == {"text": "<think>\nhm\n</think>"}


def test_t10_a_thought_without_signature_is_text_for_claude_and_stays_for_local_servers() -> None:
    unsigned = Reasoning("hm", origin=HERE)
    assert turns(built(user("x"), unsigned, user("y")))[1] == ("assistant", ["text"])
    local = build(
        Prompt([user("x"), unsigned, user("y")]),
        "custom:any",
        wire_api="converse",
        base_url="http://x",
    )
    assert turns(local)[1] == ("assistant", ["reasoningContent"])


def test_b18_the_status_of_a_result_goes_to_families_that_take_it() -> None:
    for model, status in ((CLAUDE, "error"), (NOVA, "error"), (LLAMA, None)):
        request = built(
            user("x"), CALL, CALL.output("no", is_error=True), tools=[TOOL], model=model
        )
        assert body(request)["messages"][2]["content"][0]["toolResult"].get("status") == status
        assert [change.path for change in request.report] == (
            [] if status else ["/input/2/is_error"]
        )
    assert (
        "status"
        not in body(built(user("x"), CALL, CALL.output("yes")))["messages"][2]["content"][0][
            "toolResult"
        ]
    )


def test_b20_a_final_assistant_text_does_not_end_in_blanks() -> None:
    assert body(built(user("x"), Message("assistant", [Text("so \n")])))["messages"][1][
        "content"
    ] == [{"text": "so"}]


def test_b21_a_system_prompt_is_user_text_where_the_model_takes_none() -> None:
    request = built(instructions="Be terse.", model="amazon.titan-text-express-v1")
    assert "system" not in body(request)
    assert body(request)["messages"][0]["content"] == [{"text": "Be terse."}, {"text": "hi"}]
    assert "(B21)" in reasons(request)[0]


def test_a13_models_without_prefill_get_a_user_turn_last() -> None:
    request = built(user("x"), SAID, model="us.anthropic.claude-opus-4-6")
    assert turns(request)[-1] == ("user", ["text"])
    assert [change.action for change in request.report] == ["generated"]


def test_a14_a_request_does_not_end_with_a_thought() -> None:
    assert turns(
        built(
            user("x"), SAID, THOUGHT, model=NEWEST.replace("opus-5", "3-7-sonnet"), reasoning="low"
        )
    )[-1] == (
        "assistant",
        ["text"],
    )


def test_a15_a_server_call_without_its_result_is_dropped_from_an_earlier_turn() -> None:
    call = ServerToolCall("s1", "nova_grounding", "{}", origin=HERE)
    request = built(user("x"), call, SAID, user("y"), SAID, user("w"), model=NOVA_2)
    assert turns(request)[1] == ("assistant", ["text"])
    assert "A15" in reasons(request)[0]


def test_a17_system_messages_inside_the_conversation() -> None:
    inside = [user("x"), SAID, Message("system", [Text("Be kind.")])]
    assert turns(built(*inside, model=NEWEST))[-1] == ("system", ["text"])
    older = built(*inside)
    assert turns(older)[-1] == ("user", ["text"])
    assert "A17" in reasons(older)[0]
    assert turns(built(*inside, model=NOVA))[-1] == ("user", ["text"])


def test_leading_system_messages_join_the_instructions() -> None:
    sent = body(built(Message("developer", [Text("two")]), user("x"), instructions="one"))
    assert sent["system"] == [{"text": "one"}, {"text": "two"}]


@pytest.mark.parametrize(
    ("foreign", "members"),
    [
        (Reasoning("hm", signature="s", origin=Origin("messages")), ["text"]),
        (
            Reasoning(
                "hm",
                signature="s",
                origin=Origin("converse", "bedrock", model="us.anthropic.claude-sonnet-5"),
            ),
            ["text"],
        ),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses")), []),
        (Reasoning(redacted=True, encrypted_content="Emw", origin=Origin("converse", "other")), []),
        (ServerToolCall("s", "web_search", "{}", origin=Origin("responses")), ["text"]),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), []),
    ],
)
def test_foreign_state_goes_down_the_ladder_and_is_reported(
    foreign: Any, members: list[str]
) -> None:
    request = built(user("x"), foreign, user("y"))
    sent = [member for role, found in turns(request) if role == "assistant" for member in found]
    assert sent == members
    assert [change.action for change in request.report] == ["downgraded" if members else "dropped"]
    assert b"gAAA" not in request.body
    assert b"Emw" not in request.body


def test_a_compaction_made_by_hand_is_user_text() -> None:
    request = built(Compaction("before that"), user("x"))
    assert turns(request) == [("user", ["text", "text"])]
    assert [change.action for change in request.report] == ["downgraded"]


# --- caching ---


def points(request: Request) -> list[str]:
    sent = body(request)
    found = [("tools", block) for block in sent.get("toolConfig", {}).get("tools", [])] + [
        ("system", block) for block in sent.get("system", [])
    ]
    found += [
        (f"{at}", block) for at, turn in enumerate(sent["messages"]) for block in turn["content"]
    ]
    return [place for place, block in found if "cachePoint" in block]


def test_b14_auto_marks_tools_system_and_the_last_turn() -> None:
    asked = {"instructions": "s", "tools": [TOOL], "cache": "auto"}
    assert points(built(user("a"), SAID, user("b"), **asked)) == ["tools", "system", "2"]
    assert points(built(user("a"), SAID, user("b"), model=NOVA, **asked)) == ["system", "2"]
    refused = built(user("a"), model=LLAMA, **asked)
    assert points(refused) == []
    assert [change.path for change in refused.report] == ["/cache"]


def test_b14_at_most_four_breakpoints_each_behind_its_item() -> None:
    history = [Message("system", [Text("s")]), user("a"), SAID, user("b"), THOUGHT, SAID, user("c")]
    request = built(*history, cache=CacheOptions("1h", range(7)))
    assert points(request) == [
        "2",
        "3",
        "4",
    ]  # the thought's and the answer's are one turn: behind the answer, and none behind the thought
    assert body(request)["messages"][2]["content"][-1] == {
        "cachePoint": {"type": "default", "ttl": "1h"}
    }
    assert points(built(*history, cache=CacheOptions(None, [0]))) == ["system"]


def test_b14_no_cache_point_directly_behind_a_document() -> None:
    request = built(user("read", PDF), cache="auto")
    assert turns(request) == [("user", ["text", "cachePoint", "document"])]


def test_a_lifetime_that_bedrock_does_not_know_is_left_out() -> None:
    request = built(cache=CacheOptions("24h"))
    assert body(request)["messages"][0]["content"][-1] == {"cachePoint": {"type": "default"}}
    assert [change.path for change in request.report] == ["/cache/ttl"]


# --- tools ---


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        (CLAUDE, "auto", {"auto": {}}),
        (CLAUDE, "required", {"any": {}}),
        (CLAUDE, "f", {"tool": {"name": "f"}}),
        (NOVA, "f", {"tool": {"name": "f"}}),
        ("mistral.mistral-large-2407-v1:0", "f", {"any": {}}),
        (LLAMA, "f", {"auto": {}}),
        (LLAMA, "required", {"auto": {}}),
        ("cohere.command-r-v1:0", "required", None),
        ("us.anthropic.claude-opus-5-5", "required", {"auto": {}}),
    ],
)
def test_b17_tool_choice_in_the_form_each_family_takes(model: str, asked: str, sent: Any) -> None:
    request = built(tools=[TOOL], tool_choice=asked, model=model)
    assert body(request)["toolConfig"].get("toolChoice") == sent
    wanted = {"auto": {"auto": {}}, "required": {"any": {}}}.get(asked, {"tool": {"name": "f"}})
    assert bool(request.report) == (sent != wanted)


def test_b16_none_goes_to_claude_past_converse() -> None:
    request = built(tools=[TOOL], tool_choice="none")
    assert body(request)["toolConfig"].keys() == {"tools"}
    assert fields(request) == {"tool_choice": {"type": "none"}}
    other = built(tools=[TOOL], tool_choice="none", model=NOVA)
    assert body(other)["toolConfig"].keys() == {"tools"}
    assert "(B16)" in reasons(other)[0]


def test_one_call_at_a_time_can_be_asked_of_claude() -> None:
    request = built(tools=[TOOL], tool_choice="f", parallel_tools=False)
    assert fields(request)["tool_choice"] == {
        "type": "tool",
        "name": "f",
        "disable_parallel_tool_use": True,
    }
    assert "toolChoice" not in body(request)["toolConfig"]
    assert built(tools=[TOOL], parallel_tools=False, model=NOVA).report[0].path == "/parallel_tools"


def test_a_choice_without_tools_is_not_sent() -> None:
    assert "toolConfig" not in body(built(tool_choice="required"))


def test_hosted_tools_go_where_their_family_looks_for_them() -> None:
    system = ToolSpec("nova_grounding", native={"systemTool": {"name": "nova_grounding"}})
    assert (
        body(built(tools=[system, TOOL], model=NOVA_2))["toolConfig"]["tools"][0] == system.native
    )
    computer = ToolSpec("computer", native={"type": "computer_20250124", "name": "computer"})
    assert fields(built(tools=[computer, TOOL]))["tools"] == [computer.native]
    assert built(tools=[computer, TOOL], model=NOVA).report[0].path == "/tools/0"


def test_a_free_form_tool_and_call_take_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    sent = body(
        built(
            user("x"), call, call.output("ok"), tools=[ToolSpec("patch", format={"type": "text"})]
        )
    )
    assert sent["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]["required"] == [
        "input"
    ]
    assert sent["messages"][1]["content"][0]["toolUse"]["input"] == {"input": "*** Begin"}


# --- thinking ---


@pytest.mark.parametrize(
    ("model", "reasoning", "sent"),
    [
        (CLAUDE, "medium", {"thinking": {"type": "enabled", "budget_tokens": 10_000}}),
        (NEWEST, "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (NEWEST, "off", {"thinking": {"type": "disabled"}}),
        ("us.anthropic.claude-fable-5", "off", {}),
        (NEWEST, ReasoningOptions(effort="low", display="summarized"), None),
        (NOVA_2, "high", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA_2, 3000, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}}),
        (NOVA_2, "off", {"reasoningConfig": {"type": "disabled"}}),
        (NOVA, "high", {}),
        ("openai.gpt-oss-120b-1:0", "low", {"reasoning_effort": "low"}),
        ("us.openai.gpt-5.2", "high", {"reasoning": {"effort": "high"}}),
        ("qwen.qwen3-32b-v1:0", "high", {"reasoning_config": "high"}),
        (LLAMA, "high", {}),
    ],
)
def test_b22_thinking_in_the_form_each_family_takes(model: str, reasoning: Any, sent: Any) -> None:
    request = built(reasoning=reasoning, model=model)
    expected = {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"},
    }
    assert fields(request) == (expected if sent is None else sent)
    assert bool(request.report) == (sent == {} or reasoning == 3000)


def test_t1_max_tokens_is_raised_above_the_budget_where_it_was_given() -> None:
    request = built(reasoning=4000, max_output_tokens=100)
    assert (fields(request)["thinking"]["budget_tokens"], body(request)["inferenceConfig"]) == (
        4000,
        {"maxTokens": 4100},
    )
    assert "inferenceConfig" not in body(built(reasoning=4000))


def test_t6_t8_thinking_gives_way_to_a_forced_call_and_amid_an_unthought_turn() -> None:
    assert "thinking" not in fields(built(reasoning="high", tools=[TOOL], tool_choice="required"))
    assert "thinking" not in fields(
        built(user("x"), CALL, CALL.output("1"), reasoning="high", tools=[TOOL])
    )
    assert "thinking" in fields(
        built(user("x"), THOUGHT, CALL, CALL.output("1"), reasoning="high", tools=[TOOL])
    )


def test_t8b_thinking_off_takes_the_last_assistant_turns_thoughts_out() -> None:
    request = built(user("x"), THOUGHT, SAID, reasoning="off")
    assert turns(request)[-1] == ("assistant", ["text"])
    assert [change.breaks_prefix for change in request.report] == [True]


def test_t11_drop_block_is_an_option_with_its_beta_in_the_body() -> None:
    sent = fields(
        built(
            reasoning="high", thinking_mismatch="drop_block", model="us.anthropic.claude-opus-5-5"
        )
    )
    assert sent["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert sent["anthropic_beta"] == ["thinking-binding-controls-2026-08-01"]


def test_what_only_the_answer_can_tell_is_asked_for() -> None:
    """Thinking tokens and the stop sequence."""
    sent = body(built(reasoning="low", stop=["END"]))["additionalModelResponseFieldPaths"]
    assert sent == ["/stop_sequence", "/delta/stop_sequence", "/usage/output_tokens_details"]
    assert "additionalModelResponseFieldPaths" not in body(built())
    assert "additionalModelResponseFieldPaths" not in body(built(stop=["END"], model=NOVA))


def test_a_name_that_tells_nothing_is_claude_where_its_traits_say_so() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
    unknown = built(reasoning="high", model=arn)
    assert fields(unknown) == {}
    assert unknown.report[0].path == "/reasoning"
    known = built(
        reasoning="high", model=arn, models={arn: Traits(thinking=("adaptive",), efforts=("high",))}
    )
    assert fields(known)["thinking"] == {"type": "adaptive"}


# --- settings ---


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    request = built()
    assert body(request) == {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    assert request.report == []


def test_plain_settings_have_their_names() -> None:
    request = built(
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        stop=["END", " "],
        metadata={"team": "a"},
        service_tier="flex",
    )
    sent = body(request)
    assert sent["inferenceConfig"] == {
        "maxTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["END"],
    }
    assert (sent["requestMetadata"], sent["serviceTier"], fields(request)) == (
        {"team": "a"},
        {"type": "flex"},
        {"top_k": 4},
    )
    assert fields(built(top_k=4, model=NOVA)) == {"inferenceConfig": {"topK": 4}}


def test_b23_temperature_stays_between_0_and_1() -> None:
    request = built(temperature=1.7)
    assert body(request)["inferenceConfig"] == {"temperature": 1.0}
    assert "(B23)" in reasons(request)[0]


def test_s1_sampling_goes_only_to_models_that_take_it() -> None:
    refused = built(temperature=0.5, top_p=0.9, top_k=3, model=NEWEST)
    assert body(refused).keys() == {"messages"}
    assert {change.path for change in refused.report} == {"/temperature", "/top_p", "/top_k"}


def test_s2_max_tokens_stays_under_the_ceiling() -> None:
    assert body(built(max_output_tokens=999_999))["inferenceConfig"] == {"maxTokens": 64_000}


def test_structured_output_is_a_json_text() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}},
        "required": ["n"],
    }
    request = built(output_schema=schema)
    definition = body(request)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    sent = msgspec.json.decode(definition["schema"])
    assert (sent["additionalProperties"], sent["properties"]["n"]) == (
        False,
        {"type": "integer", "description": "(minimum: 3)"},
    )
    other = built(output_schema=schema, model="qwen.qwen3-32b-v1:0")
    assert (
        msgspec.json.decode(
            body(other)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
        )
        == schema
    )


def test_metadata_that_bedrock_refuses_is_left_out() -> None:
    request = built(metadata={"ok": "1", "bad": "{}", **{f"k{n}": "v" for n in range(20)}})
    assert len(body(request)["requestMetadata"]) == 16
    assert "/metadata/bad" in {change.path for change in request.report}


def test_settings_the_wire_lacks_are_reported() -> None:
    asked = {
        "seed": 1,
        "n": 2,
        "logprobs": 0,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.1,
        "verbosity": "low",
        "user_id": "u",
    }
    request = built(**asked, service_tier="auto")
    assert {change.path for change in request.report} == {
        *(f"/{name}" for name in asked),
        "/service_tier",
    }
    assert body(request).keys() == {"messages"}


def test_extra_is_laid_over_the_body() -> None:
    guardrail = {"guardrailIdentifier": "abc123", "guardrailVersion": "DRAFT"}
    beta = {"anthropic_beta": ["context-1m-2025-08-07"]}
    request = built(
        reasoning="low",
        extra={
            "guardrailConfig": guardrail,
            "additionalModelRequestFields": beta,
            "performanceConfig": {"latency": "optimized"},
        },
    )
    sent = body(request)
    assert (sent["guardrailConfig"], sent["performanceConfig"]) == (
        guardrail,
        {"latency": "optimized"},
    )
    assert fields(request) == {"thinking": {"type": "enabled", "budget_tokens": 2048}, **beta}


# --- the page of the wire ---


def test_every_rule_that_the_builder_names_is_in_the_table() -> None:
    folder = ROOT / "streamlib" / "wires" / "converse"
    sources = [path.read_text("utf-8") for path in sorted(folder.glob("build*.py"))]
    named = set(re.findall(r"\b(B\d+)\b", " ".join(sources)))
    page = (ROOT / "docs" / "wires" / "converse.md").read_text("utf-8").split("## Out", 1)[1]
    assert named <= set(re.findall(r"^\| (B\d+) ", page, re.MULTILINE))


def test_the_families_in_the_page_are_those_in_the_code() -> None:
    told = {
        one.name: [
            list(one.marks),
            list(one.choices),
            ["yes"] if one.status else [],
            [one.reasoning],
            list(one.caches),
        ]
        for one in FAMILIES
    }
    assert documented("converse", "Families") == told


# --- the request ---


def test_the_model_stands_in_the_path_percent_encoded() -> None:
    request = built()
    assert request.url == (
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    )
    arn = built(model="arn:aws:bedrock:us-east-1:123456789012:inference-profile/x")
    assert (
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fx/converse-stream"
        in arn.url
    )


@pytest.mark.parametrize(
    ("wire", "url"),
    [
        ("messages", "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages"),
        ("chat", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions"),
        ("responses", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/responses"),
        (
            "invoke",
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-x/invoke-with-response-stream",
        ),
    ],
)
def test_bedrocks_other_endpoints(wire: Any, url: str) -> None:
    assert build(Prompt("hi"), "bedrock:anthropic.claude-x", wire_api=wire).url == url


def test_without_a_region_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(StreamError, match="AWS_REGION or AWS_DEFAULT_REGION"):
        build(Prompt("hi"), "bedrock:x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert "us-west-2" in build(Prompt("hi"), "bedrock:x").url


def test_building_needs_no_key_and_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "canary")
    request = built()
    assert "canary" not in repr(request)
    assert "canary" not in repr(Client())


def test_strict_raises_where_the_report_would_not_be_empty() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(input=[user("x"), CALL]), f"bedrock:{CLAUDE}", strict=True)
    assert caught.value.kind == "invalid_history"


def test_an_empty_input_is_an_invalid_request() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(), f"bedrock:{CLAUDE}")
    assert caught.value.code == "empty_input"
