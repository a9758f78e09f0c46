"""Events as an Anthropic Messages stream or body.

Each item of choice 0 is one content block under its own index; overlapping items stay overlapping. Held back: `Created`, until
the next event (so that its usage stands in `message_start`), usage or metadata, until it is known whether they belong to the
final `message_delta`, and the input of a free-form call, until it is whole, for it becomes JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.report import Change, Report
from streamlib.wires.encoders import is_foreign_event, sse
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    StopReason,
    TokenCount,
)
from streamlib_parsers.items import (
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
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.messages import STOP_REASONS
from streamlib_parsers.wires.messages import usage as read_usage

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
"""Kinds that are not here are `api_error`."""


class Encoder:
    """Writes one stream."""

    media_type = "text/event-stream"

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        self._model = model
        self._response_id = response_id
        self._losses = Report()
        self._start: JsonObject | None = None
        self._started = False
        self._indexes: dict[int, int] = {}
        self._begun: set[int] = set()
        self._paragraphs: set[tuple[int, int]] = set()
        self._inputs: dict[int, list[str]] = {}
        self._envelope: JsonObject = {}
        self._usage: Usage | None = None
        self._unsaid = False

    @property
    def report(self) -> list[Change]:
        """What Messages could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            self._losses.dropped(f"/{type(event).__name__}", "Messages has no such event")
            return b""
        return handler(self, event)

    def close(self) -> bytes:
        """Messages has no end mark of its own."""
        return b""

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._start = {
            "id": event.response_id or self._response_id or "msg_0",
            "type": "message",
            "role": "assistant",
            "model": event.model or self._model or "",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        return b""

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        if self._start is not None and not self._started:
            self._start.update(event.values)
            return b""
        out = self._flush() if self._unsaid else b""
        self._envelope.update(event.values)
        return out

    def _on_usage(self, event: TokenCount) -> bytes:
        self._usage = event.usage
        if self._start is not None and not self._started:
            return self._begin()
        out = self._flush() if self._unsaid else b""
        self._unsaid = True
        return out

    def _begin(self) -> bytes:
        if self._started:
            return b""
        if self._start is None:
            self._on_created(Created())
        if self._usage is None:
            self._losses.dropped("/usage", "message_start has no word for unknown usage: zeros")
        self._started = True
        start = {
            **(self._start or {}),
            "usage": usage_object(self._usage) or {"input_tokens": 0, "output_tokens": 0},
        }
        return sse({"type": "message_start", "message": start}, "message_start")

    def _flush(self, stop: JsonObject | None = None) -> bytes:
        """A `message_delta` with what was held: metadata, then usage."""
        if not (stop or self._unsaid or self._envelope):
            return b""
        delta = {**self._envelope, **(stop or {"stop_reason": None, "stop_sequence": None})}
        body = {
            "type": "message_delta",
            "delta": delta,
            "usage": usage_object(self._usage) or {"output_tokens": 0},
        }
        self._envelope, self._unsaid = {}, False
        return sse(body, "message_delta")

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._begin() + self._flush()
        if event.item.choice:
            self._losses.dropped("/choices", "Messages has one choice")
            return out
        self._indexes[event.index] = len(self._indexes)
        if isinstance(event.item, CustomToolCall):
            self._inputs[event.index] = []
        if isinstance(event.item, WHOLE) and not _is_whole(event.item):
            return out
        return out + self._start_block(event.index, event.item)

    def _start_block(self, index: int, item: ResponseItem) -> bytes:
        self._begun.add(index)
        block = block_of(emptied(item), self._losses)
        return self._frame("content_block_start", index, content_block=block)

    def _frame(self, kind: str, index: int, **values: Any) -> bytes:
        return sse({"type": kind, "index": self._indexes[index], **values}, kind)

    def _delta(self, index: int, kind: str, **values: Any) -> bytes:
        if index not in self._begun:
            return b""
        return self._flush() + self._frame(
            "content_block_delta", index, delta={"type": kind, **values}
        )

    def _on_text(self, event: OutputTextDelta) -> bytes:
        if event.logprobs:
            self._losses.dropped("/logprobs", "Messages has no logprobs")
        return self._delta(event.index, "text_delta", text=event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._losses.dropped("/refusal", "a refusal is plain text in Messages")
        return self._delta(event.index, "text_delta", text=event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._delta(event.index, "thinking_delta", thinking=event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._losses.dropped("/summary", "a summary is plain thinking in Messages")
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._delta(event.index, "thinking_delta", thinking=gap + event.delta)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        if event.index in self._inputs:
            self._inputs[event.index].append(event.delta)
            return b""
        return self._delta(event.index, "input_json_delta", partial_json=event.delta)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        return self._delta(event.index, "citations_delta", citation=event.annotation)

    def _on_done(self, event: OutputItemDone) -> bytes:
        if event.index not in self._indexes:
            return b""
        out = self._flush()
        if event.index not in self._begun:
            out += self._start_block(event.index, event.item)
        elif isinstance(event.item, Compaction):
            out += self._delta(event.index, "compaction_delta", **_compaction_values(event.item))
        elif event.index in self._inputs and event.item.status == "completed":
            text = msgspec.json.encode({"input": "".join(self._inputs.pop(event.index))}).decode(
                "utf-8"
            )
            out += self._delta(event.index, "input_json_delta", partial_json=text)
        if event.item.signature and not isinstance(event.item, (Compaction, Opaque)):
            out += self._delta(event.index, "signature_delta", signature=event.item.signature)
        if isinstance(event.item, (FunctionCall, ServerToolCall)) and not event.item.arguments:
            self._losses.dropped("/arguments", "arguments without text are written {}")
        if event.item.status == "completed" or _is_broken(event.item):
            out += self._frame("content_block_stop", event.index)
        return out

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if is_foreign_event("messages", event.event):
            self._losses.dropped("/passthrough", "events that only another wire knows")
            return b""
        return self._flush() + sse(event.data, event.event)

    def _on_completed(self, event: Completed) -> bytes:
        out = self._begin()
        self._usage = event.usage or self._usage
        stop = {
            "stop_reason": native_stop(event.stop_reason, event.native_stop_reason, self._losses),
            "stop_sequence": event.stop_sequence,
        }
        return out + self._flush(stop) + sse({"type": "message_stop"}, "message_stop")

    def _on_failed(self, event: Failed) -> bytes:
        return self._flush() + sse(error_body(event.error), "error")

    def _nothing(self, event: Any) -> bytes:
        """Known, and rightly without bytes: headers carry rate limits, notices are made again by whoever parses."""
        return b""


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_reasoning,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    ReasoningSummaryDelta: Encoder._on_summary,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    TokenCount: Encoder._on_usage,
    RefusalDelta: Encoder._on_refusal,
    AnnotationAdded: Encoder._on_annotation,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_metadata,
    Passthrough: Encoder._on_passthrough,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    RateLimits: Encoder._nothing,
    Notice: Encoder._nothing,
    ItemProgress: Encoder._nothing,
}
"""`MediaDelta` is missing: Messages has no words for an image or audio in an answer."""

WHOLE: Final = (ServerToolResult, Opaque)
"""Kinds that Messages gives whole in the start of their block."""


def _is_whole(item: ResponseItem) -> bool:
    return not isinstance(item, ServerToolResult) or item.output is not None


def _compaction_values(item: Compaction) -> JsonObject:
    values = {"content": item.content, "encrypted_content": item.encrypted_content}
    return {key: value for key, value in values.items() if value is not None}


def _is_broken(item: ResponseItem) -> bool:
    """A block that was closed, with arguments that are not JSON."""
    return isinstance(item, (FunctionCall, ServerToolCall)) and not is_json(item.arguments)


def native_stop(stop_reason: StopReason, native: str | None, losses: Report) -> str:
    """The wire's own word where it was one of its own, else the nearest."""
    if native and (STOP_REASONS.get(native) == stop_reason or stop_reason == "other"):
        return native
    word = NATIVE_STOP[stop_reason]
    if STOP_REASONS[word] != stop_reason:
        losses.dropped("/stop_reason", f"Messages has no word for {stop_reason}: {word}")
    return word


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    return {
        "type": "error",
        "error": {"type": ERROR_TYPES.get(error.kind, "api_error"), "message": error.message},
    }


def usage_object(usage: Usage | None) -> JsonObject | None:
    """The provider's own object where it says the same in this wire's words, else one made of the numbers."""
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    written, read = usage.cache_write_input_tokens, usage.cache_read_input_tokens
    fresh = (
        None
        if usage.input_tokens is None
        else max(0, usage.input_tokens - (written or 0) - (read or 0))
    )
    body: JsonObject = {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }
    if usage.cache_write_1h_input_tokens is not None:
        body["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_input_tokens or 0,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens,
        }
    if usage.reasoning_output_tokens is not None:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_output_tokens}
    return {
        **{key: value for key, value in body.items() if value is not None},
        "output_tokens": usage.output_tokens or 0,
    }


# --- blocks: an item as a content block ---

EMPTY: Final[dict[type, JsonObject]] = {
    Message: {"content": ()},
    Reasoning: {"content": "", "summary": (), "signature": None},
    FunctionCall: {"arguments": "", "signature": None},
    CustomToolCall: {"input": ""},
    ServerToolCall: {"arguments": ""},
    Compaction: {"content": None, "encrypted_content": None, "signature": None},
}


def emptied(item: ResponseItem) -> ResponseItem:
    """The item without what its deltas bring: what stands in `content_block_start`. A sealed thought has no deltas."""
    if isinstance(item, Reasoning) and item.redacted:
        return item
    return msgspec.structs.replace(item, **EMPTY.get(type(item), {}))


def block_of(item: ResponseItem, losses: Report) -> JsonObject:
    """The block of an item, whole."""
    return {**BLOCKS[type(item)](item, losses), **_native(item)}


def _native(item: ResponseItem) -> JsonObject:
    made_here = item.origin is None or item.origin.wire_api in ("messages", None)
    return (item.native or {}) if made_here else {}


def _message(item: Any, losses: Report) -> JsonObject:
    texts = [
        part.text if isinstance(part, Text) else part.refusal
        for part in item.content
        if isinstance(part, (Text, Refusal))
    ]
    if len(texts) < len(item.content):
        losses.dropped("/media", "Messages has no images or audio in an answer")
    notes = [note for part in item.content if isinstance(part, Text) for note in part.annotations]
    return {"type": "text", "text": "".join(texts), **({"citations": notes} if notes else {})}


def _reasoning(item: Any, losses: Report) -> JsonObject:
    if item.redacted:
        return {"type": "redacted_thinking", "data": item.encrypted_content or ""}
    if item.encrypted_content:
        losses.dropped(
            "/encrypted_content", "Messages carries encrypted reasoning only as redacted thinking"
        )
    said = "\n\n".join([*item.summary, *([item.content] if item.content else [])])
    return {"type": "thinking", "thinking": said, "signature": item.signature or ""}


def _call(item: Any, losses: Report) -> JsonObject:
    return {
        "type": "tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": _input(item, losses),
    }


def _custom(item: Any, losses: Report) -> JsonObject:
    losses.dropped("/custom_tool_call", "a free-form call is a tool_use with its text as `input`")
    return {
        "type": "tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": {"input": item.input} if item.input else {},
    }


def _server_call(item: Any, losses: Report) -> JsonObject:
    return {
        "type": "server_tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": _input(item, losses),
    }


def _input(item: Any, losses: Report) -> Any:
    """In the call's own bytes; text that is no JSON is left out, and the call with it (see `_can_stand`)."""
    return Raw(item.arguments.encode("utf-8")) if item.arguments and is_json(item.arguments) else {}


def _server_result(item: Any, losses: Report) -> JsonObject:
    return {
        "type": f"{item.name or 'server'}_tool_result",
        "tool_use_id": item.call_id,
        "content": item.output,
    }


def _compaction(item: Any, losses: Report) -> JsonObject:
    return {
        "type": "compaction",
        "content": None,
        **_compaction_values(item),
        **({"signature": item.signature} if item.signature else {}),
    }


def _opaque(item: Any, losses: Report) -> JsonObject:
    return item.payload if "type" in item.payload else {"type": item.kind, **item.payload}


BLOCKS: Final[dict[type, Callable[[Any, Report], JsonObject]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    CustomToolCall: _custom,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    Compaction: _compaction,
    Opaque: _opaque,
}


def _can_stand(item: ResponseItem) -> bool:
    """A call that was cut has no place in a whole body: there it would look callable."""
    cut = isinstance(item, (FunctionCall, CustomToolCall)) and item.status == "incomplete"
    return type(item) in BLOCKS and not cut


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """A whole Message, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    stop = native_stop(response.stop_reason or "other", response.native_stop_reason, losses)
    body = {
        **response.metadata,  # first: a key of another wire must not take the place of one of ours
        "id": response.response_id or "msg_0",
        "type": "message",
        "role": "assistant",
        "model": response.model or model or "",
        "content": [block_of(item, losses) for item in response.items if _can_stand(item)],
        "stop_reason": stop,
        "stop_sequence": response.stop_sequence,
        "usage": usage_object(response.usage) or {"input_tokens": 0, "output_tokens": 0},
    }
    return msgspec.json.encode(body)
