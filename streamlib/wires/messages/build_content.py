"""Items as Messages content blocks, in the order of the items.

Numbers such as A11 are the rows of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from streamlib.request.history import IndexedItem, system_text, turn_fields
from streamlib.request.json_objects import merged
from streamlib.request.media import media_type
from streamlib.request.origins import reasoning_as_text
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib.wires.arguments import as_object
from streamlib.wires.text_documents import plain_text
from streamlib_parsers.items import (
    Audio,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Item,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
)

CITATION_RESPONSE_KEYS: Final = frozenset({"file_id"})
"""Keys of a citation that only responses have: a request with them is refused."""
REASONING_BLOCKS: Final = frozenset({"thinking", "redacted_thinking"})
"""Types of the blocks that hold reasoning."""

RoleAndBlock: TypeAlias = tuple[str, JsonObject]
"""The role of a turn, and a content block of it."""


class Block(NamedTuple):
    """One content block, the role of its turn, and the index of its item (-1: none).

    A system message that has settings only has an empty body.
    """

    role: str
    body: JsonObject
    item_index: int
    turn_fields: JsonObject | None = None
    """Fields of its turn beside role and content."""

    @property
    def type(self) -> str:
        """The wire's type of the block."""
        block_type: str = self.body.get("type", "")
        return block_type

    @property
    def is_reasoning(self) -> bool:
        """Whether the block is reasoning, readable or redacted."""
        return self.type in REASONING_BLOCKS

    @property
    def is_call(self) -> bool:
        """Whether it is a call that the caller answers."""
        return self.type == "tool_use"

    @property
    def is_result(self) -> bool:
        """Whether it is the result of such a call."""
        return self.type == "tool_result"


def item_blocks(entry: IndexedItem, context: BuildContext) -> Iterator[RoleAndBlock]:
    """The blocks of one item, each with the role it is sent in."""
    path, report = entry.path, context.report
    match entry.item:
        case Message() as item:
            yield from _message(item, path, context)
        case FunctionCall() | ServerToolCall() as item:
            yield "assistant", _call(item, path, report)
        case FunctionCallOutput() | CustomToolCallOutput() as item:
            yield "user", _output(item, path, report)
        case Reasoning() as item:
            yield from _reasoning(item, path, context)
        case CustomToolCall() as item:
            yield "assistant", _custom_call(item, path, report)
        case ServerToolResult() as item:
            yield "assistant", _server_result(item)
        case Compaction() as item:
            yield "assistant", _compaction(item)
        case Opaque() as item:
            yield _opaque(item)
        case _ as item:
            raise TypeError(f"{type(item).__name__} must be converted to text first")


# --- one function per item kind ---


def _message(item: Message, path: str, context: BuildContext) -> Iterator[RoleAndBlock]:
    if item.role in ("system", "developer"):
        yield from _system_inside(item, path, context)
        return
    if not item.content:
        context.report.dropped_message(path)
    for part in item.content:
        block = _part(part, path, context.report)
        if block is None:
            continue
        # `native` of a message is what its only block had beside the text
        if item.native and len(item.content) == 1:
            # a copy: the block may be the `native` of a part
            block = {**block, **item.native}
        yield item.role, block


def _system_inside(item: Message, path: str, context: BuildContext) -> Iterator[RoleAndBlock]:
    """A system message inside the conversation."""
    if context.target.traits.system_role:
        if not item.content and item.native:
            # settings only
            yield "system", {}
        for block in system_blocks(item, path, context.report):
            yield "system", block
        return
    context.report.add("changed", path, "the model takes no system message here: sent as user text")
    if item.content:
        yield "user", {"type": "text", "text": f"<system>\n{system_text(item)}\n</system>"}


def system_blocks(item: Message, path: str, report: Report) -> list[JsonObject]:
    """The texts of a system message."""
    blocks: list[JsonObject] = []
    for part in item.content:
        if isinstance(part, Text):
            blocks.append(_text(part) | (part.native or {}))
        else:
            report.dropped(path, "system messages hold text only")
    return blocks


def fields_of_turn(item: Item) -> JsonObject | None:
    """The fields of a turn beside role and content, which are in the `native` of its items."""
    native = item.native or {}
    if isinstance(item, Message) and item.role == "system":
        return item.native
    if not isinstance(item, Opaque) or native.get("role") != "system":
        return turn_fields(item) or None
    fields = {key: value for key, value in native.items() if key != "role"}
    return fields or None


