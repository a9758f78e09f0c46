"""Several responses and the outputs between them as one message (E1), whatever happens in them.

`tests/real/test_ui_runs.py` gives the same runs to the front ends' own code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from streamlib import encoder, parser
from streamlib.client.stream import CANCELLED
from streamlib.gateway.requests.handler import JsonArray
from streamlib.pipeline import aggregate, coalesce, through
from streamlib.recording import load_events
from streamlib.web import parse_ui_request
from streamlib.web.run_encoder import PendingCalls
from streamlib.wires.missing_deltas import events_of
from streamlib_parsers import (
    Failed,
    FunctionCallOutput,
    Image,
    Message,
    Notice,
    Opaque,
    OutputItemDone,
    Reasoning,
    Response,
    ResponseEvent,
    RunEvent,
    Text,
)
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case
from tests.support.runs import (
    FAILURE,
    SCENARIOS,
    call,
    random_run,
    response,
    said,
    three_steps,
)
from tests.support.ui_requests import vercel_body
from tests.support.ui_streams import open_calls, payloads, read_agui, read_vercel

each_protocol = pytest.mark.parametrize("protocol", ["vercel", "agui"])
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS)


def encoded(protocol: str, run: Sequence[RunEvent], **options: Any) -> bytes:
    encode = encoder(protocol, run=True, **options)
    return b"".join([encode.feed(event) for event in run]) + encode.close()


def read(protocol: str, body: bytes) -> list[dict[str, Any]]:
    """What a strict reader accepts; no call may stay open."""
    if protocol == "vercel":
        parts = read_vercel(body)
        assert not open_calls(parts)
        return parts
    events = read_agui(body)
    ended = {event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_RESULT"}
    started = {event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_START"}
    assert started <= ended | waiting(events[-1])
    return events


@each_protocol
def test_output_needs_an_encoder_of_a_run(protocol: str) -> None:
    # The parts of the next response would stand behind the end of the message.
    output = next(event for event in three_steps() if isinstance(event, FunctionCallOutput))
    encode: Any = encoder(protocol)
    with pytest.raises(TypeError, match=r'run=True .* "run": True in its meta'):
        encode.feed(output)


def waiting(last: dict[str, Any]) -> set[str]:
    """The calls that a run ends with, for the page to answer."""
    outcome = last.get("outcome", {})
    asked = {interrupt["toolCallId"] for interrupt in outcome.get("interrupts", ())}
    return asked | set(outcome.get("pendingToolCallIds", ()))


def kinds(shown: list[dict[str, Any]]) -> list[str]:
    return [part["type"] for part in shown]


@each_protocol
@each_scenario
def test_run_is_one_message(protocol: str, scenario: str) -> None:
    """E1: the second response of a loop made the client fail, and tools stayed open for ever."""
    shown = read(protocol, encoded(protocol, SCENARIOS[scenario]))
    steps = [kind for kind in kinds(shown) if kind in ("start-step", "STEP_STARTED")]
    ends = sum(event.tag in ("completed", "failed") for event in map(tagged, SCENARIOS[scenario]))
    assert len(steps) == ends


def test_ids_of_parts_begin_with_the_step() -> None:
    parts = payloads(encoded("vercel", three_steps()))[:-1]
    ids = [part["id"] for part in parts if part["type"] in ("reasoning-start", "text-start")]
    assert ids == ["1-0", "1-1", "3-0"]


class tagged:  # noqa: N801  # reads as a function
    """The tag of an event, as in its JSON."""

    def __init__(self, event: RunEvent) -> None:
        self.tag = type(event).__struct_config__.tag


@each_protocol
@each_scenario
def test_run_may_stop_after_each_event(protocol: str, scenario: str) -> None:
    """`close` ends open parts and open calls, and says that the run ended early."""
    run = SCENARIOS[scenario]
    for count in range(len(run)):
        shown = read(protocol, encoded(protocol, run[:count]))
        is_between = count > 0 and tagged(run[count - 1]).tag not in STREAMING
        last = kinds(shown)[-1]
        assert last in ("error", "RUN_ERROR") or is_between, (count, run[count - 1])


@each_protocol
def test_run_may_be_cancelled_after_each_event(protocol: str) -> None:
    for run in SCENARIOS.values():
        for count in range(len(run)):
            shown = read(protocol, encoded(protocol, [*run[:count], Failed(CANCELLED)]))
            if protocol == "vercel":
                assert kinds(shown)[-1] in ("abort", "finish", "error")
            else:
                assert kinds(shown)[-1] in ("RUN_FINISHED", "RUN_ERROR")


STREAMING = {
    "rate_limits",
    "created",
    "output_item_added",
    "output_text_delta",
    "reasoning_content_delta",
    "function_call_arguments_delta",
    "output_item_done",
    "token_count",
}
"""Events after which a response has not ended."""


@each_protocol
def test_random_run_keeps_the_protocol(protocol: str) -> None:
    for seed in range(150):
        run = random_run(seed)
        for count in (len(run), len(run) // 2, len(run) // 3):
            read(protocol, encoded(protocol, run[:count]))


@pytest.mark.parametrize("protocol", ["vercel", "agui"])
def test_outputs_belong_to_their_calls(protocol: str) -> None:
    shown = read(protocol, encoded(protocol, three_steps(), **IDS[protocol]))
    if protocol == "vercel":
        assert [
            (part["toolCallId"], part.get("output", part.get("errorText")))
            for part in shown
            if part["type"].startswith("tool-output")
        ] == [
            ("b", "no such city"),
            ("a", "21 °C"),
            ("a-0", [{"type": "text", "text": "sunny"}, {"type": "text", "text": "dry"}]),
        ]
        return
    assert [
        (event["toolCallId"], event["content"], event.get("metadata"))
        for event in shown
        if event["type"] == "TOOL_CALL_RESULT"
    ] == [
        ("b", "no such city", {"is_error": True}),
        ("a", "21 °C", None),
        ("a-0", [{"type": "text", "text": "sunny"}, {"type": "text", "text": "dry"}], None),
    ]


IDS: dict[str, dict[str, str]] = {
    "vercel": {"message_id": "m"},
    "agui": {"thread_id": "t", "run_id": "r"},
}


def test_usage_of_a_run_is_summed() -> None:
    shown = read("vercel", encoded("vercel", three_steps()))
    counts = [
        (usage["inputTokens"], usage["outputTokens"], usage["totalTokens"])
        for part in shown
        if (usage := part.get("messageMetadata", {}).get("usage"))
    ]
    assert counts == [(10, 5, 15), (30, 11, 41), (60, 18, 78), (60, 18, 78)]


def test_usage_of_a_run_is_summed_for_each_model() -> None:
    run: list[RunEvent] = [*response(call("a"), stop="tool_calls", model="big")]
    run += [FunctionCallOutput("a", "1"), *response(call("b"), stop="tool_calls", model="small")]
    run += [FunctionCallOutput("b", "2"), *response(said("ok"), model="big")]
    last = read("agui", encoded("agui", run))[-1]
    assert [(of["model"], of["totalTokens"]) for of in last["usage"]] == [
        ("big", 30),
        ("small", 15),
    ]
    failed = read("agui", encoded("agui", three_steps(error=FAILURE)))[-1]
    assert failed["usage"][0]["totalTokens"] == 30


@each_protocol
def test_page_tools_may_wait_after_the_end(protocol: str) -> None:
    run = response(call("a", "confirm"), call("b"), stop="tool_calls")
    body = encoded(protocol, run, page_tools=["confirm"])
    if protocol == "vercel":
        parts = read_vercel(body)
        assert open_calls(parts) == {"a"}
        assert parts[-1]["finishReason"] == "tool-calls"
        return
    last = read_agui(body)[-1]
    assert last["outcome"] == {"type": "success", "pendingToolCallIds": ["a"]}


def test_output_only_the_provider_knows_answers_its_call() -> None:
    calls = PendingCalls()
    calls.add(call("a"), "a")
    calls.add(call("b"), "b")
    calls.add(Opaque("new_output", {"call_id": "a"}), None)
    assert [waiting.shown_id for waiting in calls.take_unanswerable()] == ["b"]


@each_protocol
def test_calls_of_a_failed_run_are_all_closed(protocol: str) -> None:
    run: list[RunEvent] = [*response(call("a", "confirm"), error=FAILURE)]
    body = encoded(protocol, run, page_tools=["confirm"])
    assert b"the run ended before this call had an output" in body
    read(protocol, body)


@each_protocol
def test_what_comes_after_the_end_is_reported(protocol: str) -> None:
    encode = encoder(protocol, run=True)
    body = b"".join([encode.feed(event) for event in response(said("one"))])
    after = [encode.feed(event) for event in response(said("two"))]
    after.append(encode.feed(FunctionCallOutput("a", "late")))
    assert not any(after)
    assert [change.path for change in encode.report] == ["/run"]
    read(protocol, body + encode.close())


def test_run_can_begin_with_the_output_of_an_earlier_message() -> None:
    """The page answered, and the same message goes on."""
    run: list[RunEvent] = [FunctionCallOutput("a", "yes"), *response(said("ok"))]
    parts = payloads(encoded("vercel", run, message_id="m"))
    assert [part["type"] for part in parts[:3]] == [
        "start",
        "tool-output-available",
        "data-rate-limits",
    ]
    encode = encoder("vercel", run=True)
    assert encode.feed(run[0]) == b""
    assert [change.path for change in encode.report] == ["/outputs"]
    events = read_agui(encoded("agui", run))
    assert kinds(events)[:3] == ["RUN_STARTED", "TOOL_CALL_RESULT", "STEP_STARTED"]


def test_files_in_an_output_have_the_protocols_form() -> None:
    image = Image(data="aGk=", media_type="image/png", native={"detail": "high"})
    run: list[RunEvent] = [*response(call("a"), stop="tool_calls")]
    run.append(FunctionCallOutput("a", [Text("here"), image, Image(url="https://a/b.png")]))
    (result,) = [
        event for event in read("agui", encoded("agui", run)) if event["type"] == "TOOL_CALL_RESULT"
    ]
    data = {"type": "data", "value": "aGk=", "mimeType": "image/png"}
    assert [part.get("source") for part in result["content"]] == [
        None,
        data,
        {"type": "url", "value": "https://a/b.png", "mimeType": "image/png"},
    ]
    body = encoded("vercel", run)
    assert b'"output":[{"type":"text","text":"here"},{"type":"image","data":"aGk="' in body
    assert b"detail" not in body


@each_protocol
def test_run_encoder_refuses_what_is_neither(protocol: str) -> None:
    with pytest.raises(TypeError, match="a str is neither an event nor an output"):
        encoder(protocol, run=True).feed("text")  # type: ignore[arg-type]


def test_json_lines_carry_a_run() -> None:
    lines = encoded("jsonl", three_steps()).splitlines()
    assert len(lines) == len(three_steps())
    assert [json.loads(line)["type"] for line in lines].count("function_call_output") == 3


@each_case("wire", WIRE_APIS)
def test_wire_has_one_response_in_a_stream(wire: str) -> None:
    with pytest.raises(ValueError, match="one response"):
        encoder(wire, run=True)


@each_case("wire", WIRE_APIS)
def test_wires_parser_ignores_pings(wire: Any) -> None:
    assert parsed(wire, pings=3) == parsed(wire, pings=0)


def parsed(wire: Any, *, pings: int) -> list[ResponseEvent]:
    """What the wire's parser reads of a response with pings before each event."""
    encode = encoder(wire)
    body = b""
    for event in response(said("hi"), call("a"), stop="tool_calls"):
        body += encode.ping() * pings + encode.feed(event)
    parse = parser(wire)
    return [*parse.feed(body + encode.close()), *parse.close()]


