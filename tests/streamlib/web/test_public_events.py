"""What a browser may see (E4): every field of every event and item has a decision, and it holds."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
from hypothesis import given
from msgspec import Struct

from streamlib import encoder
from streamlib.recording import load_events
from streamlib.request.report import Report
from streamlib.testing.strategies import answers
from streamlib.web.public_errors import TEXTS
from streamlib.web.public_events import FIELDS, PublicView, decisions
from streamlib.wires.encoders import encode_all
from streamlib_parsers import (
    Compaction,
    ErrorInfo,
    ErrorKind,
    FunctionCall,
    Image,
    Message,
    Opaque,
    Origin,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ResponseEvent,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSearchOutput,
    ToolSpec,
    Usage,
)
from streamlib_parsers.events import (
    Completed,
    Failed,
    Notice,
    Passthrough,
    RateLimits,
    ResponseMetadata,
    TokenCount,
    Window,
)
from streamlib_parsers.items import ContentPart, ShellResult
from tests.support.cases import each_case
from tests.support.runs import SCENARIOS

SENT: list[type[Struct]] = [
    *get_args(ResponseEvent),
    *get_args(ResponseItem),
    *get_args(ContentPart),
    *(Usage, Window, ErrorInfo, ShellResult),
]
"""Every class that a line can hold, but for `Origin`, which none does."""


@each_case("kind", SENT, ids=lambda kind: kind.__name__)
def test_every_field_has_a_decision(kind: type[Struct]) -> None:
    """A field that is new fails here, until somebody has decided whether a browser may see it."""
    assert set(decisions(kind)) == set(kind.__struct_fields__)
    assert all(decision.reason for decision in decisions(kind).values())


def test_table_has_no_field_that_is_gone() -> None:
    for kind, own in FIELDS.items():
        assert set(own) <= set(kind.__struct_fields__), kind.__name__


def test_every_kind_of_error_has_a_text() -> None:
    assert set(TEXTS) == set(get_args(ErrorKind))


def lines(*events: Any) -> str:
    encode = encoder("jsonl", public=True)
    return b"".join([encode.feed(event) for event in events]).decode()


ORIGIN = Origin("responses", "openai", "https://SECRET.example", "m", "SECRET")
SECRETS: dict[str, Any] = {
    "endpoint and account": OutputItemDone(0, Message("assistant", (Text("hi"),), origin=ORIGIN)),
    "headers": RateLimits(requests=Window(10, 9), raw={"openai-organization": "SECRET"}),
    "usage": TokenCount(Usage(1, 2, raw={"inference_geo": "SECRET"})),
    "usage of the end": Completed(usage=Usage(1, 2, raw={"tier": "SECRET"})),
    "signature": OutputItemDone(0, Reasoning("hm", signature="SECRET")),
    "encrypted reasoning": OutputItemDone(0, Reasoning(encrypted_content="SECRET")),
    "compaction": OutputItemDone(0, Compaction("SECRET", "SECRET")),
    "fields of an item": OutputItemDone(0, FunctionCall("c", "f", native={"x": "SECRET"})),
    "fields of a part": OutputItemDone(
        0, Message("assistant", (Image(url="https://a/", native={"x": "SECRET"}),))
    ),
    "search results": OutputItemDone(
        0, ServerToolResult("s", "search", [{"url": "u", "encrypted_content": "SECRET"}])
    ),
    "hosted call": OutputItemDone(
        0,
        ServerToolCall(
            "s", "code", native={"type": "x", "outputs": [{"encrypted": "SECRET"}], "y": "SECRET"}
        ),
    ),
    "citations": OutputItemDone(
        0, Message("assistant", (Text("hi", ({"encrypted_index": "SECRET", "url": "u"},)),))
    ),
    "an earlier turn": OutputItemDone(0, Message("developer", (Text("SECRET"),))),
    "found tools": ToolSearchOutput("t", [ToolSpec("f", "SECRET", {"title": "SECRET"})]),
    "unknown item": OutputItemDone(0, Opaque("new", {"x": "SECRET"})),
    "unknown event": Passthrough("new", {"x": "SECRET"}),
    "envelope": ResponseMetadata({"organization": "SECRET"}),
    "notice": Notice("unknown_delta", "SECRET"),
    "error": Failed(
        ErrorInfo("rate_limited", "SECRET", status=429, code="SECRET", detail="SECRET")
    ),
}


@each_case("what", SECRETS)
def test_public_line_does_not_have(what: str) -> None:
    assert "SECRET" in encode_all("jsonl", [SECRETS[what]]).decode()
    assert "SECRET" not in lines(SECRETS[what])


def test_public_error_keeps_kind_and_seconds() -> None:
    error = ErrorInfo("rate_limited", "no", retryable=True, retry_after=7.5, status=429)
    assert json.loads(lines(Failed(error)))["error"] == {
        "kind": "rate_limited",
        "message": TEXTS["rate_limited"],
        "retryable": True,
        "retry_after": 7.5,
    }


def test_report_names_what_was_left_out_once() -> None:
    encode = encoder("jsonl", public=True, run=True)
    for event in [*SCENARIOS["pause"], *SCENARIOS["three steps"]]:
        encode.feed(event)
    paths = [change.path for change in encode.report]
    assert len(paths) == len(set(paths))
    assert {"/rate_limits/raw", "/usage/raw", "/message/origin"} <= set(paths)
    assert encoder("jsonl").report == []


@given(events=answers("responses"))
def test_public_lines_are_the_same_events(events: list[ResponseEvent]) -> None:
    """As many, of the same kinds, with the same texts; nothing is changed twice."""
    body = encode_all("jsonl", events, public=True)
    public = load_events(body)
    assert [type(event) for event in public] == [type(event) for event in events]
    for before, after in zip(events, public, strict=True):
        if isinstance(before, OutputTextDelta):
            assert after == before
    view = PublicView(Report())
    again = [view.of(event) for event in public]
    assert msgspec.json.encode(again) == msgspec.json.encode(public)
    assert b'"origin"' not in body