def _reasoning(item: Reasoning, path: str, context: BuildContext) -> Iterator[RoleAndBlock]:
    if item.redacted or (item.encrypted_content and not item.content):
        block = {"type": "redacted_thinking", "data": item.encrypted_content}
        yield "assistant", _with_native(block, item)
        return
    # the signature of an incomplete block does not match its text
    is_signed = item.signature and item.status == "completed"
    if is_signed or context.target.provider.unsigned_thinking:
        block = {
            "type": "thinking",
            "thinking": item.content,
            "signature": item.signature or "",
        }
        yield "assistant", _with_native(block, item)
        return
    message = reasoning_as_text(item)
    if message is None:
        context.report.dropped(path, "reasoning without text or signature")
        return
    context.report.add("downgraded", path, "reasoning without its signature, sent as text")
    yield "assistant", {"type": "text", "text": message.text}


def _call(item: FunctionCall | ServerToolCall, path: str, report: Report) -> JsonObject:
    # `native` has the type if it is another one, such as `mcp_tool_use`
    block = {
        "type": "tool_use" if isinstance(item, FunctionCall) else "server_tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": as_object(item, path, report),
    }
    return _with_native(block, item)


def _custom_call(item: CustomToolCall, path: str, report: Report) -> JsonObject:
    report.add("changed", path, 'a free-form call, sent as {"input": …}')
    return {
        "type": "tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": {"input": item.input},
    }


def _output(
    item: FunctionCallOutput | CustomToolCallOutput, path: str, report: Report
) -> JsonObject:
    content: list[JsonObject] = []
    for part in _output_parts(item):
        block = _part(part, path, report)
        if block is not None and is_blank(block):
            if item.output != "":
                report.dropped(path, "blank text")
        elif block is not None:
            content.append(block)
    result: JsonObject = {"type": "tool_result", "tool_use_id": item.call_id}
    # a result without content is valid, one with blank text is not (A1)
    if content:
        result["content"] = content
    if item.is_error:
        result["is_error"] = True
    return _with_native(result, item)


def _output_parts(item: FunctionCallOutput | CustomToolCallOutput) -> tuple[ContentPart, ...]:
    if isinstance(item.output, str):
        return (Text(item.output),)
    return tuple(item.output)


def _server_result(item: ServerToolResult) -> JsonObject:
    block = {
        # `native` has the type if it is another one, such as `mcp_tool_result`
        "type": f"{item.name}_tool_result",
        "tool_use_id": item.call_id,
        "content": item.output,
    }
    return _with_native(block, item)


def _compaction(item: Compaction) -> JsonObject:
    # without text `content` is null: the API refuses an empty one, and a missing one (A24)
    block: JsonObject = {"type": "compaction", "content": item.content or None}
    if item.encrypted_content is not None:
        block["encrypted_content"] = item.encrypted_content
    if item.signature is not None:
        block["signature"] = item.signature
    return _with_native(block, item)


def _opaque(item: Opaque) -> RoleAndBlock:
    role = "assistant"
    if item.native:
        role = item.native.get("role", role)
    if isinstance(item.payload.get("type"), str):
        return role, item.payload
    return role, {**item.payload, "type": item.kind}


def _with_native(block: JsonObject, item: Item) -> JsonObject:
    """The block with the keys that the provider sent and no typed field holds."""
    if item.native:
        block.update(item.native)
    return block


def is_blank(block: JsonObject) -> bool:
    """Whether a block is text, and blank."""  # rule A1
    return block.get("type") == "text" and not block["text"].strip()


# --- parts ---


def _part(part: ContentPart, path: str, report: Report) -> JsonObject | None:
    """The block of a part, or None if the wire has none for it."""
    native = part.native or {}
    # a block of a kind that has no part type is kept complete in `native`
    if "type" in native:
        return native
    match part:
        case Text():
            return _text(part) | native
        # the wire has no refusals
        case Refusal():
            return {"type": "text", "text": part.refusal}
        case Image():
            return merged({"type": "image", "source": _source(part, path, report)}, native)
        case Document():
            return merged(_document(part, path, report), native)
        case Audio():
            report.dropped(path, "Messages takes no audio")
            if part.transcript:
                return {"type": "text", "text": part.transcript}
            return None


def _text(part: Text) -> JsonObject:
    block: JsonObject = {"type": "text", "text": part.text}
    if part.annotations:
        block["citations"] = [_citation(annotation) for annotation in part.annotations]
    return block


def _citation(annotation: JsonObject) -> JsonObject:
    return {key: value for key, value in annotation.items() if key not in CITATION_RESPONSE_KEYS}


def _document(part: Document, path: str, report: Report) -> JsonObject:
    block: JsonObject = {"type": "document", "source": _source(part, path, report)}
    if part.name is not None:
        block["title"] = part.name
    return block


def _source(part: Image | Document, path: str, report: Report) -> JsonObject:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if part.url:
        return {"type": "url", "url": part.url}
    data = part.data or ""
    mime = media_type(part)
    if mime == "text/plain":
        # the API takes plain text as text only, never in base64
        return {"type": "text", "media_type": mime, "data": plain_text(data)}
    return {"type": "base64", "media_type": mime, "data": data}
