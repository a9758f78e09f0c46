"""The objects of Responses that an encoder writes: items, usage, the response, errors."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from streamlib.request.json_objects import without_none
from streamlib.request.media import media_type
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.openai_errors import error_object as openai_error
from streamlib.wires.openai_errors import error_type
from streamlib.wires.responses.repeated_settings import RepeatedSettings, with_settings
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import StopReason
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
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses import usage as read_usage
from streamlib_parsers.wires.responses.items import HOSTED, RESULTS
from streamlib_parsers.wires.responses.output import PENDING
from streamlib_parsers.wires.responses.wire_items import wire_item

# --- items while they are streamed ---


class TextKind(NamedTuple):
    """The wire's names for one kind of streamed text.

    events: prefix of the `.delta` and `.done` events.
    part_type, text_key: type of the part, and its field with the text.
    part_events: prefix of the `.added` and `.done` events of the part.
    index_key: the field that numbers the parts of an item.
    """

    events: str
    part_type: str
    text_key: str
    part_events: str
    index_key: str


OUTPUT_TEXT: Final = TextKind(
    "response.output_text", "output_text", "text", "response.content_part", "content_index"
)
REFUSAL: Final = TextKind(
    "response.refusal", "refusal", "refusal", "response.content_part", "content_index"
)
REASONING: Final = TextKind(
    "response.reasoning_text", "reasoning_text", "text", "response.content_part", "content_index"
)
SUMMARY: Final = TextKind(
    "response.reasoning_summary_text",
    "summary_text",
    "text",
    "response.reasoning_summary_part",
    "summary_index",
)

ARGUMENT_EVENTS: Final[dict[str, tuple[str, str]]] = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
"""Event prefix and field of the complete text by type of the call.

Other hosted tools have their arguments in the item that is done.
"""


class OutputItem:
    """One item of `output` while it is encoded."""

    __slots__ = (
        "agent",
        "annotations",
        "body",
        "id",
        "images",
        "item",
        "kind",
        "output_index",
        "parts",
    )

    def __init__(self, output_index: int, item: ResponseItem) -> None:
        self.output_index = output_index
        # The skeleton, then the final item.
        self.item = item
        # `id` and `type` on the wire, set when the item is added.
        self.id = ""
        self.kind = ""
        # `agent` of its events: as the item has it on the wire, or empty.
        self.agent: JsonObject = {}
        # Fragments of each text, in the order in which the texts started.
        self.parts: dict[tuple[TextKind, int], list[str]] = {}
        # Annotations so far, by content index.
        self.annotations: dict[int, list[JsonObject]] = {}
        # The object of `response.output_item.done`; empty until the item is done.
        self.body: JsonObject = {}
        # Images of a message, which follow it as items of their own.
        self.images: list[JsonObject] = []


# --- items ---

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

    `incomplete` is always written, since nothing else says that an item is truncated; any other
    status gives way to the item's own on the wire.
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
    identified = {**body, "id": item_id}
    if not _has_status(item, status):
        return identified
    return {**identified, "status": status}


def _has_status(item: ResponseItem, status: str) -> bool:
    """Whether an item is written with this status.

    Clients send reasoning back as they got it. OpenAI gives it no status and refuses one, although
    the SDK's type has it (litellm#13420). So what was encrypted on this wire has none, nor has
    reasoning that has just begun, of which that is not known. Other reasoning ends with one, as in
    Open Responses.
    """
    if not isinstance(item, (Reasoning, Compaction)) or not is_own(item, "responses"):
        return True
    if status == "in_progress":
        return False
    return status == "incomplete" or not item.encrypted_content


# --- around the items ---

ID_PREFIX: Final = "resp_"
"""Beginning of the id of a response that has none: clients require one."""
INCOMPLETE_REASONS: Final[dict[StopReason, str]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
"""Stop reasons of a response that ends `incomplete`."""
DETAIL_MODALITIES: Final = frozenset({"text", "image", "audio"})
"""Modalities that the details of a usage object can name."""


# --- status ---


def ending(
    stop_reason: StopReason,
    native: str | None,
    report: Report,
    outputs: Iterable[OutputItem],
) -> tuple[str, str | None]:
    """The status and the reason of an incomplete response.

    Args:
        stop_reason: why the response ended.
        native: `incomplete:REASON` if it ended incomplete on this wire: both are then kept.
        report: receives a reason that the wire cannot express.
        outputs: the items of the response: refusals and calls are known by them.
    """
    if native is not None:
        status, _, reason = native.partition(":")
        if status == "incomplete":
            return "incomplete", reason or None
    if stop_reason == "refusal" and not _has_refusal(outputs):
        explanation = "Responses knows a refusal by its text, and there is none: content_filter"
        report.dropped("/stop_reason", explanation)
        return "incomplete", "content_filter"
    if stop_reason in INCOMPLETE_REASONS:
        return "incomplete", INCOMPLETE_REASONS[stop_reason]
    if stop_reason not in ("stop", "tool_calls", "refusal"):
        report.dropped("/stop_reason", f"Responses has no value for {stop_reason}")
    if stop_reason == "tool_calls" and not _has_call(outputs):
        explanation = "Responses knows it by a complete call, and there is none: stop"
        report.dropped("/stop_reason", explanation)
    return "completed", None


def _has_refusal(outputs: Iterable[OutputItem]) -> bool:
    """Whether the agent that was asked refused."""
    for output in outputs:
        if output.item.agent is None and any(kind is REFUSAL for kind, _ in output.parts):
            return True
    return False


def _has_call(outputs: Iterable[OutputItem]) -> bool:
    """Whether a call waits for its result."""
    for output in outputs:
        if isinstance(output.item, PENDING) and output.item.status == "completed":
            return True
    return False


def incomplete_details(envelope: JsonObject, reason: str | None) -> Any:
    """The provider's own `incomplete_details`, else those made from the reason, or None."""
    details = envelope.get("incomplete_details")
    if not details and reason:
        return {"reason": reason}
    return details or None


