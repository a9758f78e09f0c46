"""Transcripts beside those who read them: the `ai` package, LangChain, Claude Code's own reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.real import transcript_readers, ui_readers
from streamlib import FunctionCall, ResponseItem, user
from streamlib.history import dump_transcript, load_transcript
from streamlib.testing.strategies import histories
from streamlib_parsers.items import WireApi
from tests.properties.test_transcripts import recorded, signed
from tests.real.conftest import ABSENT
from tests.support.conversation_facts import facts_of
from tests.support.shared import SHARED, require

pytestmark = pytest.mark.real

WIRES: tuple[WireApi, ...] = ("messages", "responses", "chat", "gemini", "converse")

few = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def pages() -> Iterator[ui_readers.Readers]:
    why = ui_readers.absence()
    if why is not None:
        pytest.skip(f"{ABSENT}: UI readers, {why}")
    with ui_readers.running() as found:
        yield found


def reader(name: str) -> Iterator[transcript_readers.Reader]:
    why = transcript_readers.absence(name)
    if why is not None:
        pytest.skip(f"{ABSENT}: {why}")
    with transcript_readers.running(name) as found:
        yield found


@pytest.fixture(scope="module")
def langchain() -> Iterator[transcript_readers.Reader]:
    yield from reader("langchain")


@pytest.fixture(scope="module")
def claude() -> Iterator[transcript_readers.Reader]:
    yield from reader("claude")


def drawn(data: st.DataObject) -> list[ResponseItem]:
    made = data.draw(st.sampled_from(WIRES))
    return signed(data.draw(histories(made, images=True)), made)


# --- the AI SDK ---


def refused(pages: ui_readers.Readers, version: int, items: list[ResponseItem]) -> list[str]:
    """Why the SDK refuses the messages, or loses calls or outputs of them."""
    dumped = dump_transcript(items, "vercel", instructions="Be brief.")
    verdict = pages.read(f"messages{version}", dumped.dumps())
    reasons: list[str] = verdict["refused"]
    if reasons:
        return reasons
    kinds = [
        part["type"]
        for message in verdict["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    found = load_transcript(dumped).items
    calls = sum(isinstance(item, FunctionCall) for item in found)
    if kinds.count("tool-call") < calls:
        return [f"{kinds.count('tool-call')} of {calls} calls"]
    return []


@pytest.mark.parametrize("version", [6, 7])
@few
@given(data=st.data())
def test_written_messages_are_valid_for_the_sdk(
    pages: ui_readers.Readers, version: int, data: st.DataObject
) -> None:
    assert refused(pages, version, drawn(data)) == []


@pytest.mark.parametrize("version", [6, 7])
def test_recorded_conversations_are_valid_for_the_sdk(
    pages: ui_readers.Readers, version: int
) -> None:
    wrong = {name: refused(pages, version, items) for name, _, items, _, _ in recorded()}
    assert {name: reasons for name, reasons in wrong.items() if reasons} == {}


# --- LangChain ---


def check_langchain(langchain: transcript_readers.Reader, items: list[ResponseItem]) -> None:
    dumped = dump_transcript(items, "langchain", instructions="Be brief.")
    expected = load_transcript(dumped)
    written = langchain.read(dumped)
    assert len(written["to_dict"]) == len(dumped)
    for form in ("to_dict", "dumpd", "plain"):
        found = load_transcript(written[form], "langchain")
        assert facts_of(found.items) == facts_of(expected.items), form
        assert found.instructions == "Be brief."


@few
@given(data=st.data())
def test_written_messages_are_read_by_langchain(
    langchain: transcript_readers.Reader, data: st.DataObject
) -> None:
    check_langchain(langchain, drawn(data))


def test_recorded_conversations_are_read_by_langchain(
    langchain: transcript_readers.Reader,
) -> None:
    for _, _, items, _, _ in recorded():
        check_langchain(langchain, items)


# --- Claude Code ---


def shown(claude: transcript_readers.Reader, session: bytes) -> list[Any]:
    """The items of the messages that the official reader shows."""
    messages = [message for _, message in claude.read(session.decode())]
    turns = [{"role": one["role"], "content": one["content"]} for one in messages]
    return facts_of(load_transcript(turns, "messages").items)


@few
@given(data=st.data())
def test_written_sessions_are_read_by_the_official_reader(
    claude: transcript_readers.Reader, data: st.DataObject
) -> None:
    dumped = dump_transcript([*drawn(data), user("And?")], "claude-code")
    session = dumped.dumps()
    assert shown(claude, session) == facts_of(load_transcript(session).items)


def forked(session: list[dict[str, Any]], data: st.DataObject) -> bytes:
    """The session as Claude Code forks it: a result is the child of its own call; and rewinds."""
    makers: dict[str, str] = {}
    last = None
    lines: list[dict[str, Any]] = []
    for number, entry in enumerate(session):
        [block] = entry["message"]["content"][:1]
        entry = {**entry, "parentUuid": last, "timestamp": f"{number:06}"}  # noqa: PLW2901
        if block["type"] == "tool_use":
            makers[block["id"]] = entry["uuid"]
        elif block["type"] == "tool_result":
            entry["parentUuid"] = makers[block["tool_use_id"]]
        last = entry["uuid"]
        lines.append(entry)
        if entry["type"] == "user" and data.draw(st.booleans()):
            rewound = {"role": "user", "content": "a mistake"}
            lines.append({**entry, "uuid": f"x{number}", "message": rewound})
    return b"".join([json.dumps(line).encode() + b"\n" for line in lines])


@few
@given(data=st.data())
def test_forked_sessions_are_read_as_by_the_official_reader(
    claude: transcript_readers.Reader, data: st.DataObject
) -> None:
    items = data.draw(histories("messages", turns=4))
    dumped = dump_transcript([*items, user("And?")], "claude-code")
    session = forked(list(dumped), data)
    assert shown(claude, session) == facts_of(load_transcript(session).items)


def test_linked_samples_are_read_as_by_the_official_reader(
    claude: transcript_readers.Reader,
) -> None:
    path = require(SHARED / "transcripts") / "claude-code__daaain_todowrite_examples.jsonl"
    session = path.read_bytes()
    assert shown(claude, session) == facts_of(load_transcript(session).items)
