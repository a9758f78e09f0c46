"""Events as Interactions streams and bodies; what the wire cannot carry is in the report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    AnnotationAdded,
    Completed,
    Created,
    CustomToolCall,
    Failed,
    FunctionCall,
    Image,
    Message,
    Origin,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ResponseEvent,
    ResponseMetadata,
    ServerToolCall,
    Text,
    TokenCount,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
    parser,
)
from streamlib_parsers.errors import ErrorInfo
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
        ("stalled", None, "gateway_timeout"),
        ("truncated", None, "internal_error"),
    ):
        error: Any = ErrorInfo(kind, "no", code=code)  # type: ignore[arg-type]
        payloads, _ = written(Created("r", "m"), Failed(error))
        assert payloads[-1]["error"] == {"code": expected, "message": "no"}


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
