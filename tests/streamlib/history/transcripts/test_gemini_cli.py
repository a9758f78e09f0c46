"""Sessions of Gemini CLI: replaced and rewound messages. Unverified: no file of the product."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import FunctionCall, FunctionCallOutput, Message, Reasoning
from streamlib.history import Transcript, load_transcript

Line = dict[str, Any]
META = {"sessionId": "s", "projectHash": "h", "startTime": "2026"}
RESPONSE = {"functionResponse": {"id": "r", "name": "ls", "response": {"output": "a.txt"}}}
CALLS = [{"id": "r", "name": "ls", "args": {"at": "."}, "result": [RESPONSE], "status": "success"}]


def said(message_id: str, text: Any, kind: str = "user", **fields: Any) -> Line:
    return {"id": message_id, "timestamp": "2026", "type": kind, "content": text, **fields}


def load(*lines: Line) -> Transcript:
    return load_transcript(b"".join([json.dumps(one).encode() + b"\n" for one in lines]))


def texts(transcript: Transcript) -> list[str]:
    return [one.text for one in transcript.items if isinstance(one, Message)]


def test_message_holds_call_and_result() -> None:
    thoughts = [{"subject": "Count", "description": "use ls"}]
    response = said("2", "Look", "gemini", toolCalls=CALLS, thoughts=thoughts)
    transcript = load(META, said("1", [{"text": "Go"}]), response)
    assert transcript.format == "gemini-cli"
    kinds = [type(one) for one in transcript.items]
    assert kinds == [Message, Reasoning, Message, FunctionCall, FunctionCallOutput]
    output = transcript.items[-1]
    assert isinstance(output, FunctionCallOutput)
    assert (output.call_id, output.output) == ("r", "a.txt")


def test_parts_of_newer_sessions_keep_signatures() -> None:
    part = {"functionCall": {"id": "r", "name": "ls", "args": {}}, "thoughtSignature": "Ci"}
    transcript = load(META, said("1", "Go"), said("2", [part], "gemini", toolCalls=CALLS))
    [_, call, output] = transcript.items
    assert isinstance(call, FunctionCall)
    assert call.signature == "Ci"
    assert isinstance(output, FunctionCallOutput)


def test_later_line_of_an_id_replaces_the_earlier() -> None:
    transcript = load(META, said("1", "Go"), said("2", "", "gemini"), said("2", "Done", "gemini"))
    assert texts(transcript) == ["Go", "Done"]


@pytest.mark.parametrize(("rewound", "expected"), [("2", ["A"]), ("1", []), ("unknown", [])])
def test_rewind_drops_messages(rewound: str, expected: list[str]) -> None:
    transcript = load(META, said("1", "A"), said("2", "B"), {"$rewindTo": rewound})
    assert texts(transcript) == expected
    assert [change.path for change in transcript.report] == ["line 4"]


def test_checkpoint_replaces_all_messages() -> None:
    checkpoint = {"$set": {"messages": [said("9", "C")]}}
    transcript = load(META, said("1", "A"), checkpoint, said("2", "D"), {"$set": {"summary": "x"}})
    assert texts(transcript) == ["C", "D"]
    older = {**META, "messages": [said("1", "A")]}
    assert texts(load_transcript(json.dumps(older).encode())) == ["A"]


def test_what_the_model_does_not_get_is_left_out() -> None:
    transcript = load(META, said("1", "/help"), said("2", "an error", "error"), said("3", "A"))
    assert texts(transcript) == ["A"]
    assert [change.path for change in transcript.report] == ["line 2", "line 3"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([META, {**META, "sessionId": "t"}], "line 2: a second session"),
        ([META, {"a": 1}], "line 2: neither a message"),
        ([META, said("1", "A", "novelty")], "line 2/type"),
        ([META, said("1", [3])], "line 2: not a JSON object"),
        ([META, {"$set": 3}], "line 2/.set: not a JSON object"),
    ],
)
def test_bad_session_is_an_error_with_its_line(lines: list[Line], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_transcript(b"\n".join([json.dumps(one).encode() for one in lines]), "gemini-cli")


def test_reasoning_stays_beside_content_with_calls() -> None:
    thoughts = [{"subject": "Count", "description": "use ls"}]
    part = {"functionCall": {"id": "r", "name": "ls", "args": {}}}
    response = said("2", [part], "gemini", toolCalls=CALLS, thoughts=thoughts)
    kinds = [type(one) for one in load(META, said("1", "Go"), response).items]
    assert kinds == [Message, Reasoning, FunctionCall, FunctionCallOutput]


def test_calls_stay_beside_content_with_reasoning() -> None:
    part = {"text": "hm", "thought": True}
    response = said("2", [part], "gemini", toolCalls=CALLS)
    kinds = [type(one) for one in load(META, said("1", "Go"), response).items]
    assert kinds == [Message, Reasoning, FunctionCall, FunctionCallOutput]
