"""Responses requests: every rule of the API is met, changes are reported, history is replayed."""

from __future__ import annotations

import json
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
    Response,
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
    parser,
    user,
)
from tests.support.shared import (
    BODIES,
    CORPUS,
    PAYLOADS,
    ROOT,
    STREAMS,
    Recording,
    each_recording,
    require,
)

HERE = Origin("responses")
MESSAGES = Origin("messages")
CALL = FunctionCall(
    "call_1", "f", '{"b": 1.0, "a": [1e5]}', id="fc_1", origin=HERE, response_id="r1"
)
REASONING = Reasoning(
    summary=["s"], encrypted_content="gAAA", id="rs_1", origin=HERE, response_id="r1"
)
MESSAGE = Message(
    "assistant", [Text("so")], "final_answer", id="msg_1", origin=HERE, response_id="r1"
)
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/jpeg")


def built(*items: ResponseItem, model: str = "custom:any", **settings: Any) -> Request:
    target = (
        {"wire_api": "responses", "base_url": "http://x"}
        if model.startswith(("custom:", "azure:"))
        else {}
    )
    prompt = Prompt(input=items or (user("hi"),), **settings)
    return build(prompt, model, **target)  # type: ignore[arg-type]


def body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def sent(*items: ResponseItem, **settings: Any) -> list[dict[str, Any]]:
    return body(built(*items, **settings))["input"]  # type: ignore[no-any-return]


def kinds(*items: ResponseItem, **settings: Any) -> list[str]:
    return [item["type"] for item in sent(*items, **settings)]


def changes(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


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
    history = [user("x"), *items, *(call.output("y") for call in response.calls), user("z")]
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


# --- ids and store ---


def test_responses_are_not_stored_unless_requested() -> None:
    assert body(built())["store"] is False
    assert body(built(extra={"store": True}))["store"] is True


def test_r1_stored_responses_keep_ids_and_message_status() -> None:
    objects = sent(user("x"), REASONING, MESSAGE, CALL, CALL.output("y"), extra={"store": True})
    assert [item.get("id") for item in objects[1:4]] == ["rs_1", "msg_1", "fc_1"]
    assert [item.get("status") for item in objects] == [None, None, "completed", None, None]


def test_azure_stores_and_keeps_ids() -> None:
    request = built(user("x"), REASONING, MESSAGE, model="azure:mine")
    assert body(request)["store"] is True
    assert [item.get("id") for item in body(request)["input"]] == [None, "rs_1", "msg_1"]


@pytest.mark.parametrize("item_id", ["msg_" + "x" * 61, "chatcmpl-1", "toolu_1"])
def test_r4_id_of_another_form_is_dropped(item_id: str) -> None:
    assert (
        "id"
        not in sent(user("x"), msgspec.structs.replace(MESSAGE, id=item_id), extra={"store": True})[
            1
        ]
    )


def test_call_ids_have_at_most_64_characters_and_stay_pairs() -> None:
    call = FunctionCall("c" * 80, "f", "{}")
    other = FunctionCall("c" * 80 + "d", "f", "{}")
    objects = sent(user("x"), call, other, call.output("1"), other.output("2"))
    names = [item["call_id"] for item in objects[1:]]
    assert names[:2] == names[2:]
    assert names[0] != names[1]
    assert all(len(name) <= 64 for name in names)


# --- thoughts ---


def test_r2_reasoning_without_encrypted_content_is_dropped() -> None:
    request = built(user("x"), msgspec.structs.replace(REASONING, encrypted_content=None), MESSAGE)
    assert [item["type"] for item in body(request)["input"]] == ["message", "message"]
    assert changes(request) == [("dropped", "/input/1")]


def test_r2_stored_reasoning_needs_its_id_only() -> None:
    assert (
        kinds(
            user("x"),
            msgspec.structs.replace(REASONING, encrypted_content=None),
            MESSAGE,
            extra={"store": True},
        )[1]
        == "reasoning"
    )


def test_r2_readable_reasoning_is_replayed_to_its_server() -> None:
    """gpt-oss, LM Studio, DeepSeek: nothing is encrypted there."""
    reasoning = Reasoning("hm", origin=HERE)
    assert sent(user("x"), reasoning, MESSAGE)[1] == {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }


def test_r2_reasoning_without_origin_becomes_text() -> None:
    request = built(user("x"), Reasoning("hm"), MESSAGE, model="openai:gpt-5")
    assert [item["type"] for item in body(request)["input"]] == ["message"] * 3
    assert changes(request) == [("downgraded", "/input/1")]


@pytest.mark.parametrize("after", [[], [user("y")], [CALL.output("y")]])
def test_r3_reasoning_without_the_item_it_produced_is_dropped(
    after: list[ResponseItem],
) -> None:
    """R3."""
    called = [CALL] if after and not isinstance(after[0], Message) else []
    request = built(user("x"), *called, *after, REASONING)
    assert "reasoning" not in [item["type"] for item in body(request)["input"]]
    assert ("dropped", f"/input/{1 + len(called) + len(after)}") in changes(request)


def test_r3_reasoning_is_dropped_with_its_truncated_call() -> None:
    truncated = msgspec.structs.replace(CALL, status="incomplete")
    assert kinds(user("x"), REASONING, truncated, user("again")) == ["message", "message"]


def test_r3_reasoning_does_not_belong_to_a_later_response() -> None:
    later = msgspec.structs.replace(MESSAGE, response_id="r2")
    assert kinds(user("x"), REASONING, later) == ["message", "message"]
    assert kinds(user("x"), REASONING, REASONING, MESSAGE) == [
        "message",
        "reasoning",
        "reasoning",
        "message",
    ]


@pytest.mark.parametrize(
    "item",
    [
        REASONING,
        Compaction(encrypted_content="g", origin=HERE),
        Opaque("x_call", {"type": "x_call"}, origin=HERE),
    ],
)
def test_r8_truncated_items_are_dropped(item: ResponseItem) -> None:
    request = built(user("x"), msgspec.structs.replace(item, status="incomplete"), MESSAGE)
    assert changes(request) == [("dropped", "/input/1")]


def test_r8_text_of_a_truncated_message_is_kept() -> None:
    assert (
        sent(user("x"), msgspec.structs.replace(MESSAGE, status="incomplete"))[1]["content"][0][
            "text"
        ]
        == "so"
    )


# --- pairs ---


def test_every_call_has_one_output_and_every_output_a_call() -> None:
    """R6."""
    lonely = FunctionCall("gone", "f").output("late")
    objects = sent(user("x"), CALL, user("y"), lonely)
    assert [item["type"] for item in objects] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    assert objects[2]["call_id"] == "call_1"


SHELL = Opaque(
    "shell_call",
    {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}},
    origin=HERE,
)
SHELL_SAID = Opaque(
    "shell_call_output", {"type": "shell_call_output", "call_id": "s1", "output": []}, origin=HERE
)


