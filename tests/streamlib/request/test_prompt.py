"""Prompts and parts refuse what no wire could send; what a downgrade loses is reported."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import httpx
import msgspec
import pytest

from streamlib import (
    WIRE_APIS,
    Audio,
    Client,
    Document,
    History,
    Image,
    Message,
    Origin,
    Prompt,
    ReasoningOptions,
    Text,
    WireApi,
    accumulate,
    build,
    parse_body,
    parse_request,
    user,
)
from streamlib.request.media import media_type
from streamlib.testing import MODEL
from streamlib_parsers.item_base import SIGNATURES
from tests.support.cases import each_case


class Model:
    """Not a JSON Schema."""


def test_output_schema_without_a_schema_is_a_type_error() -> None:
    """B7: a class was an `AttributeError` on one provider, and sent as it is on another.

    Issue 16: classes that a library knows are taken; this is none.
    """
    schema: Any = Model
    with pytest.raises(TypeError, match="output_schema is a JSON Schema as a dict"):
        Prompt("x", output_schema=schema)


@each_case("wire_api", WIRE_APIS)
def test_stop_of_one_text_is_one_stop_sequence(wire_api: WireApi) -> None:
    """It was sent as its letters, each of which ended the output."""
    bodies = []
    for stop in ("END", ["END"]):
        prompt = Prompt("x", stop=stop)
        assert prompt.stop == ("END",)
        request = build(prompt, MODEL, wire_api=wire_api, base_url="http://127.0.0.1")
        bodies.append(request.body)
    assert bodies[0] == bodies[1]
    assert Prompt("x", stop=[]) == Prompt("x")


@pytest.mark.parametrize("wrong", [b"END", ["a", 1]], ids=repr)
def test_stop_of_anything_but_texts_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="stop is a text or a list of texts, not"):
        Prompt("x", stop=wrong)


def test_stop_of_an_empty_text_is_a_value_error() -> None:
    """A list may hold one, as requests of other programs do; builders report it or send it."""
    with pytest.raises(ValueError, match="leave it out"):
        Prompt("x", stop="")
    assert Prompt("x", stop=[""]).stop == ("",)


@each_case("kind", [Image, Document, Audio])
@each_case("made", [bytes, bytearray, memoryview])
def test_media_of_bytes_holds_their_base64_text(kind: Any, made: Any) -> None:
    """Issue 16: B13 made it a clear `TypeError`; now bytes are encoded."""
    part = kind(data=made(b"\x89PNG"))
    assert part.data == "iVBORw=="
    assert msgspec.json.decode(msgspec.json.encode(part), type=kind) == part
    assert kind(data=part.data) == part


@pytest.mark.parametrize("kind", [Image, Document, Audio])
def test_media_of_neither_text_nor_bytes_is_a_type_error(kind: Any) -> None:
    with pytest.raises(TypeError, match="data is bytes, or their base64 text, not list"):
        kind(data=[1, 2])


@pytest.mark.parametrize("magic", SIGNATURES)
def test_media_of_base64_as_bytes_is_a_type_error(magic: str) -> None:
    """Encoded twice, it would be sent without an error."""
    with pytest.raises(TypeError, match="pass it as text"):
        Image(data=magic.encode() + b"AAAA")


@each_case("kind", [Image, Document, Audio])
@each_case(
    "fields, meant",
    [
        ({}, "neither data= nor url= nor file_id=: give one"),
        ({"media_type": "image/png"}, "neither data= nor url= nor file_id=: give one"),
        ({"data": b""}, "neither data= nor url= nor file_id=: give one"),
        ({"data": "photo.png"}, r"not the name of a file.*read_bytes\(\)"),
        ({"data": "/home/me/photo.png"}, r"not the name of a file.*read_bytes\(\)"),
        ({"data": "https://x.org/photo.png"}, "an address belongs in url="),
        ({"data": "data:image/png;base64,iVBORw0KGgo="}, "the base64 text alone"),
        ({"data": b"\x89PNG", "url": "https://x.org/a.png"}, "not data and url"),
        ({"url": "https://x.org/a.png", "file_id": "file_1"}, "not url and file_id"),
    ],
)
def test_media_nobody_could_read_is_a_value_error(
    kind: Any, fields: dict[str, Any], meant: str
) -> None:
    """It was sent: as an empty picture, or the name of a file as if that were the picture."""
    with pytest.raises(ValueError, match=meant):
        kind(**fields)


@pytest.mark.parametrize("data", [b"zzz", "enp6", b"%PDF-1.7", b"RIFF\x10\0\0\0WAVEfmt "])
def test_image_of_no_known_picture_needs_its_media_type(data: Any) -> None:
    """It was called a PNG."""
    with pytest.raises(ValueError, match="no PNG, JPEG, GIF or WebP"):
        Image(data)
    assert Image(data, media_type="image/heic").media_type == "image/heic"


def test_audio_may_be_its_name_or_its_transcript() -> None:
    """Chat takes the id of an audio that it has made."""
    assert Audio(name="audio_1").name == "audio_1"
    assert Audio(transcript="Hi").transcript == "Hi"


def test_media_of_a_saved_history_is_not_checked() -> None:
    """Only what a program makes is checked: nothing of a provider or a saved history is lost."""
    odd = [{"type": "image"}, {"type": "image", "data": "photo.png", "url": "https://x.org/a.png"}]
    message = {"type": "message", "role": "user", "content": odd}
    (loaded,) = History.loads(msgspec.json.encode({"items": [message]}))
    assert isinstance(loaded, Message)
    assert list(msgspec.to_builtins(loaded.content)) == odd
    assert History.loads(History([loaded]).dumps()) == [loaded]
    assert pickle.loads(pickle.dumps(loaded)) == copy.deepcopy(loaded) == loaded
    for part in loaded.content:
        assert msgspec.structs.replace(part, native={}).native == {}


def test_media_of_a_provider_is_not_checked() -> None:
    blob = {"inlineData": {"mimeType": "image/png", "data": "photo.png"}}
    candidate = {"content": {"role": "model", "parts": [blob]}, "finishReason": "STOP"}
    response = accumulate(parse_body("gemini", msgspec.json.encode({"candidates": [candidate]})))
    (message,) = response.items
    assert isinstance(message, Message)
    (part,) = message.content
    assert isinstance(part, Image)
    assert part.data == "photo.png"


@pytest.mark.parametrize("url", ["", "photo.png", "data:image/png;base64,photo.png"])
def test_media_of_a_request_is_not_checked(url: str) -> None:
    content = [{"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    (message,) = parse_request("chat", msgspec.json.encode(body)).items
    assert isinstance(message, Message)
    assert isinstance(message.content[0], Image)


def test_wav_and_webp_files_are_distinguished() -> None:
    assert media_type(Audio(data=b"RIFF\x10\0\0\0WAVEfmt ")) == "audio/wav"
    assert media_type(Image(data=b"RIFF\x10\0\0\0WEBPVP8 ")) == "image/webp"


def test_options_of_parts_that_a_downgrade_drops_are_reported() -> None:
    """B13: an image's `detail` was dropped without a word."""
    image = Image(url="http://x/y.png", native={"detail": "high"})
    asked = Message("user", (Text("see"), image), origin=Origin("responses"))
    report = build([asked], "anthropic:claude-opus-5").report
    assert [(change.action, change.path) for change in report] == [("downgraded", "/input/0")]
    assert "detail" in report[0].reason


