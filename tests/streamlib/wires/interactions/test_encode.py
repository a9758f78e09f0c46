"""Events as Interactions streams and bodies; what the wire cannot carry is in the report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    AnnotationAdded,
    Compaction,
    Completed,
    Created,
    CustomToolCall,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    FunctionCallOutput,
    Image,
    MediaDelta,
    Message,
    Opaque,
    Origin,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    Refusal,
    RefusalDelta,
    Response,
    ResponseEvent,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    ShellCall,
    Text,
    TokenCount,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
    parser,
)
from streamlib.request.report import Report
from streamlib.wires.interactions.encode_objects import end_delta, interactions_usage
from streamlib_parsers.errors import ErrorInfo
from tests.support.cases import each_case
from tests.support.interactions_frames import completed, created, events_of, frame, step, text

OTHER = Origin("messages")


def written(*events: ResponseEvent) -> tuple[list[Any], list[str]]:
    """The payloads of a stream, and the paths of the report."""
    encode = encoder("interactions")
    body = b"".join(encode.feed(event) for event in events) + encode.close()
    payloads: list[Any] = []
    for block in body.split(b"\n\n")[:-1]:
        name, data = block.split(b"\n", 1)
        payload = data.removeprefix(b"data: ")
        if payload != b"[DONE]":
            decoded = msgspec.json.decode(payload)
            assert name == b"event: " + decoded["event_type"].encode()
            payloads.append(decoded)
    return payloads, [change.path for change in encode.report]


def of_item(item: Any, *deltas: ResponseEvent) -> tuple[list[Any], list[str]]:
    return written(
        Created("r", "m"),
        OutputItemAdded(0, msgspec.structs.replace(item, status="incomplete")),
        *deltas,
        OutputItemDone(0, item),
        Completed("r", "m", "stop"),
    )


def test_own_stream_survives_unchanged() -> None:
    annotation = {"type": "url_citation", "url": "u", "start_index": 3, "end_index": 6}
    body = b"".join(
        [
            created(),
            frame("interaction.status_update", interaction_id="v1_a", continuation_token="t"),
            step(
                0,
                {"type": "thought"},
                {"type": "thought_summary", "content": text("A")},
                {"type": "thought_signature", "signature": ""},
                {"type": "thought_summary", "content": text("B")},
                {"type": "thought_signature", "signature": "c2ln"},
            ),
            step(
                1,
                {"type": "model_output"},
                text("é 世 x"),
                {"type": "text_annotation_delta", "annotations": [annotation]},
                {"type": "image", "data": "QUJD", "mime_type": "image/png"},
            ),
            step(
                2,
                {"type": "code_execution_call", "id": "s"},
                {"type": "code_execution_call", "arguments": {"code": "1"}, "signature": "c2ln"},
            ),
            step(
                3,
                {"type": "code_execution_result", "call_id": "s"},
                {"type": "code_execution_result", "result": "1\n", "is_error": False},
            ),
            step(
                4,
                {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
                {"type": "arguments_delta", "arguments": '{"a":'},
                {"type": "arguments_delta", "arguments": " 1.0}"},
            ),
            frame("weather.report", wind=1, event_id="e9"),
            completed("requires_action", created="2026", usage={"total_input_tokens": 3}),
        ]
    )
    events = events_of(body)
    encode = encoder("interactions")
    again = b"".join(encode.feed(event) for event in events) + encode.close()
    assert events_of(again) == events
    assert encode.report == []
    response = accumulate(events)
    whole = accumulate(parse_body("interactions", encode_body("interactions", response)))
    assert (whole.items, whole.usage, whole.stop_reason) == (
        response.items,
        response.usage,
        response.stop_reason,
    )


def test_steps_are_numbered_and_stopped() -> None:
    payloads, report = of_item(Message("assistant", [Text("Hi")]), OutputTextDelta(0, 0, "Hi"))
    kinds = [payload["event_type"] for payload in payloads]
    assert kinds == [
        "interaction.created",
        "step.start",
        "step.delta",
        "step.stop",
        "interaction.completed",
    ]
    assert payloads[0]["interaction"]["status"] == "in_progress"
    assert payloads[-1]["interaction"]["status"] == "completed"
    assert report == []


def test_annotation_waits_for_its_text() -> None:
    annotation = {"type": "url_citation", "start_index": 1, "end_index": 2}
    payloads, _ = of_item(
        Message("assistant", [Text("éx", [annotation])]),
        AnnotationAdded(0, 0, annotation),
        OutputTextDelta(0, 0, "éx"),
    )
    deltas = [payload["delta"] for payload in payloads if payload["event_type"] == "step.delta"]
    assert [delta["type"] for delta in deltas] == ["text", "text_annotation_delta"]
    assert (deltas[1]["annotations"][0]["start_index"]) == 2


def test_truncated_call_is_never_stopped() -> None:
    """Clients take a call for finished at its `step.stop`."""
    payloads, _ = of_item(FunctionCall("c", "f", '{"a', status="incomplete"))
    assert "step.stop" not in [payload["event_type"] for payload in payloads]


def test_usage_and_metadata_amid_the_stream_are_an_update() -> None:
    payloads, _ = written(
        Created("r", "m"),
        TokenCount(Usage(input_tokens=3)),
        OutputItemAdded(0, Message("assistant", status="incomplete")),
        ResponseMetadata({"service_tier": "flex"}),
        OutputTextDelta(0, 0, "Hi"),
        OutputItemDone(0, Message("assistant", [Text("Hi")])),
        Completed("r", "m", "stop", usage=Usage(input_tokens=3, output_tokens=2)),
    )
    assert payloads[0]["interaction"]["usage"] == {"total_input_tokens": 3}
    update = payloads[2]
    assert (update["event_type"], update["service_tier"]) == (
        "interaction.status_update",
        "flex",
    )
    assert payloads[-1]["interaction"]["usage"]["total_output_tokens"] == 2


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (Reasoning("x", encrypted_content="y", origin=OTHER), "/encrypted_content"),
        (Message("assistant", [Text("x")], signature="s", origin=OTHER), "/signature"),
        (CustomToolCall("c", "f", "free", origin=OTHER), "/custom_tool_call"),
        (ServerToolCall("c", "web_search", "{}", origin=OTHER), "/server_tools"),
        (FunctionCall("c", "f", "{}", choice=1), "/choices"),
    ],
)
def test_what_the_wire_lacks_is_reported(item: Any, path: str) -> None:
    assert path in of_item(item)[1]


@pytest.mark.parametrize(
    ("signature", "delta"),
    [
        (None, None),
        ("c2ln", None),
        ("bmV3", {"type": "thought_signature", "signature": "bmV3"}),
    ],
)
def test_only_a_new_signature_is_sent_at_the_end(signature: Any, delta: Any) -> None:
    start = {"type": "thought", "signature": "c2ln"}
    assert end_delta(Reasoning("hm", signature=signature), start) == delta


def test_output_that_was_all_reasoning_counts_as_none() -> None:
    """The wire counts thoughts beside the output, not in it."""
    usage = interactions_usage(Usage(1, 3, reasoning_output_tokens=3), Report())
    assert usage is not None
    assert (usage["total_output_tokens"], usage["total_thought_tokens"]) == (0, 3)


def test_signature_of_a_message_is_not_sent() -> None:
    """Steps of text have none: what the report calls dropped must not be there."""
    own = Origin("interactions")
    item = Message("assistant", [Text("x")], signature="c2ln", origin=own)
    payloads, report = of_item(item)
    assert "/signature" in report
    body = encode_body("interactions", Response(items=(item,), status="completed"))
    assert b'"text":"x"' in body
    assert "c2ln" not in str(payloads) + body.decode()


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "other"])
def test_stop_reason_without_a_status_is_reported(reason: Any) -> None:
    _, report = written(Created("r", "m"), Completed("r", "m", reason))
    assert report == ["/stop_reason"]


def test_media_with_an_address_are_written_at_the_end() -> None:
    item = Message("assistant", [Image(url="https://x/a.png", media_type="image/png")])
    payloads, _ = of_item(item)
    delta = payloads[2]["delta"]
    assert delta == {"type": "image", "uri": "https://x/a.png", "mime_type": "image/png"}


def test_error_keeps_its_kind_and_own_code() -> None:
    for kind, code, expected in (
        ("overloaded", "overloaded_error", "overloaded_error"),
        ("rate_limited", None, "rate_limit_exceeded"),
        ("rate_limited", "overloaded_error", "rate_limit_exceeded"),
        ("stalled", None, "gateway_timeout"),
        ("truncated", None, "internal_error"),
    ):
        error: Any = ErrorInfo(kind, "no", code=code)  # type: ignore[arg-type]
        payloads, _ = written(Created("r", "m"), Failed(error))
        assert payloads[-1]["error"] == {"code": expected, "message": "no"}


def test_refusal_is_text_and_reported() -> None:
    item = Message("assistant", [Refusal("No.")])
    payloads, report = of_item(item, RefusalDelta(0, 0, "N"), RefusalDelta(0, 0, "o."))
    deltas = [payload["delta"] for payload in payloads if "delta" in payload]
    assert deltas == [{"type": "text", "text": "N"}, {"type": "text", "text": "o."}]
    assert report == ["/refusal"]
    # An item of a second choice is not written, and nor are its deltas.
    other = Message("assistant", [Refusal("No.")], choice=1)
    payloads, _ = of_item(other, RefusalDelta(0, 0, "No."))
    assert not any("delta" in payload for payload in payloads)


def test_stream_without_end_has_no_terminator() -> None:
    encode = encoder("interactions")
    body = encode.feed(Created("r", "m")) + encode.close()
    assert b"[DONE]" not in body
    reader = parser("interactions")
    assert isinstance([*reader.feed(body), *reader.close()][-1], Failed)


@pytest.mark.parametrize(
    "item",
    [
        FunctionCall("c", "f", "{}", signature="c2ln"),
        Reasoning("hm", signature="c2ln"),
        ServerToolCall("c", "google_search", "{}", signature="c2ln"),
    ],
)
def test_signature_that_is_sent_is_not_reported(item: Any) -> None:
    payloads, paths = of_item(msgspec.structs.replace(item, origin=Origin("interactions")))
    assert "c2ln" in str(payloads)
    assert not any("signature" in path for path in paths)


# --- the frames, event by event ---

HERE = Origin("interactions")
NOTE = {"type": "url_citation", "url": "u", "start_index": 0, "end_index": 1}


def short(payloads: list[Any]) -> list[tuple[Any, ...]]:
    """Kind, index and step or delta of each payload between the first and the last."""
    return [
        (payload["event_type"], payload.get("index"), payload.get("step", payload.get("delta")))
        for payload in payloads[1:-1]
    ]


def said(*texts: str, **fields: Any) -> Message:
    return Message("assistant", tuple(map(Text, texts)), **fields)


@each_case(
    "item, written_step, delta",
    [
        (Message("user", ()), {"type": "user_input"}, None),
        (said(), {"type": "model_output"}, None),
        (
            said(native={"tag": 1, "content": {}}, origin=HERE),
            {"type": "model_output", "tag": 1},
            None,
        ),
        (Reasoning(), {"type": "thought"}, None),
        (
            Reasoning(native={"summary": {}, "tag": 1}, origin=HERE),
            {"type": "thought", "tag": 1},
            None,
        ),
        (
            FunctionCall("c", "f", "{}"),
            {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
            {"type": "arguments_delta", "arguments": "{}"},
        ),
        (
            FunctionCallOutput("c", "x", True),
            {"type": "function_result", "call_id": "c"},
            {"type": "function_result", "result": "x", "is_error": True},
        ),
        (
            FunctionCallOutput("c", '{"a":1}', native={"result": "json"}, origin=HERE),
            {"type": "function_result", "call_id": "c"},
            {"type": "function_result", "result": {"a": 1}, "is_error": False},
        ),
        (
            FunctionCallOutput("c", '{"a":1}'),
            {"type": "function_result", "call_id": "c"},
            {"type": "function_result", "result": '{"a":1}', "is_error": False},
        ),
        (
            FunctionCallOutput("c", (Text("x"), Text("y"))),
            {"type": "function_result", "call_id": "c"},
            {
                "type": "function_result",
                "result": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
                "is_error": False,
            },
        ),
        (
            ServerToolCall(
                "s", "google_search", '{"q":1}', native={"type": "google_search_call"}, origin=HERE
            ),
            {"type": "google_search_call", "id": "s"},
            {"type": "google_search_call", "arguments": {"q": 1}},
        ),
        (
            ServerToolResult(
                "s", "google_search", [1], native={"type": "google_search_result"}, origin=HERE
            ),
            {"type": "google_search_result", "call_id": "s", "result": [1]},
            None,
        ),
        (
            ServerToolCall(
                "s",
                "m",
                "{}",
                native={"type": "mcp_server_tool_call", "server_name": "n"},
                origin=HERE,
            ),
            {"type": "mcp_server_tool_call", "id": "s", "name": "m", "server_name": "n"},
            {"type": "mcp_server_tool_call", "arguments": {}, "name": "m", "server_name": "n"},
        ),
        (Opaque("x", {"a": 1}, origin=HERE), {"type": "x", "a": 1}, None),
        (Opaque("x", {"type": "y", "a": 1}, origin=HERE), {"type": "y", "a": 1}, None),
    ],
)
def test_item_is_a_step(item: Any, written_step: Any, delta: Any) -> None:
    payloads, report = of_item(item)
    deltas = [] if delta is None else [("step.delta", 0, delta)]
    assert short(payloads) == [
        ("step.start", 0, written_step),
        *deltas,
        ("step.stop", 0, None),
    ]
    assert report == []


def test_tool_of_another_provider_is_one_of_an_mcp_server() -> None:
    call = ServerToolCall("s", "web_search", '{"q":1}', origin=OTHER)
    payloads, report = of_item(call)
    start, delta, _ = short(payloads)
    named = {"type": "mcp_server_tool_call", "name": "web_search", "server_name": ""}
    assert start[2] == {**named, "id": "s", "arguments": {}}
    assert delta[2] == {**named, "arguments": {"q": 1}}
    result = ServerToolResult("s", "web_search", [1], origin=OTHER)
    (begun, *_), again = short(of_item(result)[0]), of_item(result)[1]
    named = {"type": "mcp_server_tool_result", "name": "web_search", "server_name": ""}
    assert begun[2].items() >= {**named, "call_id": "s"}.items()
    assert "/server_tools" in report
    assert "/server_tools" in again


@pytest.mark.parametrize(
    ("item", "paths"),
    [
        (Compaction("x"), ["/compaction"]),
        (ShellCall("c", ("ls",)), ["/ShellCall"]),
        (FunctionCall("c", "f", "{}", choice=1), ["/choices"]),
    ],
)
def test_item_without_a_step_is_reported(item: Any, paths: list[str]) -> None:
    payloads, report = of_item(item)
    assert short(payloads) == []
    assert report[:1] == paths


def test_summary_has_an_empty_signature_between_paragraphs() -> None:
    item = Reasoning("", ("a", "b"), signature="c2ln", origin=HERE)
    payloads, report = written(
        Created("r", "m"),
        OutputItemAdded(0, Reasoning()),
        ReasoningSummaryDelta(0, 0, "a"),
        ReasoningSummaryDelta(0, 0, "a"),
        ReasoningSummaryDelta(0, 1, "b"),
        ReasoningContentDelta(0, 0, "c"),
        OutputItemDone(0, item),
        Completed("r", "m", "stop"),
    )
    kinds = [
        entry[2].get("signature", entry[2].get("content", {}).get("text"))
        for entry in short(payloads)
        if entry[0] == "step.delta"
    ]
    assert kinds == ["a", "a", "", "b", "", "c", "c2ln"]
    assert report == []


@pytest.mark.parametrize(
    ("media_type", "delta"),
    [
        ("image/png", {"type": "image", "data": "aWNv", "mime_type": "image/png"}),
        ("audio/wav", {"type": "audio", "data": "aWNv", "mime_type": "audio/wav"}),
        ("text/x", {"type": "document", "data": "aWNv", "mime_type": "text/x"}),
        ("video/mp4", {"type": "video", "data": "aWNv", "mime_type": "video/mp4"}),
        (None, {"type": "audio", "data": "aWNv"}),
    ],
)
def test_media_are_of_the_kind_of_their_type(media_type: Any, delta: Any) -> None:
    payloads, report = of_item(said(), MediaDelta(0, 0, media_type, "aWNv"))
    assert short(payloads)[1] == ("step.delta", 0, delta)
    assert report == []


@each_case(
    "item, deltas, paths",
    [
        (said("x"), [RefusalDelta(0, 0, "x")], ["/refusal"]),
        (said("x"), [OutputTextDelta(0, 0, "x", [{"token": "x"}])], ["/logprobs"]),
        (said("x"), [OutputTextDelta(0, 0, "x"), AnnotationAdded(0, 0, NOTE)], []),
        (said("x"), [OutputTextDelta(0, 0, "x"), AnnotationAdded(0, 0, {"url": "u"})], None),
        (said(), [MediaDelta(0, 0, "audio/wav", "aWNv", "said")], ["/transcript"]),
        (said(), [MediaDelta(0, 0, "audio/wav", None, "said")], ["/transcript"]),
        (Reasoning("x"), [MediaDelta(0, 0, "image/png", "aWNv")], ["/media"]),
        (FunctionCall("c", "f", ""), [], ["/arguments"]),
        (FunctionCall("c", "f", "{}"), [FunctionCallArgumentsDelta(0, "{}")], []),
    ],
)
def test_what_is_lost_is_in_the_report(
    item: Any, deltas: list[Any], paths: list[str] | None
) -> None:
    _, report = of_item(item, *deltas)
    assert report == (["/annotations"] if paths is None else paths)


def test_free_form_call_is_a_function_call_once_it_is_complete() -> None:
    item = CustomToolCall("c", "f", "x")
    payloads, _ = of_item(item)
    delta = {"type": "arguments_delta", "arguments": '{"input":"x"}'}
    assert short(payloads)[1] == ("step.delta", 0, delta)
    payloads, _ = of_item(msgspec.structs.replace(item, status="incomplete"))
    assert [entry[0] for entry in short(payloads)] == ["step.start"]


@pytest.mark.parametrize(
    ("usage", "body", "paths"),
    [
        (
            Usage(0, 0),
            {"total_input_tokens": 0, "total_output_tokens": 0, "total_tokens": 0},
            [],
        ),
        (Usage(3), {"total_input_tokens": 3}, []),
        (
            Usage(3, 9, reasoning_output_tokens=4),
            {
                "total_input_tokens": 3,
                "total_output_tokens": 5,
                "total_thought_tokens": 4,
                "total_tokens": 12,
            },
            [],
        ),
        (
            Usage(3, cache_read_input_tokens=0, input_modalities={"image": 2}),
            {
                "total_input_tokens": 3,
                "input_tokens_by_modality": [{"modality": "image", "tokens": 2}],
                "total_cached_tokens": 0,
            },
            [],
        ),
        (
            Usage(3, cache_write_input_tokens=2),
            {"total_input_tokens": 3},
            ["/usage/cache_write_input_tokens"],
        ),
    ],
)
def test_usage_is_written_number_by_number(usage: Usage, body: Any, paths: list[str]) -> None:
    payloads, report = written(Created("r", "m"), Completed("r", "m", "stop", usage=usage))
    assert payloads[-1]["interaction"]["usage"] == body
    assert report == paths


@each_case(
    "reason, native, status, paths",
    [
        ("stop", None, "completed", []),
        ("tool_calls", None, "requires_action", []),
        ("tool_calls", "completed", "completed", []),
        ("length", None, "incomplete", []),
        ("length", "budget_exceeded", "budget_exceeded", []),
        ("length", "completed", "incomplete", []),
        ("pause", None, "requires_continuation", []),
        ("stop", "end_turn", "completed", []),
    ],
)
def test_status_is_the_own_or_the_nearest(
    reason: Any, native: Any, status: str, paths: list[str]
) -> None:
    payloads, report = written(Created("r", "m"), Completed("r", "m", reason, native))
    assert payloads[-1]["interaction"]["status"] == status
    assert report == paths
    assert written(Created("r", "m"), Completed("r", "m", "stop", None, "END"))[1] == [
        "/stop_sequence"
    ]


def test_id_of_an_event_is_that_of_the_frame_before() -> None:
    payloads, report = written(
        Created("r", "m"),
        ResponseMetadata({"event_id": "e1"}),
        OutputItemAdded(0, said()),
        OutputTextDelta(0, 0, "x"),
        OutputItemDone(0, said("x")),
        ResponseMetadata({"region": "eu", "event_id": "e2"}),
        Completed("r", "m", "stop"),
    )
    ids = [payload.get("event_id") for payload in payloads]
    assert [name for name in ids if name] == ["e1", "e2"]
    assert payloads[-1]["interaction"]["region"] == "eu"
    assert report == []


def test_metadata_of_another_wire_is_no_text_of_an_interaction() -> None:
    values = {"created": 5, "service_tier": "flex", "region": None, "steps": 5}
    payloads, _ = written(Created("r", "m"), ResponseMetadata(values), Completed("r", "m", "stop"))
    sent = {**payloads[0]["interaction"], **payloads[-1]["interaction"]}
    assert sent["service_tier"] == "flex"
    assert not {"created", "region", "steps"} & sent.keys()


def test_event_of_another_wire_alone_is_left_out() -> None:
    own = Passthrough("weather.report", {"wind": 1, "event_type": "weather.report"})
    other = Passthrough("content_block_delta", {"index": 0})
    payloads, report = written(Created("r", "m"), own, other, Completed("r", "m", "stop"))
    assert [payload["event_type"] for payload in payloads[1:-1]] == ["weather.report"]
    assert report == ["/passthrough"]


def test_usage_object_of_another_wire_is_not_sent() -> None:
    usage = Usage(3, raw={"prompt_tokens": 3})
    payloads, _ = written(Created("r", "m"), Completed("r", "m", "stop", usage=usage))
    assert payloads[-1]["interaction"]["usage"] == {"total_input_tokens": 3}


def test_update_is_written_once() -> None:
    payloads, _ = written(
        Created("r", "m"),
        OutputItemAdded(0, said()),
        TokenCount(Usage(3)),
        OutputTextDelta(0, 0, "x"),
        OutputTextDelta(0, 0, "y"),
        OutputItemDone(0, said("xy")),
        Completed("r", "m", "stop"),
    )
    kinds = [payload["event_type"] for payload in payloads]
    assert kinds.count("interaction.status_update") == 1
