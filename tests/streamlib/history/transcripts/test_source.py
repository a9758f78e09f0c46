"""What `load_transcript` is given: files, bytes, objects; and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from streamlib import FunctionCall, Message, Text, user
from streamlib.history import dump_transcript, load_transcript
from streamlib.history.transcripts import source
from tests.support.cases import each_case
from tests.support.sdks import anthropic, openai

CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
USE = {"type": "tool_use", "id": "c", "name": "ls", "input": {"a": None, "b": 1.0}}


def test_path_bytes_and_objects_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    data = json.dumps(CHAT).encode()
    path.write_bytes(b"\xef\xbb\xbf" + data)
    expected = load_transcript(CHAT).items
    assert len(expected) == 2
    for value in (path, str(path), data, bytearray(data), tuple(CHAT), {"messages": CHAT}):
        assert load_transcript(value).items == expected  # type: ignore[arg-type]  # bytearray too


def test_objects_of_sdks_are_read() -> None:
    whole: Any = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [USE]}
    usage = {"input_tokens": 1, "output_tokens": 1}
    response = anthropic.types.Message.model_validate({**whole, "usage": usage})
    for turn in (response, {"role": "assistant", "content": response.content}):
        transcript = load_transcript([CHAT[0], turn])
        assert transcript.format == "messages"
        [_, call] = transcript.items
        assert isinstance(call, FunctionCall)
        assert call.arguments == '{"a":null,"b":1.0}'
        assert call.native is None
    message = openai.types.chat.ChatCompletionMessage(role="assistant", content="Hello")
    [_, said] = load_transcript([CHAT[0], message]).items
    assert isinstance(said, Message)
    assert said.text == "Hello"


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    [item] = load_transcript(rb'[{"role":"user","content":"\ud83d and \ud83d\ude00"}]').items
    assert isinstance(item, Message)
    assert item.text == "\ufffd and \U0001f600"


class Unreadable(BaseModel):
    """An object whose dump is not JSON."""

    inner: Any = None

    def model_dump(self, **_: Any) -> Any:
        return {"role": object()}


CUT = "not JSON, or only its beginning"


@each_case(
    "value, message",
    [
        (b"", "the file is empty"),
        (b'[{"role":"user",\n"content":"Hi"', f"line 2, column 15: {CUT}"),
        (b'{"a":1}\n{"b":', f"line 2: {CUT}"),
        (b'{"a":1}\n[1]', "line 2: not a JSON object"),
        (b'{"a":1}\n{"b":2}\n\xff', f"line 3: {CUT}"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":1}\n' + b"[" * 100_000, f"line 2: {CUT}"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd"),
        ('[{"role":"user"}]', "a text is the path of a file"),
        ([{"role": object()}], "cannot be written as JSON"),
        ([Unreadable()], "cannot be written as JSON"),
        ([{"role": "user", "content": "\ud83d"}], "cannot be written as JSON"),
        ([1], "/0: not a JSON object"),
        ({"messages": 3}, "not plain"),
    ],
)
def test_bad_value_is_an_error_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_transcript(value, None if value == {"messages": 3} else "chat")


def test_value_of_another_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="a path, bytes, a list or a dict, not a int"):
        load_transcript(3)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="no_such"):
        load_transcript("no_such_file.json")


def test_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"[]" + b" " * 100)
    monkeypatch.setattr(source, "MAX_BYTES", 50)
    with pytest.raises(ValueError, match="102 bytes, more than 50"):
        load_transcript(path)


def test_lone_surrogate_cannot_be_dumped() -> None:
    broken = Message("user", (Text("\ud83d"),))
    with pytest.raises(ValueError, match="an item cannot be written as JSON"):
        dump_transcript([broken], "chat")


def test_items_to_dump_may_come_from_an_iterator() -> None:
    items = [user("Hi"), Message("assistant", (Text("Hello"),))]
    iterator: Any = iter(items)
    assert dump_transcript(iterator, "chat") == dump_transcript(items, "chat")
    wrong: Any = "Hi"
    with pytest.raises(TypeError, match="a history holds items, not 'Hi'"):
        dump_transcript(wrong, "chat")
