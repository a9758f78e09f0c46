"""What an encoder cannot write is in its report, on every wire: stop reasons, hosted calls."""

from __future__ import annotations

import json
from typing import Final, get_args

import pytest

from streamlib import (
    Change,
    FunctionCall,
    Message,
    Opaque,
    Response,
    ServerToolCall,
    ServerToolResult,
    Text,
    TokenCount,
    Usage,
    WireApi,
    accumulate,
    encode_body,
    encoder,
    parse_body,
    parser,
)
from streamlib_parsers.events import (
    Completed,
    Created,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
    StopReason,
)
from streamlib_parsers.items import JsonObject, Origin, ResponseItem
from streamlib_parsers.protocol import WIRE_APIS

WIRES: Final[tuple[WireApi, ...]] = WIRE_APIS
each_wire = pytest.mark.parametrize("wire_api", WIRES)


def stream(item: ResponseItem, stop_reason: StopReason) -> list[ResponseEvent]:
    """A response of one item, done at once."""
    events: list[ResponseEvent] = [Created("resp_1", "m"), OutputItemAdded(0, item)]
    return [*events, OutputItemDone(0, item), Completed("resp_1", "m", stop_reason=stop_reason)]


def encoded(wire_api: WireApi, events: list[ResponseEvent]) -> tuple[bytes, list[Change]]:
    encode = encoder(wire_api, model="m")
    body = b"".join([*[encode.feed(event) for event in events], encode.close()])
    return body, encode.report


def function_calls(response: Response) -> list[FunctionCall]:
    return [item for item in response.items if isinstance(item, FunctionCall)]


def losses(changes: list[Change]) -> list[str]:
    return [change.path for change in changes]


@each_wire
def test_stop_reason_is_read_again_or_reported(wire_api: WireApi) -> None:
    """Converse and Ollama wrote `pause` and `refusal` as an ordinary end, without a word."""
    silent: list[str] = []
    for stop_reason in get_args(StopReason):
        item: ResponseItem = Message("assistant", (Text("Hi"),))
        if stop_reason == "tool_calls":
            item = FunctionCall("call_1", "f", "{}")
        events = stream(item, stop_reason)
        body, report = encoded(wire_api, events)
        parse = parser(wire_api)
        streamed = accumulate([*parse.feed(body), *parse.close()]).stop_reason
        if streamed != stop_reason and "/stop_reason" not in losses(report):
            silent.append(f"stream: {stop_reason} as {streamed}")
        body_report: list[Change] = []
        body = encode_body(wire_api, accumulate(events), model="m", report=body_report)
        whole = accumulate(parse_body(wire_api, body)).stop_reason
        if whole != stop_reason and "/stop_reason" not in losses(body_report):
            silent.append(f"body: {stop_reason} as {whole}")
    assert silent == []


@each_wire
def test_hosted_call_without_its_kind_is_written_or_reported(wire_api: WireApi) -> None:
    """Gemini wrote none, without a word, of a call that it had made itself."""
    origin = Origin(wire_api)
    for item in (
        ServerToolCall("c", "web_search", '{"q":1}', origin=origin),
        ServerToolResult("c", "web_search", {"results": []}, origin=origin),
    ):
        events = stream(item, "stop")
        body, report = encoded(wire_api, events)
        assert b"web_search" in body or report, type(item).__name__
        body_report: list[Change] = []
        body = encode_body(wire_api, accumulate(events), model="m", report=body_report)
        assert b"web_search" in body or body_report, type(item).__name__


@each_wire
def test_empty_arguments_are_read_again_or_reported(wire_api: WireApi) -> None:
    """Gemini wrote {} without a word, and Converse in its bodies only."""
    call = FunctionCall("call_1", "f", "", status="completed")
    events = stream(call, "tool_calls")
    body, report = encoded(wire_api, events)
    parse = parser(wire_api)
    streamed = accumulate([*parse.feed(body), *parse.close()])
    response = accumulate(events)
    whole = accumulate(parse_body(wire_api, encode_body(wire_api, response)))
    arguments = [call.arguments for read in (streamed, whole) for call in function_calls(read)]
    assert arguments[0] == arguments[1]
    assert arguments[0] == "" or "/arguments" in losses(report)


@each_wire
def test_call_that_was_cut_ends_the_same_or_is_reported(wire_api: WireApi) -> None:
    """A provider that says `tool_calls` of it; Responses knows that by a complete call only."""
    item = FunctionCall("call_1", "f", '{"a', status="incomplete")
    body, report = encoded(wire_api, stream(item, "tool_calls"))
    parse = parser(wire_api)
    read = accumulate([*parse.feed(body), *parse.close()])
    named = {"/stop_reason", "/incomplete"} & {*losses(report)}
    assert read.stop_reason == "tool_calls" or read.error is not None or named


@each_wire
@pytest.mark.parametrize(
    "usage",
    [
        Usage(100, 5, cache_read_input_tokens=90, cache_write_input_tokens=20),
        Usage(100, 5, reasoning_output_tokens=30),
        Usage(100, None),
        Usage(None, 5),
    ],
    ids=["cache", "reasoning", "unknown output", "unknown input"],
)
def test_counts_that_disagree_are_read_again_or_reported(wire_api: WireApi, usage: Usage) -> None:
    """More tokens of a cache than of the input: a sum would become another one silently."""
    events = stream(Message("assistant", (Text("Hi"),)), "stop")
    body, report = encoded(wire_api, [events[0], TokenCount(usage), *events[1:]])
    parse = parser(wire_api)
    read = accumulate([*parse.feed(body), *parse.close()]).usage
    assert read is not None
    expected = (usage.input_tokens, usage.output_tokens)
    is_same = (read.input_tokens, read.output_tokens) == expected
    actions = [change.action for change in report if change.path == "/usage"]
    assert is_same or "changed" in actions


@each_wire
def test_unknown_item_of_another_wire_is_left_out_and_reported(wire_api: WireApi) -> None:
    """Cohere and Interactions wrote it as it came, with the state of its provider."""
    made_by: WireApi = "messages" if wire_api == "responses" else "responses"
    payload = {"type": "agent_message", "content": [{"encrypted_content": "c2VjcmV0"}]}
    events = stream(Opaque("agent_message", payload, origin=Origin(made_by)), "stop")
    body, report = encoded(wire_api, events)
    assert b"c2VjcmV0" not in body
    assert [change for change in report if "paque" in change.path or "agent" in change.path]


@pytest.mark.parametrize(
    ("block", "names"),
    [
        ({"text": "Hi", "beam": 2}, "beam"),
        ({"reasoningContent": {"reasoningText": {"text": "Hm"}, "in": 1}, "on": 1}, "in, on"),
        ({"citationsContent": {"content": [{"text": "Hi"}], "citations": [], "in": 1}}, "in"),
        ({"toolUse": {"toolUseId": "c", "name": "f", "input": {}, "(beside)": 5}}, ""),
        ({"toolUse": {"toolUseId": "c", "name": "f", "input": {}}, "(beside)": {"text": ""}}, ""),
    ],
)
def test_keys_of_a_block_of_converse_are_kept_or_named(block: JsonObject, names: str) -> None:
    message = {"role": "assistant", "content": [block]}
    body = json.dumps({"output": {"message": message}, "stopReason": "end_turn"}).encode()
    report: list[Change] = []
    again = encode_body("converse", accumulate(parse_body("converse", body)), report=report)
    if names:
        (change,) = report
        assert change.reason.endswith(f": {names}")
    else:
        assert json.loads(again)["output"]["message"]["content"] == [block]
        assert report == []
