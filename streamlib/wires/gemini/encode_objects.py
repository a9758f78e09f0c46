"""The objects of Gemini that an encoder writes: parts, candidates, usage, errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeVar

from streamlib.request.json_objects import without_none
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.arguments import encoded_object
from streamlib.wires.gemini.build_media import media_field
from streamlib.wires.gemini.build_parts import part_object, server_part
from streamlib.wires.reasoning_text import reasoning_text
from streamlib.wires.usage_counts import output_tokens_without_reasoning
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import FinishedChoice, StopReason
from streamlib_parsers.items import (
    Audio,
    ContentPart,
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
from streamlib_parsers.wires.gemini import BLOCK_NUMBERS, STOP_REASONS
from streamlib_parsers.wires.gemini import usage as read_usage

# --- parts ---

ItemT = TypeVar("ItemT", bound=ResponseItem)


def parts_of(item: ResponseItem, report: Report) -> list[JsonObject]:
    """The parts of a complete item; none if the wire has no form for it."""
    match item:
        case Message():
            return _message_parts(item, report)
        case Reasoning():
            return _reasoning_parts(item, report)
        case FunctionCall() | CustomToolCall():
            return _call_parts(item, report)
        case ServerToolCall() | ServerToolResult() if is_own(item, "gemini"):
            part = server_part(item)
            if part is None:
                report.dropped(f"/{type(item).__name__}", "Gemini has no part for it")
                return []
            return [part]
        case Opaque() if is_own(item, "gemini"):
            return [item.payload]
        case _:
            report.dropped(f"/{type(item).__name__}", "Gemini has no part for it")
            return []


def _message_parts(item: Message, report: Report) -> list[JsonObject]:
    parts: list[JsonObject] = []
    for content_part in item.content:
        part = _content_part(content_part, report)
        if part is not None:
            parts.append(part)
    if item.signature and not parts:
        # A signature needs a part that carries it.
        parts.append({"text": ""})
    if len(parts) == 1:
        kind, data = next(iter(parts[0].items()))
        return [part_object(kind, data, item.native, item.signature)]
    if parts and item.signature:
        parts[-1] = {**parts[-1], "thoughtSignature": item.signature}
    return parts


def _content_part(part: ContentPart, report: Report) -> JsonObject | None:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Refusal):
        report.dropped("/refusal", "a refusal is plain text in Gemini")
        return {"text": part.refusal}
    if isinstance(part, Audio) and part.transcript:
        report.dropped("/transcript", "Gemini has no transcript of audio")
    field = media_field(part)
    if field is None:
        return None
    kind, data = field
    return {kind: data}


def _reasoning_parts(item: Reasoning, report: Report) -> list[JsonObject]:
    if item.encrypted_content:
        report.dropped("/encrypted_content", "Gemini has no field for encrypted reasoning")
    if item.summary:
        report.dropped("/summary", "a summary is plain reasoning in Gemini")
    text = reasoning_text(item)
    if not text and not item.signature:
        return []
    part = part_object("text", text, item.native, item.signature)
    return [{"text": part.pop("text"), "thought": True, **part}]


def _call_parts(item: FunctionCall | CustomToolCall, report: Report) -> list[JsonObject]:
    if item.status == "incomplete":
        report.dropped("/incomplete", "an incomplete call is left out: it would look callable")
        return []
    own = isinstance(item, FunctionCall) and is_own(item, "gemini")
    data: JsonObject = {}
    if not own:
        # The id of another wire's call, so that its result can refer to it.
        data["id"] = item.call_id
    elif item.id:
        # Gemini's own calls have an id only if it sent one.
        data["id"] = item.id
    data["name"] = flat_call_name(item)
    data.update(_arguments(item, report, own=own))
    return [part_object("functionCall", data, item.native, item.signature)]


def _arguments(item: FunctionCall | CustomToolCall, report: Report, *, own: bool) -> JsonObject:
    """`args`: always an object, in the provider's own bytes where possible."""
    if isinstance(item, CustomToolCall):
        reason = "a free-form call is a functionCall with its text as `input`"
        report.dropped("/custom_tool_call", reason)
        return {"args": {"input": item.input}}
    if own and not item.arguments:
        return {}
    return {"args": encoded_object(item.arguments, report)}


