"""What a Gemini stream and a whole body are both made of: parts of items, candidates, counts, reasons and errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from streamlib.request.report import Report
from streamlib.wires.gemini.build_media import media_field
from streamlib.wires.gemini.build_parts import part_object, server_part
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import FinishedChoice, StopReason
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    Document,
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
from streamlib_parsers.wires.gemini import BLOCK_NUMBERS, STOP_REASONS
from streamlib_parsers.wires.gemini import usage as read_usage

# --- parts ---


def is_own(item: ResponseItem) -> bool:
    """Whether the item was made by this wire, so that its state can be read by who reads it."""
    return item.origin is None or item.origin.wire_api in ("gemini", None)


def parts_of(item: ResponseItem, losses: Report) -> list[JsonObject]:
    """The parts of a whole item; none where this wire has no words for it."""
    match item:
        case Message():
            return _message(item, losses)
        case Reasoning():
            return _reasoning(item, losses)
        case FunctionCall() | CustomToolCall():
            return _call(item, losses)
        case ServerToolCall() | ServerToolResult() | Opaque() if is_own(item):
            body = item.payload if isinstance(item, Opaque) else server_part(item)
            return [body] if body is not None else []
        case _:
            losses.dropped(f"/{type(item).__name__}", "Gemini has no part for it")
            return []


def _state(item: Any, losses: Report) -> Any:
    """The item with what its reader can use: signatures and `native` of another wire mean nothing here."""
    if is_own(item):
        return item
    if item.signature:
        losses.dropped("/signature", "a signature of another wire")
    return msgspec.structs.replace(item, id=None, signature=None, native=None)


def _message(item: Message, losses: Report) -> list[JsonObject]:
    said = _state(item, losses)
    parts = [body for part in item.content if (body := _content(part, losses)) is not None]
    if item.signature and not parts:
        parts = [{"text": ""}]
    if len(parts) == 1:
        kind, data = next(iter(parts[0].items()))
        return [part_object(kind, data, said.native, said.signature)]
    return (
        [
            *parts[:-1],
            {**parts[-1], **({"thoughtSignature": said.signature} if said.signature else {})},
        ]
        if parts
        else []
    )


def _content(part: Any, losses: Report) -> JsonObject | None:
    match part:
        case Text():
            return {"text": part.text}
        case Refusal():
            losses.dropped("/refusal", "a refusal is plain text in Gemini")
            return {"text": part.refusal}
        case Image() | Document() | Audio():
            found = media_field(part)
            if isinstance(part, Audio) and part.transcript:
                losses.dropped("/transcript", "Gemini has no transcript of audio")
            return {found[0]: found[1]} if found else None
        case _:
            return None


def _reasoning(item: Reasoning, losses: Report) -> list[JsonObject]:
    if item.encrypted_content:
        losses.dropped("/encrypted_content", "Gemini has no place for sealed thoughts")
    if item.summary:
        losses.dropped("/summary", "a summary is a plain thought in Gemini")
    text = "\n\n".join([*item.summary, *([item.content] if item.content else [])])
    said = _state(item, losses)
    if not text and not said.signature:
        return []
    body = part_object("text", text, said.native, said.signature)
    return [{"text": body.pop("text"), "thought": True, **body}]


def _call(item: FunctionCall | CustomToolCall, losses: Report) -> list[JsonObject]:
    """A whole call. One of another wire brings its id along, so that the answer finds it; one of Gemini's has one only if it came."""
    if item.status == "incomplete":
        losses.dropped("/calls", "a call that was cut is left out: it must not look callable")
        return []
    own = isinstance(item, FunctionCall) and is_own(item)
    given = {"id": item.id} if own and item.id else {} if own else {"id": item.call_id}
    data = {**given, "name": item.name, **_arguments(item, losses, own=own)}
    state = _state(item, losses)
    return [part_object("functionCall", data, state.native, state.signature)]


def _arguments(item: FunctionCall | CustomToolCall, losses: Report, *, own: bool) -> JsonObject:
    """`args`, in their own bytes; an object, always."""
    if isinstance(item, CustomToolCall):
        losses.dropped(
            "/custom_tool_call", "a free-form call is a functionCall with its text as `input`"
        )
        return {"args": {"input": item.input}}
    if own and not item.arguments:
        return {}
    if item.arguments and not (item.arguments.lstrip().startswith("{") and is_json(item.arguments)):
        losses.dropped("/arguments", "arguments that are no JSON object are wrapped")
        return {"args": {"_raw": item.arguments}}
    return {"args": Raw((item.arguments or "{}").encode("utf-8"))}


# --- the envelope ---

CANDIDATE_KEYS: Final = frozenset(
    {
        *(
            "safetyRatings",
            "citationMetadata",
            "groundingMetadata",
            "groundingAttributions",
            "urlContextMetadata",
            "logprobsResult",
        ),
        *("avgLogprobs", "finishMessage", "tokenCount", "continuationToken"),
    }
)
"""Metadata that stands in a candidate; all other keys are read from either place, and stand in the response."""
_ELSEWHERE: Final = re.compile(r"candidates\[(\d{1,4})\]\.(.+)", re.DOTALL)


