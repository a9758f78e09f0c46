"""The dialect filter beside the wire's own calls and reasoning, at the end, and between parts."""

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
from tests.support.cases import each_case
from tests.support.dialect_calls import (
    TOOLS,
    Form,
    xai,
)
from tests.support.dialect_forms import FORMS
from tests.support.dialect_streams import calls_of, chat, chat_body, check_brackets

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
def test_call_that_the_wire_sends_too_is_emitted_once(native_first: bool) -> None:
    deltas = [{"content": f"Hi {HERMES}"}, native("f", '{"k":"v"}')]
    response = accumulate(
        chat(deltas[::-1] if native_first else deltas, tools=TOOLS, dialects=["hermes"])
    )
    assert [call.call_id for call in response.calls] == ["native"]
    assert response.text == "Hi "
    assert [notice.code for notice in response.notices] == ["duplicate_call"]


@pytest.mark.parametrize("native_first", [False, True])
def test_other_call_is_text_beside_calls_of_the_wire(native_first: bool) -> None:
    deltas = [{"content": f"Hi {HERMES}"}, native("g", "{}")]
    events = chat(deltas[::-1] if native_first else deltas, tools=TOOLS, dialects=["hermes"])
    check_brackets(events)
    assert {event.content_index for event in events if isinstance(event, OutputTextDelta)} == {0}
    response = accumulate(events)
    assert [call.call_id for call in response.calls] == ["native"]
    assert response.text == f"Hi {HERMES}"
    assert [notice.code for notice in response.notices] == ["leaked_tool_call"]


def test_choices_are_filtered_independently() -> None:
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


# --- stop reasons ---


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "tool_calls"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
    ],
)
def test_recovered_call_turns_stop_into_tool_calls(finish: str, reason: str) -> None:
    events = chat([{"content": HERMES}], finish, tools=TOOLS, dialects=["hermes"])
    last = events[-1]
    assert isinstance(last, Completed)
    assert (last.stop_reason, last.native_stop_reason) == (reason, finish)
    assert last.choices == (FinishedChoice(0, last.stop_reason, finish),)
    assert not [event for event in events if isinstance(event, Notice)]


def test_truncated_stream_has_no_callable_call() -> None:
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


def test_close_without_terminal_event_closes_all_items() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    events = (
        dialect_filter.feed(
            [
                OutputItemAdded(0, Message("assistant")),
                OutputTextDelta(0, 0, f"a{HERMES}b<tool_call>{{"),
            ]
        )
        + dialect_filter.close()
    )
    assert {event.index for event in events if isinstance(event, OutputItemDone)} == {
        event.index for event in events if isinstance(event, OutputItemAdded)
    }
    assert accumulate(events).calls == []


# --- calls in reasoning ---


@each_case(
    "deltas, finish, dialect, calls",
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
def test_call_in_reasoning_counts_only_when_nothing_follows(
    deltas: list[Any], finish: str, dialect: str, calls: list[Any]
) -> None:
    response = accumulate(chat(deltas, finish, tools=TOOLS, dialects=[dialect]))
    assert calls_of(response) == calls
    assert response.reasoning == deltas[0]["reasoning_content"]
    assert response.stop_reason == ("tool_calls" if calls else finish)


# --- the other wires ---


def bodies() -> dict[str, bytes]:
    """One answer with a call in its text on each wire, as a whole body."""
    output = f"Hi {HERMES}"
    return {
        "messages": json.dumps(
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": output}],
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
                        "content": [{"type": "output_text", "text": output, "annotations": []}],
                    }
                ],
            }
        ).encode(),
        "gemini": json.dumps(
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": output}]},
                        "finishReason": "STOP",
                    }
                ]
            }
        ).encode(),
        "converse": json.dumps(
            {
                "output": {"message": {"role": "assistant", "content": [{"text": output}]}},
                "stopReason": "end_turn",
                "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            }
        ).encode(),
        "ollama": json.dumps(
            {
                "model": "m",
                "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": output},
                "done": True,
                "done_reason": "stop",
            }
        ).encode(),
    }


@pytest.mark.parametrize("wire", sorted(bodies()))
def test_dialects_work_on_every_wire(wire: Any) -> None:
    response = accumulate(parse_body(wire, bodies()[wire], tools=TOOLS, dialects=["hermes"]))
    assert (response.text, calls_of(response), response.stop_reason) == ("Hi ", F, "tool_calls")
    assert accumulate(parse_body(wire, bodies()[wire])).text == f"Hi {HERMES}"


def test_message_keeps_its_id_and_is_untouched_without_calls() -> None:
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


def test_logprobs_stay_with_their_text() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    events: list[ResponseEvent] = [OutputItemAdded(0, Message("assistant"))]
    for token in ("a", " <", "b"):
        events.append(OutputTextDelta(0, 0, token, [{"token": token}]))
    events.append(OutputItemDone(0, Message("assistant", [Text("a <b")])))
    emitted = join_deltas(dialect_filter.feed(events))
    assert [event.logprobs for event in emitted if isinstance(event, OutputTextDelta)] == [
        [{"token": "a"}, {"token": " <"}, {"token": "b"}]
    ]


