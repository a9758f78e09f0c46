"""Reasoning between tags: what is reasoning, what only mentions tags, what the end decides."""

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
from tests.support.cases import each_case
from tests.support.dialect_calls import (
    TOOLS,
    invoke,
    kimi,
    xai,
)
from tests.support.dialect_streams import (
    calls_of,
    chat,
    chat_body,
    check_brackets,
    filtered,
    outcome,
    splits_of,
)

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
MINIMAX = f"<minimax:tool_call>{invoke('', 'f', k='v')}</minimax:tool_call>"
F = [("f", {"k": "v"})]


def check(
    text: str,
    dialects: list[str],
    output: str,
    reasoning: str,
    calls: Any = (),
    stop_reason: str = "stop",
) -> list[str]:
    """Checks the text, reasoning and calls of `text` for every split; returns the notice codes."""
    unsplit = filtered([text], dialects, stop_reason=stop_reason)
    assert outcome(unsplit)[:3] == (output, reasoning, list(calls))
    for index in range(len(text) + 1):
        assert join_deltas(
            filtered([text[:index], text[index:]], dialects, stop_reason=stop_reason)
        ) == join_deltas(unsplit), index
    for chunks in splits_of(text):
        assert join_deltas(filtered(chunks, dialects, stop_reason=stop_reason)) == join_deltas(
            unsplit
        ), chunks
    return outcome(unsplit)[3]


def test_consecutive_reasoning_is_separate_items() -> None:
    items = accumulate(filtered(["<think>a</think>\n<think>b</think>ok"], ["think"])).items
    assert [(type(item), item.text) for item in items] == [
        (Reasoning, "a"),
        (Reasoning, "b"),
        (Message, "ok"),
    ]  # type: ignore[union-attr]


@each_case("tags", REASONING_TAGS, ids=lambda tags: "".join(tags).strip())
def test_every_pair_of_tags_makes_reasoning(tags: tuple[str, str]) -> None:
    begin, end = tags
    assert check(f"{begin}I look.{end}Paris.", ["think"], "Paris.", "I look.") == []


