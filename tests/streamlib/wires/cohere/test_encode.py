"""Events as Cohere streams and bodies; what the wire cannot carry is in the report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    AnnotationAdded,
    Audio,
    Compaction,
    Completed,
    Created,
    CustomToolCall,
    Document,
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
    RefusalDelta,
    Response,
    ResponseEvent,
    ResponseMetadata,
    ServerToolCall,
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
from tests.support.cases import each_case
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


@pytest.mark.parametrize("part", [Image(file_id="f"), Audio(data="QUJD"), Document(file_id="f")])
def test_file_in_a_body_is_in_the_report(part: Any) -> None:
    report: list[Any] = []
    items = (Message("assistant", [part]),)
    encode_body(
        "cohere", Response(items=items, status="completed", stop_reason="stop"), report=report
    )
    assert [change.path for change in report] == ["/media"]


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


# --- the frames, event by event ---

HERE = Origin("cohere")
CITED = {"start": 0, "end": 1, "text": "x", "sources": [{"type": "tool", "id": "t"}]}
TOKEN = {"text": "x", "token_ids": [1], "logprobs": [-0.5]}


def short(payloads: list[Any]) -> list[tuple[Any, ...]]:
    """Kind, index and message of each payload between the first and the last."""
    return [
        (payload["type"], payload.get("index"), payload.get("delta", {}).get("message"))
        for payload in payloads[1:-1]
    ]


def said(*texts: str, **fields: Any) -> Message:
    return Message("assistant", tuple(map(Text, texts)), **fields)


def test_contents_calls_and_citations_are_numbered() -> None:
    first, second = said("x", "y"), FunctionCall("c2", "g", "{}")
    payloads, report = written(
        Created("r"),
        OutputItemAdded(0, said()),
        OutputTextDelta(0, 0, "x"),
        AnnotationAdded(0, 0, CITED),
        OutputTextDelta(0, 1, "y"),
        AnnotationAdded(0, 1, CITED),
        OutputItemDone(0, first),
        OutputItemAdded(1, FunctionCall("c1", "f")),
        FunctionCallArgumentsDelta(1, "{}"),
        OutputItemDone(1, FunctionCall("c1", "f", "{}")),
        OutputItemAdded(2, FunctionCall("c2", "g")),
        FunctionCallArgumentsDelta(2, "{}"),
        OutputItemDone(2, second),
        Completed("r", None, "tool_calls"),
    )
    assert [entry[:2] for entry in short(payloads)] == [
        ("content-start", 0),
        ("content-delta", 0),
        ("citation-start", 0),
        ("citation-end", 0),
        ("content-start", 1),
        ("content-delta", 1),
        ("citation-start", 1),
        ("citation-end", 1),
        ("content-end", 0),
        ("content-end", 1),
        ("tool-call-start", 0),
        ("tool-call-delta", 0),
        ("tool-call-end", 0),
        ("tool-call-start", 1),
        ("tool-call-delta", 1),
        ("tool-call-end", 1),
    ]
    cited = [entry[2]["citations"] for entry in short(payloads) if entry[0] == "citation-start"]
    assert cited == [CITED, {**CITED, "content_index": 1}]
    assert report == []


def test_citation_before_its_text_starts_the_content() -> None:
    item = said("x", native={"tag": 1}, origin=HERE)
    payloads, report = of_item(item, AnnotationAdded(0, 0, CITED), OutputTextDelta(0, 0, "x"))
    kinds = [entry[0] for entry in short(payloads)]
    assert kinds[:3] == ["content-start", "citation-start", "citation-end"]
    assert kinds[3:] == ["content-delta", "content-end"]
    assert short(payloads)[0][2] == {"content": {"type": "text", "text": "", "tag": 1}}
    assert report == []


def test_each_event_has_the_logprobs_of_one_token() -> None:
    tokens = [TOKEN, {**TOKEN, "token_ids": [2]}, {"token": "x"}]
    payloads, report = of_item(said("xy"), OutputTextDelta(0, 0, "xy", tokens))
    deltas = [payload for payload in payloads if payload["type"] == "content-delta"]
    texts = [delta["delta"]["message"]["content"]["text"] for delta in deltas]
    assert texts == ["xy", ""]
    assert [delta["logprobs"] for delta in deltas] == tokens[:2]
    assert report == []


def test_plans_of_two_items_are_one_and_reported() -> None:
    plans = [said("a", phase="commentary"), said("b", phase="commentary")]

    def told(*between: ResponseEvent) -> list[str]:
        return written(
            Created("r"),
            OutputItemAdded(0, plans[0]),
            OutputTextDelta(0, 0, "a"),
            OutputTextDelta(0, 0, "a"),
            OutputItemDone(0, plans[0]),
            *between,
            OutputItemAdded(2, plans[1]),
            OutputTextDelta(2, 0, "b"),
            OutputItemDone(2, plans[1]),
            Completed("r", None, "stop"),
        )[1]

    assert told() == ["/tool_plan"]
    call = FunctionCall("c", "f", "{}")
    assert told(OutputItemAdded(1, call), OutputItemDone(1, call)) == []


@pytest.mark.parametrize(
    ("item", "content"),
    [
        (said(""), {"type": "text", "text": ""}),
        (said(), {"type": "text", "text": ""}),
        (said(native={"tag": 1}, origin=HERE), {"type": "text", "text": "", "tag": 1}),
        (Reasoning(signature="c2ln", origin=HERE), {"type": "thinking", "thinking": ""}),
        (Opaque("x", {"a": 1}, origin=HERE), {"type": "x", "a": 1}),
    ],
)
def test_item_without_text_is_a_content(item: Any, content: Any) -> None:
    payloads, report = of_item(item)
    assert [entry[:2] for entry in short(payloads)] == [("content-start", 0), ("content-end", 0)]
    assert short(payloads)[0][2] == {"content": content}
    assert report == []


@pytest.mark.parametrize(
    ("item", "paths"),
    [
        (Reasoning(), []),
        (Reasoning(encrypted_content="x", origin=HERE), ["/encrypted_content"]),
        (FunctionCall("c", "f", "{}", choice=1), ["/choices"]),
        (ServerToolCall("c", "web_search", "{}"), ["/ServerToolCall"]),
        (Compaction("x"), ["/Compaction"]),
        (FunctionCallOutput("c", "x"), ["/FunctionCallOutput"]),
    ],
)
def test_item_without_a_place_is_reported(item: Any, paths: list[str]) -> None:
    payloads, report = of_item(item, OutputTextDelta(0, 0, "x") if item.choice else Created("r"))
    assert short(payloads) == []
    assert report == paths


@each_case(
    "item, deltas, paths",
    [
        (said("x", phase="final_answer"), [OutputTextDelta(0, 0, "x")], ["/phase"]),
        (said("x", phase="commentary"), [OutputTextDelta(0, 0, "x")], []),
        (said("x", signature="c2ln"), [OutputTextDelta(0, 0, "x")], ["/signature"]),
        (FunctionCall("c", "f", "{}", signature="c2ln"), [], ["/signature"]),
        (FunctionCall("c", "f", "{}", signature="c2ln", origin=HERE), [], ["/signature"]),
        (Reasoning("x", signature="c2ln", origin=HERE), [], []),
        (said("x"), [AnnotationAdded(0, 0, {"url": "u"}), OutputTextDelta(0, 0, "x")], None),
        (said("x"), [RefusalDelta(0, 0, "x")], ["/refusal"]),
        (said("x"), [MediaDelta(0, 0, "image/png", "aWNv")], ["/media"]),
        (said("x"), [MediaDelta(7, 0, "image/png", "aWNv")], ["/media", "/items/7"]),
        (
            said("x"),
            [OutputTextDelta(7, 0, "x"), FunctionCallArgumentsDelta(7, "{}")],
            ["/items/7"],
        ),
        (said("x"), [AnnotationAdded(7, 0, CITED)], ["/items/7"]),
    ],
)
def test_what_is_lost_is_in_the_report(
    item: Any, deltas: list[Any], paths: list[str] | None
) -> None:
    _, report = of_item(item, *deltas)
    assert report == (["/annotations"] if paths is None else paths)


@pytest.mark.parametrize(
    ("usage", "body", "paths"),
    [
        (Usage(0, 0), {"tokens": {"input_tokens": 0, "output_tokens": 0}}, []),
        (Usage(3), {"tokens": {"input_tokens": 3}}, []),
        (
            Usage(3, cache_write_input_tokens=2),
            {"tokens": {"input_tokens": 3}},
            ["/usage/cache_write_input_tokens"],
        ),
        (
            Usage(3, input_modalities={"image": 2}),
            {"tokens": {"input_tokens": 3, "image_tokens": 2}},
            [],
        ),
        (
            Usage(3, output_modalities={"audio": 2}),
            {"tokens": {"input_tokens": 3}},
            ["/usage/modalities"],
        ),
        (
            Usage(3, cache_read_input_tokens=0),
            {"tokens": {"input_tokens": 3}, "cached_tokens": 0},
            [],
        ),
    ],
)
def test_usage_is_written_number_by_number(usage: Usage, body: Any, paths: list[str]) -> None:
    for events in (
        [TokenCount(usage), Completed("r", None, "stop")],
        [TokenCount(Usage(99)), Completed("r", None, "stop", usage=usage)],
    ):
        payloads, report = written(*events)
        assert payloads[-1]["delta"]["usage"] == body
        assert report == paths


@each_case(
    "reason, native, sequence, word, paths",
    [
        ("stop", None, None, "COMPLETE", []),
        ("tool_calls", None, None, "TOOL_CALL", []),
        ("stop", "STOP_SEQUENCE", None, "STOP_SEQUENCE", []),
        ("stop", None, "END", "STOP_SEQUENCE", ["/stop_sequence"]),
        ("stop", "end_turn", None, "COMPLETE", []),
        ("stop", "MAX_TOKENS", None, "COMPLETE", []),
        ("tool_calls", "COMPLETE", None, "COMPLETE", []),
        ("length", "COMPLETE", None, "MAX_TOKENS", []),
        ("other", "TIRED", None, "COMPLETE", ["/stop_reason"]),
    ],
)
def test_finish_reason_is_the_own_or_the_nearest(
    reason: Any, native: Any, sequence: Any, word: str, paths: list[str]
) -> None:
    payloads, report = written(Completed("r", None, reason, native, sequence))
    assert payloads[-1]["delta"]["finish_reason"] == word
    assert report == paths


def test_end_mark_is_after_the_end_alone() -> None:
    encode = encoder("cohere")
    assert encode.feed(Created("r")) != b""
    assert encode.close() == b""
    for last in (Completed("r", None, "stop"), Failed(ErrorInfo("overloaded", "no"))):
        encode = encoder("cohere")
        encode.feed(last)
        assert encode.close() == DONE


def test_start_is_written_once_with_the_id_of_the_response() -> None:
    payloads, _ = written(Created("r1"), Created("r2"), Completed("r1", None, "stop"))
    assert [payload["type"] for payload in payloads] == ["message-start", "message-end"]
    assert payloads[0]["id"] == "r1"
    message = {"content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    assert payloads[0]["delta"]["message"] == {"role": "assistant", **message}
    encode = encoder("cohere", response_id="own")
    assert b'"own"' in encode.feed(Completed(None, None, "stop"))


def test_metadata_is_in_the_end_without_keys_of_the_wire() -> None:
    values = {"region": "eu", "usage": 5, "id": "x", "nothing": None}
    payloads, report = written(Created("r"), ResponseMetadata(values), Completed("r", None, "stop"))
    assert payloads[-1]["region"] == "eu"
    assert not {"usage", "id", "nothing"} & payloads[-1].keys()
    assert report != []


def test_citations_of_reasoning_are_before_its_end() -> None:
    item = Reasoning("Hm", native={"citations": [CITED, 5]}, origin=HERE)
    payloads, report = of_item(item, ReasoningContentDelta(0, 0, "Hm"))
    kinds = [entry[0] for entry in short(payloads)]
    assert kinds[-3:] == ["citation-start", "citation-end", "content-end"]
    assert kinds.count("citation-start") == 1
    assert short(payloads)[-3][2] == {"citations": CITED}
    assert report == []
    plain, _ = of_item(Reasoning("Hm", origin=HERE), ReasoningContentDelta(0, 0, "Hm"))
    assert "citation-start" not in [entry[0] for entry in short(plain)]


def test_picture_with_an_address_is_reported_as_lost() -> None:
    picture = Message("assistant", (Text("x"), Image(url="https://x/a.png")))
    assert of_item(picture, OutputTextDelta(0, 0, "x"))[1] == ["/media"]


def test_event_of_another_wire_alone_is_left_out() -> None:
    own = Passthrough("debug", {"type": "debug", "prompt": "x"})
    other = Passthrough("content_block_delta", {"index": 0})
    payloads, report = written(Created("r"), own, other, Completed("r", None, "stop"))
    assert [payload["type"] for payload in payloads[1:-1]] == ["debug"]
    assert report == ["/passthrough"]


def test_usage_object_of_another_wire_is_not_sent() -> None:
    usage = Usage(3, raw={"prompt_tokens": 3})
    payloads, _ = written(Created("r"), Completed("r", None, "stop", usage=usage))
    assert payloads[-1]["delta"]["usage"] == {"tokens": {"input_tokens": 3}}
    own = Usage(3, raw={"tokens": {"input_tokens": 3}, "billed_units": {"input_tokens": 2}})
    payloads, _ = written(Created("r"), Completed("r", None, "stop", usage=own))
    assert payloads[-1]["delta"]["usage"] == own.raw
