"""The history: saved and loaded equal, and repaired in both directions with every repair in the
report."""

from __future__ import annotations

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
    FunctionCallOutput,
    History,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    accumulate,
    build,
    parser,
    user,
)
from streamlib.request.history import CALLS, INTERRUPTED, OUTPUTS, repair
from streamlib.request.report import Report
from tests.support.cases import each_case

CALL = FunctionCall("c1", "f", '{"a": 1.0}', response_id="r1")
OTHER = FunctionCall("c2", "g", "{}", response_id="r1")
OUT = CALL.output("one")
OTHER_OUT = OTHER.output("two")

EVERY_KIND: list[ResponseItem] = [
    user(
        "hi",
        Image(data="iVBORw0KGgo=", media_type="image/png", native={"detail": "low"}),
        Document(url="https://x/y.pdf", name="y"),
    ),
    Message(
        "assistant",
        [Text("so", [{"type": "url_citation", "url": "u"}]), Refusal("no")],
        "commentary",
        id="msg_1",
        choice=1,
    ),
    Reasoning(
        "hm",
        ["a", "b"],
        "gAAA",
        signature="sig",
        origin=Origin("responses", "openai", "https://x", "m", "acc"),
        native={"x": 1.0},
    ),
    CALL,
    OUT,
    CustomToolCall("c3", "patch", "*** Begin"),
    CustomToolCall("c3", "patch").output([Text("done")], is_error=True),
    ServerToolCall("s1", "web_search", "{}", native={"type": "server_tool_use"}),
    ServerToolResult("s1", "web_search", [{"url": "u"}]),
    Compaction("Summary.", "Epw"),
    Opaque(
        "from_the_future",
        {"type": "from_the_future", "z": [1, {"y": None}]},
        status="incomplete",
        response_id="r",
    ),
]


def repaired(items: list[ResponseItem]) -> tuple[list[ResponseItem], list[tuple[str, str]]]:
    report = Report()
    placed = repair(items, report)
    return [one.item for one in placed], [(change.action, change.path) for change in report.changes]


def test_a_history_saves_to_json_and_loads_back_equal() -> None:
    assert History.loads(History(EVERY_KIND).dumps()) == EVERY_KIND


def test_a_kind_of_a_later_version_survives_as_opaque() -> None:
    saved = msgspec.json.encode(
        {"streamlib_history": 9, "items": [{"type": "hologram", "shape": "cube"}]}
    )
    assert History.loads(saved) == [Opaque("hologram", {"type": "hologram", "shape": "cube"})]


@each_case(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"items":[1]}',
        b'{"items":[{"type":"message"}]}',
        b'{"items":[{}]}',
        b"[" * 100_000,
        b'{"items":[{"type":"of_2030","deep":' + b"[" * 100_000,
    ],
)
def test_anything_else_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a saved history"):
        History.loads(data)


def test_sequences_are_accepted_and_tuples_stored() -> None:
    assert Message("user", [Text("x")]).content == (Text("x"),)
    assert Reasoning(summary=["a"]).summary == ("a",)


def test_a_missing_output_is_an_error_before_the_next_user_turn() -> None:
    """CASES 51: a call without its result."""
    items, changes = repaired([user("go"), CALL, user("never mind")])
    assert items == [user("go"), CALL, CALL.output(INTERRUPTED, is_error=True), user("never mind")]
    assert changes == [("generated", "/input/1")]


def test_missing_parallel_outputs_follow_the_present_ones() -> None:
    items, _ = repaired([CALL, OTHER, OTHER_OUT])
    assert items == [CALL, OTHER, OTHER_OUT, CALL.output(INTERRUPTED, is_error=True)]


def test_an_output_without_its_call_becomes_user_text() -> None:
    """CASES 51: a result without its call."""
    items, changes = repaired([user("hi"), OUT])
    assert isinstance(items[1], Message)
    assert "one" in items[1].text
    assert changes == [("downgraded", "/input/1")]


def test_an_output_before_its_call_is_an_orphan() -> None:
    items, changes = repaired([OUT, CALL])
    assert [type(item) for item in items] == [Message, FunctionCall, FunctionCallOutput]
    assert changes == [("downgraded", "/input/0"), ("generated", "/input/1")]


def test_a_late_output_moves_to_its_call_and_breaks_the_prefix() -> None:
    report = Report()
    placed = repair([CALL, user("and?"), OUT], report)
    assert [one.item for one in placed] == [CALL, OUT, user("and?")]
    assert [(change.action, change.breaks_prefix) for change in report.changes] == [
        ("repaired", True)
    ]


def test_outputs_between_parallel_calls_move_to_the_response_end() -> None:
    """Thinking and calls of one response stay together, in their order."""
    thought = Reasoning("hm", signature="s", response_id="r1")
    assert repaired([CALL, OUT, thought, OTHER, OTHER_OUT])[0] == [
        CALL,
        thought,
        OTHER,
        OUT,
        OTHER_OUT,
    ]


def test_sequential_calls_of_two_responses_stay_sequential() -> None:
    later = FunctionCall("c2", "g", "{}", response_id="r2")
    history: list[ResponseItem] = [CALL, OUT, later, later.output("two")]
    assert repaired(history) == (history, [])


def test_a_second_output_of_a_call_is_dropped() -> None:
    assert repaired([CALL, OUT, CALL.output("again")]) == ([CALL, OUT], [("dropped", "/input/2")])


