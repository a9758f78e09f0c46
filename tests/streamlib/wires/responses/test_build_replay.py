"""Responses requests: replay of responses and conversations, official types."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Compaction,
    CustomToolCall,
    Document,
    FunctionCall,
    Message,
    Opaque,
    Reasoning,
    Request,
    Response,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    accumulate,
    parse_body,
    parse_request,
    parser,
    user,
)
from tests.support.built_in_calls import answer
from tests.support.responses_builds import (
    CALL,
    HERE,
    MESSAGE,
    MESSAGES,
    PNG,
    REASONING,
    TOOL,
    body,
    built,
    changes,
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


def test_response_is_replayed_in_order_without_ids_and_status() -> None:
    assert sent(user("go"), REASONING, MESSAGE, CALL, CALL.output("1"))[1:] == [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}],
            "encrypted_content": "gAAA",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "so", "annotations": []}],
            "phase": "final_answer",
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"b": 1.0, "a": [1e5]}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
    ]


def test_phase_is_replayed_unchanged() -> None:
    progress = msgspec.structs.replace(MESSAGE, phase="commentary")
    assert [item.get("phase") for item in sent(user("x"), progress, MESSAGE)] == [
        None,
        "commentary",
        "final_answer",
    ]


def test_empty_summary_stays_an_empty_list() -> None:
    assert (
        sent(user("x"), msgspec.structs.replace(REASONING, summary=()), MESSAGE)[1]["summary"] == []
    )


def test_native_keys_are_replayed_and_nulls_are_not() -> None:
    """R7."""
    call = msgspec.structs.replace(CALL, native={"namespace": "crm", "caller": None})
    assert sent(user("x"), call, CALL.output("y"))[1] == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "f",
        "arguments": CALL.arguments,
        "namespace": "crm",
    }


@pytest.mark.parametrize(("origin", "arguments"), [(HERE, ""), (MESSAGES, "{}"), (None, "{}")])
def test_empty_arguments_of_another_wire_are_an_empty_object(origin: Any, arguments: str) -> None:
    empty = FunctionCall("c", "f", "", origin=origin)
    assert sent(user("x"), empty, empty.output("y"))[1]["arguments"] == arguments


def test_custom_call_and_its_output_are_free_text() -> None:
    call = CustomToolCall("c", "patch", "*** Begin", origin=HERE, id="ctc_1")
    assert sent(user("x"), call, call.output("ok"))[1:] == [
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    ]


def test_hosted_tool_is_replayed_complete_with_id_and_status() -> None:
    """A11: its type requires both."""
    search = ServerToolCall(
        "ws_1",
        "web_search",
        '{"type": "search", "query":"q"}',
        id="ws_1",
        origin=HERE,
        native={"type": "web_search_call"},
    )
    request = built(user("x"), search, MESSAGE)
    assert b'"action":{"type": "search", "query":"q"}' in request.body
    assert body(request)["input"][1] == {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }


def test_results_that_are_separate_items_are_replayed() -> None:
    result = ServerToolResult(
        "c", "program", "1", id="cmo_1", origin=HERE, native={"type": "program_output"}
    )
    assert sent(user("x"), result, MESSAGE)[1] == {
        "type": "program_output",
        "id": "cmo_1",
        "result": "1",
        "call_id": "c",
    }


def test_unknown_items_and_compactions_are_kept_for_their_wire() -> None:
    unknown = Opaque("hologram", {"type": "hologram", "x": [1.0]}, origin=HERE)
    compaction = Compaction(encrypted_content="gAAA", id="cmp_1", origin=HERE)
    assert sent(user("x"), unknown, compaction, user("y"))[1:3] == [
        {"type": "hologram", "x": [1.0]},
        {"type": "compaction", "encrypted_content": "gAAA"},
    ]


def test_items_before_a_compaction_are_kept() -> None:
    assert len(sent(user("x"), Compaction(encrypted_content="gAAA", origin=HERE), user("y"))) == 3


def test_unknown_part_is_put_back_into_its_message() -> None:
    part = Opaque(
        "hologram",
        {"type": "hologram"},
        origin=HERE,
        native={"item_id": "msg_1", "content_index": 0},
    )
    message = sent(user("x"), MESSAGE, part)[1]
    assert [content["type"] for content in message["content"]] == ["hologram", "output_text"]


def test_unknown_part_without_its_message_is_dropped() -> None:
    part = Opaque(
        "hologram",
        {"type": "hologram"},
        origin=HERE,
        native={"item_id": "msg_9", "content_index": 0},
    )
    request = built(user("x"), MESSAGE, part)
    assert changes(request) == [("dropped", "/input/2")]


def responded(recording: Recording) -> Response:
    if recording.path.suffix == ".json":
        return accumulate(parse_body("responses", recording.body))
    p = parser("responses")
    if recording.path.suffix == ".sse":
        return accumulate([*p.feed(recording.body), *p.close()])
    return accumulate(
        [*(event for line in recording.payloads for event in p.feed_event(line)), *p.close()]
    )


@each_recording("openai-responses", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_response_is_replayed_exactly(recording: Recording) -> None:
    response = responded(recording)
    items = [item for item in response.items if item.status == "completed"]
    if response.status == "failed" or not items:
        return
    history = [user("x"), *items, *map(answer, response.pending), user("z")]
    request = built(*history, extra={"store": True})
    dropped = {change.path for change in request.report if change.action == "dropped"}
    kept_items = [
        item for position, item in enumerate(items, 1) if f"/input/{position}" not in dropped
    ]
    raw = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])["input"]
    again = accumulate(
        parse_body("responses", b'{"status":"completed","output":%s}' % bytes(raw))
    ).items
    assert [replayed(item) for item in again[1 : len(kept_items) + 1]] == [
        replayed(item) for item in kept_items
    ]
    left_out = [item for position, item in enumerate(items, 1) if f"/input/{position}" in dropped]
    assert all(is_rightly_left_out(item) for item in left_out)


def replayed(item: Any) -> Any:
    """What must be replayed: everything but the origin, nulls, and ids of another form."""
    native = {
        key: value
        for key, value in (item.native or {}).items()
        if value is not None and key != "content"
    } or None
    return msgspec.structs.replace(item, response_id=None, origin=None, id=None, native=native)


def is_rightly_left_out(item: ResponseItem) -> bool:
    """Whether an item may be missing.

    Reasoning that no server can read again or that ends the history, an empty message, a native
    call without output.
    """
    return isinstance(item, (Reasoning, Opaque)) or (isinstance(item, Message) and not item.content)


KINDS = ["think", "text", "call", "hosted"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=10))
def test_any_interleaving_is_replayed_in_order(order: list[str]) -> None:
    items: list[ResponseItem] = []
    for n, kind in enumerate([*order, "text"]):
        item: dict[str, ResponseItem] = {
            "think": msgspec.structs.replace(REASONING, encrypted_content=f"e{n}"),
            "text": msgspec.structs.replace(MESSAGE, content=(Text(f"t{n}"),)),
            "call": msgspec.structs.replace(CALL, call_id=f"c{n}"),
            "hosted": ServerToolCall(
                f"ws_{n}",
                "web_search",
                id=f"ws_{n}",
                origin=HERE,
                native={"type": "web_search_call"},
            ),
        }
        items.append(item[kind])
    calls = [item for item in items if isinstance(item, FunctionCall)]
    objects = sent(user("x"), *items, *(call.output("y") for call in calls))
    names = {
        "think": "reasoning",
        "text": "message",
        "call": "function_call",
        "hosted": "web_search_call",
    }
    assert [sent_object["type"] for sent_object in objects[1 : len(items) + 1]] == [
        names[kind] for kind in [*order, "text"]
    ]


# --- prefix ---


def elements(request: Request) -> list[bytes]:
    fields = body(request)
    return [
        msgspec.json.encode(element)
        for element in (*fields.get("tools", ()), fields.get("instructions"), *fields["input"])
    ]


def test_each_request_begins_with_the_previous_one() -> None:
    later = msgspec.structs.replace(MESSAGE, response_id="r2")
    history: list[ResponseItem] = [
        user("a"),
        REASONING,
        MESSAGE,
        CALL,
        CALL.output("1", is_error=True),
        later,
        user("c"),
    ]
    requests = [elements(built(*history[:n], tools=[TOOL], instructions="s")) for n in (1, 5, 6, 7)]
    for shorter, longer in pairwise(requests):
        assert longer[: len(shorter)] == shorter


def conversations() -> list[Any]:
    """The recorded conversations of this wire, each a list of recordings."""
    lines = (
        require(CORPUS / "conversations.jsonl").read_bytes().splitlines() if CORPUS.is_dir() else []
    )
    records = [json.loads(line) for line in lines]
    matches = [record for record in records if record["wire"] == "openai-responses"]
    return [
        pytest.param(
            [Recording(CORPUS / turn) for turn in record["turns"]], id=record["conversation"]
        )
        for record in matches
    ] or [
        pytest.param(
            None,
            marks=pytest.mark.skip(reason="shared test data is absent: conversations.jsonl"),
            id="absent",
        )
    ]


@pytest.mark.parametrize("turns", conversations())
def test_recorded_requests_begin_with_the_previous_one(turns: list[Recording]) -> None:
    """Each recorded next request repeats the recorded response of the turn before, in order."""
    requests = [turn.meta["request_json"] for turn in turns]
    for turn, this, following in zip(turns, requests, requests[1:], strict=False):
        response = responded(turn)
        prompt = parse_request("responses", json.dumps(this).encode())
        answers = [call.output("y") for call in response.calls]
        shorter = built(*prompt.items)
        longer = built(*prompt.items, *response.items, *answers)
        assert elements(longer)[: len(elements(shorter))] == elements(shorter)
        if not following.get("previous_response_id") and isinstance(following["input"], list):
            recorded = [
                content for content in map(said_by_the_model, following["input"]) if content
            ]
            ours = [content for content in map(said_by_the_model, body(longer)["input"]) if content]
            assert is_subsequence(recorded[: len(ours)], ours)


def said_by_the_model(item: dict[str, Any]) -> Any:
    """What identifies an item of the model: reasoning or a call. Recordings have renamed ids."""
    kind = item.get("type", "message")
    if kind == "reasoning" and item.get("encrypted_content"):
        return kind, [part["text"] for part in item["summary"]]
    return (
        (kind, item["name"], json.loads(item["arguments"] or "{}"))
        if kind == "function_call"
        else None
    )


def is_subsequence(few: list[Any], many: list[Any]) -> bool:
    rest = iter(many)
    return all(element in rest for element in few)


# --- the official types ---

TYPES: dict[str, str] = {
    "message": "ResponseOutputMessageParam",
    "reasoning": "ResponseReasoningItemParam",
    "function_call": "ResponseFunctionToolCallParam",
    "file_search_call": "ResponseFileSearchToolCallParam",
    "compaction": "ResponseCompactionItemParamParam",
}
"""The official request type of each kind of item; the others have no exported name."""


@each_recording("openai-responses", [*STREAMS, *BODIES])
def test_replayed_items_are_of_the_official_types(recording: Recording) -> None:
    official = pytest.importorskip(
        "openai.types.responses",
        reason="the official SDK has the types; it comes with the dev extra",
    )
    request = built(user("x"), *responded(recording).items, extra={"store": True})
    for item in body(request)["input"][1:]:
        for part in item.get("content") or ():
            part.pop("annotations", None)  # xAI leaves fields of them out
            part.update({"annotations": []} if part["type"] == "output_text" else {})
        if item["type"] in TYPES and item.get("id"):
            assert drained(reader_of(getattr(official, TYPES[item["type"]])).validate_python(item))


def drained(value: Any) -> Any:
    """The value with every lazily validated list read to its end."""
    if isinstance(value, dict):
        return {key: drained(inner) for key, inner in value.items()}
    return (
        [drained(inner) for inner in value]
        if hasattr(value, "__iter__") and not isinstance(value, (str, bytes))
        else value
    )


@given(
    st.sampled_from(["user", "developer", "system"]),
    st.lists(st.sampled_from([Text("a"), PNG, Document(data="JVBERi0=")]), min_size=1),
)
def test_user_content_is_of_the_official_type(role: Any, parts: list[Any]) -> None:
    official = pytest.importorskip("openai.types.responses.response_input_item_param")
    reader_of(official.Message).validate_python(sent(Message(role, parts))[0])
