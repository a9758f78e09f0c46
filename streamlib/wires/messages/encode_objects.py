"""The objects of Messages that an encoder writes: blocks, stop reason, usage, errors."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import without_none
from streamlib.request.report import Report
from streamlib.wires.reasoning_text import reasoning_text
from streamlib.wires.usage_counts import uncached_input_tokens
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    Compaction,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.messages import STOP_REASONS
from streamlib_parsers.wires.messages import usage as read_usage

# --- blocks ---


def skeleton(item: ResponseItem) -> ResponseItem:
    """The item of `content_block_start`: without what its deltas carry."""
    fields: JsonObject = {}
    match item:
        case Message():
            fields = {"content": ()}
        case Reasoning(redacted=False):
            fields = {"content": "", "summary": (), "signature": None}
        case FunctionCall():
            fields = {"arguments": "", "signature": None}
        case CustomToolCall():
            fields = {"input": ""}
        case ServerToolCall():
            fields = {"arguments": ""}
        case Compaction():
            fields = {"content": None, "encrypted_content": None, "signature": None}
        case _:
            # Results, unknown kinds and redacted reasoning have no deltas.
            return item
    return msgspec.structs.replace(item, **fields)


def has_block(item: ResponseItem, report: Report, *, own: bool) -> bool:
    """Whether Messages has a block for the item; one that it has none for is reported.

    Args:
        item: the item, without state of another provider.
        report: receives the loss.
        own: whether the item was made on this wire.
    """
    if isinstance(item, BUILT_IN_CALLS) or (isinstance(item, Opaque) and not own):
        report.dropped(f"/{type(item).__name__}", "Messages has no such block")
        return False
    # Nothing is left of it without its state.
    is_empty = isinstance(item, Reasoning) and item.redacted and not own
    return not is_empty


def block_of(item: ResponseItem, report: Report) -> JsonObject:
    """The complete content block of an item."""
    match item:
        case Message():
            block = _text_block(item, report)
        case Reasoning():
            block = _thinking_block(item, report)
        case FunctionCall():
            block = _call_block("tool_use", item)
        case CustomToolCall():
            block = _custom_call_block(item, report)
        case ServerToolCall():
            block = _call_block("server_tool_use", item)
        case ServerToolResult():
            block = _result_block(item)
        case Compaction():
            block = _compaction_block(item)
        case Opaque():
            block = _unknown_block(item)
        case _:
            raise TypeError(f"{type(item).__name__} is never part of a response")
    if item.native:
        return {**block, **item.native}
    return block


def compaction_fields(item: Compaction) -> JsonObject:
    """`content` and `encrypted_content`, each only if it is known."""
    return without_none({"content": item.content, "encrypted_content": item.encrypted_content})


def has_broken_arguments(item: ResponseItem) -> bool:
    """Whether a block was closed although its arguments are not JSON."""
    return isinstance(item, (FunctionCall, ServerToolCall)) and not is_json(item.arguments)


def _text_block(item: Message, report: Report) -> JsonObject:
    text = ""
    citations: list[JsonObject] = []
    for part in item.content:
        match part:
            case Text():
                text += part.text
                citations += part.annotations
            case Refusal():
                text += part.refusal
            case _:
                report.dropped("/media", "Messages has no images or audio in a response")
    block: JsonObject = {"type": "text", "text": text}
    if citations:
        block["citations"] = citations
    return block


def _thinking_block(item: Reasoning, report: Report) -> JsonObject:
    if item.redacted:
        return {"type": "redacted_thinking", "data": item.encrypted_content or ""}
    if item.encrypted_content:
        reason = "Messages carries encrypted reasoning only as redacted thinking"
        report.dropped("/encrypted_content", reason)
    signature = item.signature or ""
    return {"type": "thinking", "thinking": reasoning_text(item), "signature": signature}


def _call_block(kind: str, item: FunctionCall | ServerToolCall) -> JsonObject:
    arguments: Any = {}
    # In the provider's own bytes. Text that is not JSON is left out; a body omits such a call.
    if item.arguments and is_json(item.arguments):
        arguments = Raw(item.arguments.encode("utf-8"))
    name = item.name
    if isinstance(item, FunctionCall):
        name = flat_call_name(item)
    return {"type": kind, "id": item.call_id, "name": name, "input": arguments}


def _custom_call_block(item: CustomToolCall, report: Report) -> JsonObject:
    report.dropped("/custom_tool_call", "a free-form call is a tool_use with its text as `input`")
    arguments: JsonObject = {}
    if item.input:
        arguments["input"] = item.input
    name = flat_call_name(item)
    return {"type": "tool_use", "id": item.call_id, "name": name, "input": arguments}


def _result_block(item: ServerToolResult) -> JsonObject:
    return {
        "type": f"{item.name or 'server'}_tool_result",
        "tool_use_id": item.call_id,
        "content": item.output,
    }


def _compaction_block(item: Compaction) -> JsonObject:
    block: JsonObject = {"type": "compaction", "content": None, **compaction_fields(item)}
    if item.signature:
        block["signature"] = item.signature
    return block


def _unknown_block(item: Opaque) -> JsonObject:
    # Unchanged where possible: replay needs the provider's order of keys.
    if "type" in item.payload:
        return item.payload
    return {"type": item.kind, **item.payload}


# --- stop reason, usage, errors ---

ID_PREFIX: Final = "msg_"
"""Beginning of the id of a response that has none: clients require one."""

RESERVED_KEYS: Final = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
)
"""Keys of a Message that metadata must not replace."""

NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
    "other": "end_turn",
}

ERROR_TYPES: Final[dict[ErrorKind, str]] = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "rate_limited": "rate_limit_error",
    "quota_exhausted": "billing_error",
    "overloaded": "overloaded_error",
    "context_window_exceeded": "invalid_request_error",
    "request_too_large": "request_too_large",
    "invalid_request": "invalid_request_error",
    "invalid_history": "invalid_request_error",
    "content_filter": "invalid_request_error",
    "not_found": "not_found_error",
    "stalled": "timeout_error",
    "deadline": "timeout_error",
}
"""ErrorKind -> `error.type`; any other kind is `api_error`."""


def native_stop(stop_reason: StopReason, native: str | None, report: Report) -> str:
    """The native `stop_reason` if it is one of this wire, else the nearest one."""
    if native and (STOP_REASONS.get(native) == stop_reason or stop_reason == "other"):
        return native
    nearest = NATIVE_STOP[stop_reason]
    if STOP_REASONS[nearest] != stop_reason:
        report.dropped("/stop_reason", f"Messages has no value for {stop_reason}: {nearest}")
    return nearest


def messages_usage(usage: Usage | None, report: Report) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.
    """
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    body: JsonObject = without_none(
        {
            "input_tokens": uncached_input_tokens(usage, report),
            "cache_creation_input_tokens": usage.cache_write_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        }
    )
    if usage.cache_write_1h_input_tokens is not None:
        body["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_input_tokens or 0,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens,
        }
    if usage.reasoning_output_tokens is not None:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_output_tokens}
    body["output_tokens"] = usage.output_tokens or 0
    return body


