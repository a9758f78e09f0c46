"""Every benchmark measures a right parse: each workload says what it promises, the same bytes every time."""

from __future__ import annotations

import hashlib
import json

import pytest

from streamlib.bench.answers import USAGE, calls_of, text_of, thought_of
from streamlib.bench.workloads import EVENT, FAST, WORKLOADS, Workload, chunked, chunking
from streamlib_parsers import WIRE_APIS, FunctionCall, Response, accumulate

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
"""With `aws-frames` and `tiny-chunks` the ten that every benchmark can be asked for by name, beside one for each wire."""


def response_of(workload: Workload, chunks: list[bytes]) -> Response:
    parse = workload.parser()
    return accumulate([*(event for chunk in chunks for event in parse.feed(chunk)), *parse.close()])


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda one: one.name)
@pytest.mark.parametrize("scale", [1, 2])
def test_a_workload_parses_into_what_it_promises(workload: Workload, scale: int) -> None:
    promised, events = workload.answer(scale), workload.events(scale)
    for size in {*workload.chunks, FAST} if scale == 1 else {FAST}:
        response = response_of(workload, chunked(events, size))
        assert (response.status, response.stop_reason) == (
            "completed",
            "tool_calls" if calls_of(promised) else "stop",
        )
        assert response.text == text_of(promised)
        assert response.reasoning == thought_of(promised)
        calls = [
            (call.name, json.loads(call.arguments))
            for call in response.calls
            if isinstance(call, FunctionCall)
        ]
        assert calls == [(call.name, call.arguments) for call in calls_of(promised)]
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == USAGE


def test_the_ten_named_workloads_and_every_wire_are_there() -> None:
    assert set(WORKLOADS) == {*NAMED, "aws-frames", "tiny-chunks", *WIRE_APIS}


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda one: one.name)
def test_a_workload_is_the_same_bytes_every_time(workload: Workload) -> None:
    first, second = (hashlib.sha256(b"".join(workload.events())).digest() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda one: one.name)
def test_chunks_are_the_same_bytes(workload: Workload) -> None:
    events = workload.events()
    assert chunked(events, EVENT) is events
    for size in (3, FAST):
        chunks = chunked(events, size)
        assert b"".join(chunks) == b"".join(events)
        assert {len(chunk) for chunk in chunks[:-1]} <= {size}


def test_chunkings_have_names() -> None:
    assert [chunking(size) for size in (EVENT, 3, 1024, FAST)] == [
        "an event",
        "3 B",
        "1 KiB",
        "16 KiB",
    ]
