"""Events as Cohere streams and bodies; what the wire cannot carry is in the report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
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
    Text,
    TokenCount,
    Usage,
    accumulate,
    encode_all,
    encode_body,
    encoder,
    parse_body,
)
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from tests.support.cohere_frames import (
    DONE,
    call,
    citation,
    ended,
    events_of,
    frame,
    plan,
    read,
    started,
    text,
    thinking,
)

OTHER = Origin("messages")
USAGE = {"tokens": {"input_tokens": 3, "output_tokens": 5, "reasoning_tokens": 2}}


def written(*events: ResponseEvent) -> tuple[list[Any], list[str]]:
    """The payloads of a stream, and the paths of the report."""
    encode = encoder("cohere")
    body = b"".join(encode.feed(event) for event in events) + encode.close()
    payloads: list[Any] = []
    for block in body.removesuffix(DONE).split(b"\n\n")[:-1]:
        name, data = block.split(b"\n", 1)
        payloads.append(msgspec.json.decode(data.removeprefix(b"data: ")))
        assert name == b"event: " + payloads[-1]["type"].encode()
    return payloads, [change.path for change in encode.report]


def of_item(item: Any, *deltas: ResponseEvent) -> tuple[list[Any], list[str]]:
    return written(
        Created("r"),
        OutputItemAdded(0, msgspec.structs.replace(item, status="incomplete")),
        *deltas,
        OutputItemDone(0, item),
        Completed("r", None, "stop"),
    )


def test_own_stream_survives_unchanged() -> None:
    body = started() + thinking(0, "Hm") + text(1, "15°C", "!", end=False)
    body += citation(0, 4, "15°C", content_index=1) + frame("content-end", index=1)
    body += plan("So:") + call(0, '{"a":', "1}") + ended("TOOL_CALL", usage=USAGE)
    written_again = encode_all("cohere", events_of(body))
    assert events_of(written_again) == events_of(body)
    payloads = [block for block in written_again.split(b"\n\n") if block]
    assert len(payloads) == len([block for block in body.split(b"\n\n") if block])


def test_own_body_survives_unchanged() -> None:
    body = started() + thinking(0, "Hm") + text(1, "Hi", end=False)
    body += citation(0, 2, "Hi", content_index=1) + frame("content-end", index=1)
    response = read(body + plan("So:") + call(0, "{}") + ended("TOOL_CALL", usage=USAGE))
    report: list[Any] = []
    encoded = encode_body("cohere", response, report=report)
    assert accumulate(parse_body("cohere", encoded)) == response
    assert report == []


def test_response_without_a_plan_has_none() -> None:
    message = msgspec.json.decode(encode_body("cohere", read(started(), text(0, "Hi"), ended())))
    assert message["message"] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
    }


def test_signature_of_another_wire_is_left_out() -> None:
    reasoning = Reasoning("Hm", signature="c2ln", origin=OTHER)
    payloads, report = of_item(reasoning)
    assert "signature" not in str(payloads)
    assert report == ["/signature"]


def test_gateway_keeps_its_state_in_the_signature() -> None:
    reasoning = Reasoning(signature="c2ln", origin=Origin("cohere"))
    payloads, report = of_item(reasoning)
    kinds = [payload["type"] for payload in payloads]
    assert kinds == ["message-start", "content-start", "content-end", "message-end"]
    assert (payloads[2]["signature"], report) == ("c2ln", [])
    body = b"".join(frame(payload.pop("type"), **payload) for payload in payloads)
    (item,) = read(body).items
    assert item.signature == "c2ln"


def test_what_cohere_lacks_is_in_the_report() -> None:
    picture = Message("assistant", [Text("x"), Image("QUJD", media_type="image/png")])
    assert of_item(picture, OutputTextDelta(0, 0, "x"))[1] == ["/media"]
    cited = Message("assistant", [Text("x", [{"type": "url_citation", "url": "u"}])])
    assert "/annotations" in of_item(cited, OutputTextDelta(0, 0, "x"))[1]
    tokens = OutputTextDelta(0, 0, "x", [{"token": "x", "logprob": 0.0}])
    assert of_item(Message("assistant", [Text("x")]), tokens)[1] == ["/logprobs"]
    assert written(Created("r", "m"), Completed("r", "m", "stop"))[1] == ["/model"]


def test_free_form_call_is_complete_in_one_delta() -> None:
    payloads, report = of_item(CustomToolCall("c", "f", "x = 1"))
    assert payloads[2]["delta"]["message"]["tool_calls"]["function"] == {
        "arguments": '{"input":"x = 1"}'
    }
    assert report == ["/custom_tool_call"]


def test_truncated_item_gets_no_end() -> None:
    payloads, _ = written(
        OutputItemAdded(0, FunctionCall("c", "f", status="incomplete")),
        OutputItemDone(0, FunctionCall("c", "f", "{", status="incomplete")),
        Failed(ErrorInfo("truncated", "it broke")),
    )
    kinds = [payload["type"] for payload in payloads]
    assert kinds == ["message-start", "tool-call-start", "tool-call-delta", "message-end"]
    assert payloads[-1]["delta"] == {"finish_reason": "ERROR", "error": "it broke"}


@pytest.mark.parametrize("kind", ["rate_limited", "context_window_exceeded", "overloaded"])
def test_kind_of_a_failure_is_read_back(kind: ErrorKind) -> None:
    error = ErrorInfo(kind, "no")
    response = read(encode_all("cohere", [Created("r"), Failed(error)]))
    assert response.error is not None
    assert (response.error.kind, response.error.message) == (kind, "no")
    body = encode_body("cohere", response)
    last = parse_body("cohere", body)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind


def test_usage_of_another_wire_is_written_in_cohere_s_words() -> None:
    usage = Usage(12, 34, cache_read_input_tokens=4, reasoning_output_tokens=9)
    payloads, report = written(TokenCount(usage), Completed("r", None, "stop", usage=usage))
    assert payloads[-1]["delta"]["usage"] == {
        "tokens": {"input_tokens": 12, "output_tokens": 34, "reasoning_tokens": 9},
        "cached_tokens": 4,
    }
    assert report == []


@pytest.mark.parametrize(
    ("reason", "word", "report"),
    [
        ("length", "MAX_TOKENS", []),
        ("content_filter", "ERROR_TOXIC", []),
        ("refusal", "COMPLETE", ["/stop_reason"]),
        ("pause", "COMPLETE", ["/stop_reason"]),
    ],
)
def test_stop_reason_is_the_nearest_one(reason: Any, word: str, report: list[str]) -> None:
    payloads, paths = written(Completed("r", None, reason))
    assert (payloads[-1]["delta"]["finish_reason"], paths) == (word, report)


@pytest.mark.parametrize("citations", [1, [1], {"a": 1}])
def test_value_that_is_not_a_list_of_citations_is_left_out(citations: Any) -> None:
    """A content of a response may have that key, of any type: it raised TypeError."""
    content = {"type": "thinking", "thinking": "Hm", "citations": citations}
    body = {"id": "r", "message": {"content": [content]}, "finish_reason": "COMPLETE"}
    events = parse_body("cohere", msgspec.json.encode(body))
    wire_encoder = encoder("cohere")
    frames = b"".join(wire_encoder.feed(event) for event in events)
    assert b"citation-start" not in frames
    again = msgspec.json.decode(encode_body("cohere", accumulate(events)))
    assert "citations" not in again["message"]
