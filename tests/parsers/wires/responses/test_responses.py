"""OpenAI Responses, event by event: what each becomes, and a usual stream.

A case number in a docstring is that of the project's list of cases that broke other libraries.
"""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    AnnotationAdded,
    Compaction,
    Completed,
    Created,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    ItemProgress,
    Limits,
    MediaDelta,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
    Usage,
    accumulate,
    parser,
)
from streamlib_parsers.wires.responses import EVENT_KINDS, usage
from streamlib_parsers.wires.responses.wire_items import wire_item
from tests.support.partitions import byte_by_byte, cuts, every_single_cut
from tests.support.responses_frames import (
    NESTED,
    PLAIN,
    SYNTHETIC_STREAMS,
    UNUSUAL,
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
from tests.support.shared import ROOT

# --- every event ---

IN_MESSAGE, IN_REASONING, IN_CALL = message(), reasoning(), call()
RESPONSE = {"id": "resp_1", "model": "gpt-x", "status": "in_progress"}
PART = {"item_id": "it_0", "output_index": 0, "content_index": 0}
SUMMARY = {"item_id": "it_0", "output_index": 0, "summary_index": 0}
ITEM = {"item_id": "it_0", "output_index": 0}
LAST = {"service_tier": "default", "usage": {"input_tokens": 3, "output_tokens": 2}}

EXAMPLES: dict[str, tuple[Json | None, Json, list[type]]] = {
    "response.created": (None, {"response": RESPONSE}, [Created]),
    "response.queued": (
        None,
        {"response": {**RESPONSE, "background": True}},
        [Created, ResponseMetadata],
    ),
    "response.in_progress": (None, {"response": RESPONSE}, [Created]),
    "response.completed": (
        None,
        {"response": {**RESPONSE, **LAST, "status": "completed"}},
        [Created, ResponseMetadata, TokenCount, Completed],
    ),
    "response.incomplete": (
        IN_MESSAGE,
        {"response": {"incomplete_details": {"reason": "max_output_tokens"}}},
        [ResponseMetadata, OutputItemDone, Completed],
    ),
    "response.failed": (
        IN_MESSAGE,
        {"response": {"error": {"code": "server_error", "message": "no"}}},
        [OutputItemDone, Failed],
    ),
    "response.cancelled": (None, {"response": {"status": "cancelled"}}, [Failed]),
    "error": (None, {"code": "server_error", "message": "no", "param": None}, [Failed]),
    "body": (
        None,
        {**RESPONSE, "status": "completed", "output": []},
        [Created, ResponseMetadata, Completed],
    ),  # `type` is no key of a body
    "response.output_item.added": (
        None,
        {"output_index": 0, "item": message()},
        [Created, OutputItemAdded],
    ),
    "response.output_item.done": (
        None,
        {"output_index": 0, "item": message("Hi")},
        [Created, OutputItemAdded, OutputTextDelta, OutputItemDone],
    ),
    "response.content_part.added": (
        IN_MESSAGE,
        {**PART, "part": {"type": "output_text", "text": "H"}},
        [OutputTextDelta],
    ),
    "response.content_part.done": (
        IN_MESSAGE,
        {**PART, "part": {"type": "refusal", "refusal": "No"}},
        [RefusalDelta],
    ),
    "response.reasoning_part.added": (
        IN_REASONING,
        {**PART, "part": {"type": "reasoning_text", "text": ""}},
        [],
    ),
    "response.reasoning_part.done": (
        IN_REASONING,
        {**PART, "part": {"type": "reasoning_text", "text": "hm"}},
        [ReasoningContentDelta],
    ),
    "response.reasoning_summary_part.added": (
        IN_REASONING,
        {**SUMMARY, "part": {"type": "summary_text", "text": ""}},
        [],
    ),
    "response.reasoning_summary_part.done": (
        IN_REASONING,
        {**SUMMARY, "part": {"type": "summary_text", "text": "a"}},
        [ReasoningSummaryDelta],
    ),
    "response.output_text.delta": (
        IN_MESSAGE,
        {**PART, "delta": "Hi", "logprobs": [], "obfuscation": "x"},
        [OutputTextDelta],
    ),
    "response.output_text.done": (IN_MESSAGE, {**PART, "text": "Hi"}, [OutputTextDelta]),
    "response.output_text.annotation.added": (
        IN_MESSAGE,
        {**PART, "annotation_index": 0, "annotation": {"type": "url_citation"}},
        [AnnotationAdded],
    ),
    "response.refusal.delta": (IN_MESSAGE, {**PART, "delta": "No"}, [RefusalDelta]),
    "response.refusal.done": (IN_MESSAGE, {**PART, "refusal": "No"}, [RefusalDelta]),
    "response.reasoning_summary_text.delta": (
        IN_REASONING,
        {**SUMMARY, "delta": "a"},
        [ReasoningSummaryDelta],
    ),
    "response.reasoning_summary_text.done": (
        IN_REASONING,
        {**SUMMARY, "text": "a"},
        [ReasoningSummaryDelta],
    ),
    "response.reasoning_text.delta": (
        IN_REASONING,
        {**PART, "delta": "hm"},
        [ReasoningContentDelta],
    ),
    "response.reasoning_text.done": (IN_REASONING, {**PART, "text": "hm"}, [ReasoningContentDelta]),
    "response.function_call_arguments.delta": (
        IN_CALL,
        {**ITEM, "delta": "{"},
        [FunctionCallArgumentsDelta],
    ),
    "response.function_call_arguments.done": (
        IN_CALL,
        {**ITEM, "arguments": "{}"},
        [FunctionCallArgumentsDelta],
    ),
    "response.custom_tool_call_input.delta": (
        hosted("custom_tool_call", name="sql"),
        {**ITEM, "delta": "S"},
        [FunctionCallArgumentsDelta],
    ),
    "response.custom_tool_call_input.done": (
        hosted("custom_tool_call", name="sql"),
        {**ITEM, "input": "S"},
        [FunctionCallArgumentsDelta],
    ),
    "response.code_interpreter_call_code.delta": (
        hosted("code_interpreter_call"),
        {**ITEM, "delta": "1"},
        [FunctionCallArgumentsDelta],
    ),
    "response.code_interpreter_call_code.done": (
        hosted("code_interpreter_call"),
        {**ITEM, "code": "1"},
        [FunctionCallArgumentsDelta],
    ),
    "response.mcp_call_arguments.delta": (
        hosted("mcp_call", name="t"),
        {**ITEM, "delta": "{"},
        [FunctionCallArgumentsDelta],
    ),
    "response.mcp_call_arguments.done": (
        hosted("mcp_call", name="t"),
        {**ITEM, "arguments": "{}"},
        [FunctionCallArgumentsDelta],
    ),
    **{
        f"response.{item}.{status}": (hosted(item), ITEM, [ItemProgress])
        for item, statuses in {
            "web_search_call": ("in_progress", "searching", "completed"),
            "file_search_call": ("in_progress", "searching", "completed"),
            "code_interpreter_call": ("in_progress", "interpreting", "completed"),
            "image_generation_call": ("in_progress", "generating", "completed"),
            "mcp_list_tools": ("in_progress", "completed", "failed"),
            "mcp_call": ("in_progress", "completed", "failed"),
            "compaction": ("compacting",),
        }.items()
        for status in statuses
    },
    "response.image_generation_call.partial_image": (
        hosted("image_generation_call"),
        {**ITEM, "partial_image_index": 0, "partial_image_b64": "iVBO", "output_format": "webp"},
        [MediaDelta],
    ),
    "response.audio.delta": (IN_MESSAGE, {"delta": "UklG"}, [MediaDelta]),
    "response.audio.done": (IN_MESSAGE, {}, []),
    "response.audio.transcript.delta": (IN_MESSAGE, {"delta": "hi"}, [MediaDelta]),
    "response.audio.transcript.done": (IN_MESSAGE, {}, []),
    "response.shell_call_command.added": (
        hosted("shell_call"),
        {"output_index": 0, "command_index": 0, "command": ""},
        [Passthrough],
    ),
    "response.shell_call_command.delta": (
        hosted("shell_call"),
        {"output_index": 0, "command_index": 0, "delta": "ls"},
        [Passthrough],
    ),
    "response.shell_call_command.done": (
        hosted("shell_call"),
        {"output_index": 0, "command_index": 0, "command": "ls"},
        [Passthrough],
    ),
    "response.shell_call_output_content.delta": (
        hosted("shell_call_output"),
        {**ITEM, "delta": {"stdout": "a"}},
        [Passthrough],
    ),
    "response.shell_call_output_content.done": (
        hosted("shell_call_output"),
        {**ITEM, "output": []},
        [Passthrough],
    ),
    "response.apply_patch_call_operation_diff.delta": (
        hosted("apply_patch_call"),
        {**ITEM, "delta": "@@"},
        [Passthrough],
    ),
    "response.apply_patch_call_operation_diff.done": (
        hosted("apply_patch_call"),
        {**ITEM, "diff": "@@"},
        [Passthrough],
    ),
    "response.metadata": (
        None,
        {"headers": {"openai-model": "gpt-x"}, "metadata": {"turn": 1}},
        [ResponseMetadata],
    ),
    "codex.rate_limits": (
        None,
        {"rate_limits": {"primary": {"used_percent": 12.5, "window_minutes": 300}}},
        [RateLimits],
    ),
    "keepalive": (None, {}, []),
    "ping": (None, {}, []),
}
"""For each event: the open item, the fields of the event, the types of the events emitted."""


def test_every_event_has_an_example() -> None:
    assert EXAMPLES.keys() == EVENT_KINDS


@pytest.mark.parametrize("kind", EXAMPLES)
def test_event_emits_what_the_table_lists(kind: str) -> None:
    item, values, expected = EXAMPLES[kind]
    p = parser("responses")
    before = p.feed(created() + added(item)) if item else []
    emitted = p.feed(frame(kind, **values))
    assert [type(event) for event in emitted] == expected
    assert not of(Notice, [*before, *emitted])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_event_may_arrive_without_its_item(kind: str) -> None:
    """Nothing raises, nothing is lost.

    The event opens an item, ends the stream, adds nothing, or is passed through.
    """
    events = events_of(frame(kind, **EXAMPLES[kind][1]))
    known = {
        Created,
        ResponseMetadata,
        TokenCount,
        RateLimits,
        OutputItemAdded,
        MediaDelta,
        OutputItemDone,
        Passthrough,
        Completed,
        Failed,
    }
    texts = {OutputTextDelta, RefusalDelta, ReasoningContentDelta, ReasoningSummaryDelta}
    assert {type(event) for event in events} <= known | texts
    tells = "delta" in EXAMPLES[kind][1] or "part" in EXAMPLES[kind][1]
    assert not tells or {type(event) for event in events} & {Passthrough, MediaDelta, *texts}


def test_page_lists_every_event_of_the_table() -> None:
    page = (ROOT / "docs" / "wires" / "responses.md").read_text(encoding="utf-8")
    table = page.partition("## Events")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named - {"[DONE]"} == EVENT_KINDS


def test_unknown_event_is_passed_through_in_order() -> None:
    """Case 35: an unknown type aborts the turn in other libraries."""
    events = events_of(
        created(),
        added(message()),
        text("a"),
        frame("response.output_hologram.delta", output_index=0, delta={"x": 1}),
        text("b"),
    )
    kinds = [type(event) for event in events]
    assert kinds[:6] == [
        Created,
        OutputItemAdded,
        OutputTextDelta,
        Passthrough,
        OutputTextDelta,
        OutputItemDone,
    ]
    assert of(Passthrough, events) == [
        Passthrough(
            "response.output_hologram.delta",
            {"type": "response.output_hologram.delta", "output_index": 0, "delta": {"x": 1}},
        )
    ]


# --- a usual stream ---


def test_text_response_emits_events_in_the_documented_order() -> None:
    part = {"type": "output_text", "text": "", "annotations": []}
    events = events_of(
        created(),
        frame("response.in_progress", response={"id": "resp_1", "status": "in_progress"}),
        added(message()),
        about("content_part.added", content_index=0, part=part),
        text("Hel"),
        text("lo"),
        about("output_text.done", content_index=0, text="Hello"),
        about("content_part.done", content_index=0, part={**part, "text": "Hello"}),
        done(message("Hello")),
        completed(message("Hello"), usage={"input_tokens": 3, "output_tokens": 2}),
        b"data: [DONE]\n\n",
    )
    kinds = [type(event) for event in events]
    assert kinds == [
        Created,
        OutputItemAdded,
        OutputTextDelta,
        OutputTextDelta,
        OutputItemDone,
        TokenCount,
        Completed,
    ]
    assert events[0] == Created("resp_1", "gpt-x")
    assert events[-1] == Completed(
        "resp_1", "gpt-x", "stop", "completed", usage=events[-1].usage, choices=events[-1].choices
    )  # type: ignore[union-attr]


def test_logprobs_belong_to_their_delta() -> None:
    logprob = {"token": "Hi", "logprob": -0.1}
    events = events_of(added(message()), text("Hi", logprobs=[logprob]), text("!", logprobs=[]))
    assert [event.logprobs for event in of(OutputTextDelta, events)] == [[logprob], None]


def test_completed_is_emitted_at_once_and_is_last() -> None:
    p = parser("responses")
    assert isinstance(p.feed(created() + completed())[-1], Completed)
    assert p.complete
    assert p.feed(text("late")) + p.close() == []


def test_text_missing_from_deltas_is_emitted_once() -> None:
    events = events_of(
        added(message()),
        text("Hel"),
        about("output_text.done", content_index=0, text="Hello"),
        about(
            "content_part.done", content_index=0, part={"type": "output_text", "text": "Hello, wor"}
        ),
        done(message("Hello, world")),
        completed(message("Hello, world")),
    )
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hel", "lo", ", wor", "ld"]
    assert not of(Notice, events)


def test_differing_final_text_replaces_the_streamed_text() -> None:
    events = events_of(added(message()), text("Hello"), done(message("Goodbye")), completed())
    assert [event.delta for event in of(OutputTextDelta, events)] == ["Hello"]
    assert [event.code for event in of(Notice, events)] == ["text_replaced"]
    assert finals(events)[0].text == "Goodbye"


def test_final_item_without_text_keeps_the_streamed_text() -> None:
    events = events_of(
        added(reasoning()),
        about("reasoning_text.delta", delta="hm", content_index=0),
        done(reasoning()),
        completed(),
    )
    assert finals(events)[0].content == "hm"


def test_encrypted_content_is_that_of_the_final_reasoning() -> None:
    events = events_of(
        added(reasoning(encrypted_content="early")),
        about(
            "reasoning_summary_part.added",
            summary_index=0,
            part={"type": "summary_text", "text": ""},
        ),
        about("reasoning_summary_text.delta", summary_index=0, delta="**Plan**"),
        about(
            "reasoning_summary_part.added",
            summary_index=1,
            part={"type": "summary_text", "text": ""},
        ),
        about("reasoning_summary_text.delta", summary_index=1, delta="Act"),
        done(reasoning("**Plan**", "Act", encrypted_content="late")),
        completed(),
    )
    assert [(event.summary_index, event.delta) for event in of(ReasoningSummaryDelta, events)] == [
        (0, "**Plan**"),
        (1, "Act"),
    ]
    (final,) = finals(events)
    assert (final.summary, final.encrypted_content) == (("**Plan**", "Act"), "late")


def test_citations_are_emitted_once_each() -> None:
    first, second = (
        {"type": "url_citation", "url": "https://a"},
        {"type": "url_citation", "url": "https://b"},
    )
    cited = message(content=[{"type": "output_text", "text": "a", "annotations": [first, second]}])
    annotated = about(
        "output_text.annotation.added", content_index=0, annotation_index=0, annotation=first
    )
    events = events_of(added(message()), text("a"), annotated, done(cited), completed(cited))
    assert [event.annotation for event in of(AnnotationAdded, events)] == [first, second]
    assert finals(events)[0].content[0].annotations == (first, second)
    assert [
        event.annotation
        for event in of(AnnotationAdded, body_of({"status": "completed", "output": [cited]}))
    ] == [first, second]


def test_partial_images_are_emitted_and_not_stored() -> None:
    image = "A" * 1_000_000
    p = parser("responses")
    p.feed(created() + added(hosted("image_generation_call")))
    tracemalloc.start()
    for number in range(20):
        frame_ = about(
            "image_generation_call.partial_image",
            partial_image_index=number,
            partial_image_b64=image,
        )
        assert [
            (event.data == image, event.content_index) for event in of(MediaDelta, p.feed(frame_))
        ] == [(True, number)]
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert traced < 5_000_000
    final = finals(p.feed(done(hosted("image_generation_call", result="iVBO"))))[0]
    assert final.native["result"] == "iVBO"


def test_hosted_call_emits_progress_and_keeps_results() -> None:
    ran = hosted(
        "code_interpreter_call",
        code="1+1",
        container_id="c",
        outputs=[{"type": "logs", "logs": "2"}],
    )
    events = events_of(
        added(hosted("code_interpreter_call", code="", container_id="c", outputs=None)),
        about("code_interpreter_call_code.delta", delta="1+"),
        about("code_interpreter_call_code.done", code="1+1"),
        about("code_interpreter_call.interpreting"),
        done(ran),
        completed(),
    )
    assert [event.status for event in of(ItemProgress, events)] == ["interpreting"]
    assert "".join(event.delta for event in of(FunctionCallArgumentsDelta, events)) == "1+1"
    (final,) = finals(events)
    assert (final.arguments, final.native["outputs"]) == ("1+1", [{"type": "logs", "logs": "2"}])


# --- calls ---


def test_two_calls_keep_their_own_arguments() -> None:
    """Case 1."""
    first, second = (
        call(item_id="a", call_id="c1", name="f"),
        call(item_id="b", call_id="c2", name="g"),
    )
    stream = [added(message()), done(message("x")), added(first, 1), added(second, 2)]
    stream += [arguments('{"a":', 1), arguments('{"b":', 2), arguments("1}", 1), arguments("2}", 2)]
    stream += [
        done({**first, "arguments": '{"a":1}'}, 1),
        done({**second, "arguments": '{"b":2}'}, 2),
        completed(),
    ]
    events = events_of(*stream)
    assert [(event.index, event.delta) for event in of(FunctionCallArgumentsDelta, events)] == [
        (1, '{"a":'),
        (2, '{"b":'),
        (1, "1}"),
        (2, "2}"),
    ]
    assert [(c.name, c.arguments) for c in accumulate(events).calls] == [
        ("f", '{"a":1}'),
        ("g", '{"b":2}'),
    ]  # type: ignore[union-attr]


def test_calls_with_equal_index_are_distinguished_by_id() -> None:
    """Case 1: a bridge sends index 0 with every call; its ids are right."""
    first, second = (
        call(item_id="a", call_id="c1", name="f"),
        call(item_id="b", call_id="c2", name="g"),
    )
    stream = [
        added(first),
        added(second),
        arguments('{"a":1}', item_id="a"),
        arguments('{"b":2}', item_id="b"),
    ]
    stream += [
        done({**first, "arguments": '{"a":1}'}),
        done({**second, "arguments": '{"b":2}'}),
        completed(),
    ]
    events = events_of(*stream)
    assert [(event.index, event.delta) for event in of(FunctionCallArgumentsDelta, events)] == [
        (0, '{"a":1}'),
        (1, '{"b":2}'),
    ]
    assert [c.call_id for c in accumulate(events).calls] == ["c1", "c2"]


def test_call_without_arguments_keeps_empty_text() -> None:
    """Case 6."""
    (only,) = response_of(added(call()), done(call()), completed()).calls
    assert isinstance(only, FunctionCall)
    assert (only.arguments, only.parsed()) == ("", {})


def test_call_with_truncated_arguments_is_never_callable() -> None:
    """Case 10."""
    truncated = call('{"city":"Par', status="incomplete")
    stream = [
        added(call()),
        arguments('{"city":"Par'),
        done(truncated),
        completed(truncated, kind="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ]
    response = response_of(*stream)
    assert (response.calls, response.stop_reason, response.items[0].status) == (
        [],
        "length",
        "incomplete",
    )
    claimed = response_of(
        added(call()), arguments('{"city":"Par'), done(call('{"city":"Par')), completed()
    )
    assert (claimed.calls, [notice.code for notice in claimed.notices]) == (
        [],
        ["invalid_arguments"],
    )


def test_call_truncated_before_done_is_incomplete() -> None:
    response = response_of(created(), added(call()), arguments('{"a":1}'))
    assert (response.status, response.calls, response.items[0].status) == (
        "failed",
        [],
        "incomplete",
    )


def test_call_named_only_in_done_opens_there() -> None:
    events = events_of(
        created(), added(call(name="")), arguments("{}"), done(call("{}")), completed()
    )
    assert [type(event) for event in events] == [
        *(
            Created,
            Passthrough,
            OutputItemAdded,
            FunctionCallArgumentsDelta,
            OutputItemDone,
            Completed,
        ),
    ]
    assert of(OutputItemAdded, events)[0].item.name == "f"


def test_arguments_of_an_unnamed_call_reach_no_other_call() -> None:
    unnamed = frame("response.output_item.added", item=call(name="", item_id="b"))
    other = frame("response.function_call_arguments.delta", item_id="b", delta='{"b":1}')
    events = events_of(frame("response.output_item.added", item=call(item_id="a")), unnamed, other)
    assert not of(FunctionCallArgumentsDelta, events)


def test_nameless_call_is_incomplete_with_a_notice() -> None:
    events = events_of(done(call("{}", name="")), completed())
    assert [event.code for event in of(Notice, events)] == ["nameless_call"]
    assert accumulate(events).calls == []
    assert accumulate(events).stop_reason == "stop"


def test_call_without_an_id_gets_one_stable_id() -> None:
    sent = call("{}", call_id="")
    events = events_of(added(sent), done(sent), completed(), call_id=lambda n: f"mine_{n}")
    assert [
        event.item.call_id for event in [*of(OutputItemAdded, events), *of(OutputItemDone, events)]
    ] == ["mine_0", "mine_0"]


def test_mapped_tool_names_become_the_callers_again() -> None:
    events = events_of(
        added(call(name="srv__f")),
        done(call("{}", name="srv__f")),
        completed(),
        names={"srv__f": "srv.f"},
    )
    assert [c.name for c in accumulate(events).calls] == ["srv.f"]


def test_arguments_of_a_call_are_limited() -> None:
    events = events_of(
        added(call()), *[arguments("x" * 50) for _ in range(5)], limits=Limits(argument_bytes=120)
    )
    assert (failure(events).kind, failure(events).code) == ("limit_exceeded", "argument_bytes")


# --- the envelope ---


def test_metadata_is_emitted_only_when_filled_and_changed() -> None:
    echo = {
        "service_tier": "auto",
        "tools": [],
        "instructions": None,
        "temperature": 0,
        "store": False,
        "metadata": {},
    }
    tier = {**echo, "service_tier": "default", "incomplete_details": None}
    events = events_of(
        created(**echo), frame("response.in_progress", response=echo), completed(**tier)
    )
    assert [event.values for event in of(ResponseMetadata, events)] == [
        {"service_tier": "auto", "temperature": 0, "store": False},
        {"service_tier": "default"},
    ]


def test_metadata_key_that_becomes_empty_is_emitted_once() -> None:
    events = events_of(
        created(user="u"),
        frame("response.in_progress", response={"user": None}),
        completed(user=None),
    )
    assert [event.values for event in of(ResponseMetadata, events)] == [
        {"user": "u"},
        {"user": None},
    ]


def test_usage_is_already_inclusive() -> None:
    raw = {
        "input_tokens": 328,
        "input_tokens_details": {
            "cached_tokens": 256,
            "cache_write_tokens": 8,
            "text_tokens": 320,
            "image_tokens": 8,
        },
        "output_tokens": 52,
        "output_tokens_details": {"reasoning_tokens": 20, "text_tokens": 52},
        "total_tokens": 380,
    }
    assert usage(raw) == Usage(
        328,
        52,
        256,
        8,
        20,
        input_modalities={"text": 320, "image": 8},
        output_modalities={"text": 52},
        raw=raw,
    )


@pytest.mark.parametrize("raw", [None, {}, {"input_tokens_details": None, "output_tokens": "many"}])
def test_missing_usage_is_none(raw: Json | None) -> None:
    counts = response_of(completed(usage=raw)).usage
    assert counts is None or (
        counts.input_tokens,
        counts.output_tokens,
        counts.reasoning_output_tokens,
    ) == (None, None, None)


def test_rate_limits_are_read_in_band() -> None:
    sent = frame(
        "codex.rate_limits", rate_limits={"primary": {"used_percent": 12.5, "reset_at": 1800000000}}
    )
    (limits,) = of(RateLimits, events_of(sent, completed()))
    assert limits.windows["codex-primary"].remaining == 87.5


# --- errors and truncation ---

FLAT = {"code": "insufficient_quota", "message": "no credits", "param": None}


@pytest.mark.parametrize(
    "error", [NESTED, FLAT, {**NESTED, "status": 429}], ids=["nested", "flat", "websocket"]
)
@pytest.mark.parametrize(
    "before", [b"", created() + added(message()) + text("Hel")], ids=["first", "after-text"]
)
@pytest.mark.parametrize("followed", [True, False])
def test_error_in_the_stream_emits_one_failed(error: Json, before: bytes, followed: bool) -> None:
    """Case 31."""
    failed = frame(
        "response.failed",
        response={
            "status": "failed",
            "error": {"code": "insufficient_quota", "message": "no credits"},
        },
    )
    events = events_of(before, frame("error", **error), failed if followed else b"")
    assert (failure(events).kind, failure(events).code) == ("quota_exhausted", "insufficient_quota")
    assert accumulate(events).text == ("Hel" if before else "")


def test_error_is_emitted_before_the_end_of_input() -> None:
    assert isinstance(parser("responses").feed(frame("error", **FLAT))[-1], Failed)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("rate_limit_exceeded", "rate_limited"),
        ("server_error", "server_error"),
        ("context_length_exceeded", "context_window_exceeded"),
        ("server_is_overloaded", "overloaded"),
        ("something_new", "server_error"),
    ],
)
def test_failed_response_is_classified_by_its_code(code: str, kind: str) -> None:
    events = events_of(
        created(),
        completed(kind="failed", error={"code": code, "message": "m"}, usage={"input_tokens": 1}),
    )
    assert (failure(events).kind, failure(events).code) == (kind, code)
    assert len(of(TokenCount, events)) == 1


def test_failed_response_without_a_reason_still_fails() -> None:
    assert failure(events_of(completed(kind="failed", error=None))).kind == "server_error"
    assert (
        failure(events_of(frame("response.completed", response={"status": "failed"}))).kind
        == "server_error"
    )


def test_error_object_without_a_type_ends_the_stream() -> None:
    assert (
        failure(
            events_of(created(), b'data: {"error":{"code":429,"message":"slow down"}}\n\n')
        ).kind
        == "rate_limited"
    )


@pytest.mark.parametrize("tail", [b"", b"data: [DONE]\n\n"], ids=["eof", "done-marker"])
def test_end_before_the_last_event_is_truncated(tail: bytes) -> None:
    """Case 29."""
    error = failure(events_of(created(), added(message()), text("Hi"), done(message("Hi")), tail))
    assert (error.kind, error.retryable, error.detail) == (
        "truncated",
        True,
        {"status": "in_progress"},
    )


def test_every_prefix_before_the_last_event_is_truncated() -> None:
    """Case 29."""
    body = created() + added(message()) + text("Hi") + done(message("Hi"))
    last = completed(message("Hi"))
    expected = finals(events_of(body + last))
    for length in range(len(body + last)):
        events = events_of((body + last)[:length])
        if isinstance(events[-1], Completed):
            assert finals(events) == expected
        else:
            assert failure(events).kind == ("malformed" if length == 0 else "truncated")


def test_last_event_without_its_blank_line_is_complete() -> None:
    """Case 30."""
    events = events_of((created() + completed(message("Hi"))).rstrip(b"\n"))
    assert isinstance(events[-1], Completed)


def test_reasoning_and_its_call_stay_in_order() -> None:
    """Case 21."""
    output = [
        reasoning("plan", item_id="rs_1", encrypted_content="gAA"),
        call("{}", item_id="fc_1"),
    ]
    stream = [part for n, item in enumerate(output) for part in (added(item, n), done(item, n))]
    items = response_of(created(), *stream, completed(*output)).items
    assert [wire_item(item) for item in items] == [same(item) for item in output]


def test_empty_summary_is_sent_back_empty() -> None:
    """Case 22."""
    (final,) = finals(
        events_of(added(reasoning()), done(reasoning(encrypted_content="gAA")), completed())
    )
    assert wire_item(final) == reasoning(encrypted_content="gAA")


def test_phase_is_preserved_on_every_message() -> None:
    """Case 26."""
    stream = [added(message(phase="commentary")), done(message("a", phase="commentary"))]
    stream += [
        added(message(item_id="m"), 1),
        done(message("b", item_id="m", phase="final_answer"), 1),
    ]
    assert [item.phase for item in finals(events_of(*stream, completed()))] == [
        "commentary",
        "final_answer",
    ]


def test_ids_of_any_form_are_accepted() -> None:
    """Case 35."""
    sent = message("Hi", item_id="42:äö")
    assert (
        finals(events_of(added(message(item_id="42:äö")), done(sent), completed()))[0].id == "42:äö"
    )


# --- bodies ---


def body(**values: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": "completed",
        "output": [message("Hi")],
        **values,
    }


def test_body_emits_each_item_with_one_delta() -> None:
    kinds = [
        type(event)
        for event in body_of(
            body(service_tier="default", usage={"input_tokens": 1, "output_tokens": 2})
        )
    ]
    assert kinds == [
        Created,
        ResponseMetadata,
        TokenCount,
        OutputItemAdded,
        OutputTextDelta,
        OutputItemDone,
        Completed,
    ]


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_body_with_unfinished_status_is_truncated(status: str) -> None:
    events = body_of(body(status=status))
    assert (failure(events).kind, failure(events).detail) == ("truncated", {"status": status})
    assert accumulate(events).response_id == "resp_1"


@pytest.mark.parametrize(("status", "native"), [("complete", "complete"), (None, None), ("", None)])
def test_body_with_unknown_status_is_complete(status: str | None, native: str | None) -> None:
    response = accumulate(body_of(body(status=status)))
    assert (response.status, response.stop_reason, response.native_stop_reason) == (
        "completed",
        "other",
        native,
    )


def test_compaction_body_keeps_user_turns_out_of_the_text() -> None:
    turn = {
        "type": "message",
        "id": "m",
        "role": "user",
        "content": [{"type": "input_text", "text": "Q"}],
    }
    summary = {"type": "compaction", "id": "cmp", "encrypted_content": "gAA"}
    response = accumulate(
        body_of({"id": "r", "object": "response.compaction", "output": [turn, summary]})
    )
    assert ([type(item) for item in response.items], response.text) == ([Message, Compaction], "")


def test_incomplete_call_of_a_body_is_not_callable() -> None:
    response = accumulate(
        body_of(body(status="incomplete", output=[call("{}", status="in_progress")]))
    )
    assert response.calls == []


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (
            {
                "error": {
                    "message": "no such model",
                    "type": "invalid_request_error",
                    "code": "model_not_found",
                }
            },
            "not_found",
        ),
        (
            {"status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []},
            "server_error",
        ),
        ({"error": {"code": "server_error", "message": "m"}, "output": []}, "server_error"),
        ({"type": "error", **NESTED}, "quota_exhausted"),
        ({"hello": 1}, "malformed"),
        ([], "malformed"),
    ],
)
def test_body_that_is_no_response_fails(sent: Any, kind: str) -> None:
    assert failure(body_of(json.dumps(sent).encode())).kind == kind


