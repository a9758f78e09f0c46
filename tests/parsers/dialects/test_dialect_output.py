"""What the dialect filter emits around text with calls, past a limit, and at the end."""

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
from streamlib_parsers.dialects.cursor import Parse, TextCursor
from streamlib_parsers.dialects.grammars.json_calls import JsonCalls
from streamlib_parsers.dialects.sink import GrammarSink
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import FinishedChoice, ResponseEvent
from streamlib_parsers.limits import Limits
from tests.support.dialect_calls import (
    TOOLS,
)
from tests.support.dialect_streams import calls_of, chat, check_brackets, filtered, outcome

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]
OPEN_CALL = '<tool_call>{"name": "f", "arguments": {"k": "'
ENDED = Completed(stop_reason="stop")


def message(index: int, text: str) -> list[ResponseEvent]:
    """A complete message of the wire."""
    return [
        OutputItemAdded(index, Message("assistant")),
        OutputTextDelta(index, 0, text),
        OutputItemDone(index, Message("assistant", [Text(text)])),
    ]


def wire_reasoning(index: int, text: str) -> list[ResponseEvent]:
    """Complete reasoning of the wire."""
    return [
        OutputItemAdded(index, Reasoning()),
        ReasoningContentDelta(index, 0, text),
        OutputItemDone(index, Reasoning(text)),
    ]


def numbered(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """The same events, after a check that they are numbered from zero on."""
    assert [event.seq for event in events] == list(range(len(events)))
    return events


# --- events about a message ---


def test_logprobs_without_text_are_emitted_at_message_end() -> None:
    last: Any = [{"token": "end"}]
    events = [
        OutputItemAdded(0, Message("assistant")),
        OutputTextDelta(0, 0, "a"),
        OutputTextDelta(0, 0, "", last),
    ]
    emitted = DialectFilter(["hermes"], TOOLS).feed(
        [*events, OutputItemDone(0, Message("assistant", [Text("a")])), ENDED]
    )
    check_brackets(emitted)
    assert [
        (event.delta, event.logprobs) for event in emitted if isinstance(event, OutputTextDelta)
    ] == [("a", None), ("", last)]


def test_notice_about_a_wire_item_gets_its_new_index() -> None:
    events = DialectFilter(["hermes"], TOOLS).feed(
        [*message(0, f"a{HERMES}b"), OutputItemAdded(1, Reasoning()), Notice("odd", "", 1)]
    )
    assert [event.index for event in numbered(events) if isinstance(event, Notice)] == [3]


def test_progress_of_a_message_gets_its_new_index() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    events = dialect_filter.feed(
        [
            OutputItemAdded(0, Message("assistant")),
            OutputTextDelta(0, 0, f"{HERMES}b"),
            ItemProgress(0, "writing"),
        ]
    )
    assert [event for event in numbered(events) if isinstance(event, ItemProgress)] == [
        ItemProgress(1, "writing")
    ]


def test_refusal_in_several_deltas_is_one_part() -> None:
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


def test_hosted_tool_call_is_not_a_duplicate_of_a_recovered_one() -> None:
    hosted = ServerToolCall("s", "f", '{"k": "v"}')
    events = [
        OutputItemAdded(0, ServerToolCall("s", "f")),
        FunctionCallArgumentsDelta(0, '{"k": "v"}'),
        OutputItemDone(0, hosted),
    ]
    response = accumulate(
        DialectFilter(["hermes"], TOOLS).feed([*events, *message(1, HERMES), ENDED])
    )
    assert response.items[0] == hosted
    assert calls_of(response) == F


def test_call_id_of_the_wire_is_not_generated_again() -> None:
    native = [
        OutputItemAdded(0, FunctionCall("call_0", "g", choice=1)),
        OutputItemDone(0, FunctionCall("call_0", "g", choice=1)),
    ]
    ended = Completed(
        stop_reason="stop", choices=(FinishedChoice(0, "stop"), FinishedChoice(1, "tool_calls"))
    )
    events = DialectFilter(["hermes"], TOOLS).feed([*native, *message(1, HERMES * 2), ended])
    check_brackets(events)
    calls = [
        event.item
        for event in events
        if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall)
    ]
    assert [call.call_id for call in calls] == ["call_0", "call_1", "call_2"]


@pytest.mark.parametrize(("text", "notices"), [("I will not.", ["no_tool_call"]), (HERMES, [])])
def test_no_tool_call_notice_is_dropped_when_a_call_is_recovered(
    text: str, notices: list[str]
) -> None:
    events = chat([{"content": text}], "tool_calls", tools=TOOLS, dialects=["hermes"])
    check_brackets(events)
    assert outcome(events)[3] == notices


# --- past a limit ---


