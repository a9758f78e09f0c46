"""The Converse encoder: its output parses back to the same events (invariant 10).

botocore reads it, whichever wire the events come from.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Completed,
    Created,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    Image,
    Message,
    Notice,
    Opaque,
    Origin,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    Prompt,
    Reasoning,
    Response,
    ResponseEvent,
    ServerToolCall,
    ServerToolResult,
    ToolSpec,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
)
from streamlib.testing import echo_response
from streamlib.testing.invariants import join_deltas
from streamlib.wires.encoders import encode_all, error_body
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import Text
from streamlib_parsers.limits import LIMITS
from tests.support.bedrock_readers import parsed_events, parsed_response
from tests.support.cases import each_case
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording, recordings
from tests.support.wires import events_of, parsed

TOOL = ToolSpec("w", schema={"type": "object", "properties": {"c": {"type": "string"}}})
FOREIGN = (
    "anthropic-messages",
    "openai-responses",
    "openai-chat",
    "gemini-generatecontent",
    "ollama-native",
)


def comparable(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """Without notices: whoever parses the stream makes them again."""
    return join_deltas(event for event in events if not isinstance(event, Notice))


def again(events: list[ResponseEvent]) -> list[ResponseEvent]:
    return events_of("converse", encode_all("converse", events))


# --- round trip ---


@each_recording("bedrock-converse", [*STREAMS, *PAYLOADS])
def test_recorded_stream_parses_back_equal(recording: Recording) -> None:
    events = parsed(recording)
    assert comparable(again(events)) == comparable(events)


@each_recording("bedrock-converse", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_response_survives_a_body(recording: Recording) -> None:
    response = accumulate(parsed(recording))
    if response.error is not None:
        return
    back = accumulate(parse_body("converse", encode_body("converse", response)))
    items = [
        item
        for item in response.items
        if not (isinstance(item, FunctionCall) and item.status == "incomplete")
    ]
    assert [_settled(item) for item in back.items] == [_settled(item) for item in items]
    for field in ("usage", "stop_reason", "native_stop_reason", "stop_sequence", "metadata"):
        assert getattr(back, field) == getattr(response, field), field


def _settled(item: Any) -> Any:
    """A body has no incomplete item, no call without arguments, and nothing beside a text."""
    arguments = {"arguments": item.arguments or "{}"} if isinstance(item, FunctionCall) else {}
    return msgspec.structs.replace(
        item,
        status="completed",
        native=None if isinstance(item, Message) else item.native,
        **arguments,
    )


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["text", "think", "call", "server", "result", "image"]),
        st.lists(TEXTS, max_size=3),
        st.booleans(),
    ),
    max_size=6,
)


@given(
    STEPS,
    st.sampled_from(["end_turn", "tool_use", "max_tokens", "guardrail_intervened"]),
    st.booleans(),
)
def test_generated_stream_parses_back_equal(steps: list[Any], stop: str, counted: bool) -> None:
    assembly = EventAssembler(LIMITS, Origin("converse"))
    pending = None
    for n, (kind, texts, overlaps) in enumerate(steps):
        item = _begin(assembly, kind, n)
        for text in texts:
            _grow(assembly, item, kind, text)
        if pending is not None:
            assembly.close(pending)
            pending = None
        if overlaps and kind in ("text", "think"):
            pending = item
        else:
            assembly.close(item)
    if pending is not None:
        assembly.close(pending)
    if counted:
        assembly.usage(
            Usage(10, 2, 3, raw={"inputTokens": 7, "outputTokens": 2, "cacheReadInputTokens": 3})
        )
        assembly.metadata({"metrics": {"latencyMs": 1}})
    reasons = {
        "end_turn": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "guardrail_intervened": "content_filter",
    }
    events = assembly.take()
    calls = [
        event.item.status
        for event in events
        if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall)
    ]
    # The parser repairs a reason that contradicts the calls.
    if stop == "end_turn" and "completed" in calls:
        stop = "tool_use"
    elif stop == "tool_use" and not calls:
        stop = "end_turn"
    assembly.complete(reasons[stop], stop)  # type: ignore[arg-type]
    events += assembly.take()
    assert comparable(again(events)) == comparable(events)


def _begin(assembly: EventAssembler, kind: str, n: int) -> Any:
    made: dict[str, Any] = {
        "text": Message("assistant"),
        "think": Reasoning(),
        "call": FunctionCall(f"c{n}", "f"),
        "server": ServerToolCall(f"s{n}", "web", native={"type": "server_tool_use"}),
        "result": ServerToolResult(f"s{n}", "web", [], native={"type": "web_result"}),
        "image": Message("assistant", (unchecked(Image)(media_type="image/png"),)),
    }
    item = assembly.open(made[kind])
    if kind == "text":
        item.part(0)
    return item


def _grow(assembly: EventAssembler, item: Any, kind: str, text: str) -> None:
    if kind == "text":
        assembly.text(item, text)
    elif kind == "think":
        assembly.reasoning(item, text)
        item.fields["signature"] = "EqQB"
    elif kind in ("call", "server") and not item.arguments:
        assembly.arguments(item, '{"a":')
        assembly.arguments(item, msgspec.json.encode(text).decode() + "}")
    elif kind == "result":
        item.fields["output"] = [{"json": {"said": text}}]
    elif kind == "image" and "content" not in item.fields:
        data = base64.b64encode(text.encode()).decode()
        assembly.media(item, 0, "image/png", data)
        item.fields["content"] = (Image(data=data, media_type="image/png"),)


# --- botocore reads it ---


def decoded(body: bytes) -> dict[str, Any]:
    """Returns what a caller of boto3 accumulates from a stream."""
    out: dict[str, Any] = {"text": "", "thoughts": "", "calls": {}, "stops": set(), "end": None}
    for event in parsed_events(body):
        name, value = next(iter(event.items()))
        if name == "contentBlockStart" and "toolUse" in value["start"]:
            out["calls"][value["contentBlockIndex"]] = [value["start"]["toolUse"]["name"], ""]
        elif name == "contentBlockDelta":
            delta = value["delta"]
            out["text"] += delta.get("text", "")
            out["thoughts"] += delta.get("reasoningContent", {}).get("text", "")
            if "toolUse" in delta:
                out["calls"][value["contentBlockIndex"]][1] += delta["toolUse"]["input"]
        elif name == "contentBlockStop":
            out["stops"].add(value["contentBlockIndex"])
        elif name == "messageStop":
            out["end"] = value["stopReason"]
        elif name in ("metadata", "exception"):
            out[name] = value
    return out


def test_botocore_reads_an_encoded_stream_and_body() -> None:
    events = echo_response(Prompt(input="Weather?", tools=[TOOL], reasoning="low"))
    response = accumulate(events)
    read = decoded(encode_all("converse", events))
    assert (read["text"], read["thoughts"]) == (response.text, response.reasoning)
    ((name, arguments),) = read["calls"].values()
    assert (name, msgspec.json.decode(arguments), read["end"]) == ("w", {"c": "text"}, "tool_use")
    usage = response.usage
    assert usage is not None
    assert read["metadata"]["usage"]["outputTokens"] == usage.output_tokens
    assert read["metadata"]["metrics"] == {"latencyMs": 0}
    content = parsed_response(encode_body("converse", response))["output"]["message"]["content"]
    assert content[0]["reasoningContent"]["reasoningText"]["text"] == response.reasoning
    assert (content[1]["text"], content[2]["toolUse"]["input"]) == (response.text, {"c": "text"})


SAMPLES = [recording for folder in FOREIGN for recording in recordings(folder, STREAMS)[::9]]


@each_case("recording", SAMPLES, ids=lambda sample: sample.path.name)
def test_botocore_reads_responses_of_every_other_wire(recording: Recording) -> None:
    """Stream and body have the same text and complete calls, whatever had to be left out."""
    events = parsed(recording)
    response = accumulate(events)
    encode = encoder("converse")
    read = decoded(b"".join([*(encode.feed(event) for event in events), encode.close()]))
    if response.error is not None:
        assert "exception" in read
        return
    texts = [
        item for item in response.items if isinstance(item, Message) and item.role == "assistant"
    ]
    assert read["text"] == response.text + response.refusal or any(
        len(item.content) > 1 for item in texts
    )
    closed = [call for index, call in read["calls"].items() if index in read["stops"]]
    complete_calls = [
        item
        for item in response.items
        if isinstance(item, (FunctionCall, CustomToolCall)) and item.status == "completed"
    ]
    names = [call.name for call in complete_calls]
    assert [name for name, _ in closed if name in names] == names
    assert read["end"] in {
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "content_filtered",
        "model_context_window_exceeded",
    }
    assert read["metadata"]["usage"].keys() >= {"inputTokens", "outputTokens", "totalTokens"}
    assert parsed_response(encode_body("converse", response))["stopReason"] == read["end"]


def test_overlapping_parallel_calls_stay_separate() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    first, second = assembly.open(FunctionCall("a", "f")), assembly.open(FunctionCall("b", "g"))
    for item, text in ((first, '{"x"'), (second, '{"y"'), (first, ":1}"), (second, ":2}")):
        assembly.arguments(item, text)
    assembly.close(second)
    assembly.close(first)
    assembly.complete("tool_calls")
    assert decoded(encode_all("converse", assembly.take()))["calls"] == {
        0: ["f", '{"x":1}'],
        1: ["g", '{"y":2}'],
    }


def test_complete_call_keeps_its_argument_bytes() -> None:
    body = (
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1.0}}}]},'
        b'"finishReason":"STOP"}]}'
    )
    events = parse_body("gemini", body)
    ((name, arguments),) = decoded(encode_all("converse", events))["calls"].values()
    assert (name, arguments) == ("f", '{"a":1.0}')


# --- what the wire can and cannot carry ---


def stream_of(*items: Any, origin: str = "messages", **end: Any) -> list[ResponseEvent]:
    """Returns the events of complete items, each with its text in one delta."""
    assembly = EventAssembler(LIMITS, Origin(origin))  # type: ignore[arg-type]
    verbs: dict[type, Any] = {Message: assembly.text, Reasoning: assembly.reasoning}
    for item in items:
        streamed: dict[str, Any] = {}
        if isinstance(item, Message):
            streamed = {"content": ()}
        elif isinstance(item, Reasoning) and not item.redacted:
            streamed = {"content": ""}
        opened = assembly.open(msgspec.structs.replace(item, signature=None, **streamed))
        if type(item) in verbs and item.text:
            verbs[type(item)](opened, item.text)
        opened.fields["signature"] = item.signature
        assembly.close(opened)
    assembly.complete(**{"stop_reason": "stop", **end})
    return assembly.take()


def test_what_the_wire_cannot_carry_is_reported_once() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    assembly.identify("r", "m")
    item = assembly.open(Message("assistant"))
    assembly.text(item, "a", logprobs=[{"token": "a"}])
    assembly.text(item, "b", logprobs=[{"token": "b"}])
    assembly.annotation(item, {"type": "url_citation"})
    assembly.passthrough("odd", {})
    assembly.metadata({"system_fingerprint": "x"})
    assembly.close(item)
    assembly.complete("stop")
    encode = encoder("converse")
    body = b"".join(encode.feed(event) for event in assembly.take())
    assert decoded(body)["text"] == "ab"
    assert [change.path for change in encode.report] == [
        *(
            "/response_id",
            "/logprobs",
            "/annotations",
            "/passthrough",
            "/metadata/system_fingerprint",
            "/usage",
        ),
    ]


@pytest.mark.parametrize(
    ("origin", "reasoning", "deltas"),
    [
        ("converse", Reasoning("hm", signature="EqQB"), [{"text": "hm"}, {"signature": "EqQB"}]),
        (
            "converse",
            Reasoning(redacted=True, encrypted_content="RXU4"),
            [{"redactedContent": b"Eu8"}],
        ),
        ("responses", Reasoning(redacted=True, encrypted_content="RXU4"), []),
    ],
)
def test_encrypted_state_is_sent_of_its_own_wire_only(
    origin: str, reasoning: Reasoning, deltas: list[Any]
) -> None:
    encode = encoder("converse")
    message = Message("assistant", [Text("so")])
    body = b"".join(encode.feed(event) for event in stream_of(reasoning, message, origin=origin))
    deltas_of = [
        event["contentBlockDelta"]["delta"]
        for event in parsed_events(body)
        if "contentBlockDelta" in event
    ]
    assert [
        delta["reasoningContent"] for delta in deltas_of if "reasoningContent" in delta
    ] == deltas
    assert deltas_of[-1] == {"text": "so"}
    assert bool([change for change in encode.report if "Reasoning" in change.path]) == (not deltas)


def test_summary_is_plain_reasoning_in_paragraphs() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    item = assembly.open(Reasoning())
    assembly.summary(item, "one", 0)
    assembly.summary(item, "two", 1)
    item.fields["encrypted_content"] = "gAAA"
    assembly.close(item)
    assembly.complete("stop")
    encode = encoder("converse")
    assert (
        decoded(b"".join(encode.feed(event) for event in assembly.take()))["thoughts"]
        == "one\n\ntwo"
    )
    assert {change.path for change in encode.report} >= {"/summary", "/encrypted_content"}


def test_free_form_call_is_buffered_until_complete() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    item = assembly.open(CustomToolCall("c", "patch"))
    for text in ("*** Be", 'gin "x"'):
        assembly.arguments(item, text)
    assembly.close(item)
    assembly.complete("tool_calls")
    ((name, arguments),) = decoded(encode_all("converse", assembly.take()))["calls"].values()
    assert (name, msgspec.json.decode(arguments)) == ("patch", {"input": '*** Begin "x"'})


@pytest.mark.parametrize(
    "output",
    ["rain", {"a": 1}, [{"type": "text", "text": "rain"}], [{"text": "rain"}, {"json": [1]}]],
)
def test_foreign_tool_results_are_elements_botocore_knows(output: Any) -> None:
    result = ServerToolResult("s", "web_search", output)
    events = list(
        parsed_events(
            encode_all("converse", stream_of(ServerToolCall("s", "web_search", "{}"), result))
        )
    )
    start = next(
        event["contentBlockStart"]["start"]["toolResult"]
        for event in events
        if "toolResult" in event.get("contentBlockStart", {}).get("start", {})
    )
    assert start == {"toolUseId": "s", "type": "web_search_result"}
    (delta,) = [
        event["contentBlockDelta"]["delta"]["toolResult"]
        for event in events
        if "toolResult" in event.get("contentBlockDelta", {}).get("delta", {})
    ]
    assert [next(iter(element.values())) for element in delta] == (
        ["rain", [1]] if len(output) == 2 else [output]
    )


def test_turns_of_other_roles_are_left_out() -> None:
    """A compaction returns turns of the user."""
    encode = encoder("converse")
    assert (
        decoded(
            b"".join(
                encode.feed(event)
                for event in stream_of(Message("user", [Text("hi")]), origin="responses")
            )
        )["text"]
        == ""
    )
    assert "/Message" in {change.path for change in encode.report}


def test_foreign_image_is_a_block_of_its_own() -> None:
    assembly = EventAssembler(LIMITS, Origin("gemini"))
    for kind, data in (("image/png", "iVBORw0KGgo="), ("image/tiff", "AAAA")):
        item = assembly.open(Message("assistant"))
        assembly.media(item, 0, kind, data)
        assembly.close(item)
    assembly.complete("stop")
    encode = encoder("converse")
    events = list(parsed_events(b"".join(encode.feed(event) for event in assembly.take())))
    starts = [
        event["contentBlockStart"]["start"] for event in events if "contentBlockStart" in event
    ]
    assert starts == [{"image": {"format": "png"}}]
    assert [change.path for change in encode.report if "media" in change.path] == ["/media"]


def test_s3_image_and_encrypted_item_survive_both_ways() -> None:
    assembly = EventAssembler(LIMITS, Origin("converse"))
    item = assembly.open(Message("assistant", (unchecked(Image)(media_type="image/png"),)))
    item.fields["content"] = (Image(url="s3://bucket-1/k", media_type="image/png"),)
    assembly.close(item)
    assembly.complete("stop", "end_turn")
    events = assembly.take()
    assert comparable(again(events)) == comparable(events)
    assert (
        accumulate(parse_body("converse", encode_body("converse", accumulate(events)))).items
        == accumulate(events).items
    )


@pytest.mark.parametrize(
    "image", [Image(url="https://x/y.png"), Image(data="AAAA", media_type="image/tiff")]
)
def test_unsupported_image_is_left_out_of_a_body(image: Image) -> None:
    response = Response(
        None,
        None,
        "completed",
        (Message("assistant", [image]), Message("assistant", [Text("so")])),
        stop_reason="stop",
    )
    assert parsed_response(encode_body("converse", response))["output"]["message"]["content"] == [
        {"text": "so"}
    ]


def test_transcript_is_plain_text() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    item = assembly.open(Message("assistant"))
    assembly.media(item, 0, "audio/wav", "AAAA", "hello ")
    assembly.media(item, 0, "audio/wav", "AAAA", "there")
    assembly.close(item)
    assembly.complete("stop")
    events = assembly.take()
    encode = encoder("converse")
    assert decoded(b"".join(encode.feed(event) for event in events))["text"] == "hello there"
    assert [change.path for change in encode.report] == ["/media", "/media", "/usage"]
    assert parsed_response(encode_body("converse", accumulate(events)))["output"]["message"][
        "content"
    ] == [{"text": "hello there"}]


def test_incomplete_call_is_never_closed_in_a_stream() -> None:
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.arguments(assembly.open(FunctionCall("c", "f")), "{}")
    assembly.fail(ErrorInfo("truncated", "the stream ended"))
    read = decoded(encode_all("converse", assembly.take()))
    assert (read["stops"], read["exception"]) == (set(), "internalServerException")


def test_own_unknown_events_keep_their_order() -> None:
    events = [
        Created(),
        Passthrough("guardrailTrace", {"a": 1}),
        Completed(stop_reason="stop", native_stop_reason="end_turn"),
    ]
    assert [type(event) for event in again(events)] == [Passthrough, Created, Notice, Completed]
    opaque = [
        event.item
        for event in again(stream_of(Opaque("hologram", {"hologram": {"x": 1}}), origin="converse"))
        if isinstance(event, OutputItemAdded)
    ]
    assert isinstance(opaque[0], Opaque)
    assert opaque[0].payload == {"hologram": {"x": 1}}
    foreign = encoder("converse")
    for event in stream_of(Opaque("computer_call", {"type": "computer_call"}), origin="responses"):
        foreign.feed(event)
    assert "/Opaque" in {change.path for change in foreign.report}


@each_case(
    "reason, native, sequence, expected",
    [
        ("stop", "end_turn", None, "end_turn"),
        ("stop", "STOP", None, "end_turn"),
        ("stop", "stop_sequence", "END", "stop_sequence"),
        ("length", "model_context_window_exceeded", None, "model_context_window_exceeded"),
        ("length", "MAX_TOKENS", None, "max_tokens"),
        ("content_filter", "SAFETY", None, "content_filtered"),
        ("refusal", "refusal", None, "content_filtered"),
        ("other", "malformed_tool_use", None, "end_turn"),
    ],
)
def test_stop_reason_is_the_wires_own_value(
    reason: Any, native: str, sequence: str | None, expected: str
) -> None:
    events = stream_of(
        Message("assistant", [Text("a")]),
        stop_reason=reason,
        native_stop_reason=native,
        stop_sequence=sequence,
    )
    assert decoded(encode_all("converse", events))["end"] == expected
    last = again(events)[-1]
    assert isinstance(last, Completed)
    assert last.stop_sequence == sequence


def test_own_unknown_stop_reason_is_kept() -> None:
    events = stream_of(
        Message("assistant", [Text("a")]),
        origin="converse",
        stop_reason="other",
        native_stop_reason="malformed_tool_use",
    )
    assert decoded(encode_all("converse", events))["end"] == "malformed_tool_use"


def test_usage_of_another_wire_is_translated() -> None:
    """Input tokens exclude those of the cache again."""
    usage = Usage(100, 20, 30, 10, 5, 4, 6, raw={"prompt_tokens": 100})
    response = Response("r", "m", "completed", usage=usage, stop_reason="stop")
    body = msgspec.json.decode(encode_body("converse", response))
    assert (body["usage"]["inputTokens"], body["usage"]["totalTokens"]) == (60, 120)
    back = accumulate(parse_body("converse", msgspec.json.encode(body))).usage
    assert back is not None
    assert back.same_numbers(usage)


def test_required_numbers_are_zero_for_a_foreign_response() -> None:
    encode = encoder("converse")
    read = decoded(
        b"".join(
            encode.feed(event)
            for event in stream_of(Message("assistant", [Text("a")]), origin="ollama")
        )
    )
    assert read["metadata"]["usage"] == {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    assert "/usage" in {change.path for change in encode.report}


KINDS = [
    *(
        "overloaded",
        "rate_limited",
        "authentication",
        "not_found",
        "permission",
        "quota_exhausted",
        "invalid_request",
        "server_error",
    ),
]


@each_case("kind", KINDS)
def test_errors_keep_their_kind_in_stream_and_body(kind: Any) -> None:
    error = ErrorInfo(kind, "no")
    last = again([Failed(error)])[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind
    body = msgspec.json.encode(error_body("converse", error))
    failed = accumulate(parse_body("converse", body)).error
    assert failed is not None
    assert failed.kind == kind
    code = parsed_response(body, 400)["Error"]
    assert (code["Code"], code["Message"]) == (msgspec.json.decode(body)["__type"], "no")


def test_recorded_exception_keeps_its_own_object() -> None:
    detail = {"message": "Too many requests", "originalStatusCode": 429}
    error = ErrorInfo(
        "rate_limited", "Too many requests", code="throttlingException", detail=detail
    )
    last = again([Failed(error)])[-1]
    assert isinstance(last, Failed)
    assert (last.error.code, last.error.detail) == ("throttlingException", detail)
    (read,) = parsed_events(encode_all("converse", [Failed(error)]))
    assert read == {"exception": "throttlingException"}
