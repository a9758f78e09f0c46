"""Items as Converse content blocks: one member each, in the order of the items.

Parts of messages and results are built in `build_parts.py`. Numbers such as B12 are the rows of the
rule table in docs/wires/converse.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from streamlib.request.history import IndexedItem, system_text
from streamlib.request.origins import reasoning_as_text
from streamlib.request.report import Report
from streamlib.wires.arguments import as_object
from streamlib.wires.converse.build_parts import (
    ConverseContext,
    member_block,
    part_block,
    with_siblings,
)
from streamlib_parsers.items import (
    Audio,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.notes import BESIDE, split_note

FILLER: Final = "."
"""Text of a block if the API requires one and there is none; it refuses blank text."""
NO_OUTPUT: Final = "(no output)"
"""The text of a tool result that is empty."""

RoleAndBlock: TypeAlias = tuple[str, JsonObject]


class Block(NamedTuple):
    """One content block, the role of its turn, and the index of its item (-1: none)."""

    role: str
    body: JsonObject
    item_index: int

    @property
    def member(self) -> str:
        """The kind of the block: the name of its only member."""
        return next(iter(self.body), "")

    @property
    def is_reasoning(self) -> bool:
        """Whether the block is reasoning, readable or redacted."""
        return self.member == "reasoningContent"

    @property
    def is_call(self) -> bool:
        """Whether it is a call, of whatever tool."""
        return self.member == "toolUse"

    @property
    def is_result(self) -> bool:
        """Whether it is the result of a call, of whatever tool."""
        return self.member == "toolResult"


def item_blocks(entry: IndexedItem, context: ConverseContext) -> Iterator[RoleAndBlock]:
    """The blocks of one item, each with the role it is sent in."""
    path, report = entry.path, context.report
    match entry.item:
        case Message() as item:
            yield from _message(item, path, context)
        case FunctionCall() as item:
            yield "assistant", _call(item, path, report)
        case FunctionCallOutput() | CustomToolCallOutput() as item:
            yield "user", _output(item, path, context)
        case Reasoning() as item:
            yield from _reasoning(item, path, context)
        case CustomToolCall() as item:
            yield "assistant", _custom_call(item, path, report)
        case ServerToolCall() as item:
            yield "assistant", _server_call(item, path, report)
        case ServerToolResult() as item:
            yield "assistant", _server_result(item)
        case Compaction() as item:
            yield from _compaction(item, path, report)
        case Opaque() as item:
            yield _opaque(item)
        case _ as item:
            raise TypeError(f"{type(item).__name__} must be converted to text first")


# --- one function per item kind ---


def _message(item: Message, path: str, context: ConverseContext) -> Iterator[RoleAndBlock]:
    if not item.content:
        context.report.dropped_message(path)
    if item.role in ("system", "developer"):
        yield from _system_turn(item, path, context)
    elif item.role == "assistant":
        for part in item.content:
            for role, block in _assistant_part(part, path, context.report):
                # an item of a response is one block, whose further keys it has
                own = item.native if len(item.content) == 1 else None
                member = next(iter(block))
                if isinstance(block[member], dict):
                    yield role, member_block(member, block[member], own)
                else:
                    _, siblings = split_note(own, BESIDE)
                    yield role, with_siblings(block, siblings)
    else:
        for block in _user_blocks(item, path, context):
            yield "user", block


def _user_blocks(item: Message, path: str, context: ConverseContext) -> Iterator[JsonObject]:
    blocks: list[JsonObject] = []
    for part in item.content:
        block = part_block(part, path, context)
        if block:
            blocks.append(block)
    yield from blocks
    has_document = any("document" in block for block in blocks)
    # `text` of the other kinds of blocks is missing, so they count as blank
    has_text = any(block.get("text", "").strip() for block in blocks)
    if has_document and not has_text:
        context.report.add("generated", path, f"a document needs text beside it: {FILLER!r} added")
        yield {"text": FILLER}


def _system_turn(item: Message, path: str, context: ConverseContext) -> Iterator[RoleAndBlock]:
    """A system message inside the conversation."""
    if context.family.system_turns and context.target.traits.system_role:
        for part in item.content:
            block = part_block(part, path, context)
            if block:
                yield "system", block
        return
    context.report.add("changed", path, "the model takes no system message here: sent as user text")
    yield "user", {"text": f"<system>\n{system_text(item)}\n</system>"}


def _assistant_part(part: ContentPart, path: str, report: Report) -> Iterator[RoleAndBlock]:
    """The block of a part in an assistant turn, which holds text only."""  # rule B13
    match part:
        case Text() if part.annotations:
            cited = {"content": [{"text": part.text}], "citations": list(part.annotations)}
            yield "assistant", {"citationsContent": cited}
        case Text():
            yield "assistant", {"text": part.text}
        case Refusal():
            yield "assistant", {"text": part.refusal}
        case Audio() if part.transcript:
            report.add("changed", path, "the transcript of the model's audio, sent as text")
            yield "assistant", {"text": part.transcript}
        case _:
            report.dropped(path, "images, documents and audio are allowed in user turns only")


def _reasoning(item: Reasoning, path: str, context: ConverseContext) -> Iterator[RoleAndBlock]:
    """Earlier reasoning, in the form that the model's family takes."""  # rule B15
    target, form = context.target, context.family.reasoning
    keeps_state = form in ("signed", "any")
    is_unreadable = item.redacted or not item.content
    if is_unreadable and item.encrypted_content and keeps_state:
        redacted: JsonObject = {"redactedContent": item.encrypted_content}
        yield "assistant", member_block("reasoningContent", redacted, item.native)
        return
    # the signature of an incomplete block does not match its text
    is_signed = item.signature and item.status == "completed"
    if (is_signed and keeps_state) or target.provider.unsigned_thinking:
        reasoning_text = {"text": item.content}
        if item.signature:
            reasoning_text["signature"] = item.signature
        native = dict(item.native or {})
        reasoning_text.update(native.pop("reasoningText", {}))
        content: JsonObject = {"reasoningText": reasoning_text}
        yield "assistant", member_block("reasoningContent", content, native)
        return
    message = reasoning_as_text(item)
    if message is None or form not in ("signed", "text"):
        context.report.dropped(path, f"{target.model} takes no earlier reasoning")
        return
    context.report.add("downgraded", path, "reasoning that cannot be sent as such, sent as text")
    yield "assistant", {"text": message.text}