@each_protocol
@pytest.mark.parametrize("run", [True, False])
def test_ping_is_a_comment_between_events(protocol: str, *, run: bool) -> None:
    encode = encoder(protocol, run=run)
    assert encode.ping() == b": keep-alive\n\n"
    body = b"".join([encode.ping() + encode.feed(event) for event in response(said("hi"))])
    read(protocol, body.replace(encode.ping(), b"") + encode.close())


def test_ping_of_json_lines_is_an_empty_line() -> None:
    encode = encoder("jsonl")
    events = response(said("hi"))
    assert load_events(b"".join([encode.ping() + encode.feed(event) for event in events])) == events


def test_ping_of_a_json_array_is_white_space() -> None:
    """A gateway sent a comment of server-sent events into Gemini's array."""
    encode = JsonArray(encoder("gemini"))
    body = b""
    for event in response(said("hi there")):
        body += encode.ping() + encode.feed(event)
    assert len(json.loads(body + encode.close())) > 1


@each_protocol
@pytest.mark.parametrize("stage", [aggregate, lambda: coalesce(float("inf"))])
def test_stage_before_a_run_encoder_loses_nothing(protocol: str, stage: Any) -> None:
    """Invariant 14, for runs: what is shown is the same, in fewer deltas."""
    for run in SCENARIOS.values():
        staged = through(run, stage())
        expected = read(protocol, encoded(protocol, run, **IDS[protocol]))
        assert texts(read(protocol, encoded(protocol, staged, **IDS[protocol]))) == texts(expected)