# --- arguments while they are buffered ---


class ArgumentBuffer:
    """The arguments of a call so far.

    The test for completeness reads all of them. It is repeated only when they have doubled since
    the last test, so that all tests together cost no more than twice the arguments.
    """

    __slots__ = ("fragments", "next_test", "size")

    def __init__(self) -> None:
        self.fragments: list[str] = []
        # Characters of all fragments.
        self.size = 0
        # The size, in characters, from which the next test is worth its cost.
        self.next_test = 1

    def add(self, fragment: str) -> None:
        """Appends a fragment."""
        self.fragments.append(fragment)
        self.size += len(fragment)

    def is_complete(self, *, settled: bool) -> bool:
        """Whether the arguments are one JSON value.

        Args:
            settled: also test arguments that came in several fragments.
        """
        if self.size < self.next_test:
            return False
        if len(self.fragments) > 1 and not settled:
            return False
        self.next_test = 2 * self.size
        return is_json("".join(self.fragments))


# --- candidates ---

CANDIDATE_KEYS: Final = frozenset(
    {
        "safetyRatings",
        "citationMetadata",
        "groundingMetadata",
        "groundingAttributions",
        "urlContextMetadata",
        "logprobsResult",
        "avgLogprobs",
        "finishMessage",
        "tokenCount",
        "continuationToken",
    }
)
"""Metadata of a candidate. Other keys are read from both levels, and written to the response."""
_PATH: Final = re.compile(r"candidates\[(\d{1,4})\]\.(.+)", re.DOTALL)
"""Under such keys the parser reports metadata of another level or choice."""
_AFTER_CANDIDATES: Final = 1 << 20
"""Position of the response's own fields: a parser reads them after all candidates."""


FEEDBACK: Final = "promptFeedback"
"""Field of a response with the reason for which its prompt was blocked."""
RESERVED_KEYS: Final = frozenset(
    {"candidates", "content.parts", "usageMetadata", "modelVersion", "responseId", "error"}
)
"""Keys of a response that metadata must not replace."""
CANDIDATE_RESERVED: Final = frozenset({"content", "content.parts", "finishReason", "index"})
"""Keys of a candidate that metadata must not replace: they stay under the key that they had."""


class MetadataField(NamedTuple):
    """A metadata field and where it belongs.

    choice: index of its candidate; None for the response itself.
    in_content: whether it belongs in the candidate's `content`.
    """

    choice: int | None
    key: str
    value: Any
    in_content: bool = False

    @property
    def position(self) -> int:
        """When a parser reads the field, in comparison with others of the same chunk."""
        if self.choice is None:
            return _AFTER_CANDIDATES
        return self.choice


def locate(key: str, value: Any) -> MetadataField:
    """The field of a metadata key, such as `candidates[1].content.role`."""
    path = _PATH.fullmatch(key)
    choice = 0
    if path and path[2] not in CANDIDATE_RESERVED:
        choice = int(path[1])
        key = path[2]
    if key.startswith("content."):
        return MetadataField(choice, key.removeprefix("content."), value, in_content=True)
    if key in CANDIDATE_KEYS or (path and path[2] == key):
        return MetadataField(choice, key, value)
    return MetadataField(None, key, value)


def fields_of_candidate(fields: Iterable[MetadataField], choice: int) -> list[MetadataField]:
    """The fields that belong to a candidate."""
    return [field for field in fields if field.choice == choice]


def fields_of_response(fields: Iterable[MetadataField]) -> JsonObject:
    """The fields that belong to the response itself."""
    return {field.key: field.value for field in fields if field.choice is None}


