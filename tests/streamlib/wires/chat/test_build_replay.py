"""Chat requests: recorded responses and conversations are replayed; official types."""

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
    CustomToolCall,
    Document,
    FunctionCall,
    Message,
    Reasoning,
    Refusal,
    Request,
    ResponseItem,
    Text,
    ToolSpec,
    accumulate,
    parse_body,
    parse_request,
    parser,
    user,
)
from streamlib.providers.shapes import (
    ANYTHING,
    ChatShape,
)
from tests.support.chat_builds import (
    CALL,
    HERE,
    OPENROUTER,
    PNG,
    REASONING,
    TEXT,
    TOOL,
    body,
    built,
    sent,
)
from tests.support.sdks import reader_of
from tests.support.shared import (
    BODIES,
    CORPUS,
    PAYLOADS,
    STREAMS,
    Recording,
    each_recording,
    require,
)

# --- replay ---


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
        read = reader_of(kind).validate_python(message)
        for parts in (read.get("content"), read.get("tool_calls")):
            if parts is not None and not isinstance(parts, str):
                assert len(list(parts)) > 0  # the parts are checked when they are read
    union = types.ChatCompletionToolUnionParam
    assert list(reader_of(list[union]).validate_python(sent["tools"]))
    assert reader_of(types.ChatCompletionToolChoiceOptionParam).validate_python(sent["tool_choice"])
