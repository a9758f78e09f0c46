"""Thoughts written between tags: what is a thought, what only speaks of one, and what is decided when the answer ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    Completed,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    Text,
    accumulate,
    parser,
)
from streamlib_parsers.dialects import DIALECTS, DialectFilter
from streamlib_parsers.dialects.definitions import REASONING_TAGS, UNOPENED
from streamlib_parsers.limits import Limits
from tests.support.dialect_streams import (
    TOOLS,
    calls_of,
    chat,
    chat_body,
    cuts_of,
    staged,
    told,
    xai,
)

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]


def check(
    text: str,
    dialects: list[str],
    said: str,
    thought: str,
    calls: Any = (),
    stop_reason: str = "stop",
) -> list[str]:
    """Text, thoughts and calls of `text`, the same for every cut; gives the codes of the notices."""
    whole = staged([text], dialects, stop_reason=stop_reason)
    assert told(whole)[:3] == (said, thought, list(calls))
    for at in range(len(text) + 1):
        assert join_deltas(
            staged([text[:at], text[at:]], dialects, stop_reason=stop_reason)
        ) == join_deltas(whole), at
    for pieces in cuts_of(text):
        assert join_deltas(staged(pieces, dialects, stop_reason=stop_reason)) == join_deltas(
            whole
        ), pieces
    return told(whole)[3]


def test_thoughts_in_a_row_are_thoughts_of_their_own() -> None:
    items = accumulate(staged(["<think>a</think>\n<think>b</think>ok"], ["think"])).items
    assert [(type(item), item.text) for item in items] == [
        (Reasoning, "a"),
        (Reasoning, "b"),
        (Message, "ok"),
    ]  # type: ignore[union-attr]


@pytest.mark.parametrize("tags", REASONING_TAGS, ids=lambda tags: tags[0].strip())
def test_every_pair_of_tags_makes_a_thought(tags: tuple[str, str]) -> None:
    begin, end = tags
    assert check(f"{begin}I look.{end}Paris.", ["think"], "Paris.", "I look.") == []


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("<think>\na\n</think>\n\nb", "b", "a"),
        ("<think>\n\na\n\n</think>\n\n\nb", "\nb", "\na\n"),
        ("<think>a</think>b", "b", "a"),
        ("<think> a </think> b", " b", " a "),
        ("<think></think>b", "b", ""),
        ("<think>\n\n</think>\n\nb", "b", ""),
        ("\n  <think>a</think>b", "\n  b", "a"),
        ("<think>a < b </thin> <think> `</think>b", "b", "a < b </thin> <think> `"),
        ("<think>a</think>b\n<think>c</think>\nd", "b\nd", "ac"),
        ("<think>a</think>b</think>c", "b</think>c", "a"),
    ],
)
def test_one_newline_inside_the_tags_and_two_behind_them_are_theirs_and_nothing_else(
    text: str, said: str, thought: str
) -> None:
    assert check(text, ["think"], said, thought) == []


@pytest.mark.parametrize(
    "text",
    [
        "see <think>x</think> here",
        "`<think>` opens, `</think>` closes.",
        "```\n<think>a</think>\n```\n",
        "The tag </think> closes.",
        "Write </think>: it closes.",
        "a < b, and a <thin",
        "So: <think>",
        "a `</think>\nb</think>c",
        "see <think> there\nand b</think>c",
    ],
)
def test_tags_that_are_spoken_of_are_text(text: str) -> None:
    assert check(text, ["think"], text, "") == []


def test_text_without_tags_waits_for_nothing() -> None:
    stage = DialectFilter(["think"])
    stage.feed([OutputItemAdded(0, Message("assistant"))])
    given_out = stage.feed([OutputTextDelta(0, 0, "a < b <i> and ")])
    assert [event.delta for event in given_out if isinstance(event, OutputTextDelta)] == [
        "a < b <i> and "
    ]


def test_only_the_start_counts_where_the_model_is_unknown() -> None:
    assert (
        check("<think>a</think>b\n<think>c</think>d", ["think:start"], "b\n<think>c</think>d", "a")
        == []
    )
    assert check("b</think>c", ["think:start"], "b</think>c", "") == []


# --- a missing opening tag ---


@pytest.mark.parametrize("end", UNOPENED)
def test_a_closing_tag_without_an_opening_one_makes_a_thought_of_what_came_before(end: str) -> None:
    assert check(f"I look.\n{end}\n\nParis.", ["think"], "Paris.", "I look.") == ["text_replaced"]
    assert check(f"I look.{end}Paris.", ["think"], "Paris.", "I look.") == ["text_replaced"]
    assert check(f"I look.{end}\n\n\nParis.", ["think"], "\nParis.", "I look.") == ["text_replaced"]


def test_an_answer_that_ends_with_its_thought_has_no_text() -> None:
    assert check("I look.</think>", ["think"], "", "I look.") == ["text_replaced"]
    items = accumulate(staged(["I look.</think>"], ["think"])).items
    assert [(type(item), item.status) for item in items] == [
        (Message, "completed"),
        (Reasoning, "completed"),
    ]


def test_a_line_break_before_a_lone_closing_tag_is_no_thought() -> None:
    assert check("\n</think>\n\nParis.", ["think"], "Paris.", "") == ["text_replaced"]
    assert [type(item) for item in accumulate(staged(["\n</think>Paris."], ["think"])).items] == [
        Message,
        Message,
    ]


def test_a_text_that_became_a_thought_is_named_by_the_notice() -> None:
    events = staged(["I look.</think>Paris."], ["think"])
    notice = next(event for event in events if isinstance(event, Notice))
    items = accumulate(events).items
    assert [type(item) for item in items] == [Message, Reasoning, Message]
    assert (notice.index, items[0].content) == (0, ())  # type: ignore[union-attr]


@pytest.mark.parametrize("before", ["", " \n", "<think>", "<think>\n", "\n<think>\n"])
def test_a_model_that_begins_inside_its_thought_needs_no_opening_tag(before: str) -> None:
    thought = before.lstrip("\n").removeprefix("<think>").removeprefix("\n")
    assert (
        check(f"{before}I look.\n</think>\n\nParis.", ["think:open"], "Paris.", f"{thought}I look.")
        == []
    )


def test_a_thought_that_began_before_the_answer_streams_at_once() -> None:
    stage = DialectFilter(["think:open"])
    stage.feed([OutputItemAdded(0, Message("assistant"))])
    given_out = stage.feed([OutputTextDelta(0, 0, "I look it up")])
    assert [event.delta for event in given_out if isinstance(event, ReasoningContentDelta)] == [
        "I look it up"
    ]


@pytest.mark.parametrize(
    ("opening", "dialect"), [("", "think:open"), ("<think>", "think"), ("\n<think>", "think:open")]
)
@pytest.mark.parametrize(
    ("stop_reason", "said", "thought"),
    [
        ("stop", "It is Paris.", ""),
        ("length", "", "It is Paris."),
        ("tool_calls", "", "It is Paris."),
    ],
)
def test_a_thought_that_never_ends_is_the_answer_where_the_answer_ended_in_order(
    opening: str, dialect: str, stop_reason: str, said: str, thought: str
) -> None:
    notices = check(
        f"{opening}It is Paris.",
        [dialect],
        opening + said if said else "",
        thought,
        stop_reason=stop_reason,
    )
    assert notices == (["text_replaced"] if said else [])


def test_a_thought_that_was_cut_is_incomplete() -> None:
    p = parser("chat", dialects=["think"])
    events = [
        *p.feed(chat_body([{"content": "<think>I lo"}], None).removesuffix(b"data: [DONE]\n\n")),
        *p.close(),
    ]
    response = accumulate(events)
    assert [(type(item), item.status) for item in response.items] == [(Reasoning, "incomplete")]
    assert (response.status, response.text, response.reasoning) == ("failed", "", "I lo")


def test_the_line_break_of_a_tag_comes_back_with_it_where_the_thought_was_the_answer() -> None:
    assert check("<think>\nIt is Paris.", ["think"], "<think>\nIt is Paris.", "") == [
        "text_replaced"
    ]


def test_an_opening_tag_alone_is_text() -> None:
    assert check("<think>", ["think"], "<think>", "") == []
    assert check("", ["think:open"], "", "") == []


# --- calls and thoughts ---


def test_a_call_at_the_start_of_a_line_ends_a_thought_that_nothing_closes() -> None:
    assert check(f"<think>\nplan\n{HERMES}", ["think", "hermes"], "", "plan", F) == []
    assert check(f"plan\n{HERMES}", ["think:open", "hermes"], "", "plan", F) == []
    assert check(f"<think>\n{HERMES}", ["think:open", "hermes"], "", "", F) == []
    assert check(f"<think>\n{HERMES}", ["think", "hermes"], "", "", F) == []


@pytest.mark.parametrize("call", [f"\n{HERMES}\n", f"maybe {HERMES} or"])
def test_a_call_inside_a_closed_thought_is_a_thought(call: str) -> None:
    assert (
        check(f"<think>I{call}no.</think>Paris.", ["think", "hermes"], "Paris.", f"I{call}no.")
        == []
    )


def test_a_call_inside_a_closed_thought_counts_where_nothing_follows_it() -> None:
    assert (
        check(f"<think>I call {HERMES}</think>", ["think", "hermes"], "", f"I call {HERMES}", F)
        == []
    )
    assert (
        check(
            f"<think>I call {xai('f', k='v')}</think>",
            ["think", "xai"],
            "",
            f"I call {xai('f', k='v')}",
        )
        == []
    )


def test_a_call_inside_a_thought_that_was_cut_is_a_thought() -> None:
    assert (
        check(
            f"<think>plan\n{HERMES}",
            ["think", "hermes"],
            "",
            f"plan\n{HERMES}",
            stop_reason="length",
        )
        == []
    )


def test_calls_and_thoughts_in_turns() -> None:
    text = f"<think>a</think>\n\nI call.\n{HERMES}\n<think>b</think>Done."
    assert check(text, ["think", "hermes"], "I call.\n\nDone.", "ab", F) == []


def test_a_call_held_in_a_thought_is_bounded_too() -> None:
    text = f'<think>a\n<tool_call>{{"name": "f", "arguments": {{"k": "{"x" * 3000}"}}}}</tool_call></think>b'
    limits = Limits(held_bytes=1024)
    whole = staged([text], ["think", "hermes"], limits=limits)
    assert told(whole) == ("b", text.removeprefix("<think>").removesuffix("</think>b"), [], [])
    for pieces in cuts_of(text):
        assert join_deltas(staged(pieces, ["think", "hermes"], limits=limits)) == join_deltas(whole)


# --- beside thoughts of the wire ---


def test_tags_are_text_where_the_wire_sends_thoughts_of_its_own() -> None:
    text = "<think>x</think>y"
    response = accumulate(
        chat(
            [
                {"reasoning_content": "r"},
                {"content": text},
                {"reasoning_content": "s"},
                {"content": text},
            ],
            dialects=["think"],
        )
    )
    assert (response.text, response.reasoning) == (text * 2, "rs")
    for dialect in ("think:open", DIALECTS["think:open"]):
        opened = accumulate(
            chat([{"reasoning_content": "r"}, {"content": f"{text}</think>"}], dialects=[dialect])
        )
        assert (opened.text, opened.reasoning, opened.notices) == (f"{text}</think>", "r", ())


@pytest.mark.parametrize(
    "dialect", [DIALECTS["think"], DIALECTS["think:open"]], ids=lambda dialect: dialect.name
)
def test_behind_a_call_of_the_wire_a_closing_tag_proves_no_thought(dialect: Any) -> None:
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    response = accumulate(chat([call, {"content": "a</think>b"}], tools=TOOLS, dialects=[dialect]))
    assert (response.text, response.reasoning) == ("a</think>b", "")


def test_an_empty_thought_of_the_wire_changes_nothing() -> None:
    response = accumulate(
        chat([{"reasoning_content": ""}, {"content": "<think>x</think>y"}], dialects=["think"])
    )
    assert (response.text, response.reasoning) == ("y", "x")


def test_a_thought_that_waits_is_a_thought_once_something_else_begins() -> None:
    deltas = [
        {"content": "<think>hm"},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]},
    ]
    response = accumulate(chat(deltas, tools=TOOLS, dialects=["think", "hermes"]))
    assert (response.text, response.reasoning, calls_of(response)) == ("", "hm", [("f", {})])
    assert response.notices == ()


def test_thoughts_of_several_messages_follow_each_other() -> None:
    stage = DialectFilter(["think:open"])
    events: list[Any] = []
    for index, text in enumerate(("a</think>b", "c</think>d", "<think>e</think>f")):
        events += [OutputItemAdded(index, Message("assistant")), OutputTextDelta(index, 0, text)]
        events += [OutputItemDone(index, Message("assistant", [Text(text)]))]
    response = accumulate(stage.feed([*events, Completed(stop_reason="stop")]))
    assert (response.text, response.reasoning) == ("bc</think>df", "ae")


@settings(max_examples=120)
@given(
    st.lists(
        st.sampled_from(
            [
                "<think>",
                "</think>",
                "</thin",
                "<",
                "\n",
                "\n\n",
                "a",
                " b ",
                "`",
                "```\n",
                HERMES,
                "<thinking>",
                "é那",
            ]
        ),
        max_size=14,
    ),
    st.sampled_from(
        [["think"], ["think:open"], ["think:start"], ["think", "hermes"], ["think:open", "hermes"]]
    ),
    st.sampled_from(["stop", "length", "tool_calls"]),
    st.integers(0, 2**32),
)
def test_any_text_with_tags_gives_the_same_for_every_cut(
    bits: list[str], dialects: list[str], stop_reason: str, seed: int
) -> None:
    text = "".join(bits)
    whole = join_deltas(staged([text], dialects, stop_reason=stop_reason))
    for pieces in cuts_of(text, seed, count=4):
        assert join_deltas(staged(pieces, dialects, stop_reason=stop_reason)) == whole


def test_all_thought_dialects_are_known() -> None:
    assert [name for name in DIALECTS if name.startswith("think")] == [
        "think",
        "think:start",
        "think:open",
    ]