OVERFLOW: Final = "prompt is too long"
"""What Anthropic says of a full context. Claude Code looks for these words, and compacts then."""

_COUNT: Final = r"(\d[\d,]{0,15})"
_MAXIMUM: Final = re.compile(
    rf"(?:maximum|limit|exceed|context (?:length|window|size))\D{{0,60}}{_COUNT}", re.IGNORECASE
)
"""The limit of tokens in a provider's message."""

_MAXIMUM_BEFORE: Final = re.compile(rf"{_COUNT} maximum", re.IGNORECASE)
"""The same, in Mistral's."""

_EXCESS: Final = re.compile(rf"exceed(?:s|ed)?\b\D{{0,60}}\bby {_COUNT}", re.IGNORECASE)
"""Tokens beyond the limit, in Cohere's and Ollama's."""


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    error_type = ERROR_TYPES.get(error.kind, "api_error")
    message = error.message
    if error.kind == "context_window_exceeded":
        message = _overflow_message(message)
    return {"type": "error", "error": {"type": error_type, "message": message}}


def _overflow_message(message: str) -> str:
    """What a provider says of a full context, in the words of Anthropic."""
    if OVERFLOW in message.lower():
        return message
    excess = _EXCESS.search(message)
    rest = _EXCESS.sub("", message)
    limit = _MAXIMUM_BEFORE.search(rest) or _MAXIMUM.search(rest)
    if limit is None:
        return f"{OVERFLOW}: {message}"
    maximum = _number(limit[1])
    if excess is not None:
        sent = maximum + _number(excess[1])
    else:
        sent = max([_number(text) for text in re.findall(_COUNT, rest)])
    if sent <= maximum:
        return f"{OVERFLOW}: {message}"
    return f"{OVERFLOW}: {sent} tokens > {maximum} maximum"


def _number(text: str) -> int:
    return int(text.replace(",", ""))
