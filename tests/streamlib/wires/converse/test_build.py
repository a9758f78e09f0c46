"""Converse requests: botocore accepts each, history is replayed, changes are reported."""

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
    Client,
    Compaction,
    CustomToolCall,
    FunctionCall,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    Refusal,
    Request,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    StreamError,
    Text,
    accumulate,
    build,
    parse_body,
    parse_request,
    user,
)
from streamlib.wires.bedrock import FAMILIES
from tests.support.bedrock_readers import conversations, request_of, response_of, validated
from tests.support.converse_builds import (
    CALL,
    CLAUDE,
    HERE,
    KIMI,
    LLAMA,
    NEWEST,
    NOVA,
    NOVA_2,
    PDF,
    PNG,
    REDACTED,
    REPLY,
    RUNTIME,
    SIGNED,
    TOOL,
    body,
    built,
    reasons,
    turns,
)
from tests.support.shared import BODIES, PAYLOADS, ROOT, STREAMS, Recording, each_recording
from tests.support.wires import documented

# --- order and replay ---


def test_reasoning_text_and_calls_keep_their_order() -> None:
    second = msgspec.structs.replace(CALL, call_id="tooluse_2")
    request = built(
        user("go"),
        SIGNED,
        CALL,
        REDACTED,
        REPLY,
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


def test_arguments_are_replayed_byte_for_byte() -> None:
    """CASES 46."""
    assert b'"input":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_call_without_arguments_has_an_empty_object() -> None:
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
    assert "not a JSON object: wrapped" in reasons(request)[0]


def test_reasoning_with_only_a_signature_is_replayed() -> None:
    """CASES 17."""
    signed = Reasoning("", signature="sig", origin=HERE)
    content = body(built(user("x"), signed, REPLY, user("y")))["messages"][1]["content"]
    assert content[0] == {"reasoningContent": {"reasoningText": {"text": "", "signature": "sig"}}}


def test_redacted_reasoning_is_replayed_unchanged() -> None:
    content = body(built(user("x"), REDACTED, REPLY, user("y")))["messages"][1]["content"]
    assert content[0] == {"reasoningContent": {"redactedContent": "RXU4RUNr"}}


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


def test_server_tool_and_its_result_keep_their_types() -> None:
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


def test_unknown_blocks_are_replayed_unchanged() -> None:
    opaque = Opaque(
        "searchResult", {"searchResult": {"source": "s", "title": "t", "content": []}}, origin=HERE
    )
    assert body(built(user("x"), opaque, user("y")))["messages"][1]["content"] == [opaque.payload]


@each_recording("bedrock-converse", [*STREAMS, *BODIES, *PAYLOADS])
def test_recorded_response_is_replayed_unchanged(recording: Recording) -> None:
    """Invariant 5."""
    response = response_of(recording)
    items = [item for item in response.items if _is_replayed(item)]
    if response.status == "failed" or all(isinstance(item, Reasoning) for item in items):
        return
    outputs = [call.output("y") for call in response.calls]
    model = recording.meta.get("model") or CLAUDE
    request = built(user("x"), *items, *outputs, user("z"), model=model)
    dropped = {
        change.path for change in request.report if "takes no earlier reasoning" in change.reason
    }
    sent_items = [item for item in items if not _is_blank(item)]
    content: Any = []
    if sent_items:
        content = _second_turn(request)
    message = {"output": {"message": {"role": "assistant", "content": content}}}
    replayed = accumulate(parse_body("converse", msgspec.json.encode(message)))
    expected = []
    for position, item in enumerate(items, 1):
        if item in sent_items and f"/input/{position}" not in dropped:
            expected.append(_comparable(item))
    assert [_comparable(item) for item in replayed.items] == expected


def _is_replayed(item: ResponseItem) -> bool:
    """Whether a request may hold the item: reasoning only if it is signed or redacted."""
    if isinstance(item, Reasoning):
        return bool(item.signature or item.redacted)
    return item.status == "completed"


def _is_blank(item: ResponseItem) -> bool:
    return isinstance(item, Message) and not item.text.strip()


def _second_turn(request: Request) -> Any:
    """The content of the assistant's turn, in the bytes that are sent."""
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(sent["messages"], type=list[dict[str, msgspec.Raw]])[1]["content"]


def _comparable(item: Any) -> Any:
    """What must be equal: not the origin, nor `native` of a text, which no union member holds.

    Empty arguments are sent as an empty object.
    """
    item = msgspec.structs.replace(item, response_id=None, origin=None)
    if isinstance(item, Message):
        return msgspec.structs.replace(item, native=None)
    if isinstance(item, (FunctionCall, ServerToolCall)):
        return msgspec.structs.replace(item, arguments=item.arguments or "{}")
    return item


def test_recorded_conversations_are_built_like_their_clients() -> None:
    """The next recorded request is built from the request and response before it.

    The blocks have the same values, where the client kept them all.
    """
    compared = 0
    for conversation in conversations("bedrock-converse"):
        for earlier, later in pairwise(conversation):
            (first, path), (second, _) = request_of(earlier), request_of(later)
            prompt = parse_request("converse", first, path=path)
            expected = parse_request("converse", second, path=path)
            items = [*prompt.items, *response_of(earlier).items]
            kept_items, new_items = expected.items[: len(items)], expected.items[len(items) :]
            if [type(item) for item in items] != [type(item) for item in kept_items]:
                continue
            grown = msgspec.structs.replace(prompt, input=[*items, *new_items])
            again = body(build(grown, f"bedrock:{prompt.model}"))
            recorded = msgspec.json.decode(second)
            assert _normalized(again["messages"]) == _normalized(recorded["messages"]), (
                earlier.path.name
            )
            compared += 1
    assert compared >= 10


def _normalized(value: Any) -> Any:
    """Without `status: success`, the default; one recorder wrote dashes differently."""
    if isinstance(value, dict):
        normalized = {key: _normalized(inner) for key, inner in value.items()}
        if normalized.get("status") == "success":
            del normalized["status"]
        return normalized
    if isinstance(value, list):
        return [_normalized(inner) for inner in value]
    if isinstance(value, str):
        return value.replace("\u2014", "--")
    return value


def test_each_request_starts_with_the_one_before() -> None:
    """Invariant 5: the elements are a byte prefix."""
    history: list[ResponseItem] = [
        user("a"),
        SIGNED,
        CALL,
        CALL.output(""),
        REPLY,
        user("", PDF),
        REPLY,
        user("b", PDF),
        REPLY,
        user("c"),
    ]
    ends = (1, 4, 6, 8, 10)
    elements = [_elements(built(*history[:n], tools=[TOOL], instructions="s")) for n in ends]
    for shorter, longer in pairwise(elements):
        assert longer[: len(shorter)] == shorter


def _elements(request: Request) -> list[bytes]:
    sent = body(request)
    content = [(turn["role"], block) for turn in sent["messages"] for block in turn["content"]]
    elements = (*sent["toolConfig"]["tools"], *sent["system"], *content)
    return [msgspec.json.encode(element) for element in elements]


def _numbered_item(kind: str, number: int) -> ResponseItem:
    if kind == "reasoning":
        return Reasoning(f"h{number}", signature=f"s{number}", origin=HERE)
    if kind == "text":
        return Message("assistant", [Text(f"t{number}")], origin=HERE)
    arguments = f'{{"n": {number}.0}}'
    return FunctionCall(f"c{number}", "f", arguments, origin=HERE)


@given(st.lists(st.sampled_from(["reasoning", "text", "call"]), min_size=1, max_size=10))
def test_any_interleaving_is_replayed_in_its_order(kinds: list[str]) -> None:
    if kinds[-1] == "reasoning":
        kinds = [*kinds, "text"]  # a turn does not end with reasoning (A14)
    items = [_numbered_item(kind, number) for number, kind in enumerate(kinds)]
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
            REPLY,
            Message("assistant", [Text(" \n")]),
            Message("assistant", [Refusal("no")]),
            Message("system", [Text("Be kind.")]),
            SIGNED,
            REDACTED,
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
        _assert_calls_have_results(validated(request))
    assert code in (None, "empty_input")


def _assert_calls_have_results(sent: dict[str, Any]) -> None:
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


# --- the page of the wire ---


def test_every_rule_that_the_builder_names_is_in_the_table() -> None:
    folder = ROOT / "streamlib" / "wires" / "converse"
    sources = [path.read_text("utf-8") for path in sorted(folder.glob("build*.py"))]
    named = set(re.findall(r"\b(B\d+)\b", " ".join(sources)))
    page = (ROOT / "docs" / "wires" / "converse.md").read_text("utf-8").split("## Out", 1)[1]
    assert named <= set(re.findall(r"^\| (B\d+) ", page, re.MULTILINE))


def test_the_families_on_the_page_are_those_in_the_code() -> None:
    expected = {}
    for family in FAMILIES:
        expected[family.name] = [
            list(family.marks),
            list(family.choices),
            ["yes"] if family.status else [],
            [family.reasoning],
            list(family.caches),
        ]
    assert documented("converse", "Families") == expected


# --- the request ---


def test_the_path_has_the_model_percent_encoded() -> None:
    model_path = "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    assert built().url == f"{RUNTIME}/model/{model_path}"
    arn = built(model="arn:aws:bedrock:us-east-1:123456789012:inference-profile/x")
    arn_path = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fx"
    assert f"/model/{arn_path}/converse-stream" in arn.url


@pytest.mark.parametrize(
    ("wire", "url"),
    [
        ("messages", "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages"),
        ("chat", f"{RUNTIME}/openai/v1/chat/completions"),
        ("responses", f"{RUNTIME}/openai/v1/responses"),
        ("invoke", f"{RUNTIME}/model/anthropic.claude-x/invoke-with-response-stream"),
    ],
)
def test_other_wires_have_their_own_endpoints(wire: Any, url: str) -> None:
    assert build(Prompt("hi"), "bedrock:anthropic.claude-x", wire_api=wire).url == url


def test_the_error_without_a_region_names_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
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
