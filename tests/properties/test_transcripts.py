"""Conversations through every format and back: what is missing is named, the rest is equal.

Texts, calls, outputs, state and their order, of generated histories and of recorded conversations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from streamlib import Reasoning, ResponseItem, user
from streamlib.history import dump_transcript, load_transcript
from streamlib.history.transcripts.transcript import WrittenFormat
from streamlib.testing.provider.strict import StrictProvider
from streamlib.testing.strategies import histories
from streamlib_parsers.items import WireApi
from tests.streamlib.testing.provider.strict.test_builders import (
    CALLING,
    FINAL,
    MODELS,
    refusal,
    request_of,
    response,
)
from tests.streamlib.wires.test_conversations import conversations, prompt_of, response_of
from tests.support.conversation_facts import Fact, facts_of
from tests.support.thorough import THOROUGH

FORMATS: Final[tuple[WrittenFormat, ...]] = get_args(WrittenFormat)

HOLD_STATE: Final[dict[WireApi, tuple[WrittenFormat, ...]]] = {
    "messages": ("messages", "claude-code", "vercel", "langchain"),
    "responses": ("responses", "vercel", "langchain"),
    "chat": ("chat",),
    "gemini": ("vercel", "langchain"),
    "converse": ("vercel", "langchain"),
}
"""Wire -> formats that have a place for what its providers sign."""

each_format = pytest.mark.parametrize("name", FORMATS)
each_wire = pytest.mark.parametrize("made", HOLD_STATE)


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def signed(items: Iterable[ResponseItem], made: WireApi) -> list[ResponseItem]:
    """The items, their reasoning with the state that the wire has."""
    found: list[ResponseItem] = []
    for number, item in enumerate(items):
        if not isinstance(item, Reasoning) or made == "chat":
            found.append(item)
        elif made == "responses":
            state = {"id": f"rs_{number}", "encrypted_content": f"gA{number}"}
            found.append(replace(item, content="", summary=("One.", "Two."), **state))
        else:
            found.append(replace(item, signature=f"Eq{number}"))
    return found


def each_fact(items: Iterable[ResponseItem]) -> list[Fact]:
    """The facts of each item, not joined."""
    return [fact for item in items for fact in facts_of([item])]


def unnamed_losses(
    items: Sequence[ResponseItem], instructions: str | None, name: WrittenFormat
) -> list[Fact]:
    """Facts that are not in the dumped conversation, in order, though no change names their item.

    The facts that are there are found in order: a moved one counts as missing.
    """
    dumped = dump_transcript(items, name, instructions=instructions)
    loaded = load_transcript(dumped.dumps(), name)
    named = {change.path.split("/")[2] for change in dumped.report if "/input/" in change.path}
    kept = [item for index, item in enumerate(items) if str(index) not in named]
    if instructions is None and (loaded.instructions or dumped.instructions):
        kept = kept[1:]  # the first item became the instructions
    remaining = iter([fact for item in loaded.items for fact in _split(facts_of([item]))])
    missing: list[Fact] = []
    for fact in _split(each_fact(kept)):
        if not _find(fact, remaining):
            missing.append(fact)
            break
    is_lost = instructions is not None and loaded.instructions != instructions
    if is_lost and "/instructions" not in {change.path for change in dumped.report}:
        if dumped.instructions is None:
            missing.append(("instructions", instructions))
    return missing


def _split(facts: Iterable[Fact]) -> list[Fact]:
    """Texts letter by letter: formats join them, and split them."""
    split: list[Fact] = []
    for fact in facts:
        if fact[0] == "text":
            split += [("text", fact[1], letter) for letter in fact[2]]
        else:
            split.append(fact)
    return split


def _find(fact: Fact, remaining: Any) -> bool:
    return any(fact == other for other in remaining)


# --- generated histories ---


@each_wire
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_format_loses_nothing_unnamed(made: WireApi, data: st.DataObject) -> None:
    items = signed(data.draw(histories(made, images=True)), made)
    for name in FORMATS:
        assert unnamed_losses(items, "Be brief.", name) == []


@each_wire
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_second_round_trip_is_exact(made: WireApi, data: st.DataObject) -> None:
    items = signed(data.draw(histories(made, images=True)), made)
    for name in FORMATS:
        loaded = load_transcript(dump_transcript(items, name), name)
        again = load_transcript(dump_transcript(loaded, name), name)
        assert facts_of(again.items) == facts_of(loaded.items)
        assert again.instructions == loaded.instructions


@pytest.mark.parametrize("made", ["messages", "chat", "gemini", "converse"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_state_stays_where_a_format_has_a_place(made: WireApi, data: st.DataObject) -> None:
    items = signed(data.draw(histories(made, images=True)), made)
    for name in HOLD_STATE[made]:
        loaded = load_transcript(dump_transcript(items, name), name)
        assert facts_of(loaded.items) == facts_of(items)


# --- anything ---

JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


def keyed_values(value: Any) -> list[tuple[Any, Any]]:
    """Each list and object in a value, with each of its keys."""
    found: list[tuple[Any, Any]] = []
    keys: Any = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            found += keyed_values(value[key])
    return found


@each_format
@settings(max_examples=60 if THOROUGH else 25, deadline=None)
@given(data=st.data())
def test_any_value_is_a_transcript_or_an_error(name: WrittenFormat, data: st.DataObject) -> None:
    items = signed(data.draw(histories("messages", images=True)), "messages")
    value = msgspec.json.decode(msgspec.json.encode(dump_transcript(items, name)))
    holder, key = data.draw(st.sampled_from(keyed_values(value)))
    holder[key] = data.draw(JSON)
    try:
        transcript = load_transcript(value, name)
    except ValueError:
        return
    for other in FORMATS:
        dump_transcript(transcript, other)


# --- sessions of a provider that signs, and checks ---


def session(provider: StrictProvider, made: WireApi) -> list[ResponseItem]:
    model = MODELS[made][0]
    history: list[ResponseItem] = []
    for number in range(2):
        history.append(user(f"And {number}?"))
        called = response(provider, request_of(made, model, history, {}), CALLING)
        history += called.items
        history += [call.output(f"result {number}") for call in called.calls]
        finished = response(provider, request_of(made, model, history, {}), FINAL)
        history += finished.items
    return history


@each_wire
@each_format
def test_loaded_session_is_accepted_on_every_wire(made: WireApi, name: WrittenFormat) -> None:
    provider = StrictProvider()
    items = session(provider, made)
    loaded = load_transcript(dump_transcript(items, name), name)
    refused: list[str] = []
    for wire_api, models in MODELS.items():
        request = request_of(wire_api, models[0], [*loaded.items, user("Go on.")], {})
        reason = refusal(provider, request)
        if reason is not None:
            refused.append(f"{wire_api}: {reason}")
    assert refused == []


@pytest.mark.parametrize(
    ("made", "name"), [(made, name) for made in HOLD_STATE for name in HOLD_STATE[made]]
)
def test_signatures_are_sent_back_unchanged(made: WireApi, name: WrittenFormat) -> None:
    items = session(StrictProvider(), made)
    loaded = load_transcript(dump_transcript(items, name), name)
    bodies: list[bytes] = []
    for history in (items, loaded.items):
        request = request_of(made, MODELS[made][0], [*history, user("Go on.")], {})
        bodies.append(request.body)
    states = [fact for fact in facts_of(items) if fact[0] == "state"]
    for _, state in states:
        assert state.encode() in bodies[0]
        assert state.encode() in bodies[1]


# --- recorded conversations ---


@cache
def recorded() -> list[tuple[str, WireApi, list[ResponseItem], str | None, Any]]:
    """Name, wire, items, instructions and body of each recorded conversation, with its end."""
    found: list[tuple[str, WireApi, list[ResponseItem], str | None, Any]] = []
    for turns in conversations():
        last = turns[-1]
        prompt = prompt_of(last)
        if prompt is None:
            continue
        items = [*prompt.items, *response_of(last).items]
        wire_api: Any = last.wire
        body = last.meta["request_json"]
        found.append((last.path.name, wire_api, items, prompt.instructions, body))
    return found


@each_format
def test_recorded_conversations_lose_nothing_unnamed(name: WrittenFormat) -> None:
    found = recorded()
    missing: dict[str, list[Fact]] = {}
    for recording, _, items, instructions, _ in found:
        lost = unnamed_losses(items, instructions, name)
        if lost:
            missing[recording] = lost
    assert missing == {}
    assert len(found) >= 171


def test_recorded_lists_are_read_and_written_alike() -> None:
    count = 0
    for recording, wire_api, _, _, body in recorded():
        if wire_api not in ("chat", "messages", "responses"):
            continue
        count += 1
        name: Any = wire_api
        value = body.encode() if isinstance(body, str) else body
        loaded = load_transcript(value, name)
        dumped = dump_transcript(loaded, name)
        assert dumped.report == [], recording
        again = load_transcript(dumped.dumps(), name)
        assert facts_of(again.items) == facts_of(loaded.items), recording
        assert again.instructions == loaded.instructions, recording
    assert count > 100
