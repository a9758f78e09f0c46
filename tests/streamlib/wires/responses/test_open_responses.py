"""What Open Responses demands of the encoder: members, details of usage, end mark, errors."""

from __future__ import annotations

import json
import random
from typing import Any, Final, get_args

import pytest

from streamlib import Message, Text, WireApi, accumulate, encode_body, encoder, parse_body, parser
from streamlib.testing.responses import random_response
from streamlib.wires.encoders import error_body, request_settings
from streamlib.wires.openai_errors import error_body as openai_error_body
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import Created, ResponseEvent
from streamlib_parsers.items import Origin
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage
from tests.support.cases import each_case
from tests.support.open_responses import (
    EVENTS,
    ServedResponse,
    check_error,
    check_event,
    check_response,
    read_stream,
)

TOOL: Final = {"type": "function", "name": "f", "parameters": {"type": "object"}}
ASKED: Final = {
    "model": "m",
    "input": "Hi",
    "tools": [TOOL],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "top_p": 0.5,
}


def options(**asked: Any) -> dict[str, Any]:
    settings = request_settings("responses", json.dumps({**ASKED, **asked}).encode())
    return {"settings": settings, "created_at": 10, "clock": lambda: 12.5}


def events_of(usage: Usage | None = None) -> list[ResponseEvent]:
    assembler = EventAssembler(LIMITS, Origin("chat"), str)
    assembler.identify("resp_1", "m")
    item = assembler.open(Message("assistant"))
    assembler.text(item, "Hi", 0)
    assembler.finish_with(item, Message("assistant", (Text("Hi"),)))
    if usage is not None:
        assembler.usage(usage)
    assembler.complete("stop")
    return assembler.take()


def test_every_object_of_a_stream_has_every_member() -> None:
    encode = encoder("responses", **options(text={}))
    chunks = [encode.feed(event) for event in events_of(Usage(input_tokens=1, output_tokens=2))]
    events = read_stream(ServedResponse(200, [*chunks, encode.close()]))
    objects = [event["response"] for event in events if "response" in event]
    assert len(objects) == 3
    assert [response["completed_at"] for response in objects] == [None, None, 12]
    assert objects[-1]["usage"]["input_tokens_details"] == {"cached_tokens": 0}


def test_body_has_every_member() -> None:
    response = accumulate(events_of())
    body = json.loads(encode_body("responses", response, **options(text=None)))
    check_response(body)
    assert (body["created_at"], body["completed_at"], body["top_p"]) == (10, 12, 0.5)
    assert body["tools"] == [{**TOOL, "description": None, "strict": None}]


def test_schema_of_the_format_is_repeated_with_its_members() -> None:
    settings = options()["settings"]
    schema_format = ASKED["text"]["format"]
    assert settings["text"] == {"format": {**schema_format, "description": None, "strict": False}}


def test_counts_that_are_unknown_are_reported() -> None:
    usage = Usage(input_tokens=1, output_tokens=2)
    encode = encoder("responses", **options())
    for event in events_of(usage):
        encode.feed(event)
    assert [change.path for change in encode.report] == ["/usage/details"]
    plain = encoder("responses")
    for event in events_of(usage):
        plain.feed(event)
    assert plain.report == []


def test_settings_change_nothing_that_a_parser_reads() -> None:
    """Beside the metadata: the items and the end are those without settings."""
    usage = Usage(1, 2, cache_read_input_tokens=0, reasoning_output_tokens=0)
    response = accumulate(events_of(usage))
    read = accumulate(parse_body("responses", encode_body("responses", response, **options())))
    plain = accumulate(parse_body("responses", encode_body("responses", response)))
    assert (read.items, read.stop_reason) == (plain.items, plain.stop_reason)
    assert read.usage is not None
    assert read.usage.same_numbers(usage)


@pytest.mark.parametrize("wire", ["chat", "messages", "gemini"])
@pytest.mark.parametrize("failing", [False, True])
def test_events_of_any_response_are_of_the_standard(wire: WireApi, failing: bool) -> None:
    """Each is valid, whatever the model sent; reasoning has OpenAI's names, which are beside it."""
    others: set[str] = set()
    for seed in range(20):
        events = random_response(random.Random(seed), wire, failing=failing)
        encode = encoder("responses", **options(text=None))
        for event in payloads([encode.feed(event) for event in events]):
            if event["type"] in EVENTS:
                check_event(event)
            else:
                others.add(event["type"])
    assert others <= {"response.reasoning_text.delta", "response.reasoning_text.done"}


def payloads(chunks: list[bytes]) -> list[dict[str, Any]]:
    lines = b"".join(chunks).splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def test_stream_without_an_end_has_no_end_mark() -> None:
    encode = encoder("responses")
    encode.feed(Created("resp_1", "m"))
    assert encode.close() == b""
    for event in events_of():
        encode.feed(event)
    assert encode.close() == b"data: [DONE]\n\n"


def test_parser_reads_the_end_mark_as_nothing() -> None:
    encode = encoder("responses")
    body = b"".join([*[encode.feed(event) for event in events_of()], encode.close()])
    parse = parser("responses")
    accumulated = accumulate([*parse.feed(body), *parse.close()])
    assert (accumulated.text, accumulated.notices) == ("Hi", ())


@each_case("kind", get_args(ErrorKind))
def test_error_types_keep_the_kind(kind: ErrorKind) -> None:
    """A client of ours reads the same kind from them as from OpenAI's."""
    error = ErrorInfo(kind, "broken")
    body = error_body("responses", error)
    check_error(body)
    assert classify(None, body).kind == classify(None, openai_error_body(error)).kind


def test_other_wires_repeat_no_settings() -> None:
    assert request_settings("chat", b'{"model": "m", "messages": []}') is None