@each_case(
    "text, output, reasoning",
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
def test_newlines_around_tags_belong_to_the_tags(text: str, output: str, reasoning: str) -> None:
    assert check(text, ["think"], output, reasoning) == []


@each_case(
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
def test_mentioned_tags_are_text(text: str) -> None:
    assert check(text, ["think"], text, "") == []


def test_text_without_tags_is_not_buffered() -> None:
    dialect_filter = DialectFilter(["think"])
    dialect_filter.feed([OutputItemAdded(0, Message("assistant"))])
    emitted = dialect_filter.feed([OutputTextDelta(0, 0, "a < b <i> and ")])
    assert [event.delta for event in emitted if isinstance(event, OutputTextDelta)] == [
        "a < b <i> and "
    ]


def test_think_start_counts_only_at_the_start() -> None:
    assert (
        check("<think>a</think>b\n<think>c</think>d", ["think:start"], "b\n<think>c</think>d", "a")
        == []
    )
    assert check("b</think>c", ["think:start"], "b</think>c", "") == []


# --- a missing opening tag ---


@each_case("end", UNOPENED)
def test_lone_closing_tag_makes_reasoning_of_the_text_before(end: str) -> None:
    assert check(f"I look.\n{end}\n\nParis.", ["think"], "Paris.", "I look.") == ["text_replaced"]
    assert check(f"I look.{end}Paris.", ["think"], "Paris.", "I look.") == ["text_replaced"]
    assert check(f"I look.{end}\n\n\nParis.", ["think"], "\nParis.", "I look.") == ["text_replaced"]


def test_response_that_ends_with_a_closing_tag_has_no_text() -> None:
    assert check("I look.</think>", ["think"], "", "I look.") == ["text_replaced"]
    items = accumulate(filtered(["I look.</think>"], ["think"])).items
    assert [(type(item), item.status) for item in items] == [
        (Message, "completed"),
        (Reasoning, "completed"),
    ]


def test_newline_before_a_lone_closing_tag_is_not_reasoning() -> None:
    assert check("\n</think>\n\nParis.", ["think"], "Paris.", "") == ["text_replaced"]
    assert [type(item) for item in accumulate(filtered(["\n</think>Paris."], ["think"])).items] == [
        Message,
        Message,
    ]


def test_notice_names_the_text_that_became_reasoning() -> None:
    events = filtered(["I look.</think>Paris."], ["think"])
    notice = next(event for event in events if isinstance(event, Notice))
    items = accumulate(events).items
    assert [type(item) for item in items] == [Message, Reasoning, Message]
    assert (notice.index, items[0].content) == (0, ())  # type: ignore[union-attr]


@pytest.mark.parametrize("before", ["", " \n", "<think>", "<think>\n", "\n<think>\n"])
def test_think_open_needs_no_opening_tag(before: str) -> None:
    reasoning = before.lstrip("\n").removeprefix("<think>").removeprefix("\n")
    assert (
        check(
            f"{before}I look.\n</think>\n\nParis.", ["think:open"], "Paris.", f"{reasoning}I look."
        )
        == []
    )


def test_think_open_streams_at_once() -> None:
    dialect_filter = DialectFilter(["think:open"])
    dialect_filter.feed([OutputItemAdded(0, Message("assistant"))])
    emitted = dialect_filter.feed([OutputTextDelta(0, 0, "I look it up")])
    assert [event.delta for event in emitted if isinstance(event, ReasoningContentDelta)] == [
        "I look it up"
    ]


@each_case(
    "opening, dialect", [("", "think:open"), ("<think>", "think"), ("\n<think>", "think:open")]
)
@each_case(
    "stop_reason, output, reasoning",
    [
        ("stop", "It is Paris.", ""),
        ("length", "", "It is Paris."),
        ("tool_calls", "", "It is Paris."),
    ],
)
def test_unclosed_reasoning_is_text_after_an_ordinary_stop(
    opening: str, dialect: str, stop_reason: str, output: str, reasoning: str
) -> None:
    notices = check(
        f"{opening}It is Paris.",
        [dialect],
        opening + output if output else "",
        reasoning,
        stop_reason=stop_reason,
    )
    assert notices == (["text_replaced"] if output else [])


def test_truncated_reasoning_is_incomplete() -> None:
    p = parser("chat", dialects=["think"])
    events = [
        *p.feed(chat_body([{"content": "<think>I lo"}], None).removesuffix(b"data: [DONE]\n\n")),
        *p.close(),
    ]
    response = accumulate(events)
    assert [(type(item), item.status) for item in response.items] == [(Reasoning, "incomplete")]
    assert (response.status, response.text, response.reasoning) == ("failed", "", "I lo")


def test_newline_of_a_tag_is_restored_with_it() -> None:
    assert check("<think>\nIt is Paris.", ["think"], "<think>\nIt is Paris.", "") == [
        "text_replaced"
    ]


def test_opening_tag_alone_is_text() -> None:
    assert check("<think>", ["think"], "<think>", "") == []
    assert check("", ["think:open"], "", "") == []


# --- calls and reasoning ---


def test_call_at_a_line_start_ends_unclosed_reasoning() -> None:
    assert check(f"<think>\nplan\n{HERMES}", ["think", "hermes"], "", "plan", F) == []
    assert check(f"plan\n{HERMES}", ["think:open", "hermes"], "", "plan", F) == []
    assert check(f"<think>\n{HERMES}", ["think:open", "hermes"], "", "", F) == []
    assert check(f"<think>\n{HERMES}", ["think", "hermes"], "", "", F) == []


@pytest.mark.parametrize("call", [f"\n{HERMES}\n", f"maybe {HERMES} or"])
def test_call_inside_closed_reasoning_is_reasoning(call: str) -> None:
    assert (
        check(f"<think>I{call}no.</think>Paris.", ["think", "hermes"], "Paris.", f"I{call}no.")
        == []
    )


def test_call_inside_closed_reasoning_counts_if_nothing_follows() -> None:
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


def test_call_inside_truncated_reasoning_is_reasoning() -> None:
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


def test_calls_and_reasoning_alternate() -> None:
    text = f"<think>a</think>\n\nI call.\n{HERMES}\n<think>b</think>Done."
    assert check(text, ["think", "hermes"], "I call.\n\nDone.", "ab", F) == []


def test_call_buffered_in_reasoning_is_limited() -> None:
    text = (
        f'<think>a\n<tool_call>{{"name": "f", "arguments": {{"k": "{"x" * 3000}"}}}}'
        "</tool_call></think>b"
    )
    limits = Limits(held_bytes=1024)
    unsplit = filtered([text], ["think", "hermes"], limits=limits)
    assert outcome(unsplit) == ("b", text.removeprefix("<think>").removesuffix("</think>b"), [], [])
    for chunks in splits_of(text):
        assert join_deltas(filtered(chunks, ["think", "hermes"], limits=limits)) == join_deltas(
            unsplit
        )


# --- beside reasoning of the wire ---


def test_tags_are_text_when_the_wire_sends_reasoning() -> None:
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
def test_closing_tag_after_a_wire_call_is_text(dialect: Any) -> None:
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    response = accumulate(chat([call, {"content": "a</think>b"}], tools=TOOLS, dialects=[dialect]))
    assert (response.text, response.reasoning) == ("a</think>b", "")


def test_empty_wire_reasoning_changes_nothing() -> None:
    response = accumulate(
        chat([{"reasoning_content": ""}, {"content": "<think>x</think>y"}], dialects=["think"])
    )
    assert (response.text, response.reasoning) == ("y", "x")


def test_unclosed_reasoning_is_reasoning_when_an_item_follows() -> None:
    deltas = [
        {"content": "<think>hm"},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]},
    ]
    response = accumulate(chat(deltas, tools=TOOLS, dialects=["think", "hermes"]))
    assert (response.text, response.reasoning, calls_of(response)) == ("", "hm", [("f", {})])
    assert response.notices == ()


