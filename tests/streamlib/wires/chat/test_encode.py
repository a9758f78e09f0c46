"""The Chat encoder: its output parses back to the same events (invariant 10).

The official client reads what it makes of the responses of any wire.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    Choice,
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
    RateLimits,
    Reasoning,
    Refusal,
    Response,
    ResponseEvent,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    Text,
    TokenCount,
    ToolSpec,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
    parser,
)
from streamlib.testing import echo_response
from streamlib.testing.invariants import join_deltas
from streamlib.wires.encoders import encode_all, error_body
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import FinishedChoice
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.wires.chat.reasoning_details import TEXT_OF
from tests.support.cases import each_case
from tests.support.loops import asyncio_alone
from tests.support.sdks import openai
from tests.support.shared import BODIES, STREAMS, WIRES, Recording, each_recording, recordings
from tests.support.thorough import THOROUGH

PROMPT = Prompt(
    input="Weather?",
    tools=[ToolSpec("w", schema={"type": "object", "properties": {"c": {"type": "string"}}})],
    reasoning="low",
)
GIVEN_ID = "chatcmpl-given"


def parsed(body: bytes) -> list[ResponseEvent]:
    p = parser("chat")
    return [*p.feed(body), *p.close()]


def encode_events(encode: Any, events: list[ResponseEvent]) -> bytes:
    return b"".join([*(encode.feed(event) for event in events), encode.close()])


def events_of(assembly: EventAssembler, *items: Any, stop: Any = "stop") -> list[ResponseEvent]:
    """Returns the events of complete items, with one delta per part."""
    for item in items:
        _say(assembly, item)
    assembly.complete(stop)
    return assembly.take()


def _say(assembly: EventAssembler, item: Any) -> None:
    streamed: dict[str, Any] = {"arguments": ""}
    if isinstance(item, Message):
        streamed = {"content": ()}
    elif isinstance(item, Reasoning):
        streamed = {"content": ""}
    opened = assembly.open(msgspec.structs.replace(item, **streamed, signature=None, native=None))
    if isinstance(item, Reasoning):
        assembly.reasoning(opened, item.content)
    elif isinstance(item, Message):
        for n, part in enumerate(item.content):
            if isinstance(part, Refusal):
                assembly.refusal(opened, part.refusal, n)
            else:
                assembly.text(opened, getattr(part, "text", ""), n)
    else:
        assembly.arguments(opened, item.arguments)
    opened.fields.update(signature=item.signature, native=item.native)
    assembly.close(opened)


def own(*items: Any, stop: Any = "stop") -> list[ResponseEvent]:
    return events_of(EventAssembler(LIMITS, Origin("chat")), *items, stop=stop)


# --- round trip ---

ELSEWHERE = (Notice, TokenCount, ResponseMetadata, Passthrough, RateLimits)
"""Event classes that do not come back at their position.

