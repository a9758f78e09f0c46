"""Items as Converse content blocks: how they start in a stream, and whole; stop reasons and usage in the wire's words."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.report import Report
from streamlib_parsers.accumulate import Response
from streamlib_parsers.events import Completed, StopReason
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Image,
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
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.converse import STOP_REASONS
from streamlib_parsers.wires.converse import usage as read_usage

NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "pause": "end_turn",
    "other": "end_turn",
}
IMAGE_TYPES: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/*": "png",
}
"""Media type -> `format`."""
RESULT_MEMBERS: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})


def is_own(item: ResponseItem) -> bool:
    """Whether an item was made on this wire, or nobody knows where."""
    return item.origin is None or item.origin.wire_api in ("converse", None)


def can_stand(item: ResponseItem) -> bool:
    """Whether Converse has a block for it: for what the assistant said, and for nothing that only another wire knows."""
    if isinstance(item, Message):
        return item.role == "assistant"
    return type(item) in BLOCKS and (not isinstance(item, Opaque) or is_own(item))


def sealed(item: Reasoning) -> str | None:
    """What of a sealed thought a blob can carry: base64, for clients decode it."""
    if not item.redacted or not item.encrypted_content:
        return None
    try:
        base64.b64decode(item.encrypted_content, validate=True)
    except (binascii.Error, ValueError):
        return None
    return item.encrypted_content


def is_broken(item: ResponseItem) -> bool:
    """A block that was closed, with arguments that are not JSON."""
    return isinstance(item, (FunctionCall, ServerToolCall)) and not is_json(item.arguments)


def free_form(text: str) -> str:
    """The input of a free-form call as JSON text."""
    return msgspec.json.encode({"input": text}).decode("utf-8")


def results(item: ServerToolResult) -> list[JsonObject]:
    """The content of a result: this wire's own members, or whatever another wire gave as one JSON value."""
    output = item.output
    members = isinstance(output, list) and all(
        isinstance(one, dict) and len(one) == 1 and one.keys() <= RESULT_MEMBERS for one in output
    )
    if isinstance(output, list) and (members or is_own(item)):
        return output
    return [{"text": output} if isinstance(output, str) else {"json": output}]


# --- starts: what stands in contentBlockStart; texts and thoughts have none ---


def start_of(item: ResponseItem) -> JsonObject | None:
    """The start of a block; None where its first delta opens it."""
    make = STARTS.get(type(item))
    return make(item) if make else None


def opening(item: ResponseItem) -> JsonObject:
    """The delta that opens a text or a thought and says nothing."""
    if not isinstance(item, Reasoning):
        return {"text": ""}
    return {"reasoningContent": {"redactedContent": ""} if item.redacted else {"text": ""}}


def _start_message(item: Any) -> JsonObject | None:
    image = item.content[0] if item.content else None
    return (
        {"image": {"format": IMAGE_TYPES.get(image.media_type or "", "png")}}
        if isinstance(image, Image)
        else None
    )


def _start_call(item: Any) -> JsonObject:
    return {"toolUse": {"toolUseId": item.call_id, "name": item.name, **_native(item)}}


def _start_server_call(item: Any) -> JsonObject:
    return {
        "toolUse": {
            "toolUseId": item.call_id,
            "name": item.name,
            "type": "server_tool_use",
            **_native(item),
        }
    }


def _start_result(item: Any) -> JsonObject:
    kind = {"type": f"{item.name}_result"} if item.name else {}
    return {"toolResult": {"toolUseId": item.call_id, **kind, **_native(item)}}


def _native(item: ResponseItem) -> JsonObject:
    return (item.native or {}) if is_own(item) else {}


STARTS: Final[dict[type, Callable[[Any], JsonObject | None]]] = {
    Message: _start_message,
    FunctionCall: _start_call,
    CustomToolCall: _start_call,
    ServerToolCall: _start_server_call,
    ServerToolResult: _start_result,
    Opaque: lambda item: item.payload,
}


# --- blocks: an item whole ---


def block_of(item: ResponseItem, losses: Report) -> JsonObject | None:
    """The block of an item; None for what cannot be told, or was cut and would look callable."""
    return BLOCKS[type(item)](item, losses)


