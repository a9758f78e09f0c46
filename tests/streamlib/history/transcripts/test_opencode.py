"""Exports of opencode, as it converts them for its model. Unverified: no file of the product."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Text
from streamlib.history import Transcript, load_transcript

Part = dict[str, Any]
TIMES = {"start": 1, "end": 2}


def message(message_id: str, role: str, *parts: Part, **info: Any) -> Part:
    return {"info": {"id": message_id, "sessionID": "s", "role": role, **info}, "parts": [*parts]}


def said(text: str, **fields: Any) -> Part:
    return {"type": "text", "text": text, **fields}


def tool(status: str, **state: Any) -> Part:
    fields = {"status": status, "input": {"a": 1}, "time": TIMES, **state}
    return {"type": "tool", "callID": "c", "tool": "ls", "state": fields}


def load(*messages: Part) -> Transcript:
    return load_transcript({"info": {"id": "s", "title": "t"}, "messages": [*messages]})


def texts(transcript: Transcript) -> list[str]:
    return [one.text for one in transcript.items if isinstance(one, Message)]


def test_parts_become_items() -> None:
    reasoning = {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "Eq"}}}
    transcript = load(
        message("1", "user", said("Go"), said("hidden", ignored=True), said("x", synthetic=True)),
        message(
            "2",
            "assistant",
            {"type": "step-start"},
            reasoning,
            tool("completed", output="a.txt"),
            {"type": "step-finish"},
            {"type": "step-start"},
            said("Done"),
            {"type": "novelty"},
        ),
    )
    assert transcript.format == "opencode"
    kinds = [type(one) for one in transcript.items]
    assert kinds == [Message, Reasoning, FunctionCall, FunctionCallOutput, Message]
    assert transcript.items[1].signature == "Eq"
    assert texts(transcript) == ["Gox", "Done"]
    places = [change.path for change in transcript.report]
    assert places == ["/messages/0/parts/1", "/messages/1/parts/6"]


@pytest.mark.parametrize(
    ("part", "output", "is_error"),
    [
        (tool("completed", output="x", time={**TIMES, "compacted": 3}), "[Old", False),
        (tool("error", error="no file"), "no file", True),
        (tool("running"), "[Tool execution was interrupted]", True),
    ],
)
def test_output_is_what_the_model_got(part: Part, output: str, is_error: bool) -> None:
    [_, _, found] = load(message("1", "user", said("Go")), message("2", "assistant", part)).items
    assert isinstance(found, FunctionCallOutput)
    assert isinstance(found.output, str)
    assert found.output.startswith(output)
    assert found.is_error == is_error


def test_attachments_are_parts_of_an_output() -> None:
    picture = {"mime": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}
    part = tool("completed", output="see", attachments=[picture])
    found = load(message("1", "user", said("Go")), message("2", "assistant", part)).items[-1]
    assert isinstance(found, FunctionCallOutput)
    assert [type(one) for one in found.output] == [Text, Image]


def compacted(**compaction: Any) -> Transcript:
    return load(
        message("1", "user", said("A")),
        message("2", "assistant", said("B"), finish="stop"),
        message("3", "user", said("C")),
        message("4", "user", {"type": "compaction", "auto": False, **compaction}),
        message("5", "assistant", said("Summary"), parentID="4", summary=True, finish="stop"),
        message("6", "user", said("D")),
    )


def test_compaction_hides_what_is_before() -> None:
    assert texts(compacted()) == ["What did we do so far?", "Summary", "D"]
    assert [change.path for change in compacted().report] == ["/messages/3"]
    kept = compacted(tail_start_id="3")
    assert texts(kept) == ["What did we do so far?", "Summary", "C", "D"]


def test_failed_response_is_not_sent() -> None:
    failed = message("2", "assistant", said("half"), error={"name": "APIError"})
    stopped = message("3", "assistant", said("half"), error={"name": "MessageAbortedError"})
    assert texts(load(message("1", "user", said("A")), failed)) == ["A"]
    assert texts(load(message("1", "user", said("A")), stopped)) == ["A", "half"]


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([message("1", "user", said("A")), message("1", "user", said("B"))], "/messages/1/info/id"),
        ([message("1", "user", sessionID="t")], "/messages/0: a second session"),
        ([message("1", "novelty")], "/messages/0/info/role"),
        ([message("1", "assistant", tool("novelty"))], "/messages/0/parts/0/state/status"),
        ([{"info": 3, "parts": []}], "/messages/0/info: not a JSON object"),
    ],
)
def test_bad_export_is_an_error_with_its_place(messages: list[Part], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        load_transcript({"info": {"id": "s"}, "messages": messages}, "opencode")