# --- usage ---


def responses_usage(
    usage: Usage | None, *, own: bool, with_details: bool = False
) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.

    Args:
        usage: the counts; None if they are not known.
        own: whether the response was made on this wire, whose servers may leave out the sum.
            Official clients read it, so another wire's object needs it.
        with_details: whether the details are written that Open Responses requires; a count that
            is not known is then 0.
    """
    if usage is None:
        return None
    body = _usage_object(usage, own=own)
    if not with_details:
        return body
    required = {
        "input_tokens_details": "cached_tokens",
        "output_tokens_details": "reasoning_tokens",
    }
    complete = {**body}
    for details, count in required.items():
        counts = body.get(details)
        if not isinstance(counts, dict):
            counts = {}
        if counts.get(count) is None:
            complete[details] = {**counts, count: 0}
    return complete


def _usage_object(usage: Usage, *, own: bool) -> JsonObject:
    raw = usage.raw
    has_totals = "input_tokens" in raw and "output_tokens" in raw
    if has_totals and (own or "total_tokens" in raw) and read_usage(raw).same_numbers(usage):
        return raw
    input_tokens = usage.input_tokens or 0
    output_tokens = usage.output_tokens or 0
    body: JsonObject = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    input_details = without_none(
        {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_write_input_tokens,
            **_modalities(usage.input_modalities),
        }
    )
    output_details = without_none(
        {
            "reasoning_tokens": usage.reasoning_output_tokens,
            **_modalities(usage.output_modalities),
        }
    )
    # Clients that read any detail require the first one: Codex ends a stream without it.
    if input_details:
        body["input_tokens_details"] = {"cached_tokens": 0, **input_details}
    if output_details:
        body["output_tokens_details"] = {"reasoning_tokens": 0, **output_details}
    return body


def report_unknown_counts(
    usage: Usage | None, report: Report, *, with_details: bool = False
) -> None:
    """Reports counts that are not known: clients read them as numbers.

    Args:
        usage: the counts; None if they are not known.
        report: receives what is unknown.
        with_details: as in `responses_usage`.
    """
    if usage is None:
        return
    if usage.input_tokens is None or usage.output_tokens is None:
        report.add("changed", "/usage", "unknown totals are written as 0")
    details = (usage.cache_read_input_tokens, usage.reasoning_output_tokens)
    if with_details and None in details:
        report.add("changed", "/usage/details", "unknown counts of details are written as 0")


def _modalities(modalities: dict[str, int]) -> dict[str, int | None]:
    counts: dict[str, int | None] = {}
    for modality, count in modalities.items():
        if modality in DETAIL_MODALITIES:
            counts[f"{modality}_tokens"] = count
    return counts


# --- the response ---


def response_object(
    common: JsonObject,
    status: str | None,
    output: Iterable[JsonObject],
    envelope: JsonObject,
    settings: JsonObject | None = None,
    **fields: Any,
) -> JsonObject:
    """A Response.

    Args:
        common: `id` and `model`; `created_at` and what clients expect beside it, if it is known.
        status: status of the response.
        output: objects of its items.
        envelope: metadata, which replaces the defaults.
        settings: settings of the request (`request_settings`), which replace the defaults.
        fields: further fields; they replace all others.
    """
    defaults: JsonObject = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "tools": [],
    }
    if settings is not None:
        envelope = with_settings(settings, envelope)
    return {
        "object": "response",
        **common,
        "status": status,
        "output": list(output),
        **defaults,
        **envelope,
        **fields,
    }


# --- errors ---

REQUEST_FIELDS: Final = (*RepeatedSettings.__struct_fields__, "input", "model", "conversation")
"""Codes of our own that name a field of the request: `error.param` has them."""


def error_object(error: ErrorInfo) -> JsonObject:
    """The error as an object of the wire.

    The provider's own object keeps its values if it has this shape and means the same kind.
    """
    body: JsonObject = openai_error(error)
    is_own = body is error.detail
    if is_own:
        if "type" in body and "param" in body:
            return body
        return {"type": error_type(error.kind), "param": None, **body}
    if error.kind == "invalid_request" and error.code in REQUEST_FIELDS:
        return {**body, "param": error.code}
    return body


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error."""
    return {"error": error_object(error)}
