"""Rollouts of Codex: compactions and rollbacks are replayed. Unverified: no file of the product."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from streamlib import Compaction, FunctionCallOutput, Message, Reasoning
from streamlib.history import Transcript, load_transcript
from tests.support.cases import each_case

Line = dict[str, Any]
META = {"type": "session_meta", "payload": {"id": "t", "base_instructions": {"text": "Code."}}}


def item(**payload: Any) -> Line:
    return {"timestamp": "2026", "type": "response_item", "payload": payload}


def said(role: str, text: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


def event(**payload: Any) -> Line:
    return {"type": "event_msg", "payload": payload}


def load(*lines: Line) -> Transcript:
    return load_transcript(b"".join([json.dumps(one).encode() + b"\n" for one in lines]))


def texts(transcript: Transcript) -> list[str]:
    return [one.text for one in transcript.items if isinstance(one, Message)]


def test_items_are_read_once() -> None:
    transcript = load(
        META,
        said("user", "Count"),
        event(type="user_message", message="Count"),
        {"type": "turn_context", "payload": {"model": "m"}},
        item(type="reasoning", summary=[], content=None, encrypted_content="gA"),
        item(type="function_call", name="f", arguments='{"a":1.0}', call_id="c"),
        item(type="function_call_output", call_id="c", output={"content": "12", "success": True}),
        said("assistant", "Twelve"),
        item(type="ghost_snapshot", ghost_commit={}),
        {"type": "novelty", "payload": {}},
    )
    assert transcript.format == "codex"
    assert transcript.instructions == "Code."
    assert texts(transcript) == ["Count", "Twelve"]
    assert isinstance(transcript.items[1], Reasoning)
    assert transcript.items[1].encrypted_content == "gA"
    assert isinstance(transcript.items[3], FunctionCallOutput)
    assert transcript.items[3].output == "12"
    assert [change.path for change in transcript.report] == ["line 9", "line 10"]


def test_compaction_replaces_the_history() -> None:
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A"}]},
        {"type": "compaction", "encrypted_content": "gC"},
    ]
    compacted = {"type": "compacted", "payload": {"message": "", "replacement_history": history}}
    transcript = load(META, said("user", "A"), said("assistant", "B"), compacted, said("user", "C"))
    assert texts(transcript) == ["A", "C"]
    assert isinstance(transcript.items[1], Compaction)


def test_compaction_without_history_keeps_user_messages() -> None:
    compacted = {"type": "compacted", "payload": {"message": "Summary"}}
    environment = said("user", "<environment_context>here</environment_context>")
    transcript = load(META, environment, said("user", "A"), said("assistant", "B"), compacted)
    assert texts(transcript) == ["A", "Summary"]


@pytest.mark.parametrize(
    ("turns", "expected"), [(0, ["A", "B", "C", "D"]), (1, ["A", "B"]), (2, []), (9, [])]
)
def test_rollback_drops_turns(turns: int, expected: list[str]) -> None:
    transcript = load(
        META,
        said("user", "A"),
        said("assistant", "B"),
        said("user", "C"),
        said("assistant", "D"),
        event(type="thread_rolled_back", num_turns=turns),
    )
    assert texts(transcript) == expected
    reported = [f"line 6: {min(turns, 2)} turns were rolled back"] if turns else []
    assert [f"{change.path}: {change.reason}" for change in transcript.report] == reported


def test_early_rollout_has_bare_items() -> None:
    transcript = load(
        {"id": "t", "timestamp": "2025", "instructions": "Code."},
        {"record_type": "state"},
        said("user", "A")["payload"],
    )
    assert transcript.format == "codex"
    assert (transcript.instructions, texts(transcript)) == ("Code.", ["A"])


def test_mail_of_another_agent_is_a_message_of_the_user() -> None:
    mail = {"type": "inter_agent_communication", "payload": {"content": "Look.", "author": "b"}}
    transcript = load(META, mail)
    assert texts(transcript) == ["Look."]
    [change] = transcript.report
    assert change.reason == "what b wrote is a message of the user"


def test_fork_repeats_the_session_it_came_from() -> None:
    fork = {"type": "session_meta", "payload": {"id": "u", "forked_from_id": "t"}}
    assert texts(load(fork, META, said("user", "A"))) == ["A"]


@each_case(
    "lines, message",
    [
        ([META, {"type": "session_meta", "payload": {"id": "u"}}], "line 2: a second session"),
        ([META, {"type": "response_item", "payload": 3}], "line 2/payload: not a JSON object"),
        ([META, item(role="user")], "line 2: an item without a type"),
        ([META, item(type="function_call", name="f", call_id={})], "line 2: "),
        ([META, event(type="thread_rolled_back", num_turns="x")], "line 2/payload/num_turns"),
        ([META, {"a": 1}], "line 2: neither an item"),
        (
            [META, item(type="reasoning", id="rs_1"), item(type="reasoning", id="rs_1")],
            "line 3: the id 'rs_1' is that of line 2",
        ),
        ([{"type": "compacted", "payload": {"replacement_history": 3}}, META], "line 1"),
    ],
)
def test_bad_rollout_is_an_error_with_its_line(lines: list[Line], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_transcript(b"\n".join([json.dumps(one).encode() for one in lines]), "codex")


def test_each_compaction_copies_what_is_new_alone() -> None:
    """Were all turns copied each time, this would take a minute."""
    turns = [said("user", "a")] * 8_000
    compactions = [{"type": "compacted", "payload": {"message": "s"}}] * 8_000
    start = time.process_time()
    transcript = load(META, *turns, *compactions)
    assert time.process_time() - start < 5
    assert len(transcript.items) == 16_000
    assert transcript.report[0].reason == "a compaction replaces the 8000 items before"


def test_compaction_after_a_rollback_keeps_the_turns() -> None:
    compaction: Line = {"type": "compacted", "payload": {"message": "sum"}}
    back = event(type="thread_rolled_back", num_turns=2)
    spoken = (said("assistant", "x"), said("user", "c"), said("assistant", "y"))
    transcript = load(
        META, said("user", "a"), said("user", "b"), compaction, back, *spoken, compaction
    )
    assert texts(transcript) == ["a", "c", "sum"]


def test_error_of_one_line_names_its_place() -> None:
    with pytest.raises(ValueError, match="not codex: /payload: not a JSON object"):
        load_transcript({"type": "response_item", "payload": 3}, "codex")
