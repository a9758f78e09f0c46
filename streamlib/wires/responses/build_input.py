"""Builds the `input` of an OpenAI Responses request: one item, one object, in order.

Each rule that the API enforces with a 400 or 404 is met by one small function, here or, where it
concerns the complete list, in `build_input_rules`. R1 … are the rows of the rule table in
docs/wires/responses.md:

R1 without `store` no ids of messages, reasoning and calls
R2 reasoning that the server cannot read back is left out
R3 reasoning is directly before what it produced
R4 ids have their kind's prefix, at most 64 characters
R5 assistant text is output_text, all other text input_text
R6 an output of the wire's own kind needs its call, and a call its output
R7 no null, no empty message, no status that the wire does not know
R8 what is truncated (hosted calls, reasoning, unknown items) is left out
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from streamlib.request.history import IndexedItem
from streamlib.request.origins import downgrade_item, reasoning_as_text
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib.wires.responses.build_input_rules import (
    InputObject,
    match_output_kinds,
    put_back,
    without_empty_messages,
    without_stray_reasoning,
    without_unpaired,
)
from streamlib.wires.responses.build_parts import input_part, native_part
from streamlib.wires.responses.build_tools import found_tools
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    ApprovalRequest,
    Audio,
    BuiltInCall,
    BuiltInOutput,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Opaque,
    Output,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSearchOutput,
)
from streamlib_parsers.wires.responses.items import HOSTED, RESULTS
from streamlib_parsers.wires.responses.wire_items import named_body, wire_item

ID_PREFIXES: Final = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
}
"""Kind -> prefix of its ids on the wire; ids of other kinds have any form."""  # rule R4

MAX_ID_LENGTH: Final = 64

WITHOUT_ID: Final = frozenset(
    {
        *ID_PREFIXES,
        "function_call_output",
        "custom_tool_call_output",
        "compaction",
        "compaction_summary",
    }
)
"""Kinds whose id only stored responses know. Hosted tools keep theirs: they require one."""
# rule R1

WITH_STATUS: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Kinds whose `status` is required."""

ERROR: Final = "stated in the text: Responses has no is_error"


@dataclass(frozen=True, slots=True)
class ResponsesContext(BuildContext):
    """A build context that knows whether the server stores the response."""

    stored: bool
    """Whether the server stores responses, and so knows their ids."""
    is_continued: bool = False
    """Whether the request continues a history that the server stores."""


Bodies: TypeAlias = Iterator[JsonObject]


def wire_input(items: list[IndexedItem], context: ResponsesContext) -> list[InputObject]:
    """Builds the input.

    Args:
        items: the repaired and downgraded history.
        context: the target, the report, and whether responses are stored.

    Returns:
        The wire's objects with the items they were made from; every rule is met.
    """
    report = context.report
    sent: list[InputObject] = []
    for entry in items:
        item = entry.item
        if isinstance(item, Opaque) and "content_index" in (item.native or {}):
            put_back(item, entry, sent, report)
            continue
        for body in input_objects(item, entry, context):
            named = named_body(body, item)
            sent.append(InputObject(tidy(named, stored=context.stored), entry))
    match_output_kinds(sent)
    sent = without_empty_messages(sent, report)
    sent = without_unpaired(sent, report, is_continued=context.is_continued)
    return without_stray_reasoning(sent, report)


def input_objects(item: ResponseItem, entry: IndexedItem, context: ResponsesContext) -> Bodies:
    """The objects of one item: one, or none if it cannot be sent."""
    match item:
        case Message():
            return _message(item, entry, context)
        case FunctionCall() | CustomToolCall():
            return _call(item)
        case FunctionCallOutput() | CustomToolCallOutput():
            return _output(item, entry, context)
        case Reasoning():
            return _reasoning(item, entry, context)
        case ServerToolCall() | ServerToolResult():
            return _server_tool(item, entry, context)
        case Compaction():
            return _compaction(item, entry, context)
        case Opaque():
            return _opaque(item)
        case _:
            return _built_in(item, entry, context)


# --- messages and reasoning ---


def _message(item: Message, entry: IndexedItem, context: ResponsesContext) -> Bodies:
    if item.role == "assistant":
        yield _assistant_message(item, entry, context.report)
        return
    body: JsonObject = {"type": "message", **(item.native or {})}
    body["role"] = context.target.provider.roles.get(item.role, item.role)
    body["content"] = [input_part(part) for part in item.content]
    if item.phase is not None:
        body["phase"] = item.phase
    yield body


def _assistant_message(item: Message, entry: IndexedItem, report: Report) -> JsonObject:
    """Text and refusals only; `phase` and native keys as received."""  # rule R5
    content: list[Text | Refusal] = []
    for part in item.content:
        output_part = _output_part(part, entry, report)
        if output_part is not None:
            content.append(output_part)
    # The parts of `wire_item` are in the order of `content`.
    body = wire_item(msgspec.structs.replace(item, content=tuple(content)))
    wire_parts: list[JsonObject] = []
    for part, wire_part in zip(content, body["content"], strict=True):
        wire_parts.append(native_part(part) or {**wire_part, **(part.native or {})})
    body["content"] = wire_parts
    # Types of the API require `status` of a stored message; `tidy` removes it elsewhere.
    return {**body, "status": item.status}


def _output_part(part: ContentPart, entry: IndexedItem, report: Report) -> Text | Refusal | None:
    if isinstance(part, (Text, Refusal)):
        return part
    kind = type(part).__name__.lower()
    report.dropped(entry.path, f"{kind} in a response cannot be sent back")
    return _transcript(part)


