"""An Anthropic Messages request as a `Prompt`: the inverse of `build.py`.

An assistant turn is read by the parser of responses, so that what a client sends back is the item
it once received: one block, one item, in order, with its signature and its arguments byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.history import with_turn_fields
from streamlib.request.json_objects import rest_of, without_none
from streamlib.request.prompt import Prompt
from streamlib.wires.cache_marks import MARK, cache_options, take_mark
from streamlib.wires.messages.settings import SETTINGS, read_tool
from streamlib.wires.model_turns import body_fields, items_of
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    CacheMark,
    ContentPart,
    Document,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    Origin,
    ResponseItem,
    Text,
)
from streamlib_parsers.protocol import parse_body

ORIGIN: Final = Origin("messages")
OBJECTS: Final = ("metadata", "output_config", "thinking")
"""Settings that are objects: a null inside them says nothing."""
SOURCE_KEYS: Final = ("type", "media_type", "data", "url", "file_id")
"""Keys of the source of an image or a document that typed fields hold."""
MEDIA: Final[dict[str, Callable[..., Image | Document]]] = {"image": Image, "document": Document}


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt of a request."""
    fields, turns = body_fields(body, "messages")
    reader = _Reader()
    instructions = reader.read_system(fields.pop("system", None))
    for turn in msgspec.json.decode(turns, type=list[dict[str, Raw]]):
        reader.read_turn(turn)
    automatic = take_mark(fields)
    model, stream = fields.pop("model", None), bool(fields.pop("stream", False))
    tools = [read_tool(tool) for tool in fields.pop("tools", None) or ()]
    for key in OBJECTS:
        if fields.get(key) is not None:
            fields[key] = without_none(fields[key])
    return unchecked(Prompt)(
        input=reader.items,
        instructions=instructions,
        tools=tools,
        cache=cache_options(reader.marked, reader.instructions_mark, automatic),
        model=model,
        stream=stream,
        headers=_beta_header(headers),
        **SETTINGS.read(fields),
    )


def _beta_header(headers: Mapping[str, str]) -> dict[str, str]:
    """The header with the betas that the request names; no other header concerns the prompt."""
    for name, value in headers.items():
        if name.lower() == ANTHROPIC_BETA and value.strip():
            return {ANTHROPIC_BETA: value.strip()}
    return {}


# --- turns ---


