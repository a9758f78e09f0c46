"""Events as AG-UI 1.0, the agent-user interaction protocol: server-sent events without an end mark.

    RUN_STARTED … TEXT_MESSAGE_START/CONTENT/END … TOOL_CALL_START/ARGS/END … RUN_FINISHED{outcome, usage} | RUN_ERROR{message, code}

Thoughts are REASONING_*; what is signed or sealed rides in REASONING_ENCRYPTED_VALUE, the protocol's own slot for it. What the
protocol has no event for is CUSTOM (`rate_limits`, `usage`, `metadata`, `annotation`, `media`), unknown events are RAW.

Message ids must be unique in a conversation, since the client appends to a message whose id it knows: they are made of `run_id`
(take both ids from the request), else of the response's id. A text begins with its first word, so that no message is empty. Calls
hang on the message before them, as providers want them back. A call that was cut gets a result that says so: the client takes
every call without one as its own to answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.request.report import Change, Report
from streamlib.ui.ui_parts import (
    CALLS,
    CUT,
    Call,
    CallIds,
    Paragraphs,
    files,
    hidden,
    own_result,
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
    TokenCount,
)
from streamlib_parsers.items import (
    CustomToolCall,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.usage import Usage


class Encoder:
    """Writes one run. thread_id, run_id: what the front end asked under (`threadId` and `runId` of its request)."""

    media_type = "text/event-stream"

    def __init__(
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        thread_id: str = "thread_0",
        run_id: str | None = None,
    ) -> None:
        self._losses = Report()
        self._thread = thread_id
        self._run = run_id or response_id or "run_0"
        self._prefix = run_id or response_id
        self._model = model
        self._started = self._ended = False
        self._calls = CallIds()
        self._paragraphs = Paragraphs()
        self._texts: dict[int, str] = {}
        self._thoughts: dict[int, str] = {}
        self._begun: set[int] = set()
        self._parent: str | None = None
        self._pending: list[str] = []
        self._running: list[str] = []

    @property
    def report(self) -> list[Change]:
        """What the protocol could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The protocol's events for one of ours."""
        handler = _HANDLERS.get(type(event))
        return handler(self, event) if handler else b""

    def close(self) -> bytes:
        """The last event is the end; an error, where no terminal event came."""
        return (
            b""
            if self._ended
            else self._on_failed(
                Failed(ErrorInfo("truncated", "the stream was left before its end"))
            )
        )

    # --- the run ---

    def _start(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        return _event("RUN_STARTED", threadId=self._thread, runId=self._run, protocolVersion="1.0")

    def _on_created(self, event: Created) -> bytes:
        self._model = event.model or self._model
        self._prefix = self._prefix or event.response_id
        return self._start()

    def _on_completed(self, event: Completed) -> bytes:
        answers = (
            b"".join(self._result(self._of(name), name, "") for name in self._running)
            if event.stop_reason != "pause"
            else b""
        )
        outcome = (
            {"outcome": {"type": "success", "pendingToolCallIds": self._pending}}
            if self._pending
            else {}
        )
        usage = {"usage": [_usage(event.usage, event.model or self._model)]} if event.usage else {}
        return self._start() + answers + self._finish(**outcome, **usage)

    def _on_failed(self, event: Failed) -> bytes:
        if event.error.kind == "cancelled":
            return self._start() + self._finish(outcome={"type": "cancelled"})
        self._ended = True
        return self._start() + sse(error_body(event.error))

    def _finish(self, **fields: Any) -> bytes:
        self._ended = True
        return _event("RUN_FINISHED", threadId=self._thread, runId=self._run, **fields)

    # --- what stands beside the answer ---

    def _custom(self, name: str, value: Any) -> bytes:
        return self._start() + _event("CUSTOM", name=name, value=value)

    def _on_limits(self, event: RateLimits) -> bytes:
        return self._custom(
            "rate_limits", msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        )

    def _on_usage(self, event: TokenCount) -> bytes:
        return self._custom("usage", _usage(event.usage, self._model))

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        return self._custom("metadata", event.values)

    def _on_passthrough(self, event: Passthrough) -> bytes:
        return self._start() + _event("RAW", event=event.data, source=event.event)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        name = self._texts.get(event.index)
        return (
            self._custom("annotation", {"messageId": name, "annotation": event.annotation})
            if name
            else b""
        )

    # --- items ---

    def _id(self, index: int) -> str:
        return f"{self._prefix or self._run}-{index}"

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item, out = event.item, self._start()
        reason = hidden(item)
        if reason is not None:
            self._losses.dropped(*reason)
        elif isinstance(item, CALLS):
            return out + self._begin_call(event.index, item)
        elif isinstance(item, Reasoning):
            self._thoughts[event.index] = name = self._id(event.index)
            self._parent = None
            return (
                out
                + _event("REASONING_START", messageId=name)
                + _event("REASONING_MESSAGE_START", messageId=name, role="reasoning")
            )
        elif isinstance(item, Message):
            self._texts[event.index] = self._id(event.index)
        return out

    def _begin_call(self, index: int, item: Call) -> bytes:
        self._parent = self._parent or self._id(index)
        name = self._calls.begin(index, item.call_id)
        return _event(
            "TOOL_CALL_START", toolCallId=name, toolCallName=item.name, parentMessageId=self._parent
        )

    def _begin_text(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        self._parent = self._texts[index]
        return _event("TEXT_MESSAGE_START", messageId=self._texts[index], role="assistant")

    def _on_text(self, event: OutputTextDelta | RefusalDelta) -> bytes:
        return self._write(event.index, event.delta)

    def _on_media(self, event: MediaDelta) -> bytes:
        return self._write(event.index, event.transcript or "")

    def _write(self, index: int, delta: str) -> bytes:
        if index not in self._texts or not delta:
            return b""
        return self._begin_text(index) + _event(
            "TEXT_MESSAGE_CONTENT", messageId=self._texts[index], delta=delta
        )

    def _on_thought(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> bytes:
        name = self._thoughts.get(event.index)
        delta = self._paragraphs.gap(event) + event.delta
        return (
            _event("REASONING_MESSAGE_CONTENT", messageId=name, delta=delta)
            if name and event.delta
            else b""
        )

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        name = self._calls.at(event.index)
        return (
            _event("TOOL_CALL_ARGS", toolCallId=name, delta=event.delta)
            if name is not None and event.delta
            else b""
        )

    # --- their ends ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        item, index = event.item, event.index
        name = self._calls.at(index)
        if isinstance(item, CALLS):
            return self._call_done(name, item) if name is not None else b""
        if isinstance(item, ServerToolResult) and not item.choice:
            return self._server_result(index, item)
        if index in self._thoughts:
            name = self._thoughts[index]
            return (
                _sealed(item, name)
                + _event("REASONING_MESSAGE_END", messageId=name)
                + _event("REASONING_END", messageId=name)
            )
        return (
            self._text_done(index, item)
            if isinstance(item, Message) and index in self._texts
            else b""
        )

    def _text_done(self, index: int, item: Message) -> bytes:
        name = self._texts[index]
        begin = self._begin_text(index) if item.signature else b""
        sealed = _sealed(item, name)
        end = _event("TEXT_MESSAGE_END", messageId=name) if index in self._begun else b""
        found = list(files(item))
        if None in found:
            self._losses.dropped("/files", "a file that only its provider can fetch")
        media = (
            self._custom(
                "media", {"messageId": name, "mediaType": file.media_type, "url": file.url}
            )
            for file in found
            if file
        )
        return begin + sealed + end + b"".join(media)

    def _call_done(self, name: str, item: Call) -> bytes:
        out = _sealed(item, name) + _event("TOOL_CALL_END", toolCallId=name)
        if item.status == "incomplete":
            return out + self._result(self._of(name), name, CUT)
        result = own_result(item)
        if result is not None:
            return out + self._result(self._of(name), name, _text(result))
        (self._running if isinstance(item, ServerToolCall) else self._pending).append(name)
        return out

    def _server_result(self, index: int, item: ServerToolResult) -> bytes:
        name = self._calls.answered(item.call_id)
        if name is None:
            self._losses.dropped("/items/server_tool_result", "a result without its call")
            return b""
        self._running = [running for running in self._running if running != name]
        return self._result(self._id(index), name, _text(item.output))

    def _of(self, name: str) -> str:
        """The id of a result that came with its call."""
        return f"{self._prefix or self._run}-{name}-result"

    def _result(self, message_id: str, name: str, content: str) -> bytes:
        self._parent = None
        return _event("TOOL_CALL_RESULT", messageId=message_id, toolCallId=name, content=content)


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    RefusalDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_thought,
    ReasoningSummaryDelta: Encoder._on_thought,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    MediaDelta: Encoder._on_media,
    AnnotationAdded: Encoder._on_annotation,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    TokenCount: Encoder._on_usage,
    RateLimits: Encoder._on_limits,
    ResponseMetadata: Encoder._on_metadata,
    Passthrough: Encoder._on_passthrough,
    Created: Encoder._on_created,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
}


def _event(kind: str, /, **fields: Any) -> bytes:
    return sse({"type": kind, **fields})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _seal(item: ResponseItem) -> str | None:
    return item.signature or getattr(item, "encrypted_content", None)


def _sealed(item: ResponseItem, name: str) -> bytes:
    """Signatures and encrypted thoughts, in the protocol's slot for them."""
    value, subtype = _seal(item), "tool-call" if isinstance(item, CALLS) else "message"
    return (
        _event("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=name, encryptedValue=value)
        if value
        else b""
    )


def _usage(usage: Usage, model: str | None) -> JsonObject:
    named = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total_tokens(usage),
        "reasoningTokens": usage.reasoning_output_tokens,
        "cachedInputTokens": usage.cache_read_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_input_tokens,
    }
    return {
        **({"model": model} if model else {}),
        **{name: value for name, value in named.items() if value is not None},
    }


def error_body(error: ErrorInfo) -> JsonObject:
    """The protocol's error event."""
    return {"type": "RUN_ERROR", "message": error.message, "code": error.kind}


# --- whole ---


def encode_body(response: Response, model: str | None = None) -> bytes:
    """A whole response as AG-UI messages: what a reader of the stream ends with."""
    body = _Body(response.response_id or "run_0")
    for index, item in enumerate(response.items):
        if hidden(item) is None:
            body.add(index, item)
    for call_id in body.running if response.stop_reason != "pause" else ():
        body.answer(f"{body.prefix}-{call_id}-result", call_id, "")
    return msgspec.json.encode(body.messages)


class _Body:
    """Messages while they are put together. running: calls of the provider's own tools whose results are not there yet."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.messages: list[JsonObject] = []
        self.running: list[str] = []
        self._ids = CallIds()

    def add(self, index: int, item: ResponseItem) -> None:
        name = f"{self.prefix}-{index}"
        if isinstance(item, CALLS):
            self._call(name, self._ids.begin(index, item.call_id), item)
        elif isinstance(item, ServerToolResult):
            self.answer(name, self._ids.answered(item.call_id), _text(item.output))
        elif isinstance(item, Reasoning):
            self.messages.append(
                {"id": name, "role": "reasoning", "content": thought(item), **_seal_of(item)}
            )
        elif isinstance(item, Message) and (words(item) or item.signature):
            self.messages.append(
                {"id": name, "role": "assistant", "content": words(item), **_seal_of(item)}
            )

    def _call(self, name: str, call_id: str, item: Call) -> None:
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"id": name, "role": "assistant"})
        arguments = item.input if isinstance(item, CustomToolCall) else item.arguments
        call = {
            "id": call_id,
            "type": "function",
            "function": {"name": item.name, "arguments": arguments},
            **_seal_of(item),
        }
        self.messages[-1].setdefault("toolCalls", []).append(call)
        result = CUT if item.status == "incomplete" else own_result(item)
        if result is not None:
            self.answer(f"{self.prefix}-{call_id}-result", call_id, _text(result))
        elif isinstance(item, ServerToolCall):
            self.running.append(call_id)

    def answer(self, name: str, call_id: str | None, content: str) -> None:
        """A result stands behind the message with its call and the results that are there already."""
        owners = [
            at
            for at, message in enumerate(self.messages)
            if any(call["id"] == call_id for call in message.get("toolCalls", ()))
        ]
        if call_id is None or not owners:
            return
        at = owners[0] + 1
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        self.messages.insert(
            at, {"id": name, "role": "tool", "toolCallId": call_id, "content": content}
        )
        self.running = [running for running in self.running if running != call_id]


def _seal_of(item: ResponseItem) -> JsonObject:
    value = _seal(item)
    return {"encryptedValue": value} if value else {}
