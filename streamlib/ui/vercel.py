"""Events as the Vercel AI SDK's UI message stream: what `useChat` and `readUIMessageStream` read.

    data: {"type":"start","messageId":"resp_1"}
    data: {"type":"start-step"}
    data: {"type":"text-start","id":"0"} … text-delta … text-end
    data: {"type":"tool-input-start","toolCallId":"c","toolName":"f","dynamic":true} … tool-input-delta … tool-input-available
    data: {"type":"finish-step"}   data: {"type":"finish","finishReason":"tool-calls"}   data: [DONE]

`version=6` (default) is the subset that 6 and 7 both read: an unknown part is a hard error in that client. 7 adds `custom` parts for
items of kinds that nobody here knows. Send `HEADERS` with it.

Usage stands in the message's metadata, in the SDK's own shape and as it grows; rate limits in a transient `data-rate-limits` part.
Tools are dynamic parts, since their types are the page's own business. Each item is one part; a text begins with its first word, so
that none is empty. What is signed or sealed stays on the server, where the history is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from streamlib.request.report import Change, Report
from streamlib.ui.ui_parts import (
    CALLS,
    Call,
    CallIds,
    Paragraphs,
    call_input,
    files,
    hidden,
    own_result,
    source,
    thought,
    total_tokens,
    words,
)
from streamlib.wires.encoders import sse
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    MediaDelta,
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
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.usage import Usage

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


class Encoder:
    """Writes one assistant message of one step.

    message_id: the id of the front end's message. Needed where this step goes on with a message of an earlier one; else the
    response's own id is given.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        message_id: str | None = None,
        version: Literal[6, 7] = 6,
    ) -> None:
        self._losses = Report()
        self._model = model
        self._message_id = message_id
        self._response_id = response_id
        self._version = version
        self._started = self._ended = False
        self._ids = CallIds()
        self._paragraphs = Paragraphs()
        self._kinds: dict[int, str] = {}
        self._begun: set[int] = set()
        self._running: list[str] = []

    @property
    def report(self) -> list[Change]:
        """What the protocol could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The parts that one event becomes."""
        handler = _HANDLERS.get(type(event))
        return handler(self, event) if handler else b""

    def close(self) -> bytes:
        """The mark that the client waits for; before it an error, where no terminal event came."""
        lost = (
            b""
            if self._ended
            else self._on_failed(
                Failed(ErrorInfo("truncated", "the stream was left before its end"))
            )
        )
        return lost + b"data: [DONE]\n\n"

    # --- the message ---

    def _start(self, response_id: str | None = None) -> bytes:
        if self._started:
            return b""
        self._started = True
        named = self._message_id or response_id or self._response_id
        return _part("start", **({"messageId": named} if named else {})) + _part("start-step")

    def _on_limits(self, event: RateLimits) -> bytes:
        values = msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        return _part("data-rate-limits", data=values, transient=True)

    def _on_created(self, event: Created) -> bytes:
        self._model = event.model or self._model
        return self._start(event.response_id)

    def _on_usage(self, event: TokenCount) -> bytes:
        return _part("message-metadata", messageMetadata={"usage": _usage(event.usage)})

    def _on_completed(self, event: Completed) -> bytes:
        self._ended = True
        answers = b"".join(
            _part("tool-output-available", toolCallId=name, output=None, providerExecuted=True)
            for name in self._running
        )
        metadata = _metadata(event.usage, event.model or self._model)
        finish = _part(
            "finish",
            finishReason=FINISH[event.stop_reason],
            **({"messageMetadata": metadata} if metadata else {}),
        )
        return (
            self._start()
            + (answers if event.stop_reason != "pause" else b"")
            + _part("finish-step")
            + finish
        )

    def _on_failed(self, event: Failed) -> bytes:
        self._ended = True
        if event.error.kind == "cancelled":
            return self._start() + _part("abort", reason=event.error.message)
        return self._start() + sse(error_body(event.error))

    # --- its parts ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item, out = event.item, self._start()
        reason = hidden(item)
        if reason is not None:
            if not (self._version == 7 and isinstance(item, Opaque) and not item.choice):
                self._losses.dropped(*reason)
            return out
        if isinstance(item, CALLS):
            return out + self._begin_call(event.index, item)
        self._kinds[event.index] = "reasoning" if isinstance(item, Reasoning) else "text"
        return out + (self._begin(event.index) if isinstance(item, Reasoning) else b"")

    def _begin(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        return _part(f"{self._kinds[index]}-start", id=str(index))

    def _begin_call(self, index: int, item: Call) -> bytes:
        name = self._ids.begin(index, item.call_id)
        encoding = {"inputEncoding": "text"} if isinstance(item, CustomToolCall) else {}
        return _part(
            "tool-input-start",
            toolCallId=name,
            toolName=item.name,
            dynamic=True,
            **encoding,
            **_by_provider(item),
        )

    def _on_delta(self, event: Any) -> bytes:
        return self._write(event.index, event.delta)

    def _on_thought(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> bytes:
        return self._write(event.index, self._paragraphs.gap(event) + event.delta)

    def _on_media(self, event: MediaDelta) -> bytes:
        return self._write(event.index, event.transcript or "")

    def _write(self, index: int, delta: str) -> bytes:
        if index not in self._kinds or not delta:
            return b""
        return self._begin(index) + _part(f"{self._kinds[index]}-delta", id=str(index), delta=delta)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        name = self._ids.at(event.index)
        return (
            _part("tool-input-delta", toolCallId=name, inputTextDelta=event.delta)
            if name is not None
            else b""
        )

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        if event.index not in self._kinds:
            return b""
        found = source(event.annotation)
        if found is None:
            self._losses.dropped(
                "/annotations", "a citation that names neither a page nor a document"
            )
            return b""
        name = f"{event.index}-{event.seq}"
        if found.url is not None:
            return _part(
                "source-url",
                sourceId=name,
                url=found.url,
                **({"title": found.title} if found.title else {}),
            )
        file = {"filename": found.filename} if found.filename else {}
        return _part(
            "source-document", sourceId=name, mediaType="text/plain", title=found.title, **file
        )

    # --- their ends ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        item = event.item
        if isinstance(item, CALLS):
            name = self._ids.at(event.index)
            return self._call_done(name, item) if name is not None else b""
        if isinstance(item, Opaque) and self._version == 7 and not item.choice:
            return _custom(item)
        if isinstance(item, ServerToolResult) and not item.choice:
            return self._result(item)
        end = (
            _part(f"{self._kinds[event.index]}-end", id=str(event.index))
            if event.index in self._begun
            else b""
        )
        if item.signature or getattr(item, "encrypted_content", None):
            self._losses.dropped("/signatures", "what is signed or sealed stays in the history")
        return end + (
            self._files(item) if isinstance(item, Message) and event.index in self._kinds else b""
        )

    def _call_done(self, name: str, item: Call) -> bytes:
        part = {"toolCallId": name, "toolName": item.name, "dynamic": True, **_by_provider(item)}
        value, fault = call_input(item)
        if fault is not None:
            return _part("tool-input-error", **part, input=value, errorText=fault)
        out = _part("tool-input-available", **part, input=value)
        result = own_result(item)
        if result is not None:
            return out + _part(
                "tool-output-available", toolCallId=name, output=result, providerExecuted=True
            )
        if isinstance(item, ServerToolCall):
            self._running.append(name)
        return out

    def _result(self, item: ServerToolResult) -> bytes:
        name = self._ids.answered(item.call_id)
        if name is None:
            self._losses.dropped("/items/server_tool_result", "a result without its call")
            return b""
        self._running = [running for running in self._running if running != name]
        return _part(
            "tool-output-available", toolCallId=name, output=item.output, providerExecuted=True
        )

    def _files(self, item: Message) -> bytes:
        found = list(files(item))
        if None in found:
            self._losses.dropped("/files", "a file that only its provider can fetch")
        return b"".join(
            _part("file", url=file.url, mediaType=file.media_type)
            for file in found
            if file is not None
        )

    def _on_unsaid(self, event: ResponseMetadata | Passthrough) -> bytes:
        self._losses.dropped(*UNSAID[type(event)])
        return b""


UNSAID: Final[dict[type, tuple[str, str]]] = {
    ResponseMetadata: ("/metadata", "what a provider says beside the answer"),
    Passthrough: ("/passthrough", "an event of a kind that is not known"),
}

_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_delta,
    ReasoningContentDelta: Encoder._on_thought,
    ReasoningSummaryDelta: Encoder._on_thought,
    RefusalDelta: Encoder._on_delta,
    MediaDelta: Encoder._on_media,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    AnnotationAdded: Encoder._on_annotation,
    TokenCount: Encoder._on_usage,
    RateLimits: Encoder._on_limits,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_unsaid,
    Passthrough: Encoder._on_unsaid,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
}


def _part(kind: str, /, **fields: Any) -> bytes:
    return sse({"type": kind, **fields})


def _by_provider(item: ResponseItem) -> JsonObject:
    return {"providerExecuted": True} if isinstance(item, ServerToolCall) else {}


def _custom(item: Opaque) -> bytes:
    provider = (item.origin.provider or item.origin.wire_api if item.origin else None) or "unknown"
    return _part(
        "custom", kind=f"{provider}.{item.kind}", providerMetadata={provider: item.payload}
    )


def _metadata(usage: Usage | None, model: str | None) -> JsonObject:
    return {**({"usage": _usage(usage)} if usage else {}), **({"model": model} if model else {})}


def _usage(usage: Usage) -> JsonObject:
    """The SDK's `LanguageModelUsage`: totals, and what they are made of."""
    read, written, reasoning = (
        usage.cache_read_input_tokens,
        usage.cache_write_input_tokens,
        usage.reasoning_output_tokens,
    )
    known = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total_tokens(usage),
    }
    cached = {
        "noCacheTokens": _less(usage.input_tokens, read, written or 0),
        "cacheReadTokens": read,
        "cacheWriteTokens": written,
    }
    thoughts = {"textTokens": _less(usage.output_tokens, reasoning), "reasoningTokens": reasoning}
    return {
        **_said(known),
        "inputTokenDetails": _said(cached),
        "outputTokenDetails": _said(thoughts),
    }


