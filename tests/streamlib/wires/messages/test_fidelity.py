"""Requests of Messages clients: what is kept, what is typed, and what other wires are told (B3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from streamlib import (
    CacheMark,
    CacheOptions,
    Message,
    Prompt,
    ReasoningOptions,
    StreamError,
    Text,
    ToolOptions,
    ToolSpec,
    WireApi,
    assistant,
    build,
    parse_request,
    user,
)

MARK = {"type": "ephemeral", "ttl": "1h"}
TOOL: dict[str, Any] = {
    "name": "f",
    "input_schema": {"type": "object"},
    "cache_control": MARK,
    "defer_loading": True,
    "eager_input_streaming": False,
    "input_examples": [{"a": 1.0}],
    "allowed_callers": ["direct"],
    "future": {"b": None},
}


def body(**fields: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    return {"model": "m", "max_tokens": 9, "messages": turns, **fields}


def decoded(**fields: Any) -> Prompt:
    return parse_request("messages", msgspec.json.encode(body(**fields)))


def built(prompt: Prompt, wire_api: WireApi = "messages", **options: Any) -> Any:
    request = build(prompt, "custom:m", wire_api=wire_api, base_url="http://x", **options)
    return msgspec.json.decode(request.body), [change.path for change in request.report]


def test_options_of_a_tool_are_typed() -> None:
    """B3."""
    (tool,) = decoded(tools=[TOOL]).tools
    assert tool.cache == CacheMark("1h")
    assert tool.options == ToolOptions(
        defer_loading=True,
        eager_input_streaming=False,
        input_examples=[{"a": 1.0}],
        allowed_callers=["direct"],
        native={"future": {"b": None}},
        native_wire="messages",
    )


def test_options_of_a_tool_are_sent_again() -> None:
    """B3."""
    sent, report = built(decoded(tools=[TOOL]))
    assert sent["tools"] == [TOOL]
    assert report == []


@pytest.mark.parametrize("wire_api", ["chat", "ollama", "gemini"])
def test_another_wire_reports_options_of_a_tool(wire_api: WireApi) -> None:
    """B3: `strict=True` passed, too."""
    prompt = decoded(tools=[TOOL])
    _, report = built(prompt, wire_api)
    lost = ("cache", "defer_loading", "eager_input_streaming", "input_examples", "allowed_callers")
    assert [path.rpartition("/")[2] for path in report] == [*lost, "future"]
    with pytest.raises(StreamError):
        built(prompt, wire_api, strict=True)


def test_a_mark_on_a_tool_of_your_own_is_sent() -> None:
    sent, _ = built(Prompt("hi", tools=[ToolSpec("f", cache=CacheMark())]))
    assert sent["tools"][0]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in sent


def test_system_blocks_keep_their_marks() -> None:
    """B3."""
    system = [
        {"type": "text", "text": "one", "cache_control": MARK},
        {"type": "text", "text": "two"},
        {"type": "text", "text": "three", "cache_control": {"type": "ephemeral"}},
    ]
    prompt = decoded(system=system)
    assert prompt.cache == CacheOptions(breakpoints=[1], instructions=CacheMark("1h"))
    assert built(prompt) == (built(decoded())[0] | {"system": system}, [])


def test_marks_with_lifetimes_of_their_own_are_kept() -> None:
    parts = [
        {"type": "text", "text": "long", "cache_control": MARK},
        {"type": "text", "text": "short", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
        {"type": "text", "text": "none"},
    ]
    prompt = decoded(messages=[{"role": "user", "content": parts}])
    assert prompt.cache == CacheOptions(breakpoints=[0, 1], lifetimes={0: "1h", 1: "5m"})
    assert built(prompt)[0]["messages"][0]["content"] == parts


def test_a_breakpoint_out_of_range_is_reported() -> None:
    """B3."""
    _, report = built(Prompt("hi", cache=CacheOptions(breakpoints=[0, 7])))
    assert report == ["/cache/breakpoints/7"]


def test_the_oldest_of_five_marks_is_reported() -> None:
    """B3: A23 allows four."""
    marks = CacheOptions(breakpoints=range(4))
    tool = ToolSpec("f", cache=CacheMark())
    _, report = built(Prompt([user(str(index)) for index in range(4)], tools=[tool], cache=marks))
    assert report == ["/cache/breakpoints/0"]


def test_a_blank_stop_sequence_is_reported() -> None:
    """B3."""
    sent, report = built(Prompt("hi", stop=[" ", "END", "\n"]))
    assert sent["stop_sequences"] == ["END"]
    assert report == ["/stop/0", "/stop/2"]


def test_metadata_and_conversation_are_reported() -> None:
    """B3."""
    prompt = Prompt("hi", metadata={"user_id": "u", "team": "t"}, conversation_id="c")
    sent, report = built(prompt)
    assert sent["metadata"] == {"user_id": "u"}
    assert report == ["/metadata/team", "/conversation_id"]


def test_a_choice_without_tools_is_reported() -> None:
    _, report = built(Prompt("hi", tool_choice="auto", parallel_tools=False))
    assert report == ["/tool_choice", "/parallel_tools"]


def test_a_task_budget_is_kept_on_its_own_wire() -> None:
    """B3."""
    config = {"effort": "low", "task_budget": {"type": "tokens", "total": 9}}
    prompt = decoded(output_config=config)
    assert prompt.reasoning == ReasoningOptions("low", effort_only=True)
    sent, report = built(prompt)
    assert (sent["output_config"], report) == (config, [])
    assert "thinking" not in sent
    assert "/extra/output_config" in built(prompt, "chat")[1]


@pytest.mark.parametrize("kind", ["disabled", "between_tools"])
def test_how_thinking_is_off_is_kept(kind: str) -> None:
    fields = {"thinking": {"type": kind}, "output_config": {"effort": "low"}}
    sent, report = built(decoded(**fields))
    assert ({key: sent[key] for key in fields}, report) == (fields, [])


def test_a_budget_keeps_effort_and_binding_beside_it() -> None:
    thinking = {
        "type": "enabled",
        "budget_tokens": 2048,
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    fields = {"thinking": thinking, "output_config": {"effort": "low"}, "max_tokens": 4096}
    sent, report = built(decoded(**fields))
    assert ({key: sent[key] for key in fields}, report) == (fields, [])


def test_fields_of_system_messages_are_kept() -> None:
    """`clear_at` and `output_config` belong to the message, not to its text."""
    turns = [
        *body()["messages"],
        {
            "role": "system",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "f"}},
            ],
            "clear_at": "never",
        },
        {"role": "system", "output_config": {"effort": "low"}},
    ]
    sent, report = built(decoded(messages=turns))
    assert (sent["messages"], report) == (turns, [])


FUTURE_TURNS: Final = [
    {"role": "user", "content": [{"type": "text", "text": "hi"}], "future": 1},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "a", "other": 2},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        ],
        "future": {"a": 1},
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "x"}]},
            {"type": "future_block", "key": 1},
        ],
        "future": [2],
    },
    {"role": "user", "content": [{"type": "text", "text": "b"}]},
]
"""Turns with a key that this version does not know."""


def test_unknown_fields_of_turns_are_kept() -> None:
    """B3: those of user and assistant turns were lost."""
    sent, report = built(decoded(messages=FUTURE_TURNS))
    assert (sent["messages"], report) == (FUTURE_TURNS, [])


def test_unknown_fields_of_turns_are_reported_elsewhere() -> None:
    report = built(decoded(messages=FUTURE_TURNS), "chat")[1]
    # 0 to 3: the user, reasoning, text and the call; 4 and 5: the result and the unknown block.
    assert {"/input/0", "/input/4", "/input/5"} <= set(report)


def test_a_media_type_that_the_bytes_contradict_is_reported() -> None:
    source = {"type": "base64", "media_type": "image/jpeg", "data": "iVBORw0KGgo="}
    image = {"type": "image", "source": source}
    sent, report = built(decoded(messages=[{"role": "user", "content": [image]}]))
    assert sent["messages"][0]["content"][0]["source"]["media_type"] == "image/png"
    assert report == ["/input/0"]


def test_options_of_a_result_are_reported_elsewhere() -> None:
    """B3: its own wire keeps them."""
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [], "future": 1}
    turns = [
        *body()["messages"],
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    prompt = decoded(messages=turns)
    assert built(prompt)[0]["messages"][2]["content"][0]["future"] == 1
    assert "/input/2" in built(prompt, "chat")[1]


def test_parts_of_a_system_message_stay_paragraphs() -> None:
    """Without a role for it, a system message amid the turns is user text."""
    system = Message("system", (Text("one"), Text("two")))
    history = [user("hi"), assistant("yes"), user("go on"), system]
    request = build(Prompt(history), "claude-3-haiku-20240307", provider="anthropic")
    assert b"one\\n\\ntwo" in request.body
