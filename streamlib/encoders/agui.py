"""Events as AG-UI 1.0: the agent-user interaction protocol, as server-sent events without an end mark.

    RUN_STARTED … TEXT_MESSAGE_START/CONTENT/END … TOOL_CALL_START/ARGS/END … RUN_FINISHED{usage} | RUN_ERROR{message, code}

Thoughts are REASONING_*; what is signed or sealed rides in REASONING_ENCRYPTED_VALUE, the protocol's own slot for it. Rate limits and
metadata are CUSTOM, unknown events RAW.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.encoders import Losses, sse
from streamlib.report import Change
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
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
)
from streamlib_parsers.items import CustomToolCall, FunctionCall, JsonObject, Message, Reasoning, ServerToolCall, ServerToolResult
from streamlib_parsers.usage import Usage

CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)


class Encoder:
    """Writes one run. thread_id, run_id: what the front end asked under."""

    media_type = "text/event-stream"

    def __init__(
        self, *, model: str | None = None, response_id: str | None = None, thread_id: str = "thread_0", run_id: str | None = None
    ) -> None:
        self._losses = Losses()
        self._thread = thread_id
        self._run = run_id or response_id or "run_0"
        self._model = model
        self._started = False
        self._ids: dict[int, str] = {}
        self._paragraphs: set[tuple[int, int]] = set()

    @property
    def report(self) -> list[Change]:
        """What the protocol could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The protocol's events for one of ours."""
        handler = _HANDLERS.get(type(event))
        return handler(self, event) if handler else b""

    def close(self) -> bytes:
        """The last event is the end."""
        return b""

    def _start(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        return _event("RUN_STARTED", threadId=self._thread, runId=self._run, protocolVersion="1.0")

    def _on_created(self, event: Created) -> bytes:
        self._model = event.model or self._model
        return self._start()

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item, out = event.item, self._start()
        if item.choice:
            self._losses.note("/choices", "one run has one answer")
            return out
        begun = _BEGIN.get(type(item))
        if begun is None:
            return out
        self._ids[event.index] = name = getattr(item, "call_id", "") or f"{self._run}-{event.index}"
        return out + begun(name, item)

    def _delta(self, kind: str, event: Any) -> bytes:
        name = self._ids.get(event.index)
        key = "toolCallId" if kind == "TOOL_CALL_ARGS" else "messageId"
        return _event(kind, **{key: name, "delta": event.delta}) if name and event.delta else b""

    def _on_text(self, event: Any) -> bytes:
        return self._delta("TEXT_MESSAGE_CONTENT", event)

    def _on_thought(self, event: Any) -> bytes:
        return self._delta("REASONING_MESSAGE_CONTENT", event)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._on_thought(msgspec.structs.replace(event, delta=gap + event.delta))

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        return self._delta("TOOL_CALL_ARGS", event)

    def _on_done(self, event: OutputItemDone) -> bytes:
        item, name = event.item, self._ids.get(event.index)
        if isinstance(item, ServerToolResult):
            content = item.output if isinstance(item.output, str) else msgspec.json.encode(item.output).decode()
            known = item.call_id in self._ids.values()
            return (
                _event("TOOL_CALL_RESULT", messageId=f"{self._run}-{event.index}", toolCallId=item.call_id, content=content)
                if known
                else b""
            )
        end = _END.get(type(item))
        return _sealed(item, name) + end(name) if end and name else b""

    def _on_completed(self, event: Completed) -> bytes:
        usage = {"usage": [_usage(event.usage, event.model or self._model)]} if event.usage else {}
        return self._start() + _event("RUN_FINISHED", threadId=self._thread, runId=self._run, **usage)

    def _on_failed(self, event: Failed) -> bytes:
        return self._start() + sse(error_body(event.error))

    def _on_limits(self, event: RateLimits) -> bytes:
        values = msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        return self._start() + _event("CUSTOM", name="rate_limits", value=values)

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        return self._start() + _event("CUSTOM", name="metadata", value=event.values)

    def _on_passthrough(self, event: Passthrough) -> bytes:
        return self._start() + _event("RAW", event=event.data, source=event.event)


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    RefusalDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_thought,
    ReasoningSummaryDelta: Encoder._on_summary,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    Created: Encoder._on_created,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    RateLimits: Encoder._on_limits,
    ResponseMetadata: Encoder._on_metadata,
    Passthrough: Encoder._on_passthrough,
}


def _event(kind: str, **values: Any) -> bytes:
    return sse({"type": kind, **values})


def _begin_text(name: str, item: Any) -> bytes:
    return _event("TEXT_MESSAGE_START", messageId=name, role="assistant")


def _begin_thought(name: str, item: Any) -> bytes:
    return _event("REASONING_START", messageId=name) + _event("REASONING_MESSAGE_START", messageId=name, role="reasoning")


def _begin_call(name: str, item: Any) -> bytes:
    return _event("TOOL_CALL_START", toolCallId=name, toolCallName=item.name)


_BEGIN: Final[dict[type, Callable[[str, Any], bytes]]] = {
    Message: _begin_text,
    Reasoning: _begin_thought,
    **dict.fromkeys(CALLS, _begin_call),
}


def _end_text(name: str) -> bytes:
    return _event("TEXT_MESSAGE_END", messageId=name)


def _end_thought(name: str) -> bytes:
    return _event("REASONING_MESSAGE_END", messageId=name) + _event("REASONING_END", messageId=name)


def _end_call(name: str) -> bytes:
    return _event("TOOL_CALL_END", toolCallId=name)


_END: Final[dict[type, Callable[[str], bytes]]] = {Message: _end_text, Reasoning: _end_thought, **dict.fromkeys(CALLS, _end_call)}


def _sealed(item: Any, name: str | None) -> bytes:
    """Signatures and encrypted thoughts, in the protocol's slot for them."""
    value = item.signature or getattr(item, "encrypted_content", None)
    subtype = "tool-call" if isinstance(item, CALLS) else "message"
    return _event("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=name, encryptedValue=value) if value else b""


def _usage(usage: Usage, model: str | None) -> JsonObject:
    names = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "reasoningTokens": usage.reasoning_output_tokens,
        "cachedInputTokens": usage.cache_read_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_input_tokens,
    }
    known = {name: value for name, value in names.items() if value is not None}
    if usage.input_tokens is not None and usage.output_tokens is not None:
        known["totalTokens"] = usage.input_tokens + usage.output_tokens
    return {**({"model": model} if model else {}), **known}


def error_body(error: ErrorInfo) -> JsonObject:
    """The protocol's error event."""
    return {"type": "RUN_ERROR", "message": error.message, "code": error.kind}


def encode_body(response: Response, model: str | None = None) -> bytes:
    """A whole response as AG-UI messages."""
    messages: list[JsonObject] = [{"id": f"{response.response_id or 'run_0'}", "role": "assistant", "content": response.text}]
    calls = [call for call in response.calls if isinstance(call, FunctionCall)]
    if calls:
        messages[0]["toolCalls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}} for call in calls
        ]
    return msgspec.json.encode(messages)
