"""The Gemini encoder: its output parses back to the same events (invariant 10).

What the wire cannot carry is missing and named in the report.
"""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    Completed,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    Message,
    Notice,
    Opaque,
    Origin,
    Passthrough,
    Reasoning,
    Response,
    ResponseEvent,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
    parser,
)
from streamlib.request.prompt import Prompt
from streamlib.testing import echo_response
from streamlib.testing.invariants import join_deltas
from streamlib.wires.encoders import encode_all, error_body
from streamlib.wires.gemini.encode_objects import ArgumentBuffer
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import ToolSpec
from streamlib_parsers.limits import LIMITS
from tests.support.cases import each_case
from tests.support.gemini_streams import array, call, chunk, partial_part, sse, text
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording, recordings
from tests.support.wires import parsed as events_of

PROMPT = Prompt(
    input="Weather?",
    tools=[ToolSpec("w", schema={"type": "object", "properties": {"c": {"type": "string"}}})],
    reasoning="low",
)
FOREIGN = Origin("messages", "anthropic")


def parsed(body: bytes) -> list[ResponseEvent]:
    p = parser("gemini")
    return [*p.feed(body), *p.close()]


def comparable(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """Without notices: whoever parses the stream makes them again."""
    return join_deltas(event for event in events if not isinstance(event, Notice))


def reported_paths(events: list[ResponseEvent]) -> set[str]:
    encode = encoder("gemini")
    for event in events:
        encode.feed(event)
    return {change.path for change in encode.report}


def chunks(body: bytes) -> list[dict[str, Any]]:
    return [
        msgspec.json.decode(line.removeprefix(b"data: ").replace(b"\ndata: ", b"\n"))
        for line in body.split(b"\n\n")
        if line
    ]


# --- round trip ---


@each_recording("gemini-generatecontent", [*STREAMS, *PAYLOADS])
def test_recorded_stream_parses_back_equal(recording: Recording) -> None:
    """Streamed arguments come back as a complete call, a little later."""
    events = events_of(recording)
    again = parsed(encode_all("gemini", events))
    assert reported_paths(events) == set()
    calls = [event.index for event in events if isinstance(event, FunctionCallArgumentsDelta)]
    if len(calls) > len(set(calls)):
        assert accumulate(again) == accumulate(events)
    else:
        assert comparable(again) == comparable(events)


@each_recording("gemini-generatecontent", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_response_survives_a_body(recording: Recording) -> None:
    response = accumulate(events_of(recording))
    again = accumulate(parse_body("gemini", encode_body("gemini", response)))
    if response.error is None:
        if response.native_stop_reason is None:
            # A stream without a reason is not complete, so a body has one too.
            again = without_reason(again)
            response = without_reason(response)
        assert again == response
    elif response.error.kind not in ("malformed", "generation_failed"):
        assert (again.error and again.error.kind) == response.error.kind


def without_reason(response: Response) -> Response:
    choices = [
        msgspec.structs.replace(choice, native_stop_reason=None) for choice in response.choices
    ]
    return msgspec.structs.replace(response, native_stop_reason=None, choices=tuple(choices))


PARTS = [
    *(
        text("Hi"),
        text(" there"),
        text("hm", thought=True),
        text("", thoughtSignature="c2ln"),
        text("so", thoughtSignature="c2lo"),
    ),
    *(text("a", partMetadata={"k": 1}), text("hm", thought=True, thoughtSignature="c2lp")),
    *(
        call("f", {"a": 1}, id="c1"),
        call("g", {"b": []}),
        call("f", {"a": 2}, id="c2", thoughtSignature="c2ln"),
        call("g", {}, new=1),
    ),
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo=", "displayName": "x", "odd": 1}},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "c2ln"},
    {"fileData": {"mimeType": "audio/wav", "fileUri": "gs://b/a"}},
    {
        "executableCode": {"id": "e1", "language": "PYTHON", "code": "1.0"},
        "thoughtSignature": "c2ln",
    },
    {"codeExecutionResult": {"id": "e1", "outcome": "OUTCOME_OK"}},
    {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": 1.0}, "odd": 1}},
    {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"r": 1}}},
    {"hologram": {"x": 1}, "thoughtSignature": "c2ln"},
    {"thoughtSignature": "c2ln"},
    {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thought": True},
]
BESIDE: list[dict[str, Any]] = [
    *(
        {},
        {},
        {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "totalTokenCount": 4}},
        {"createTime": "2026-01-01"},
    ),
    {
        "usageMetadata": {
            "promptTokenCount": 3,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 10,
        }
    },
    {"modelStatus": {"x": 1}, "unheard": [1]},
]
IN_CANDIDATE: list[dict[str, Any]] = [
    {},
    {},
    {"safetyRatings": [{"category": "c"}]},
    {"avgLogprobs": -0.5, "tokenCount": 3},
    {"unheard": 2},
]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Chunks of up to two candidates, each with a finish reason at the end."""
    choices = draw(st.integers(1, 2))
    made = []
    for parts in draw(st.lists(st.lists(st.sampled_from(PARTS), max_size=3), max_size=6)):
        index = draw(st.integers(0, choices - 1))
        body = chunk(
            *(_unrepeated(part, f"c{len(made)}{n}") for n, part in enumerate(parts)),
            index=index,
            **draw(st.sampled_from(BESIDE)),
        )
        body["candidates"][0].update(draw(st.sampled_from(IN_CANDIDATE)))
        made.append(body)
    reasons = st.sampled_from(
        ["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", 2, "NEW_REASON"]
    )
    made += [
        chunk(finish=draw(reasons), index=index, **draw(st.sampled_from(BESIDE)))
        for index in range(choices)
    ]
    return sse(*made)


def _unrepeated(part: dict[str, Any], call_id: str) -> dict[str, Any]:
    """Returns a call with a unique id.

    A repeated call may separate two texts, which are joined without it.
    """
    inner = part.get("functionCall", {})
    return {**part, "functionCall": {**inner, "id": call_id}} if "id" in inner else part


@given(streams())
def test_generated_stream_parses_back_equal(body: bytes) -> None:
    events = parsed(body)
    again = parsed(encode_all("gemini", events))
    if generation_failed(accumulate(events)):
        # It is encoded as an error: its text and calls are no result.
        assert isinstance(again[-1], Failed)
        return
    assert comparable(again) == comparable(events)
    assert reported_paths(events) == set()


@given(streams())
def test_generated_response_survives_a_body(body: bytes) -> None:
    response = accumulate(parsed(body))
    again = accumulate(parse_body("gemini", encode_body("gemini", response)))
    if generation_failed(response):
        assert (again.status, again.calls) == ("failed", [])
        return
    assert settled(again) == settled(response)


def generation_failed(response: Response) -> bool:
    """Whether the provider reported a failed generation."""
    return response.error is not None and response.error.kind == "generation_failed"


def settled(response: Response) -> Response:
    """Without notices and generated ids: a body has its candidates one after the other."""
    made = [
        msgspec.structs.replace(choice, items=tuple(_unminted(item) for item in choice.items))
        for choice in response.choices
    ]
    return msgspec.structs.replace(
        response, notices=(), items=tuple(map(_unminted, response.items)), choices=tuple(made)
    )


def _unminted(item: Any) -> Any:
    generated = (
        isinstance(item, (FunctionCall, ServerToolCall, ServerToolResult)) and item.id is None
    )
    return msgspec.structs.replace(item, call_id="") if generated else item


def test_array_of_chunks_equals_their_stream() -> None:
    sent = [chunk(text("Hi")), chunk(call("f", {}), finish="STOP")]
    assert encode_all("gemini", parsed(array(*sent))) == encode_all("gemini", parsed(sse(*sent)))


def test_blocked_prompt_has_no_candidates() -> None:
    for reason in ("PROHIBITED_CONTENT", "NEW_REASON", 1):
        body = sse(
            {
                "promptFeedback": {"blockReason": reason},
                "usageMetadata": {"promptTokenCount": 3},
                "responseId": "r",
            }
        )
        events = parsed(body)
        assert comparable(parsed(encode_all("gemini", events))) == comparable(events)
        assert all("candidates" not in sent for sent in chunks(encode_all("gemini", events)))
        assert b"candidates" not in encode_body("gemini", accumulate(events))


def test_failed_stream_keeps_its_partial_response() -> None:
    events = parsed(
        sse(chunk(text("Hi")), {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}})
    )
    again = parsed(encode_all("gemini", events))
    assert accumulate(again).text == "Hi"
    assert isinstance(again[-1], Failed)
    assert again[-1].error.kind == "overloaded"


# --- what clients rely on ---


def test_every_chunk_has_the_envelope_and_a_text() -> None:
    """Clients read text and usage of each chunk."""
    body = sse(
        chunk(text("Hi"), usageMetadata={"promptTokenCount": 1}),
        chunk(text("!")),
        chunk(finish="STOP"),
    )
    sent = chunks(encode_all("gemini", parsed(body)))
    assert all(
        (chunk_object["responseId"], chunk_object["modelVersion"]) == ("r1", "gemini-x")
        for chunk_object in sent
    )
    assert all(
        "text" in chunk_object["candidates"][0]["content"]["parts"][0] for chunk_object in sent
    )
    assert [chunk_object["candidates"][0].get("finishReason") for chunk_object in sent] == [
        None
    ] * (len(sent) - 1) + ["STOP"]


def test_text_is_sent_at_once() -> None:
    encode = encoder("gemini")
    events = parsed(sse(chunk(text("Hi"))))
    assert b"Hi" in b"".join(encode.feed(event) for event in events[:3])


def test_usage_is_in_the_last_chunk() -> None:
    sent = chunks(
        encode_all(
            "gemini",
            parsed(sse(chunk(text("Hi"), finish="STOP", usageMetadata={"promptTokenCount": 1}))),
        )
    )
    assert len(sent) == 2
    assert sent[-1]["usageMetadata"] == {"promptTokenCount": 1}


def test_call_keeps_the_bytes_of_its_arguments() -> None:
    part = b'{"functionCall":{"name":"f","args":{ "b": 1.0, "a": [1e5]}}}'
    raw = b'data: {"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}\n\n' % part
    assert b'"args":{ "b": 1.0, "a": [1e5]}' in encode_all("gemini", parsed(raw))


def test_repeated_call_is_one_with_its_signature() -> None:
    events = parsed(
        sse(
            chunk(call("f", {"a": 1}, id="c1", thoughtSignature="c2ln")),
            chunk(call("f", {"a": 1}, id="c1"), finish="STOP"),
        )
    )
    again = accumulate(parsed(encode_all("gemini", events)))
    assert [(item.id, item.signature) for item in again.items] == [("c1", "c2ln")]


def test_streamed_arguments_become_a_complete_call() -> None:
    parts = [
        call("book", willContinue=True),
        partial_part("$.city", stringValue="Paris"),
        {"functionCall": {}},
    ]
    events = parsed(sse(*(chunk(part) for part in parts), chunk(text("done"), finish="STOP")))
    again = accumulate(parsed(encode_all("gemini", events)))
    assert [type(item) for item in again.items] == [FunctionCall, Message]
    assert again.calls[0].parsed() == {"city": "Paris"}  # type: ignore[union-attr]
    assert reported_paths(events) == set()


def test_completeness_tests_cost_linear_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = 0

    def is_json(text: str) -> bool:
        nonlocal read
        read += len(text)
        return False

    monkeypatch.setattr("streamlib.wires.gemini.encode_objects.is_json", is_json)
    arguments = ArgumentBuffer()
    for _ in range(5_000):
        arguments.add("}")
        arguments.is_complete(settled=True)
    assert read <= 2 * arguments.size


@pytest.mark.parametrize("arguments", ['{"a', ""])
def test_incomplete_call_is_never_written(arguments: str) -> None:
    incomplete = FunctionCall("c", "f", arguments, status="incomplete")
    assert b"functionCall" not in encode_body(
        "gemini", Response("r", "m", "incomplete", (incomplete,), stop_reason="length")
    )
    assembly = EventAssembler(LIMITS, FOREIGN)
    item = assembly.open(FunctionCall("c", "f"))
    assembly.arguments(item, arguments)
    assembly.close(item, "incomplete")
    assembly.complete("length")
    events = assembly.take()
    assert b"functionCall" not in encode_all("gemini", events)
    assert "/incomplete" in reported_paths(events)


# --- events of other wires ---


def foreign(*items: Any, stop: Any = "stop", **ends: Any) -> list[ResponseEvent]:
    """Returns events of another wire: all items are open before the first is done."""
    assembly = EventAssembler(LIMITS, FOREIGN)
    assembly.identify("resp_1", "m")
    opened = [(assembly.open(_bare(item)), item) for item in items]
    for open_item, item in opened:
        _grow(assembly, open_item, item)
    for open_item, item in opened:
        open_item.fields.update({"signature": item.signature} if item.signature else {})
        assembly.close(open_item)
    assembly.complete(stop, **ends)
    return assembly.take()


def _bare(item: Any) -> Any:
    empty: dict[type, dict[str, Any]] = {
        Message: {"content": ()},
        Reasoning: {"content": "", "summary": ()},
        FunctionCall: {"arguments": ""},
        CustomToolCall: {"input": ""},
    }
    return msgspec.structs.replace(item, signature=None, **empty.get(type(item), {}))


def _grow(assembly: EventAssembler, open_item: Any, item: Any) -> None:
    match item:
        case Message():
            for n, part in enumerate(item.content):
                if isinstance(part, Text):
                    assembly.text(open_item, part.text, n)
                else:
                    assembly.media(
                        open_item, n, part.media_type, part.data, getattr(part, "transcript", None)
                    )
        case Reasoning():
            for n, paragraph in enumerate(item.summary):
                assembly.summary(open_item, paragraph, n)
            assembly.reasoning(open_item, item.content)
        case FunctionCall():
            for letter in item.arguments:
                assembly.arguments(open_item, letter)
        case CustomToolCall():
            assembly.arguments(open_item, item.input)
        case _:
            pass


def test_foreign_parallel_calls_are_complete_with_ids() -> None:
    calls = [
        FunctionCall("toolu_1", "f", '{"a": 1.0}', signature="EqQB"),
        FunctionCall("toolu_2", "g", ""),
    ]
    events = foreign(*calls, stop="tool_calls")
    again = accumulate(parsed(encode_all("gemini", events)))
    assert [(call.id, call.call_id, call.name, call.arguments) for call in again.calls] == [  # type: ignore[union-attr]
        ("toolu_1", "toolu_1", "f", '{"a": 1.0}'),
        ("toolu_2", "toolu_2", "g", "{}"),
    ]
    assert again.stop_reason == "tool_calls"
    assert reported_paths(events) == {"/signature", "/arguments"}
    assert b"EqQB" not in encode_all("gemini", events)


def test_summary_is_reasoning_and_encrypted_state_left_out() -> None:
    events = foreign(Reasoning(summary=["one", "two"], encrypted_content="gAAA"))
    again = accumulate(parsed(encode_all("gemini", events)))
    assert again.reasoning == "one\n\ntwo"
    assert reported_paths(events) == {"/summary", "/encrypted_content"}
    assert b"gAAA" not in encode_all("gemini", events)


def test_foreign_media_and_free_form_calls() -> None:
    audio = Audio(data="UklGRg==", media_type="audio/wav", transcript="hi")
    message = Message(
        "assistant", [Text("see"), Image(data="iVBORw0KGgo=", media_type="image/png"), audio]
    )
    events = foreign(message, CustomToolCall("c", "patch", "*** Begin"))
    again = accumulate(parsed(encode_all("gemini", events)))
    assert again.text == "see"
    kinds = [
        type(part) for item in again.items if isinstance(item, Message) for part in item.content
    ]
    assert kinds == [Text, Image, Audio]
    assert again.calls[0].parsed() == {"input": "*** Begin"}  # type: ignore[union-attr]
    assert reported_paths(events) == {"/transcript", "/custom_tool_call"}


def test_foreign_item_kinds_are_left_out_and_reported() -> None:
    events = foreign(
        ServerToolCall("s", "web_search", "{}"),
        Opaque("hologram", {"type": "hologram"}),
        Message("assistant", [Text("x")]),
    )
    events.insert(2, Passthrough("ping", {}))
    assert [type(item) for item in accumulate(parsed(encode_all("gemini", events))).items] == [
        Message
    ]
    assert reported_paths(events) == {"/ServerToolCall", "/Opaque", "/Passthrough"}


def test_arguments_that_are_not_an_object_are_wrapped() -> None:
    events = foreign(FunctionCall("c", "f", "[1]"))
    assert accumulate(parsed(encode_all("gemini", events))).calls[0].parsed() == {"_raw": "[1]"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "folder",
    ["anthropic-messages", "openai-responses", "openai-chat", "bedrock-converse", "ollama-native"],
)
def test_foreign_responses_keep_their_text_and_calls(folder: str) -> None:
    samples = recordings(folder, STREAMS)[::4]
    if not samples:
        pytest.skip("shared test data is absent: no corpus")
    for recording in samples:
        was = accumulate(events_of(recording))
        now = accumulate(parsed(encode_all("gemini", events_of(recording))))
        if was.error is not None:
            assert now.error is not None, recording.path.name
            continue
        assert (now.text, now.error) == (was.text + was.refusal, None), recording.path.name
        assert [(call.name, call.call_id) for call in now.calls] == [
            (call.name, call.call_id) for call in was.calls
        ], recording.path.name
        assert _counts(now.usage) == _counts(was.usage), recording.path.name


def _counts(usage: Usage | None) -> Any:
    return usage and (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.reasoning_output_tokens,
    )


@each_case(
    "stop, native, sent",
    [
        ("stop", "end_turn", "STOP"),
        ("tool_calls", "tool_use", "STOP"),
        ("length", "max_tokens", "MAX_TOKENS"),
        ("content_filter", "content_filter", "SAFETY"),
        ("refusal", "refusal", "SAFETY"),
        ("pause", "pause_turn", "OTHER"),
        ("other", "load", "OTHER"),
        ("other", "UNEXPECTED_TOOL_CALL", "UNEXPECTED_TOOL_CALL"),
    ],
)
def test_finish_reason_is_the_wires_own_value(stop: Any, native: str, sent: str) -> None:
    events = foreign(Message("assistant", [Text("x")]), stop=stop, native_stop_reason=native)
    assert chunks(encode_all("gemini", events))[-1]["candidates"][0]["finishReason"] == sent


def test_stop_sequence_is_reported() -> None:
    assert reported_paths(foreign(Message("assistant", [Text("x")]), stop_sequence="END")) == {
        "/stop_sequence"
    }


@pytest.mark.parametrize(
    "usage",
    [
        Usage(100, 20, 30, None, 5, raw={"prompt_tokens": 100}),
        Usage(10, 3, reasoning_output_tokens=9),
        Usage(input_modalities={"text": 4}),
    ],
)
def test_usage_of_another_wire_is_translated(usage: Usage) -> None:
    body = encode_body("gemini", Response("r", "m", "completed", usage=usage, stop_reason="stop"))
    again = accumulate(parse_body("gemini", body)).usage
    assert again is not None
    assert again.same_numbers(usage)


@each_case(
    "kind",
    [
        *(
            "overloaded",
            "rate_limited",
            "authentication",
            "not_found",
            "permission",
            "request_too_large",
            "quota_exhausted",
            "cancelled",
        ),
        *("context_window_exceeded", "content_filter", "invalid_request", "server_error"),
    ],
)
def test_errors_keep_their_kind_in_stream_and_body(kind: Any) -> None:
    error = ErrorInfo(kind, "no", retry_after=2.5 if kind == "rate_limited" else None)
    last = parsed(encoder("gemini").feed(Failed(error)))[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.retry_after) == (kind, error.retry_after)
    assert (
        accumulate(
            parse_body("gemini", msgspec.json.encode(error_body("gemini", error)))
        ).error.kind
        == kind
    )  # type: ignore[union-attr]


# --- the official SDK as the reader ---


@pytest.mark.filterwarnings("ignore")
def test_the_official_sdk_reads_an_encoded_stream_and_body() -> None:
    genai: Any = pytest.importorskip("google.genai", reason="the official SDK is the reader here")
    events = echo_response(PROMPT)
    response = accumulate(events)

    def reply(request: httpx.Request) -> httpx.Response:
        if "stream" in request.url.path:
            return httpx.Response(
                200,
                headers={"content-type": "text/event-stream"},
                content=encode_all("gemini", events),
            )
        return httpx.Response(
            200,
            headers={"content-type": "application/json"},
            content=encode_body("gemini", response),
        )

    with httpx.Client(transport=httpx.MockTransport(reply)) as http:
        client = genai.Client(
            api_key="none", http_options=genai.types.HttpOptions(httpx_client=http)
        )
        streamed = list(client.models.generate_content_stream(model="m", contents="x"))
        created = client.models.generate_content(model="m", contents="x")
    for answers in (streamed, [created]):
        parts = [part for chunk in answers for part in chunk.candidates[0].content.parts or ()]
        assert (
            "".join(part.text for part in parts if part.text and part.thought) == response.reasoning
        )
        assert (
            "".join(part.text for part in parts if part.text and not part.thought) == response.text
        )
        assert [(chunk.name, chunk.args) for part in parts if (chunk := part.function_call)] == [
            ("w", {"c": "text"})
        ]
        last = answers[-1]
        assert last.candidates[0].finish_reason.value == "STOP"
        assert last.usage_metadata.prompt_token_count == response.usage.input_tokens  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "folder", ["gemini-generatecontent", "anthropic-messages", "openai-responses", "openai-chat"]
)
def test_the_official_sdk_takes_every_chunk(folder: str) -> None:
    types: Any = pytest.importorskip(
        "google.genai.types", reason="the official SDK is the reader here"
    )
    samples = recordings(folder, STREAMS)[::6]
    if not samples:
        pytest.skip("shared test data is absent: no corpus")
    for recording in samples:
        for body in chunks(encode_all("gemini", events_of(recording))):
            if "error" not in body:
                types.GenerateContentResponse._from_response(response=body, kwargs={})


def test_completed_without_native_reason_is_complete() -> None:
    events = parsed(encode_all("gemini", [Completed(stop_reason="stop")]))
    assert isinstance(events[-1], Completed)