def _call(item: FunctionCall, path: str, report: Report) -> JsonObject:
    use = {
        "toolUseId": item.call_id,
        "name": item.name,
        "input": as_object(item, path, report),
    }
    return member_block("toolUse", use, item.native)


def _custom_call(item: CustomToolCall, path: str, report: Report) -> JsonObject:
    report.add("changed", path, 'a free-form call, sent as {"input": …}')
    return {
        "toolUse": {"toolUseId": item.call_id, "name": item.name, "input": {"input": item.input}}
    }


def _server_call(item: ServerToolCall, path: str, report: Report) -> JsonObject:
    use = {
        "toolUseId": item.call_id,
        "name": item.name,
        "input": as_object(item, path, report),
        "type": "server_tool_use",
    }
    return member_block("toolUse", use, item.native)


def _server_result(item: ServerToolResult) -> JsonObject:
    # a list is the provider's own content; an empty list is refused, so it is sent as JSON
    if isinstance(item.output, list) and item.output:
        content = item.output
    elif isinstance(item.output, str):
        content = [{"text": item.output}]
    else:
        content = [{"json": item.output}]
    result = {"toolUseId": item.call_id, "content": content}
    return member_block("toolResult", result, item.native)


def _output(
    item: FunctionCallOutput | CustomToolCallOutput, path: str, context: ConverseContext
) -> JsonObject:
    report = context.report
    content = _output_content(item, path, context)
    if not content:
        report.add("repaired", f"{path}/output", f"a result is never empty: {NO_OUTPUT!r}")
        content = [{"text": NO_OUTPUT}]
    result: JsonObject = {"toolUseId": item.call_id, "content": content}
    if item.is_error and context.family.status:
        result["status"] = "error"
    elif item.is_error:
        report.dropped(f"{path}/is_error", f"{context.target.model} takes no status of a result")
    return member_block("toolResult", result, item.native)


def _output_content(
    item: FunctionCallOutput | CustomToolCallOutput, path: str, context: ConverseContext
) -> list[JsonObject]:
    """The blocks of a result, without blank text."""  # rule B2
    if isinstance(item.output, str):
        parts: Sequence[ContentPart] = (Text(item.output),)
    else:
        parts = item.output
    content: list[JsonObject] = []
    for part in parts:
        block = part_block(part, path, context)
        if block and not is_blank(block):
            content.append(block)
    return content


def _compaction(item: Compaction, path: str, report: Report) -> Iterator[RoleAndBlock]:
    if item.content:
        report.add("downgraded", path, "Converse has no compaction: sent as user text")
        yield "user", {"text": item.content}
    else:
        report.dropped(path, "Converse has no compaction, and this one cannot be read")


def _opaque(item: Opaque) -> RoleAndBlock:
    if item.native:
        return item.native.get("role", "assistant"), item.payload
    return "assistant", item.payload


def is_blank(block: JsonObject) -> bool:
    """Whether a block is text, and blank."""  # rule B2
    # a block with text beside another member is of another kind
    return block.keys() == {"text"} and not block["text"].strip()
