"""Items as Converse content blocks: their start in a stream, and their complete form."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from streamlib.request.origins import is_own
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
            return {"toolUse": _call_fields(item)}
        case ServerToolCall():
            return {"toolUse": _server_call_fields(item)}
        case ServerToolResult():
            return {"toolResult": _result_fields(item)}
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
    return {"toolUseId": item.call_id, "name": flat_call_name(item), **(item.native or {})}


def _server_call_fields(item: ServerToolCall) -> JsonObject:
    return {
        "toolUseId": item.call_id,
        "name": item.name,
        "type": "server_tool_use",
        **(item.native or {}),
    }


def _result_fields(item: ServerToolResult) -> JsonObject:
    fields: JsonObject = {"toolUseId": item.call_id}
    if item.name:
        fields["type"] = f"{item.name}_result"
    return {**fields, **(item.native or {})}
