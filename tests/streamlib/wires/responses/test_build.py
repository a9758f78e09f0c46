"""Responses requests: ids, storage, reasoning, calls with their outputs, other origins."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from streamlib import (
    Compaction,
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    build,
    parse_request,
    user,
)
from tests.support.responses_builds import (
    CALL,
    HERE,
    MESSAGE,
    MESSAGES,
    REASONING,
    body,
    built,
    changes,
    sent,
)
from tests.support.shared import (
    ROOT,
)


def kinds(*items: ResponseItem, **settings: Any) -> list[str]:
    return [item["type"] for item in sent(*items, **settings)]


# --- ids and store ---


def test_responses_are_not_stored_unless_requested() -> None:
    assert body(built())["store"] is False
    assert body(built(extra={"store": True}))["store"] is True


@pytest.mark.parametrize("extra", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_response_that_continues_a_stored_one_is_stored(extra: dict[str, Any]) -> None:
    """The wire's own default: the next request names the id of this response."""
    assert body(built(extra=extra)).get("store") is not False
    assert body(built(extra={**extra, "store": False}))["store"] is False
    stored = parse_request("responses", msgspec.json.encode({"input": "Hi", **extra}))
    assert body(built(user("x"), extra=stored.extra)).get("store") is not False
    assert body(built(extra=dict.fromkeys(extra)))["store"] is False


def test_mistral_takes_responses() -> None:
    request = build(Prompt("Hi"), "mistral:mistral-large-latest", wire_api="responses")
    assert request.url == "https://api.mistral.ai/v1/responses"
    assert request.wire_api == "responses"
    assert build(Prompt("Hi"), "mistral:mistral-large-latest").wire_api == "chat"


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


# --- reasoning ---


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


# --- calls and outputs ---


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


# --- prefix ---


def test_every_rule_of_the_builder_is_on_the_page() -> None:
    page = (ROOT / "docs" / "wires" / "responses.md").read_text("utf-8")
    folder = ROOT / "streamlib" / "wires" / "responses"
    paths = [*folder.glob("build*.py"), folder / "settings.py"]
    sources = [path.read_text("utf-8") for path in paths]
    named = set(re.findall(r"\b([RS]\d)\b", "".join(sources)))
    assert named == set(re.findall(r"^\| ([RS]\d) ", page, re.MULTILINE))


def test_r6_an_output_is_of_the_kind_of_its_call() -> None:
    """Found by the strict provider: a custom call is answered by `custom_tool_call_output`."""
    call = CustomToolCall("c1", "patch", "x")
    items = sent(user("hi"), call, FunctionCallOutput("c1", "done"))
    kinds = [item["type"] for item in items[1:]]
    assert kinds == ["custom_tool_call", "custom_tool_call_output"]
