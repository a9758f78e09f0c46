"""`scripted`: a client whose model says, turn by turn, what the test says."""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from streamlib import (
    Completed,
    CustomToolCall,
    ErrorInfo,
    FunctionCall,
    History,
    Message,
    Prompt,
    Reasoning,
    Refusal,
    RetryPolicy,
    StreamError,
    ToolSpec,
    Usage,
    WireApi,
    assistant,
    user,
)
from streamlib.testing import MODEL, Turn, loopback, scripted
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case

WEATHER: Final = ToolSpec(
    "weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)
CALL: Final = FunctionCall("", "weather", '{"city":"Oslo"}')


def untyped(value: object) -> Any:
    """Hides from the type checkers the mistake that a test makes on purpose."""
    return value


@each_case("wire_api", WIRE_APIS)
async def test_a_model_follows_its_turns(wire_api: WireApi) -> None:
    turns = (["Let me see.", CALL, CALL], "It is sunny.", [Reasoning("Short."), assistant("Yes.")])
    prompt = Prompt(History().user("Weather?"), tools=[WEATHER])
    async with scripted(turns, wire_api=wire_api) as client:
        first = await client.respond(prompt, MODEL)
        assert (first.text, first.stop_reason) == ("Let me see.", "tool_calls")
        assert [call.parsed() for call in first.function_calls] == [{"city": "Oslo"}] * 2
        assert len({call.call_id for call in first.function_calls}) == 2
        outputs = [call.output("18 degrees") for call in first.function_calls]
        history = [*prompt.items, *first.items, *outputs]
        assert await client.text(Prompt(history, tools=[WEATHER]), MODEL) == "It is sunny."
        last = await client.respond("Really?", MODEL)
        assert [type(item) for item in last.items] == [Reasoning, Message]
    assert [request.wire_api for request in client.requests] == [wire_api] * 3
    received = client.requests[1].prompt.items[-2:]
    assert ["18 degrees" in str(output) for output in received] == [True, True]
    assert client.requests[0].prompt.tools[0].name == "weather"
    assert isinstance(client.requests[0].json, dict)
    assert "Weather?" not in repr(client.requests)


async def test_a_request_after_the_last_turn_is_a_clear_error() -> None:
    for wire_api in WIRE_APIS:
        async with scripted(["one", "two"], wire_api=wire_api) as client:
            texts = [await client.text("x", MODEL) for _ in range(2)]
            with pytest.raises(
                StreamError, match="it has 2, and this request is one more"
            ) as caught:
                await client.text("x", MODEL)
        assert (texts, caught.value.kind, len(client.requests)) == (
            ["one", "two"],
            "invalid_request",
            3,
        )


HTTP_KINDS: Final = (
    "authentication",
    "permission",
    "rate_limited",
    "quota_exhausted",
    "overloaded",
    "context_window_exceeded",
    "request_too_large",
    "invalid_request",
    "invalid_history",
    "content_filter",
    "not_found",
    "server_error",
)


async def test_errors_have_their_kind_on_every_wire() -> None:
    """Some wires have no code for a kind: there the message has the words of the service."""
    for wire_api in WIRE_APIS:
        errors = [ErrorInfo(untyped(kind), "no more today") for kind in HTTP_KINDS]
        async with scripted(errors, wire_api=wire_api) as client:
            for kind in HTTP_KINDS:
                with pytest.raises(StreamError, match="no more today") as caught:
                    await client.respond("x", MODEL)
                assert caught.value.kind == kind, wire_api


async def test_an_error_has_its_status_and_its_delay() -> None:
    error = ErrorInfo("rate_limited", "slow down", retry_after=7, status=429)
    async with scripted([error, "later"], wire_api="chat") as client:
        with pytest.raises(StreamError) as caught:
            await client.respond("x", MODEL)
        assert (caught.value.info.status, caught.value.info.retry_after) == (429, 7)
        assert await client.text("x", MODEL) == "later"


async def test_a_retry_takes_a_turn_of_its_own() -> None:
    turns = [ErrorInfo("overloaded", "busy"), "at last"]
    async with scripted(turns, retry=RetryPolicy(base=0)) as client:
        assert await client.text("x", MODEL) == "at last"
    assert len(client.requests) == 2


@each_case("wire_api", WIRE_APIS)
async def test_a_turn_has_its_own_fault_and_end(wire_api: WireApi) -> None:
    turns = [
        Turn("a long enough text to lose", fault="truncate"),
        Turn("half of a", error=ErrorInfo("overloaded", "busy")),
        Turn("no more", stop_reason="length", usage=Usage(input_tokens=70, output_tokens=7)),
        Turn("whole", headers={"x-served-by": "me"}),
    ]
    async with scripted(turns, wire_api=wire_api, errors="event") as client:
        responses = [await client.respond("x", MODEL) for _ in range(4)]
    kinds = [response.error.kind if response.error else None for response in responses]
    assert kinds == ["truncated", "overloaded", None, None]
    assert responses[1].text == "half of a"
    assert (responses[2].stop_reason, responses[2].status) == ("length", "incomplete")
    assert responses[2].usage is not None
    assert (responses[2].usage.input_tokens, responses[2].usage.output_tokens) == (70, 7)
    assert responses[3].text == "whole"


async def test_a_turn_may_stall() -> None:
    turns = [Turn("a long enough text", fault="stall", at=4)]
    quick = Deadlines(first_event=0.02, idle=0.02)
    async with scripted(turns, deadlines=quick, errors="event") as client:
        error = (await client.respond("x", MODEL)).error
    assert error is not None
    assert error.kind == "stalled"


async def test_a_turn_has_its_own_pace() -> None:
    async with scripted([Turn("one two three four", pace=0.01), "one two three four"]) as client:
        seconds: list[float] = []
        for _ in range(2):
            start = anyio.current_time()
            await client.text("x", MODEL)
            seconds.append(anyio.current_time() - start)
    assert seconds[0] >= 0.05


async def test_items_of_other_kinds_arrive() -> None:
    turns = [
        [CustomToolCall("", "run", "ls -l")],
        [Message("assistant", (Refusal("I will not."),))],
    ]
    async with scripted(turns, wire_api="responses") as client:
        first = await client.respond("x", MODEL)
        assert isinstance(first.items[0], CustomToolCall)
        assert (first.items[0].input, first.stop_reason) == ("ls -l", "tool_calls")
        assert (await client.respond("x", MODEL)).refusal == "I will not."


async def test_report_names_what_the_wire_cannot_carry() -> None:
    turns = ["fine", [CustomToolCall("", "run", "ls -l")]]
    for wire_api, paths in (("responses", []), ("messages", ["/turns/1/custom_tool_call"])):
        async with scripted(turns, wire_api=untyped(wire_api)) as client:
            assert [change.path for change in client.report] == paths


async def test_an_event_comes_for_each_word() -> None:
    async with scripted(["one two three"]) as client, client.stream("x", MODEL) as stream:
        events = [event async for event in stream]
    assert [getattr(event, "delta", "") for event in events if hasattr(event, "delta")] == [
        "one",
        " two",
        " three",
    ]
    assert isinstance(events[-1], Completed)


async def test_strict_script_refuses_what_the_service_refuses() -> None:
    async with scripted(["never said"], strict=True) as client:
        with pytest.raises(StreamError, match="Extra inputs are not permitted"):
            await client.respond(Prompt("x", extra={"topp": 1}), MODEL)
    assert client.requests[0].json["topp"] == 1


async def test_failing_requests_use_up_no_turn() -> None:
    async with loopback(
        turns=["one", "two"], fault="truncate", failing=1, client={"errors": "event"}
    ) as client:
        texts = [(await client.respond("x", MODEL)).text for _ in range(4)]
    assert texts[1:] == ["one", "two", "one"]


@each_case(
    "turns, message",
    [
        ("Hello", "turns is a list of turns"),
        ([{"role": "assistant"}], r"turns\[0\]: a turn is a str, an item"),
        (["a", [b"b"]], r"turns\[1\]: a turn is a str, an item"),
        ([CALL.output("x")], r"turns\[0\]: a model does not emit"),
        ([[user("x")]], r"turns\[0\]: a model does not emit"),
        ([], "at least one turn"),
        ([ErrorInfo("truncated", "x")], r"Turn\(…, fault='truncate'\)"),
        ([ErrorInfo("cancelled", "x")], "does not send an error of kind 'cancelled'"),
        ([Turn("x", error=ErrorInfo("stalled", "x"))], r"fault='stall'"),
    ],
)
def test_mistakes_in_a_script_are_errors_at_the_call(turns: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        scripted(untyped(turns))


def test_turn_rejects_values_that_no_turn_has() -> None:
    with pytest.raises(ValueError, match="no fault 'explode'"):
        Turn("x", fault=untyped("explode"))
    with pytest.raises(ValueError, match="stop_reason is one of stop"):
        Turn("x", stop_reason=untyped("end_turn"))
    with pytest.raises(TypeError, match="fualt"):
        Turn("x", **untyped({"fualt": "stall"}))