def _less(whole: int | None, *parts: int | None) -> int | None:
    """What is left of a total; unknown where one of the parts is."""
    known = [part for part in parts if part is not None]
    return whole - sum(known) if whole is not None and len(known) == len(parts) else None


def _said(counts: dict[str, int | None]) -> JsonObject:
    return {name: count for name, count in counts.items() if count is not None}


def error_body(error: ErrorInfo) -> JsonObject:
    """The protocol's error part."""
    return {"type": "error", "errorText": f"{error.kind}: {error.message}"}


# --- whole ---


def encode_body(response: Response, model: str | None = None) -> bytes:
    """A whole response as a UI message, `{id, role, metadata, parts}`: what a reader of the stream ends with."""
    ids = CallIds()
    parts: list[JsonObject] = [{"type": "step-start"}]
    for index, item in enumerate(response.items):
        if hidden(item) is None:
            parts += _parts_of(index, item, ids, parts)
    for part in parts:
        if (
            part.get("providerExecuted")
            and part["state"] == "input-available"
            and response.stop_reason != "pause"
        ):
            part.update(state="output-available", output=None)
    metadata = _metadata(response.usage, response.model or model)
    return msgspec.json.encode(
        {
            "id": response.response_id or "",
            "role": "assistant",
            **({"metadata": metadata} if metadata else {}),
            "parts": parts,
        }
    )


