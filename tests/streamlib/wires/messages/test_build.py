"""Messages out: each rule that makes the API answer 400 is met, what had to change is said, and the past is replayed exactly."""

from __future__ import annotations

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
    Provider,
    Reasoning,
    ReasoningOptions,
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
    parser,
    user,
)
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

HERE = Origin("messages")
CALL = FunctionCall("toolu_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE, response_id="r1")
THOUGHT = Reasoning("hm", signature="EqQB", origin=HERE, response_id="r1")
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/jpeg")


def built(*items: ResponseItem, model: str = "custom:any", **settings: Any) -> Request:
    where = {"wire_api": "messages", "base_url": "http://x"} if model.startswith("custom:") else {}
    return build(Prompt(input=items or (user("hi"),), **settings), model, **where)  # type: ignore[arg-type]


def body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def turns(request: Request) -> list[tuple[str, list[str]]]:
    return [
        (turn["role"], [block["type"] for block in turn["content"]])
        for turn in body(request)["messages"]
    ]


def reasons(request: Request) -> list[str]:
    return [change.reason for change in request.report]


# --- order and replay ---


def test_case_12_thinking_text_and_calls_keep_their_interleaved_order() -> None:
    second = msgspec.structs.replace(CALL, call_id="toolu_2")
    items = [
        user("go"),
        THOUGHT,
        CALL,
        THOUGHT,
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


def test_case_46_arguments_go_back_in_their_own_bytes() -> None:
    assert b'"input":{"b": 1.0, "a": [1e5]}' in built(user("x"), CALL, CALL.output("y")).body


def test_case_07_a_call_without_arguments_has_an_empty_object() -> None:
    empty = FunctionCall("c", "f", "")
    assert b'"input":{}' in built(user("x"), empty, empty.output("y")).body


def test_case_16_thinking_blanked_by_the_provider_keeps_its_signature() -> None:
    request = built(
        user("x"),
        Reasoning("", signature="sig", origin=HERE),
        user("y"),
        model="anthropic:claude-opus-5",
    )
    assert body(request)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "sig"}
    ]


def test_unknown_blocks_and_native_keys_go_back_to_their_own_wire() -> None:
    opaque = Opaque("hologram", {"type": "hologram", "x": [1.0]}, origin=HERE)
    called = msgspec.structs.replace(CALL, native={"caller": {"type": "direct"}})
    content = body(built(user("x"), opaque, called, CALL.output("y")))["messages"][1]["content"]
    assert content[0] == {"type": "hologram", "x": [1.0]}
    assert content[1]["caller"] == {"type": "direct"}


def test_a_server_tool_and_its_result_are_replayed_with_their_kind() -> None:
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


def test_compaction_without_text_is_null_never_empty() -> None:
    """A24."""
    content = body(built(user("x"), Compaction("", "Epw", origin=HERE), user("y")))["messages"][1][
        "content"
    ]
    assert content == [{"type": "compaction", "content": None, "encrypted_content": "Epw"}]


@each_recording("anthropic-messages", [*STREAMS, *BODIES])
def test_law_5_a_recorded_answer_is_replayed_as_the_provider_said_it(recording: Recording) -> None:
    if recording.path.suffix == ".json":
        whole = accumulate(parse_body("messages", recording.body))
    else:
        p = parser("messages")
        whole = accumulate([*p.feed(recording.body), *p.close()])
    if whole.status == "failed" or not whole.items:
        return
    items = [item for item in whole.items if item.status == "completed"]
    history = [user("x"), *items, *(call.output("y") for call in whole.calls), user("z")]
    request = built(*history)
    again = accumulate(
        parse_body(
            "messages", msgspec.json.encode({"type": "message", "content": _second_turn(request)})
        )
    )
    blank = {id(item) for item in items if isinstance(item, Message) and not item.text.strip()}
    kept = [_replayed(item) for item in items if id(item) not in blank]
    assert [_replayed(item) for item in again.items] == kept