def texts(shown: list[dict[str, Any]]) -> dict[Any, Any]:
    """What each part of a message holds, and its output."""
    found: dict[Any, Any] = {}
    for part in shown:
        key = part.get("id") or part.get("toolCallId") or part.get("messageId")
        delta = part.get("delta", part.get("inputTextDelta"))
        if delta is not None:
            found[key] = found.get(key, "") + delta
        elif "output" in part or "errorText" in part or "content" in part:
            found[key, "output"] = part.get("output", part.get("errorText", part.get("content")))
    return found


@each_protocol
def test_item_whose_end_a_stage_dropped_is_ended(protocol: str) -> None:
    events = response(Reasoning("hm"), said("hi"), call("a"), stop="tool_calls")
    left = [event for event in events if not isinstance(event, OutputItemDone)]
    encode = encoder(protocol)
    body = b"".join([encode.feed(event) for event in left]) + encode.close()
    read(protocol, body)
    assert {change.path for change in encode.report} == {"/items/0", "/items/1", "/items/2"}


# --- as the AI SDK sends it ---


def test_declared_tools_are_static_parts() -> None:
    """A page that switches on `tool-weather` rendered nothing."""
    run = [*response(call("a"), call("b", "other"), stop="tool_calls")]
    parts = payloads(encoded("vercel", run, tools=["weather"]))
    dynamic = {part["toolName"]: part.get("dynamic") for part in parts if "toolName" in part}
    assert dynamic == {"weather": None, "other": True}
    assert parse_ui_request("vercel", vercel_body(), tools=["weather"]).encoder_options[
        "tools"
    ] == ["weather"]


