"""Chat requests: images, documents, audio and cache markers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    Audio,
    CacheOptions,
    Document,
    Image,
    Message,
    Origin,
    Prompt,
    Text,
    build,
    user,
)
from streamlib.providers.shapes import (
    ChatShape,
)
from tests.support.cases import each_case
from tests.support.chat_builds import CALL, HERE, PNG, PNG_PART, TEXT, body, built, changes, sent

# --- content ---


@each_case(
    "part, sent_as",
    [
        (PNG, PNG_PART),
        (
            Image(url="https://x/y.png", native={"detail": "low"}),
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        ),
        (Image(file_id="file_1"), {"type": "file", "file": {"file_id": "file_1"}}),
        (
            Document("JVBERi0=", name="a.pdf"),
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            },
        ),
        (Document(file_id="file_1"), {"type": "file", "file": {"file_id": "file_1"}}),
        (
            Document(url="https://x/a.pdf"),
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "https://x/a.pdf"}},
        ),
        (
            Document("aGk=", media_type="text/markdown", name="a.md"),
            {"type": "text", "text": "[a.md]\nhi"},
        ),
        (
            Audio("AAAA", media_type="audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        ),
        (
            Audio("AAAA", media_type="audio/wav"),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ),
        (Audio(url="https://x/a.mp3", transcript="hm"), {"type": "text", "text": "hm"}),
        (Text("{}", native={"type": "hologram"}), {"type": "hologram"}),
    ],
)
def test_images_documents_and_audio_in_every_form(part: Any, sent_as: dict[str, Any]) -> None:
    assert sent(user("see", part))[0]["content"] == [{"type": "text", "text": "see"}, sent_as]


def test_native_of_another_wires_part_is_not_sent() -> None:
    message = Message(
        "user", [Text("{}", native={"type": "container_upload"})], origin=Origin("messages")
    )
    assert sent(message)[0]["content"] == "{}"


def test_images_of_an_assistant_move_into_a_user_message() -> None:
    drawn = Message("assistant", [Text("see"), PNG], origin=HERE, response_id="r1")
    request = built(user("x"), drawn, CALL, CALL.output("1"), user("y"))
    messages = body(request)["messages"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
    ]
    assert messages[3]["content"] == [
        {"type": "text", "text": "[attached to the answer above]"},
        PNG_PART,
    ]
    assert changes(request) == [("changed", "/input/1")]


@pytest.mark.parametrize(
    ("form", "contents"),
    [
        ("auto", ["one", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]]),
        ("string", ["one", "one\n\ntwo"]),
        (
            "parts",
            [
                [{"type": "text", "text": "one"}],
                [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            ],
        ),
    ],
)
def test_content_is_a_string_or_parts_as_the_provider_takes(form: Any, contents: list[Any]) -> None:
    items = [user("one"), Message("user", [Text("one"), Text("two")])]
    assert [
        message["content"] for message in sent(*items, shape=ChatShape(content=form))
    ] == contents


# --- caching ---


def test_cache_markers_are_on_the_last_part_at_most_four() -> None:
    shape = ChatShape(cache_control=True)
    history = [
        user("a"),
        TEXT,
        user("b"),
        msgspec.structs.replace(TEXT, response_id="r2"),
        user("c"),
        CALL,
        CALL.output("1"),
    ]
    messages = sent(*history, shape=shape, cache=CacheOptions("1h", range(7)))
    marked = [message["role"] for message in messages if isinstance(message.get("content"), list)]
    assert marked == ["assistant", "user", "tool"]
    assert messages[-1]["content"][-1] == {
        "type": "text",
        "text": "1",
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }


def test_openai_has_breakpoints_from_gpt_5_6_on() -> None:
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    for model, is_sent in (("gpt-5.6", True), ("gpt-5.4", False)):
        prompt = Prompt([user("a"), user("b")], cache=CacheOptions("12h", [0]))
        request = build(prompt, f"openai:{model}", wire_api="chat")
        first = msgspec.json.decode(request.body)["messages"][0]
        reported = ("changed", "/cache/ttl") if is_sent else ("dropped", "/cache/breakpoints")
        assert [(one.action, one.path) for one in request.report] == [reported]
        assert (first["content"] == [{"type": "text", "text": "a", **mark}]) == is_sent


def test_unsupported_cache_breakpoints_are_reported() -> None:
    assert changes(built(cache=CacheOptions(breakpoints=[0]))) == [
        ("dropped", "/cache/breakpoints")
    ]
    assert built(cache="auto").report == []
