"""Dialects over the events of a wire: beside its own calls and thoughts, at the end of an answer, in messages of several parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    AnnotationAdded,
    Completed,
    CustomToolCall,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Refusal,
    RefusalDelta,
    Text,
    ToolSpec,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.dialects import DialectFilter
from streamlib_parsers.events import FinishedChoice, ResponseEvent
from tests.support.dialect_streams import (
    FORMS,
    TOOLS,
    Form,
    calls_of,
    chat,
    chat_body,
    check_brackets,
    xai,
)

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]


# --- beside the wire's own calls ---


def native(name: str, arguments: str) -> dict[str, Any]:
    return {
        "tool_calls": [
            {"index": 0, "id": "native", "function": {"name": name, "arguments": arguments}}
        ]
    }


@pytest.mark.parametrize("native_first", [False, True])
def test_a_call_that_the_wire_gives_too_is_given_once(native_first: bool) -> None:
    deltas = [{"content": f"Hi {HERMES}"}, native("f", '{"k":"v"}')]
    response = accumulate(
        chat(deltas[::-1] if native_first else deltas, tools=TOOLS, dialects=["hermes"])
    )
    assert [call.call_id for call in response.calls] == ["native"]
    assert response.text == "Hi "
    assert [notice.code for notice in response.notices] == ["duplicate_call"]


@pytest.mark.parametrize("native_first", [False, True])
def test_other_calls_than_the_wires_own_are_text(native_first: bool) -> None:
    deltas = [{"content": f"Hi {HERMES}"}, native("g", "{}")]
    events = chat(deltas[::-1] if native_first else deltas, tools=TOOLS, dialects=["hermes"])
    check_brackets(events)
    assert {event.content_index for event in events if isinstance(event, OutputTextDelta)} == {0}
    response = accumulate(events)
    assert [call.call_id for call in response.calls] == ["native"]
    assert response.text == f"Hi {HERMES}"
    assert [notice.code for notice in response.notices] == ["leaked_tool_call"]


def test_answers_are_told_apart() -> None:
    bodies = [
        {"index": choice, "delta": {"content": text}}
        for choice, text in enumerate([HERMES, "Hi", f"x{HERMES}"])
    ]
    bodies += [{"index": choice, "delta": {}, "finish_reason": "stop"} for choice in range(3)]
    p = parser("chat", tools=TOOLS, dialects=["hermes"])
    events = [
        event
        for choice in bodies
        for event in p.feed_event(json.dumps({"id": "r", "choices": [choice]}))
    ] + p.close()
    response = accumulate(events)
    assert [choice.stop_reason for choice in response.choices] == [
        "tool_calls",
        "stop",
        "tool_calls",
    ]
    assert [[type(item).__name__ for item in choice.items] for choice in response.choices] == [
        ["FunctionCall"],
        ["Message"],
        ["Message", "FunctionCall"],
    ]


# --- why the answer ended ---


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "tool_calls"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
    ],
)
def test_a_recovered_call_turns_an_ordinary_stop_into_tool_calls(finish: str, reason: str) -> None:
    events = chat([{"content": HERMES}], finish, tools=TOOLS, dialects=["hermes"])
    last = events[-1]
    assert isinstance(last, Completed)
    assert (last.stop_reason, last.native_stop_reason) == (reason, finish)
    assert last.choices == (FinishedChoice(0, last.stop_reason, finish),)
    assert not [event for event in events if isinstance(event, Notice)]


def test_a_stream_that_was_cut_has_no_call_to_answer() -> None:
    p = parser("chat", tools=TOOLS, dialects=["hermes"])
    response = accumulate(
        [
            *p.feed(
                chat_body([{"content": f"Hi {HERMES}"}], None).removesuffix(b"data: [DONE]\n\n")
            ),
            *p.close(),
        ]
    )
    assert (response.status, response.text, response.calls) == ("failed", "Hi ", [])


def test_a_stage_without_a_terminal_event_closes_everything_all_the_same() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    events = (
        stage.feed(
            [
                OutputItemAdded(0, Message("assistant")),
                OutputTextDelta(0, 0, f"a{HERMES}b<tool_call>{{"),
            ]
        )
        + stage.close()
    )
    assert {event.index for event in events if isinstance(event, OutputItemDone)} == {
        event.index for event in events if isinstance(event, OutputItemAdded)
    }
    assert accumulate(events).calls == []


# --- calls in thoughts ---


@pytest.mark.parametrize(
    ("deltas", "finish", "dialect", "calls"),
    [
        ([{"reasoning_content": f"I call: {HERMES}"}], "stop", "hermes", F),
        ([{"reasoning_content": f"I call: {HERMES}"}, {"content": " \n"}], "stop", "hermes", F),
        ([{"reasoning_content": f"I call: {HERMES}"}, {"content": "Hi"}], "stop", "hermes", []),
        (
            [{"reasoning_content": f"I call: {HERMES}"}, native("g", "{}")],
            "tool_calls",
            "hermes",
            [("g", {})],
        ),
        ([{"reasoning_content": f"I call: {HERMES}"}], "length", "hermes", []),
        (
            [{"reasoning_content": f"I call: {HERMES.removesuffix('</tool_call>')}"}],
            "stop",
            "hermes",
            F,
        ),
        ([{"reasoning_content": f"I call: `{HERMES}`"}], "stop", "hermes", []),
        ([{"reasoning_content": f"I call: {HERMES[:-20]}"}], "stop", "hermes", []),
        ([{"reasoning_content": xai("f", k="v")}], "stop", "xai", []),
        ([{"reasoning_content": xai("f", k="v")}], "tool_calls", "xai", F),
    ],
)
def test_a_call_in_a_thought_counts_only_where_nothing_follows_it(
    deltas: list[Any], finish: str, dialect: str, calls: list[Any]
) -> None:
    response = accumulate(chat(deltas, finish, tools=TOOLS, dialects=[dialect]))
    assert calls_of(response) == calls
    assert response.reasoning == deltas[0]["reasoning_content"]
    assert response.stop_reason == ("tool_calls" if calls else finish)


# --- the other wires ---


def bodies() -> dict[str, bytes]:
    """One answer with a call in its text on each wire, as a whole body."""
    said = f"Hi {HERMES}"
    return {
        "messages": json.dumps(
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": said}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode(),
        "responses": json.dumps(
            {
                "id": "r",
                "object": "response",
                "status": "completed",
                "model": "m",
                "output": [
                    {
                        "type": "message",
                        "id": "msg_1",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": said, "annotations": []}],
                    }
                ],
            }
        ).encode(),
        "gemini": json.dumps(
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": said}]},
                        "finishReason": "STOP",
                    }
                ]
            }
        ).encode(),
        "converse": json.dumps(
            {
                "output": {"message": {"role": "assistant", "content": [{"text": said}]}},
                "stopReason": "end_turn",
                "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            }
        ).encode(),
        "ollama": json.dumps(
            {
                "model": "m",
                "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": said},
                "done": True,
                "done_reason": "stop",
            }
        ).encode(),
    }


@pytest.mark.parametrize("wire", sorted(bodies()))
def test_every_wire_has_the_same_dialects(wire: Any) -> None:
    response = accumulate(parse_body(wire, bodies()[wire], tools=TOOLS, dialects=["hermes"]))
    assert (response.text, calls_of(response), response.stop_reason) == ("Hi ", F, "tool_calls")
    assert accumulate(parse_body(wire, bodies()[wire])).text == f"Hi {HERMES}"


def test_the_message_of_a_wire_keeps_its_id_and_a_message_without_calls_is_untouched() -> None:
    body = bodies()["responses"]
    messages = [
        item
        for item in accumulate(
            parse_body("responses", body, tools=TOOLS, dialects=["hermes"])
        ).items
        if isinstance(item, Message)
    ]
    assert [message.id for message in messages] == ["msg_1"]
    plain = body.replace(json.dumps(HERMES)[1:-1].encode(), b"you")
    assert parse_body("responses", plain, tools=TOOLS, dialects=["hermes", "think"]) == parse_body(
        "responses", plain
    )


def test_log_probabilities_stay_with_their_text() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    events = [OutputItemAdded(0, Message("assistant"))]
    events += [OutputTextDelta(0, 0, token, [{"token": token}]) for token in ("a", " <", "b")]  # type: ignore[list-item]
    events += [OutputItemDone(0, Message("assistant", [Text("a <b")]))]  # type: ignore[list-item]
    given_out = join_deltas(stage.feed(events))
    assert [event.logprobs for event in given_out if isinstance(event, OutputTextDelta)] == [
        [{"token": "a"}, {"token": " <"}, {"token": "b"}]
    ]


# --- leaks ---


@pytest.mark.parametrize(
    "form",
    [
        form
        for form in FORMS
        if form.calls
        and form.name not in ("llama3_json-bare", "pythonic", "harmony", "phi4_mini_json")
    ],
    ids=lambda form: form.name,
)
def test_a_call_in_text_with_no_dialect_is_noticed(form: Form) -> None:
    events = chat([{"content": form.text}], tools=form.tools)
    response = accumulate(events)
    assert (response.text, response.calls) == (form.text, [])
    assert [notice.code for notice in response.notices] == ["leaked_tool_call"]
    assert response.notices[0].index == 0
    assert [event.seq for event in events] == list(range(len(events)))


@pytest.mark.parametrize("dialects", [[], ["harmony"]])
def test_a_codex_call_that_cannot_be_read_leaves_its_message_incomplete(
    dialects: list[str],
) -> None:
    text = 'Listing. to=functions.shell {"cmd": ["ls"'
    response = accumulate(chat([{"content": text}], tools=[ToolSpec("shell")], dialects=dialects))
    assert (response.text, response.items[0].status) == (text, "incomplete")
    assert [notice.code for notice in response.notices] == ["leaked_tool_call"]


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("Hi <b>you</b> [1] {2}", TOOLS),
        (f"`{HERMES}`", TOOLS),
        (f"```\n{HERMES}\n```", TOOLS),
        (HERMES, []),
    ],
)
def test_ordinary_text_is_not_noticed(text: str, tools: list[ToolSpec]) -> None:
    assert accumulate(chat([{"content": text}], tools=tools)).notices == ()


def test_no_dialects_and_no_tools_is_no_stage_at_all() -> None:
    plain, staged_parser = parser("chat"), parser("chat", tools=TOOLS)
    assert plain._drain == plain._assembler.take
    assert staged_parser._drain != staged_parser._assembler.take


def test_custom_tools_of_the_wire_count_as_its_own_calls() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    call = CustomToolCall("c", "patch", "x")
    events = stage.feed(
        [
            OutputItemAdded(0, Message("assistant")),
            OutputTextDelta(0, 0, HERMES),
            OutputItemDone(0, Message("assistant", [Text(HERMES)])),
            OutputItemAdded(1, CustomToolCall("c", "patch")),
            FunctionCallArgumentsDelta(1, "x"),
            OutputItemDone(1, call),
            Completed(stop_reason="tool_calls"),
        ]
    )
    assert accumulate(events).calls == [call]


# --- messages of several parts ---


def staged_message(deltas: list[Any], done: Message) -> list[ResponseEvent]:
    stage = DialectFilter(["hermes", "think"], TOOLS)
    return stage.feed(
        [
            OutputItemAdded(0, Message("assistant", id="m")),
            *deltas,
            OutputItemDone(0, done),
            Completed(stop_reason="stop"),
        ]
    )


def test_every_part_of_a_message_is_looked_through_by_itself() -> None:
    deltas = [
        OutputTextDelta(0, 0, "a <tool"),
        OutputTextDelta(0, 1, "_call>"),
        OutputTextDelta(0, 1, f"b {HERMES} c"),
        OutputTextDelta(0, 2, "d"),
    ]
    done = Message("assistant", [Text("a <tool"), Text(f"_call>b {HERMES} c"), Text("d")], id="m")
    events = staged_message(deltas, done)
    check_brackets(events)
    items = accumulate(events).items
    assert [item.content if isinstance(item, Message) else type(item) for item in items] == [
        (Text("a <tool"), Text("_call>b ")),
        FunctionCall,
        (Text(" c"), Text("d")),
    ]
    assert [item.id for item in items] == ["m", None, None]


def test_refusals_and_citations_keep_their_place() -> None:
    cited = {"url": "https://example.org"}
    deltas = [
        OutputTextDelta(0, 0, f"{HERMES}a"),
        AnnotationAdded(0, 0, cited),
        OutputTextDelta(0, 0, " b<tool"),
        RefusalDelta(0, 1, "no"),
    ]
    done = Message("assistant", [Text(f"{HERMES}a b<tool", (cited,)), Refusal("no")], id="m")
    items = accumulate(staged_message(deltas, done)).items
    assert isinstance(items[0], FunctionCall)
    assert items[1:] == (Message("assistant", [Text("a b<tool", (cited,)), Refusal("no")], id="m"),)


def test_a_message_with_no_text_at_all_comes_through() -> None:
    for done in (Message("assistant", id="m"), Message("assistant", [Refusal("no")], id="m")):
        deltas = [RefusalDelta(0, 0, "no")] if done.content else []
        assert accumulate(staged_message(deltas, done)).items == (done,)


def test_a_signed_message_that_was_all_call_keeps_its_signature() -> None:
    events = staged_message(
        [OutputTextDelta(0, 0, HERMES)], Message("assistant", [Text(HERMES)], id="m", signature="s")
    )
    assert [(type(item).__name__, item.signature) for item in accumulate(events).items] == [
        ("FunctionCall", None),
        ("Message", "s"),
    ]


def test_a_refusal_ends_a_thought() -> None:
    deltas = [OutputTextDelta(0, 0, "<think>hm"), RefusalDelta(0, 1, "no")]
    response = accumulate(
        staged_message(deltas, Message("assistant", [Text("<think>hm"), Refusal("no")]))
    )
    assert (response.reasoning, response.text, response.refusal) == ("hm", "", "no")


def test_a_notice_about_a_message_follows_it() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    text = OutputTextDelta(0, 0, f"a{HERMES}b")
    events = stage.feed(
        [
            OutputItemAdded(0, Message("assistant")),
            text,
            Notice("odd", "", 0),
            Notice("odd", "", 7),
            Notice("odd"),
        ]
    )
    assert [event.index for event in events if isinstance(event, Notice)] == [2, None, None]
