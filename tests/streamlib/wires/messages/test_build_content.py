"""Content of Messages requests: each rule that makes the API answer 400 is met."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    Audio,
    CacheOptions,
    Document,
    FunctionCall,
    Image,
    Message,
    Prompt,
    Response,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
    build,
    user,
)
from tests.support.messages_builds import CALL, HERE, PNG, SIGNED, body, built, reasons, turns

# --- rules about content and order ---


def test_a1_blank_text_is_dropped_and_reported() -> None:
    request = built(user("hi"), Message("assistant", [Text(" \n")]), user("yo"))
    assert turns(request) == [("user", ["text", "text"])]
    assert reasons(request) == ["blank text"]


def test_a4_a7_results_of_a_turn_are_in_the_next_user_turn() -> None:
    """CASES 51."""
    other = FunctionCall("toolu_2", "f", "{}", response_id="r1")
    assert turns(built(user("x"), CALL, other, other.output("2"), user("and?"))) == [
        ("user", ["text"]),
        ("assistant", ["tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
    ]


def test_a6_tool_results_come_first_in_their_turn() -> None:
    orphan = FunctionCall("gone", "f", "{}").output("lost")
    request = built(user("x"), CALL, user("wait"), CALL.output("1"), orphan)
    assert turns(request)[2] == ("user", ["tool_result", "text", "text", "text"])


@pytest.mark.parametrize("call_id", ["functions.f:0", "a b", "x" * 80, "", "é"])
def test_a9_call_ids_fit_alike_on_call_and_result(call_id: str) -> None:
    """CASES 50."""
    call = FunctionCall(call_id, "f", "{}")
    sent = body(built(user("x"), call, call.output("y")))["messages"]
    fitted = sent[1]["content"][0]["id"]
    assert fitted == sent[2]["content"][0]["tool_use_id"]
    assert 1 <= len(fitted) <= 64
    assert set(fitted) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_a9_ids_that_are_equal_once_cleaned_stay_distinct() -> None:
    """CASES 50."""
    first = FunctionCall("a.b", "f", "{}", response_id="r")
    second = FunctionCall("a:b", "f", "{}", response_id="r")
    sent = body(built(user("x"), first, second, first.output("1"), second.output("2")))["messages"]
    ids = [block["id"] for block in sent[1]["content"]]
    assert len(set(ids)) == 2
    assert ids == [block["tool_use_id"] for block in sent[2]["content"]]


def test_a10_tool_names_are_fitted_and_mapped_back() -> None:
    call = FunctionCall("c", "my.tool", "{}")
    request = built(
        user("x"), call, call.output("y"), tools=[ToolSpec("my.tool")], tool_choice="my.tool"
    )
    sent = body(request)
    assert request.names == {"my_tool": "my.tool"}
    assert (
        sent["tools"][0]["name"],
        sent["tool_choice"]["name"],
        sent["messages"][1]["content"][0]["name"],
    ) == ("my_tool",) * 3


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "nonsense", "null"])
def test_a11_input_is_always_an_object(arguments: str) -> None:
    call = FunctionCall("c", "f", arguments)
    request = built(user("x"), call, call.output("y"))
    assert body(request)["messages"][1]["content"][0]["input"] == {"_raw": arguments}
    assert "not a JSON object: wrapped" in reasons(request)[0]


def test_a12_a_final_assistant_text_does_not_end_in_blanks() -> None:
    assert (
        body(built(user("x"), Message("assistant", [Text("so \n")])))["messages"][1]["content"][0][
            "text"
        ]
        == "so"
    )


def test_a13_models_without_prefill_get_a_user_turn_last() -> None:
    request = built(
        user("x"), Message("assistant", [Text("so")]), model="anthropic:claude-opus-4-6"
    )
    assert turns(request)[-1] == ("user", ["text"])
    assert [change.action for change in request.report] == ["generated"]


def test_a13_a_paused_turn_is_continued_as_it_is() -> None:
    call = ServerToolCall("s1", "web_search", "{}", native={"type": "server_tool_use"}, origin=HERE)
    assert turns(built(user("x"), call, model="anthropic:claude-opus-4-6"))[-1] == (
        "assistant",
        ["server_tool_use"],
    )


def test_a14_a_request_does_not_end_with_reasoning() -> None:
    assert turns(built(user("x"), Message("assistant", [Text("so")]), SIGNED))[-1] == (
        "assistant",
        ["text"],
    )


def test_a15_earlier_server_call_without_result_is_dropped() -> None:
    call = ServerToolCall("s1", "web_search", "{}", origin=HERE)
    request = built(
        user("x"),
        call,
        Message("assistant", [Text("so")]),
        user("y"),
        Message("assistant", [Text("z")]),
        user("w"),
    )
    assert turns(request)[1] == ("assistant", ["text"])
    assert "without its result" in reasons(request)[0]


def test_a15_server_call_of_the_last_turn_may_still_run() -> None:
    call = ServerToolCall("s1", "web_search", "{}", origin=HERE)
    for after in ([], [user("go on")]):
        request = built(user("x"), Message("assistant", [Text("so")]), call, *after)
        assert turns(request)[1] == ("assistant", ["text", "server_tool_use"])
        assert reasons(request) == []


def test_a17_system_messages_within_the_conversation() -> None:
    inside = [user("x"), Message("system", [Text("Be kind.")])]
    assert turns(built(*inside, model="anthropic:claude-opus-5"))[-1] == ("system", ["text"])
    older = built(*inside, model="anthropic:claude-sonnet-4-5")
    assert turns(older) == [("user", ["text", "text"])]
    assert "no system message here" in reasons(older)[0]


def test_a17_system_message_after_a_result_of_a_server_tool() -> None:
    call = ServerToolCall("s1", "web_search", "{}", origin=HERE)
    result = ServerToolResult("s1", "web_search", [], origin=HERE)
    system = Message("system", [Text("Be kind.")])
    newest = "anthropic:claude-opus-5"
    assert turns(built(user("x"), call, result, system, model=newest))[-1][0] == "system"
    after = built(user("x"), call, result, Message("assistant", [Text("so")]), system, model=newest)
    assert turns(after)[-1][0] != "system"
    [change] = after.report
    assert change.breaks_prefix


def test_what_system_does_not_take_is_reported() -> None:
    image = Image(url="https://a.example/b.png")
    message = Message("system", [Text("Be brief."), image], native={"name": "x"})
    request = built(message, user("x"))
    assert [block["text"] for block in body(request)["system"]] == ["Be brief."]
    assert reasons(request) == ["system messages hold text only", "`system` has no name"]


def test_leading_system_messages_join_the_instructions() -> None:
    sent = body(built(Message("developer", [Text("two")]), user("x"), instructions="one"))
    assert [block["text"] for block in sent["system"]] == ["one", "two"]


def test_a19_the_media_type_is_read_from_the_bytes() -> None:
    source = body(built(user("see", PNG)))["messages"][0]["content"][1]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize(
    ("part", "source"),
    [
        (Image(url="https://x/y.png"), {"type": "url", "url": "https://x/y.png"}),
        (Image(file_id="file_1"), {"type": "file", "file_id": "file_1"}),
        (
            Document(data="aGk=", media_type="text/plain"),
            {"type": "text", "media_type": "text/plain", "data": "hi"},
        ),
        (
            Document(data="JVBERi0=", name="a.pdf"),
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        ),
    ],
)
def test_images_and_documents_of_every_source(part: Any, source: dict[str, str]) -> None:
    assert body(built(user("x", part)))["messages"][0]["content"][1]["source"] == source


def test_audio_is_left_out_and_reported() -> None:
    request = built(user("x", Audio(data="AA==")))
    assert turns(request) == [("user", ["text"])]
    assert request.report[0].path == "/input/0"


def test_tool_results_carry_images_and_errors() -> None:
    result = body(built(user("x"), CALL, CALL.output([Text("see"), PNG], is_error=True)))[
        "messages"
    ][2]["content"][0]
    assert (result["is_error"], [block["type"] for block in result["content"]]) == (
        True,
        ["text", "image"],
    )


def test_an_empty_result_has_no_content() -> None:
    assert (
        "content" not in body(built(user("x"), CALL, CALL.output("")))["messages"][2]["content"][0]
    )


def test_a23_at_most_four_breakpoints_and_none_on_reasoning() -> None:
    history = [
        user("a"),
        SIGNED,
        CALL,
        CALL.output("1"),
        user("b"),
        Message("assistant", [Text("c")]),
        user("d"),
    ]
    sent = body(built(*history, cache=CacheOptions("1h", range(7))))
    marked = [
        block for turn in sent["messages"] for block in turn["content"] if "cache_control" in block
    ]
    assert 1 <= len(marked) <= 4
    assert {block["type"] for block in marked}.isdisjoint({"thinking"})
    assert marked[0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.parametrize(
    ("compared", "sent"),
    [(Response("msg_1"), "msg_1"), ("msg_1", "msg_1"), ("", None), (Response(), None)],
)
def test_message_to_compare_with_is_named(compared: Any, sent: str | None) -> None:
    prompt = Prompt("hi", cache=CacheOptions(compare=compared))
    request = build(prompt, "anthropic:claude-opus-5")
    assert body(request)["diagnostics"] == {"previous_message_id": sent}
    assert "cache_control" in body(request)
    assert request.report == []


def test_comparison_elsewhere_is_reported() -> None:
    prompt = Prompt("hi", cache=CacheOptions(compare="resp_1"))
    for model in ("anthropic:claude-opus-5", "minimax:MiniMax-M3"):
        request = build(prompt, model, wire_api="messages")
        assert "diagnostics" not in body(request)
        assert [change.path for change in request.report] == ["/cache/compare"]


@pytest.mark.parametrize(("reasoning", "is_added"), [("high", True), ("off", False)])
def test_thinking_model_gets_a_user_turn_last(reasoning: Any, is_added: bool) -> None:
    """A client that repeats a request after a cut has the text so far at its end."""
    reply = Message("assistant", [Text("so f")])
    request = built(user("x"), reply, model="anthropic:claude-sonnet-4-5", reasoning=reasoning)
    roles = [role for role, _ in turns(request)]
    assert roles == (["user", "assistant", "user"] if is_added else ["user", "assistant"])
    assert any("'Continue.' added" in reason for reason in reasons(request)) == is_added
