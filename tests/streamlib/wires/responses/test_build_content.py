"""Responses requests: parts of messages and outputs."""

from __future__ import annotations

import pytest

from streamlib import (
    Audio,
    Document,
    Image,
    Message,
    Refusal,
    Text,
    user,
)
from tests.support.responses_builds import CALL, PNG, body, built, changes, sent


def test_r5_roles_have_their_own_kind_of_text() -> None:
    objects = sent(
        Message("system", [Text("s")]),
        Message("developer", [Text("d")]),
        user("u"),
        Message("assistant", [Text("a"), Refusal("no")]),
    )
    assert [
        (sent_object["role"], [part["type"] for part in sent_object["content"]])
        for sent_object in objects
    ] == [
        ("system", ["input_text"]),
        ("developer", ["input_text"]),
        ("user", ["input_text"]),
        ("assistant", ["output_text", "refusal"]),
    ]


def test_images_are_urls_with_their_true_type_and_a_detail() -> None:
    low = Image(url="https://x/y.png", native={"detail": "low"})
    assert sent(user("", PNG, low, Image(file_id="file_1")))[0]["content"] == [
        {
            "type": "input_image",
            "image_url": "data:image/png;base64,iVBORw0KGgo=",
            "detail": "auto",
        },
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        {"type": "input_image", "file_id": "file_1", "detail": "auto"},
    ]


def test_documents_have_a_name_with_bytes_only() -> None:
    parts = [
        Document(data="JVBERi0=", name="a.pdf"),
        Document(data="eA==", media_type="text/plain"),
        Document(url="https://x/a.pdf", name="a"),
    ]
    assert sent(user("", *parts, Document(file_id="file_1")))[0]["content"] == [
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        },
        {
            "type": "input_file",
            "filename": "document.txt",
            "file_data": "data:text/plain;base64,eA==",
        },
        {"type": "input_file", "file_url": "https://x/a.pdf"},
        {"type": "input_file", "file_id": "file_1"},
    ]


def test_audio_is_input_audio() -> None:
    assert sent(user("", Audio(data="SUQz", media_type="audio/mpeg"), Audio(data="eA==")))[0][
        "content"
    ] == [
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
    ]


def test_part_of_an_unknown_kind_is_the_wires_own_object() -> None:
    unknown = Text("{}", native={"type": "input_video", "x": 1})
    assert sent(user("", unknown))[0]["content"] == [{"type": "input_video", "x": 1}]
    assert sent(user("x"), Message("assistant", [unknown, Text("a")]))[1]["content"][0] == {
        "type": "input_video",
        "x": 1,
    }


def test_media_of_a_response_is_dropped_and_its_text_kept() -> None:
    request = built(user("x"), Message("assistant", [PNG, Audio(data="x", transcript="said")]))
    assert [part["text"] for part in body(request)["input"][1]["content"]] == ["said"]
    assert changes(request) == [("dropped", "/input/1")] * 2


def test_outputs_are_text_or_parts() -> None:
    objects = sent(
        user("x"),
        CALL,
        CALL.output(
            [Text("a"), PNG, Refusal("no"), Audio(transcript="t", data="x"), Audio(data="x")]
        ),
    )
    assert [part["type"] for part in objects[2]["output"]] == [
        "input_text",
        "input_image",
        "input_text",
        "input_text",
    ]
    assert sent(user("x"), CALL, CALL.output([]))[2]["output"] == ""


@pytest.mark.parametrize(("output", "sent_as"), [("no", "[error] no"), ("", "[error]")])
def test_failed_call_is_marked_in_its_text(output: str, sent_as: str) -> None:
    request = built(user("x"), CALL, CALL.output(output, is_error=True))
    assert body(request)["input"][2]["output"] == sent_as
    assert changes(request) == [("changed", "/input/2/is_error")]
    parts = sent(user("x"), CALL, CALL.output([PNG], is_error=True))[2]["output"]
    assert [part["type"] for part in parts] == ["input_text", "input_image"]


def test_r7_message_without_content_is_dropped() -> None:
    request = built(user("x"), Message("assistant"), user())
    assert len(body(request)["input"]) == 1
    assert changes(request) == [("dropped", "/input/1"), ("dropped", "/input/2")]
