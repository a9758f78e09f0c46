"""Gemini requests: media, free-form calls and state of other origins."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    Audio,
    Compaction,
    CustomToolCall,
    Document,
    Image,
    Message,
    Opaque,
    Origin,
    Reasoning,
    Refusal,
    ServerToolCall,
    Text,
    ToolSpec,
    user,
)
from tests.support.cases import each_case
from tests.support.gemini_builds import ELSEWHERE, HERE, NEW, PNG, body, built, parts, paths


@each_case(
    "part, sent",
    [
        (PNG, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        (
            Image(url="https://x/y.webp?a=1"),
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://x/y.webp?a=1"}},
        ),
        (
            Image(url="data:image/gif;base64,R0lGOD"),
            {"inlineData": {"mimeType": "image/gif", "data": "R0lGOD"}},
        ),
        (Image(file_id="files/1"), {"fileData": {"fileUri": "files/1"}}),
        (
            Document(url="gs://b/v", media_type="video/mp4"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v"}},
        ),
        (
            Document(data="aGk=", media_type="text/plain"),
            {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
        ),
        (Audio(data="SUQz"), {"inlineData": {"mimeType": "audio/mpeg", "data": "SUQz"}}),
        (Audio(transcript="hi"), {"text": "hi"}),
        (
            Document(
                data="AA==",
                media_type="video/mp4",
                native={"videoMetadata": {"fps": 1}, "inlineData": {"x": 2}},
            ),
            {
                "inlineData": {"mimeType": "video/mp4", "data": "AA==", "x": 2},
                "videoMetadata": {"fps": 1},
            },
        ),
        (Refusal("no"), {"text": "no"}),
    ],
)
def test_images_documents_and_audio_in_every_form(part: Any, sent: dict[str, Any]) -> None:
    assert parts(built(user("x", part)), 0)[1] == sent


def test_file_names_are_sent_if_the_provider_takes_them() -> None:
    document = user("x", Document(data="JVBERi0=", name="a.pdf"))
    assert parts(built(document), 0)[1]["inlineData"]["displayName"] == "a.pdf"
    refused = built(document, model=NEW)
    assert "displayName" not in parts(refused, 0)[1]["inlineData"]
    assert paths(refused) == {"/input/0/content/1/name"}


def test_images_of_the_model_are_replayed_signed() -> None:
    made = Message("assistant", [PNG], signature="s", origin=HERE)
    assert parts(built(user("x"), made), 1) == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "s"}
    ]


def test_free_form_call_is_sent_as_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    request = built(
        user("x"), call, call.output("ok"), tools=[ToolSpec("patch", format={"type": "text"})]
    )
    assert parts(request, 1)[0]["functionCall"]["args"] == {"input": "*** Begin"}
    assert body(request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"][
        "required"
    ] == ["input"]


@pytest.mark.parametrize(
    ("foreign", "sent"),
    [
        (Reasoning("hm", signature="EqQB", origin=ELSEWHERE), [{"text": "<think>\nhm\n</think>"}]),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses")), []),
        (
            Message(
                "assistant", [Text("so", [{"type": "cite"}])], signature="EqQB", origin=ELSEWHERE
            ),
            [{"text": "so"}],
        ),
        (
            ServerToolCall("s", "web_search", "{}", origin=Origin("responses")),
            [{"text": "[web_search {}]"}],
        ),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), []),
        (Compaction(None, "gAAA"), []),
    ],
)
def test_foreign_state_is_downgraded_and_reported(foreign: Any, sent: list[Any]) -> None:
    request = built(user("x"), foreign, user("y"), model=NEW)
    assert [
        part
        for turn in body(request)["contents"]
        if turn["role"] == "model"
        for part in turn["parts"]
    ] == sent
    assert [change.action for change in request.report] == ["downgraded" if sent else "dropped"]
    assert b"EqQB" not in request.body
    assert b"gAAA" not in request.body


def test_readable_compaction_is_user_text() -> None:
    request = built(Compaction("We spoke of x."), user("y"))
    assert parts(request, 0)[0] == {"text": "We spoke of x."}
    assert [change.action for change in request.report] == ["downgraded"]