def test_exceeded_limit_opens_nothing_and_ends_items_incomplete() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS, Limits(items=2))
    started = [
        OutputItemAdded(0, ServerToolCall("c", "g")),
        OutputItemAdded(1, Message("assistant")),
        OutputTextDelta(1, 0, "a"),
    ]
    events = dialect_filter.feed(
        [*started, OutputItemAdded(2, Message("assistant", choice=1)), OutputTextDelta(2, 0, "b")]
    )
    assert dialect_filter.failure is not None
    assert (dialect_filter.failure.kind, dialect_filter.failure.code) == ("limit_exceeded", "items")
    assert [
        (event.index, event.item.status) for event in events if isinstance(event, OutputItemDone)
    ] == [(1, "incomplete")]
    late: list[ResponseEvent] = [
        OutputTextDelta(1, 0, "b"),
        RefusalDelta(1, 1, "no"),
        *wire_reasoning(3, "hm"),
        *message(4, "c"),
    ]
    late += [
        OutputItemAdded(5, FunctionCall("d", "g")),
        FunctionCallArgumentsDelta(5, "{}"),
        ItemProgress(5, "x"),
    ]
    assert dialect_filter.feed(late) == []
    done: list[ResponseEvent] = [
        OutputItemDone(5, FunctionCall("d", "g", "{}")),
        OutputItemDone(1, Message("assistant", [Text("ab")])),
    ]
    assert dialect_filter.feed(done) == []
    last = dialect_filter.feed([OutputItemDone(0, ServerToolCall("c", "g", "{}")), ENDED])
    assert last == [
        OutputItemDone(0, ServerToolCall("c", "g", "{}", status="incomplete")),
        Failed(dialect_filter.failure),
    ]
    check_brackets(events + last)


def test_message_closed_by_a_limit_is_not_closed_again() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS, Limits(argument_bytes=5))
    started = [
        OutputItemAdded(0, Message("assistant", choice=1)),
        OutputTextDelta(0, 0, "a"),
        OutputItemAdded(1, Message("assistant")),
    ]
    events = dialect_filter.feed([*started, OutputTextDelta(1, 0, HERMES)])
    assert [event.index for event in events if isinstance(event, OutputItemDone)] == [0, 1]
    assert (
        dialect_filter.feed(
            [
                OutputItemDone(0, Message("assistant", [Text("a")], choice=1)),
                OutputTextDelta(0, 0, "b"),
            ]
        )
        == []
    )


def test_wire_failure_after_an_exceeded_limit_reports_the_limit() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS, Limits(items=1))
    dialect_filter.feed(message(0, f"a{HERMES}"))
    assert dialect_filter.failure is not None
    assert dialect_filter.feed([Failed(ErrorInfo("server_error", "down"))]) == [
        Failed(dialect_filter.failure)
    ]


@pytest.mark.parametrize("items", [1, 2])
def test_limit_exceeded_at_the_end_fails_the_response_once(items: int) -> None:
    """Calls in reasoning are only searched once the response has ended."""
    dialect_filter = DialectFilter(["hermes"], TOOLS, Limits(items=items))
    events = dialect_filter.feed([*wire_reasoning(0, HERMES), ENDED])
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


def test_call_open_at_an_exceeded_limit_ends_incomplete() -> None:
    events = filtered(
        [OPEN_CALL, "v" * 20, '"}}</tool_call>'], ["hermes"], limits=Limits(argument_bytes=20)
    )
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete"]


def test_discarded_call_before_an_exceeded_limit_is_done_once() -> None:
    broken = '<tool_call>{"name": "f", "arguments": {"k": v}}</tool_call>'
    events = filtered([broken, HERMES], ["hermes"], limits=Limits(items=2))
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete", "completed"]
    events = filtered([HERMES, HERMES], ["hermes"], limits=Limits(items=1))
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete"]


# --- stop reasons ---


@pytest.mark.parametrize(
    ("choices", "reason"),
    [([1], "tool_calls"), ([1, 0], "stop"), ([0, 1], "stop")],
    ids=["alone", "not-the-first", "second"],
)
def test_stop_reason_is_of_the_only_choice_or_of_choice_0(choices: list[int], reason: str) -> None:
    done = [OutputItemAdded(0, Message("assistant", choice=1)), OutputTextDelta(0, 0, HERMES)]
    done += [OutputItemDone(0, Message("assistant", [Text(HERMES)], choice=1))]
    finished = tuple(FinishedChoice(choice, "stop") for choice in choices)
    ended = Completed(stop_reason="stop", choices=finished)
    last = DialectFilter(["hermes"], TOOLS).feed([*done, ended])[-1]
    assert isinstance(last, Completed)
    assert last.stop_reason == reason
    expected = {0: "stop", 1: "tool_calls"}
    assert [end.stop_reason for end in last.choices] == [expected[choice] for choice in choices]


def test_no_tool_call_notice_precedes_a_failure_too() -> None:
    error = ErrorInfo("server_error", "down")
    events = DialectFilter(["hermes"], TOOLS).feed(
        [*message(0, "a"), Notice("no_tool_call"), Failed(error)]
    )
    assert events[-2:] == [Notice("no_tool_call"), Failed(error)]


# --- the end without a terminal event ---


def test_close_after_the_end_emits_nothing() -> None:
    dialect_filter = DialectFilter(["hermes", "think"], TOOLS)
    dialect_filter.feed(
        [
            *message(0, "<think>hm"),
            OutputItemAdded(1, Message("assistant")),
            OutputTextDelta(1, 0, "never closed"),
            ENDED,
        ]
    )
    assert dialect_filter.close() == []


