"""OpenAI Responses, event by event: what each becomes, and a usual stream.

A case number in a docstring is that of the project's list of cases that broke other libraries.
"""

from __future__ import annotations

import re
import tracemalloc

from streamlib_parsers import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
    TokenCount,
    parser,
)
from streamlib_parsers.wires.responses import EVENT_KINDS
from tests.support.cases import each_case
from tests.support.responses_frames import (
    Json,
    about,
    added,
    body,
    body_of,
    call,
    completed,
    created,
    done,
    events_of,
    finals,
    frame,
    hosted,
    message,
    of,
    reasoning,
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
    "response.done": (
        None,
        {"response": {**RESPONSE, **LAST, "status": "completed"}},
        [Created, ResponseMetadata, TokenCount, Completed],
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
    "response.reasoning.delta": (
        IN_REASONING,
        {**PART, "delta": "hm"},
        [ReasoningContentDelta],
    ),
    "response.reasoning.done": (IN_REASONING, {**PART, "text": "hm"}, [ReasoningContentDelta]),
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


@each_case("kind", EXAMPLES)
def test_event_emits_what_the_table_lists(kind: str) -> None:
    item, values, expected = EXAMPLES[kind]
    p = parser("responses")
    before = p.feed(created() + added(item)) if item else []
    emitted = p.feed(frame(kind, **values))
    assert [type(event) for event in emitted] == expected
    assert not of(Notice, [*before, *emitted])


@each_case("kind", EXAMPLES)
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


def test_logprobs_of_a_complete_body_come_with_its_text() -> None:
    logprob = {"token": "Hi", "logprob": -0.1}
    item = message("Hi")
    item["content"][0]["logprobs"] = [logprob]
    deltas = of(OutputTextDelta, body_of(body(output=[item])))
    assert [(delta.delta, delta.logprobs) for delta in deltas] == [("Hi", [logprob])]


def test_logprobs_that_no_delta_had_come_with_the_item() -> None:
    logprob = {"token": "Hi", "logprob": -0.1}
    item = message("Hi")
    item["content"][0]["logprobs"] = [logprob]
    events = events_of(created(), added(message()), text("Hi"), done(item), completed(item))
    deltas = of(OutputTextDelta, events)
    assert [(delta.delta, delta.logprobs) for delta in deltas] == [("Hi", None), ("", [logprob])]
    repeated = text("Hi", logprobs=[logprob])
    events = events_of(created(), added(message()), repeated, done(item), completed(item))
    assert [delta.logprobs for delta in of(OutputTextDelta, events)] == [[logprob]]


def test_parts_without_logprobs_keep_their_order() -> None:
    logprob = {"token": "b", "logprob": -0.1}
    item = message()
    item["content"] = [
        {"type": "output_text", "text": "a"},
        {"type": "refusal", "refusal": "no", "logprobs": [logprob]},
        {"type": "output_text", "text": "b", "logprobs": [logprob]},
        {"type": "output_text", "text": "c"},
    ]
    deltas = [
        (event.content_index, event.delta, event.logprobs)
        for event in events_of(done(item))
        if isinstance(event, (OutputTextDelta, RefusalDelta))
    ]
    assert deltas == [(0, "a", None), (1, "no", None), (2, "b", [logprob]), (3, "c", None)]


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