def _second_turn(request: Request) -> Any:
    """The content of the assistant's turn, in the very bytes that are sent."""
    sent = msgspec.json.decode(
        msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])["messages"],
        type=list[dict[str, msgspec.Raw]],
    )
    return sent[1]["content"] if len(sent) > 1 else []


def _replayed(item: Any) -> Any:
    """What must come back: everything but who answered, and citation keys that only responses have."""
    if isinstance(item, Message):
        parts = [
            msgspec.structs.replace(
                part,
                annotations=[
                    {k: v for k, v in note.items() if k != "file_id"} for note in part.annotations
                ],
            )
            for part in item.content
            if isinstance(part, Text)
        ]
        item = msgspec.structs.replace(item, content=parts)
    return msgspec.structs.replace(item, response_id=None, origin=None)


def test_prefix_law_each_request_begins_with_the_one_before() -> None:
    history: list[ResponseItem] = [
        user("a"),
        THOUGHT,
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
    return [msgspec.json.encode(one) for one in (*sent["tools"], *sent["system"], *content)]


KINDS = ["think", "text", "call"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=10))
def test_case_13_any_interleaving_is_replayed_in_its_order(kinds: list[str]) -> None:
    items: list[ResponseItem] = []
    for n, kind in enumerate(kinds):
        item = {
            "think": Reasoning(f"h{n}", signature=f"s{n}", origin=HERE, response_id="r"),
            "text": Message("assistant", [Text(f"t{n}")], origin=HERE, response_id="r"),
            "call": FunctionCall(f"c{n}", "f", f'{{"n": {n}.0}}', origin=HERE, response_id="r"),
        }[kind]
        items.append(item)
    outputs = [item.output("o") for item in items if isinstance(item, FunctionCall)]
    content = body(built(user("x"), *items, *outputs, user("y")))["messages"][1]["content"]
    again = accumulate(
        parse_body(
            "messages", msgspec.json.encode({"type": "message", "id": "r", "content": content})
        )
    )
    assert [type(item) for item in again.items] == [type(item) for item in items]
    assert [item.signature for item in again.items] == [item.signature for item in items]


# --- rules about content and order ---


def test_a1_blank_text_is_dropped_and_reported() -> None:
    request = built(user("hi"), Message("assistant", [Text(" \n")]), user("yo"))
    assert turns(request) == [("user", ["text", "text"])]
    assert reasons(request) == ["blank text (A1)"]


