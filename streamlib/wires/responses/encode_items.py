"""Items as output items of Responses."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from streamlib.request.media import media_type
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    ApprovalRequest,
    Compaction,
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
from streamlib_parsers.wires.responses.items import HOSTED, RESULTS
from streamlib_parsers.wires.responses.wire_items import wire_item

ID_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "image_generation_call": "ig",
}
RESPONSE_ID_LENGTH: Final = 48
"""Maximum characters of the response's id in a generated item id, which has at most 64."""


# --- what the wire can carry ---


def encodable(item: ResponseItem, report: Report) -> ResponseItem | None:
    """The item without what the wire cannot carry, or None if it has no such item."""
    encoded = _without_foreign_content(item, report)
    if encoded is None:
        report.dropped(f"/{type(item).__name__}", "Responses has no item for it")
        return None
    return encoded


def _without_foreign_content(item: ResponseItem, report: Report) -> ResponseItem | None:
    encoded: ResponseItem | None = None
    match item:
        case Message():
            encoded = _message(item, report)
        case Reasoning():
            encoded = item
        case FunctionCall():
            encoded = _call(item, report)
        case CustomToolCall():
            encoded = item
        case ServerToolCall() if is_own(item, "responses") and _native_type(item) in HOSTED:
            encoded = item
        case ServerToolResult() if is_own(item, "responses") and _native_type(item) in RESULTS:
            encoded = item
        case Compaction() | Opaque() if is_own(item, "responses"):
            encoded = item
        case _ if isinstance(item, BUILT_IN_CALLS) and is_own(item, "responses"):
            encoded = item
        case _:
            pass
    return encoded


def _native_type(item: ServerToolCall | ServerToolResult) -> str | None:
    return (item.native or {}).get("type")


def _message(item: Message, report: Report) -> Message:
    own = is_own(item, "responses")
    parts: list[Text | Refusal] = []
    for part in item.content:
        match part:
            case Text():
                parts.append(_text(part, report, own=own))
            case Refusal():
                parts.append(part)
            case _:
                report.dropped(
                    "/media",
                    "a message of Responses has text only; "
                    "its images follow it as image_generation_call",
                )
    return msgspec.structs.replace(item, content=tuple(parts))


def _text(part: Text, report: Report, *, own: bool) -> Text:
    annotations: list[JsonObject] = []
    for note in part.annotations:
        annotation = citation(note, report, own=own)
        if annotation is not None:
            annotations.append(annotation)
    return msgspec.structs.replace(part, annotations=annotations)


def citation(note: JsonObject, report: Report, *, own: bool) -> JsonObject | None:
    """A citation of another wire as `url_citation`, or None if it names no URL."""
    if own:
        return note
    source = note
    if isinstance(note.get("url_citation"), dict):
        source = note["url_citation"]
    if not isinstance(source.get("url"), str):
        report.dropped("/annotations", "a citation without a URL has no form here")
        return None
    report.dropped("/annotations", "citations of another wire are written as url_citation")
    annotation: JsonObject = {
        "type": "url_citation",
        "url": source["url"],
        "title": source.get("title") or "",
    }
    for key in ("start_index", "end_index"):
        annotation[key] = 0
        if isinstance(source.get(key), int):
            annotation[key] = source[key]
    return annotation


def _call(item: FunctionCall, report: Report) -> FunctionCall:
    if is_own(item, "responses") or item.arguments or item.status == "incomplete":
        return item
    report.dropped("/arguments", "empty arguments are written as {}")
    return msgspec.structs.replace(item, arguments="{}")


# --- objects of the wire ---


def images_of(item: ResponseItem) -> list[JsonObject]:
    """The images of a message, in the wire's form of a generated image."""
    images: list[JsonObject] = []
    if not isinstance(item, Message):
        return images
    for part in item.content:
        if isinstance(part, Image) and part.data:
            output_format = media_type(part).removeprefix("image/")
            images.append(
                {
                    "type": "image_generation_call",
                    "result": part.data,
                    "output_format": output_format,
                }
            )
    return images


def generated_id(kind: str, response_id: str, output_index: int) -> str:
    """An item id: made of its response's id, so that items of two responses differ."""
    prefix = ID_PREFIXES.get(kind, "item")
    base = response_id.removeprefix("resp_")
    if len(base) > RESPONSE_ID_LENGTH:
        # Cut off, the ids of two responses might be alike: a provider's often begin so.
        base = sha256(base.encode("utf-8", "surrogatepass")).hexdigest()[:RESPONSE_ID_LENGTH]
    return f"{prefix}_{base}_{output_index}"


def item_object(item: ResponseItem, status: str, response_id: str, output_index: int) -> JsonObject:
    """The object of an item that `encodable` returned.

    `incomplete` is always written; any other status gives way to the item's own on the wire.
    """
    body = wire_item(item)
    if isinstance(item, Opaque):
        if status == "incomplete":
            return {**body, "status": status}
        return body
    if status != "incomplete":
        status = body.get("status", status)
    if isinstance(item, ApprovalRequest) and status != "incomplete":
        # The wire has no status for it, and its id is the id of the call.
        return body
    item_id = item.id or generated_id(body["type"], response_id, output_index)
    return {**body, "id": item_id, "status": status}
