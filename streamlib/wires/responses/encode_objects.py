"""The objects of the Responses wire, for its stream and for its whole body: items, usage, errors, and the response around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from streamlib.request.media import media_type
from streamlib.request.report import Report
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
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
from streamlib_parsers.wires.responses.events import TYPED_KEYS
from streamlib_parsers.wires.responses.items import HOSTED, RESULTS, wire_item

ID_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "image_generation_call": "ig",
}
LONGEST_ID: Final = 48
"""Characters of the response's id that an item's generated id repeats: ids have 64."""


# --- items ---


def is_own(item: ResponseItem) -> bool:
    """Whether it was made by this wire, as far as is known."""
    return item.origin is None or item.origin.wire_api in ("responses", None)


def sayable(item: ResponseItem, losses: Report) -> ResponseItem | None:
    """The item as this wire can say it; None where it has no words for it."""
    say = SAYABLE.get(type(item))
    said = say(item, losses) if say else None
    if said is None:
        losses.dropped(f"/{type(item).__name__}", "Responses has no item for it")
        return None
    if is_own(item):
        return said
    if item.signature:
        losses.dropped("/signature", "a signature belongs to the wire that made it")
    return msgspec.structs.replace(said, id=None, signature=None, native=None)


def _message(item: Any, losses: Report) -> ResponseItem:
    own = is_own(item)
    parts: list[Text | Refusal] = []
    for part in item.content:
        if isinstance(part, Text) and part.annotations:
            cited = [
                one
                for note in part.annotations
                if (one := citation(note, losses, own=own)) is not None
            ]
            parts.append(msgspec.structs.replace(part, annotations=cited))
        elif isinstance(part, (Text, Refusal)):
            parts.append(part)
        else:
            losses.dropped(
                "/media",
                "a message of Responses holds text only; its images follow it as image_generation_call",
            )
    return msgspec.structs.replace(item, content=tuple(parts))  # type: ignore[no-any-return]


def _reasoning(item: Any, losses: Report) -> ResponseItem:
    """The slot for sealed content takes this wire's own only: a client would send it back to whoever is next."""
    if is_own(item) or not item.encrypted_content:
        return item  # type: ignore[no-any-return]
    losses.dropped("/encrypted_content", "sealed reasoning belongs to the wire that made it")
    return msgspec.structs.replace(item, encrypted_content=None)  # type: ignore[no-any-return]


def _call(item: Any, losses: Report) -> ResponseItem:
    if is_own(item) or item.arguments or item.status == "incomplete":
        return item  # type: ignore[no-any-return]
    losses.dropped("/arguments", "arguments without text are written {}")
    return msgspec.structs.replace(item, arguments="{}")  # type: ignore[no-any-return]


def _as_it_is(item: Any, losses: Report) -> ResponseItem:
    return item  # type: ignore[no-any-return]


def _hosted(item: Any, losses: Report) -> ResponseItem | None:
    known = HOSTED if isinstance(item, ServerToolCall) else RESULTS
    return item if is_own(item) and (item.native or {}).get("type") in known else None


def _own_only(item: Any, losses: Report) -> ResponseItem | None:
    return item if is_own(item) else None