def test_body_in_place_of_a_stream_is_read() -> None:
    assert accumulate(events_of(json.dumps(body()).encode())).text == "Hi"


# --- bytes ---


def test_surrogate_halves_are_joined_in_deltas_and_bodies() -> None:
    halves = text("Hi \ud83d") + text("\ude00!")
    events = events_of(
        added(message()),
        halves,
        done(message("Hi \U0001f600!")),
        completed(message("Hi \U0001f600!")),
    )
    assert "".join(event.delta for event in of(OutputTextDelta, events)) == "Hi \U0001f600!"
    assert not of(Notice, events)
    assert (
        accumulate(
            body_of(
                body(
                    output=[
                        message("a\ud83d"),
                        hosted("web_search_call", action={"query": "\ud83d"}),
                    ]
                )
            )
        ).text
        == "a\ufffd"
    )


def test_lone_surrogate_becomes_a_replacement_character() -> None:
    events = events_of(added(message()), text("a\ud83d"), done(message("a\ud83d")), completed())
    assert accumulate(events).text == "a\ufffd"
    assert not of(Notice, events)


@pytest.mark.parametrize("target", [b'"type": "web_search_call"', b'"query"', b'"it_0"', b"search"])
def test_invalid_utf8_is_replaced_anywhere(target: bytes) -> None:
    sent = done(hosted("web_search_call", action={"query": "search"}))
    broken = sent.replace(target, target[:-1] + b"\xff" + target[-1:])
    assert broken != sent
    msgspec.json.encode(events_of(broken, completed()))


