"""Bedrock Converse: from the start of a content block to its item.

A complete body's blocks are read here too: each is a start that contains everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from streamlib_parsers.base64_text import joined_base64
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import rest_of, string_at
from streamlib_parsers.notes import BESIDE, with_note
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.converse.payloads import (
    CitationsContent,
    Delta,
    ReasoningContent,
    ReasoningText,
    decode_members,
    decode_values,
)

CALLS: Final = (FunctionCall, ServerToolCall)


def _native(inside: JsonObject | None, siblings: JsonObject) -> JsonObject | None:
    """`native` of an item: keys inside the member of its block, and those beside it."""
    return with_note(inside, BESIDE, siblings)


class BlockStart(NamedTuple):
    """What the start of a block contains.

    content: the deltas that would bring the same content in a stream.
    arguments: complete arguments of a call, in the provider's own bytes.
    """

    item: ResponseItem
    content: tuple[Delta, ...] = ()
    arguments: bytes = b""


def _text_block(raw: Raw, siblings: JsonObject) -> BlockStart:
    text = msgspec.json.decode(raw, type=str)
    return BlockStart(Message("assistant", native=_native(None, siblings)), (Delta(text=text),))


def _citations_block(raw: Raw, siblings: JsonObject) -> BlockStart:
    block = msgspec.json.decode(raw, type=CitationsContent)
    native = _native(rest_of(msgspec.json.decode(raw), "content", "citations"), siblings)
    # Texts first: a citation names no part, so it is an annotation of the complete text.
    texts = [Delta(text=string_at(part, "text")) for part in block.content]
    citations = [Delta(citation=citation) for citation in block.citations]
    return BlockStart(Message("assistant", native=native), (*texts, *citations))


def _reasoning_block(raw: Raw, siblings: JsonObject) -> BlockStart:
    block = msgspec.json.decode(raw, type=ReasoningContent)
    members = msgspec.json.decode(raw, type=dict[str, Any])
    native = rest_of(members, *ReasoningContent.__struct_encode_fields__)
    inner = rest_of(members.get("reasoningText") or {}, *ReasoningText.__struct_encode_fields__)
    if inner:
        native = {**(native or {}), "reasoningText": inner}
    item = Reasoning(redacted=block.is_redacted(), native=_native(native, siblings))
    if block == ReasoningContent():
        # Nothing to read. As a delta it would be unknown, and mark the item incomplete.
        return BlockStart(item)
    return BlockStart(item, (Delta(reasoning_content=block),))


def _tool_use_block(raw: Raw, siblings: JsonObject) -> BlockStart:
    members = decode_members(raw)
    arguments = bytes(members.pop("input", b""))
    if arguments == b"null":
        arguments = b""
    block = decode_values(members)
    kind = string_at(block, "type")
    call_id = string_at(block, "toolUseId")
    name = string_at(block, "name")
    if kind == "tool_use":
        # The usual type adds nothing to the item's class.
        native = rest_of(block, "toolUseId", "name", "type")
    else:
        native = rest_of(block, "toolUseId", "name")
    native = _native(native, siblings)
    if kind == "server_tool_use":
        # Run by the provider (Nova's code interpreter): the caller must not answer it.
        return BlockStart(ServerToolCall(call_id, name, native=native), arguments=arguments)
    return BlockStart(FunctionCall(call_id, name, native=native), arguments=arguments)


def _tool_result_block(raw: Raw, siblings: JsonObject) -> BlockStart:
    block = msgspec.json.decode(raw, type=dict[str, Any])
    content = block.get("content")
    if not isinstance(content, list):
        # In a stream the content arrives in deltas.
        content = []
    item = ServerToolResult(
        call_id=string_at(block, "toolUseId"),
        name=string_at(block, "type").removesuffix("_result"),
        output=content,
        native=_native(rest_of(block, "toolUseId", "content"), siblings),
    )
    return BlockStart(item)


def _image_block(raw: Raw, siblings: JsonObject) -> BlockStart:
    block = msgspec.json.decode(raw, type=dict[str, Any])
    # `image/*`: without a format the item is still an image, and its deltas can be applied.
    image = unchecked(Image)(media_type=f"image/{string_at(block, 'format') or '*'}")
    native = _native(rest_of(block, "format", "source", "error"), siblings)
    item = Message("assistant", (image,), native=native)
    if block.get("source") or block.get("error"):
        # Complete bodies have the image here; an error is a delta that marks the item incomplete.
        return BlockStart(item, (Delta(image=block),))
    return BlockStart(item)


BLOCKS: Final[dict[str, Callable[[Raw, JsonObject], BlockStart]]] = {
    "text": _text_block,
    "citationsContent": _citations_block,
    "reasoningContent": _reasoning_block,
    "toolUse": _tool_use_block,
    "toolResult": _tool_result_block,
    "image": _image_block,
}
"""Member of a `contentBlockStart`, or of a complete body's block -> the block's item. What its
deltas do is in `DELTAS` of the machine; one of `OPENERS` opens a block without a start."""
"""Members of a start, and of a complete body's `content`, that have an item class.