def test_a_call_id_used_twice_is_made_unique_on_call_and_output() -> None:
    again = msgspec.structs.replace(CALL, response_id="r2")
    items, changes = repaired([CALL, OUT, again, OUT])
    assert [item.call_id for item in items if isinstance(item, (*CALLS, *OUTPUTS))] == [
        "c1",
        "c1",
        "c1_2",
        "c1_2",
    ]
    assert [change[0] for change in changes] == ["renamed", "renamed"]


def ids_and_outputs(items: list[ResponseItem]) -> list[tuple[str, object]]:
    """The calls and the outputs, each by its id and the text of an output."""
    return [
        (item.call_id, item.output if isinstance(item, OUTPUTS) else None)
        for item in items
        if isinstance(item, (*CALLS, *OUTPUTS))
    ]


def test_parallel_calls_of_one_id_keep_their_outputs() -> None:
    items, _ = repaired([CALL, CALL, CALL.output("one"), CALL.output("two")])
    assert ids_and_outputs(items) == [
        ("c1", None),
        ("c1_2", None),
        ("c1", "one"),
        ("c1_2", "two"),
    ]


def test_new_id_of_a_call_is_not_that_of_another() -> None:
    other = FunctionCall("c1_2", "f", "{}")
    items, _ = repaired([CALL, OUT, CALL, OUT, other, other.output("other")])
    calls = [item.call_id for item in items if isinstance(item, CALLS)]
    assert calls == ["c1", "c1_2", "c1_2_2"]
    assert ids_and_outputs(items)[-1] == ("c1_2_2", "other")


def test_output_is_the_newest_calls_where_an_earlier_turn_waits() -> None:
    items, _ = repaired([CALL, user("never mind"), CALL, OUT])
    assert ids_and_outputs(items)[1:] == [("c1", INTERRUPTED), ("c1_2", None), ("c1_2", "one")]


def test_an_incomplete_call_is_left_out_with_its_output() -> None:
    cut = FunctionCall("c1", "f", '{"a"', status="incomplete")
    assert repaired([user("x"), cut, OUT]) == (
        [user("x")],
        [("dropped", "/input/1"), ("dropped", "/input/2")],
    )


def test_unknown_block_with_unknown_deltas_is_not_sent_again() -> None:
    """A12: what the deltas brought is lost, and the start alone is another block."""
    block = {"type": "future_block", "title": ""}
    delta = {"type": "future_delta", "title": "Grown"}
    frames: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "model": "claude-sonnet-4-5"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    p = parser("messages")
    events = [event for sent in frames for event in p.feed_event(msgspec.json.encode(sent))]
    items = accumulate([*events, *p.close()]).items
    request = build(Prompt([user("x"), *items, user("y")]), "anthropic:claude-sonnet-4-5")
    assert b"future_block" not in request.body
    assert [(change.action, change.path) for change in request.report] == [("dropped", "/input/1")]


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-pro"])
def test_incomplete_item_of_an_unknown_kind_is_not_sent(model: str) -> None:
    """A12: on every wire, and the report says so."""
    item = Opaque("future", {"type": "future", "hollow": True}, status="incomplete")
    request = build(Prompt([user("x"), item, user("y")]), model)
    assert b"hollow" not in request.body
    assert [(change.action, change.path) for change in request.report] == [("dropped", "/input/1")]


STEPS = st.lists(
    st.sampled_from(["user", "text", "think", "call", "output", "orphan", "cut"]).flatmap(
        lambda kind: st.tuples(
            st.just(kind), st.integers(0, 3), st.sampled_from(["r1", "r2", None])
        )
    ),
    max_size=14,
)


def history_of(steps: list[tuple[str, int, str | None]]) -> list[ResponseItem]:
    made: dict[str, ResponseItem] = {}
    items: list[ResponseItem] = []
    for kind, n, response in steps:
        made = {
            "user": user(f"u{n}"),
            "text": Message("assistant", [Text(f"t{n}")], response_id=response),
            "think": Reasoning(f"h{n}", signature="s", response_id=response),
            "call": FunctionCall(f"c{n}", "f", "{}", response_id=response),
            "output": FunctionCallOutput(f"c{n}", "o"),
            "orphan": FunctionCallOutput(f"x{n}", "o"),
            "cut": FunctionCall(f"c{n}", "f", "{", status="incomplete"),
        }
        items.append(made[kind])
    return items


@given(STEPS)
def test_after_repair_every_call_has_one_output_after_its_turn(
    steps: list[tuple[str, int, str | None]],
) -> None:
    items, _ = repaired(history_of(steps))
    calls = [item.call_id for item in items if isinstance(item, CALLS)]
    outputs = [item.call_id for item in items if isinstance(item, OUTPUTS)]
    assert sorted(calls) == sorted(outputs)
    assert len(set(calls)) == len(calls)
    waiting: set[str] = set()
    for item in items:
        if isinstance(item, CALLS):
            waiting.add(item.call_id)
        elif isinstance(item, OUTPUTS):
            waiting.remove(item.call_id)
        elif isinstance(item, Message) and item.role == "user":
            assert not waiting


@given(STEPS)
def test_repairing_twice_changes_nothing_more(steps: list[tuple[str, int, str | None]]) -> None:
    once, _ = repaired(history_of(steps))
    assert repaired(once) == (once, [])
