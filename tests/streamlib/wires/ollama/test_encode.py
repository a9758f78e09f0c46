"""The Ollama encoder: its output parses back to the same events (invariant 10).

What the wire cannot carry is missing and named in the report.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Change,
    Completed,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    Message,
    Notice,
    Opaque,
    Origin,
    Passthrough,
    Prompt,
    Reasoning,
    Refusal,
    Response,
    ResponseEvent,
    Text,
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
from streamlib_parsers.limits import LIMITS
from tests.support.cases import each_case
from tests.support.shared import BODIES, STREAMS, WIRES, Recording, each_recording, recordings


def parsed(body: bytes) -> list[ResponseEvent]:
    p = parser("ollama")
    return [*p.feed(body), *p.close()]


def encode_events(encode: Any, events: list[ResponseEvent]) -> bytes:
    return b"".join([*(encode.feed(event) for event in events), encode.close()])


def comparable(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """Without notices: whoever parses the stream makes them again."""
    return join_deltas(event for event in events if not isinstance(event, Notice))


@each_recording("ollama-native", STREAMS)
def test_recorded_stream_parses_back_equal(recording: Recording) -> None:
    events = parsed(recording.body)
    encode = encoder("ollama")
    assert comparable(parsed(encode_events(encode, events))) == comparable(events)
    assert encode.report == []


@each_recording("ollama-native", [*STREAMS, *BODIES])
def test_recorded_response_survives_a_body(recording: Recording) -> None:
    response = accumulate(parsed(recording.body))
    again = accumulate(parse_body("ollama", encode_body("ollama", response)))
    if response.error is not None:
        assert again.error is not None
        return
    assert (again.text, again.reasoning, again.calls) == (
        response.text,
        response.reasoning,
        response.calls,
    )
    assert (again.usage, again.stop_reason, again.model) == (
        response.usage,
        response.stop_reason,
        response.model,
    )


FRAGMENT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["think", "text", "call", "draw"]),
            st.lists(FRAGMENT, min_size=1, max_size=3),
        ),
        max_size=8,
    )
)
def test_generated_response_parses_back_equal(
    script: list[tuple[str, list[str]]],
) -> None:
    assembly = EventAssembler(LIMITS, Origin("ollama"))
    assembly.identify(None, "m")
    last, calls = "", []
    for kind, fragments in script:
        if kind == "call":
            item = assembly.open(FunctionCall(f"c{len(calls)}", "f"))
            assembly.arguments(item, f'{{"a":{msgspec.json.encode("".join(fragments)).decode()}}}')
            calls.append(item)
        elif kind == "draw":
            item = assembly.open(Message("assistant"))
            assembly.media(item, 0, "image/png", "iVBORw0KGgo=")
            assembly.close(item)
        elif kind != last:
            item = assembly.open(Reasoning() if kind == "think" else Message("assistant"))
            for fragment in fragments:
                (assembly.reasoning if kind == "think" else assembly.text)(item, fragment)
            assembly.close(item)
        last = kind
    for item in calls:
        assembly.close(item)
    assembly.usage(Usage(3, 4))
    assembly.complete("tool_calls" if calls else "stop", "stop")
    events = assembly.take()
    again = accumulate(parsed(encode_all("ollama", events)))
    response = accumulate(events)
    assert (again.items, again.stop_reason, again.native_stop_reason) == (
        response.items,
        response.stop_reason,
        "stop",
    )
    assert again.usage.same_numbers(response.usage)  # type: ignore[union-attr]


def lines(body: bytes) -> list[Any]:
    return [msgspec.json.decode(line) for line in body.splitlines()]


def test_every_line_has_done() -> None:
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.identify("r1", "m")
    assembly.text(assembly.open(Message("assistant")), "Hi")
    assembly.usage(Usage(5, 1))
    assembly.complete("length", "max_tokens")
    text, last = lines(encode_all("ollama", assembly.take()))
    head = {"model": "m", "created_at": "1970-01-01T00:00:00Z"}
    assert text == {**head, "message": {"role": "assistant", "content": "Hi"}, "done": False}
    assert last == {
        **head,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "length",
        "prompt_eval_count": 5,
        "eval_count": 1,
    }


def test_foreign_call_is_sent_when_it_is_complete() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    first, second = assembly.open(FunctionCall("a", "f")), assembly.open(FunctionCall("b", "g"))
    assembly.arguments(second, '{"x"')
    assembly.arguments(first, '{"y": 1.0}')
    assembly.arguments(second, ":1}")
    assembly.close(first)
    assembly.close(second)
    assembly.complete("tool_calls")
    body = encode_all("ollama", assembly.take())
    assert b'{"y": 1.0}' in body
    again = accumulate(parsed(body))
    assert [(call.call_id, call.name, call.arguments) for call in again.calls] == [
        ("a", "f", '{"y": 1.0}'),
        ("b", "g", '{"x":1}'),
    ]  # type: ignore[union-attr]
    assert again.stop_reason == "tool_calls"


def test_incomplete_call_is_never_sent() -> None:
    assembly = EventAssembler(LIMITS, Origin("ollama"))
    for name, arguments in (("f", '{"a'), ("", "{}")):
        item = assembly.open(FunctionCall("c", name))
        item.forced_incomplete = not name
        assembly.arguments(item, arguments)
        assembly.close(item)
    assembly.complete("length")
    events = assembly.take()
    encode = encoder("ollama")
    assert b"tool_calls" not in encode_events(encode, events)
    assert b"tool_calls" not in encode_body("ollama", accumulate(events))
    assert [change.path for change in encode.report] == ["/incomplete"]


def test_arguments_with_line_breaks_stay_on_one_line() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    call = assembly.open(FunctionCall("a", "f"))
    assembly.arguments(call, '{\n  "x": "a\\nb"\r\n}')
    assembly.close(call)
    assembly.complete("tool_calls")
    assert accumulate(parsed(encode_all("ollama", assembly.take()))).calls[0].parsed() == {
        "x": "a\nb"
    }  # type: ignore[union-attr]


@pytest.mark.parametrize("arguments", ["[1]", '{"a":1}x', "no JSON", '"{}"'])
def test_arguments_that_are_not_an_object_are_wrapped(arguments: str) -> None:
    """They stand inside the line's own JSON."""
    response = Response(items=(FunctionCall("c", "f", arguments),), status="completed")
    report: list[Change] = []
    body = encode_body("ollama", response, report=report)
    assert accumulate(parse_body("ollama", body)).calls[0].parsed() == {"_raw": arguments}  # type: ignore[union-attr]
    assert "/arguments" in [change.path for change in report]