def test_r6_native_calls_are_sent_with_their_outputs() -> None:
    assert kinds(user("x"), SHELL, SHELL_SAID) == ["message", "shell_call", "shell_call_output"]
    assert kinds(user("x"), SHELL, user("y")) == ["message", "message"]
    assert kinds(user("x"), SHELL_SAID, user("y")) == ["message", "message"]


def test_r6_hosted_shell_and_approval_need_no_output() -> None:
    hosted = Opaque(
        "shell_call",
        {**SHELL.payload, "environment": {"type": "container_reference", "container_id": "c"}},
        origin=HERE,
    )
    approval = Opaque(
        "mcp_approval_request", {"type": "mcp_approval_request", "id": "mcpr_1"}, origin=HERE
    )
    assert kinds(user("x"), hosted, approval) == ["message", "shell_call", "mcp_approval_request"]


def test_r6_output_of_a_local_shell_matches_by_id() -> None:
    call = Opaque(
        "local_shell_call",
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": {}},
        origin=HERE,
    )
    output = Opaque(
        "local_shell_call_output",
        {"type": "local_shell_call_output", "id": "c1", "output": "{}"},
        origin=HERE,
    )
    assert kinds(user("x"), call, output) == [
        "message",
        "local_shell_call",
        "local_shell_call_output",
    ]


# --- other origins ---


def test_encrypted_content_of_another_account_is_never_sent() -> None:
    mine = Origin("responses", "openai", "https://api.openai.com/v1", "gpt-5", "me")
    theirs = msgspec.structs.replace(REASONING, origin=msgspec.structs.replace(mine, account="you"))
    request = build(Prompt(input=[user("x"), theirs, MESSAGE]), "openai:gpt-5", account="me")
    assert b"gAAA" not in request.body
    assert changes(request) == [("downgraded", "/input/1")]


