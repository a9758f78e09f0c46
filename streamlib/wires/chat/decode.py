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
from streamlib.request.json_objects import rest_of
from streamlib.request.prompt import Prompt
from streamlib.wires.cache_marks import cache_options, take_mark
from streamlib.wires.chat.build_messages import REASONING_FIELDS
from streamlib.wires.chat.build_parts import is_list
from streamlib.wires.chat.settings import SETTINGS, read_choice
from streamlib.wires.model_turns import MessageReader, body_fields
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    CacheMark,
    ContentPart,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Origin,
    Output,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
    ToolOptions,
    ToolSpec,
)
from streamlib_parsers.notes import EMPTY, with_note
from streamlib_parsers.wires.chat.delta import READ

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
    fields, messages = body_fields(body, "messages")
    reader = _MessageReader()
    for message in msgspec.json.decode(messages, type=list[Raw]):
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


class _MessageReader(MessageReader):
    """Converts messages to items, and matches results with calls."""

    def __init__(self) -> None:
        super().__init__("chat")
        self.marked: dict[int, CacheMark] = {}
        """Index of an item -> the cache marker that its message carried."""

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
            items = self._turns.apart(items)
        self._pending = [item for item in items if isinstance(item, FunctionCall)]
        self.items += items

    def _response_items(self, raw: Raw) -> list[ResponseItem]:
        body = b'{"choices":[{"index":0,"message":%s}]}' % bytes(raw)
        # A history is complete, even if the arguments of a call are not JSON.
        return [
            msgspec.structs.replace(item, status="completed", response_id=None)
            for item in self._turns.read(body)
        ]

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


EMPTY_FORMS: Final = ([{"type": "text", "text": ""}], {"id": ""})
"""A text and audio without content: each is noted as an empty list or object."""


def _note_empty(items: list[ResponseItem], message: JsonObject) -> None:
    """Notes keys without content on the first item: they make no item, but null is another value.

    What stands there where the message has nothing else is reported with the message.
    """
    empty: JsonObject = {}
    for key in ("content", "refusal", "tool_calls", "audio", *REASONING_FIELDS):
        value = message.get(key)
        if value in ("", [], {}):
            empty[key] = value
        elif value in EMPTY_FORMS:
            empty[key] = type(value)()
    for index, item in enumerate(items):
        if not isinstance(item, Reasoning):
            native = with_note(item.native, EMPTY, empty)
            items[index] = msgspec.structs.replace(item, native=native)
            empty = {}


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


# --- parts ---
#
#     {"type": "text"}         Text      {"type": "file"}         Document
#     {"type": "image_url"}    Image     {"type": "input_audio"}  Audio
#
# A key that no typed field holds stays in `native`, of the part or, for a key of its inner object,
# under the name of that object.

AUDIO_SUBTYPES: Final = {"mp3": "mpeg", "m4a": "mp4"}
"""`input_audio.format` -> subtype of the media type; other formats are their own subtype."""


def text_of(content: Any) -> str:
    """Content as one text: a string, or the texts of its parts."""
    # None (no content) is skipped below, as blank parts are.
    parts: list[Any] = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        if isinstance(part, dict) and part:
            texts.append(part["text"])
        elif part:
            # Anything but a string raises in `join`, and the request is refused.
            text: Any = part
            texts.append(text)
    return "\n\n".join(texts)


def content_parts(content: Any) -> tuple[ContentPart, ...]:
    """The parts of a message: a text is one part."""
    if isinstance(content, str):
        content = [content] if content else []
    parts: list[ContentPart] = []
    for block in content or ():
        if isinstance(block, str):
            parts.append(Text(block))
        else:
            parts.append(_part(block))
    return tuple(parts)


def assistant_parts(content: Any) -> tuple[Text | Refusal, ...] | None:
    """The parts of an assistant message if its content is a list of OpenAI's own parts, else None.

    A list of one plain text also gives None: it means the same as a string.
    """
    if not isinstance(content, list):
        return None
    parts: list[Text | Refusal] = []
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                parts.append(Text(text, native=rest_of(block, "type", "text")))
            case {"type": "refusal", "refusal": str(refusal)}:
                parts.append(Refusal(refusal, native=rest_of(block, "type", "refusal")))
            case _:
                return None
    if is_list(parts) or any(isinstance(part, Refusal) for part in parts):
        return tuple(parts)
    return None


