"""Events as the Vercel AI SDK's UI message stream: what `useChat` and `readUIMessageStream` read.

    data: {"type":"start","messageId":"resp_1"}
    data: {"type":"start-step"}
    data: {"type":"text-start","id":"0"} … text-delta … text-end
    data: {"type":"tool-input-start","toolCallId":"c","toolName":"f","dynamic":true} … tool-input-available
    data: {"type":"finish-step"}   data: {"type":"finish","finishReason":"tool-calls"}   data: [DONE]

`version=6` (default) is the subset that 6 and 7 both read: an unknown part is a hard error in that client. Send `HEADERS` with it.
Usage stands in the message's metadata, rate limits in a transient `data-rate-limits` part. Tools are dynamic parts, since their
types are the page's own business. Each item is one part; items of other choices are left out and reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from streamlib.encoders import Losses, sse
from streamlib.report import Change
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    StopReason,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    parse_arguments,
)

HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
FINISH: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
    "pause": "other",
    "other": "other",
}
CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)


class Encoder:
    """Writes one assistant message of one step."""

    media_type = "text/event-stream"

    def __init__(self, *, model: str | None = None, response_id: str | None = None, version: Literal[6, 7] = 6) -> None:
        self._losses = Losses()
        self._response_id = response_id
        self._version = version
        self._started = False
        self._calls: dict[int, str] = {}
        self._parts: dict[int, str] = {}
        self._paragraphs: set[tuple[int, int]] = set()

    @property
    def report(self) -> list[Change]:
        """What the protocol could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The parts that one event becomes."""
        handler = _HANDLERS.get(type(event))
        return handler(self, event) if handler else b""

    def close(self) -> bytes:
        """The mark that the client waits for."""
        return b"data: [DONE]\n\n"

    def _start(self, response_id: str | None = None) -> bytes:
        if self._started:
            return b""
        self._started = True
        named = response_id or self._response_id
        return sse({"type": "start", **({"messageId": named} if named else {})}) + sse({"type": "start-step"})

    def _on_limits(self, event: RateLimits) -> bytes:
        values = msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        return sse({"type": "data-rate-limits", "data": values, "transient": True})

    def _on_created(self, event: Created) -> bytes:
        return self._start(event.response_id)

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item, out = event.item, self._start()
        if item.choice:
            self._losses.note("/choices", "one message has one choice")
            return out
        if isinstance(item, CALLS):
            self._calls[event.index] = item.call_id
            start = {"type": "tool-input-start", "toolCallId": item.call_id, "toolName": item.name, "dynamic": True}
            return out + sse({**start, **_by_provider(item)})
        kind = {Message: "text", Reasoning: "reasoning"}.get(type(item))
        if kind is None:
            return out
        self._parts[event.index] = kind
        return out + sse({"type": f"{kind}-start", "id": str(event.index)})

    def _on_delta(self, event: Any) -> bytes:
        kind = self._parts.get(event.index)
        return sse({"type": f"{kind}-delta", "id": str(event.index), "delta": event.delta}) if kind else b""

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._on_delta(msgspec.structs.replace(event, delta=gap + event.delta))

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        call_id = self._calls.get(event.index)
        return sse({"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": event.delta}) if call_id is not None else b""

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        note = event.annotation.get("url_citation") or event.annotation
        url = note.get("url")
        if not isinstance(url, str):
            self._losses.note("/annotations", "a source without an address")
            return b""
        title = {"title": note["title"]} if isinstance(note.get("title"), str) else {}
        return sse({"type": "source-url", "sourceId": f"{event.index}-{event.seq}", "url": url, **title})

    def _on_done(self, event: OutputItemDone) -> bytes:
        item = event.item
        if item.choice:
            return b""
        if isinstance(item, CALLS):
            return self._call_done(item)
        if isinstance(item, ServerToolResult):
            result = {"type": "tool-output-available", "toolCallId": item.call_id, "output": item.output, "providerExecuted": True}
            return sse(result) if item.call_id in self._calls.values() else b""
        files = _files(item) if isinstance(item, Message) else b""
        kind = self._parts.pop(event.index, None)
        return files + (sse({"type": f"{kind}-end", "id": str(event.index)}) if kind else b"")

    def _call_done(self, item: Any) -> bytes:
        part = {"toolCallId": item.call_id, "toolName": item.name, "dynamic": True, **_by_provider(item)}
        if isinstance(item, CustomToolCall):
            return sse({"type": "tool-input-available", **part, "input": item.input})
        try:
            arguments = parse_arguments(item.arguments, item.name)
        except ValueError as error:
            return sse({"type": "tool-input-error", **part, "input": item.arguments, "errorText": str(error)})
        if item.status == "incomplete":
            return sse({"type": "tool-input-error", **part, "input": arguments, "errorText": "the call was cut"})
        return sse({"type": "tool-input-available", **part, "input": arguments})

    def _on_completed(self, event: Completed) -> bytes:
        usage = {"usage": msgspec.to_builtins(msgspec.structs.replace(event.usage, raw={}))} if event.usage else {}
        metadata = {"messageMetadata": {**usage, **({"model": event.model} if event.model else {})}}
        return self._start() + sse({"type": "finish-step"}) + sse({"type": "finish", "finishReason": FINISH[event.stop_reason], **metadata})

    def _on_failed(self, event: Failed) -> bytes:
        if event.error.kind == "cancelled":
            return self._start() + sse({"type": "abort", **({"reason": event.error.message} if self._version == 7 else {})})
        return self._start() + sse(error_body(event.error))


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_delta,
    ReasoningContentDelta: Encoder._on_delta,
    RefusalDelta: Encoder._on_delta,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    ReasoningSummaryDelta: Encoder._on_summary,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    AnnotationAdded: Encoder._on_annotation,
    RateLimits: Encoder._on_limits,
    Created: Encoder._on_created,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
}


def _by_provider(item: Any) -> JsonObject:
    return {"providerExecuted": True} if isinstance(item, ServerToolCall) else {}


def _files(item: Message) -> bytes:
    images = [part for part in item.content if isinstance(part, Image)]
    urls = [(part.url or f"data:{part.media_type or 'image/png'};base64,{part.data}", part.media_type or "image/png") for part in images]
    return b"".join(sse({"type": "file", "url": url, "mediaType": kind}) for url, kind in urls)


def error_body(error: ErrorInfo) -> JsonObject:
    """The protocol's error part."""
    return {"type": "error", "errorText": f"{error.kind}: {error.message}"}


def encode_body(response: Response, model: str | None = None) -> bytes:
    """A whole response as a UI message: `{id, role, parts}`."""
    parts: list[JsonObject] = []
    for item in response.items:
        if isinstance(item, Message):
            parts.append({"type": "text", "text": item.text, "state": "done"})
        elif isinstance(item, Reasoning):
            parts.append(
                {"type": "reasoning", "text": "\n\n".join([*item.summary, *([item.content] if item.content else [])]), "state": "done"}
            )
        elif isinstance(item, FunctionCall) and item.status == "completed":
            part = {"type": "dynamic-tool", "toolName": item.name, "toolCallId": item.call_id, "state": "input-available"}
            parts.append({**part, "input": msgspec.Raw(item.arguments.encode() or b"{}")})
    return msgspec.json.encode({"id": response.response_id or "", "role": "assistant", "parts": parts})