def test_foreign_reasoning_and_hosted_tools_become_text() -> None:
    search = ServerToolCall(
        "srv", "web_search", "{}", origin=MESSAGES, native={"type": "server_tool_use"}
    )
    request = built(user("x"), Reasoning("hm", signature="sig", origin=MESSAGES), search)
    assert [item["type"] for item in body(request)["input"]] == ["message"] * 3
    assert b"sig" not in request.body


@pytest.mark.parametrize(
    "item",
    [
        ServerToolCall("s", "web_search", "{}"),
        ServerToolResult("s", "web_search", {"a": 1}),
        Compaction("what was said"),
    ],
)
def test_item_of_no_known_wire_becomes_text(item: ResponseItem) -> None:
    request = built(user("x"), item)
    assert body(request)["input"][1]["type"] == "message"
    assert changes(request) == [("downgraded", "/input/1")]


# --- parts ---


def test_r5_roles_have_their_own_kind_of_text() -> None:
    objects = sent(
        Message("system", [Text("s")]),
        Message("developer", [Text("d")]),
        user("u"),
        Message("assistant", [Text("a"), Refusal("no")]),
    )
    assert [
        (sent_object["role"], [part["type"] for part in sent_object["content"]])
        for sent_object in objects
    ] == [
        ("system", ["input_text"]),
        ("developer", ["input_text"]),
        ("user", ["input_text"]),
        ("assistant", ["output_text", "refusal"]),
    ]


def test_images_are_urls_with_their_true_type_and_a_detail() -> None:
    low = Image(url="https://x/y.png", native={"detail": "low"})
    assert sent(user("", PNG, low, Image(file_id="file_1")))[0]["content"] == [
        {
            "type": "input_image",
            "image_url": "data:image/png;base64,iVBORw0KGgo=",
            "detail": "auto",
        },
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        {"type": "input_image", "file_id": "file_1", "detail": "auto"},
    ]


def test_documents_have_a_name_with_bytes_only() -> None:
    parts = [
        Document(data="JVBERi0=", name="a.pdf"),
        Document(data="eA==", media_type="text/plain"),
        Document(url="https://x/a.pdf", name="a"),
    ]
    assert sent(user("", *parts, Document(file_id="file_1")))[0]["content"] == [
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        },
        {
            "type": "input_file",
            "filename": "document.txt",
            "file_data": "data:text/plain;base64,eA==",
        },
        {"type": "input_file", "file_url": "https://x/a.pdf"},
        {"type": "input_file", "file_id": "file_1"},
    ]


def test_audio_is_input_audio() -> None:
    assert sent(user("", Audio(data="SUQz", media_type="audio/mpeg"), Audio(data="eA==")))[0][
        "content"
    ] == [
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
    ]


def test_part_of_an_unknown_kind_is_the_wires_own_object() -> None:
    unknown = Text("{}", native={"type": "input_video", "x": 1})
    assert sent(user("", unknown))[0]["content"] == [{"type": "input_video", "x": 1}]
    assert sent(user("x"), Message("assistant", [unknown, Text("a")]))[1]["content"][0] == {
        "type": "input_video",
        "x": 1,
    }


def test_media_of_a_response_is_dropped_and_its_text_kept() -> None:
    request = built(user("x"), Message("assistant", [PNG, Audio(data="x", transcript="said")]))
    assert [part["text"] for part in body(request)["input"][1]["content"]] == ["said"]
    assert changes(request) == [("dropped", "/input/1")] * 2


def test_outputs_are_text_or_parts() -> None:
    objects = sent(
        user("x"),
        CALL,
        CALL.output(
            [Text("a"), PNG, Refusal("no"), Audio(transcript="t", data="x"), Audio(data="x")]
        ),
    )
    assert [part["type"] for part in objects[2]["output"]] == [
        "input_text",
        "input_image",
        "input_text",
        "input_text",
    ]
    assert sent(user("x"), CALL, CALL.output([]))[2]["output"] == ""


@pytest.mark.parametrize(("output", "sent_as"), [("no", "[error] no"), ("", "[error]")])
def test_failed_call_is_marked_in_its_text(output: str, sent_as: str) -> None:
    request = built(user("x"), CALL, CALL.output(output, is_error=True))
    assert body(request)["input"][2]["output"] == sent_as
    assert changes(request) == [("changed", "/input/2/is_error")]
    parts = sent(user("x"), CALL, CALL.output([PNG], is_error=True))[2]["output"]
    assert [part["type"] for part in parts] == ["input_text", "input_image"]