def _parts_of(
    index: int, item: ResponseItem, ids: CallIds, before: list[JsonObject]
) -> list[JsonObject]:
    """The parts that an item adds; a result goes into the part of its call."""
    if isinstance(item, Message):
        said = words(item)
        text = [{"type": "text", "text": said, "state": "done"}] if said else []
        return [
            *text,
            *(
                {"type": "file", "mediaType": file.media_type, "url": file.url}
                for file in files(item)
                if file
            ),
        ]
    if isinstance(item, Reasoning):
        return [{"type": "reasoning", "id": str(index), "text": thought(item), "state": "done"}]
    if isinstance(item, CALLS):
        return [_tool(ids.begin(index, item.call_id), item)]
    name = ids.answered(item.call_id) if isinstance(item, ServerToolResult) else None
    for part in before:
        if (
            isinstance(item, ServerToolResult)
            and name is not None
            and part.get("toolCallId") == name
        ):
            part.update(state="output-available", output=item.output)
    return []


def _tool(name: str, item: Call) -> JsonObject:
    value, fault = call_input(item)
    part = {
        "type": "dynamic-tool",
        "toolName": item.name,
        "toolCallId": name,
        "input": value,
        **_by_provider(item),
    }
    if fault is not None:
        return {**part, "state": "output-error", "errorText": fault}
    result = own_result(item)
    return {
        **part,
        "state": "input-available" if result is None else "output-available",
        **({"output": result} if result else {}),
    }
