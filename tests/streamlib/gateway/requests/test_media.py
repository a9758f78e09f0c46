"""Images and files that a model makes, for each client."""

from __future__ import annotations

from typing import Any

import msgspec

from lab.gateway_table.table import (
    HELLO,
    PNG,
    client_response,
    events_for_client,
    next_request,
    response_of,
    stream_of,
)
from streamlib import Audio, Document, Image, Message, Response, ServerToolCall
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.gateways import CLIENTS

GENERATED = ServerToolCall(
    "ig_1",
    "image_generation",
    id="ig_1",
    native={"type": "image_generation_call", "result": PNG, "output_format": "png"},
)
WITH_IMAGES: tuple[WireApi, ...] = ("chat", "gemini", "interactions")


def media_of(response: Response) -> list[Any]:
    media: list[Any] = []
    for item in response.items:
        if isinstance(item, Message):
            media += [part for part in item.content if isinstance(part, Image | Audio | Document)]
    return media


def gemini_file(media_type: str, data: str) -> bytes:
    """A response of Gemini with a text and a file."""
    parts = [{"text": "Here:"}, {"inlineData": {"mimeType": media_type, "data": data}}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    body = {"candidates": [candidate], "modelVersion": "m", "responseId": "r1"}
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


@each_case("wire", list(WITH_IMAGES))
def test_generated_image_is_an_image_of_the_client(wire: WireApi) -> None:
    stream = stream_of("responses", response_of(HELLO, GENERATED))
    (image,) = media_of(client_response(wire, "responses", stream))
    assert isinstance(image, Image)
    assert image.data == PNG
    assert image.media_type == "image/png"


@each_case("wire", [wire for wire in CLIENTS if wire != "responses"])
def test_generated_image_returns_as_its_call(wire: WireApi) -> None:
    stream = stream_of("responses", response_of(HELLO, GENERATED))
    body = msgspec.json.decode(next_request(wire, "responses", stream))
    types = [item["type"] for item in body["input"]]
    assert types == ["message", "message", "image_generation_call"]
    assert body["input"][2]["result"] == PNG


@each_case("wire", ["messages", "cohere"])
@each_case("model", ["responses", "chat", "gemini"])
def test_image_without_a_place_leaves_no_blank_text(model: WireApi, wire: WireApi) -> None:
    """Messages refuses an empty text in the next request."""
    items: list[Any] = [HELLO, Message("assistant", [Image(PNG, media_type="image/png")])]
    if model == "responses":
        items[1] = GENERATED
    response = client_response(wire, model, stream_of(model, response_of(*items)))
    texts = [item.text for item in response.items if isinstance(item, Message)]
    assert texts == ["Hello."]


@each_case("wire", ["interactions"])
def test_file_of_a_model_reaches_the_client(wire: WireApi) -> None:
    (file,) = media_of(client_response(wire, "gemini", gemini_file("application/pdf", "JVBERi0=")))
    assert isinstance(file, Document)
    assert (file.data, file.media_type) == ("JVBERi0=", "application/pdf")


def test_pdf_is_not_an_audio_of_chat() -> None:
    """Its bytes were streamed as sound."""
    stream = gemini_file("application/pdf", "JVBERi0=")
    assert media_of(client_response("chat", "gemini", stream)) == []
    assert "JVBERi0=" in repr(events_for_client("chat", "gemini", stream))
    (audio,) = media_of(client_response("chat", "gemini", gemini_file("audio/wav", "UklGRg==")))
    assert isinstance(audio, Audio)