def _transcript(part: ContentPart) -> Text | None:
    if isinstance(part, Audio) and part.transcript:
        return Text(part.transcript)
    return None


def _reasoning(item: Reasoning, entry: IndexedItem, context: ResponsesContext) -> Bodies:
    """R2: kept if the server can read it: encrypted, stored, or text of the same server."""
    report = context.report
    if item.status == "incomplete":
        report.dropped(entry.path, "truncated reasoning")
        return
    if _is_readable(item, context):
        yield wire_item(item)
        return
    message = reasoning_as_text(item) if item.content else None
    if message is None:
        report.dropped(entry.path, "reasoning without encrypted_content")
        return
    report.add("downgraded", entry.path, "reasoning without encrypted_content, sent as text")
    yield wire_item(message)


def _is_readable(item: Reasoning, context: ResponsesContext) -> bool:
    if item.encrypted_content:
        return True
    if context.stored and _has_own_id(item.id, "reasoning"):
        return True
    # An item without origin may be from anywhere, and only local servers take any text.
    is_known = item.origin is not None or context.target.provider.unsigned_thinking
    return bool(item.content) and is_known


# --- calls and their results ---


def _call(item: FunctionCall | CustomToolCall) -> Bodies:
    """Arguments as received; another wire's empty ones as an empty object."""
    body = wire_item(item)
    if isinstance(item, CustomToolCall):
        yield body
        return
    arguments = item.arguments
    is_own = item.origin is not None and item.origin.wire_api == "responses"
    if not arguments and not is_own:
        arguments = "{}"
    body["arguments"] = arguments
    yield body


def _output(
    item: FunctionCallOutput | CustomToolCallOutput, entry: IndexedItem, context: ResponsesContext
) -> Bodies:
    output = _output_value(item.output, entry, context.report)
    if item.is_error:
        context.report.add("changed", f"{entry.path}/is_error", ERROR)
        if isinstance(output, str):
            output = f"[error] {output}".strip()
        else:
            output = [{"type": "input_text", "text": "[error]"}, *output]
    kind = "function_call_output"
    if isinstance(item, CustomToolCallOutput):
        kind = "custom_tool_call_output"
    yield {**(item.native or {}), "type": kind, "call_id": item.call_id, "output": output}


def _output_value(output: Output, entry: IndexedItem, report: Report) -> str | list[JsonObject]:
    if isinstance(output, str):
        return output
    parts: list[JsonObject] = []
    for part in output:
        sendable: ContentPart | None = part
        if isinstance(part, Audio):
            report.dropped(entry.path, "the output of a call takes no audio")
            sendable = _transcript(part)
        if sendable is not None:
            parts.append(input_part(sendable))
    if not output:
        report.add("changed", entry.path, "an empty list is refused: sent as an empty text")
    return parts or ""


def _server_tool(
    item: ServerToolCall | ServerToolResult, entry: IndexedItem, context: ResponsesContext
) -> Bodies:
    """A tool of the provider: unchanged to the wire that made it, as text if no wire is known."""
    kind = (item.native or {}).get("type")
    if isinstance(item, ServerToolCall):
        is_own = kind in HOSTED
    else:
        is_own = kind in RESULTS
    if not is_own:
        yield from _downgraded(item, entry, context)
    elif item.status == "incomplete":
        context.report.dropped(entry.path, "a truncated call")
    else:
        body = wire_item(item)
        if kind in WITH_STATUS:
            body = {"status": "completed", **body}
        yield body


def _built_in(
    item: BuiltInCall | BuiltInOutput, entry: IndexedItem, context: ResponsesContext
) -> Bodies:
    """A call of a tool that the caller runs, or its output; most calls require their `status`."""
    body = wire_item(item)
    if isinstance(item, BUILT_IN_CALLS) and not isinstance(item, ApprovalRequest):
        body = {"status": "completed", **body}
        if body["status"] is None:
            del body["status"]
    elif isinstance(item, ToolSearchOutput):
        body["tools"] = found_tools(item.tools, entry.path, context)
    yield body


# --- other items ---


def _compaction(item: Compaction, entry: IndexedItem, context: ResponsesContext) -> Bodies:
    if item.status == "incomplete":
        context.report.dropped(entry.path, "a truncated compaction")
    elif item.encrypted_content:
        yield wire_item(item)
    else:
        yield from _downgraded(item, entry, context)


def _downgraded(item: ResponseItem, entry: IndexedItem, context: ResponsesContext) -> Bodies:
    """The item as if it were of another origin."""
    action, reason, replacement = downgrade_item(item)
    if action:
        context.report.add(action, entry.path, reason)
    if replacement is not None:
        yield from input_objects(replacement, entry, context)


def _opaque(item: Opaque) -> Bodies:
    body = wire_item(item)
    if item.kind:
        body = {"type": item.kind, **body}
    yield body


# --- rules of one object ---


def tidy(body: JsonObject, *, stored: bool) -> JsonObject:
    """Ids, status and nulls as the wire takes them (R1, R4, R7)."""
    kind = body.get("type")
    if kind not in WITHOUT_ID:
        return body
    tidy: JsonObject = {}
    for key, value in body.items():
        if value is not None and key not in ("id", "status"):
            tidy[key] = value
    if stored and _has_own_id(body.get("id"), kind):
        tidy["id"] = body["id"]
        if kind == "message":
            tidy["status"] = body["status"]
    return tidy


def _has_own_id(item_id: str | None, kind: str) -> bool:
    """Whether an id can be one that this wire made."""  # rule R4
    if item_id is None or len(item_id) > MAX_ID_LENGTH:
        return False
    return item_id.startswith(ID_PREFIXES.get(kind, ""))