def _part(block: JsonObject) -> ContentPart:
    """One part. A part of an unknown kind is its JSON as text, and goes back as received."""
    block = {key: value for key, value in block.items() if value is not None}
    part = _known_part(block)
    if part is not None:
        return part
    native = block if "type" in block else None
    return Text(msgspec.json.encode(block).decode(), native=native)


def _known_part(block: JsonObject) -> ContentPart | None:
    match block:
        case {"type": "text", "text": text}:
            return Text(text, native=rest_of(block, "type", "text"))
        case {"type": "image_url", "image_url": image}:
            return _image(image, block)
        case {"type": "file", "file": file}:
            return _file(file, block)
        case {"type": "document_url", "document_url": str(url)}:
            return _document_by_url(url, block)
        case {"type": "input_audio", "input_audio": audio}:
            return _audio(audio, block)
        case _:
            return None


def _native(block: JsonObject, inner: Any, *typed_keys: str) -> JsonObject | None:
    """The keys of a part, and of the object inside it, that no typed field holds.

    Args:
        block: the part.
        inner: the object under its kind; some servers have a text there.
        typed_keys: keys of `inner` that have a field.
    """
    kind = block["type"]
    native = rest_of(block, "type", kind) or {}
    inner_rest = rest_of(inner, *typed_keys) if isinstance(inner, dict) else None
    if inner_rest:
        native[kind] = inner_rest
    return native or None


def _image(image: Any, block: JsonObject) -> Image:
    native = _native(block, image, "url", "detail") or {}
    if isinstance(image, str):
        url = image
    else:
        url = image.get("url")
        if image.get("detail") is not None:
            native["detail"] = image["detail"]
    media_type, data = _data_url(url)
    if data:
        return unchecked(Image)(data, media_type=media_type, native=native or None)
    return unchecked(Image)(url=url, media_type=media_type, native=native or None)


def _document_by_url(url: str, block: JsonObject) -> Document:
    """Mistral's part: its type stays in `native`, so that it goes back in this form."""
    native = rest_of(block, "document_url", "document_name")
    name = block.get("document_name")
    media_type, data = _data_url(url)
    if data:
        return unchecked(Document)(data, media_type=media_type, name=name, native=native)
    return unchecked(Document)(url=url, name=name, native=native)


def _file(file: Any, block: JsonObject) -> Document:
    """Reads a file. If it has content and an id, one becomes a field, the other is in `native`."""
    content, name, file_id = file.get("file_data"), file.get("filename"), file.get("file_id")
    if not content:
        native = _native(block, file, "file_id")
        return unchecked(Document)(None, None, file_id, name=name, native=native)
    native = _native(block, file, "file_data", "filename")
    media_type, data = _data_url(content)
    if data:
        return unchecked(Document)(data, None, None, media_type, name, native=native)
    # For providers that take a URL in place of the bytes, the builder writes one there.
    if isinstance(content, str) and "://" in content[:16]:
        return unchecked(Document)(None, content, None, media_type, name, native=native)
    return unchecked(Document)(content, None, None, media_type, name, native=native)


def _audio(audio: Any, block: JsonObject) -> Audio:
    if isinstance(audio, str):  # Mistral: the bytes, or where they are
        if audio.startswith(("https://", "http://")):
            return unchecked(Audio)(url=audio, native=_native(block, audio))
        return unchecked(Audio)(audio, native=_native(block, audio))
    audio_format = str(audio.get("format") or "wav")
    subtype = AUDIO_SUBTYPES.get(audio_format, audio_format)
    native = _native(block, audio, "data", "format")
    return unchecked(Audio)(audio["data"], media_type=f"audio/{subtype}", native=native)


def _data_url(url: Any) -> tuple[str | None, str | None]:
    """Media type and base64 text of a `data:` URL; (None, None) for anything else."""
    prefix, comma, data = str(url or "").partition(",")
    if not comma or not prefix.startswith("data:") or not prefix.endswith(";base64"):
        return None, None
    media_type = prefix.removeprefix("data:").removesuffix(";base64")
    return media_type or None, data
