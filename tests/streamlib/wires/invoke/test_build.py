"""InvokeModel out: each family gets the body of its own API, less what the path and the headers say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from streamlib import (
    CacheOptions,
    Document,
    FunctionCall,
    Image,
    Message,
    Origin,
    Prompt,
    Provider,
    Reasoning,
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
    user,
)
from tests.support.bedrock_readers import answer_of, conversations, request_of
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

HERE = Origin("invoke")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
CALL = FunctionCall("toolu_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE)
THOUGHT = Reasoning("hm", signature="EqQB", origin=HERE)
SAID = Message("assistant", [Text("so")], origin=HERE)
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/png")


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def built(*items: ResponseItem, model: str = CLAUDE, **settings: Any) -> Request:
    return build(
        Prompt(input=items or (user("hi"),), **settings), f"bedrock:{model}", wire_api="invoke"
    )


def body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


# --- Claude ---


def test_claudes_body_is_a_messages_body_without_model_and_stream() -> None:
    request = built(
        user("x"),
        THOUGHT,
        CALL,
        CALL.output("1"),
        tools=[TOOL],
        max_output_tokens=9000,
        reasoning=4000,
        instructions="s",
    )
    twin = build(
        Prompt([user("x"), *(msgspec.structs.replace(item, origin=None) for item in (THOUGHT, CALL)), CALL.output("1")], tools=[TOOL],
               max_output_tokens=9000, reasoning=4000, instructions="s"),
        CLAUDE, provider="custom", wire_api="messages", base_url="http://x",
    )  # fmt: skip
    expected = {key: value for key, value in body(twin).items() if key not in ("model", "stream")}
    assert body(request) == {"anthropic_version": "bedrock-2023-05-31", **expected}
    assert request.report == []
    assert request.url.endswith(
        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
    )


def test_betas_stand_in_the_body() -> None:
    request = built(
        reasoning="high", thinking_mismatch="drop_block", model="us.anthropic.claude-opus-5-5"
    )
    assert body(request)["anthropic_beta"] == ["thinking-binding-controls-2026-08-01"]
    assert "anthropic-beta" not in request.headers
    given = Provider("mine", ("invoke",), "http://x", headers={"anthropic-beta": "a, b"})
    assert body(build(Prompt("hi"), CLAUDE, provider=given))["anthropic_beta"] == ["a", "b"]
    assert "anthropic_beta" not in body(built())


def test_case_46_arguments_go_back_in_their_own_bytes() -> None:
    assert b'"input":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_a21_images_and_documents_are_sent_in_bytes_or_not_at_all() -> None:
    parts = (PNG, Image(url="https://x/y.png"), Document(file_id="f"))
    request = built(user("see", *parts), CALL, CALL.output(parts))
    sent = body(request)["messages"]
    assert [block["type"] for block in sent[0]["content"]] == ["text", "image"]
    assert [block["type"] for block in sent[2]["content"][0]["content"]] == ["image"]
    assert [(change.action, change.path) for change in request.report] == [
        ("dropped", "/input/0"),
        ("dropped", "/input/2"),
    ]


def test_auto_caching_is_written_out_for_bedrock_does_not_choose() -> None:
    sent = body(
        built(user("a"), SAID, user("b"), instructions="s", tools=[TOOL], cache=CacheOptions("1h"))
    )
    marker = {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in sent
    assert [
        block["cache_control"]
        for block in (sent["tools"][-1], sent["system"][-1], sent["messages"][-1]["content"][-1])
    ] == [marker] * 3
    assert "cache_control" not in str(sent["messages"][:-1])


def test_the_service_tier_stands_in_a_header() -> None:
    for model in (CLAUDE, NOVA):
        request = built(service_tier="flex", model=model)
        assert request.headers["x-amzn-bedrock-service-tier"] == "flex"
        assert not body(request).keys() & {"service_tier", "serviceTier"}
    refused = built(service_tier="auto")
    assert [change.path for change in refused.report] == ["/service_tier"]
    assert "x-amzn-bedrock-service-tier" not in refused.headers


def test_state_of_another_wire_goes_down_the_ladder() -> None:
    foreign = Reasoning("hm", signature="s", origin=Origin("converse"))
    request = built(
        user("x"), foreign, ServerToolCall("s", "web", "{}", origin=Origin("responses")), user("y")
    )
    assert [block["type"] for block in body(request)["messages"][1]["content"]] == ["text", "text"]
    assert [change.action for change in request.report] == ["downgraded", "downgraded"]


@each_recording("bedrock-invoke", [*STREAMS, *BODIES])
def test_law_5_a_recorded_answer_of_claude_is_replayed_as_it_was_said(recording: Recording) -> None:
    answer = answer_of(recording)
    kept = [
        item
        for item in answer.items
        if item.status == "completed" and not (isinstance(item, Message) and not item.text.strip())
    ]
    if answer.status == "failed" or not kept or "claude" not in str(answer.model):
        return
    request = built(user("x"), *kept, *(call.output("y") for call in answer.calls), user("z"))
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    content = msgspec.json.decode(sent["messages"], type=list[dict[str, msgspec.Raw]])[1]["content"]
    again = accumulate(
        parse_body("invoke", msgspec.json.encode({"type": "message", "content": content}))
    )
    assert [_bare(item) for item in again.items] == [_bare(item) for item in kept]


def _bare(item: Any) -> Any:
    return msgspec.structs.replace(item, response_id=None, origin=None)


def test_recorded_conversations_are_built_as_their_clients_built_them() -> None:
    compared = 0
    for earlier, later in (
        pair for conversation in conversations("bedrock-invoke") for pair in pairwise(conversation)
    ):
        (first, path), (second, _) = request_of(earlier), request_of(later)
        if b"anthropic_version" not in first or b"anthropic_version" not in second:
            continue
        known, wanted = (
            parse_request("invoke", first, path=path),
            parse_request("invoke", second, path=path),
        )
        items = [*known.items, *answer_of(earlier).items]
        if [type(item) for item in items] == [type(item) for item in wanted.items[: len(items)]]:
            prompt = msgspec.structs.replace(known, input=[*items, *wanted.items[len(items) :]])
            assert _blocks(
                body(build(prompt, f"bedrock:{known.model}", wire_api="invoke"))
            ) == _blocks(msgspec.json.decode(second))
            compared += 1
    assert compared >= 3


def _blocks(request: dict[str, Any]) -> list[Any]:
    """Role, kind, id and input of every block."""
    told: list[Any] = []
    for turn in request["messages"]:
        content = (
            turn["content"]
            if isinstance(turn["content"], list)
            else [{"type": "text", "text": turn["content"]}]
        )
        told += [
            (
                turn["role"],
                block["type"],
                block.get("id") or block.get("tool_use_id"),
                block.get("input"),
            )
            for block in content
        ]
    return told


def test_prefix_law_each_request_begins_with_the_one_before() -> None:
    history: list[ResponseItem] = [user("a"), THOUGHT, CALL, CALL.output("1"), SAID, user("c")]
    for model in (CLAUDE, NOVA):
        elements = [
            _elements(built(*history[:n], tools=[TOOL], instructions="s", model=model))
            for n in (1, 4, 6)
        ]
        for shorter, longer in pairwise(elements):
            assert longer[: len(shorter)] == shorter


def _elements(request: Request) -> list[bytes]:
    sent = body(request)
    tools = sent["tools"] if "tools" in sent else sent["toolConfig"]["tools"]
    content = [(turn["role"], block) for turn in sent["messages"] for block in turn["content"]]
    return [msgspec.json.encode(one) for one in (*tools, *sent["system"], *content)]


# --- the others ---


def test_novas_body_is_converses_with_the_models_own_keys_beside_it() -> None:
    request = built(user("x"), CALL, CALL.output("1"), tools=[TOOL], instructions="s", model=NOVA, reasoning="low", top_k=3,
                    max_output_tokens=9, metadata={"team": "a"}, output_schema={"type": "object"})  # fmt: skip
    sent = body(request)
    assert sent["schemaVersion"] == "messages-v1"
    assert sent["inferenceConfig"] == {"maxTokens": 9, "topK": 3}
    assert sent["reasoningConfig"] == {"type": "enabled", "maxReasoningEffort": "low"}
    assert sent["messages"][1]["content"][0]["toolUse"]["toolUseId"] == "toolu_1"
    assert not sent.keys() & {"additionalModelRequestFields", "requestMetadata", "outputConfig"}
    assert request.headers["x-amzn-bedrock-request-metadata"] == '{"team":"a"}'
    assert [change.path for change in request.report] == ["/output_schema"]


@pytest.mark.parametrize("model", ["ai21.jamba-1-5-mini-v1:0", "openai.gpt-oss-120b-1:0"])
def test_models_that_speak_chat_get_its_body(model: str) -> None:
    sent = body(built(instructions="s", max_output_tokens=9, temperature=0.5, model=model))
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    assert sent == {"messages": messages, "max_tokens": 9, "temperature": 0.5}


@pytest.mark.parametrize(
    "model",
    [
        "meta.llama3-8b-instruct-v1:0",
        "mistral.mistral-7b-instruct-v0:2",
        "amazon.titan-text-express-v1",
        "cohere.command-r-v1:0",
    ],
)
def test_families_that_want_one_text_are_refused_with_the_way_to_ask_them(model: str) -> None:
    with pytest.raises(StreamError, match="wire_api='converse'") as caught:
        built(model=model)
    assert caught.value.kind == "invalid_request"


def test_a_name_that_tells_nothing_is_asked_as_claude() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
    assert body(built(model=arn))["anthropic_version"] == "bedrock-2023-05-31"