def test_reasoning_of_several_messages_is_in_order() -> None:
    dialect_filter = DialectFilter(["think:open"])
    events: list[Any] = []
    for index, text in enumerate(("a</think>b", "c</think>d", "<think>e</think>f")):
        events += [OutputItemAdded(index, Message("assistant")), OutputTextDelta(index, 0, text)]
        events += [OutputItemDone(index, Message("assistant", [Text(text)]))]
    response = accumulate(dialect_filter.feed([*events, Completed(stop_reason="stop")]))
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
def test_any_text_with_tags_is_equal_for_every_split(
    bits: list[str], dialects: list[str], stop_reason: str, seed: int
) -> None:
    text = "".join(bits)
    unsplit = join_deltas(filtered([text], dialects, stop_reason=stop_reason))
    for chunks in splits_of(text, seed, count=4):
        assert join_deltas(filtered(chunks, dialects, stop_reason=stop_reason)) == unsplit


def test_names_of_the_reasoning_dialects() -> None:
    assert [name for name in DIALECTS if name.startswith("think")] == [
        "think",
        "think:start",
        "think:open",
    ]


@pytest.mark.parametrize(
    ("dialects", "call"),
    [
        (["hermes", "think:open"], HERMES),
        (["minimax_m2", "think:open"], MINIMAX),
        (["kimi_k2", "think:open"], kimi("functions.f:0", '{"k": "v"}')),
    ],
)
def test_calls_at_the_start_are_not_reasoning(dialects: list[str], call: str) -> None:
    """A3: the server removed the reasoning, so that the text begins with parallel calls."""
    assert check(call * 2, dialects, "", "", F * 2) == []


@pytest.mark.parametrize("closing", ["</think>", "</think>\n\n"])
def test_closing_tag_at_the_start_is_left_out(closing: str) -> None:
    """A4: GLM-4.6, DeepSeek-V3.1 and Qwen3.5 with reasoning that the server removed."""
    assert check(f"{closing}Paris.", ["think"], "Paris.", "") == []


def test_reasoning_ends_at_the_other_closing_tag() -> None:
    """A23."""
    assert check("<think>a</thinking>b", ["think"], "b", "a") == []


