"""Every workload parses into what it declares, and is the same bytes every time."""

from __future__ import annotations

import hashlib
import json

import pytest

from streamlib.testing.bench.responses import USAGE, calls_of, reasoning_of, text_of
from streamlib.testing.bench.workloads import EVENT, FAST, WORKLOADS, Workload, chunked, chunking
from streamlib_parsers import WIRE_APIS, FunctionCall, Response, ResponseEvent, accumulate
from tests.support.cases import each_case

NAMED = (
    "chat-text",
    "thinking-then-tools",
    "argument-drip",
    "parallel-calls",
    "keep-alives",
    "huge-line",
    "xml-in-text",
    "gemini-parts",
)
"""With `aws-frames` and `tiny-chunks` the ten named workloads, beside one for each wire."""


def response_of(workload: Workload, chunks: list[bytes]) -> Response:
    parse = workload.parser()
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += parse.feed(chunk)
    return accumulate(events + parse.close())


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
@pytest.mark.parametrize("scale", [1, 2])
def test_workload_parses_into_its_sample_response(workload: Workload, scale: int) -> None:
    expected, events = workload.response(scale), workload.events(scale)
    sizes = {FAST}
    if scale == 1:
        sizes.update(workload.chunks)
    stop_reason = "tool_calls" if calls_of(expected) else "stop"
    for size in sizes:
        response = response_of(workload, chunked(events, size))
        assert (response.status, response.stop_reason) == ("completed", stop_reason)
        assert response.text == text_of(expected)
        assert response.reasoning == reasoning_of(expected)
        calls = [
            (call.name, json.loads(call.arguments))
            for call in response.calls
            if isinstance(call, FunctionCall)
        ]
        assert calls == [(call.name, call.arguments) for call in calls_of(expected)]
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == USAGE


def test_workloads_are_ten_named_and_one_per_wire() -> None:
    assert set(WORKLOADS) == {*NAMED, "aws-frames", "tiny-chunks", *WIRE_APIS}


@each_case("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
def test_workload_is_the_same_bytes_every_time(workload: Workload) -> None:
    first, second = (hashlib.sha256(b"".join(workload.events())).digest() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
def test_chunked_keeps_the_bytes(workload: Workload) -> None:
    events = workload.events()
    assert chunked(events, EVENT) is events
    for size in (3, FAST):
        chunks = chunked(events, size)
        assert b"".join(chunks) == b"".join(events)
        assert {len(chunk) for chunk in chunks[:-1]} <= {size}


def test_chunking_names_the_size() -> None:
    assert [chunking(size) for size in (EVENT, 3, 1024, FAST)] == [
        "an event",
        "3 B",
        "1 KiB",
        "16 KiB",
    ]