class _Reader:
    """Reads turns into items, and records after which items there is a cache mark."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """The history so far; each turn appends to it."""
        self.marked: dict[int, CacheMark] = {}
        """Index of an item -> the cache mark after it."""
        self.instructions_mark: CacheMark | None = None
        """The cache mark after the instructions."""

    def read_system(self, system: Any) -> str | None:
        """The instructions, which are one text; further ones become items."""
        if isinstance(system, str) or not system:
            return system or None
        instructions: str | None = None
        for index, block in enumerate(system):
            marker = take_mark(block)
            part = _text(block)
            if index == 0 and part.text and part == Text(part.text):
                instructions = part.text
                self.instructions_mark = marker
                continue
            self._add(Message("system", (part,), origin=ORIGIN), marker)
        return instructions

    def read_turn(self, turn: dict[str, Raw]) -> None:
        """Reads one message."""
        role = msgspec.json.decode(turn["role"], type=str)
        fields: JsonObject = {}
        for key, value in turn.items():
            if key not in ("role", "content") and bytes(value) != b"null":
                fields[key] = msgspec.json.decode(value)
        if role == "system" and "content" not in turn and fields:
            # a system message that has settings only
            self._add(Message("system", origin=ORIGIN, native=fields), None)
            return
        blocks = msgspec.json.decode(_content(turn["content"]), type=list[dict[str, Raw]])
        marks = [_pop_mark(block) for block in blocks]
        items: Iterable[tuple[ResponseItem, CacheMark | None]]
        if role == "assistant":
            items = zip(_assistant_items(blocks), marks, strict=True)
        else:
            items = _user_items(role, blocks, marks)
        if not blocks:
            items = [(_empty_message(role), None)]
        for item, mark in items:
            if role == "system" and fields:
                native = {**(item.native or {}), **fields}
                self._add(msgspec.structs.replace(item, native=native), mark)
            else:
                # `native` of such an item holds what its own block had beside its typed fields
                self._add(with_turn_fields(item, fields), mark)

    def _add(self, item: ResponseItem, mark: CacheMark | None) -> None:
        self.items.append(item)
        if mark is not None:
            self.marked[len(self.items) - 1] = mark


def _pop_mark(block: dict[str, Raw]) -> CacheMark | None:
    """Takes the cache mark of a block."""
    if MARK not in block:
        return None
    holder = {MARK: msgspec.json.decode(block[MARK])}
    mark = take_mark(holder)
    if not holder:
        del block[MARK]
    return mark


def _content(content: Raw) -> Raw:
    """The content as a list of blocks: a string is one text block."""
    if not bytes(content).lstrip().startswith(b'"'):
        return content
    text = msgspec.json.decode(content)
    return Raw(msgspec.json.encode([{"type": "text", "text": text}]))


def _assistant_items(blocks: list[dict[str, Raw]]) -> tuple[ResponseItem, ...]:
    """One item for each block."""
    body = msgspec.json.encode({"type": "message", "content": blocks})
    return items_of(parse_body("messages", body))


def _empty_message(role: Any) -> Message:
    """A turn without content. The role is checked later, with the complete `Prompt`."""
    return Message(role, origin=ORIGIN)


def _user_items(
    role: Any, blocks: list[dict[str, Raw]], marks: list[CacheMark | None]
) -> Iterator[tuple[ResponseItem, CacheMark | None]]:
    """Adjacent parts are one message, which a cache mark ends; each other block is an item.

    Args:
        role: as on the wire; it is checked later, with the complete `Prompt`.
    """
    parts: list[ContentPart] = []
    for raw, mark in zip(blocks, marks, strict=True):
        block = {key: msgspec.json.decode(value) for key, value in raw.items()}
        part = _part(block)
        if part is not None:
            parts.append(part)
            if mark is not None:
                yield Message(role, tuple(parts), origin=ORIGIN), mark
                parts = []
            continue
        if parts:
            yield Message(role, tuple(parts), origin=ORIGIN), None
            parts = []
        if block["type"] == "tool_result":
            yield _call_output(block), mark
        else:
            opaque = Opaque(block["type"], block, origin=ORIGIN, native={"role": role})
            yield opaque, mark
    if parts:
        yield Message(role, tuple(parts), origin=ORIGIN), None


def _call_output(block: JsonObject) -> FunctionCallOutput:
    output = block.get("content") or ""
    if isinstance(output, list):
        output = tuple(_output_part(part) for part in output)
    return FunctionCallOutput(
        block["tool_use_id"],
        output,
        bool(block.get("is_error")),
        native=rest_of(block, "type", "tool_use_id", "content", "is_error"),
        origin=ORIGIN,
    )


def _output_part(block: JsonObject) -> ContentPart:
    part = _part(block)
    if part is not None:
        return part
    # a block without a part type: readable as JSON text, complete in `native`
    return Text(msgspec.json.encode(block).decode(), native=block)


# --- parts ---


def _part(block: JsonObject) -> ContentPart | None:
    """The part for a block, or None if there is no part type for it."""
    if block["type"] == "text":
        return _text(block)
    make = MEDIA.get(block["type"])
    if make is None:
        return None
    return _media(make, block)


def _text(block: JsonObject) -> Text:
    return Text(
        block["text"],
        tuple(block.get("citations") or ()),
        native=rest_of(block, "type", "text", "citations"),
    )


def _media(make: Callable[..., Image | Document], block: JsonObject) -> Image | Document | None:
    source = block.get("source")
    # a document of content blocks has no bytes
    if not isinstance(source, dict) or source.get("type") == "content":
        return None
    native = rest_of(block, "type", "source", "title") or {}
    source_rest = rest_of(source, *SOURCE_KEYS)
    if source_rest:
        native["source"] = source_rest
    data, media_type = source.get("data"), source.get("media_type")
    if source["type"] == "text":
        media_type = media_type or "text/plain"
        # parts hold base64
        data = msgspec.to_builtins(str(data).encode("utf-8"))
    return unchecked(make)(
        data,
        source.get("url"),
        source.get("file_id"),
        media_type,
        block.get("title"),
        native=native or None,
    )