def test_close_ends_undecided_reasoning_with_the_pending_notice() -> None:
    dialect_filter = DialectFilter(["think", "hermes"], TOOLS)
    events = dialect_filter.feed([*message(0, f"<think>a\n{OPEN_CALL}"), Notice("no_tool_call")])
    events += dialect_filter.close()
    assert accumulate(events).items == (Reasoning(f"a\n{OPEN_CALL}", status="incomplete"),)
    assert events[-1] == Notice("no_tool_call")
    assert dialect_filter.failure is None


def test_close_past_a_limit_sets_failure_and_does_not_raise() -> None:
    dialect_filter = DialectFilter(["think", "hermes"], TOOLS, Limits(items=3))
    waits = [
        OutputItemAdded(2, Message("assistant")),
        OutputTextDelta(2, 0, f"<think>\n{OPEN_CALL}"),
    ]
    waits += [OutputItemDone(2, Message("assistant", [Text(f"<think>\n{OPEN_CALL}")]))]
    events = dialect_filter.feed([*message(0, f"a{HERMES}b"), *waits])
    assert dialect_filter.failure is None
    events += dialect_filter.close()
    assert [event.index for event in events if isinstance(event, OutputItemAdded)] == [0, 1, 2]
    assert [event.index for event in events if isinstance(event, OutputItemDone)] == [0, 2, 1]
    assert dialect_filter.failure is not None
    assert dialect_filter.failure.code == "items"


# --- calls in reasoning ---


def test_malformed_call_in_reasoning_hides_no_complete_one() -> None:
    broken = '<tool_call>{"name": "f", "arguments": {"k": v}}</tool_call>'
    ticked = '<tool_call>{"name": "f", "arguments": {"k": "`"}}</tool_call>'
    response = accumulate(
        DialectFilter(["hermes"], TOOLS).feed(
            [*wire_reasoning(0, f"{broken} {ticked} {HERMES}"), ENDED]
        )
    )
    assert calls_of(response) == [("f", {"k": "`"}), *F]
    assert response.notices == ()


def test_reasoning_tags_in_wire_reasoning_hide_no_call() -> None:
    response = accumulate(
        DialectFilter(["think", "hermes"], TOOLS).feed(
            [*wire_reasoning(0, f"<think>\nI call {HERMES}</think>"), ENDED]
        )
    )
    assert calls_of(response) == F


def test_channels_in_wire_reasoning_are_searched_not_repeated() -> None:
    channels = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
        "So.<|end|>"
    )
    call = '<|start|>assistant<|channel|>commentary to=functions.f<|message|>{"k": "v"}<|call|>'
    response = accumulate(
        DialectFilter(["harmony"], TOOLS).feed([*wire_reasoning(0, channels + call), ENDED])
    )
    assert (response.text, response.reasoning, calls_of(response)) == ("", channels + call, F)


# --- custom dialects ---


class MisbehavingGrammar:
    """A caller's own grammar, `@` and a letter, that reports only one half of everything."""

    openers = (Opener("@"),)
    first = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Ends a call that never began, begins reasoning that never ends, or ends a call twice."""
        letter = yield from text.word()
        if letter == "w":
            sink.arguments("{}")
            sink.end_call()
        elif letter == "o":
            sink.reasoning("hm")
        else:
            sink.add_call("g", "{}")
            sink.end_call()


def test_grammar_that_ends_no_call_loses_no_text() -> None:
    mine = Dialect("mine", [MisbehavingGrammar()])
    assert outcome(filtered(["a @w b"], [mine]))[:3] == ("a @w b", "", [])
    assert outcome(filtered(["a @t b"], [mine]))[:3] == ("a  b", "", [("g", {})])


def test_reasoning_left_open_by_a_grammar_ends_with_text() -> None:
    events = filtered(["a @o b"], [Dialect("mine", [MisbehavingGrammar()])])
    check_brackets(events)
    assert [(type(item), item.text) for item in accumulate(events).items] == [
        (Message, "a "),
        (Reasoning, "hm"),
        (Message, " b"),
    ]  # type: ignore[union-attr]


def test_dialect_copies_its_list_of_grammars() -> None:
    forms = [JsonCalls((Opener("@call "),))]
    mine = Dialect("mine", forms)
    forms.clear()
    assert outcome(filtered(['@call {"name": "g"}'], [mine]))[2] == [("g", {})]


# --- the assembler of the filter ---


def test_repeating_call_id_function_does_not_loop_forever() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS, call_id=lambda _: "same")
    events = dialect_filter.feed([*message(0, HERMES * 2), ENDED])
    assert [call.call_id for call in accumulate(events).calls] == ["same", "same"]


def test_items_that_the_wire_left_open_are_closed_before_the_end() -> None:
    events = DialectFilter(["hermes"], TOOLS).feed([OutputItemAdded(0, Reasoning()), ENDED])
    assert [type(event) for event in numbered(events)] == [
        OutputItemAdded,
        OutputItemDone,
        Completed,
    ]
