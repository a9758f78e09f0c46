"""Messages requests: history is replayed as received, changes are reported."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Compaction,
    FunctionCall,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    Request,
    ResponseEvent,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    StreamError,
    Text,
    accumulate,
    build,
    parse_body,
    parser,
    user,
)
from tests.support.messages_builds import CALL, HERE, SIGNED, TOOL, body, built, turns
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

# --- order and replay ---


def test_reasoning_text_and_calls_keep_their_order() -> None:
    """CASES 12."""
    second = msgspec.structs.replace(CALL, call_id="toolu_2")
    items = [
        user("go"),
        SIGNED,
        CALL,
        SIGNED,
        Message("assistant", [Text("so")], response_id="r1"),
        second,
    ]
    request = built(*items, CALL.output("1"), second.output("2"), model="anthropic:claude-opus-5")
    assert turns(request) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "tool_use", "thinking", "text", "tool_use"]),
        ("user", ["tool_result", "tool_result"]),
    ]
    assert request.report == []


def test_arguments_are_replayed_byte_for_byte() -> None:
    """CASES 46."""
    assert b'"input":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_call_without_arguments_has_an_empty_object() -> None:
    """CASES 7."""
    empty = FunctionCall("c", "f", "")
    assert b'"input":{}' in built(user("x"), empty, empty.output("y")).body


def test_reasoning_blanked_by_the_provider_keeps_its_signature() -> None:
    """CASES 16."""
    request = built(
        user("x"),
        Reasoning("", signature="sig", origin=HERE),
        Message("assistant", [Text("so")], origin=HERE),
        user("y"),
        model="anthropic:claude-opus-5",
    )
    assert body(request)["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "",
        "signature": "sig",
    }


def test_unknown_blocks_and_native_keys_are_replayed() -> None:
    opaque = Opaque("hologram", {"type": "hologram", "x": [1.0]}, origin=HERE)
    called = msgspec.structs.replace(CALL, native={"caller": {"type": "direct"}})
    content = body(built(user("x"), opaque, called, CALL.output("y")))["messages"][1]["content"]
    assert content[0] == {"type": "hologram", "x": [1.0]}
    assert content[1]["caller"] == {"type": "direct"}


def test_server_tool_and_its_result_keep_their_types() -> None:
    call = ServerToolCall(
        "s1", "echo", "{}", native={"type": "mcp_tool_use", "server_name": "s"}, origin=HERE
    )
    result = ServerToolResult(
        "s1", "mcp", [], native={"type": "mcp_tool_result", "is_error": False}, origin=HERE
    )
    content = body(built(user("x"), call, result, user("y")))["messages"][1]["content"]
    assert [(block["type"], block.get("server_name")) for block in content] == [
        ("mcp_tool_use", "s"),
        ("mcp_tool_result", None),
    ]


def test_a24_compaction_without_text_has_null_content() -> None:
    """A24."""
    content = body(built(user("x"), Compaction("", "Epw", origin=HERE), user("y")))["messages"][1][
        "content"
    ]
    assert content == [{"type": "compaction", "content": None, "encrypted_content": "Epw"}]


@each_recording("anthropic-messages", [*STREAMS, *BODIES])
def test_recorded_response_is_replayed_unchanged(recording: Recording) -> None:
    """Invariant 5."""
    response = accumulate(_events(recording))
    if response.status == "failed" or not response.items:
        return
    items = [item for item in response.items if item.status == "completed"]
    outputs = [call.output("y") for call in response.calls]
    request = built(user("x"), *items, *outputs, user("z"))
    content = {"type": "message", "content": _second_turn(request)}
    replayed = accumulate(parse_body("messages", msgspec.json.encode(content)))
    expected = [_comparable(item) for item in items if not _is_blank(item)]
    assert [_comparable(item) for item in replayed.items] == expected


def _events(recording: Recording) -> list[ResponseEvent]:
    if recording.path.suffix == ".json":
        return parse_body("messages", recording.body)
    parse = parser("messages")
    return [*parse.feed(recording.body), *parse.close()]


def _is_blank(item: ResponseItem) -> bool:
    return isinstance(item, Message) and not item.text.strip()


def _second_turn(request: Request) -> Any:
    """The content of the assistant's turn, in the bytes that are sent."""
    sent = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    turns = msgspec.json.decode(sent["messages"], type=list[dict[str, msgspec.Raw]])
    if len(turns) == 1:
        return []
    return turns[1]["content"]


def _comparable(item: Any) -> Any:
    """What must be equal: not the origin, nor keys of citations that only responses have."""
    if isinstance(item, Message):
        parts = [_without_file_ids(part) for part in item.content if isinstance(part, Text)]
        item = msgspec.structs.replace(item, content=parts)
    return msgspec.structs.replace(item, response_id=None, origin=None)


