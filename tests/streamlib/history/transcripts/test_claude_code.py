"""Sessions of Claude Code: the branch that the next request would send, written and read."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from streamlib import FunctionCall, FunctionCallOutput, Message, Reasoning, ResponseItem, user
from streamlib.history import Transcript, dump_transcript, load_transcript

Line = dict[str, Any]


def line(kind: str, uuid: str, parent: str | None, content: Any, **fields: Any) -> Line:
    """A line of a session; `mid=` is the id of its response."""
    message: Line = {"role": kind, "content": content}
    if "mid" in fields:
        message["id"] = fields.pop("mid")
    links = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": uuid}
    return {"type": kind, **links, "message": message, **fields}


def text(words: str) -> list[Line]:
    return [{"type": "text", "text": words}]


def call(name: str) -> list[Line]:
    return [{"type": "tool_use", "id": name, "name": "look", "input": {"at": 1.0}}]


def result(name: str, output: str = "ok") -> list[Line]:
    return [{"type": "tool_result", "tool_use_id": name, "content": output}]


def load(*lines: Line) -> Transcript:
    data = b"".join([json.dumps(one).encode() + b"\n" for one in lines])
    return load_transcript(data, "claude-code")


def shown(items: list[ResponseItem]) -> list[str]:
    """The items in a word each: a text, `call:` and the id, `output:` and the id."""
    words: list[str] = []
    for item in items:
        match item:
            case Message():
                words.append(item.text)
            case FunctionCall():
                words.append(f"call:{item.call_id}")
            case FunctionCallOutput():
                words.append(f"output:{item.call_id}")
            case Reasoning():
                words.append(f"reasoning:{item.signature}")
            case _:
                words.append(type(item).__name__)
    return words


THINKING = [{"type": "thinking", "thinking": "hm", "signature": "Eq"}]
PARALLEL = (
    line("user", "1", None, "Go"),
    line("assistant", "2", "1", THINKING, mid="m1"),
    line("assistant", "3", "2", call("A"), mid="m1"),
    line("assistant", "4", "3", call("B"), mid="m1"),
    line("user", "5", "3", result("A"), sourceToolAssistantUUID="3"),
    line("user", "6", "4", result("B"), sourceToolAssistantUUID="4"),
)


def test_blocks_of_one_response_are_joined() -> None:
    transcript = load(*PARALLEL, line("assistant", "7", "6", text("Done"), mid="m2"))
    words = ["Go", "reasoning:Eq", "call:A", "call:B", "output:A", "output:B", "Done"]
    assert shown(transcript.items) == words
    made = {item.response_id for item in transcript.items[1:4]}
    assert made == {"m1"}
    assert transcript.report == []
    [item] = [item for item in transcript.items if isinstance(item, Reasoning)]
    assert item.origin is not None
    assert item.origin.provider == "anthropic"


def test_arguments_keep_their_bytes() -> None:
    raw = b'{"type":"assistant","uuid":"2","parentUuid":"1","message":{"role":"assistant",'
    raw += b'"content":[{"type":"tool_use","id":"A","name":"f","input":{"a": 1.0, "b":1e2}}]}}'
    first = json.dumps(line("user", "1", None, "Go")).encode()
    [_, item] = load_transcript(first + b"\n" + raw + b"\n", "claude-code").items
    assert isinstance(item, FunctionCall)
    assert item.arguments == '{"a": 1.0, "b":1e2}'


def test_walk_from_the_first_result_keeps_the_second_call() -> None:
    # The conversation went on from the result of A: B and its result are no ancestors.
    transcript = load(*PARALLEL, line("assistant", "7", "5", text("Done"), mid="m2"))
    assert sorted(shown(transcript.items)) == sorted(
        ["Go", "reasoning:Eq", "call:A", "call:B", "output:A", "output:B", "Done"]
    )


def test_rewound_branch_is_left_out() -> None:
    transcript = load(
        line("user", "1", None, "Go"),
        line("assistant", "2", "1", text("No"), mid="m1"),
        line("user", "3", "2", "a mistake"),
        line("assistant", "4", "3", text("gone"), mid="m2"),
        line("user", "5", "2", "Again"),
    )
    assert shown(transcript.items) == ["Go", "No", "Again"]
    [change] = transcript.report
    assert (change.action, change.path) == ("dropped", "line 3")


def test_side_chains_and_notes_are_left_out() -> None:
    transcript = load(
        line("user", "1", None, "Go"),
        line("user", "2", "1", "a note", isMeta=True),
        line("assistant", "3", "2", text("Yes"), mid="m1"),
        line("user", "4", None, "a subagent's", isSidechain=True),
        line("user", "5", None, "a team's", teamName="t"),
        {"type": "attachment", "uuid": "6", "parentUuid": "3", "sessionId": "s"},
        {"type": "file-history-snapshot", "messageId": "x"},
    )
    assert shown(transcript.items) == ["Go", "Yes"]
    assert [change.path for change in transcript.report] == ["line 2", "line 4", "line 6"]


def test_file_of_a_subagent_is_its_conversation() -> None:
    transcript = load(
        line("user", "1", None, "Look", isSidechain=True),
        line("assistant", "2", "1", text("Found"), isSidechain=True, mid="m1"),
    )
    assert shown(transcript.items) == ["Look", "Found"]


def compacted(**metadata: Any) -> Transcript:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    return load(
        *PARALLEL,
        line("assistant", "7", "6", text("Kept"), mid="m2"),
        {**boundary, "sessionId": "s", "compactMetadata": metadata},
        line("user", "8", "b", "Summary", isCompactSummary=True),
        line("user", "9", "7" if metadata else "8", "Next"),
    )


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, ["Summary", "Next"]),
        (
            {"preservedMessages": {"anchorUuid": "8", "uuids": ["7"]}},
            ["Summary", "Kept", "Next"],
        ),
        (
            {"preservedSegment": {"headUuid": "6", "anchorUuid": "8", "tailUuid": "7"}},
            ["Summary", "output:B", "Kept", "Next"],
        ),
    ],
)
def test_compaction_replaces_what_was_before(metadata: Any, words: list[str]) -> None:
    transcript = compacted(**metadata)
    assert shown(transcript.items) == words
    assert "a compaction replaced it" in {change.reason for change in transcript.report}


def test_lines_without_links_are_in_their_order() -> None:
    lines = [line("user", "1", None, "A"), line("assistant", "2", None, text("B"))]
    assert shown(load(*lines).items) == ["A", "B"]
    for one in lines:
        del one["uuid"], one["parentUuid"]
    assert shown(load_transcript({"loglines": lines}).items) == ["A", "B"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line("user", "1", None, "A"), line("user", "1", None, "B")], "line 2: the uuid '1'"),
        (
            [line("user", "1", None, "A"), line("user", "2", None, "B", sessionId="other")],
            "line 2: a second session",
        ),
        ([line("user", "1", None, "A"), {"uuid": "2"}], "line 2: a line without a type"),
        ([line("user", "1", None, "A"), {"type": "user", "uuid": "2"}], "line 2/message"),
        ([line("user", "1", None, "A"), line("user", "2", "1", [{"a": 1}])], "line 2/message"),
        ([line("user", "1", None, "A"), line("user", "2", "1", 3)], "line 2/message"),
        ([{"type": "summary", "summary": "x"}], "no line is a message"),
    ],
)
def test_bad_session_is_an_error_with_its_line(lines: list[Line], message: str) -> None:
    data = b"\n".join([json.dumps(one).encode() for one in [{"type": "title"}, *lines]])
    place = message.replace("line 2", "line 3")
    with pytest.raises(ValueError, match=place):
        load_transcript(data, "claude-code")


def test_resumed_session_goes_on_in_its_file() -> None:
    transcript = load(
        line("user", "1", None, "A"), line("user", "2", "1", "B", sessionId="resumed")
    )
    assert shown(transcript.items) == ["A", "B"]


def test_session_of_a_side_chain_is_no_second_session() -> None:
    transcript = load(
        line("user", "1", None, "A"),
        line("user", "2", None, "a subagent's", sessionId="other", isSidechain=True),
        line("user", "3", None, "no session", sessionId="", isSidechain=True),
        line("user", "4", "1", "B", sessionId=""),
    )
    assert shown(transcript.items) == ["A", "B"]


def test_circle_of_links_ends() -> None:
    transcript = load(line("user", "1", "2", "A"), line("user", "2", "1", "B"))
    assert transcript.items == []
    assert transcript.report


def test_session_is_written_and_read(tmp_path: Path) -> None:
    items = load(*PARALLEL, line("assistant", "7", "6", text("Done"), mid="m2")).items
    dumped = dump_transcript([*items, user("And now?")], "claude-code", instructions="Be brief.")
    assert [change.path for change in dumped.report] == ["/instructions"]
    path = tmp_path / "session.jsonl"
    path.write_bytes(dumped.dumps())
    transcript = load_transcript(path)
    assert transcript.format == "claude-code"
    assert shown(transcript.items) == [*shown(items), "And now?"]
    # One line a block, and each the child of the one before.
    assert [len(entry["message"]["content"]) for entry in dumped] == [1] * 8
    parents = [entry["parentUuid"] for entry in dumped]
    assert parents == [None, *[entry["uuid"] for entry in dumped[:-1]]]


def test_many_compactions_move_many_lines_at_once() -> None:
    """Were each line moved by each compaction, this would take minutes."""
    lines = [line("user", "root", None, "Go")]
    lines += [line("user", f"f{number}", "b0", "On") for number in range(8_000)]
    for number in range(8_000):
        links = {"anchorUuid": f"b{number}", "uuids": [f"b{number + 1}"]}
        boundary: Line = {"type": "system", "uuid": f"b{number}", "parentUuid": "root"}
        lines.append({**boundary, "compactMetadata": {"preservedMessages": links}})
    start = time.process_time()
    transcript = load(*lines)
    assert time.process_time() - start < 5
    assert len(transcript.items) == 2