@pytest.mark.parametrize("dialects", [["hermes", "think"], ["hermes", "think:open"]])
def test_call_on_the_line_of_unclosed_reasoning_is_found(dialects: list[str]) -> None:
    """A3: a call ends reasoning wherever it stands."""
    opening = "" if "think:open" in dialects else "<think>"
    assert check(f"{opening}I look it up. {HERMES}", dialects, "", "I look it up. ", F) == []


# --- calls end reasoning only where they are calls of offered tools ---

CALL = '<tool_call>\n{"name": "f", "arguments": {"k": "v"}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "unknown", "arguments": {"k": "v"}}\n</tool_call>'
BEGUN = ["hermes", "qwen3_coder", "think:open"]


@each_case(
    "text, output, reasoning, calls",
    [
        ("<tool_call> is the tag.\n</think>\n\nYes.", "Yes.", "<tool_call> is the tag.", 0),
        (f"{OTHER}\n</think>\n\nYes.", "Yes.", OTHER, 0),
        (f"{OTHER}\n</think>\n\n{CALL}", "", OTHER, 1),
        (f"{CALL}\n{CALL}", "\n", "", 2),
        (f"Hm. {OTHER}\n{CALL}", "", f"Hm. {OTHER}", 1),
        (f"Hm. Use `<tool_call>`, so: {CALL}", "", "Hm. Use `<tool_call>`, so: ", 1),
        ("Hm. <tool_call> is the tag.", "Hm. <tool_call> is the tag.", "", 0),
        (f"Hm. {OTHER} Yes.", f"Hm. {OTHER} Yes.", "", 0),
        (f"Hm.\n```\n{CALL}\n```\nYes.", f"Hm.\n```\n{CALL}\n```\nYes.", "", 0),
    ],
)
def test_call_of_an_offered_tool_alone_ends_reasoning(
    text: str, output: str, reasoning: str, calls: int
) -> None:
    """A3: a thought about calls stays a thought, or the text if nothing ended it."""
    events = filtered([text], BEGUN)
    check_brackets(events)
    assert outcome(events)[:3] == (output, reasoning, [("f", {"k": "v"})] * calls)
    for chunks in splits_of(text, count=4):
        assert join_deltas(filtered(chunks, BEGUN)) == join_deltas(events)


@pytest.mark.parametrize("text", [f"Hm. {OTHER}", "<tool_call> is the tag.\n</think>"])
def test_mention_of_a_call_stays_reasoning_when_truncated(text: str) -> None:
    """A3."""
    for stop_reason in ("length", "tool_calls"):
        output, reasoning, calls, _ = outcome(filtered([text], BEGUN, stop_reason=stop_reason))
        assert (output, calls) == ("", [])
        assert reasoning == text.removesuffix("\n</think>")


@pytest.mark.parametrize(
    ("dialect", "before", "tag"),
    [("think", "Hello.\n", "<think>"), ("gemma4", "Hello. ", "<|channel>")],
)
def test_opening_tag_at_the_end_moves_no_text(dialect: str, before: str, tag: str) -> None:
    """The text before it was taken for its reasoning: emptied, and emitted again behind the tag."""
    assert check(before + tag, [dialect], before + tag, "") == []
    assert check(before + tag, [dialect], before, "", stop_reason="length") == []
    [message] = accumulate(filtered([before + tag], [dialect], stop_reason="length")).items
    assert message.status == "completed"


@pytest.mark.parametrize("dialect", ["think", "gemma4"])
def test_call_after_an_empty_opening_tag_is_a_call(dialect: str) -> None:
    """The text before the tag is none of its reasoning."""
    opening = {"think": "<think>", "gemma4": "<|channel>"}[dialect]
    text = f"Hello.\n{opening}{HERMES}"
    events = filtered([text], [dialect, "hermes"])
    check_brackets(events)
    assert outcome(events)[:3] == ("Hello.\n", "", F)


def test_mentioned_heading_is_text_in_every_split() -> None:
    """A heading that counts at the start only: whether it was seen depended on the split."""
    text = "So: Here are my reasoning steps: x.[BEGIN FINAL RESPONSE] y"
    without_mark = text.replace("[BEGIN FINAL RESPONSE]", "")
    assert check(text, ["apriel"], without_mark, "") == []