class Place(NamedTuple):
    """Where a metadata key stands. choice: None for the response itself. inside: in the candidate's `content`."""

    choice: int | None
    key: str
    inside: bool = False


def place_of(key: str) -> Place:
    """`candidates[1].content.role` and its like, taken apart."""
    other = _ELSEWHERE.fullmatch(key)
    name = other[2] if other else key
    if name.startswith("content."):
        return Place(int(other[1]) if other else 0, name.removeprefix("content."), inside=True)
    if other:
        return Place(int(other[1]), name)
    return Place(0 if key in CANDIDATE_KEYS else None, key)


def candidate(
    parts: Iterable[JsonObject],
    choice: int,
    values: Iterable[tuple[Place, Any]] = (),
    finish: str | None = None,
) -> JsonObject:
    """One candidate, with the metadata that stands in it."""
    values = list(values)
    body: JsonObject = {"content": {"parts": list(parts), "role": "model"}}
    body["content"] |= {place.key: value for place, value in values if place.inside}
    body |= {"finishReason": finish} if finish else {}
    return {
        **body,
        "index": choice,
        **{place.key: value for place, value in values if not place.inside},
    }


def block_reason(metadata: JsonObject) -> str | None:
    """Why the prompt was blocked, if it was, in the word that the parser uses."""
    feedback = metadata.get("promptFeedback")
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    return BLOCK_NUMBERS.get(reason, str(reason)) if isinstance(reason, int) else reason


# --- the end ---

NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "OTHER",
    "other": "OTHER",
}
_OWN_WORD: Final = re.compile("[A-Z0-9_]+")


def finish_reason(end: FinishedChoice, losses: Report) -> str:
    """The wire's own word where it was one of its own, else the nearest."""
    native, meant = end.native_stop_reason or "", STOP_REASONS.get(end.native_stop_reason or "")
    if meant == end.stop_reason or (meant == "stop" and end.stop_reason == "tool_calls"):
        return native
    if meant is None and end.stop_reason == "other" and _OWN_WORD.fullmatch(native):
        return native
    word = NATIVE_STOP[end.stop_reason]
    if STOP_REASONS.get(word, "other") not in (end.stop_reason, "stop"):
        losses.dropped("/stop_reason", f"Gemini has no word for {end.stop_reason}: {word}")
    return word


# --- counts ---


def usage_object(usage: Usage | None, losses: Report) -> JsonObject | None:
    """The provider's own object where it says the same in this wire's words, else one made of the numbers."""
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage.cache_write_input_tokens:
        losses.dropped(
            "/usage/cache_write_input_tokens", "Gemini does not count what is written to a cache"
        )
    thought, said, read = usage.reasoning_output_tokens, usage.output_tokens, usage.input_tokens
    beside = (
        said is None or (thought or 0) <= said
    )  # else they were counted by another rule: Gemini's older one has them inside
    body = {
        "promptTokenCount": read,
        "cachedContentTokenCount": usage.cache_read_input_tokens,
        "candidatesTokenCount": said - (thought or 0) if beside and said is not None else said,
        "thoughtsTokenCount": thought,
        "totalTokenCount": (read or 0) + (said or 0),
        "promptTokensDetails": _details(usage.input_modalities),
        "candidatesTokensDetails": _details(usage.output_modalities),
        "cacheTokensDetails": _details(usage.cache_modalities),
    }
    return {key: value for key, value in body.items() if value is not None}


def _details(modalities: dict[str, int]) -> list[JsonObject] | None:
    return [
        {"modality": name.upper(), "tokenCount": tokens} for name, tokens in modalities.items()
    ] or None


# --- errors ---

STATUSES: Final[dict[ErrorKind, tuple[int, str]]] = {
    "authentication": (401, "UNAUTHENTICATED"),
    "permission": (403, "PERMISSION_DENIED"),
    "rate_limited": (429, "RESOURCE_EXHAUSTED"),
    "quota_exhausted": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "context_window_exceeded": (400, "INVALID_ARGUMENT"),
    "request_too_large": (413, "INVALID_ARGUMENT"),
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "invalid_history": (400, "INVALID_ARGUMENT"),
    "content_filter": (400, "INVALID_ARGUMENT"),
    "not_found": (404, "NOT_FOUND"),
    "stalled": (504, "DEADLINE_EXCEEDED"),
    "deadline": (504, "DEADLINE_EXCEEDED"),
    "cancelled": (499, "CANCELLED"),
}
"""Kinds that are not here are 500 INTERNAL."""
REASONS: Final[dict[ErrorKind, str]] = {
    "quota_exhausted": "QUOTA_EXCEEDED",
    "context_window_exceeded": "CONTEXT_WINDOW_EXCEEDED",
    "content_filter": "CONTENT_FILTER",
}
"""What a status cannot say stands in `details`."""


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    code, status = STATUSES.get(error.kind, (500, "INTERNAL"))
    details: list[JsonObject] = []
    if error.kind in REASONS:
        details.append(
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": REASONS[error.kind],
                "domain": "googleapis.com",
            }
        )
    if error.retry_after is not None:
        details.append(
            {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": f"{error.retry_after:.3f}".rstrip("0").rstrip(".") + "s",
            }
        )
    body = {"code": code, "message": error.message, "status": status}
    return {"error": {**body, **({"details": details} if details else {})}}
