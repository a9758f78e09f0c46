"""What an encoder cannot write is in its report, on every wire: stop reasons, hosted calls."""

from __future__ import annotations

from typing import Final, get_args

import pytest

from streamlib import (
    Change,
    FunctionCall,
    Message,
    ServerToolCall,
    ServerToolResult,
    Text,
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
from streamlib_parsers.items import Origin, ResponseItem
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
