"""Runs of several responses, read by the code that front ends run: `ai` 6 and 7, `@ag-ui/client`.

E1: a server-side tool loop could not be sent to either.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from lab.real.ui_readers import Readers, absence, running
from streamlib import encoder
from streamlib_parsers import RunEvent
from streamlib_parsers.events import Event
from tests.real.conftest import ABSENT
from tests.support.runs import FAILURE, SCENARIOS, asking, random_run, response, said, three_steps

pytestmark = pytest.mark.real

READERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "vercel6": ("vercel", {}),
    "vercel7": ("vercel", {"version": 7}),
    "agui": ("agui", {"thread_id": "t", "run_id": "r"}),
}
CLOSED: Final = {"output-available", "output-error", "output-denied", "approval-requested"}
"""States of a tool in which nothing goes on."""
FIGURES: Final[Counter[str]] = Counter()

each_reader = pytest.mark.parametrize("reader", READERS)


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    why = absence()
    if why is not None:
        pytest.skip(f"{ABSENT}: UI readers, {why}")
    with running() as found:
        yield found


def read(readers: Readers, reader: str, run: Sequence[RunEvent], **options: Any) -> dict[str, Any]:
    """What a reader makes of a run, with a ping before each event; nothing may stay open."""
    protocol, own = READERS[reader]
    encode = encoder(protocol, run=True, **own, **options)
    body = b"".join([encode.ping() + encode.feed(event) for event in run]) + encode.close()
    verdict = readers.read(reader, body)
    assert verdict["refused"] == []
    assert left_open(protocol, verdict) == []
    FIGURES[reader] += 1
    return verdict


def left_open(protocol: str, verdict: dict[str, Any]) -> list[Any]:
    """The tools and texts of which a page would show that they still go on."""
    messages = verdict["messages"]
    if protocol == "vercel":
        parts = [part for message in messages for part in message["parts"]]
        tools = [part for part in parts if part["type"] == "dynamic-tool"]
        streaming = [part for part in parts if part.get("state") == "streaming"]
        return [tool for tool in tools if tool["state"] not in CLOSED] + streaming
    calls = {call["id"] for message in messages for call in message.get("toolCalls", ())}
    answered = {message["toolCallId"] for message in messages if message["role"] == "tool"}
    asked = {interrupt["toolCallId"] for interrupt in verdict["interrupts"]}
    return sorted(calls - answered - asked - set(verdict["pending"] or ()))


@each_reader
def test_run_may_stop_after_each_event(readers: Readers, reader: str) -> None:
    for run in SCENARIOS.values():
        for count in range(len(run) + 1):
            read(readers, reader, run[:count])


@each_reader
def test_random_runs_are_accepted(readers: Readers, reader: str) -> None:
    for seed in range(40):
        run = random_run(seed)
        read(readers, reader, run)
        read(readers, reader, run[: len(run) // 2], public=True)


@pytest.mark.parametrize("reader", ["vercel6", "vercel7"])
def test_use_chat_shows_three_steps_as_one_message(readers: Readers, reader: str) -> None:
    verdict = read(readers, reader, three_steps())
    (message,) = verdict["messages"]
    kinds = [part["type"] for part in message["parts"]]
    assert kinds.count("step-start") == 3
    assert [
        part.get("output", part.get("errorText"))
        for part in message["parts"]
        if part["type"] == "dynamic-tool"
    ] == ["21 °C", "no such city", [{"type": "text", "text": t} for t in ("sunny", "dry")]]
    assert message["metadata"]["usage"]["totalTokens"] == 78
    chat = verdict["chat"]
    assert (chat["status"], chat["finishReason"]) == ("ready", "stop")


@pytest.mark.parametrize("reader", ["vercel6", "vercel7"])
def test_use_chat_knows_when_to_try_again(readers: Readers, reader: str) -> None:
    chat = read(readers, reader, three_steps(error=FAILURE), public=True)["chat"]
    assert (chat["status"], chat["isError"]) == ("error", True)
    assert chat["error"] == "The model is overloaded. Try again later."
    assert chat["errors"] == [{"kind": "overloaded", "retryable": True, "retry_after": 7}]


@pytest.mark.parametrize("reader", ["vercel6", "vercel7"])
def test_use_chat_keeps_its_own_message_id(readers: Readers, reader: str) -> None:
    """E2: a repeated response id overwrote the message before."""
    (message,) = read(readers, reader, response(said("hi")))["messages"]
    assert message["id"] != "resp_1"
    (message,) = read(readers, reader, response(said("hi")), message_id="mine")["messages"]
    assert message["id"] == "mine"


@pytest.mark.parametrize("reader", ["vercel6", "vercel7"])
def test_use_chat_asks_for_an_approval(readers: Readers, reader: str) -> None:
    (message,) = read(readers, reader, asking())["messages"]
    (tool,) = [part for part in message["parts"] if part["type"] == "dynamic-tool"]
    assert (tool["state"], tool["approval"]["id"]) == ("approval-requested", "p")


def test_agui_shows_three_steps_in_one_run(readers: Readers) -> None:
    verdict = read(readers, "agui", three_steps())
    roles = [message["role"] for message in verdict["messages"]]
    assert roles == ["reasoning", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert (verdict["outcome"], verdict["pending"], verdict["errors"]) == ("success", [], [])
    failed = read(readers, "agui", three_steps(error=FAILURE), public=True)
    assert failed["data"] == [{"kind": "overloaded", "retryable": True, "retry_after": 7}]
    assert failed["errors"] == ["overloaded: The model is overloaded. Try again later."]


def test_agui_asks_for_an_approval(readers: Readers) -> None:
    verdict = read(readers, "agui", asking())
    assert verdict["outcome"] == "interrupt"
    assert [interrupt["id"] for interrupt in verdict["interrupts"]] == ["p"]


@each_reader
def test_encoder_of_one_response_leaves_tools_open(readers: Readers, reader: str) -> None:
    """What E1 found, so that the tests above cannot pass by a check that finds nothing."""
    protocol, options = READERS[reader]
    encode = encoder(protocol, **options)
    events = [event for event in three_steps() if isinstance(event, Event)]
    body = b"".join([encode.feed(event) for event in events]) + encode.close()
    verdict = readers.read(reader, body)
    assert verdict["refused"] or left_open(protocol, verdict)


def test_figures(readers: Readers, capsys: pytest.CaptureFixture[str]) -> None:
    if not FIGURES:
        pytest.skip("counts what the other tests of this file read: none of them ran")
    with capsys.disabled():
        sys.stdout.write(f"\nruns read, none refused, nothing left open: {dict(FIGURES)}\n")
    assert min(FIGURES.values()) > 300