def test_a4_and_a7_all_results_of_a_turn_are_in_one_user_message_right_after_it() -> None:
    """CASES 51."""
    other = FunctionCall("toolu_2", "f", "{}", response_id="r1")
    assert turns(built(user("x"), CALL, other, other.output("2"), user("and?"))) == [
        ("user", ["text"]),
        ("assistant", ["tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
    ]


def test_a6_tool_results_stand_first_in_their_turn() -> None:
    orphan = FunctionCall("gone", "f", "{}").output("lost")
    request = built(user("x"), CALL, user("wait"), CALL.output("1"), orphan)
    assert turns(request)[2] == ("user", ["tool_result", "text", "text", "text"])


@pytest.mark.parametrize("call_id", ["functions.f:0", "a b", "x" * 80, "", "é"])
def test_a9_call_ids_fit_the_pattern_the_same_on_call_and_result(call_id: str) -> None:
    """CASES 50."""
    call = FunctionCall(call_id, "f", "{}")
    sent = body(built(user("x"), call, call.output("y")))["messages"]
    fitted = sent[1]["content"][0]["id"]
    assert fitted == sent[2]["content"][0]["tool_use_id"]
    assert 1 <= len(fitted) <= 64
    assert set(fitted) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_case_50_ids_that_are_equal_once_cleaned_stay_apart() -> None:
    one, two = (
        FunctionCall("a.b", "f", "{}", response_id="r"),
        FunctionCall("a:b", "f", "{}", response_id="r"),
    )
    sent = body(built(user("x"), one, two, one.output("1"), two.output("2")))["messages"]
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
    assert "(A11)" in reasons(request)[0]


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


def test_a14_a_request_does_not_end_with_a_thought() -> None:
    assert turns(built(user("x"), Message("assistant", [Text("so")]), THOUGHT))[-1] == (
        "assistant",
        ["text"],
    )


def test_a15_a_server_call_without_its_result_is_dropped_from_an_earlier_turn() -> None:
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
    assert "A15" in reasons(request)[0]


def test_a17_system_messages_inside_the_conversation() -> None:
    inside = [user("x"), Message("system", [Text("Be kind.")])]
    assert turns(built(*inside, model="anthropic:claude-opus-5"))[-1] == ("system", ["text"])
    older = built(*inside, model="anthropic:claude-sonnet-4-5")
    assert turns(older) == [("user", ["text", "text"])]
    assert "A17" in reasons(older)[0]


def test_leading_system_messages_join_the_instructions() -> None:
    sent = body(built(Message("developer", [Text("two")]), user("x"), instructions="one"))
    assert [block["text"] for block in sent["system"]] == ["one", "two"]


def test_a19_the_media_type_is_told_by_the_bytes() -> None:
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
def test_images_and_documents_in_every_form(part: Any, source: dict[str, str]) -> None:
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


def test_a23_at_most_four_breakpoints_and_none_on_a_thought() -> None:
    history = [
        user("a"),
        THOUGHT,
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


# --- thinking ---


def test_t1_max_tokens_is_raised_above_the_budget() -> None:
    request = built(reasoning=4000, max_output_tokens=100, model="anthropic:claude-sonnet-4-5")
    sent = body(request)
    assert (sent["thinking"]["budget_tokens"], sent["max_tokens"]) == (4000, 4100)
    assert "(T1)" in reasons(request)[0]


def test_a_budget_at_the_models_ceiling_leaves_room_for_the_text() -> None:
    """claude-opus-4 writes 32,000 tokens at most, thoughts included; "max" asks for more than that."""
    request = built(reasoning="max", max_output_tokens=8000, model="anthropic:claude-opus-4")
    assert (body(request)["thinking"]["budget_tokens"], body(request)["max_tokens"]) == (
        24_000,
        32_000,
    )
    assert any("24000 for thinking" in reason for reason in reasons(request))
    request = built(reasoning="max", max_output_tokens=31_000, model="anthropic:claude-opus-4")
    assert (body(request)["thinking"]["budget_tokens"], body(request)["max_tokens"]) == (
        16_000,
        32_000,
    )


@pytest.mark.parametrize(
    ("model", "reasoning", "thinking", "effort"),
    [
        ("claude-opus-5", "high", {"type": "adaptive"}, "high"),
        ("claude-opus-5", 3000, {"type": "adaptive"}, "medium"),
        ("claude-sonnet-4-5", "medium", {"type": "enabled", "budget_tokens": 10_000}, None),
        ("claude-opus-4-6", "xhigh", {"type": "adaptive"}, "high"),
        ("claude-opus-5", "off", {"type": "disabled"}, None),
        ("claude-sonnet-5-5", "off", {"type": "between_tools"}, None),
        ("claude-fable-5", "off", None, None),
        ("claude-3-5-haiku", "high", None, None),
        (
            "claude-opus-5",
            ReasoningOptions(effort="low", display="summarized"),
            {"type": "adaptive", "display": "summarized"},
            "low",
        ),
    ],
)
def test_t2_to_t5_each_model_gets_the_form_it_takes(
    model: str, reasoning: Any, thinking: Any, effort: str | None
) -> None:
    sent = body(built(reasoning=reasoning, model=f"anthropic:{model}"))
    assert (sent.get("thinking"), sent.get("output_config", {}).get("effort")) == (thinking, effort)


def test_t6_thinking_gives_way_to_a_forced_call() -> None:
    request = built(
        reasoning="high", tools=[TOOL], tool_choice="required", model="anthropic:claude-sonnet-4-5"
    )
    assert "thinking" not in body(request)
    assert "T6" in reasons(request)[0]


def test_t7_forced_choices_become_auto_where_they_are_refused() -> None:
    request = built(tools=[TOOL], tool_choice="f", model="anthropic:claude-opus-5-5")
    assert body(request)["tool_choice"] == {"type": "auto"}
    assert "T7" in reasons(request)[0]


def test_t8_thinking_is_off_amid_a_tool_turn_begun_without_it() -> None:
    request = built(
        user("x"),
        CALL,
        CALL.output("1"),
        reasoning="high",
        tools=[TOOL],
        model="anthropic:claude-sonnet-4-5",
    )
    assert "thinking" not in body(request)


def test_t8b_thinking_off_takes_the_last_assistant_turns_thoughts_out() -> None:
    request = built(
        user("x"),
        THOUGHT,
        Message("assistant", [Text("so")]),
        reasoning="off",
        model="anthropic:claude-sonnet-4-5",
    )
    assert turns(request)[-1] == ("assistant", ["text"])
    assert [change.breaks_prefix for change in request.report] == [True]


def test_t10_a_thought_without_signature_is_text_for_anthropic_and_stays_for_local_servers() -> (
    None
):
    unsigned = Reasoning("hm", origin=HERE)
    strict = built(user("x"), unsigned, user("y"), model="anthropic:claude-opus-5")
    assert body(strict)["messages"][1]["content"] == [
        {"type": "text", "text": "<think>\nhm\n</think>"}
    ]
    assert [change.action for change in strict.report] == ["downgraded"]
    assert turns(built(user("x"), unsigned, user("y")))[1] == ("assistant", ["thinking"])


def test_t11_drop_block_is_an_option_with_its_beta() -> None:
    """CASES 14."""
    request = built(
        reasoning="high", thinking_mismatch="drop_block", model="anthropic:claude-opus-5-5"
    )
    assert body(request)["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


@pytest.mark.parametrize(
    ("foreign", "kinds"),
    [
        (Reasoning("hm", signature="s", origin=Origin("gemini")), ["text"]),
        (
            Reasoning(
                "hm", signature="s", origin=Origin("messages", "anthropic", model="claude-sonnet-5")
            ),
            ["text"],
        ),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses")), []),
        (
            Reasoning(redacted=True, encrypted_content="Emw", origin=Origin("messages", "bedrock")),
            [],
        ),
        (
            Reasoning(summary=["a", "b"], encrypted_content="g", origin=Origin("responses")),
            ["text"],
        ),
        (ServerToolCall("s", "web_search", "{}", origin=Origin("responses")), ["text"]),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), []),
        (Compaction(None, "gAAA", origin=Origin("responses")), []),
    ],
)
def test_case_19_foreign_state_goes_down_the_ladder_and_is_reported(
    foreign: Any, kinds: list[str]
) -> None:
    request = built(user("x"), foreign, user("y"), model="anthropic:claude-opus-5")
    sent = [
        block["type"]
        for turn in body(request)["messages"]
        if turn["role"] == "assistant"
        for block in turn["content"]
    ]
    assert sent == kinds
    assert [change.action for change in request.report] == ["downgraded" if kinds else "dropped"]
    assert b"gAAA" not in request.body
    assert b"Emw" not in request.body


# --- settings ---


def test_s1_sampling_goes_only_to_models_and_versions_that_take_it() -> None:
    assert body(built(temperature=0.5, model="anthropic:claude-sonnet-4-5"))["temperature"] == 0.5
    refused = built(temperature=0.5, top_p=0.9, model="anthropic:claude-opus-5")
    assert "temperature" not in body(refused)
    assert {change.path for change in refused.report} == {"/temperature", "/top_p"}
    newer = Provider(
        "newer", ("messages",), "http://x", headers={"anthropic-version": "2026-10-21"}
    )
    assert "temperature" not in body(
        build(Prompt(input="x", temperature=0.5), "any", provider=newer)
    )


def test_s2_max_tokens_stays_under_the_ceiling() -> None:
    assert (
        body(built(max_output_tokens=999_999, model="anthropic:claude-sonnet-4-5"))["max_tokens"]
        == 64_000
    )


def test_s6_a_choice_without_tools_is_not_sent() -> None:
    assert "tool_choice" not in body(built(tool_choice="required"))


@pytest.mark.parametrize(
    ("choice", "sent"), [("auto", "auto"), ("required", "any"), ("none", "none"), ("f", "tool")]
)
def test_tool_choice_in_the_wires_words(choice: str, sent: str) -> None:
    assert body(built(tools=[TOOL], tool_choice=choice))["tool_choice"]["type"] == sent


def test_parallel_tools_can_be_switched_off() -> None:
    assert body(built(tools=[TOOL], parallel_tools=False))["tool_choice"] == {
        "type": "auto",
        "disable_parallel_tool_use": True,
    }


def test_tools_custom_hosted_and_free_form() -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    tools = [
        TOOL,
        ToolSpec("web_search", native=hosted),
        ToolSpec("patch", format={"type": "text"}),
        ToolSpec("s", strict=True),
    ]
    sent = body(built(tools=tools))["tools"]
    assert sent[1] == hosted
    assert sent[2]["input_schema"]["required"] == ["input"]
    assert sent[3]["strict"] is True


def test_a_free_form_call_is_sent_as_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    assert body(built(user("x"), call, call.output("ok")))["messages"][1]["content"][0][
        "input"
    ] == {"input": "*** Begin"}


def test_structured_output_is_closed_and_reports_what_it_moved() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}},
        "required": ["n"],
    }
    request = built(output_schema=schema)
    sent = body(request)["output_config"]["format"]["schema"]
    assert (sent["additionalProperties"], sent["properties"]["n"]) == (
        False,
        {"type": "integer", "description": "(minimum: 3)"},
    )
    assert [change.path for change in request.report] == ["/output_schema/properties/n"]


