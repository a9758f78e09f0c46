"""Items as Converse content blocks: their start in a stream, and their complete form."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec
from msgspec import Raw

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.reasoning_text import reasoning_text
from streamlib_parsers.items import (
    Audio,
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
    """Returns encrypted reasoning if `redactedContent` can carry it: clients decode its base64."""
    if not item.redacted or not item.encrypted_content:
        return None
    try:
        base64.b64decode(item.encrypted_content, validate=True)
    except (binascii.Error, ValueError):
        return None
    return item.encrypted_content


def free_form_input(text: str) -> str:
    """Returns the input of a free-form call as JSON text."""
    return msgspec.json.encode({"input": text}).decode("utf-8")


def result_content(item: ServerToolResult) -> list[JsonObject]:
    """Returns the content of a result: this wire's own elements, or another wire's JSON as one."""
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
    """Returns why an image failed, if it did."""
    error = (image.native or {}).get("error")
    if isinstance(error, dict):
        return error
    return None


def s3_source(image: Image) -> JsonObject | None:
    """Returns the location of an image on S3, if it is there."""
    if image.url is None or not image.url.startswith("s3://"):
        return None
    location = {"uri": image.url}
    if image.native and "bucketOwner" in image.native:
        location["bucketOwner"] = image.native["bucketOwner"]
    return {"s3Location": location}


# --- contentBlockStart ---


def start_of(item: ResponseItem) -> JsonObject | None:
    """Returns `start` of `contentBlockStart`; None if the first delta opens the block."""
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


# --- complete blocks ---


def block_of(item: ResponseItem, report: Report) -> JsonObject | None:
    """Returns the complete block of an item that has one.

    None for what the wire cannot carry, and for an incomplete call: it would look callable.
    """
    match item:
        case Message():
            return _message_block(item, report)
        case Reasoning():
            return _reasoning_block(item)
        case FunctionCall() | CustomToolCall():
            return _call_block(item)
        case ServerToolCall():
            return _server_call_block(item)
        case ServerToolResult():
            content = result_content(item) if item.output else []
            return {"toolResult": {**_result_fields(item), "content": content}}
        case Opaque():
            return item.payload
        case _:
            return None


def _message_block(item: Message, report: Report) -> JsonObject | None:
    texts: list[str] = []
    transcripts: list[str] = []
    citations: list[JsonObject] = []
    first_image: Image | None = None
    for part in item.content:
        match part:
            case Text():
                texts.append(part.text)
                citations += part.annotations
            case Refusal():
                texts.append(part.refusal)
            case Image():
                first_image = first_image or part
            case Audio():
                transcripts.append(part.transcript or "")
            case _:
                pass
    if first_image is not None and not texts:
        return _image_block(first_image, report, own=is_own(item, "converse"))
    if len(texts) < len(item.content):
        report.dropped("/media", "an image needs a block of its own")
    text = {"text": "".join([*texts, *transcripts])}
    if citations and is_own(item, "converse"):
        return {"citationsContent": {"content": [text], "citations": citations}}
    return text


def _image_block(image: Image, report: Report, *, own: bool) -> JsonObject | None:
    source = s3_source(image)
    if image.data:
        source = {"bytes": image.data}
    image_format = IMAGE_FORMATS.get(image.media_type or "")
    error = image_error(image)
    if error is not None and own:
        block: JsonObject = {"format": image_format or "png", "error": error}
        if source is not None:
            block["source"] = source
        return {"image": block}
    if source is None or image_format is None:
        reason = "Converse has images of its own formats only, in bytes or on S3"
        report.dropped("/media", reason)
        return None
    return {"image": {"format": image_format, "source": source}}


def _reasoning_block(item: Reasoning) -> JsonObject | None:
    if item.redacted:
        state = base64_state(item)
        if state is None:
            return None
        return {"reasoningContent": {"redactedContent": state}}
    fields = {"text": reasoning_text(item)}
    if item.signature:
        fields["signature"] = item.signature
    return {"reasoningContent": {"reasoningText": fields}}


def _call_block(item: FunctionCall | CustomToolCall) -> JsonObject | None:
    if item.status == "incomplete":
        return None
    fields = _call_fields(item)
    if isinstance(item, CustomToolCall):
        fields["input"] = {"input": item.input}
    else:
        # Raw keeps the provider's own bytes.
        fields["input"] = Raw((item.arguments or "{}").encode("utf-8"))
    return {"toolUse": fields}


def _server_call_block(item: ServerToolCall) -> JsonObject:
    arguments = "{}"
    if item.arguments and is_json(item.arguments):
        arguments = item.arguments
    return {"toolUse": {**_server_call_fields(item), "input": Raw(arguments.encode("utf-8"))}}
