"""OpenAI Responses as servers really speak it: what each departs from, by name, and the recordings of many."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from types import ModuleType
from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    Completed,
    Created,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    Response,
    ResponseEvent,
    Usage,
    accumulate,
    parser,
)
from streamlib_parsers.wires.responses.items import item_of
from streamlib_parsers.wires.responses.wire_items import wire_item
from tests.support.responses_frames import (
    Json,
    about,
    added,
    arguments,
    body_of,
    call,
    completed,
    created,
    done,
    events_of,
    failure,
    finals,
    frame,
    hold,
    hosted,
    message,
    of,
    reasoning,
    response_of,
    same,
    text,
)
from tests.support.shared import BODIES, MISSING, PAYLOADS, SHARED, STREAMS, Recording, recordings

# --- where servers depart from the wire ---


def test_copilot_changes_every_id_in_every_event() -> None:
    ids = iter(f"rotated_{n}" for n in range(100))
    stream = [created(id=next(ids)), added(reasoning(item_id=next(ids)))]
    stream += [
        about("reasoning_summary_text.delta", item_id=next(ids), summary_index=0, delta="hm"),
        done(reasoning("hm", item_id=next(ids))),
    ]
    stream += [
        added(message(item_id=next(ids)), 1),
        text("Hi", 1, item_id=next(ids)),
        done(message("Hi", item_id=next(ids)), 1),
    ]
    last = [reasoning("hm", item_id=next(ids)), message("Hi", item_id=next(ids))]
    events = events_of(
        *stream,
        frame(
            "response.completed",
            response={"id": "last", "status": "completed", "output": last},
            copilot_usage={"n": 1},
        ),
    )
    assert [type(item) for item in finals(events)] == [Reasoning, Message]
    assert not of(Notice, events)
    response = accumulate(events)
    assert (response.text, response.reasoning, response.response_id) == ("Hi", "hm", "last")
    assert response.metadata["copilot_usage"] == {"n": 1}


def test_llama_cpp_sends_no_index_and_finishes_items_late() -> None:
    def bare(kind: str, **values: Any) -> bytes:
        return frame(f"response.{kind}", **values)

    thought, asked = (
        reasoning(item_id="rs_1", content=[], encrypted_content=""),
        call(item_id="fc_1"),
    )
    told = reasoning(
        item_id="rs_1", content=[{"type": "reasoning_text", "text": "hm"}], encrypted_content=""
    )
    stream = [
        bare("created", response={"id": "r", "object": "response", "status": "in_progress"}),
        bare("output_item.added", item=thought),
    ]
    stream += [
        bare("reasoning_text.delta", item_id="rs_1", delta="hm"),
        bare("output_item.added", item=asked),
    ]
    stream += [
        bare("function_call_arguments.delta", item_id="fc_1", delta="{}"),
        bare("output_item.done", item=told),
    ]
    stream += [bare("output_item.done", item={**asked, "arguments": "{}"})]
    usage_ = {"input_tokens": 4, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}}
    last = {
        "id": "r",
        "status": "completed",
        "model": "smol",
        "output": [told, {**asked, "arguments": "{}"}],
        "usage": usage_,
    }
    response = response_of(*stream, bare("completed", response=last, timings={"predicted_n": 2}))
    assert [type(item) for item in response.items] == [Reasoning, FunctionCall]
    assert (response.model, response.stop_reason, response.metadata["timings"]) == (
        "smol",
        "tool_calls",
        {"predicted_n": 2},
    )
    assert response.usage == Usage(4, 2, 3, raw=usage_)
    assert response.notices == ()


def test_an_event_with_neither_index_nor_id_goes_to_the_newest_open_item() -> None:
    stream = [
        frame("response.output_item.added", item=message(item_id="")),
        frame("response.output_text.delta", delta="Hi"),
    ]
    stream += [frame("response.output_item.done", item=message("Hi", item_id=""))]
    events = events_of(*stream, frame("response.completed", response={}))
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hi"]
    assert len(finals(events)) == 1


def test_vllm_counts_content_index_up_and_changes_the_index_before_done() -> None:
    stream = [created(), added(reasoning(item_id="msg_1"), 7)]
    stream += [
        about(
            "reasoning_part.added",
            7,
            "msg_1",
            content_index=0,
            part={"type": "reasoning_text", "text": ""},
        )
    ]
    stream += [
        about("reasoning_text.delta", 7, "msg_1", content_index=n, delta=word)
        for n, word in enumerate(("one ", "two ", "three"))
    ]
    stream += [about("reasoning_text.done", 8, "msg_1", content_index=3, text="one two three")]
    stream += [
        done(
            reasoning(
                item_id="msg_1", content=[{"type": "reasoning_text", "text": "one two three"}]
            ),
            8,
        )
    ]
    stream += [
        added(message(item_id="msg_2"), 8),
        about("output_text.delta", 8, "msg_2", content_index=1, delta="Hi"),
    ]
    events = events_of(*stream, done(message("Hi there", item_id="msg_2"), 8), completed())
    assert [(event.content_index, event.delta) for event in of(ReasoningContentDelta, events)] == [
        (0, "one "),
        (0, "two "),
        (0, "three"),
    ]
    assert [(event.content_index, event.delta) for event in of(OutputTextDelta, events)] == [
        (0, "Hi"),
        (0, " there"),
    ]
    assert not of(Notice, events)
    assert len(finals(events)) == 2


def test_codex_completes_with_an_empty_output() -> None:
    response = response_of(
        created(), added(message()), text("Hi"), done(message("Hi")), completed()
    )
    assert (response.text, response.status, len(response.items)) == ("Hi", "completed", 1)


def test_items_that_only_the_last_event_tells_of_are_given_there() -> None:
    first, last = message("Hi"), call("{}", item_id="fc")
    events = events_of(
        created(),
        added(first),
        text("Hi"),
        done(first),
        completed(message("Hi", item_id="other"), last),
    )
    assert [type(item) for item in finals(events)] == [Message, FunctionCall]
    assert accumulate(events).stop_reason == "tool_calls"


def test_an_open_item_is_settled_by_the_last_event() -> None:
    events = events_of(created(), added(message()), text("Hel"), completed(message("Hello")))
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hel", "lo"]
    assert finals(events)[0].status == "completed"


def test_an_item_the_last_event_leaves_out_is_whole_if_its_text_was() -> None:
    whole = [added(call()), arguments("{}"), about("function_call_arguments.done", arguments="{}")]
    assert response_of(created(), *whole, completed()).stop_reason == "tool_calls"
    assert response_of(created(), *whole[:2], completed()).calls == []
    assert response_of(created(), *whole, completed(kind="incomplete")).calls == []


def test_gaps_between_indexes_match_by_type() -> None:
    stream = [
        done(reasoning("a"), 1),
        done(message("b", item_id="m"), 3),
        done(message("c", item_id="n"), 6),
    ]
    last = [reasoning("a"), message("b"), message("c")]
    assert len(finals(events_of(created(), *stream, completed(*last)))) == 3


def test_items_may_be_done_in_any_order() -> None:
    searches = [
        hosted("x_search_call", item_id=f"x{n}", name="x", arguments="{}") for n in range(4)
    ]
    stream = [added(item, n) for n, item in enumerate(searches)] + [
        done(searches[n], n) for n in (0, 3, 1, 2)
    ]
    events = events_of(created(), *stream, completed(*searches))
    assert [event.index for event in of(OutputItemDone, events)] == [0, 3, 1, 2]
    assert [item.id for item in accumulate(events).items] == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("status", ["in_progress", "searching", "generating", None])
def test_done_means_done_whatever_the_status_says(status: str | None) -> None:
    (final,) = finals(events_of(done(call("{}", status=status)), completed()))
    assert final.status == "completed"
    assert (final.native or {}).get("status") == (
        status if status not in ("in_progress", None) else None
    )


def test_openrouter_adds_null_and_tells_no_output() -> None:
    stream = [
        created(output=None),
        added(None),
        text("Hi"),
        done(message("Hi")),
        frame("response.completed", response={"output": None}),
    ]
    response = response_of(*stream)
    assert (response.text, len(response.items), response.notices) == ("Hi", 1, ())


def test_arguments_for_an_item_that_was_never_added_are_passed_through_until_its_done() -> None:
    events = events_of(created(), added(None), arguments("{}"), done(call("{}")), completed())
    assert len(of(Passthrough, events)) == 1
    assert len(accumulate(events).calls) == 1


def test_no_created_event_is_needed() -> None:
    events = events_of(added(message()), text("Hi"), done(message("Hi")), completed())
    assert events[0] == Created()
    assert accumulate(events).response_id == "resp_1"


def test_lm_studio_tells_arguments_without_deltas_and_reasoning_as_a_content_part() -> None:
    stream = [
        added(reasoning()),
        about("content_part.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
    ]
    stream += [
        about("reasoning_text.delta", content_index=0, delta="hm"),
        done(reasoning(content=[{"type": "reasoning_text", "text": "hm"}])),
    ]
    stream += [
        added(call(item_id="c"), 1),
        about("function_call_arguments.done", 1, "c", arguments="{}"),
        done(call("{}", item_id="c"), 1),
    ]
    events = events_of(*stream, completed())
    assert [event.delta for event in of(FunctionCallArgumentsDelta, events)] == ["{}"]
    assert accumulate(events).reasoning == "hm"


def test_a_tool_search_takes_its_call_id_from_done() -> None:
    search = hosted("tool_search_call", execution="client", call_id="early", arguments={})
    (final,) = finals(
        events_of(
            added(search),
            done({**search, "call_id": "late", "arguments": {"goal": "g"}}),
            completed(),
        )
    )
    assert final.payload["call_id"] == "late"


def test_a_custom_call_needs_no_input_done() -> None:
    sent = {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "sql", "input": "SELECT"}
    stream = [
        added({**sent, "input": ""}),
        about("custom_tool_call_input.delta", item_id="i", delta="SEL"),
        done(sent),
        completed(),
    ]
    events = events_of(*stream)
    assert [event.delta for event in of(FunctionCallArgumentsDelta, events)] == ["SEL", "ECT"]
    assert accumulate(events).stop_reason == "tool_calls"


def test_text_that_the_added_item_holds_is_its_first_delta() -> None:
    events = events_of(added(message("Hel")), text("lo"), done(message("Hello")), completed())
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hel", "lo"]
    assert of(OutputItemAdded, events)[0].item.content == ()


def test_an_item_told_twice_is_given_once_with_a_notice() -> None:
    events = events_of(
        added(message()),
        added(message()),
        text("Hi"),
        done(message("Hi")),
        done(message("Hi")),
        completed(),
    )
    assert (len(finals(events)), [event.code for event in of(Notice, events)]) == (
        1,
        ["repeated_item"] * 2,
    )
    assert [event.event for event in of(Passthrough, events)] == [
        "response.output_item.added",
        "response.output_item.done",
    ]


def test_another_item_at_the_same_place_is_another_item() -> None:
    stream = [
        added(message(item_id="a")),
        done(message("a", item_id="a")),
        added(message(item_id="b")),
        done(message("b", item_id="b")),
    ]
    assert [item.text for item in finals(events_of(*stream, completed()))] == ["a", "b"]


def test_a_delta_of_another_kind_spoils_the_item_it_names() -> None:
    events = events_of(added(call()), text("Hi"), done(call("{}")), completed())
    assert [event.code for event in of(Notice, events)] == ["unknown_delta"]
    assert len(of(Passthrough, events)) == 1
    assert accumulate(events).calls == []


def test_a_delta_for_an_item_that_is_done_is_passed_through() -> None:
    events = events_of(
        added(message()),
        done(message("Hi")),
        text("late"),
        about("output_text.done", content_index=0, text="Hi"),
        completed(),
    )
    assert [event.event for event in of(Passthrough, events)] == ["response.output_text.delta"]


@pytest.mark.parametrize("index", [-1, 2_000_000, "0", 1.5, [], True])
def test_an_index_that_is_none_is_malformed(index: Any) -> None:
    for values in (
        {"type": "response.output_text.delta", "delta": "a"},
        {"type": "response.output_text.done", "text": "a"},
    ):
        body = b"data: %s\n\n" % json.dumps({**values, "output_index": index}).encode()
        assert failure(events_of(added(message()), body)).kind == "malformed"


def test_an_integral_float_and_a_null_are_read_as_what_they_mean() -> None:
    loose = frame(
        "response.output_text.delta",
        item_id="it_0",
        output_index=0.0,
        content_index=None,
        delta="Hi",
        logprobs=None,
    )
    part = about("output_text.done", content_index=0.0, text="Hi!")
    events = events_of(
        added(message()),
        loose,
        part,
        frame("response.output_text.delta", output_index=0, delta=None),
    )
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hi", "!"]


def test_the_type_may_stand_in_the_event_line_alone_or_in_the_data_alone() -> None:
    named = b'event: response.output_text.delta\ndata: {"output_index":0,"delta":"a"}\n\n'
    data_only = b'data: {"type":"response.output_text.delta","output_index":0,"delta":"b"}\n\n'
    assert accumulate(events_of(created(), added(message()), named, data_only)).text == "ab"


def test_web_socket_messages_enter_above_the_framing() -> None:
    p = parser("responses")
    sent = [
        json.loads(one.partition(b"data: ")[2])
        for one in (created(), added(message()), text("Hi"), done(message("Hi")), completed())
    ]
    events = [
        event for one in sent for event in p.feed_event(json.dumps({**one, "stream_id": "lane1"}))
    ]
    assert isinstance(events[-1], Completed)
    assert accumulate(events).text == "Hi"


# --- recordings ---

NOT_THIS_WIRE = re.compile(r"falsy-argument-conversation-[12]\.sse$")
"""Chat streams that lie among the recordings of this wire."""
EXPLAINED = {
    "vercel-ai__openai-openai-custom-tool.1.jsonl": "the comparison reads a custom tool's free text as JSON",
    "vercel-ai__openai-parallel-tool-call-wrapper.1.jsonl": "its first and last line are not whole JSON",
}


@cache
def judge() -> ModuleType:
    """The comparison with expected facts that lies beside the recordings."""
    path = SHARED / "check" / "facts.py"
    if not path.exists():
        pytest.skip(f"{MISSING}: {path.name}")
    spec = importlib.util.spec_from_file_location("shared_facts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def facts_of(response: Response, last: ResponseEvent) -> Json:
    calls = [
        {
            "id": c.call_id,
            "name": c.name,
            "arguments": c.arguments if isinstance(c, FunctionCall) else c.input,
        }
        for c in response.calls
    ]
    return {
        "terminal": "completed" if isinstance(last, Completed) else "failed",
        "tool_calls": calls,
        "usage": msgspec.to_builtins(response.usage) if response.usage else {},
        **{
            name: getattr(response, name)
            for name in ("response_id", "model", "text", "reasoning", "refusal", "stop_reason")
        },
    }


def read(recording: Recording) -> list[ResponseEvent]:
    if recording.path.suffix in BODIES:
        return body_of(recording.body, status=recording.meta.get("status"))
    if recording.path.suffix in PAYLOADS:
        p = parser("responses")
        return [
            *(event for payload in recording.payloads for event in p.feed_event(payload)),
            *p.close(),
        ]
    return events_of(recording.body)


def test_the_facts_of_every_recording_agree_but_for_those_explained() -> None:
    found = recordings("openai-responses", (*STREAMS, *BODIES, *PAYLOADS))
    if not found:
        pytest.skip(f"{MISSING}: recordings of openai-responses")
    wrong: dict[str, Any] = {}
    for recording in found:
        facts = recording.expected.get("facts")
        if facts and not NOT_THIS_WIRE.search(recording.path.name):
            events = read(recording)
            hold(events)
            differences = judge().diffs(
                "responses",
                facts,
                facts_of(accumulate(events), events[-1]),
                recording.meta.get("status"),
            )
            wrong.update({recording.path.name: differences} if differences else {})
    assert wrong.keys() <= EXPLAINED.keys(), wrong


def test_every_recorded_item_goes_back_as_it_came() -> None:
    found = recordings("openai-responses", BODIES)
    if not found:
        pytest.skip(f"{MISSING}: recordings of openai-responses")
    for recording in found:
        for sent in json.loads(recording.body).get("output") or []:
            item = item_of(sent, json.dumps(sent).encode())
            back = json.loads(msgspec.json.encode(wire_item(item)))
            assert comparable(back) == comparable(sent), recording.path.name


def comparable(item: Json) -> Json:
    """Less what is told elsewhere or says nothing: status, logprobs, nulls and empty annotations."""
    parts = item.get("content")
    if isinstance(parts, list):
        item = {
            **item,
            "content": [
                {
                    key: value
                    for key, value in part.items()
                    if key != "logprobs" and value not in (None, [])
                }
                for part in parts
            ],
        }
    return {key: value for key, value in same(item).items() if value not in (None, "")}
