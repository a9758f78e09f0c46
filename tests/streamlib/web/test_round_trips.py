"""Encoder, page, `parse_ui_request`: only what a report names is lost on the way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from streamlib import ResponseEvent, RunEvent, accumulate
from streamlib.request.prompt import Prompt
from streamlib.testing import echo_response
from streamlib_parsers import FunctionCall, FunctionCallOutput, Message, Reasoning
from tests.support.runs import SCENARIOS, random_run
from tests.support.ui_pages import agui_page, vercel_page
from tests.support.ui_round_trips import (
    TOOLS,
    Trip,
    asked_with,
    encoded,
    unnamed_losses,
    with_own_ids,
)
from tests.support.ui_streams import legal_events

each_protocol = pytest.mark.parametrize("protocol", ["vercel", "agui"])


def trip_of(protocol: str, run: Sequence[RunEvent]) -> Trip:
    body, report = encoded(protocol, run)
    messages = [vercel_page(body)] if protocol == "vercel" else agui_page(body)
    return Trip(asked_with(protocol, messages), report)


@each_protocol
def test_runs_lose_only_what_a_report_names(protocol: str) -> None:
    runs = dict(SCENARIOS)
    for seed in range(150):
        runs[f"seed {seed}"] = random_run(seed)
    for name, run in runs.items():
        assert unnamed_losses(run, trip_of(protocol, run)) == [], name


@each_protocol
@settings(max_examples=40)
@given(events=legal_events())
def test_streams_lose_only_what_a_report_names(protocol: str, events: list[ResponseEvent]) -> None:
    run = with_own_ids(events)
    assert unnamed_losses(run, trip_of(protocol, run)) == []


@each_protocol
def test_items_come_back_in_their_order(protocol: str) -> None:
    first = echo_response(Prompt("Weather?", tools=TOOLS[1:2], reasoning="low"))
    run: list[RunEvent] = [*first, FunctionCallOutput(_call_id(first), "21 °C")]
    run += echo_response(Prompt("hi"))
    history = trip_of(protocol, run).asked.history
    kinds = [type(item) for item in history]
    if protocol == "agui":
        assert kinds.pop(0) is Reasoning
    assert kinds == [Message, FunctionCall, FunctionCallOutput, Message]


def _call_id(events: Sequence[ResponseEvent]) -> str:
    return accumulate(events).function_calls[0].call_id


def test_a_loss_that_no_report_names_is_found() -> None:
    run = SCENARIOS["three steps"]
    trip = trip_of("vercel", run)
    assert unnamed_losses(run, trip) == []
    trip.asked.history.pop()
    assert unnamed_losses(run, trip) == [("text", "".join(sorted("It is sunny. ")))]
