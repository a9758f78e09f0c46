"""Decodes a Chat Completions request into a `Prompt`: the inverse of `build`.

The state machine that reads responses also reads assistant messages, with the keys of any provider.
So the items are the ones that the client once received: reasoning, text, refusal, calls with their
arguments as text. Any other message is one item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.origins import EMPTY
from streamlib.request.prompt import Prompt
from streamlib.wires.cache_marks import cache_options, take_mark
from streamlib.wires.chat.build_messages import EMPTY_CONTENT
from streamlib.wires.chat.build_parts import is_list
from streamlib.wires.chat.decode_parts import (
    assistant_parts,
    content_parts,
    text_of,
)
from streamlib.wires.chat.settings import SETTINGS, read_choice
from streamlib.wires.json_objects import rest_of
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    CacheMark,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Origin,
    Output,
    Reasoning,
    ResponseItem,
    Text,
    ToolOptions,
    ToolSpec,
)
from streamlib_parsers.protocol import parse_body
from streamlib_parsers.wires.chat.delta import READ
from streamlib_parsers.wires.chat.reasoning_details import REASONING_KEYS

ORIGIN: Final = Origin("chat")


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: the JSON body.
        headers: not read: this wire keeps nothing there.
        path: not read: the model is in the body.

    Returns:
        The prompt.
    """
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    fields: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "messages"
    }
    reader = _MessageReader()
    for message in msgspec.json.decode(raw["messages"], type=list[Raw]):
        reader.read(message)
    model, stream = fields.pop("model", None), bool(fields.pop("stream", False))
    _drop_usage_option(fields, stream=stream)
    tools = _tools(fields)
    tool_choice = read_choice(fields, tools)
    return unchecked(Prompt)(
        input=reader.items,
        instructions=reader.instructions,
        tools=tools,
        tool_choice=tool_choice,
        cache=cache_options(reader.marked, None, None),
        model=model,
        stream=stream,
        **SETTINGS.read(fields),
    )


def _drop_usage_option(fields: JsonObject, *, stream: bool) -> None:
    """Drops `include_usage`: the builder requests usage in a stream by itself."""
    options = fields.pop("stream_options", None) or {}
    if stream and options.get("include_usage") is True:
        del options["include_usage"]
    if options:
        fields["stream_options"] = options


# --- messages ---


