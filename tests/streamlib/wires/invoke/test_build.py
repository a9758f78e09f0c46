"""InvokeModel requests: each family of models gets the body of its own API."""

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
from tests.support.bedrock_readers import conversations, request_of, response_of
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

HERE = Origin("invoke")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
CALL = FunctionCall("toolu_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE)
SIGNED = Reasoning("hm", signature="EqQB", origin=HERE)
REPLY = Message("assistant", [Text("so")], origin=HERE)
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


def test_the_body_of_claude_is_a_messages_body() -> None:
    request = built(
        user("x"),
        SIGNED,
        CALL,
        CALL.output("1"),
        tools=[TOOL],
        max_output_tokens=9000,
        reasoning=4000,
        instructions="s",
    )
    without_origin = [_without_origin(item) for item in (SIGNED, CALL)]
    prompt = Prompt(
        [user("x"), *without_origin, CALL.output("1")],
        tools=[TOOL],
        max_output_tokens=9000,
        reasoning=4000,
        instructions="s",
    )
    twin = build(prompt, CLAUDE, provider="custom", wire_api="messages", base_url="http://x")
    expected = {key: value for key, value in body(twin).items() if key not in ("model", "stream")}
    assert body(request) == {"anthropic_version": "bedrock-2023-05-31", **expected}
    assert request.report == []
    assert request.url.endswith(
        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
    )


def test_betas_are_in_the_body() -> None:
    request = built(
        reasoning="high", thinking_mismatch="drop_block", model="us.anthropic.claude-opus-5-5"
    )
    assert body(request)["anthropic_beta"] == ["thinking-binding-controls-2026-08-01"]
    assert "anthropic-beta" not in request.headers
    provider = Provider("mine", ("invoke",), "http://x", headers={"anthropic-beta": "a, b"})
    assert body(build(Prompt("hi"), CLAUDE, provider=provider))["anthropic_beta"] == ["a", "b"]
    assert "anthropic_beta" not in body(built())


def test_arguments_are_replayed_byte_for_byte() -> None:
    """CASES 46."""
    assert b'"input":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_a21_images_and_documents_are_sent_in_bytes_only() -> None:
    parts = (PNG, Image(url="https://x/y.png"), Document(file_id="f"))
    request = built(user("see", *parts), CALL, CALL.output(parts))
    sent = body(request)["messages"]
    assert [block["type"] for block in sent[0]["content"]] == ["text", "image"]
    assert [block["type"] for block in sent[2]["content"][0]["content"]] == ["image"]
    assert [(change.action, change.path) for change in request.report] == [
        ("dropped", "/input/0"),
        ("dropped", "/input/2"),
    ]


def test_auto_caching_is_written_as_markers() -> None:
    sent = body(
        built(user("a"), REPLY, user("b"), instructions="s", tools=[TOOL], cache=CacheOptions("1h"))
    )
    marker = {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in sent
    assert [
        block["cache_control"]
        for block in (sent["tools"][-1], sent["system"][-1], sent["messages"][-1]["content"][-1])
    ] == [marker] * 3
    assert "cache_control" not in str(sent["messages"][:-1])


def test_the_service_tier_is_a_header() -> None:
    for model in (CLAUDE, NOVA):
        request = built(service_tier="flex", model=model)
        assert request.headers["x-amzn-bedrock-service-tier"] == "flex"
        assert not body(request).keys() & {"service_tier", "serviceTier"}
    refused = built(service_tier="auto")
    assert [change.path for change in refused.report] == ["/service_tier"]
    assert "x-amzn-bedrock-service-tier" not in refused.headers


def test_state_of_another_wire_is_downgraded() -> None:
    foreign = Reasoning("hm", signature="s", origin=Origin("converse"))
    request = built(
        user("x"), foreign, ServerToolCall("s", "web", "{}", origin=Origin("responses")), user("y")
    )
    assert [block["type"] for block in body(request)["messages"][1]["content"]] == ["text", "text"]
    assert [change.action for change in request.report] == ["downgraded", "downgraded"]


@each_recording("bedrock-invoke", [*STREAMS, *BODIES])
def test_recorded_response_of_claude_is_replayed_unchanged(recording: Recording) -> None:
    """Invariant 5."""
    response = response_of(recording)
    items = [item for item in response.items if item.status == "completed" and not _is_blank(item)]
    if response.status == "failed" or not items or "claude" not in str(response.model):
        return
    outputs = [call.output("y") for call in response.calls]
    request = built(user("x"), *items, *outputs, user("z"))
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    content = msgspec.json.decode(sent["messages"], type=list[dict[str, msgspec.Raw]])[1]["content"]
    message = msgspec.json.encode({"type": "message", "content": content})
    replayed = accumulate(parse_body("invoke", message))
    expected = [_without_origin(item) for item in items]
    assert [_without_origin(item) for item in replayed.items] == expected


def _is_blank(item: ResponseItem) -> bool:
    return isinstance(item, Message) and not item.text.strip()


def _without_origin(item: ResponseItem) -> ResponseItem:
    return msgspec.structs.replace(item, response_id=None, origin=None)


def test_recorded_conversations_are_built_like_their_clients() -> None:
    """The next recorded request is built from the request and response before it."""
    compared = 0
    for conversation in conversations("bedrock-invoke"):
        for earlier, later in pairwise(conversation):
            (first, path), (second, _) = request_of(earlier), request_of(later)
            if b"anthropic_version" not in first or b"anthropic_version" not in second:
                continue
            prompt = parse_request("invoke", first, path=path)
            expected = parse_request("invoke", second, path=path)
            items = [*prompt.items, *response_of(earlier).items]
            kept_items, new_items = expected.items[: len(items)], expected.items[len(items) :]
            if [type(item) for item in items] != [type(item) for item in kept_items]:
                continue
            grown = msgspec.structs.replace(prompt, input=[*items, *new_items])
            again = body(build(grown, f"bedrock:{prompt.model}", wire_api="invoke"))
            assert _blocks(again) == _blocks(msgspec.json.decode(second))
            compared += 1
    assert compared >= 3


def _blocks(request: dict[str, Any]) -> list[Any]:
    """Role, type, id and input of every block; a string is one text block."""
    blocks: list[Any] = []
    for turn in request["messages"]:
        content = turn["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content:
            block_id = block.get("id") or block.get("tool_use_id")
            blocks.append((turn["role"], block["type"], block_id, block.get("input")))
    return blocks


def test_each_request_starts_with_the_one_before() -> None:
    """Invariant 5: the elements are a byte prefix."""
    history: list[ResponseItem] = [user("a"), SIGNED, CALL, CALL.output("1"), REPLY, user("c")]
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
    return [msgspec.json.encode(element) for element in (*tools, *sent["system"], *content)]


# --- the others ---


def test_the_body_of_nova_is_a_converse_body_with_model_fields() -> None:
    request = built(
        user("x"),
        CALL,
        CALL.output("1"),
        tools=[TOOL],
        instructions="s",
        model=NOVA,
        reasoning="low",
        top_k=3,
        max_output_tokens=9,
        metadata={"team": "a"},
        output_schema={"type": "object"},
    )
    sent = body(request)
    assert sent["schemaVersion"] == "messages-v1"
    assert sent["inferenceConfig"] == {"maxTokens": 9, "topK": 3}
    assert sent["reasoningConfig"] == {"type": "enabled", "maxReasoningEffort": "low"}
    assert sent["messages"][1]["content"][0]["toolUse"]["toolUseId"] == "toolu_1"
    assert not sent.keys() & {"additionalModelRequestFields", "requestMetadata", "outputConfig"}
    assert request.headers["x-amzn-bedrock-request-metadata"] == '{"team":"a"}'
    assert [change.path for change in request.report] == ["/output_schema"]


@pytest.mark.parametrize("model", ["ai21.jamba-1-5-mini-v1:0", "openai.gpt-oss-120b-1:0"])
def test_models_of_the_chat_wire_get_its_body(model: str) -> None:
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
def test_text_only_families_are_refused_with_an_alternative(model: str) -> None:
    with pytest.raises(StreamError, match="wire_api='converse'") as caught:
        built(model=model)
    assert caught.value.kind == "invalid_request"


def test_an_unknown_name_gets_the_body_of_claude() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
    assert body(built(model=arn))["anthropic_version"] == "bedrock-2023-05-31"


def test_a3_a_user_turn_is_first_on_bedrock() -> None:
    """Found by the strict provider: Bedrock refuses another one, Anthropic's own API does not."""
    request = built(REPLY, user("and?"))
    assert [turn["role"] for turn in body(request)["messages"]] == ["user", "assistant", "user"]
    assert [change.action for change in request.report] == ["generated"]
