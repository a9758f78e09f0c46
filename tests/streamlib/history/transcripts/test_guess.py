"""Formats that are recognized, and names that are wrong."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from streamlib import FunctionCall, Message, ResponseItem, Text, user
from streamlib.history import dump_transcript, load_transcript
from streamlib.history.transcripts.transcript import WrittenFormat
from tests.support.cases import each_case

CALL = FunctionCall("c", "ls", "{}")
ITEMS: list[ResponseItem] = [
    user("Go"),
    CALL,
    CALL.output("x"),
    Message("assistant", (Text("Done"),)),
]


@pytest.mark.parametrize("name", get_args(WrittenFormat))
def test_written_format_is_recognized(name: Any) -> None:
    dumped = dump_transcript(ITEMS, name, instructions="Be brief.")
    assert load_transcript(dumped.dumps()).format == name
    assert load_transcript(list(dumped)).format == name


@each_case(
    "value, name",
    [
        ([{"role": "user", "content": "Hi"}], None),
        ([{"role": "user", "content": "Hi"}, {"role": "tool", "content": "x"}], "chat"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], "chat"),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": []}]}], None),
        ({"system": "x", "messages": [{"role": "user", "content": "Hi"}]}, "messages"),
        ({"input": "Hi"}, "responses"),
        ([{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], "responses"),
        ({"input": [{"role": "user", "content": "Hi"}]}, "responses"),
    ],
)
def test_format_of_a_wire_is_plain_where_it_differs(value: Any, name: Any) -> None:
    if name is None:
        # Texts are alike on all wires; here nothing else is.
        for wire_api in ("chat", "messages", "responses"):
            if "thinking" not in str(value):
                assert len(load_transcript(value, wire_api).items) == 1
        return
    assert load_transcript(value).format == name


def test_texts_alone_are_a_chat() -> None:
    assert load_transcript([{"role": "user", "content": "Hi"}]).format == "chat"
    assert load_transcript([]).items == []


def test_other_format_than_named_is_an_error() -> None:
    chat = dump_transcript(ITEMS, "chat")
    with pytest.raises(ValueError, match="this is chat, not messages"):
        load_transcript(chat, "messages")
    with pytest.raises(ValueError, match="this is messages, not chat"):
        load_transcript(dump_transcript(ITEMS, "messages"), "chat")
    with pytest.raises(ValueError, match="no format 'novelty': one of chat, messages"):
        load_transcript(chat, "novelty")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the format is not plain: name it"):
        load_transcript([{"a": 1}])


def test_format_that_is_only_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="the format 'codex' is not written: one of chat"):
        dump_transcript(ITEMS, "codex")  # type: ignore[arg-type]