async def test_client_has_the_origin_options_of_build() -> None:
    """B13: `strict_origin` and `account` existed on `build` only."""
    history = [user("x"), Message("assistant", [Text("so")], signature="s"), user("y")]
    async with httpx.AsyncClient() as http:
        client = Client(http=http, api_key="none")
        stream = client.stream(history, "openai:gpt-4o", strict_origin=True, account="org-1")
        request = stream.request
    assert request is not None
    assert request.origin.account == "org-1"
    assert [change.path for change in request.report] == ["/input/1"]


def test_audio_id_of_another_origin_is_not_sent() -> None:
    audio = Audio(name="audio_1", transcript="Hi")
    said = Message("assistant", (audio,), origin=Origin("chat", "openai", model="gpt-audio"))
    body = build(
        [user("x"), said, user("y")], "custom:other", wire_api="chat", base_url="http://x"
    ).body
    assert b"audio_1" not in body
    assert b"Hi" in body


def test_unknown_effort_of_converse_stays_in_extra() -> None:
    body = {
        "messages": [{"role": "user", "content": [{"text": "x"}]}],
        "additionalModelRequestFields": {"reasoning_effort": "ultra"},
    }
    prompt = parse_request("converse", msgspec.json.encode(body), path="/model/m/converse")
    assert prompt.reasoning is None
    assert prompt.extra == {"additionalModelRequestFields": {"reasoning_effort": "ultra"}}


@pytest.mark.parametrize("budget", [-2, -1, 0])
def test_budget_below_minus_one_is_refused(budget: int) -> None:
    for reasoning in (budget, ReasoningOptions(budget=budget)):
        if budget == -2:
            with pytest.raises(ValueError, match="tokens from 0, or -1"):
                Prompt("x", reasoning=reasoning)
        else:
            Prompt("x", reasoning=reasoning)
