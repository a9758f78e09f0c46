"""Every benchmark measures a right parse: each workload says what it promises."""

from __future__ import annotations

import json

import pytest

from benchmarks.growth import doubled
from benchmarks.workloads import ARGUMENTS, CALLS, TEXTS, THOUGHT, THOUGHTS, WORD, WORKLOADS, chunked
from streamlib_parsers import FunctionCall, Response, accumulate, parser


def response_of(wire: str, chunks: list[bytes]) -> Response:
    p = parser(wire)  # type: ignore[arg-type]
    return accumulate([*(event for chunk in chunks for event in p.feed(chunk)), *p.close()])


@pytest.mark.parametrize("wire", WORKLOADS)
def test_a_workload_parses_into_what_it_promises(wire: str) -> None:
    events = list(WORKLOADS[wire]())
    for chunks in (events, chunked(events)):
        response = response_of(wire, chunks)
        assert (response.status, response.stop_reason) == ("completed", "tool_calls")
        assert response.text == WORD * TEXTS
        assert response.reasoning == THOUGHT * THOUGHTS
        calls = [call for call in response.calls if isinstance(call, FunctionCall)]
        assert [json.loads(call.arguments) for call in calls] == [json.loads(ARGUMENTS)] * CALLS
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == (9, 2000)


@pytest.mark.parametrize("wire", [wire for wire in WORKLOADS if wire not in ("responses", "invoke")])
def test_a_longer_workload_is_still_one_answer(wire: str) -> None:
    assert response_of(wire, doubled(list(WORKLOADS[wire]()), 3)).reasoning == THOUGHT * THOUGHTS * 3