def test_deep_nesting_fails_without_exception() -> None:
    for depth in (400, 900, 5_000):
        deep = b'{"x":' * depth + b'"\\ud83d"' + b"}" * depth
        events = events_of(
            b'data: {"type":"response.output_item.added","item":{"type":"t","x":'
            + deep
            + b"}}\n\n",
            text("\ud83d"),
        )
        assert isinstance(events[-1], Failed)


# --- invariants ---


def log(events: list[ResponseEvent]) -> list[bytes]:
    return [msgspec.json.encode(event) for event in events]


@pytest.mark.parametrize("name", SYNTHETIC_STREAMS)
def test_no_single_split_changes_the_events(name: str) -> None:
    expected = log(events_of(SYNTHETIC_STREAMS[name]))
    for chunks in [
        *every_single_cut(SYNTHETIC_STREAMS[name], 300),
        byte_by_byte(SYNTHETIC_STREAMS[name]),
    ]:
        assert log(events_of(*chunks)) == expected


@pytest.mark.parametrize("name", SYNTHETIC_STREAMS)
@given(data=st.data())
def test_no_partition_changes_the_events(name: str, data: st.DataObject) -> None:
    sent = SYNTHETIC_STREAMS[name].replace(
        b"\n", data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    )
    assert log(events_of(*data.draw(cuts(sent)))) == log(events_of(sent))


@given(st.lists(st.sampled_from([*PLAIN, *UNUSUAL]), max_size=30), st.booleans())
def test_any_order_of_frames_closes_all_items_and_ends_once(
    frames: list[bytes], ends: bool
) -> None:
    events = events_of(*frames, PLAIN[-1] if ends else b"")
    check_invariants(events)
    if ends and not isinstance(events[-1], Failed):
        assert [
            call_.arguments for call_ in accumulate(events).calls if isinstance(call_, FunctionCall)
        ]


@given(st.permutations(PLAIN[:-1]), st.data())
def test_last_event_restores_lost_and_reordered_items(
    frames: list[bytes], data: st.DataObject
) -> None:
    remaining = data.draw(st.lists(st.sampled_from(frames), max_size=len(frames), unique=True))
    response = accumulate(events_of(*remaining, PLAIN[-1]))
    assert response.status == "completed"
    assert response.text == "Grüße"
    assert [c.arguments for c in response.calls if isinstance(c, FunctionCall)] == [
        '{"city":"Köln"}'
    ]
