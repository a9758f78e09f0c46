"""Encoders of other wires and of front ends: what they do with calls of built-in tools."""

from __future__ import annotations

import msgspec
import pytest

from streamlib import ResponseEvent, accumulate, encode_body, encoder, parse_body
from streamlib.gateway.state.envelopes import MADE_BY_MODELS
from streamlib.gateway.state.translate import HIDDEN
from streamlib.request.report import Change
from streamlib_parsers.items import BUILT_IN_CALLS, snake_case
from tests.support.built_in_calls import CALLS
from tests.support.cases import each_case
from tests.support.responses_frames import message

OTHERS = (
    "messages",
    "chat",
    "gemini",
    "interactions",
    "converse",
    "ollama",
    "cohere",
    "vercel",
    "agui",
)


def events_of(name: str) -> list[ResponseEvent]:
    output = [message("Hi", item_id="m"), CALLS[name]]
    body = {"id": "r", "model": "m", "status": "completed", "output": output}
    return parse_body("responses", msgspec.json.encode(body))


def names_call(report: list[Change], kind: str) -> bool:
    return any(kind in change.path or snake_case(kind) in change.path for change in report)


APPROVAL = "mcp_approval_request"
"""What pages can be asked for, too."""

LACKING = [(wire, name) for wire in OTHERS for name in CALLS]
LACKING.remove(("vercel", APPROVAL))
LACKING.remove(("agui", APPROVAL))


@each_case("wire, name", LACKING)
def test_encoder_reports_the_call_that_it_lacks(wire: str, name: str) -> None:
    events = events_of(name)
    kind = type(accumulate(events).items[1]).__name__
    encode = encoder(wire, model="m", response_id="r")
    written = b"".join(encode.feed(event) for event in events) + encode.close()
    assert b"Hi" in written
    assert names_call(encode.report, kind)
    assert CALLS[name]["id"].encode() not in written


@each_case("name", CALLS)
@each_case("wire", ["messages", "chat", "gemini", "interactions", "converse", "ollama", "cohere"])
def test_body_reports_the_call_that_it_lacks(wire: str, name: str) -> None:
    response = accumulate(events_of(name))
    report: list[Change] = []
    written = encode_body(wire, response, report=report)
    assert CALLS[name]["id"].encode() not in written
    assert names_call(report, type(response.items[1]).__name__)


@pytest.mark.parametrize(
    ("wire", "written"),
    [("vercel", b'"type":"tool-approval-request"'), ("agui", b'"type":"interrupt"')],
)
def test_pages_are_asked_for_an_approval(wire: str, written: bytes) -> None:
    encode = encoder(wire)
    sent = b"".join(encode.feed(event) for event in events_of(APPROVAL)) + encode.close()
    assert written in sent
    assert encode.report == []


@pytest.mark.parametrize("name", [name for name in CALLS if name != APPROVAL])
def test_newest_vercel_front_end_gets_a_custom_part(name: str) -> None:
    encode = encoder("vercel", version=7)
    written = b"".join(encode.feed(event) for event in events_of(name)) + encode.close()
    assert f'"kind":"responses.{CALLS[name]["type"]}"'.encode() in written
    assert not names_call(encode.report, type(accumulate(events_of(name)).items[1]).__name__)


def test_gateway_carries_the_calls_in_envelopes() -> None:
    assert set(BUILT_IN_CALLS) <= set(HIDDEN)
    assert set(BUILT_IN_CALLS) <= set(MADE_BY_MODELS)