class _MessageReader:
    """Converts messages to items, and matches results with calls."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """The history so far; each message appends to it."""
        self.instructions: str | None = None
        """The text of the first message if its role is `system`."""
        self.marked: dict[int, CacheMark] = {}
        """Index of an item -> the cache marker that its message carried."""
        self._pending: list[FunctionCall] = []
        """Calls of the last assistant message that have no result yet."""
        self._numbered = 0
        """Number of assistant messages that got an id; it is part of the next id."""
        self._last_role = ""
        """Role of the message before the one that is read."""
        self._generated_ids = 0
        """Number of call ids that were generated; it is part of the next one."""

    def read(self, raw: Raw) -> None:
        """Appends the items of one message."""
        message = msgspec.json.decode(raw, type=dict[str, Any])
        count = len(self.items)
        mark = self._take_marker(message)
        match message["role"]:
            case "user":
                content = content_parts(message.get("content"))
                native = rest_of(message, "role", "content")
                self.items.append(Message("user", content, origin=ORIGIN, native=native))
            case "assistant":
                self._assistant(raw, message)
            case "tool" | "function":
                self._tool(message)
            case "system" | "developer":
                self._system(message, is_marked=mark is not None)
            case role:
                raise KeyError(role)
        if mark is not None and len(self.items) > count:
            self.marked[len(self.items) - 1] = mark
        self._last_role = message["role"]

    def _take_marker(self, message: JsonObject) -> CacheMark | None:
        """Takes the cache marker of a message or its last part.

        A marker of an earlier part stays in that part.
        """
        content = message.get("content")
        holders = [message]
        if isinstance(content, list) and content and isinstance(content[-1], dict):
            holders.append(content[-1])
        marks = [mark for mark in map(take_mark, holders) if mark is not None]
        # of two the one that says how long
        marks.sort(key=lambda mark: mark.ttl is None)
        return marks[0] if marks else None

    def _system(self, message: JsonObject, *, is_marked: bool) -> None:
        """The first system message is `Prompt.instructions` if those can hold it."""
        content = message.get("content")
        parts = content_parts(content)
        if content == "":
            parts = (Text(""),)
        native = rest_of(message, "role", "content")
        is_first = not self.items and self.instructions is None and message["role"] == "system"
        is_plain = len(parts) == 1 and isinstance(parts[0], Text) and not is_list(parts)
        if is_first and is_plain and content and native is None and not is_marked:
            self.instructions = text_of(content)
        else:
            self.items.append(Message(message["role"], parts, origin=ORIGIN, native=native))

    def _assistant(self, raw: Raw, message: JsonObject) -> None:
        parts = assistant_parts(message.get("content"))
        if parts is not None:
            # The parser of responses joins text parts. All other fields keep their bytes.
            fields = msgspec.json.decode(raw, type=dict[str, Raw])
            del fields["content"]
            raw = Raw(msgspec.json.encode(fields))
        items = self._response_items(raw)
        if parts is not None:
            position = _after_reasoning(items)
            items.insert(position, Message("assistant", parts, origin=ORIGIN))
        native = rest_of(message, "role", *READ)
        if native or not items:
            _add_native(items, native)
        _note_empty(items, message)
        # Text, refusal and audio of one message become several items, and a message may follow
        # another one of its role. In both cases the builder must be told where it ends.
        is_divided = sum(isinstance(item, Message) for item in items) > 1
        if is_divided or self._last_role == "assistant":
            self._numbered += 1
            response_id = f"message_{self._numbered}"
            items = [msgspec.structs.replace(item, response_id=response_id) for item in items]
        self._pending = [item for item in items if isinstance(item, FunctionCall)]
        self.items += items

    def _response_items(self, raw: Raw) -> list[ResponseItem]:
        body = b'{"choices":[{"index":0,"message":%s}]}' % bytes(raw)
        response = accumulate(parse_body("chat", body, origin=ORIGIN, call_id=self._generate_id))
        if response.error is not None:
            raise ValueError(response.error.message)
        # A history is complete, even if the arguments of a call are not JSON.
        return [
            msgspec.structs.replace(item, status="completed", response_id=None)
            for item in response.items
        ]

    def _generate_id(self, number: int) -> str:
        """Called by the parser, whose `number` counts within one message only and is not used."""
        del number
        call_id = f"call_{self._generated_ids}"
        self._generated_ids += 1
        return call_id

    def _tool(self, message: JsonObject) -> None:
        """Reads a result. Without an id (older role `function`) it is of the first pending call."""
        call_id = message.get("tool_call_id")
        for call in self._pending:
            if call_id in (None, "", call.call_id):
                self._pending.remove(call)
                call_id = call.call_id
                break
        content = message.get("content")
        output: Output
        if isinstance(content, list):
            output = content_parts(content)
        else:
            output = text_of(content)
        read = ["role", "tool_call_id", "content"]
        if message["role"] == "function":
            # In this older role, `name` identifies the call.
            read.append("name")
        native = rest_of(message, *read)
        call_id = str(call_id or "")
        self.items.append(FunctionCallOutput(call_id, output, origin=ORIGIN, native=native))


def _add_native(items: list[ResponseItem], native: JsonObject | None) -> None:
    """Adds further keys of an assistant message (`name`) to its first message item."""
    position = _after_reasoning(items)
    if position < len(items) and isinstance(items[position], Message):
        item = items[position]
        keys = {**(item.native or {}), **(native or {})}
        items[position] = msgspec.structs.replace(item, native=keys)
    else:
        items.insert(position, Message("assistant", (), origin=ORIGIN, native=native))


def _note_empty(items: list[ResponseItem], message: JsonObject) -> None:
    """Notes keys without content on the first item: they make no item, but null is another value.

    What stands there where the message has nothing else is reported with the message.
    """
    empty: JsonObject = {}
    for key in ("content", "refusal", "tool_calls", "audio", *REASONING_KEYS):
        value = message.get(key)
        if value in ("", [], {}, EMPTY_CONTENT, {"id": ""}):
            empty[key] = value
    position = min(_after_reasoning(items), len(items) - 1)
    item = items[position]
    if empty and not isinstance(item, Reasoning):
        native = {**(item.native or {}), EMPTY: empty}
        items[position] = msgspec.structs.replace(item, native=native)


def _after_reasoning(items: list[ResponseItem]) -> int:
    """Index of the first item that is not reasoning: where the text of a Chat message begins."""
    for index, item in enumerate(items):
        if not isinstance(item, Reasoning):
            return index
    return len(items)


# --- settings ---


def _tools(fields: JsonObject) -> list[ToolSpec]:
    tools: list[Any] = list(fields.pop("tools", None) or ())
    # The older field lists the functions themselves, without an object around each.
    for function in fields.pop("functions", None) or ():
        tools.append({"type": "function", "function": function})
    return [_tool(tool) for tool in tools]


TOOL_KEYS: Final = {"function": ("parameters", "strict"), "custom": ("format",)}
"""Kind of a tool -> keys beside its name and description that `ToolSpec` has fields for."""


def _tool(tool: JsonObject) -> ToolSpec:
    kind = tool.get("type") or "function"
    body = tool.get(kind)
    if kind not in ("function", "custom") or not isinstance(body, dict):
        hosted = read_hosted("chat", tool)
        name = str(tool.get("name") or kind)
        if hosted is not None:
            name = hosted.name
        return ToolSpec(name, native=tool, native_wire="chat", provider_run=hosted)
    name, description = body["name"], body.get("description")
    native = rest_of(tool, "type", kind) or {}
    body_rest = rest_of(body, "name", "description", *TOOL_KEYS[kind])
    if body_rest:
        native[kind] = body_rest
    options = ToolOptions(native=native, native_wire="chat") if native else None
    if kind == "function":
        schema, is_strict = body.get("parameters"), body.get("strict")
        return ToolSpec(name, description, schema, is_strict, options=options)
    tool_format = body.get("format") or {"type": "text"}
    grammar = tool_format.get("grammar")
    if isinstance(grammar, dict) and tool_format.keys() == {"type", "grammar"}:
        # `ToolSpec` has the form of Responses, where the grammar stands one level higher.
        tool_format = {"type": "grammar", **grammar}
    return ToolSpec(name, description, format=tool_format, options=options)