def test_r7_message_without_content_is_dropped() -> None:
    request = built(user("x"), Message("assistant"), user())
    assert len(body(request)["input"]) == 1
    assert changes(request) == [("dropped", "/input/1"), ("dropped", "/input/2")]


# --- tools ---


def test_s1_tools_are_flat_and_strict_is_always_sent() -> None:
    strict = msgspec.structs.replace(TOOL, name="g", strict=True)
    tools = body(built(tools=[TOOL, strict, ToolSpec("h")]))["tools"]
    assert tools[0] == {
        "type": "function",
        "name": "f",
        "description": "does f",
        "parameters": TOOL.schema,
        "strict": False,
    }
    assert tools[1]["strict"] is True
    assert tools[2] == {
        "type": "function",
        "name": "h",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }


def test_strict_schema_is_closed_and_all_required() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1}, "b": {"$ref": "#/$defs/B"}},
        "required": ["b"],
    }
    request = built(tools=[ToolSpec("f", schema=schema, strict=True)])
    parameters = body(request)["tools"][0]["parameters"]
    assert parameters["required"] == ["a", "b"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["a"] == {
        "type": ["string", "null"],
        "description": "(minLength: 1)",
    }
    assert changes(request) == [
        ("changed", "/tools/0/schema/properties/a"),
        ("changed", "/tools/0/schema"),
    ]


@pytest.mark.parametrize(
    ("child", "nullable"),
    [
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        (
            {"$ref": "#/$defs/A", "description": "d"},
            {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "description": "d"},
        ),
        ({"allOf": [{"$ref": "#/$defs/A"}]}, {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
        ({"const": 1}, {"anyOf": [{"const": 1}, {"type": "null"}]}),
        ({}, {}),
    ],
)
def test_optional_property_of_a_strict_schema_may_be_null(
    child: dict[str, Any], nullable: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"a": child}}
    assert (
        body(built(output_schema=schema))["text"]["format"]["schema"]["properties"]["a"] == nullable
    )


def test_parameters_that_are_no_object_become_one() -> None:
    request = built(tools=[ToolSpec("f", schema={"properties": {}})])
    assert body(request)["tools"][0]["parameters"] == {"properties": {}, "type": "object"}
    assert changes(request) == [("changed", "/tools/0/schema")]


def test_free_form_and_hosted_tools() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
    hosted = ToolSpec("web_search", native={"type": "web_search", "search_context_size": "low"})
    assert body(built(tools=[ToolSpec("patch", "d", format=grammar), hosted]))["tools"] == [
        {"type": "custom", "name": "patch", "description": "d", "format": grammar},
        {"type": "web_search", "search_context_size": "low"},
    ]


@pytest.mark.parametrize(
    ("choice", "sent_as"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ("f", {"type": "function", "name": "f"}),
        ("patch", {"type": "custom", "name": "patch"}),
        ("search", {"type": "web_search_preview"}),
        ("deep", {"type": "mcp", "server_label": "deep"}),
        ("later", {"type": "function", "name": "later"}),
    ],
)
def test_tool_choice_is_flat(choice: str, sent_as: Any) -> None:
    tools = [
        TOOL,
        ToolSpec("patch", format={"type": "text"}),
        ToolSpec("search", native={"type": "web_search_preview"}),
        ToolSpec("deep", native={"type": "mcp", "server_label": "deep"}),
        ToolSpec("later", native={"type": "function", "name": "later", "defer_loading": True}),
    ]
    assert body(built(tools=tools, tool_choice=choice))["tool_choice"] == sent_as


def test_s6_tool_choice_needs_tools() -> None:
    request = built(tool_choice="auto", parallel_tools=False)
    assert "tool_choice" not in body(request)
    assert changes(request) == [("dropped", "/tool_choice"), ("dropped", "/parallel_tools")]
    assert body(built(tools=[TOOL], parallel_tools=False))["parallel_tool_calls"] is False


def test_long_tool_names_are_mapped_in_request_names() -> None:
    request = built(tools=[ToolSpec("a.b")], tool_choice="a.b")
    assert body(request)["tool_choice"] == {"type": "function", "name": "a_b"}
    assert request.names == {"a_b": "a.b"}


# --- thinking ---


@pytest.mark.parametrize(
    ("model", "options", "effort", "reported"),
    [
        ("gpt-5", "high", "high", []),
        ("gpt-5", "off", "minimal", [("changed", "/reasoning")]),
        ("gpt-5", "max", "high", [("changed", "/reasoning")]),
        ("gpt-5.1", "off", "none", []),
        ("gpt-5.1", "minimal", "low", [("changed", "/reasoning")]),
        ("gpt-5.2", "xhigh", "xhigh", []),
        ("gpt-5-pro", "low", "high", [("changed", "/reasoning")]),
        ("gpt-5.6-sol", "max", "max", []),
        ("gpt-6-astra", "off", "low", [("changed", "/reasoning")]),
        ("o4-mini", "minimal", "low", [("changed", "/reasoning")]),
        ("gpt-5", 12_000, "high", [("changed", "/reasoning")]),
        ("something-new", "max", "max", []),
        ("something-new", "off", "none", []),
    ],
)
def test_s2_effort_is_a_level_the_model_takes(
    model: str, options: Any, effort: str, reported: Any
) -> None:
    request = built(model=f"openai:{model}", reasoning=options)
    assert body(request)["reasoning"] == {"effort": effort}
    assert changes(request) == reported


def test_summary_is_sent_and_display_is_not() -> None:
    request = built(reasoning=ReasoningOptions(effort="low", summary="auto", display="omitted"))
    assert body(request)["reasoning"] == {"effort": "low", "summary": "auto"}
    assert changes(request) == [("dropped", "/reasoning/display")]
    assert body(built(reasoning=ReasoningOptions(summary="auto")))["reasoning"] == {
        "summary": "auto"
    }


def test_s3_model_that_cannot_think_gets_no_reasoning_fields() -> None:
    """S3: gpt-4o refuses both with a 400."""
    request = built(model="openai:gpt-4o", reasoning="low")
    assert not {"reasoning", "include"} & body(request).keys()
    assert changes(request) == [("dropped", "/reasoning")]


def test_s3_encrypted_reasoning_is_requested_if_not_stored() -> None:
    encrypted = ["reasoning.encrypted_content"]
    assert body(built())["include"] == encrypted
    assert "include" not in body(built(extra={"store": True}))
    assert body(built(extra={"store": True}, reasoning="low"))["include"] == encrypted


# --- settings ---


@pytest.mark.parametrize(
    ("model", "settings", "taken"),
    [
        ("gpt-4.1", {}, True),
        ("gpt-5", {}, False),
        ("o3", {}, False),
        ("gpt-5.1", {}, True),
        ("gpt-5.1", {"reasoning": "low"}, False),
        ("gpt-5.6", {}, False),
        ("gpt-5.6", {"reasoning": "off"}, True),
        ("something-new", {"reasoning": "low"}, True),
    ],
)
def test_s4_sampling_only_for_models_that_do_not_think(
    model: str, settings: Any, taken: bool
) -> None:
    request = built(model=f"openai:{model}", temperature=0.5, top_p=0.9, logprobs=2, **settings)
    fields = body(request)
    assert (fields.get("temperature"), fields.get("top_p"), fields.get("top_logprobs")) == (
        (0.5, 0.9, 2) if taken else (None, None, None)
    )
    assert ("message.output_text.logprobs" in fields.get("include", [])) is taken
    assert changes(request) == (
        []
        if taken
        else [("dropped", "/temperature"), ("dropped", "/top_p"), ("dropped", "/logprobs")]
    )


def test_logprobs_without_alternatives_are_only_included() -> None:
    fields = body(built(logprobs=0))
    assert "message.output_text.logprobs" in fields["include"]
    assert "top_logprobs" not in fields


def test_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        seed=1,
        stop=["x"],
        presence_penalty=0.1,
        frequency_penalty=0.1,
        top_k=4,
        n=2,
        thinking_mismatch="drop_block",
    )
    assert body(request).keys() == {"model", "input", "stream", "store", "include"}
    assert sorted(path for _, path in changes(request)) == [
        "/frequency_penalty",
        "/n",
        "/presence_penalty",
        "/seed",
        "/stop",
        "/thinking_mismatch",
        "/top_k",
    ]


def test_plain_settings_have_their_wire_names() -> None:
    fields = body(
        built(
            instructions="be brief",
            max_output_tokens=100,
            metadata={"a": "b"},
            service_tier="flex",
            user_id="u1",
            conversation_id="c1",
            verbosity="low",
            stream=False,
            n=1,
            extra={"truncation": "auto"},
        )
    )
    assert {key: fields[key] for key in fields.keys() - {"input", "model", "include", "store"}} == {
        "instructions": "be brief",
        "max_output_tokens": 100,
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "safety_identifier": "u1",
        "prompt_cache_key": "c1",
        "text": {"verbosity": "low"},
        "stream": False,
        "truncation": "auto",
    }


def test_s5_long_keys_are_hashed_the_same_way_each_time() -> None:
    request = built(conversation_id="c" * 65, user_id="u" * 129)
    again = built(conversation_id="c" * 65, user_id="u" * 129)
    fields = body(request)
    assert len(fields["prompt_cache_key"]) == len(fields["safety_identifier"]) == 64
    assert request.body == again.body
    assert changes(request) == [("changed", "/user_id"), ("changed", "/conversation_id")]


def test_output_schema_is_a_flat_strict_format_with_a_name() -> None:
    schema = {
        "title": "My answer",
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    }
    assert body(built(output_schema=schema))["text"]["format"] == {
        "type": "json_schema",
        "name": "My_answer",
        "schema": {**schema, "additionalProperties": False},
        "strict": True,
    }


def test_format_in_extra_is_not_mixed_with_ours() -> None:
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": False}
    assert body(built(output_schema={"type": "object"}, extra={"text": {"format": form}}))[
        "text"
    ] == {"format": form}


def test_cache_breakpoints_are_on_the_last_part_of_an_item() -> None:
    request = built(user("a", PNG), MESSAGE, user("b"), cache=CacheOptions("1h", [0, 1]))
    fields = body(request)
    marked = [
        ["prompt_cache_breakpoint" in part for part in item["content"]] for item in fields["input"]
    ]
    assert marked == [[False, True], [False], [False]]
    assert fields["prompt_cache_options"] == {"ttl": "12h"}
    assert changes(request) == [("dropped", "/cache/breakpoints/1"), ("changed", "/cache/ttl")]


def test_automatic_caching_sends_no_field() -> None:
    assert "prompt_cache_options" not in body(built(cache="auto"))
    assert body(built(cache=CacheOptions("30m")))["prompt_cache_options"] == {"ttl": "30m"}


def test_empty_input_is_refused_unless_the_server_has_state() -> None:
    with pytest.raises(StreamError, match="nothing to send"):
        built(Message("assistant"))
    assert (
        body(built(Message("assistant"), extra={"previous_response_id": "resp_1"}))["input"] == []
    )


# --- providers ---


def test_openai_uses_responses_by_default() -> None:
    request = built(model="openai:gpt-5")
    assert (request.url, request.wire_api) == ("https://api.openai.com/v1/responses", "responses")


def test_the_codex_backend_gets_what_it_takes() -> None:
    prompt = Prompt(
        input=[Message("system", [Text("s")]), user("x")],
        max_output_tokens=5,
        temperature=0.1,
        metadata={"a": "b"},
        stream=False,
    )
    request = build(prompt, "codex:gpt-5.1", account="acc_1")
    fields = body(request)
    assert request.url == "https://chatgpt.com/backend-api/codex/responses"
    assert request.headers["ChatGPT-Account-ID"] == "acc_1"
    assert (fields["store"], fields["stream"], fields["input"][0]["role"]) == (
        False,
        True,
        "developer",
    )
    assert fields["instructions"]
    assert not {"max_output_tokens", "temperature", "metadata"} & fields.keys()
    assert {path for _, path in changes(request)} == {
        "/max_output_tokens",
        "/temperature",
        "/metadata",
    }


# --- prefix and page ---


def test_every_rule_of_the_builder_is_on_the_page() -> None:
    page = (ROOT / "docs" / "wires" / "responses.md").read_text("utf-8")
    folder = ROOT / "streamlib" / "wires" / "responses"
    sources = [path.read_text("utf-8") for path in folder.glob("build*.py")]
    named = set(re.findall(r"\b([RS]\d)\b", "".join(sources)))
    assert named == set(re.findall(r"^\| ([RS]\d) ", page, re.MULTILINE))


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
    pydantic = pytest.importorskip("pydantic")
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
            assert drained(
                pydantic.TypeAdapter(getattr(official, TYPES[item["type"]])).validate_python(item)
            )


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
    pydantic = pytest.importorskip("pydantic")
    official = pytest.importorskip("openai.types.responses.response_input_item_param")
    pydantic.TypeAdapter(official.Message).validate_python(sent(Message(role, parts))[0])