def _without_file_ids(part: Text) -> Text:
    annotations = []
    for annotation in part.annotations:
        annotations.append({key: annotation[key] for key in annotation if key != "file_id"})
    return msgspec.structs.replace(part, annotations=annotations)


def test_each_request_starts_with_the_one_before() -> None:
    """Invariant 5: the elements are a byte prefix."""
    history: list[ResponseItem] = [
        user("a"),
        SIGNED,
        CALL,
        CALL.output("1"),
        Message("assistant", [Text("b")]),
        user("c"),
    ]
    elements = [_elements(built(*history[:n], tools=[TOOL], instructions="s")) for n in (1, 4, 6)]
    for shorter, longer in pairwise(elements):
        assert longer[: len(shorter)] == shorter


def _elements(request: Request) -> list[bytes]:
    sent = body(request)
    content = [(turn["role"], block) for turn in sent["messages"] for block in turn["content"]]
    return [msgspec.json.encode(element) for element in (*sent["tools"], *sent["system"], *content)]


def _numbered_item(kind: str, number: int) -> ResponseItem:
    if kind == "reasoning":
        return Reasoning(f"h{number}", signature=f"s{number}", origin=HERE, response_id="r")
    if kind == "text":
        return Message("assistant", [Text(f"t{number}")], origin=HERE, response_id="r")
    arguments = f'{{"n": {number}.0}}'
    return FunctionCall(f"c{number}", "f", arguments, origin=HERE, response_id="r")


@given(st.lists(st.sampled_from(["reasoning", "text", "call"]), min_size=1, max_size=10))
def test_any_interleaving_is_replayed_in_its_order(kinds: list[str]) -> None:
    """CASES 13."""
    if kinds[-1] == "reasoning":
        kinds = [*kinds, "text"]  # a turn does not end with reasoning (A14)
    items = [_numbered_item(kind, number) for number, kind in enumerate(kinds)]
    outputs = [item.output("o") for item in items if isinstance(item, FunctionCall)]
    content = body(built(user("x"), *items, *outputs, user("y")))["messages"][1]["content"]
    again = accumulate(
        parse_body(
            "messages", msgspec.json.encode({"type": "message", "id": "r", "content": content})
        )
    )
    assert [type(item) for item in again.items] == [type(item) for item in items]
    assert [item.signature for item in again.items] == [item.signature for item in items]


# --- the request ---


def test_strict_raises_where_the_report_would_not_be_empty() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(input=[user("x"), CALL]), "anthropic:claude-opus-5", strict=True)
    assert (caught.value.kind, caught.value.detail[0].action) == ("invalid_history", "generated")
    with pytest.raises(StreamError) as caught:
        build(Prompt(input="x", seed=1), "anthropic:claude-opus-5", strict=True)
    assert caught.value.kind == "invalid_request"


def test_strict_origin_treats_the_unknown_as_foreign() -> None:
    reply = Message("assistant", [Text("so")], origin=HERE)
    prompt = Prompt(input=[user("x"), SIGNED, reply, user("y")])
    assert build(prompt, "anthropic:claude-opus-5").report == []
    assert (
        build(prompt, "anthropic:claude-opus-5", strict_origin=True).report[0].action
        == "downgraded"
    )


@pytest.mark.parametrize(
    "bad", ["claude", "anthropc:x", "anthropic:", "anthropic:a b", "anthropic:a\nb"]
)
def test_a_model_that_cannot_be_found_is_an_invalid_request(bad: str) -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(input="x"), bad)
    assert caught.value.kind == "invalid_request"


def test_the_error_for_an_unknown_provider_names_near_matches() -> None:
    with pytest.raises(StreamError, match="anthropic"):
        build(Prompt(input="x"), "anthropc:claude-opus-5")


def test_building_needs_no_key_and_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    request = build(Prompt(input="x"), "anthropic:claude-opus-5")
    assert "sk-canary" not in repr(request)
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_a17_system_message_between_two_user_turns_is_user_text() -> None:
    """Found by the strict provider: it precedes an assistant turn, or is the last."""
    system = Message("system", [Text("Be brief.")])
    request = built(user("hi"), system, user("and?"), model="anthropic:claude-opus-5")
    assert [turn["role"] for turn in body(request)["messages"]] == ["user"]
    assert "<system>\nBe brief.\n</system>" in request.body.decode().replace("\\n", "\n")
    assert [change.action for change in request.report] == ["changed"]
    last = built(user("hi"), system, model="anthropic:claude-opus-5")
    assert [turn["role"] for turn in body(last)["messages"]] == ["user", "system"]