def test_failed_stream_is_never_done() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    assembly.text(assembly.open(Message("assistant")), "Hi")
    assembly.fail(ErrorInfo("overloaded", "too busy"))
    body = encode_all("ollama", assembly.take())
    assert lines(body)[-1] == {"error": "too busy"}
    assert all(not line.get("done") for line in lines(body))
    again = accumulate(parsed(body))
    assert (again.status, again.text) == ("failed", "Hi")


def test_error_is_a_message_only() -> None:
    error = ErrorInfo("not_found", "model not found")
    assert error_body("ollama", error) == {"error": "model not found"}
    for body in (
        encoder("ollama").feed(Failed(error)),
        encode_body("ollama", Response(status="failed", error=error)),
    ):
        assert accumulate(parse_body("ollama", body)).error.kind == "not_found"  # type: ignore[union-attr]


@each_case(
    "stop, native, expected",
    [
        *(
            ("stop", "stop", "stop"),
            ("tool_calls", "stop", "stop"),
            ("other", "load", "load"),
            ("other", "unload", "unload"),
        ),
        *(
            ("length", "MAX_TOKENS", "length"),
            ("refusal", "refusal", "stop"),
            ("pause", "pause_turn", "stop"),
            ("stop", None, "stop"),
        ),
    ],
)
def test_done_reason_is_the_wires_own_value(stop: Any, native: str | None, expected: str) -> None:
    last = lines(encoder("ollama").feed(Completed(None, "m", stop, native)))[-1]
    assert last["done_reason"] == expected