SAYABLE: Final[dict[type, Callable[[Any, Report], ResponseItem | None]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    CustomToolCall: _as_it_is,
    ServerToolCall: _hosted,
    ServerToolResult: _hosted,
    Compaction: _own_only,
    Opaque: _own_only,
}


def images_of(item: ResponseItem) -> list[JsonObject]:
    """The images of a message, as what this wire has for a generated image."""
    parts = item.content if isinstance(item, Message) else ()
    images = [part for part in parts if isinstance(part, Image) and part.data]
    return [
        {
            "type": "image_generation_call",
            "result": one.data,
            "output_format": media_type(one).removeprefix("image/"),
        }
        for one in images
    ]


def minted_id(kind: str, response_id: str, place: int) -> str:
    """The same id for the same place of the same response."""
    return (
        f"{ID_PREFIXES.get(kind, 'item')}_{response_id.removeprefix('resp_')[:LONGEST_ID]}_{place}"
    )


def item_object(item: ResponseItem, status: str, response_id: str, place: int) -> JsonObject:
    """The wire's object for a sayable item. A status that is the wire's own word for it stays; `incomplete` always shows."""
    body = wire_item(item)
    if isinstance(item, Opaque):
        return {**body, "status": status} if status == "incomplete" else body
    word = status if status == "incomplete" else body.get("status", status)
    return {**body, "id": item.id or minted_id(body["type"], response_id, place), "status": word}


def citation(note: JsonObject, losses: Report, *, own: bool) -> JsonObject | None:
    """A citation of another wire as `url_citation`, where it names a URL."""
    if own:
        return note
    inner = note["url_citation"] if isinstance(note.get("url_citation"), dict) else note
    if not isinstance(inner.get("url"), str):
        losses.dropped("/annotations", "a citation without a URL has no form here")
        return None
    places = {
        key: inner.get(key) if isinstance(inner.get(key), int) else 0
        for key in ("start_index", "end_index")
    }
    losses.dropped("/annotations", "citations of another wire are written as url_citation")
    return {
        "type": "url_citation",
        "url": inner["url"],
        "title": inner.get("title") or "",
        **places,
    }


# --- usage ---

TOTALS: Final = ("input_tokens", "output_tokens", "total_tokens")


def usage_object(usage: Usage | None, *, own: bool) -> JsonObject | None:
    """The provider's own object where it says the same in this wire's words, else one made of the numbers.

    own: it comes from this wire, whose servers may leave the sum out; official clients read it.
    """
    if usage is None:
        return None
    if all(key in usage.raw for key in TOTALS[: 2 + (not own)]) and read_usage(
        usage.raw
    ).same_numbers(usage):
        return usage.raw
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    inner = {
        "cached_tokens": read,
        "cache_write_tokens": written,
        **_modalities(usage.input_modalities),
    }
    outer = {
        "reasoning_tokens": usage.reasoning_output_tokens,
        **_modalities(usage.output_modalities),
    }
    spent, given = usage.input_tokens or 0, usage.output_tokens or 0
    details = {
        "input_tokens_details": _details(inner, "cached_tokens"),
        "output_tokens_details": _details(outer, "reasoning_tokens"),
    }
    known = {key: value for key, value in details.items() if value}
    return {"input_tokens": spent, "output_tokens": given, "total_tokens": spent + given, **known}


def _details(counts: dict[str, int | None], wanted: str) -> JsonObject:
    """Counts that are known; clients that read any of them want `wanted` among them (Codex ends a stream without it)."""
    known = {key: value for key, value in counts.items() if value is not None}
    return {wanted: 0, **known} if known else {}


def note_unknown(usage: Usage | None, losses: Report) -> None:
    """Clients read totals as numbers."""
    if usage is not None and None in (usage.input_tokens, usage.output_tokens):
        losses.dropped("/usage", "unknown totals are written as 0")


def _modalities(split: dict[str, int]) -> dict[str, int]:
    return {
        f"{kind}_tokens": count
        for kind, count in split.items()
        if kind in ("text", "image", "audio")
    }


# --- errors ---

ERROR_CODES: Final[dict[ErrorKind, str]] = {
    "authentication": "invalid_api_key",
    "permission": "permission_denied",
    "rate_limited": "rate_limit_exceeded",
    "quota_exhausted": "insufficient_quota",
    "overloaded": "server_is_overloaded",
    "context_window_exceeded": "context_length_exceeded",
    "request_too_large": "request_too_large",
    "invalid_request": "invalid_request_error",
    "invalid_history": "missing_following_item",
    "content_filter": "content_filter",
    "not_found": "model_not_found",
    "cancelled": "cancelled",
}
"""Codes that this wire's clients know. Kinds that are not here are `server_error`."""
REFUSED: Final = frozenset(
    {
        "authentication",
        "permission",
        "context_window_exceeded",
        "invalid_request",
        "invalid_history",
        "not_found",
    }
)


def error_object(error: ErrorInfo) -> JsonObject:
    """The wire's error: the provider's own object where it has this shape and says the same, else one made of the kind."""
    detail = error.detail
    is_ours = (
        isinstance(detail, dict)
        and isinstance(detail.get("message"), str)
        and isinstance(detail.get("code"), str)
    )
    if is_ours and classify(None, {"error": detail}).kind == error.kind:
        return detail  # type: ignore[no-any-return]
    code = ERROR_CODES.get(error.kind, "server_error")
    body = {
        "type": "invalid_request_error" if error.kind in REFUSED else code,
        "code": code,
        "message": error.message,
        "param": None,
    }
    return body if error.retry_after is None else {**body, "retry_after": error.retry_after}


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error."""
    return {"error": error_object(error)}


# --- the response ---


def ending(
    stop_reason: StopReason, native: str | None, losses: Report, *, refused: bool
) -> tuple[str, str | None]:
    """(status, reason of an incomplete response): the wire's own words where they were its own. refused: in words of its own."""
    if native is not None and native.partition(":")[0] == "incomplete":
        return "incomplete", native.partition(":")[2] or None
    if stop_reason == "refusal" and not refused:
        losses.dropped(
            "/stop_reason",
            "Responses knows a refusal by its words, and there are none: content_filter",
        )
        return "incomplete", "content_filter"
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    return ("incomplete", reasons[stop_reason]) if stop_reason in reasons else ("completed", None)


def envelope_of(values: JsonObject, losses: Report) -> JsonObject:
    """Metadata that has a place beside the typed keys."""
    for key in TYPED_KEYS.intersection(values):
        losses.dropped(f"/metadata/{key}", "Responses has another meaning for the key")
    return {key: value for key, value in values.items() if key not in TYPED_KEYS}


def response_object(
    head: JsonObject,
    status: str | None,
    output: Iterable[JsonObject],
    envelope: JsonObject,
    **fields: Any,
) -> JsonObject:
    """A Response. head: id, model and, where a clock is known, created_at with what clients expect beside it."""
    nothing: JsonObject = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "tools": [],
    }
    return {
        "object": "response",
        **head,
        "status": status,
        "output": list(output),
        **nothing,
        **envelope,
        **fields,
    }
