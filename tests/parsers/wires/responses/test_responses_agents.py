"""OpenAI Responses of several agents: who made an item, whose text it is, who waits for an output.

The wire's facts are those of the types of OpenAI's Python SDK 3.54 (`types/beta`).
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    Accumulator,
    FunctionCall,
    IncompleteOutput,
    Message,
    Notice,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Response,
    ResponseEvent,
    ServerToolCall,
    accumulate,
)
from streamlib_parsers.wires.responses.wire_items import wire_item
from tests.support.responses_frames import (
    Json,
    about,
    added,
    body_of,
    call,
    completed,
    created,
    done,
    events_of,
    finals,
    frame,
    hosted,
    message,
    reasoning,
    response_of,
)

ROOT = {"agent_name": "/root"}
BEE = {"agent_name": "/root/bee"}
CAT = {"agent_name": "/root/bee/cat"}


def delta(text: str, index: int, **values: Any) -> bytes:
    return about("output_text.delta", index, f"it_{index}", content_index=0, delta=text, **values)


def said(text: str, index: int, **values: Any) -> Json:
    return message(text, item_id=f"it_{index}", **values)


def refused(text: str, index: int, **values: Any) -> Json:
    part = {"type": "refusal", "refusal": text}
    return message(item_id=f"it_{index}", **values) | {"content": [part]}


TEAM = [
    said("I ask.", 0, agent=ROOT, phase="commentary"),
    hosted("multi_agent_call", item_id="it_1", call_id="c1", action="spawn_agent", arguments="{}"),
    reasoning("scratch", item_id="it_2", agent=BEE),
    said('{"n": 1}', 3, agent=BEE, phase="final_answer"),
    call('{"a":1}', item_id="it_4", call_id="call_bee", agent=BEE),
    refused("No.", 5, agent=CAT),
    said('{"n": 2}', 6),
]
"""Items of the root and of two others; the root's own are the first, second and last."""


def test_text_reasoning_and_refusal_are_the_roots() -> None:
    response = response_of(created(), completed(*TEAM))
    assert response.text == 'I ask.{"n": 2}'
    assert (response.reasoning, response.refusal) == ("", "")


def test_stop_reason_is_no_refusal_of_another_agent() -> None:
    output = [refused("No.", 0, agent=BEE), hosted("web_search_call", item_id="it_1")]
    assert response_of(created(), completed(*output)).stop_reason == "stop"


def test_parsed_reads_the_last_message_of_the_root() -> None:
    output = [TEAM[0], TEAM[6], TEAM[3] | {"id": "it_9"}]
    assert response_of(created(), completed(*output)).parsed(dict) == {"n": 2}


def test_parsed_waits_for_the_calls_of_all_agents() -> None:
    response = response_of(created(), completed(*TEAM))
    with pytest.raises(IncompleteOutput, match="tool_calls"):
        response.parsed(dict)


def test_calls_and_pending_are_of_all_agents() -> None:
    mine = call("{}", item_id="it_7", call_id="call_root")
    response = response_of(created(), completed(*TEAM, mine))
    for calls in (response.calls, response.pending):
        assert [(call.call_id, call.agent) for call in calls] == [
            ("call_bee", "/root/bee"),
            ("call_root", None),
        ]
    assert (response.stop_reason, response.unfinished) == ("tool_calls", True)


def test_by_agent_gives_the_items_of_each() -> None:
    response = response_of(created(), completed(*TEAM))
    items = response.by_agent()
    assert list(items) == [None, "/root/bee", "/root/bee/cat"]
    assert [len(own) for own in items.values()] == [3, 3, 1]
    assert sum(items.values(), ()) == tuple(
        sorted(response.items, key=lambda item: (item.agent or "", response.items.index(item)))
    )
    assert Response().by_agent() == {None: ()}


def test_calls_of_agents_are_the_providers_own() -> None:
    response = response_of(created(), completed(*TEAM))
    spawn = response.items[1]
    assert isinstance(spawn, ServerToolCall)
    assert (spawn.name, spawn.arguments) == ("spawn_agent", "{}")


# --- the agent of events ---

OVERLAPPING = (
    created(),
    added(message(item_id="it_0", agent=BEE), 0),
    added(message(item_id="it_1"), 1),
    delta("scratch", 0, agent=BEE),
    delta("Hello", 1, agent=ROOT),
    done(said("scratch", 0, agent=BEE), 0),
    done(said("Hello", 1), 1),
    completed(),
)


def test_every_event_of_an_item_names_its_agent() -> None:
    events = events_of(*OVERLAPPING)
    agents: dict[int, set[str | None]] = {}
    for event in events:
        index = getattr(event, "index", None)
        if index is not None:
            agents.setdefault(index, set()).add(event.agent)
    assert agents == {0: {"/root/bee"}, 1: {None}}


def by_event(event: str) -> tuple[bytes, ...]:
    """A message whose agent only one of its events names."""
    return (
        created(),
        added(message(item_id="it_0"), 0)[:-3] + _agent(event == "added"),
        delta("scra", 0, agent=BEE if event == "delta" else None),
        about("output_text.done", text="scratch", agent=BEE if event == "text" else None),
        done(said("scratch", 0), 0)[:-3] + _agent(event == "done"),
        completed(said("scratch", 0)),
    )