def test_what_the_wire_cannot_carry_is_reported_once() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    assembly.identify("r1", "m")
    for n in range(2):
        reasoning = assembly.open(Reasoning())
        assembly.summary(reasoning, f"a{n}", 0)
        assembly.summary(reasoning, f"b{n}", 1)
        reasoning.fields["encrypted_content"] = "gAAA"
        assembly.close(reasoning)
    audio = assembly.open(Message("assistant"))
    assembly.text(audio, "so")
    assembly.annotation(audio, {"type": "url_citation"})
    assembly.close(audio)
    refused = assembly.open(Message("assistant"))
    assembly.refusal(refused, "no")
    assembly.close(refused)
    assembly.text(assembly.open(Message("assistant", choice=1)), "other")
    assembly.close(assembly.open(Opaque("hologram", {})))
    custom = assembly.open(CustomToolCall("c", "patch"))
    assembly.arguments(custom, "*** Begin")
    assembly.close(custom)
    assembly.passthrough("hologram", {})
    assembly.metadata({"message": "x", "service_tier": "default"})
    assembly.usage(Usage(10, 5, cache_read_input_tokens=3))
    assembly.complete("tool_calls")
    encode = encoder("ollama")
    again = accumulate(parsed(encode_events(encode, assembly.take())))
    assert (again.reasoning, again.text, again.metadata["service_tier"]) == (
        "a0\n\nb0a1\n\nb1",
        "sono",
        "default",
    )
    assert [call.arguments for call in again.calls] == ['{"input":"*** Begin"}']  # type: ignore[union-attr]
    assert [change.path for change in encode.report] == [
        *(
            "/response_id",
            "/summary",
            "/encrypted_content",
            "/annotations",
            "/refusal",
            "/choices",
            "/Opaque",
            "/custom_tool_call",
            "/Passthrough",
        ),
        *("/metadata/message", "/usage"),
    ]


def test_body_is_one_line_with_everything() -> None:
    items = (
        Reasoning("hm"),
        Message("assistant", (Text("so"), Refusal("!"))),
        FunctionCall("c", "f", '{"a":1}'),
    )
    body = encode_body(
        "ollama",
        Response(None, "m", "completed", items, usage=Usage(1, 2), stop_reason="tool_calls"),
    )
    assert body.count(b"\n") == 1
    again = accumulate(parse_body("ollama", body))
    assert (again.reasoning, again.text, again.stop_reason) == ("hm", "so!", "tool_calls")


@pytest.mark.parametrize("folder", sorted(WIRES))
def test_responses_of_every_wire_keep_text_and_calls(folder: str) -> None:
    samples = recordings(folder, STREAMS)
    if not samples:
        pytest.skip("shared test data is absent: no corpus")
    for recording in samples[:: max(1, len(samples) // 20)]:
        p = parser(recording.wire)  # type: ignore[arg-type]
        events = [
            event
            for event in (*p.feed(recording.body), *p.close())
            if not isinstance(event, Passthrough)
        ]
        response = accumulate(events)
        if response.error is None:
            again = accumulate(parsed(encode_all("ollama", events)))
            text = (
                response.text + response.refusal,
                [
                    (call.name, call.parsed())
                    for call in response.calls
                    if isinstance(call, FunctionCall)
                ],
            )
            assert (again.text, [(call.name, call.parsed()) for call in again.calls]) == text, (
                recording.path.name
            )  # type: ignore[union-attr]


def test_loopback_provider_serves_it() -> None:
    prompt = Prompt(
        input="Weather?", tools=[ToolSpec("w", schema={"type": "object"})], reasoning="low"
    )
    events = echo_response(prompt, "ollama")
    again = accumulate(parsed(encode_all("ollama", events)))
    response = accumulate(events)
    assert (again.text, again.reasoning, len(again.calls)) == (response.text, response.reasoning, 1)


@pytest.mark.parametrize(
    "fragments",
    [['{"k', "0", '": 1}'], ['{"k": ', "{}", "}"], ['{"k": 1}']],
    ids=["a number", "an object", "whole"],
)
def test_argument_fragment_that_is_json_does_not_end_the_call(
    fragments: list[str],
) -> None:
    """A call from a dialect comes in fragments, and one of them may be `0`."""
    assembly = EventAssembler(LIMITS, Origin("ollama"))
    assembly.identify("r1", "m")
    item = assembly.open(FunctionCall("c", "f"))
    for fragment in fragments:
        assembly.arguments(item, fragment)
    assembly.close(item)
    assembly.complete("tool_calls")
    (call,) = accumulate(parsed(encode_all("ollama", assembly.take()))).calls
    assert call.arguments == "".join(fragments)  # type: ignore[union-attr]