def _message(item: Any, losses: Report) -> JsonObject | None:
    image = next((part for part in item.content if isinstance(part, Image)), None)
    texts = [
        part.text if isinstance(part, Text) else part.refusal
        for part in item.content
        if isinstance(part, (Text, Refusal))
    ]
    spoken = [part.transcript for part in item.content if getattr(part, "transcript", None)]
    if image is not None and not texts:
        return _image(image, losses)
    if len(texts) < len(item.content):
        losses.dropped("/media", "an image stands in a block of its own")
    text = {"text": "".join([*texts, *spoken])}
    notes = [note for part in item.content if isinstance(part, Text) for note in part.annotations]
    return (
        {"citationsContent": {"content": [text], "citations": notes}}
        if notes and is_own(item)
        else text
    )


def _image(image: Image, losses: Report) -> JsonObject | None:
    source = {"bytes": image.data} if image.data else on_s3(image)
    written = IMAGE_TYPES.get(image.media_type or "")
    if source is None or written is None:
        losses.dropped("/media", "Converse has images of its own formats only, in bytes or on S3")
        return None
    return {"image": {"format": written, "source": source}}


def on_s3(image: Image) -> JsonObject | None:
    """The location of an image on S3."""
    return {"s3Location": {"uri": image.url}} if (image.url or "").startswith("s3://") else None


def _reasoning(item: Any, losses: Report) -> JsonObject | None:
    if item.redacted:
        seal = sealed(item)
        return {"reasoningContent": {"redactedContent": seal}} if seal else None
    said = "\n\n".join([*item.summary, *([item.content] if item.content else [])])
    return {
        "reasoningContent": {
            "reasoningText": {
                "text": said,
                **({"signature": item.signature} if item.signature else {}),
            }
        }
    }


def _call(item: Any, losses: Report) -> JsonObject | None:
    if item.status == "incomplete":
        return None
    return {
        "toolUse": {
            **_start_call(item)["toolUse"],
            "input": Raw((item.arguments or "{}").encode("utf-8")),
        }
    }


def _custom(item: Any, losses: Report) -> JsonObject | None:
    if item.status == "incomplete":
        return None
    return {"toolUse": {**_start_call(item)["toolUse"], "input": {"input": item.input}}}


def _server_call(item: Any, losses: Report) -> JsonObject | None:
    arguments = item.arguments if item.arguments and is_json(item.arguments) else "{}"
    return {
        "toolUse": {**_start_server_call(item)["toolUse"], "input": Raw(arguments.encode("utf-8"))}
    }


def _server_result(item: Any, losses: Report) -> JsonObject:
    return {
        "toolResult": {
            **_start_result(item)["toolResult"],
            "content": results(item) if item.output else [],
        }
    }


BLOCKS: Final[dict[type, Callable[[Any, Report], JsonObject | None]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    CustomToolCall: _custom,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    Opaque: lambda item, losses: item.payload,
}


# --- the envelope ---


def native_stop(end: Completed | Response, *, foreign: bool) -> str:
    """The wire's own word where it was one of its own, else the nearest."""
    reason, native = end.stop_reason or "other", end.native_stop_reason
    if native and (STOP_REASONS.get(native) == reason or (reason == "other" and not foreign)):
        return native
    return "stop_sequence" if end.stop_sequence and reason == "stop" else NATIVE_STOP[reason]


def usage_object(usage: Usage | None, losses: Report, *, complete: bool) -> JsonObject | None:
    """The provider's own object where it says the same in this wire's words, else one made of the numbers.

    complete: numbers that the wire's clients count on are zeros where nobody said them.
    """
    if usage is not None and usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage is None and not complete:
        return None
    usage = usage or Usage()
    written, read = usage.cache_write_input_tokens, usage.cache_read_input_tokens
    fresh = (
        None
        if usage.input_tokens is None
        else max(0, usage.input_tokens - (written or 0) - (read or 0))
    )
    body: JsonObject = {"inputTokens": fresh, "outputTokens": usage.output_tokens}
    if complete and None in body.values():
        losses.dropped("/usage", "Converse has no word for unknown usage: zeros")
        body = {key: value or 0 for key, value in body.items()}
    body["totalTokens"] = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    body |= {"cacheReadInputTokens": read, "cacheWriteInputTokens": written}
    kept = {key: value for key, value in body.items() if value is not None}
    if usage.reasoning_output_tokens is not None:
        kept["output_tokens_details"] = {"thinking_tokens": usage.reasoning_output_tokens}
    return {**kept, **_lifetimes(usage)}


def _lifetimes(usage: Usage) -> JsonObject:
    given = {"5m": usage.cache_write_5m_input_tokens, "1h": usage.cache_write_1h_input_tokens}
    details = [
        {"ttl": ttl, "inputTokens": count} for ttl, count in given.items() if count is not None
    ]
    return {"cacheDetails": details} if details else {}
