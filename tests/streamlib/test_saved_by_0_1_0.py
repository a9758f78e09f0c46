"""Files that version 0.1.0 saved still load: a history, a recording, an event log.

They were written by that version itself: the history with every item and part kind, the recording
of its loopback provider, the events that it parsed from that recording.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec

from streamlib import (
    Compaction,
    CustomToolCallOutput,
    FunctionCall,
    History,
    Opaque,
    Prompt,
    Reasoning,
    ResponseItem,
    ServerToolResult,
    accumulate,
    build,
    parse_body,
    parser,
    user,
)
from streamlib.recording import load, load_events
from streamlib_parsers.items import BUILT_IN_CALLS, BUILT_IN_OUTPUTS

SAVED = Path(__file__).parent / "saved"
HISTORY = (SAVED / "history-0.1.0.json").read_bytes()
RECORDING = SAVED / "recording-0.1.0.jsonl"
OPAQUE_CALLS = (SAVED / "history-0.2.0-opaque-calls.json").read_bytes()
EVENTS = (SAVED / "events-0.1.0.jsonl").read_bytes()


def test_a_history_of_0_1_0_loads_with_every_kind() -> None:
    items = History.loads(HISTORY)
    # The calls of built-in tools came later: it has one as `Opaque`.
    later = {*BUILT_IN_CALLS, *BUILT_IN_OUTPUTS}
    assert {type(item) for item in items} == set(get_args(ResponseItem)) - later
    reasoning = next(item for item in items if isinstance(item, Reasoning))
    assert reasoning.signature == "c2lnbmF0dXJl"
    assert reasoning.origin is not None
    assert reasoning.origin.model == "claude-opus-5"
    call = next(item for item in items if isinstance(item, FunctionCall))
    assert call.arguments == '{"city": "Oslo", "zoom": 1.0}'
    output = next(item for item in items if isinstance(item, CustomToolCallOutput))
    assert output.is_error
    assert next(item for item in items if isinstance(item, Opaque)).kind == "computer_call"


def test_a_history_of_0_1_0_saves_to_the_same_bytes() -> None:
    assert History(History.loads(HISTORY)).dumps() == HISTORY


def test_a_history_of_0_1_0_keeps_the_state_of_its_origin() -> None:
    items = History.loads(HISTORY)
    request = build(Prompt(items), "anthropic:claude-opus-5")
    assert b"c2lnbmF0dXJl" in request.body
    assert not any(isinstance(item, (Compaction, ServerToolResult)) for item in items[:3])
    responses = build(Prompt(items), "openai:gpt-5.5", wire_api="responses")
    assert b"c2lnbmF0dXJl" not in responses.body


def test_built_in_calls_saved_as_opaque_are_replayed() -> None:
    """B5: histories from before `ComputerCall` and its like, with answers written by hand."""
    items = History.loads(OPAQUE_CALLS)
    assert History(items).dumps() == OPAQUE_CALLS
    calls = [item.payload for item in items if isinstance(item, Opaque)]
    assert len(calls) == 12
    request = build(Prompt(items), "openai:gpt-5.5", wire_api="responses")
    assert (msgspec.json.decode(request.body)["input"][1:], request.report) == (calls, [])


def test_opaque_outputs_answer_typed_calls() -> None:
    """B5: a caller that still writes the wire's outputs by hand."""
    saved = [item for item in History.loads(OPAQUE_CALLS) if isinstance(item, Opaque)]
    body = {
        "model": "gpt-5.5",
        "status": "completed",
        "output": [item.payload for item in saved[:6]],
    }
    typed = accumulate(parse_body("responses", msgspec.json.encode(body))).items
    assert all(isinstance(item, BUILT_IN_CALLS) for item in typed)
    history = [user("Do it."), *typed, *saved[6:]]
    request = build(Prompt(history), "openai:gpt-5.5", wire_api="responses")
    sent = msgspec.json.decode(request.body)["input"][1:]
    assert (sent, request.report) == ([item.payload for item in saved], [])


def test_a_recording_of_0_1_0_parses_to_its_saved_events() -> None:
    recording = load(RECORDING)
    assert recording.wire_api == "messages"
    before = load_events(EVENTS)
    parse = parser("messages", headers=recording.headers)
    events = [*parse.feed(recording.body), *parse.close()]
    assert len(events) > 20
    assert accumulate(events).text == accumulate(before).text
    assert [type(event) for event in events] == [type(event) for event in before]