def test_extra_is_merged_last() -> None:
    assert body(built(extra={"max_tokens": 7, "speed": "fast"})) | {
        "max_tokens": 7,
        "speed": "fast",
    } == body(built(extra={"max_tokens": 7, "speed": "fast"}))


def test_plain_settings_have_their_names() -> None:
    sent = body(built(stop=["END", " "], user_id="u", service_tier="auto", cache="auto"))
    assert (sent["stop_sequences"], sent["metadata"], sent["service_tier"]) == (
        ["END"],
        {"user_id": "u"},
        "auto",
    )
    assert sent["cache_control"] == {"type": "ephemeral"}


def test_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        seed=1, n=2, logprobs=0, presence_penalty=0.1, frequency_penalty=0.1, verbosity="low"
    )
    assert {change.path for change in request.report} == {
        "/seed",
        "/n",
        "/logprobs",
        "/presence_penalty",
        "/frequency_penalty",
        "/verbosity",
    }


# --- the request ---


def test_strict_raises_where_the_report_would_not_be_empty() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(input=[user("x"), CALL]), "anthropic:claude-opus-5", strict=True)
    assert (caught.value.kind, caught.value.detail[0].action) == ("invalid_history", "generated")
    with pytest.raises(StreamError) as caught:
        build(Prompt(input="x", seed=1), "anthropic:claude-opus-5", strict=True)
    assert caught.value.kind == "invalid_request"


def test_strict_origin_treats_the_unknown_as_foreign() -> None:
    prompt = Prompt(input=[user("x"), THOUGHT, user("y")])
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


def test_an_unknown_provider_is_answered_with_near_matches() -> None:
    with pytest.raises(StreamError, match="anthropic"):
        build(Prompt(input="x"), "anthropc:claude-opus-5")


def test_an_empty_input_is_an_invalid_request() -> None:
    with pytest.raises(StreamError) as caught:
        build(Prompt(), "anthropic:claude-opus-5")
    assert caught.value.kind == "invalid_request"


def test_building_needs_no_key_and_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    request = build(Prompt(input="x"), "anthropic:claude-opus-5")
    assert "sk-canary" not in repr(request)
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers["anthropic-version"] == "2023-06-01"
