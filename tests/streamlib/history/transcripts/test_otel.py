"""Messages of OpenTelemetry's GenAI conventions, as spans have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    Audio,
    Compaction,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Origin,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    Text,
    user,
)
from streamlib.history import dump_transcript, load_transcript

PNG = Image("iVBORw0KGgo=", media_type="image/png")
ITEMS: list[Any] = [
    Message("user", (Text("Go"), PNG, Image(url="https://a.test/b.png"), Image(file_id="f_1"))),
    Reasoning("hm"),
    FunctionCall("c", "ls", '{"a":1}'),
    FunctionCall("d", "ls"),
    CustomToolCall("e", "run", "print(1)"),
    FunctionCallOutput("c", "x"),
    FunctionCallOutput("d", (Text("see"), PNG)),
    CustomToolCallOutput("e", "1"),
    ServerToolCall("s", "search", '{"query":"x"}'),
    ServerToolResult("s", "search", {"found": 1}),
    Compaction("summary"),
    Message("assistant", (Text("Done"),)),
]


def test_items_are_written_and_read() -> None:
    dumped = dump_transcript(ITEMS, "otel", instructions="Be brief.")
    assert [message["role"] for message in dumped] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert dumped.report == []
    loaded = load_transcript(dumped.dumps())
    assert loaded.format == "otel"
    assert loaded.instructions == "Be brief."
    assert list(loaded.items) == ITEMS


def test_attributes_of_a_span_are_read() -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]
    span = {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": asked,
        "gen_ai.output.messages": json.dumps(said),
    }
    loaded = load_transcript(span)
    assert loaded.instructions == "Be brief."
    assert [item.text for item in loaded.items if isinstance(item, Message)] == ["Hi", "Hello"]


def test_state_and_errors_are_reported() -> None:
    signed = Reasoning("hm", signature="Eq", origin=Origin("messages"))
    failed = FunctionCallOutput("c", "x", is_error=True)
    dumped = dump_transcript([user("Go"), signed, ITEMS[2], failed], "otel")
    assert [change.path for change in dumped.report] == ["/input/1/signature", "/input/3/is_error"]


def test_unknown_parts_are_reported() -> None:
    parts = [{"type": "novelty"}, {"type": "blob", "modality": "image", "content": ""}]
    loaded = load_transcript([{"role": "user", "parts": parts}], "otel")
    assert loaded.items == []
    assert [change.path for change in loaded.report] == ["/0/parts/0", "/0/parts/1"]


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "novelty", "parts": []}, "/0/role is one of"),
        ({"role": "user", "parts": 3}, "/0/parts: not a list"),
        ({"role": "user", "parts": [3]}, "/0/parts/0: not a JSON object"),
        ({"role": "user", "parts": [{"type": "text", "content": 3}]}, "/0/parts/0/content"),
        ({"role": "user", "parts": [{"type": 3}]}, "/0/parts/0/type: not a text"),
    ],
)
def test_bad_message_is_an_error_with_its_place(message: Any, place: str) -> None:
    with pytest.raises(ValueError, match=place):
        load_transcript([message], "otel")
    with pytest.raises(ValueError, match="not JSON, or only its beginning"):
        load_transcript({"gen_ai.input.messages": "[{"})


def test_media_of_an_output_without_bytes_is_reported() -> None:
    blob = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": ""}
    listed: list[Any] = [{"type": "text", "content": "see"}, blob]
    part = {"type": "tool_call_response", "id": "c", "response": listed}
    transcript = load_transcript([{"role": "tool", "parts": [part]}], "otel")
    assert transcript.items == [FunctionCallOutput("c", "see")]
    [change] = transcript.report
    assert change.path == "/0/parts/0/response/1"
    listed[0] = {"type": "text", "content": 3}
    with pytest.raises(ValueError, match="/0/parts/0/response/0/content: not a text"):
        load_transcript([{"role": "tool", "parts": [part]}], "otel")


def test_data_urls_are_written_whole() -> None:
    items = [Message("user", (Image(url="data:image/png;base64,iVBORw0KGgo="),))]
    assert load_transcript(dump_transcript(items, "otel")).items == items


def test_instructions_that_are_no_text_are_reported() -> None:
    parts = [{"type": "text", "content": "Be brief."}, {"type": "blob", "content": "eA=="}]
    transcript = load_transcript({"gen_ai.system_instructions": parts})
    assert transcript.instructions == "Be brief."
    assert [change.path for change in transcript.report] == ["/gen_ai.system_instructions/1"]


def test_transcript_of_audio_is_reported() -> None:
    audio = Audio("UklGRg==", media_type="audio/wav", transcript="Hello")
    for format_ in ("otel", "vercel"):
        [change] = dump_transcript([Message("user", (audio,))], format_).report
        assert change.path.startswith("/input/0")
        assert "transcript" in change.reason
