"""What a stage gives out for what a wire says around a text with calls: once a ceiling was passed, at the end, and in between."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    ItemProgress,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    Refusal,
    RefusalDelta,
    ServerToolCall,
    Text,
    accumulate,
)
from streamlib_parsers.dialects import Dialect, DialectFilter, Opener
from streamlib_parsers.dialects.cursor import Cursor, Parse
from streamlib_parsers.dialects.grammars.json_calls import JsonCalls
from streamlib_parsers.dialects.sink import GrammarSink
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import FinishedChoice, ResponseEvent
from streamlib_parsers.limits import Limits
from tests.support.dialect_streams import TOOLS, calls_of, chat, check_brackets, staged, told

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]
OPEN_CALL = '<tool_call>{"name": "f", "arguments": {"k": "'
ENDED = Completed(stop_reason="stop")


def said(index: int, text: str) -> list[ResponseEvent]:
    """A whole message of the wire."""
    return [
        OutputItemAdded(index, Message("assistant")),
        OutputTextDelta(index, 0, text),
        OutputItemDone(index, Message("assistant", [Text(text)])),
    ]


def thought(index: int, text: str) -> list[ResponseEvent]:
    """A whole thought of the wire."""
    return [
        OutputItemAdded(index, Reasoning()),
        ReasoningContentDelta(index, 0, text),
        OutputItemDone(index, Reasoning(text)),
    ]


def numbered(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """The same, after a check that they are numbered from zero on."""
    assert [event.seq for event in events] == list(range(len(events)))
    return events


# --- what comes with a text ---


def test_log_probabilities_without_words_of_their_own_come_at_the_end_of_the_message() -> None:
    last: Any = [{"token": "end"}]
    events = [
        OutputItemAdded(0, Message("assistant")),
        OutputTextDelta(0, 0, "a"),
        OutputTextDelta(0, 0, "", last),
    ]
    given_out = DialectFilter(["hermes"], TOOLS).feed(
        [*events, OutputItemDone(0, Message("assistant", [Text("a")])), ENDED]
    )
    check_brackets(given_out)
    assert [
        (event.delta, event.logprobs) for event in given_out if isinstance(event, OutputTextDelta)
    ] == [("a", None), ("", last)]


def test_a_notice_about_an_item_of_the_wire_follows_it_to_its_new_number() -> None:
    events = DialectFilter(["hermes"], TOOLS).feed(
        [*said(0, f"a{HERMES}b"), OutputItemAdded(1, Reasoning()), Notice("odd", "", 1)]
    )
    assert [event.index for event in numbered(events) if isinstance(event, Notice)] == [3]


def test_the_progress_of_a_message_comes_under_its_new_number() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    events = stage.feed(
        [
            OutputItemAdded(0, Message("assistant")),
            OutputTextDelta(0, 0, f"{HERMES}b"),
            ItemProgress(0, "writing"),
        ]
    )
    assert [event for event in numbered(events) if isinstance(event, ItemProgress)] == [
        ItemProgress(1, "writing")
    ]


def test_a_refusal_in_several_pieces_is_one() -> None:
    done = Message("assistant", [Text("<tool"), Refusal("I will not")])
    deltas = [
        OutputTextDelta(0, 0, "<tool"),
        RefusalDelta(0, 1, "I will"),
        RefusalDelta(0, 1, " not"),
    ]
    events = DialectFilter(["hermes"], TOOLS).feed(
        [OutputItemAdded(0, Message("assistant")), *deltas, OutputItemDone(0, done), ENDED]
    )
    assert [event.delta for event in numbered(events) if isinstance(event, RefusalDelta)] == [
        "I will",
        " not",
    ]
    assert accumulate(events).items == (done,)


def test_the_arguments_of_a_hosted_tool_pass_and_are_no_call_to_compare_with() -> None:
    hosted = ServerToolCall("s", "f", '{"k": "v"}')
    events = [
        OutputItemAdded(0, ServerToolCall("s", "f")),
        FunctionCallArgumentsDelta(0, '{"k": "v"}'),
        OutputItemDone(0, hosted),
    ]
    response = accumulate(DialectFilter(["hermes"], TOOLS).feed([*events, *said(1, HERMES), ENDED]))
    assert response.items[0] == hosted
    assert calls_of(response) == F


def test_an_id_of_the_wire_is_given_to_no_other_call() -> None:
    native = [
        OutputItemAdded(0, FunctionCall("call_0", "g", choice=1)),
        OutputItemDone(0, FunctionCall("call_0", "g", choice=1)),
    ]
    ended = Completed(
        stop_reason="stop", choices=(FinishedChoice(0, "stop"), FinishedChoice(1, "tool_calls"))
    )
    events = DialectFilter(["hermes"], TOOLS).feed([*native, *said(1, HERMES * 2), ended])
    check_brackets(events)
    calls = [
        event.item
        for event in events
        if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall)
    ]
    assert [call.call_id for call in calls] == ["call_0", "call_1", "call_2"]


@pytest.mark.parametrize(("text", "notices"), [("I will not.", ["no_tool_call"]), (HERMES, [])])
def test_a_wire_that_misses_a_call_is_told_only_where_none_is_found(
    text: str, notices: list[str]
) -> None:
    events = chat([{"content": text}], "tool_calls", tools=TOOLS, dialects=["hermes"])
    check_brackets(events)
    assert told(events)[3] == notices


# --- a ceiling was passed ---


def test_after_a_ceiling_nothing_begins_and_what_was_open_ends_incomplete() -> None:
    stage = DialectFilter(["hermes"], TOOLS, Limits(items=2))
    begun = [
        OutputItemAdded(0, ServerToolCall("c", "g")),
        OutputItemAdded(1, Message("assistant")),
        OutputTextDelta(1, 0, "a"),
    ]
    events = stage.feed(
        [*begun, OutputItemAdded(2, Message("assistant", choice=1)), OutputTextDelta(2, 0, "b")]
    )
    assert stage.failure is not None
    assert (stage.failure.kind, stage.failure.code) == ("limit_exceeded", "items")
    assert [
        (event.index, event.item.status) for event in events if isinstance(event, OutputItemDone)
    ] == [(1, "incomplete")]
    late: list[ResponseEvent] = [
        OutputTextDelta(1, 0, "b"),
        RefusalDelta(1, 1, "no"),
        *thought(3, "hm"),
        *said(4, "c"),
    ]
    late += [
        OutputItemAdded(5, FunctionCall("d", "g")),
        FunctionCallArgumentsDelta(5, "{}"),
        ItemProgress(5, "x"),
    ]
    assert stage.feed(late) == []
    done: list[ResponseEvent] = [
        OutputItemDone(5, FunctionCall("d", "g", "{}")),
        OutputItemDone(1, Message("assistant", [Text("ab")])),
    ]
    assert stage.feed(done) == []
    last = stage.feed([OutputItemDone(0, ServerToolCall("c", "g", "{}")), ENDED])
    assert last == [
        OutputItemDone(0, ServerToolCall("c", "g", "{}", status="incomplete")),
        Failed(stage.failure),
    ]
    check_brackets(events + last)


def test_a_message_that_ended_with_a_ceiling_does_not_end_again() -> None:
    stage = DialectFilter(["hermes"], TOOLS, Limits(argument_bytes=5))
    begun = [
        OutputItemAdded(0, Message("assistant", choice=1)),
        OutputTextDelta(0, 0, "a"),
        OutputItemAdded(1, Message("assistant")),
    ]
    events = stage.feed([*begun, OutputTextDelta(1, 0, HERMES)])
    assert [event.index for event in events if isinstance(event, OutputItemDone)] == [0, 1]
    assert (
        stage.feed(
            [
                OutputItemDone(0, Message("assistant", [Text("a")], choice=1)),
                OutputTextDelta(0, 0, "b"),
            ]
        )
        == []
    )


def test_a_failure_of_the_wire_behind_a_ceiling_is_told_as_the_ceiling() -> None:
    stage = DialectFilter(["hermes"], TOOLS, Limits(items=1))
    stage.feed(said(0, f"a{HERMES}"))
    assert stage.failure is not None
    assert stage.feed([Failed(ErrorInfo("server_error", "down"))]) == [Failed(stage.failure)]


@pytest.mark.parametrize("items", [1, 2])
def test_a_ceiling_at_the_answers_very_end_fails_it_once(items: int) -> None:
    """The call in the thought is only looked for when the answer has ended."""
    stage = DialectFilter(["hermes"], TOOLS, Limits(items=items))
    events = stage.feed([*thought(0, HERMES), ENDED])
    check_brackets(numbered(events))
    last = events[-1]
    if items == 2:
        assert (last, calls_of(accumulate(events))) == (
            Completed(stop_reason="tool_calls", choices=last.choices),
            F,
        )  # type: ignore[union-attr]
    else:
        assert isinstance(last, Failed)
        assert last.error.code == "items"


def test_a_call_that_was_open_at_a_ceiling_ends_incomplete() -> None:
    events = staged(
        [OPEN_CALL, "v" * 20, '"}}</tool_call>'], ["hermes"], limits=Limits(argument_bytes=20)
    )
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete"]


def test_a_call_that_broke_off_before_a_ceiling_is_done_once() -> None:
    broken = '<tool_call>{"name": "f", "arguments": {"k": v}}</tool_call>'
    events = staged([broken, HERMES], ["hermes"], limits=Limits(items=2))
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete", "completed"]
    events = staged([HERMES, HERMES], ["hermes"], limits=Limits(items=1))
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete"]


# --- why the answer ended ---


@pytest.mark.parametrize(
    ("choices", "reason"),
    [([1], "tool_calls"), ([1, 0], "stop"), ([0, 1], "stop")],
    ids=["alone", "not-the-first", "second"],
)
def test_the_answer_ends_for_calls_where_the_only_choice_or_the_first_has_one(
    choices: list[int], reason: str
) -> None:
    done = [OutputItemAdded(0, Message("assistant", choice=1)), OutputTextDelta(0, 0, HERMES)]
    done += [OutputItemDone(0, Message("assistant", [Text(HERMES)], choice=1))]
    ended = Completed(
        stop_reason="stop", choices=tuple(FinishedChoice(choice, "stop") for choice in choices)
    )
    last = DialectFilter(["hermes"], TOOLS).feed([*done, ended])[-1]
    assert isinstance(last, Completed)
    assert last.stop_reason == reason
    assert [end.stop_reason for end in last.choices] == [
        "tool_calls" if choice else "stop" for choice in choices
    ]


def test_a_missed_call_is_told_before_the_failure_too() -> None:
    error = ErrorInfo("server_error", "down")
    events = DialectFilter(["hermes"], TOOLS).feed(
        [*said(0, "a"), Notice("no_tool_call"), Failed(error)]
    )
    assert events[-2:] == [Notice("no_tool_call"), Failed(error)]


# --- the end without a terminal event ---


def test_closing_after_the_end_says_nothing_more() -> None:
    stage = DialectFilter(["hermes", "think"], TOOLS)
    stage.feed(
        [
            *said(0, "<think>hm"),
            OutputItemAdded(1, Message("assistant")),
            OutputTextDelta(1, 0, "never closed"),
            ENDED,
        ]
    )
    assert stage.close() == []


def test_closing_ends_a_thought_that_waits_and_says_that_no_call_came() -> None:
    stage = DialectFilter(["think", "hermes"], TOOLS)
    events = stage.feed([*said(0, f"<think>a\n{OPEN_CALL}"), Notice("no_tool_call")])
    events += stage.close()
    assert accumulate(events).items == (Reasoning(f"a\n{OPEN_CALL}", status="incomplete"),)
    assert events[-1] == Notice("no_tool_call")
    assert stage.failure is None


def test_closing_past_a_ceiling_keeps_its_error_to_itself() -> None:
    stage = DialectFilter(["think", "hermes"], TOOLS, Limits(items=3))
    waits = [
        OutputItemAdded(2, Message("assistant")),
        OutputTextDelta(2, 0, f"<think>\n{OPEN_CALL}"),
    ]
    waits += [OutputItemDone(2, Message("assistant", [Text(f"<think>\n{OPEN_CALL}")]))]
    events = stage.feed([*said(0, f"a{HERMES}b"), *waits])
    assert stage.failure is None
    events += stage.close()
    assert [event.index for event in events if isinstance(event, OutputItemAdded)] == [0, 1, 2]
    assert [event.index for event in events if isinstance(event, OutputItemDone)] == [0, 2, 1]
    assert stage.failure is not None
    assert stage.failure.code == "items"


# --- calls in thoughts ---


def test_broken_arguments_in_a_thought_are_no_call_and_whole_ones_in_the_same_thought_are() -> None:
    broken = '<tool_call>{"name": "f", "arguments": {"k": v}}</tool_call>'
    ticked = '<tool_call>{"name": "f", "arguments": {"k": "`"}}</tool_call>'
    response = accumulate(
        DialectFilter(["hermes"], TOOLS).feed([*thought(0, f"{broken} {ticked} {HERMES}"), ENDED])
    )
    assert calls_of(response) == [("f", {"k": "`"}), *F]
    assert response.notices == ()


def test_tags_of_thoughts_in_a_thought_of_the_wire_hide_no_call() -> None:
    response = accumulate(
        DialectFilter(["think", "hermes"], TOOLS).feed(
            [*thought(0, f"<think>\nI call {HERMES}</think>"), ENDED]
        )
    )
    assert calls_of(response) == F


def test_channels_in_a_thought_of_the_wire_are_looked_through_and_nothing_of_them_comes_twice() -> (
    None
):
    channels = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So.<|end|>"
    call = '<|start|>assistant<|channel|>commentary to=functions.f<|message|>{"k": "v"}<|call|>'
    response = accumulate(
        DialectFilter(["harmony"], TOOLS).feed([*thought(0, channels + call), ENDED])
    )
    assert (response.text, response.reasoning, calls_of(response)) == ("", channels + call, F)


# --- dialects of your own ---


class Told:
    """A grammar of a user: `@` and one letter, which says what is told. It forgets the other half of everything."""

    openers = (Opener("@"),)
    first = ""

    def read(self, text: Cursor, sink: GrammarSink) -> Parse[None]:
        """The end of a call without its beginning, a thought without its end, or two ends for one call."""
        letter = yield from text.word()
        if letter == "w":
            sink.arguments("{}")
            sink.end_call()
        elif letter == "o":
            sink.reasoning("hm")
        else:
            sink.add_call("g", "{}")
            sink.end_call()


def test_a_grammar_that_ends_a_call_it_never_began_loses_no_text() -> None:
    mine = Dialect("mine", [Told()])
    assert told(staged(["a @w b"], [mine]))[:3] == ("a @w b", "", [])
    assert told(staged(["a @t b"], [mine]))[:3] == ("a  b", "", [("g", {})])


def test_a_thought_that_a_grammar_leaves_open_ends_with_the_next_word() -> None:
    events = staged(["a @o b"], [Dialect("mine", [Told()])])
    check_brackets(events)
    assert [(type(item), item.text) for item in accumulate(events).items] == [
        (Message, "a "),
        (Reasoning, "hm"),
        (Message, " b"),
    ]  # type: ignore[union-attr]


def test_a_dialect_keeps_its_forms_whatever_becomes_of_the_list() -> None:
    forms = [JsonCalls((Opener("@call "),))]
    mine = Dialect("mine", forms)
    forms.clear()
    assert told(staged(['@call {"name": "g"}'], [mine]))[2] == [("g", {})]
