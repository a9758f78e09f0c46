"""The objects of Converse that an encoder writes: blocks, stop reason, usage."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from streamlib.request.json_objects import without_none
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.converse.build_parts import member_block
from streamlib.wires.usage_counts import uncached_input_tokens
from streamlib_parsers.events import Completed, StopReason
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.converse import STOP_REASONS
from streamlib_parsers.wires.converse import usage as read_usage

# --- blocks ---

IMAGE_FORMATS: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/*": "png",
}
"""`format` of an image by media type."""
RESULT_KINDS: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})
"""The keys of an element of a result; each element has one of them."""


def has_block(item: ResponseItem) -> bool:
    """Whether Converse has a block for the item.

    It has none for items of other roles, nor for items that only another wire knows.
    """
    match item:
        case Message():
            return item.role == "assistant"
        case Opaque():
            return is_own(item, "converse")
        case Reasoning() | FunctionCall() | CustomToolCall() | ServerToolCall():
            return True
        case ServerToolResult():
            return True
        case _:
            return False


def has_broken_arguments(item: ResponseItem) -> bool:
    """Whether a block was closed although its arguments are not JSON."""
    return isinstance(item, (FunctionCall, ServerToolCall)) and not is_json(item.arguments)


# --- fields of blocks ---


def base64_state(item: Reasoning) -> str | None:
    """Encrypted reasoning if `redactedContent` can carry it: clients decode its base64."""
    if not item.redacted or not item.encrypted_content:
        return None
    try:
        base64.b64decode(item.encrypted_content, validate=True)
    except (binascii.Error, ValueError):
        return None
    return item.encrypted_content


def result_content(item: ServerToolResult) -> list[JsonObject]:
    """The content of a result: this wire's own elements, or another wire's JSON as one."""
    output = item.output
    if isinstance(output, list) and (is_own(item, "converse") or _is_result_content(output)):
        return output
    if isinstance(output, str):
        return [{"text": output}]
    return [{"json": output}]


def _is_result_content(output: list[object]) -> bool:
    for element in output:
        if not isinstance(element, dict) or len(element) != 1:
            return False
        if not element.keys() <= RESULT_KINDS:
            return False
    return True


def image_error(image: Image) -> JsonObject | None:
    """Why an image failed, if it did."""
    error = (image.native or {}).get("error")
    if isinstance(error, dict):
        return error
    return None


def s3_source(image: Image) -> JsonObject | None:
    """The location of an image on S3, if it is there."""
    if image.url is None or not image.url.startswith("s3://"):
        return None
    location = {"uri": image.url}
    if image.native and "bucketOwner" in image.native:
        location["bucketOwner"] = image.native["bucketOwner"]
    return {"s3Location": location}


# --- contentBlockStart ---


def start_of(item: ResponseItem) -> JsonObject | None:
    """`start` of `contentBlockStart`; None if the first delta opens the block."""
    match item:
        case Message():
            return _image_start(item)
        case FunctionCall() | CustomToolCall():
            return member_block("toolUse", _call_fields(item), item.native)
        case ServerToolCall():
            return member_block("toolUse", _server_call_fields(item), item.native)
        case ServerToolResult():
            return member_block("toolResult", _result_fields(item), item.native)
        case Opaque():
            return item.payload
        case _:
            return None


def empty_delta(item: ResponseItem) -> JsonObject:
    """Returns the delta that opens the block of a text or reasoning and adds nothing."""
    if not isinstance(item, Reasoning):
        return {"text": ""}
    if item.redacted:
        return {"reasoningContent": {"redactedContent": ""}}
    return {"reasoningContent": {"text": ""}}


def _image_start(item: Message) -> JsonObject | None:
    if not item.content or not isinstance(item.content[0], Image):
        return None
    image_format = IMAGE_FORMATS.get(item.content[0].media_type or "", "png")
    return {"image": {"format": image_format}}


def _call_fields(item: FunctionCall | CustomToolCall) -> JsonObject:
    return {"toolUseId": item.call_id, "name": flat_call_name(item)}


def _server_call_fields(item: ServerToolCall) -> JsonObject:
    return {
        "toolUseId": item.call_id,
        "name": item.name,
        "type": "server_tool_use",
    }


def _result_fields(item: ServerToolResult) -> JsonObject:
    fields: JsonObject = {"toolUseId": item.call_id}
    if item.name:
        fields["type"] = f"{item.name}_result"
    return fields


# --- stop reason and usage ---

STOP_FIELDS: Final = "additionalModelResponseFields"
"""The envelope key that belongs to `messageStop`; models put the stop sequence there."""
RESERVED_KEYS: Final = frozenset({"output", "role", "usage", "stopReason", "contentBlockIndex"})
"""Keys of the wire's own objects, which no envelope key may replace."""
OWN_KEYS: Final = frozenset({STOP_FIELDS, "metrics", "trace", "performanceConfig", "serviceTier"})
"""Envelope keys of this wire; those of others are left out."""
NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "pause": "end_turn",
    "other": "end_turn",
}


def native_stop(end: Completed, report: Report, *, foreign: bool) -> str:
    """The native `stopReason` if it is one of this wire, else the nearest one."""
    reason = end.stop_reason
    native = end.native_stop_reason
    if native and STOP_REASONS.get(native) == reason:
        return native
    if native and reason == "other" and not foreign:
        return native
    if end.stop_sequence and reason == "stop":
        return "stop_sequence"
    nearest = NATIVE_STOP[reason]
    if STOP_REASONS[nearest] != reason:
        report.dropped("/stop_reason", f"Converse has no value for {reason}: {nearest}")
    return nearest


def converse_usage(usage: Usage | None, report: Report, *, complete: bool) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.

    Args:
        usage: the counts; None if they are not known.
        report: receives counts that had to be written as 0.
        complete: write unknown numbers as 0 if the wire's clients rely on them.
    """
    if usage is not None and usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage is None:
        if not complete:
            return None
        usage = Usage()
    input_tokens = uncached_input_tokens(usage, report)
    output_tokens = usage.output_tokens
    if complete and (input_tokens is None or output_tokens is None):
        report.add("changed", "/usage", "Converse cannot leave usage unknown: zeros")
        input_tokens = input_tokens or 0
        output_tokens = output_tokens or 0
    body: JsonObject = without_none(
        {
            "inputTokens": input_tokens,
            "outputTokens": output_tokens,
            "totalTokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
            "cacheReadInputTokens": usage.cache_read_input_tokens,
            "cacheWriteInputTokens": usage.cache_write_input_tokens,
        }
    )
    if usage.reasoning_output_tokens is not None:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_output_tokens}
    cache_details = _cache_details(usage)
    if cache_details:
        body["cacheDetails"] = cache_details
    return body


def _cache_details(usage: Usage) -> list[JsonObject]:
    details: list[JsonObject] = []
    if usage.cache_write_5m_input_tokens is not None:
        details.append({"ttl": "5m", "inputTokens": usage.cache_write_5m_input_tokens})
    if usage.cache_write_1h_input_tokens is not None:
        details.append({"ttl": "1h", "inputTokens": usage.cache_write_1h_input_tokens})
    return details
