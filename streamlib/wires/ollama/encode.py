"""Events as Ollama's /api/chat: one JSON object a line.

    {"model":"m","created_at":"…","message":{"role":"assistant","content":"Hi"},"done":false}
    {"model":"m","created_at":"…","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":5}

Held back: a call, until its arguments are whole, since the wire has calls whole or not at all; usage and metadata, which stand in
the last line. A stream that failed ends with `{"error": …}` and is never done.

`created_at` is the caller's (a text, RFC 3339): an encoder has no clock. Without it the start of 1970 is written, which clients can read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.report import Change, Report
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
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
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.ollama import TYPED_KEYS, USAGE_KEYS
from streamlib_parsers.wires.ollama import usage as read_usage

__all__ = ["Encoder", "encode_body", "error_body"]

EPOCH: Final = "1970-01-01T00:00:00Z"
WORDS: Final[dict[StopReason, str]] = {"length": "length"}
"""Reasons that are not here are `stop`."""
OWN_WORDS: Final = frozenset({"stop", "length", "load", "unload"})
RESERVED: Final = TYPED_KEYS | {"error"}
NO_PLACE: Final = "Ollama has no place for it"


class Encoder:
    """Writes one stream."""

    media_type = "application/x-ndjson"

    def __init__(
        self, *, model: str | None = None, response_id: str | None = None, created_at: str = EPOCH
    ) -> None:
        self._losses = Report()
        self._head: JsonObject = {"model": model or "", "created_at": created_at}
        self._envelope: JsonObject = {}
        self._usage: Usage | None = None
        self._items: dict[int, ResponseItem] = {}
        self._told: set[int] = set()
        self._pieces: set[int] = set()
        self._paragraphs: set[tuple[int, int]] = set()

    @property
    def report(self) -> list[Change]:
        """What Ollama could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        return _HANDLERS[type(event)](self, event)

    def close(self) -> bytes:
        """Ollama has no end mark but its last line."""
        return b""

    def _line(self, index: int, logprobs: Any = None, **said: Any) -> bytes:
        """A line of one item; only choice 0 is told."""
        if self._items[index].choice:
            self._losses.dropped("/choices", "Ollama has one choice")
            return b""
        message = {"role": "assistant", "content": "", **said}
        return _line(
            {
                **self._head,
                "message": message,
                **({"logprobs": list(logprobs)} if logprobs else {}),
                "done": False,
            }
        )

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        if event.response_id is not None:
            self._losses.dropped("/response_id", NO_PLACE)
        self._head["model"] = event.model or self._head["model"]
        return b""

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._envelope.update(event.values)
        return b""

    def _on_usage(self, event: TokenCount) -> bytes:
        self._usage = event.usage
        return b""

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        self._items[event.index] = event.item
        return b""

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return self._line(event.index, event.logprobs, content=event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._losses.dropped("/refusal", "a refusal is plain text in Ollama")
        return self._line(event.index, content=event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._line(event.index, event.logprobs, thinking=event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._losses.dropped("/summary", "a summary is plain thinking in Ollama")
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._line(event.index, thinking=gap + event.delta)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        """A call of this wire came whole, and stays in its place; one of another wire, or in pieces (a dialect's), waits for its end."""
        item = self._items[event.index]
        first = event.index not in self._pieces
        self._pieces.add(event.index)
        whole = first and event.delta.startswith("{") and is_json(event.delta)
        if (
            not (whole and isinstance(item, FunctionCall) and _is_own(item) and item.name)
            or event.index in self._told
        ):
            return b""
        self._told.add(event.index)
        return self._line(
            event.index,
            tool_calls=[_call(msgspec.structs.replace(item, arguments=event.delta), self._losses)],
        )

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        self._losses.dropped("/annotations", NO_PLACE)
        return b""

    def _on_done(self, event: OutputItemDone) -> bytes:
        item = event.item
        if item.signature or getattr(item, "encrypted_content", None):
            self._losses.dropped("/signature", "signed and sealed state stays behind")
        if isinstance(item, (FunctionCall, CustomToolCall)):
            return self._end_call(event.index, item)
        if isinstance(item, Message):
            images = _images(item, self._losses)
            return self._line(event.index, images=images) if images else b""
        if not isinstance(item, Reasoning):
            self._losses.dropped(f"/{type(item).__name__}", NO_PLACE)
        return b""

    def _end_call(self, index: int, item: FunctionCall | CustomToolCall) -> bytes:
        if index in self._told:
            return b""
        if item.status == "incomplete":
            self._losses.dropped(
                "/incomplete", "a call that was cut is left out: it would look callable"
            )
            return b""
        return self._line(index, tool_calls=[_call(item, self._losses)])

    # --- the end ---

    def _on_completed(self, event: Completed) -> bytes:
        self._head["model"] = event.model or self._head["model"]
        word = _done_reason(event.stop_reason, event.native_stop_reason)
        message = {"role": "assistant", "content": ""}
        return _line(
            {
                **self._head,
                "message": message,
                **_last(word, self._envelope, event.usage or self._usage, self._losses),
            }
        )

    def _on_failed(self, event: Failed) -> bytes:
        return _line(error_body(event.error))

    def _left_out(self, event: Any) -> bytes:
        self._losses.dropped(f"/{type(event).__name__}", NO_PLACE)
        return b""

    def _nothing(self, event: Any) -> bytes:
        """Known, and rightly without bytes: images come whole, headers carry rate limits, notices are made again by whoever parses."""
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
    MediaDelta: Encoder._nothing,
    AnnotationAdded: Encoder._on_annotation,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_metadata,
    Passthrough: Encoder._left_out,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    RateLimits: Encoder._nothing,
    Notice: Encoder._nothing,
    ItemProgress: Encoder._nothing,
}


def _line(value: JsonObject) -> bytes:
    """One line: JSON kept in its own bytes may hold line breaks, which are blanks there."""
    return msgspec.json.encode(value).replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _is_own(item: ResponseItem) -> bool:
    return item.origin is not None and item.origin.wire_api == "ollama"


def _call(item: FunctionCall | CustomToolCall, losses: Report) -> JsonObject:
    """An entry of `tool_calls`: the arguments in their own bytes; free text and what is no object under a name of its own."""
    native = (item.native or {}) if _is_own(item) else {}
    if isinstance(item, CustomToolCall):
        losses.dropped("/custom_tool_call", "a free-form call has its text as `input`")
        arguments: Any = {"input": item.input}
    else:
        if not item.arguments:
            losses.dropped("/arguments", "arguments without text are written {}")
        arguments = Raw((item.arguments or "{}").encode("utf-8"))
    rest = {key: value for key, value in native.items() if key != "function"}
    return {
        "id": item.call_id,
        **rest,
        "function": {"name": item.name, "arguments": arguments, **native.get("function", {})},
    }


def _images(item: Message, losses: Report) -> list[str]:
    for part in item.content:
        if not isinstance(part, (Text, Refusal)) and not (isinstance(part, Image) and part.data):
            losses.dropped("/media", "Ollama has images as bytes only")
    return [part.data for part in item.content if isinstance(part, Image) and part.data]


def _done_reason(reason: StopReason, native: str | None) -> str:
    return (
        native
        if native in OWN_WORDS and (native == WORDS.get(reason, "stop") or reason == "other")
        else WORDS.get(reason, "stop")
    )


def _last(word: str, envelope: JsonObject, usage: Usage | None, losses: Report) -> JsonObject:
    """What stands in the last line beside its message."""
    for key in RESERVED.intersection(envelope):
        losses.dropped(f"/metadata/{key}", "Ollama has another meaning for the key")
    values = {key: value for key, value in envelope.items() if key not in RESERVED}
    return {"done": True, "done_reason": word, **values, **_counts(usage, losses)}


def _counts(usage: Usage | None, losses: Report) -> JsonObject:
    if usage is None:
        return {}
    counts = dict(zip(USAGE_KEYS, (usage.input_tokens, usage.output_tokens), strict=True))
    known = {key: value for key, value in counts.items() if value is not None}
    if not read_usage(known).same_numbers(usage):
        losses.dropped("/usage", "Ollama tells neither cached input nor thoughts apart")
    return known


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error: its words."""
    return {"error": error.message}


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """The one line of a whole answer, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    message: JsonObject = {"role": "assistant", "content": response.text + response.refusal}
    if response.reasoning:
        message["thinking"] = "\n\n".join(
            text
            for item in response.items
            if isinstance(item, Reasoning)
            for text in _thoughts(item)
        )
    images = [
        data
        for item in response.items
        if isinstance(item, Message)
        for data in _images(item, losses)
    ]
    if images:
        message["images"] = images
    if response.calls:
        message["tool_calls"] = [_call(call, losses) for call in response.calls]
    word = _done_reason(response.stop_reason or "other", response.native_stop_reason)
    head = {"model": response.model or model or "", "created_at": EPOCH, "message": message}
    return _line({**head, **_last(word, response.metadata, response.usage, losses)})


def _thoughts(item: Reasoning) -> list[str]:
    return [*item.summary, *([item.content] if item.content else [])]
