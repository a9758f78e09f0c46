"""Decodes a request to Ollama's /api/chat into a `Prompt`: the inverse of `build`.

The state machine that reads responses also reads assistant messages. Results name their tool, not
their call: each is matched with the first pending call of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.history import with_turn_fields
from streamlib.request.json_objects import rest_of, without_none
from streamlib.request.prompt import Prompt
from streamlib.wires.model_turns import MessageReader, body_fields
from streamlib.wires.ollama.settings import SETTINGS, read_tool
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Origin,
    Output,
    Text,
)
from streamlib_parsers.wires.ollama import IMAGE_TYPES

ORIGIN: Final = Origin("ollama")

MESSAGE_KEYS: Final = ("role", "content", "images")
"""Keys of a message that typed fields hold, whatever its role."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: the JSON body.
        headers: not read: this wire keeps nothing there.
        path: not read: the model is in the body.

    Returns:
        The prompt.
    """
    decoded, messages = body_fields(body, "messages")
    fields: JsonObject = without_none(decoded)
    reader = _MessageReader("ollama")
    for message in msgspec.json.decode(messages, type=list[Raw]):
        reader.read(message)
    model = fields.pop("model", None)
    # Ollama streams by default.
    stream = fields.pop("stream", None) is not False
    tools = [read_tool(tool) for tool in fields.pop("tools", ())]
    fields["options"] = without_none(fields.get("options", {}))
    return unchecked(Prompt)(
        input=reader.items,
        instructions=reader.instructions,
        tools=tools,
        model=model,
        stream=stream,
        **SETTINGS.read(fields),
    )


# --- messages ---


class _MessageReader(MessageReader):
    """Converts messages to items, and matches results with calls."""

    def read(self, raw: Raw) -> None:
        """Appends the items of one message."""
        message = msgspec.json.decode(raw, type=dict[str, Any])
        match message["role"]:
            case "user":
                native = rest_of(message, *MESSAGE_KEYS)
                self.items.append(Message("user", _parts(message), origin=ORIGIN, native=native))
            case "assistant":
                self._assistant(raw, message)
            case "tool":
                self._tool(message)
            case "system":
                self._system(message)
            case role:
                raise KeyError(role)
        self._last_role = message["role"]

    def _system(self, message: JsonObject) -> None:
        native = rest_of(message, *MESSAGE_KEYS)
        is_plain = native is None and not message.get("images")
        if is_plain and not self.items and self.instructions is None:
            self.instructions = str(message["content"])
        else:
            parts = _parts(message)
            self.items.append(Message("system", parts, origin=ORIGIN, native=native))

    def _assistant(self, raw: Raw, message: JsonObject) -> None:
        body = b'{"message":%s,"done":true}' % bytes(raw)
        # A history is complete, even if the arguments of a call are not JSON.
        items = [
            msgspec.structs.replace(item, status="completed") for item in self._turns.read(body)
        ]
        fields = rest_of(message, *MESSAGE_KEYS, "thinking", "tool_calls")
        if not items:
            items = [Message("assistant", origin=ORIGIN)]
        items = [with_turn_fields(item, fields) for item in items]
        if self._last_role == "assistant":
            # This id shows the builder that another message begins here.
            items = self._turns.apart(items)
        self._pending = [item for item in items if isinstance(item, FunctionCall)]
        self.items += items

    def _tool(self, message: JsonObject) -> None:
        call_id = message.get("tool_call_id")
        # Older clients write `name`.
        call = self._pending_call(call_id, message.get("tool_name") or message.get("name"))
        if call is not None:
            self._pending.remove(call)
            call_id = call_id or call.call_id
        parts = _parts(message)
        output: Output = parts
        if all(isinstance(part, Text) for part in parts):
            output = msgspec.convert(message.get("content") or "", str)
        native = rest_of(message, *MESSAGE_KEYS, "name", "tool_name", "tool_call_id")
        call_id = str(call_id or "")
        self.items.append(FunctionCallOutput(call_id, output, origin=ORIGIN, native=native))

    def _pending_call(self, call_id: Any, name: Any) -> FunctionCall | None:
        """The call with that id, else the first of that name, else the first."""
        for call in self._pending:
            if call_id and call.call_id == call_id:
                return call
            if not call_id and name in (None, call.name):
                return call
        if self._pending:
            return self._pending[0]
        return None


def _parts(message: JsonObject) -> tuple[ContentPart, ...]:
    parts: list[ContentPart] = []
    if message.get("content"):
        parts.append(Text(message["content"]))
    for data in message.get("images") or ():
        parts.append(_image(data))
    return tuple(parts)


def _image(data: str) -> Image:
    """An image. The wire names no media type, so the first bytes decide."""
    for prefix, media_type in IMAGE_TYPES.items():
        if data.startswith(prefix):
            return unchecked(Image)(data, media_type=media_type)
    return unchecked(Image)(data)