def block_reason(metadata: JsonObject) -> str | None:
    """Why the prompt was blocked, if it was, under the name that the parser uses."""
    feedback = metadata.get(FEEDBACK)
    if not isinstance(feedback, dict):
        return None
    reason: int | str | None = feedback.get("blockReason")
    if isinstance(reason, int):
        return BLOCK_NUMBERS.get(reason, str(reason))
    return reason


def candidate(
    parts: Iterable[JsonObject],
    choice: int,
    fields: Iterable[MetadataField] = (),
    finish: str | None = None,
) -> JsonObject:
    """One candidate.

    Args:
        parts: its content.
        choice: its index.
        fields: its metadata.
        finish: its `finishReason`, if it ended.
    """
    content: JsonObject = {"parts": list(parts), "role": "model"}
    metadata: JsonObject = {}
    for field in fields:
        if field.in_content:
            content[field.key] = field.value
        else:
            metadata[field.key] = field.value
    body: JsonObject = {"content": content}
    if finish:
        body["finishReason"] = finish
    body["index"] = choice
    return {**body, **metadata}


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
_ENUM_NAME: Final = re.compile("[A-Z0-9_]+")
"""The form of this wire's reasons, including future ones."""


def finish_reason(end: FinishedChoice, report: Report) -> str:
    """The native `finishReason` if it is one of this wire, else the nearest one."""
    native = end.native_stop_reason or ""
    meaning = STOP_REASONS.get(native)
    if meaning == end.stop_reason:
        return native
    # The wire has no reason for calls: its own is STOP.
    if meaning == "stop" and end.stop_reason == "tool_calls":
        return native
    if meaning is None and end.stop_reason == "other" and _ENUM_NAME.fullmatch(native):
        return native
    nearest = NATIVE_STOP[end.stop_reason]
    if STOP_REASONS.get(nearest, "other") not in (end.stop_reason, "stop"):
        report.dropped("/stop_reason", f"Gemini has no value for {end.stop_reason}: {nearest}")
    return nearest


# --- usage ---


def gemini_usage(usage: Usage | None, report: Report) -> JsonObject | None:
    """`usageMetadata`.

    The provider's own object is returned if this wire reads the same numbers from it.
    """
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage.cache_write_input_tokens:
        reason = "Gemini does not count what is written to a cache"
        report.dropped("/usage/cache_write_input_tokens", reason)
    body = {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cache_read_input_tokens,
        "candidatesTokenCount": output_tokens_without_reasoning(usage, report),
        "thoughtsTokenCount": usage.reasoning_output_tokens,
        "totalTokenCount": (usage.input_tokens or 0) + (usage.output_tokens or 0),
        "promptTokensDetails": _details(usage.input_modalities),
        "candidatesTokensDetails": _details(usage.output_modalities),
        "cacheTokensDetails": _details(usage.cache_modalities),
    }
    return without_none(body)


def _details(modalities: dict[str, int]) -> list[JsonObject] | None:
    if not modalities:
        return None
    details: list[JsonObject] = []
    for modality, tokens in modalities.items():
        details.append({"modality": modality.upper(), "tokenCount": tokens})
    return details


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
"""`code` and `status` by kind. Any other kind is 500 INTERNAL."""
REASONS: Final[dict[ErrorKind, str]] = {
    "quota_exhausted": "QUOTA_EXCEEDED",
    "context_window_exceeded": "CONTEXT_WINDOW_EXCEEDED",
    "content_filter": "CONTENT_FILTER",
}
"""`reason` in `details`, for kinds that share their status with others."""


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    code, status = STATUSES.get(error.kind, (500, "INTERNAL"))
    body: JsonObject = {"code": code, "message": error.message, "status": status}
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
                "retryDelay": _duration(error.retry_after),
            }
        )
    if details:
        body["details"] = details
    return {"error": body}


def _duration(seconds: float) -> str:
    """A duration as protobuf's JSON has it: `1.5s`."""
    digits = f"{seconds:.3f}".rstrip("0").rstrip(".")
    return f"{digits}s"
