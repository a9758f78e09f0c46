"""Malformed and unusual shapes of several wires, each with its required outcome."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamlib.testing.frame_generators import MESSAGES
from streamlib.testing.frames import encode_payloads, framed
from streamlib_parsers import (
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCall,
    Image,
    MediaDelta,
    Message,
    Notice,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    WireApi,
    accumulate,
    parse_body,
)
from streamlib_parsers.limits import Limits
from streamlib_parsers.wires.responses.wire_items import wire_item
from tests.support.cases import each_case
from tests.support.gemini_streams import chunk as gemini_chunk
from tests.support.gemini_streams import partial_part, read
from tests.support.invariants import events_of
from tests.support.responses_frames import (
    about,
    added,
    call,
    completed,
    created,
    done,
    frame,
    message,
    reasoning,
)

# --- responses ---


def responses(*frames: bytes) -> list[Any]:
    return events_of("responses", [created(), *frames, completed()])


@pytest.mark.parametrize(
    "bad",
    [
        b"data: [1]\n\n",
        added(5),
        done("x"),
        frame("response.output_item.added", output_index=-1, item={}),
    ],
)  # type: ignore[arg-type]
def test_responses_fails_on_a_malformed_event_or_item(bad: bytes) -> None:
    last = responses(bad)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


def test_responses_passes_deltas_of_an_item_done_as_another_kind() -> None:
    events = responses(
        added(message(item_id="m")),
        done(call("{}", item_id="m"), 1),
        about("output_text.delta", 0, "x", delta="late"),
    )
    assert [(type(item), item.status) for item in accumulate(events).items] == [
        (Message, "incomplete"),
        (FunctionCall, "completed"),
    ]
    assert [event.data["delta"] for event in events if isinstance(event, Passthrough)] == ["late"]


@pytest.mark.parametrize(
    ("item_id", "status"), [("m", "incomplete"), ("x", "completed"), (None, "completed")]
)
def test_responses_marks_an_item_only_for_its_own_deltas(item_id: str | None, status: str) -> None:
    """An inapplicable delta: its id names the message; without one it may be for any item."""
    inapplicable = frame(
        "response.function_call_arguments.delta",
        delta="{}",
        **({"item_id": item_id} if item_id else {}),
    )
    (item,) = accumulate(
        responses(added(message(item_id="m")), inapplicable, done(message("a", item_id="m")))
    ).items
    assert item.status == status


def test_responses_ignores_a_null_item() -> None:
    assert accumulate(responses(done(None))).items == ()


def test_responses_closes_an_item_done_as_another_kind() -> None:
    items = accumulate(
        responses(added(message(item_id="it_0")), done(reasoning("so", item_id="it_0")))
    ).items
    assert [(type(item), item.status) for item in items] == [
        (Message, "incomplete"),
        (Reasoning, "completed"),
    ]


def test_responses_adds_text_without_id_to_the_newest_item() -> None:
    events = responses(
        added(message(item_id="a")),
        added(message(item_id="b"), 1),
        done(message("two", item_id="b"), 1),
        frame("response.output_text.delta", delta="one"),
    )
    items: Any = accumulate(events).items
    assert [item.text for item in items] == ["one", "two"]


def test_responses_opens_a_message_for_audio_without_one() -> None:
    (item,) = accumulate(responses(frame("response.audio.delta", delta="QUJD"))).items
    assert isinstance(item, Message)
    assert item.content


def test_responses_adds_audio_to_the_part_it_names() -> None:
    sound = frame("response.audio.delta", delta="QUJD", content_index=1)
    events = responses(
        added(message(item_id="m")),
        about("output_text.delta", 0, "m", content_index=0, delta="Hi"),
        sound,
    )
    assert [event.content_index for event in events if isinstance(event, MediaDelta)] == [1]


def test_responses_separates_audio_data_from_its_transcript() -> None:
    events = responses(
        frame("response.audio.delta", delta="QUJD"),
        frame("response.audio.transcript.delta", delta="Hi"),
    )
    assert [
        (event.data, event.transcript) for event in events if isinstance(event, MediaDelta)
    ] == [("QUJD", None), (None, "Hi")]


def test_responses_completes_audio_at_its_done_event() -> None:
    sound = frame("response.audio.delta", delta="QUJD")
    for frames, status in (
        ([sound, frame("response.audio.done")], "completed"),
        ([sound], "incomplete"),
    ):
        (item,) = accumulate(responses(*frames)).items
        assert item.status == status


def test_responses_adds_a_delta_without_index_to_part_zero() -> None:
    events = responses(added(message(item_id="m")), about("output_text.delta", 0, "m", delta="a"))
    assert [event.content_index for event in events if isinstance(event, OutputTextDelta)] == [0]


@pytest.mark.parametrize(
    ("kind", "item_status", "status"),
    [
        ("completed", "completed", "completed"),
        ("completed", "in_progress", "completed"),
        ("incomplete", "completed", "completed"),
        ("incomplete", "in_progress", "incomplete"),
        ("incomplete", None, "completed"),
    ],
)
def test_responses_trusts_item_status_when_incomplete(
    kind: str, item_status: str | None, status: str
) -> None:
    events = events_of(
        "responses", [created(), completed({**call("{}"), "status": item_status}, kind=kind)]
    )
    assert [item.status for item in accumulate(events).items] == [status]


def test_gemini_reads_a_signature_with_a_call_fragment() -> None:
    first = {"functionCall": {"name": "f", "willContinue": True}}
    last = {
        "functionCall": {"partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]},
        "thoughtSignature": "late",
    }
    (item,) = read(gemini_chunk(first), gemini_chunk(last), gemini_chunk(finish="STOP")).items
    assert (item.signature, item.arguments) == ("late", '{"a":1}')  # type: ignore[union-attr]


def test_responses_adds_a_summary_without_index_to_the_first() -> None:
    summary_done = frame(
        "response.reasoning_summary_text.done", item_id="r", output_index=0, text="Plan"
    )
    (item,) = accumulate(
        responses(added(reasoning(item_id="r")), summary_done, done(reasoning("Plan", item_id="r")))
    ).items
    assert item.summary == ("Plan",)  # type: ignore[union-attr]


@pytest.mark.parametrize(("index", "kind"), [(1_000_000, "completed"), (1_000_001, "malformed")])
def test_index_limit_is_a_million(index: int, kind: str) -> None:
    text = framed(
        "messages",
        json.dumps(
            {"type": "content_block_start", "index": index, "content_block": {"type": "text"}}
        ).encode(),
    )
    begin, end = (
        encode_payloads("messages", [MESSAGES[name](0, "")])
        for name in ("message_start", "message_stop")
    )
    for events in (
        events_of("messages", [begin, text, end]),
        responses(added(message(item_id="m"), index), done(message(item_id="m"), index)),
    ):
        last = events[-1]
        assert kind == (last.error.kind if isinstance(last, Failed) else "completed")


def test_responses_passes_empty_rate_limits_through() -> None:
    assert [
        event.event
        for event in responses(frame("codex.rate_limits"))
        if isinstance(event, Passthrough)
    ] == ["codex.rate_limits"]


def test_responses_ignores_id_and_model_that_are_not_strings() -> None:
    response = accumulate(
        events_of("responses", [created(id=5, model=["m"]), completed(id=5, model=["m"])])
    )
    assert (response.response_id, response.model) == (None, None)


def test_responses_adds_an_annotation_to_the_part_it_names() -> None:
    quoted = about(
        "output_text.annotation.added", 0, "m", content_index=1, annotation={"type": "url_citation"}
    )
    events = responses(
        added(message("a", "b", item_id="m")), quoted, done(message("a", "b", item_id="m"))
    )
    assert [event.content_index for event in events if isinstance(event, AnnotationAdded)] == [1]


def test_responses_ignores_an_item_id_that_is_not_a_string() -> None:
    events = responses(added({**message(), "id": 5}), done(message("a", item_id="m")))
    assert [item.id for item in accumulate(events).items] == ["m"]


def test_responses_ignores_a_done_text_that_is_not_a_string() -> None:
    events = responses(
        added(message(item_id="m")), about("output_text.done", 0, "m", content_index=0, text=5)
    )
    assert not [event for event in events if isinstance(event, OutputTextDelta)]


def test_responses_reports_a_call_that_never_got_a_name() -> None:
    nameless = call(name="", item_id="fc", call_id="c")
    for frames in ([created(), added(nameless), completed()], [created(), added(nameless)]):
        events = events_of("responses", frames)
        (item,) = accumulate(events).items
        assert isinstance(item, FunctionCall)
        assert (item.call_id, item.name, item.status) == ("c", "", "incomplete")
        assert "nameless_call" in [event.code for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("other_id", ["other", None])
def test_responses_reports_a_nameless_call_beside_a_done_item(
    other_id: str | None,
) -> None:
    """Two items without an id have none in common."""
    nameless = {
        key: value for key, value in call(name="", item_id="fc").items() if key != "id" or other_id
    }
    other = {
        key: value
        for key, value in message("a", item_id="other").items()
        if key != "id" or other_id
    }
    events = responses(added(nameless, 0), done(other, 1))
    assert [event.code for event in events if isinstance(event, Notice)] == ["nameless_call"]
    assert [type(item) for item in accumulate(events).items] == [Message, FunctionCall]


def test_responses_separates_items_that_share_an_index() -> None:
    """A bridge numbers every call 0: ids are right, an index alone names the newest item."""
    calls = [call(item_id=name, call_id=name) for name in ("a", "b")]
    more = [
        about("function_call_arguments.delta", 0, name, delta=text)
        for name, text in (("a", "{"), ("b", "[1"), ("a", "}"), ("b", "]"))
    ]
    nobody = frame("response.function_call_arguments.delta", output_index=0, delta=" ")
    events = responses(
        *(added(item) for item in calls),
        *more,
        nobody,
        *(about("output_item.done", 0, item["id"], item=item) for item in calls),
    )
    items: Any = accumulate(events).items
    assert [item.arguments for item in items] == ["{}", "[1] "]


@pytest.mark.parametrize(
    "named", [done(call("{}", item_id="fc")), completed(call("{}", item_id="other"))]
)
def test_responses_accepts_a_call_name_that_arrives_late(named: bytes) -> None:
    events = events_of(
        "responses", [created(), added(call(name="", item_id="fc")), named, completed()]
    )
    (item,) = accumulate(events).items
    assert (item.name, item.status) == ("f", "completed")  # type: ignore[union-attr]


def test_responses_reports_a_streamed_part_missing_at_the_end() -> None:
    streamed = [
        added(message(item_id="m")),
        about("output_text.delta", 0, "m", content_index=0, delta="a"),
    ]
    events = responses(
        *streamed,
        about("output_text.delta", 0, "m", content_index=1, delta="b"),
        done(message("a", item_id="m")),
    )
    assert [(event.code, event.index) for event in events if isinstance(event, Notice)] == [
        ("text_replaced", 0)
    ]


def test_responses_separates_refusal_and_text_of_one_part() -> None:
    events = responses(
        about("refusal.delta", 0, "m", content_index=0, delta="No."),
        about("output_text.delta", 0, "m", content_index=0, delta="Yes."),
    )
    response = accumulate(events)
    assert (response.text, response.refusal) == ("Yes.", "No.")


@pytest.mark.parametrize(
    "inapplicable",
    [
        frame("response.in_progress", response=5),
        about("output_text.annotation.added", 0, "m", content_index=0, annotation=5),
        frame("response.audio.delta", delta=5),
        about("refusal.delta", 1, "rs", content_index=0, delta="No."),
        about("reasoning_text.delta", 0, "m", content_index=0, delta="Hm."),
        about("reasoning_summary_text.delta", 0, "m", summary_index=0, delta="Hm."),
    ],
)
def test_responses_passes_inapplicable_events_through(inapplicable: bytes) -> None:
    events = responses(added(message(item_id="m")), added(reasoning(item_id="rs"), 1), inapplicable)
    assert len([event for event in events if isinstance(event, Passthrough)]) == 1


def test_responses_renumbers_parts_when_indexes_drift() -> None:
    deltas = [
        about("output_text.delta", 0, "m", content_index=index, delta=text)
        for index, text in ((1, "a"), (1, "b"), (3, "c"))
    ]
    (item,) = accumulate(responses(added(message(item_id="m")), *deltas)).items
    assert [part.text for part in item.content] == ["ab", "c"]  # type: ignore[union-attr]


def test_responses_opens_an_item_for_another_id_at_its_index() -> None:
    items = accumulate(
        responses(added(message(item_id="m")), done(reasoning("so", item_id="rs")))
    ).items
    assert {type(item) for item in items} == {Message, Reasoning}


def test_responses_adds_no_nameless_call_over_the_item_limit() -> None:
    frames = [created(), added(message(item_id="m")), added(call(name="", item_id="fc"), 1)]
    assert len(accumulate(events_of("responses", frames, limits=Limits(items=1))).items) == 1


def test_gemini_reports_every_create_time() -> None:
    chunks = [
        gemini_chunk({"text": letter}, createTime=time)
        for letter, time in (("a", "1"), ("b", "2"), ("c", "2"))
    ]
    response = read(*chunks, gemini_chunk(finish="STOP"))
    assert (response.text, response.metadata["createTime"]) == ("abc", "2")


def test_responses_cannot_write_an_image_part() -> None:
    with pytest.raises(TypeError, match="Image part"):
        wire_item(Message("assistant", [Image(data="AA==", media_type="image/png")]))


# --- the others ---


def test_ollama_reads_the_error_of_a_malformed_line() -> None:
    last = events_of("ollama", [b'{"message": 5, "error": "model not found"}\n'])[-1]
    assert isinstance(last, Failed)
    assert last.error.kind != "malformed"


def test_invoke_skips_an_empty_payload() -> None:
    empty = framed("invoke", b"")
    titan = framed(
        "invoke", json.dumps({"outputText": "Hi", "completionReason": "FINISH"}).encode()
    )
    response = accumulate(events_of("invoke", [empty, titan]))
    assert (response.text, response.status) == ("Hi", "completed")


def test_gemini_ends_a_streamed_string_at_an_empty_fragment() -> None:
    parts = [
        {"functionCall": {"name": "f", "willContinue": True}},
        partial_part("$.k", stringValue="a", willContinue=True),
        partial_part("$.k"),
        {"functionCall": {}},
    ]
    (call_item,) = read(*(gemini_chunk(part) for part in parts), gemini_chunk(finish="STOP")).calls
    assert call_item.parsed() == {"k": "a"}  # type: ignore[union-attr]


BODIES: dict[WireApi, Any] = {
    "messages": {"type": "message", "content": {}},
    "responses": {"output": 5},
    "chat": {"choices": [{"message": 5}]},
    "gemini": [5],
    "interactions": {"status": "completed", "steps": 5},
    "converse": {"output": {"message": {"content": 5}}},
    "invoke": {"type": "message", "content": 5},
    "ollama": {"model": "m"},
    "cohere": {"message": {"content": 5}},
}


@each_case("wire_api, body", BODIES.items())
def test_body_of_the_wrong_shape_is_malformed_or_empty(wire_api: WireApi, body: Any) -> None:
    events = parse_body(wire_api, json.dumps(body).encode())
    assert isinstance(events[-1], (Failed, Completed))
    assert accumulate(events).items == ()


def messages(*payloads: Any) -> list[Any]:
    start = {
        "type": "message_start",
        "message": {"id": "m1", "model": "m", "usage": {"input_tokens": 1}},
    }
    end = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    return events_of("messages", [encode_payloads("messages", [start, *payloads, *end])])


@each_case(
    "bad",
    [
        "[1]",
        {"type": 5},
        {"type": "message_start"},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "hologram_delta"}},
        {"type": "content_block_delta", "index": [], "delta": {"type": "hologram_delta"}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": {}}},
        {"type": "content_block_start", "index": -1, "content_block": {"type": "text"}},
    ],
)
def test_messages_fails_on_malformed_events(bad: Any) -> None:
    last = messages(bad)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


def test_messages_keeps_content_of_message_start_and_citations() -> None:
    block = {"type": "text", "text": "a", "citations": [{"cited_text": "c"}, 5]}
    events = messages(
        {
            "type": "message_start",
            "message": {"id": "m2", "content": [{"type": "text", "text": "early"}]},
        },
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    )
    assert ("message_start.content", [{"type": "text", "text": "early"}]) in [
        (e.event, e.data) for e in events if isinstance(e, Passthrough)
    ]
    (item,) = accumulate(events).items
    assert item.content[0].annotations == ({"cited_text": "c"},)  # type: ignore[union-attr]


def test_messages_reads_objects_without_a_type() -> None:
    last = messages({"error": {"type": "overloaded_error", "message": "Overloaded"}})[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "overloaded"
    assert accumulate(messages({"proxy": "x"}, {"type": "message_delta"})).metadata == {
        "proxy": "x"
    }


def test_messages_keeps_the_input_of_a_block_that_is_not_a_call() -> None:
    block = {"type": "text", "text": "a", "input": {"k": 1}}
    events = messages(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    )
    assert accumulate(events).items[0].native == {"input": {"k": 1}}


def test_messages_reads_an_error_body() -> None:
    last = parse_body(
        "messages", b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    )[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "overloaded"
    for body in (b"5", b'{"type":"message"}'):
        assert isinstance(parse_body("messages", body)[-1], Failed)


def test_messages_reads_a_block_with_invalid_utf8() -> None:
    body = (
        b'data: {"type":"content_block_start","index":0,"content_block":'
        b'{"type":"tool_use","id":"c","name":"f","x":"\xff"}}\n\n'
    )
    (item,) = accumulate(events_of("messages", [body])).items
    assert (item.name, item.native) == ("f", {"x": "\ufffd"})  # type: ignore[union-attr]


def test_messages_reports_the_model_of_a_fallback() -> None:
    block = {"type": "fallback", "to": {"model": "other"}}
    events = messages(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    )
    assert isinstance(events[-1], Completed)
    assert events[-1].model == "other"


def test_invoke_fails_on_an_inner_event_that_is_not_json() -> None:
    body = framed(
        "converse", json.dumps({"bytes": base64.b64encode(b"nonsense").decode()}).encode(), "chunk"
    )
    assert isinstance(events_of("invoke", [body])[-1], Failed)
