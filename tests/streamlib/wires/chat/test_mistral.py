"""Mistral's chunks of the content: read, and sent back in the form that they had."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    Audio,
    Document,
    FunctionCall,
    Message,
    Origin,
    Reasoning,
    Response,
    ResponseItem,
    Text,
    accumulate,
    build,
    encode_all,
    parse_body,
    parse_request,
    parser,
    user,
)
from streamlib.wires.encoders import encoder_options
from tests.support.chat_streams import chunk, delta_chunk, events_of

FOUND = {"type": "tool_reference", "tool": "web_search", "title": "Oslo", "url": "https://o.test"}
MODEL = "mistral:mistral-medium-latest"
ORIGIN = Origin("chat", "mistral", "https://api.mistral.ai/v1", "mistral-medium-latest")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def sent(*items: ResponseItem) -> list[Any]:
    request = build(list(items), MODEL)
    assert request.report == []
    messages: list[Any] = msgspec.json.decode(request.body)["messages"]
    return messages


def read(*content: Any) -> Response:
    chunks = [delta_chunk(content=part) for part in content]
    return accumulate(events_of(*chunks, chunk(None, "stop"), origin=ORIGIN))


def test_tool_reference_annotates_the_text_before_it() -> None:
    """It was an opaque item."""
    (item,) = read("It is ", [text("cold"), FOUND], " there.").items
    assert isinstance(item, Message)
    before, after = item.content
    assert isinstance(before, Text)
    assert (before.text, before.annotations) == ("It is cold", (FOUND,))
    assert isinstance(after, Text)
    assert after.text == " there."


def test_references_in_reasoning_go_back_where_they_stood() -> None:
    """They were passed through, and missing from the next request."""
    thinking = {"type": "thinking", "thinking": [text("Cold"), FOUND, text(", it says")]}
    response = read([{**thinking, "closed": True}], "Cold.")
    reasoning, _ = response.items
    assert isinstance(reasoning, Reasoning)
    assert reasoning.content == "Cold, it says"
    assert [type(item) for item in response.items] == [Reasoning, Message]
    _, answer = sent(user("?"), *response.items)[:2]
    assert answer["content"] == [{**thinking, "closed": True}, text("Cold.")]


def test_fragments_of_reasoning_keep_their_references() -> None:
    fragments = [
        [{"type": "thinking", "thinking": [part]}] for part in (text("a"), FOUND, text("b"), FOUND)
    ]
    response = read(*fragments, "c")
    _, answer = sent(user("?"), *response.items)[:2]
    assert answer["content"][0]["thinking"] == [text("a"), FOUND, text("b"), FOUND]


def test_document_by_its_address_is_a_part() -> None:
    """It was an opaque item in a response, and a text of its JSON in a request."""
    part = {"type": "document_url", "document_url": "https://o.test/a.pdf", "document_name": "a"}
    body = {"choices": [{"message": {"content": [part]}, "finish_reason": "stop"}]}
    response = accumulate(parse_body("chat", msgspec.json.encode(body), origin=ORIGIN))
    (item,) = response.items
    assert isinstance(item, Message)
    (document,) = item.content
    assert isinstance(document, Document)
    assert (document.url, document.name) == ("https://o.test/a.pdf", "a")
    assert sent(user("?"), item, user("!"))[1]["content"] == [part]


def test_document_of_a_request_keeps_its_form() -> None:
    parts = [
        text("What does it say?"),
        {"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0="},
    ]
    body = {"model": "m", "messages": [{"role": "user", "content": parts}]}
    prompt = parse_request("chat", msgspec.json.encode(body))
    (item,) = prompt.items
    assert isinstance(item, Message)
    document = item.content[1]
    assert isinstance(document, Document)
    assert (document.data, document.media_type) == ("JVBERi0=", "application/pdf")
    assert sent(*prompt.items)[0]["content"] == parts
    # A server of which nothing is known gets what it was sent.
    request = build(prompt, "custom:m", base_url="http://x")
    assert msgspec.json.decode(request.body)["messages"][0]["content"] == parts


@pytest.mark.parametrize(
    ("audio", "data", "url"),
    [("//NkxAAA", "//NkxAAA", None), ("https://o.test/a.mp3", None, "https://o.test/a.mp3")],
)
def test_audio_of_a_request_keeps_its_form(audio: str, data: str | None, url: str | None) -> None:
    """It was sent back as an object that called an MP3 `wav`."""
    part = {"type": "input_audio", "input_audio": audio}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}]}
    prompt = parse_request("chat", msgspec.json.encode(body))
    (item,) = prompt.items
    assert isinstance(item, Message)
    (read_part,) = item.content
    assert isinstance(read_part, Audio)
    assert (read_part.data, read_part.url) == (data, url)
    assert sent(*prompt.items)[0]["content"] == [part]


def test_document_of_text_is_still_sent_as_text() -> None:
    notes = Document(data=b"The port is 17.", media_type="text/plain", name="notes.txt")
    request = build([user("x", notes)], MODEL)
    content = msgspec.json.decode(request.body)["messages"][0]["content"]
    assert content[1] == text("[notes.txt]\nThe port is 17.")


def test_call_with_arguments_as_an_object_is_read() -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1.0}}, "id": "abcdefghi"}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    (item,) = accumulate(parse_body("chat", msgspec.json.encode(body))).calls
    assert isinstance(item, FunctionCall)
    assert item.parsed() == {"a": 1.0}


def test_stream_for_mistral_s_sdk_names_every_delta() -> None:
    """mistralai 3.7.0 refuses a delta of a call without a name; a name that is empty is none."""
    call = {"index": 0, "id": "abcdefghi", "function": {"name": "f", "arguments": '{"a":'}}
    rest = {"index": 0, "function": {"arguments": "1}"}}
    chunks = [delta_chunk(tool_calls=[call]), delta_chunk(tool_calls=[rest])]
    events = events_of(*chunks, chunk(None, "tool_calls"))
    options = encoder_options("chat", "mistral-client-python/3.7.0")
    body = encode_all("chat", events, **options)
    assert body.count(b'"name":') == body.count(b'"arguments":') > 1
    parse = parser("chat")
    assert accumulate([*parse.feed(body), *parse.close()]).calls == accumulate(events).calls
    assert encoder_options("chat", "OpenAI/Python 3.54.0") == {}


@pytest.mark.parametrize("own", [5, [1], [{"a": 1}], [{"position": "x", "reference": {}}]])
def test_a_key_that_is_named_like_the_references(own: Any) -> None:
    """A part may have it, of any type: parser and builder raised TypeError or KeyError."""
    thinking = {"type": "thinking", "thinking": [text("Cold")], "references": own}
    response = read([thinking], "c")
    assert sent(user("?"), *response.items)[1]["content"][0]["thinking"] == [text("Cold")]
    more = {"type": "thinking", "thinking": [FOUND]}
    response = read([thinking], [more], "c")
    assert sent(user("?"), *response.items)[1]["content"][0]["thinking"] == [text("Cold"), FOUND]