Each is called with its own value and the values of its siblings. Any other member is an `Opaque`.
"""


# --- blocks that their first delta opens ---


def _message(delta: Delta) -> ResponseItem:
    return Message("assistant")


def _reasoning(delta: Delta) -> ResponseItem:
    content = delta.reasoning_content
    return Reasoning(redacted=content is not None and content.is_redacted())


OPENERS: Final[dict[str, Callable[[Delta], ResponseItem]]] = {
    "text": _message,
    "citation": _message,
    "reasoning_content": _reasoning,
}
"""Members of a delta that open their block, since text and reasoning blocks have no start."""


# --- what an item is ---


def is_text(item: ResponseItem) -> bool:
    """Whether the item is a message of text (an image block is a message with its image)."""
    return type(item) is Message and not item.content


def image_of(item: ResponseItem) -> Image | None:
    """The image of an image block's item, else None."""
    if isinstance(item, Message) and item.content and isinstance(item.content[0], Image):
        return item.content[0]
    return None


# --- the content of a delta that has only text ---


def text_only(delta: Delta) -> str | None:
    """Text of a delta for a message; a citation may come with it, which is read elsewhere."""
    if delta.citation is not None:
        return None
    return delta.text


def arguments_only(delta: Delta) -> str | None:
    """Argument text of a delta for a call."""
    if delta.tool_use is None:
        return None
    return delta.tool_use.input


def reasoning_only(delta: Delta) -> str | None:
    """Text of a delta for a reasoning block, if it is flat and comes alone."""
    content = delta.reasoning_content
    if content is None or content.signature is not None or content.reasoning_text is not None:
        return None
    if content.redacted_content is not None or content.data is not None:
        return None
    return content.text


# --- fields and results that arrive in fragments ---


def _join_signature(fragments: list[str], block: OpenItem) -> JsonObject:
    return {"signature": "".join(fragments)}


def _join_encrypted(fragments: list[str], block: OpenItem) -> JsonObject:
    return {"encrypted_content": joined_base64(fragments)}


def _join_image(fragments: list[str], block: OpenItem) -> JsonObject:
    image = unchecked(Image)(data=joined_base64(fragments), media_type=block.part(0).media_type)
    return {"content": (image,)}


JOINS: Final[dict[str, Callable[[list[str], OpenItem], JsonObject]]] = {
    "signature": _join_signature,
    "encrypted_content": _join_encrypted,
    "image": _join_image,
}
"""Field in fragments -> the item fields of all fragments joined."""


def joined_results(deltas: list[list[JsonObject]]) -> list[JsonObject]:
    """The content of a tool result; text that continues in the next delta is one text part."""
    parts: list[JsonObject] = []
    fragments: list[list[str]] = []
    for delta in deltas:
        for index, part in enumerate(delta):
            # Only the first part of a delta can continue; one with other keys is not plain text.
            continues = (
                index == 0
                and len(parts) > 0
                and part.keys() == {"text"}
                and parts[-1].keys() == {"text"}
            )
            if not continues:
                parts.append(part)
                fragments.append([])
            fragments[-1].append(string_at(part, "text"))
    for index, texts in enumerate(fragments):
        if len(texts) > 1:
            parts[index] = {"text": "".join(texts)}
    return parts