def test_metadata_of_the_page_is_in_the_start() -> None:
    start = payloads(encoded("vercel", three_steps(), metadata={"createdAt": 7}))[1]
    assert start == {"type": "start", "messageMetadata": {"createdAt": 7}}


def test_citations_are_at_the_end_of_their_text() -> None:
    annotation = {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 4}
    cited = Message("assistant", (Text("text", annotations=(annotation, {"title": "B"})),))
    events = list(events_of(Response(status="completed", items=(cited,), stop_reason="stop")))
    for version, expected in ((6, None), (7, 2)):
        parts = payloads(encoded("vercel", events, version=version))
        [end] = [part for part in parts if isinstance(part, dict) and part["type"] == "text-end"]
        assert len(end.get("citations", ())) == (expected or 0)
    first, second = end["citations"]
    assert (first["startIndex"], first["endIndex"]) == (0, 4)
    assert (first["source"]["sourceType"], second["source"]["sourceType"]) == ("url", "document")


@pytest.mark.parametrize("protocol", ["vercel", "agui"])
def test_truncated_call_at_the_end_keeps_its_reason(protocol: str) -> None:
    """Pages send it back as a truncated call only with that reason."""
    cut = msgspec.structs.replace(call("a"), status="incomplete", arguments='{"city": "Os')
    events: list[RunEvent] = []
    for event in response(cut, stop="length"):
        if isinstance(event, OutputItemDone):
            events.append(Notice("invalid_arguments", "no JSON", index=event.index))
        events.append(event)
    encode = encoder(protocol, run=True)
    sent = b"".join(map(encode.feed, events)) + encode.close()
    assert b"the call was truncated" in sent
    assert b"before this call had an output" not in sent
