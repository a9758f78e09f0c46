"""Decodes a request to Cohere's v2 chat into a `Prompt`: the inverse of `build`.

The state machine that reads responses also reads assistant messages, so that what a client sends
back is the item it once received.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from streamlib.request.json_objects import rest_of, without_none
from streamlib.request.prompt import Prompt
from streamlib.wires.cohere.build_messages import MESSAGE_FIELDS
from streamlib.wires.cohere.settings import SETTINGS, read_tools
from streamlib.wires.model_turns import MessageReader, body_fields, items_of
from streamlib_parsers.events import Passthrough, ResponseEvent
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    ContentPart,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Origin,
    Output,
    Text,
)
from streamlib_parsers.json_text import dumps

ORIGIN: Final = Origin("cohere")

ASSISTANT_KEYS: Final = ("role", "content", "tool_plan", "tool_calls", "citations")
"""Keys of an assistant message that become items."""

EMPTY_CONTENTS: Final[tuple[Any, ...]] = ("", [{"type": "text", "text": ""}])
"""Contents without a text."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: the JSON body.
        headers: not read: this wire keeps nothing there.
        path: not read: the body names the model.

    Returns:
        The prompt.
    """
    del headers, path
    decoded, messages = body_fields(body, "messages")
    fields: JsonObject = without_none(decoded)
    reader = _MessageReader("cohere")
    for message in msgspec.json.decode(messages, type=list[dict[str, Any]]):
        reader.read(message)
    model, stream = fields.pop("model", None), fields.pop("stream", False)
    tools = read_tools(fields)
    return unchecked(Prompt)(
        input=reader.items,
        instructions=reader.instructions,
        tools=tools,
        model=model,
        stream=bool(stream),
        **SETTINGS.read(fields),
    )


class _MessageReader(MessageReader):
    """Converts messages to items."""

    def read(self, message: JsonObject) -> None:
        """Appends the items of one message."""
        role = message["role"]
        match role:
            case "user":
                self._message("user", message)
            case "system":
                self._system(message)
            case "assistant":
                self._assistant(message)
            case "tool":
                self._tool(message)
            case _:
                raise KeyError(role)
        self._last_role = role

    def _message(self, role: Any, message: JsonObject) -> None:
        native = rest_of(message, "role", "content")
        parts = _parts(message["content"])
        self.items.append(Message(role, parts, origin=ORIGIN, native=native))

    def _system(self, message: JsonObject) -> None:
        parts = _parts(message["content"])
        is_plain = len(parts) == 1 and parts[0].native is None and message.keys() == _PLAIN_KEYS
        is_first = not self.items and self.instructions is None
        if is_plain and is_first and isinstance(parts[0], Text):
            self.instructions = parts[0].text
            return
        self._message("system", message)

    def _assistant(self, message: JsonObject) -> None:
        """Reads an assistant message. Calls keep the arguments they came with, JSON or not."""
        sent = {key: message[key] for key in ASSISTANT_KEYS if message.get(key) is not None}
        if sent.get("content") in EMPTY_CONTENTS and ("tool_calls" in sent or "tool_plan" in sent):
            # Some clients write an empty text beside calls; it is not a message of its own.
            del sent["content"]
        body = msgspec.json.encode({"message": sent, "finish_reason": "COMPLETE"})
        events = self._turns.events(body)
        items = [msgspec.structs.replace(item, status="completed") for item in items_of(events)]
        if not items:
            # A plan or a list of calls that is empty makes no item: the builder reports the turn.
            items.append(Message("assistant", origin=ORIGIN))
        rest = rest_of(message, *ASSISTANT_KEYS) or {}
        unplaced = _unplaced_citations(events)
        if unplaced:
            rest["citations"] = unplaced
        if rest and items:
            native = {**(items[0].native or {}), MESSAGE_FIELDS: rest}
            items[0] = msgspec.structs.replace(items[0], native=native)
        if self._last_role == "assistant":
            # This id shows the builder that another message begins here.
            items = self._turns.apart(items)
        self.items += items

    def _tool(self, message: JsonObject) -> None:
        output: Output = ""
        sent = message["content"]
        if isinstance(sent, str):
            output = sent
        else:
            output = _parts(sent)
        native = rest_of(message, "role", "tool_call_id", "content")
        call_id = msgspec.convert(message["tool_call_id"], str)
        self.items.append(FunctionCallOutput(call_id, output, origin=ORIGIN, native=native))


def _unplaced_citations(events: list[ResponseEvent]) -> list[Any]:
    """Citations of a content that the message does not have."""
    citations: list[Any] = []
    for event in events:
        if isinstance(event, Passthrough) and event.event == "citation-start":
            citations.append(event.data["delta"]["message"]["citations"])
    return citations


_PLAIN_KEYS: Final = {"role", "content"}


def _parts(sent: Any) -> tuple[ContentPart, ...]:
    if isinstance(sent, str):
        return (Text(sent),)
    return tuple(_part(body) for body in msgspec.convert(sent, list[dict[str, Any]]))


def _part(body: JsonObject) -> ContentPart:
    kind = body["type"]
    if kind == "text":
        text = msgspec.convert(body["text"], str)
        return Text(text, native=rest_of(body, "type", "text"))
    if kind == "image_url" and body.keys() == {"type", "image_url"}:
        return _image(body["image_url"])
    # A content of an unknown kind, or a document of a result. Other wires get its JSON as text,
    # this wire gets it as received.
    return Text(dumps(body.get(kind, body)), native=body)


def _image(image: Any) -> Image:
    if isinstance(image, str):
        image = {"url": image}
    url = msgspec.convert(image["url"], str)
    native = rest_of(image, "url")
    media_type, is_inline, data = url.removeprefix("data:").partition(";base64,")
    if is_inline and url.startswith("data:") and ";" not in media_type:
        return unchecked(Image)(data, media_type=media_type or None, native=native)
    return unchecked(Image)(url=url, native=native)
