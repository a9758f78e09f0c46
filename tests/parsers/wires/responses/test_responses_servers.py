"""OpenAI Responses as servers really send it: deviations by server, and recordings of many."""

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
    ReasoningSummaryDelta,
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
    check_invariants,
    completed,
    created,
    done,
    events_of,
    failure,
    finals,
    frame,
    hosted,
    message,
    of,
    reasoning,
    response_of,
    same,
    text,
)
from tests.support.shared import BODIES, MISSING, PAYLOADS, SHARED, STREAMS, Recording, recordings

# --- servers that deviate from the wire ---


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


def test_llama_cpp_sends_no_index_and_late_done_events() -> None:
    def bare(kind: str, **values: Any) -> bytes:
        return frame(f"response.{kind}", **values)

    reasoning_item, function_call = (
        reasoning(item_id="rs_1", content=[], encrypted_content=""),
        call(item_id="fc_1"),
    )
    final_reasoning = reasoning(
        item_id="rs_1", content=[{"type": "reasoning_text", "text": "hm"}], encrypted_content=""
    )
    stream = [
        bare("created", response={"id": "r", "object": "response", "status": "in_progress"}),
        bare("output_item.added", item=reasoning_item),
    ]
    stream += [
        bare("reasoning_text.delta", item_id="rs_1", delta="hm"),
        bare("output_item.added", item=function_call),
    ]
    stream += [
        bare("function_call_arguments.delta", item_id="fc_1", delta="{}"),
        bare("output_item.done", item=final_reasoning),
    ]
    stream += [bare("output_item.done", item={**function_call, "arguments": "{}"})]
    usage_ = {"input_tokens": 4, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}}
    last = {
        "id": "r",
        "status": "completed",
        "model": "smol",
        "output": [final_reasoning, {**function_call, "arguments": "{}"}],
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


def test_event_without_index_and_id_uses_the_newest_open_item() -> None:
    stream = [
        frame("response.output_item.added", item=message(item_id="")),
        frame("response.output_text.delta", delta="Hi"),
    ]
    stream += [frame("response.output_item.done", item=message("Hi", item_id=""))]
    events = events_of(*stream, frame("response.completed", response={}))
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hi"]
    assert len(finals(events)) == 1


def test_vllm_counts_content_index_up_and_shifts_the_index() -> None:
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
        about("reasoning_text.delta", 7, "msg_1", content_index=n, delta=delta)
        for n, delta in enumerate(("one ", "two ", "three"))
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


def test_items_only_in_the_last_event_are_emitted_there() -> None:
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


def test_open_item_is_finished_by_the_last_event() -> None:
    events = events_of(created(), added(message()), text("Hel"), completed(message("Hello")))
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hel", "lo"]
    assert finals(events)[0].status == "completed"


def test_item_missing_in_the_last_event_completes_with_its_text() -> None:
    stream = [added(call()), arguments("{}"), about("function_call_arguments.done", arguments="{}")]
    assert response_of(created(), *stream, completed()).stop_reason == "tool_calls"
    assert response_of(created(), *stream[:2], completed()).calls == []
    assert response_of(created(), *stream, completed(kind="incomplete")).calls == []


def test_items_with_index_gaps_are_matched_by_type() -> None:
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
def test_done_item_is_completed_whatever_its_status(status: str | None) -> None:
    (final,) = finals(events_of(done(call("{}", status=status)), completed()))
    assert final.status == "completed"
    assert (final.native or {}).get("status") == (
        status if status not in ("in_progress", None) else None
    )


def test_openrouter_adds_null_and_sends_no_output() -> None:
    stream = [
        created(output=None),
        added(None),
        text("Hi"),
        done(message("Hi")),
        frame("response.completed", response={"output": None}),
    ]
    response = response_of(*stream)
    assert (response.text, len(response.items), response.notices) == ("Hi", 1, ())


def test_arguments_before_their_item_are_passed_through() -> None:
    events = events_of(created(), added(None), arguments("{}"), done(call("{}")), completed())
    assert len(of(Passthrough, events)) == 1
    assert len(accumulate(events).calls) == 1


def test_created_event_is_optional() -> None:
    events = events_of(added(message()), text("Hi"), done(message("Hi")), completed())
    assert events[0] == Created()
    assert accumulate(events).response_id == "resp_1"


def test_lm_studio_sends_arguments_only_in_done() -> None:
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


def test_tool_search_takes_its_call_id_from_done() -> None:
    search = hosted("tool_search_call", execution="client", call_id="early", arguments={})
    (final,) = finals(
        events_of(
            added(search),
            done({**search, "call_id": "late", "arguments": {"goal": "g"}}),
            completed(),
        )
    )
    assert final.call_id == "late"


def test_custom_call_needs_no_input_done() -> None:
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


def test_text_in_the_added_item_is_its_first_delta() -> None:
    events = events_of(added(message("Hel")), text("lo"), done(message("Hello")), completed())
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hel", "lo"]
    assert of(OutputItemAdded, events)[0].item.content == ()


def test_repeated_item_is_emitted_once_with_a_notice() -> None:
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


def test_item_with_another_id_at_the_same_index_is_new() -> None:
    stream = [
        added(message(item_id="a")),
        done(message("a", item_id="a")),
        added(message(item_id="b")),
        done(message("b", item_id="b")),
    ]
    assert [item.text for item in finals(events_of(*stream, completed()))] == ["a", "b"]


def test_delta_of_another_kind_makes_its_item_incomplete() -> None:
    events = events_of(added(call()), text("Hi"), done(call("{}")), completed())
    assert [event.code for event in of(Notice, events)] == ["unknown_delta"]
    assert len(of(Passthrough, events)) == 1
    assert accumulate(events).calls == []


def test_delta_for_a_done_item_is_passed_through() -> None:
    events = events_of(
        added(message()),
        done(message("Hi")),
        text("late"),
        about("output_text.done", content_index=0, text="Hi"),
        completed(),
    )
    assert [event.event for event in of(Passthrough, events)] == ["response.output_text.delta"]


@pytest.mark.parametrize("index", [-1, 2_000_000, "0", 1.5, [], True])
def test_invalid_index_is_malformed(index: Any) -> None:
    for values in (
        {"type": "response.output_text.delta", "delta": "a"},
        {"type": "response.output_text.done", "text": "a"},
    ):
        body = b"data: %s\n\n" % json.dumps({**values, "output_index": index}).encode()
        assert failure(events_of(added(message()), body)).kind == "malformed"


def test_integral_float_index_and_null_are_accepted() -> None:
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


def test_type_may_be_in_the_event_line_or_in_the_data() -> None:
    named = b'event: response.output_text.delta\ndata: {"output_index":0,"delta":"a"}\n\n'
    data_only = b'data: {"type":"response.output_text.delta","output_index":0,"delta":"b"}\n\n'
    assert accumulate(events_of(created(), added(message()), named, data_only)).text == "ab"


def test_web_socket_messages_bypass_the_framing() -> None:
    p = parser("responses")
    sent = [
        json.loads(chunk.partition(b"data: ")[2])
        for chunk in (created(), added(message()), text("Hi"), done(message("Hi")), completed())
    ]
    events = [
        event
        for chunk in sent
        for event in p.feed_event(json.dumps({**chunk, "stream_id": "lane1"}))
    ]
    assert isinstance(events[-1], Completed)
    assert accumulate(events).text == "Hi"


def test_null_item_in_the_last_event_is_ignored() -> None:
    last = frame("response.completed", response={"output": [None, message("Hi")]})
    response = response_of(created(), last)
    assert (response.text, len(response.items), response.status) == ("Hi", 1, "completed")


@pytest.mark.parametrize("part", [None, "x", {}, {"type": "hologram"}])
def test_part_event_without_a_known_part_is_passed_through(part: Any) -> None:
    sent = about("content_part.added", content_index=0, part=part)
    events = events_of(created(), added(message()), sent, completed())
    assert [event.event for event in of(Passthrough, events)] == ["response.content_part.added"]


@pytest.mark.parametrize("logprobs", ["x", {"token": "Hi"}, [1]])
def test_malformed_logprobs_are_dropped_but_not_their_text(logprobs: Any) -> None:
    events = events_of(added(message()), text("Hi", logprobs=logprobs), completed())
    assert of(OutputTextDelta, events) == [OutputTextDelta(0, 0, "Hi")]


# --- recordings ---

NOT_THIS_WIRE = re.compile(r"falsy-argument-conversation-[12]\.sse$")
"""Chat streams among the recordings of this wire."""
EXPLAINED = {
    # The comparison reads a custom tool's free text as JSON.
    "vercel-ai__openai-openai-custom-tool.1.jsonl",
    # Its first and last line are not complete JSON.
    "vercel-ai__openai-parallel-tool-call-wrapper.1.jsonl",
}


@cache
def facts_module() -> ModuleType:
    """Loads the comparison with expected facts, which is stored beside the recordings."""
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
    calls: list[Json] = []
    for item in response.calls:
        call_arguments = item.arguments if isinstance(item, FunctionCall) else item.input
        calls.append({"id": item.call_id, "name": item.name, "arguments": call_arguments})
    facts: Json = {
        "terminal": "completed" if isinstance(last, Completed) else "failed",
        "tool_calls": calls,
        "usage": msgspec.to_builtins(response.usage) if response.usage else {},
    }
    for name in ("response_id", "model", "text", "reasoning", "refusal", "stop_reason"):
        facts[name] = getattr(response, name)
    return facts


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


def test_facts_agree_in_every_recording_but_the_explained() -> None:
    recorded = recordings("openai-responses", (*STREAMS, *BODIES, *PAYLOADS))
    if not recorded:
        pytest.skip(f"{MISSING}: recordings of openai-responses")
    wrong: dict[str, Any] = {}
    for recording in recorded:
        facts = recording.expected.get("facts")
        if facts and not NOT_THIS_WIRE.search(recording.path.name):
            events = read(recording)
            check_invariants(events)
            differences = facts_module().diffs(
                "responses",
                facts,
                facts_of(accumulate(events), events[-1]),
                recording.meta.get("status"),
            )
            if differences:
                wrong[recording.path.name] = differences
    assert wrong.keys() <= EXPLAINED, wrong


WORDS = "First, look.\n\nThen act."


@pytest.mark.parametrize("repeated", [("First, look.", "Then act."), (WORDS,)])
@pytest.mark.parametrize("keeps_content", [True, False])
def test_summary_that_repeats_the_reasoning_is_dropped(
    repeated: tuple[str, ...], keeps_content: bool
) -> None:
    """A24: the words were streamed as `reasoning_text` and come again as `summary`."""
    final = reasoning(*repeated)
    if keeps_content:
        final["content"] = [{"type": "reasoning_text", "text": WORDS}]
    events = events_of(
        created(),
        added(reasoning()),
        about("reasoning_text.delta", content_index=0, delta=WORDS),
        done(final),
        completed(),
    )
    response = accumulate(events)
    assert (response.reasoning, response.notices) == (WORDS, ())
    assert not [event for event in events if isinstance(event, ReasoningSummaryDelta)]


def test_content_that_repeats_the_summary_is_dropped() -> None:
    """A24: the same the other way round."""
    final = reasoning(WORDS, content=[{"type": "reasoning_text", "text": WORDS}])
    events = events_of(
        created(),
        added(reasoning()),
        about("reasoning_summary_text.delta", summary_index=0, delta=WORDS),
        done(final),
        completed(),
    )
    response = accumulate(events)
    assert (response.reasoning, response.notices) == (WORDS, ())


def test_summary_with_other_words_stays_beside_the_reasoning() -> None:
    """A24: only a repetition is dropped."""
    events = events_of(
        created(),
        added(reasoning()),
        about("reasoning_text.delta", content_index=0, delta=WORDS),
        done(reasoning("In short: act.")),
        completed(),
    )
    (item,) = accumulate(events).items
    assert isinstance(item, Reasoning)
    assert (item.content, item.summary) == (WORDS, ("In short: act.",))


def test_every_recorded_item_is_sent_back_unchanged() -> None:
    recorded = recordings("openai-responses", BODIES)
    if not recorded:
        pytest.skip(f"{MISSING}: recordings of openai-responses")
    for recording in recorded:
        for sent in json.loads(recording.body).get("output") or []:
            item = item_of(sent, json.dumps(sent).encode())
            back = json.loads(msgspec.json.encode(wire_item(item)))
            assert comparable(back) == comparable(sent), recording.path.name


def comparable(item: Json) -> Json:
    """Removes what other events have or what is empty: status, logprobs, nulls, annotations."""
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


# --- Open Responses ---


def test_open_responses_reasoning_is_streamed() -> None:
    """Its events have names of their own (specification of 2026-04-24); the text comes once."""
    final = reasoning(content=[{"type": "reasoning_text", "text": "hmm"}])
    events = events_of(
        created(),
        added(reasoning()),
        about("reasoning.delta", content_index=0, delta="hm"),
        about("reasoning.delta", content_index=0, delta="m"),
        about("reasoning.done", content_index=0, text="hmm"),
        done(final),
        completed(final),
    )
    assert [event.delta for event in of(ReasoningContentDelta, events)] == ["hm", "m"]
    assert not of(Passthrough, events)
    assert accumulate(events).reasoning == "hmm"


def test_perplexity_reasoning_events_are_passed_through() -> None:
    """Their names begin as those of Open Responses do, and they are no text of the model."""
    kinds = ["response.reasoning.started", "response.reasoning.search_queries"]
    events = events_of(created(), *[frame(kind, thought="t") for kind in kinds], completed())
    assert [event.event for event in of(Passthrough, events)] == kinds


def test_slug_items_keep_their_place() -> None:
    """What the standard does not define is `slug:type`: it is kept, and sent back unchanged."""
    search = {"type": "acme:search", "id": "s_1", "status": "completed", "results": [{"a": 1}]}
    events = events_of(
        created(),
        added({**search, "status": "in_progress", "results": []}),
        frame("acme:trace_event", phase="resolve"),
        done(search),
        added(message(), 1),
        text("Hi", 1),
        done(message("Hi"), 1),
        completed(search, message("Hi")),
    )
    assert [event.event for event in of(Passthrough, events)] == ["acme:trace_event"]
    slug, _ = accumulate(events).items
    assert wire_item(slug) == search