The parser makes them again; usage is sent once, at the end; metadata comes with the next chunk; the
others are left out and reported.
"""


def comparable(events: list[ResponseEvent]) -> list[ResponseEvent]:
    return join_deltas(_comparable(event) for event in events if not isinstance(event, ELSEWHERE))


def _comparable(event: ResponseEvent) -> ResponseEvent:
    """Without `native`, with the id of a response that has none, and with a stop reason: clients
    require one."""
    if isinstance(event, (OutputItemAdded, OutputItemDone)):
        return msgspec.structs.replace(event, item=msgspec.structs.replace(event.item, native=None))
    if isinstance(event, (Created, Completed)) and event.response_id is None:
        event = msgspec.structs.replace(event, response_id=GIVEN_ID)
    if isinstance(event, Completed):
        choices = tuple(
            FinishedChoice(
                end.choice, _stop(end.stop_reason), end.native_stop_reason or _stop(end.stop_reason)
            )
            for end in event.choices
        )
        return Completed(event.response_id, event.model, "stop", None, None, event.usage, choices)
    return event


def _stop(reason: Any) -> Any:
    return "stop" if reason == "other" else reason


@each_recording("openai-chat", STREAMS)
def test_recorded_stream_parses_back_equal(recording: Recording) -> None:
    events = parsed(recording.body)
    if not isinstance(events[-1], Completed):
        return
    encode = encoder("chat", response_id=GIVEN_ID)
    again = parsed(encode_events(encode, events))
    assert comparable(again) == comparable(events)
    assert accumulate(again).metadata == accumulate(events).metadata
    assert {change.path for change in encode.report} <= {"/usage", "/stop_reason"}


@each_recording("openai-chat", [*STREAMS, *BODIES])
def test_recorded_response_survives_a_body(recording: Recording) -> None:
    response = accumulate(parsed(recording.body))
    if response.error is not None:
        return
    again = accumulate(parse_body("chat", encode_body("chat", response)))
    for mine, theirs in zip(again.choices, response.choices, strict=True):
        assert summary(mine) == summary(theirs)
    assert (again.usage, again.model, again.metadata) == (
        response.usage,
        response.model,
        response.metadata,
    )


def summary(choice: Choice) -> Any:
    """Returns what a body has of a choice: one text, one reasoning, complete calls."""
    messages = [item for item in choice.items if isinstance(item, Message)]
    parts = [part for item in messages for part in item.content]
    calls: list[Any] = []
    reasoning = ""
    details: list[Any] = []
    for item in choice.items:
        if isinstance(item, FunctionCall) and item.status == "completed":
            calls.append((item.call_id, item.name, item.arguments, item.signature))
        elif isinstance(item, Reasoning):
            reasoning += item.text
            details += (item.native or {}).get("reasoning_details", ())
    return (
        "".join(item.text for item in messages),
        "".join(part.refusal for part in parts if isinstance(part, Refusal)),
        reasoning,
        calls,
        text_of_details(details),
        [part for part in parts if isinstance(part, (Image, Audio))],
        _stop(choice.stop_reason),
    )


def text_of_details(details: list[Any]) -> tuple[str, list[Any]]:
    """The text of all elements, and the elements without it: a body has it in the first one."""
    texts = [element.get(TEXT_OF.get(element["type"], ""), "") for element in details]
    rest = [
        {key: value for key, value in element.items() if key not in TEXT_OF.values()}
        for element in details
    ]
    return "".join(texts), rest


FRAGMENT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6)
KINDS = st.sampled_from(["think", "text", "refuse", "call"])


@given(
    st.lists(
        st.tuples(KINDS, st.lists(FRAGMENT, min_size=1, max_size=3), st.integers(0, 1)), max_size=8
    ),
    st.randoms(),
)
def test_generated_response_parses_back_equal(
    script: list[tuple[str, list[str], int]], rng: Any
) -> None:
    """Items in any order, of several choices; calls stay open to the end, as on the wire."""
    assembly = EventAssembler(LIMITS, Origin("chat"))
    assembly.identify("r1", "m")
    last: dict[int, str] = {}
    calls: list[Any] = []
    ends: dict[int, str] = {0: "stop"}
    for kind, fragments, choice in script:
        if kind == "call":
            item = assembly.open(FunctionCall(f"c{len(calls)}", "f", choice=choice))
            calls.append(item)
            for fragment in ("{", f'"a":{msgspec.json.encode("".join(fragments)).decode()}', "}"):
                assembly.arguments(item, fragment)
        elif last.get(choice) != kind:
            item = assembly.open(
                Reasoning(choice=choice) if kind == "think" else Message("assistant", choice=choice)
            )
            append = assembly.text
            if kind == "think":
                append = assembly.reasoning
            elif kind == "refuse":
                append = assembly.refusal
            for fragment in fragments:
                append(item, fragment)
            assembly.close(item)
        last[choice] = kind
        ends[choice] = "tool_calls" if kind == "call" else ends.get(choice, "stop")
    for item in calls:
        assembly.close(item)
    assembly.usage(Usage(3, 4, 1, 0, 2))
    assembly.complete(
        "stop",
        choices=[FinishedChoice(choice, "stop", native) for choice, native in sorted(ends.items())],
    )
    events = assembly.take()
    again = parsed(encode_all("chat", events))
    assert items_of(again) == items_of(events)
    assert accumulate(again).usage.same_numbers(accumulate(events).usage)  # type: ignore[union-attr]


def items_of(events: list[ResponseEvent]) -> Any:
    """Returns the items in the order of their start.

    The wire shows the end of an item only by the start of the next one.
    """
    response = accumulate(events)
    return [(choice.index, choice.items) for choice in response.choices]


# --- what clients rely on ---


def chunks(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
    return [line if line == b"[DONE]" else msgspec.json.decode(line) for line in lines]


def test_stream_order_is_role_text_finish_usage_done() -> None:
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.identify("r1", "m")
    assembly.usage(Usage(5, 0))
    assembly.text(assembly.open(Message("assistant")), "Hi")
    assembly.usage(Usage(5, 1))
    assembly.complete("stop", "end_turn")
    first, text, finish, usage, done = chunks(encode_all("chat", assembly.take()))
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    ]
    assert (first["id"], first["object"], first["model"]) == ("r1", "chat.completion.chunk", "m")
    assert text["choices"][0]["delta"] == {"content": "Hi"}
    assert finish["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert (usage["choices"], usage["usage"]) == (
        [],
        {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    )
    assert done == b"[DONE]"


def test_usage_before_the_last_is_no_loss() -> None:
    """Counts are a snapshot that the next one replaces: `/usage` was reported, and it was sent."""
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.identify("r1", "m")
    assembly.usage(Usage(5, 0))
    assembly.usage(Usage(5, 1))
    assembly.complete("stop", "end_turn")
    encode = encoder("chat")
    sent = b"".join([*map(encode.feed, assembly.take()), encode.close()])
    assert b'"completion_tokens":1' in sent
    assert encode.report == []


def test_every_choice_has_role_and_finish_reason() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    for choice in (0, 1):
        item = assembly.open(Message("assistant", choice=choice))
        assembly.text(item, f"t{choice}")
    assembly.complete(
        "stop", choices=[FinishedChoice(0, "stop", "stop"), FinishedChoice(1, "length", "length")]
    )
    choices_of = [
        entry
        for chunk in chunks(encode_all("chat", assembly.take()))[:-1]
        for entry in chunk["choices"]
    ]
    assert [entry["index"] for entry in choices_of if "role" in entry["delta"]] == [0, 1]
    assert [
        (entry["index"], entry["finish_reason"]) for entry in choices_of if entry["finish_reason"]
    ] == [
        (0, "stop"),
        (1, "length"),
    ]


def test_calls_are_numbered_with_id_and_name_once() -> None:
    assembly = EventAssembler(LIMITS, Origin("messages"))
    first, second = assembly.open(FunctionCall("a", "f")), assembly.open(FunctionCall("b", "g"))
    assembly.arguments(second, '{"x"')
    assembly.arguments(first, "{}")
    assembly.arguments(second, ":1}")
    assembly.close(first)
    assembly.close(second)
    assembly.complete("tool_calls", "tool_use")
    calls = [
        call
        for chunk in chunks(encode_all("chat", assembly.take()))[:-1]
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert calls[:2] == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    assert [(call["index"], call["function"]["arguments"]) for call in calls[2:]] == [
        (1, '{"x"'),
        (0, "{}"),
        (1, ":1}"),
    ]


@pytest.mark.parametrize("kind", ["truncated", "overloaded", "malformed", "cancelled"])
def test_failed_stream_has_neither_finish_nor_done(kind: Any) -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    assembly.text(assembly.open(Message("assistant")), "Hi")
    assembly.usage(Usage(1, 1))
    assembly.fail(ErrorInfo(kind, "no"))
    body = encode_all("chat", assembly.take())
    assert b"[DONE]" not in body
    assert all(
        choice["finish_reason"] is None
        for chunk in chunks(body)[:-1]
        for choice in chunk["choices"]
    )
    assert chunks(body)[-1]["error"]["message"] == "no"
    response = accumulate(parsed(body))
    assert (response.error is not None, response.text, response.usage is not None) == (
        True,
        "Hi",
        True,
    )


def test_abandoned_stream_has_no_end_mark() -> None:
    encode = encoder("chat")
    assert encode.feed(Created("r", "m"))
    assert encode.close() == b""


KINDS_OF_ERROR = (
    *(
        "authentication",
        "permission",
        "rate_limited",
        "quota_exhausted",
        "overloaded",
        "context_window_exceeded",
        "request_too_large",
    ),
    *("invalid_request", "content_filter", "not_found", "server_error", "invalid_history"),
)


@each_case("kind", KINDS_OF_ERROR)
def test_errors_keep_their_kind_in_stream_and_body(kind: Any) -> None:
    error = ErrorInfo(kind, "no")
    last = parsed(encoder("chat").feed(Failed(error)))[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind
    assert (
        accumulate(parse_body("chat", msgspec.json.encode(error_body("chat", error)))).error.kind
        == kind
    )  # type: ignore[union-attr]
    assert (
        accumulate(
            parse_body("chat", encode_body("chat", Response(status="failed", error=error)))
        ).error.kind
        == kind
    )  # type: ignore[union-attr]


# --- what the wire can carry ---


def test_body_has_every_choice() -> None:
    items = tuple(Message("assistant", (Text(f"t{n}"),), choice=n) for n in range(2))
    choices = tuple(Choice(n, (items[n],), "stop", "stop") for n in range(2))
    body = msgspec.json.decode(
        encode_body("chat", Response("r", "m", "completed", items[:1], choices, stop_reason="stop"))
    )
    assert [(entry["index"], entry["message"]["content"]) for entry in body["choices"]] == [
        (0, "t0"),
        (1, "t1"),
    ]


def test_own_signed_reasoning_stays_signed_and_is_sent_once() -> None:
    details = [
        {"type": "reasoning.text", "text": "hm", "signature": "Sig", "format": "f", "index": 0}
    ]
    events = own(Reasoning("hm", signature="Sig", native={"reasoning_details": details}))
    again = accumulate(parsed(encode_all("chat", events)))
    assert (again.reasoning, again.items[0].signature) == ("hm", "Sig")
    response = accumulate(parse_body("chat", encode_body("chat", accumulate(events))))
    assert response.items[0].native == {"reasoning_details": details}


def test_own_encrypted_reasoning_is_kept() -> None:
    encrypted = [{"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 0}]
    again = accumulate(
        parsed(
            encode_all(
                "chat",
                own(
                    Reasoning("", native={"reasoning_details": encrypted, "reasoning_opaque": "O"})
                ),
            )
        )
    )
    assert again.items[0].native == {"reasoning_details": encrypted, "reasoning_opaque": "O"}


def test_call_signature_and_unknown_keys_round_trip() -> None:
    call = FunctionCall(
        "c", "f", "{}", signature="Sig", native={"extra_content": {"x": 1}, "function": {"y": 2}}
    )
    again = accumulate(parsed(encode_all("chat", own(call, stop="tool_calls")))).calls[0]
    assert (again.signature, again.native) == ("Sig", call.native)
    response = accumulate(
        parse_body("chat", encode_body("chat", accumulate(own(call, stop="tool_calls"))))
    ).calls[0]
    assert (response.signature, response.native, response.arguments) == ("Sig", call.native, "{}")  # type: ignore[union-attr]


def test_signature_after_its_text_is_reported() -> None:
    encode = encoder("chat")
    again = accumulate(
        parsed(encode_events(encode, own(Message("assistant", (Text("so"),), signature="Sig"))))
    )
    assert [(item.text, item.signature) for item in again.items] == [("so", None), ("", "Sig")]  # type: ignore[union-attr]
    # it is sent, so nothing was dropped
    assert [(change.action, change.path) for change in encode.report] == [("changed", "/signature")]


def test_provider_run_tools_round_trip() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    call = assembly.open(ServerToolCall("call_0", "search", native={"type": "search"}))
    assembly.arguments(call, '{"q":1}')
    assembly.close(call)
    assembly.close(
        assembly.open(ServerToolResult("call_0", "search", "found", native={"type": "search"}))
    )
    assembly.complete("stop")
    again = accumulate(parsed(encode_all("chat", assembly.take()))).items
    assert [(type(item), item.call_id) for item in again] == [
        (ServerToolCall, "call_0"),
        (ServerToolResult, "call_0"),
    ]  # type: ignore[union-attr]
    assert (again[0].arguments, again[1].output) == ('{"q":1}', "found")  # type: ignore[union-attr]


def test_own_unknown_parts_round_trip_in_order() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    assembly.close(assembly.open(Opaque("hologram", {"type": "hologram", "x": 1})))
    assembly.close(assembly.open(Opaque("mcp", {"type": "mcp", "id": "m1"})))
    assembly.complete("stop")
    again = accumulate(parsed(encode_all("chat", assembly.take()))).items
    assert [item.payload for item in again] == [
        {"type": "hologram", "x": 1},
        {"type": "mcp", "id": "m1"},
    ]  # type: ignore[union-attr]


def test_images_audio_and_citations_round_trip() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    text = assembly.open(Message("assistant"))
    assembly.text(text, "so")
    assembly.annotation(text, {"type": "url_citation", "url_citation": {"url": "u"}})
    assembly.close(text)
    image = assembly.open(Message("assistant"))
    assembly.media(image, 0, "image/png", "iVBORw0KGgo=")
    assembly.close(image)
    audio = assembly.open(Message("assistant"))
    assembly.media(audio, 0, None, "AAAA", "hm")
    audio.fields.update(
        content=(Audio("AAAA", name="audio_1", transcript="hm"),),
        native={"audio": {"expires_at": 9}},
    )
    assembly.close(audio)
    assembly.complete("stop")
    events = assembly.take()
    for again in (
        accumulate(parsed(encode_all("chat", events))),
        accumulate(parse_body("chat", encode_body("chat", accumulate(events)))),
    ):
        parts = [part for item in again.items for part in item.content]  # type: ignore[union-attr]
        assert Text("so", ({"type": "url_citation", "url_citation": {"url": "u"}},)) in parts
        assert Image("iVBORw0KGgo=", media_type="image/png") in parts
        assert Audio("AAAA", name="audio_1", transcript="hm") in parts


def test_free_form_calls_keep_their_kind() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    call = assembly.open(CustomToolCall("c", "patch"))
    assembly.arguments(call, "*** Begin")
    assembly.close(call)
    assembly.complete("tool_calls")
    events = assembly.take()
    for again in (
        accumulate(parsed(encode_all("chat", events))),
        accumulate(parse_body("chat", encode_body("chat", accumulate(events)))),
    ):
        assert [(type(item), item.input) for item in again.calls] == [(CustomToolCall, "*** Begin")]  # type: ignore[union-attr]


def test_logprobs_accompany_their_text() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    item = assembly.open(Message("assistant"))
    assembly.text(item, "a", logprobs=[{"token": "a", "logprob": -0.1}])
    assembly.close(item)
    declined = assembly.open(Message("assistant"))
    assembly.refusal(declined, "no", logprobs=[{"token": "no", "logprob": -0.2}])
    assembly.close(declined)
    assembly.complete("stop", "stop")
    events = assembly.take()
    encoded = encode_all("chat", events, response_id=GIVEN_ID)
    assert comparable(parsed(encoded)) == comparable(events)


@each_case(
    "stop, native, expected",
    [
        ("stop", "end_turn", "stop"),
        ("tool_calls", "STOP", "tool_calls"),
        ("length", "max_tokens", "length"),
        ("content_filter", "SAFETY", "content_filter"),
        ("refusal", "refusal", "content_filter"),
        ("pause", "pause_turn", "stop"),
        ("other", "OTHER", "stop"),
        ("stop", None, "stop"),
    ],
)
def test_stop_reasons_of_other_wires_are_translated(
    stop: Any, native: str | None, expected: str
) -> None:
    assembly = EventAssembler(LIMITS, Origin("gemini"))
    assembly.text(assembly.open(Message("assistant")), "x")
    assembly.complete(stop, native)
    events = assembly.take()
    assert chunks(encode_all("chat", events))[-2]["choices"][0]["finish_reason"] == expected
    assert (
        msgspec.json.decode(encode_body("chat", accumulate(events)))["choices"][0]["finish_reason"]
        == expected
    )


def test_refusal_with_text_is_an_ordinary_stop() -> None:
    events = events_of(
        EventAssembler(LIMITS, Origin("responses")),
        Message("assistant", (Refusal("no"),)),
        stop="refusal",
    )
    again = accumulate(parsed(encode_all("chat", events)))
    assert (again.refusal, again.stop_reason, again.native_stop_reason) == ("no", "refusal", "stop")


def test_usage_of_another_wire_is_translated() -> None:
    usage = Usage(
        100,
        20,
        30,
        10,
        5,
        cache_write_5m_input_tokens=10,
        cache_write_1h_input_tokens=0,
        raw={"input_tokens": 60},
    )
    body = encode_body("chat", Response("r", "m", "completed", usage=usage, stop_reason="stop"))
    assert msgspec.json.decode(body)["usage"]["total_tokens"] == 120
    again = accumulate(parse_body("chat", body)).usage
    assert again is not None
    assert again.same_numbers(usage)


def test_what_the_wire_cannot_carry_is_reported_once() -> None:
    assembly = EventAssembler(LIMITS, Origin("messages"))
    for n in range(2):
        reasoning = assembly.open(Reasoning())
        assembly.reasoning(reasoning, f"hm{n}")
        reasoning.fields["signature"] = "EqQB"
        assembly.close(reasoning)
    assembly.passthrough("hologram", {"x": 1})
    assembly.close(assembly.open(ServerToolCall("s", "web_search", "{}")))
    assembly.metadata({"error": "x", "container": {"id": "c"}})
    assembly.complete("stop", "stop_sequence", "END")
    encode = encoder("chat")
    again = accumulate(parsed(encode_events(encode, assembly.take())))
    assert (again.reasoning, again.metadata) == ("hm0hm1", {"container": {"id": "c"}})
    assert [change.path for change in encode.report] == [
        *("/signature", "/items", "/hologram", "/server_tools", "/metadata/error", "/stop_sequence")
    ]


# --- the official client ---


def client(stream: bytes, body: bytes) -> tuple[Any, Any]:
    def reply(request: httpx2.Request) -> httpx2.Response:
        if msgspec.json.decode(request.content).get("stream"):
            return httpx2.Response(
                200, headers={"content-type": "text/event-stream"}, content=stream
            )
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=body)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(reply))
    return http, openai.AsyncOpenAI(
        api_key="none", base_url="http://x", http_client=http, max_retries=0
    )


REQUEST: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


async def read(stream: bytes, body: bytes) -> tuple[Any, Any, Any]:
    """Returns what the client accumulates from a stream, its chunks, and the body."""
    http, sdk = client(stream, body)
    async with http:
        async with sdk.chat.completions.stream(**REQUEST) as events:
            truncation = (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError)
            with contextlib.suppress(*truncation):
                async for _ in events:
                    pass
            summed = events.current_completion_snapshot
        parts = [chunk async for chunk in await _chunks(sdk)]
        return summed, parts, await sdk.chat.completions.create(**REQUEST)


async def _chunks(sdk: Any) -> AsyncIterator[Any]:
    return await sdk.chat.completions.create(**REQUEST, stream=True)  # type: ignore[no-any-return]


@asyncio_alone  # the SDK leaves generators to the collector: trio calls that a leak
async def test_the_official_sdk_reads_an_encoded_stream_and_body() -> None:
    events = echo_response(PROMPT, "chat")
    response = accumulate(events)
    summed, parts, created = await read(encode_all("chat", events), encode_body("chat", response))
    for completion in (summed, created):
        message = completion.choices[0].message
        assert message.content == response.text
        assert (message.tool_calls[0].function.name, message.tool_calls[0].function.arguments) == (
            "w",
            '{"c":"text"}',
        )
        assert (completion.choices[0].finish_reason, completion.usage.completion_tokens) == (
            "tool_calls",
            response.usage.output_tokens,
        )  # type: ignore[union-attr]
    assert (
        "".join(
            getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
            for chunk in parts
            if chunk.choices
        )
        == response.reasoning
    )
    assert created.choices[0].message.reasoning_content == response.reasoning


@asyncio_alone  # the SDK leaves generators to the collector: trio calls that a leak
@pytest.mark.parametrize("folder", sorted(WIRES))
async def test_the_official_sdk_reads_recordings_of_every_wire(folder: str) -> None:
    """A client of OpenAI reads text, calls and usage of another provider's response."""
    samples = recordings(folder, STREAMS)
    if not samples:
        pytest.skip("shared test data is absent: no corpus")
    for recording in samples[:: max(1, len(samples) // (12 if THOROUGH else 6))]:
        p = parser(recording.wire)  # type: ignore[arg-type]
        events = [*p.feed(recording.body), *p.close()]
        response = accumulate(events)
        if response.error is not None:
            continue
        summed, _, created = await read(encode_all("chat", events), encode_body("chat", response))
        for completion in (summed, created):
            message = completion.choices[0].message
            assert (message.content or "") == response.text, recording.path.name
            expected = [(call.call_id, call.name) for call in response.calls]
            if all(item.status == "completed" for item in response.items):
                assert [
                    (call.id, getattr(call, call.type).name) for call in message.tool_calls or ()
                ] == expected, recording.path.name
            assert completion.choices[0].finish_reason


@asyncio_alone  # the SDK leaves generators to the collector: trio calls that a leak
async def test_the_official_sdk_raises_on_a_failed_stream() -> None:
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.text(assembly.open(Message("assistant")), "Hi")
    assembly.fail(ErrorInfo("overloaded", "too busy"))
    http, sdk = client(encode_all("chat", assembly.take()), b"")
    async with http:
        with pytest.raises(openai.APIError, match="too busy"):
            async for _ in await _chunks(sdk):
                pass


@pytest.mark.parametrize(("input_tokens", "reported"), [(5, []), (None, ["/usage"])])
def test_unknown_total_of_usage_is_reported(input_tokens: int | None, reported: list[str]) -> None:
    encode = encoder("chat")
    encode.feed(Created("r", "m"))
    encode.feed(Completed("r", "m", "stop", None, None, Usage(input_tokens, 3)))
    assert [change.path for change in encode.report] == reported