# --- leaks ---


WITHOUT_MARKER = ("llama3_json-bare", "pythonic", "harmony", "phi4_mini_json", "cohere-action")
"""Forms that begin with what other text may begin with, too."""


@each_case(
    "form",
    [form for form in FORMS if form.calls and form.name not in WITHOUT_MARKER],
    ids=lambda form: form.name,
)
def test_call_in_text_without_dialect_gets_a_notice(form: Form) -> None:
    events = chat([{"content": form.text}], tools=form.tools)
    response = accumulate(events)
    assert (response.text, response.calls) == (form.text, [])
    assert [notice.code for notice in response.notices] == ["leaked_tool_call"]
    assert response.notices[0].index == 0
    assert [event.seq for event in events] == list(range(len(events)))


@pytest.mark.parametrize("dialects", [[], ["harmony"]])
def test_unreadable_codex_call_makes_its_message_incomplete(
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
def test_ordinary_text_gets_no_notice(text: str, tools: list[ToolSpec]) -> None:
    assert accumulate(chat([{"content": text}], tools=tools)).notices == ()


def test_no_filter_without_dialects_and_tools() -> None:
    plain, staged_parser = parser("chat"), parser("chat", tools=TOOLS)
    assert plain._drain == plain._assembler.take
    assert staged_parser._drain != staged_parser._assembler.take


def test_custom_tool_call_of_the_wire_counts_as_its_own() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    call = CustomToolCall("c", "patch", "x")
    events = dialect_filter.feed(
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


def filtered_message(deltas: list[Any], done: Message) -> list[ResponseEvent]:
    dialect_filter = DialectFilter(["hermes", "think"], TOOLS)
    return dialect_filter.feed(
        [
            OutputItemAdded(0, Message("assistant", id="m")),
            *deltas,
            OutputItemDone(0, done),
            Completed(stop_reason="stop"),
        ]
    )


def test_each_part_of_a_message_is_scanned_on_its_own() -> None:
    deltas = [
        OutputTextDelta(0, 0, "a <tool"),
        OutputTextDelta(0, 1, "_call>"),
        OutputTextDelta(0, 1, f"b {HERMES} c"),
        OutputTextDelta(0, 2, "d"),
    ]
    done = Message("assistant", [Text("a <tool"), Text(f"_call>b {HERMES} c"), Text("d")], id="m")
    events = filtered_message(deltas, done)
    check_brackets(events)
    items = accumulate(events).items
    assert [item.content if isinstance(item, Message) else type(item) for item in items] == [
        (Text("a <tool"), Text("_call>b ")),
        FunctionCall,
        (Text(" c"), Text("d")),
    ]
    assert [item.id for item in items] == ["m", None, None]


def test_refusals_and_citations_keep_their_position() -> None:
    cited = {"url": "https://example.org"}
    deltas = [
        OutputTextDelta(0, 0, f"{HERMES}a"),
        AnnotationAdded(0, 0, cited),
        OutputTextDelta(0, 0, " b<tool"),
        RefusalDelta(0, 1, "no"),
    ]
    done = Message("assistant", [Text(f"{HERMES}a b<tool", (cited,)), Refusal("no")], id="m")
    items = accumulate(filtered_message(deltas, done)).items
    assert isinstance(items[0], FunctionCall)
    assert items[1:] == (Message("assistant", [Text("a b<tool", (cited,)), Refusal("no")], id="m"),)


def test_message_without_text_is_forwarded() -> None:
    for done in (Message("assistant", id="m"), Message("assistant", [Refusal("no")], id="m")):
        deltas = [RefusalDelta(0, 0, "no")] if done.content else []
        assert accumulate(filtered_message(deltas, done)).items == (done,)


def test_signed_message_of_only_a_call_keeps_its_signature() -> None:
    events = filtered_message(
        [OutputTextDelta(0, 0, HERMES)], Message("assistant", [Text(HERMES)], id="m", signature="s")
    )
    assert [(type(item).__name__, item.signature) for item in accumulate(events).items] == [
        ("FunctionCall", None),
        ("Message", "s"),
    ]


def test_refusal_ends_reasoning() -> None:
    deltas = [OutputTextDelta(0, 0, "<think>hm"), RefusalDelta(0, 1, "no")]
    response = accumulate(
        filtered_message(deltas, Message("assistant", [Text("<think>hm"), Refusal("no")]))
    )
    assert (response.reasoning, response.text, response.refusal) == ("hm", "", "no")


def test_notice_about_a_message_gets_its_new_index() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    text = OutputTextDelta(0, 0, f"a{HERMES}b")
    events = dialect_filter.feed(
        [
            OutputItemAdded(0, Message("assistant")),
            text,
            Notice("odd", "", 0),
            Notice("odd", "", 7),
            Notice("odd"),
        ]
    )
    assert [event.index for event in events if isinstance(event, Notice)] == [2, None, None]