def _agent(named: bool) -> bytes:
    """The end of an event's frame, after its agent."""
    if not named:
        return b"}\n\n"
    return b', "agent": %s}\n\n' % json.dumps(BEE).encode()


@pytest.mark.parametrize("event", ["added", "delta", "text", "done"])
def test_agent_of_an_event_alone_is_the_items(event: str) -> None:
    events = events_of(*by_event(event))
    (final,) = finals(events)
    assert (final.agent, final.text) == ("/root/bee", "scratch")
    assert isinstance(events[-2], OutputItemDone)
    assert events[-2].agent == "/root/bee"
    assert accumulate(events).text == ""
    assert wire_item(final)["agent"] == BEE


@pytest.mark.parametrize("event", ["delta", "text"])
def test_snapshot_has_the_agent_of_a_delta(event: str) -> None:
    accumulator = Accumulator()
    for each in events_of(*by_event(event)):
        accumulator.feed(each)
        if each.agent is not None:
            break
    assert accumulator.response.items[0].agent == "/root/bee"
    assert accumulator.response.text == ""


def test_agent_of_text_without_an_item_is_kept() -> None:
    events = events_of(created(), delta("scratch", 0, agent=BEE), completed())
    assert [item.agent for item in finals(events)] == ["/root/bee"]


def test_agent_of_the_item_wins_over_its_events() -> None:
    events = events_of(
        created(),
        added(message(item_id="it_0", agent=CAT), 0),
        delta("a", 0, agent=BEE),
        delta("b", 0, agent=BEE),
        done(said("ab", 0, agent=CAT), 0),
        completed(),
    )
    deltas = [event.agent for event in events if isinstance(event, OutputTextDelta)]
    assert deltas == ["/root/bee/cat", "/root/bee/cat"]
    notices = [event for event in events if isinstance(event, Notice)]
    assert [(notice.code, notice.index) for notice in notices] == [("other_agent", 0)]
    assert "/root/bee" in notices[0].detail


def test_root_named_by_the_item_wins_over_its_events() -> None:
    events = events_of(
        created(),
        added(message(item_id="it_0", agent=ROOT), 0),
        delta("Hello", 0, agent=BEE),
        done(said("Hello", 0, agent=ROOT), 0),
        completed(),
    )
    assert accumulate(events).text == "Hello"


def test_event_of_unknown_kind_has_its_agent() -> None:
    events = events_of(created(), frame("response.hologram", agent=BEE, beam=1), completed())
    (passed,) = (event for event in events if isinstance(event, Passthrough))
    assert (passed.agent, passed.data["beam"]) == ("/root/bee", 1)


def test_audio_belongs_to_the_newest_message_of_its_agent() -> None:
    """These events name no item."""
    events = events_of(
        created(),
        added(message(item_id="it_0"), 0),
        frame("response.audio.transcript.delta", delta="scratch", agent=BEE),
        done(said("Hello", 0), 0),
        completed(),
    )
    assert {item.agent: item.status for item in finals(events)} == {
        None: "completed",
        "/root/bee": "incomplete",
    }


@pytest.mark.parametrize("agent", ["bee", 3, None, [], {}, {"agent_name": 3}, {"agent_name": ""}])
def test_malformed_agent_is_the_root_and_kept(agent: Any) -> None:
    sent = said("Hello", 0, agent=agent)
    events = events_of(
        created(), added(sent, 0), delta("!", 0, agent=agent), done(sent, 0), completed(sent)
    )
    response = accumulate(events)
    assert (response.items[0].agent, response.text) == (None, "Hello")
    assert (response.items[0].native or {})["agent"] == agent


def test_agent_of_a_body_is_that_of_its_stream() -> None:
    streamed = response_of(created(), completed(*TEAM))
    body = {"id": "resp_1", "model": "gpt-x", "status": "completed", "output": TEAM}
    assert accumulate(body_of(body)).items == streamed.items


# --- dumps ---


def test_dumps_hold_the_agent_and_old_ones_load() -> None:
    events = events_of(*OVERLAPPING)
    line = msgspec.json.encode(events)
    assert msgspec.json.decode(line, type=list[ResponseEvent]) == events
    assert b'"agent":"/root/bee"' in line
    old = b'{"type":"output_text_delta","index":0,"content_index":0,"delta":"x"}'
    loaded = msgspec.json.decode(old, type=OutputTextDelta)
    assert loaded == OutputTextDelta(0, 0, "x")
    assert loaded.agent is None
    assert msgspec.json.encode(loaded) == old


def test_events_of_two_agents_differ() -> None:
    first = OutputTextDelta(0, 0, "x", agent="/root/bee")
    assert first != OutputTextDelta(0, 0, "x")
    assert FunctionCall("c", "f", agent="/root/bee") != FunctionCall("c", "f")
    assert Message("assistant").agent is None
