"""Encodes events as the Vercel AI SDK's UI message stream.

`useChat` and ``readUIMessageStream`` read it:

    data: {"type":"start","messageId":"resp_1"}
    data: {"type":"start-step"}
    data: {"type":"text-start","id":"0"} … text-delta … text-end
    data: {"type":"tool-input-start","toolCallId":"c","toolName":"f","dynamic":true}
          … tool-input-delta … tool-input-available
    data: {"type":"finish-step"}
    data: {"type":"finish","finishReason":"tool-calls"}
    data: [DONE]

`version=6` (default) is the subset that 6 and 7 both read: an unknown part is a hard error in that
client. 7 adds `custom` parts for items of unknown kinds. Send `HEADERS` with the stream.

Usage is in the message's metadata, in the SDK's own shape, and grows; rate limits are a transient
`data-rate-limits` part. Tools are dynamic parts, since only the page knows their types. Each item
is one part; a text starts with its first delta, so that none is empty. Signatures and encrypted
state stay on the server, where the history is.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from streamlib.request.report import Change, Report
from streamlib.ui.ui_parts import (
    ABANDONED,
    CALLS,
    Call,
    CallIds,
    ReasoningGaps,
    call_input,
    files,
    inline_result,
    opaque_state,
    source,
    why_hidden,
)
from streamlib.ui.vercel_body import encode_body
from streamlib.ui.vercel_parts import (
    custom_frame,
    error_body,
    message_metadata,
    part_frame,
    provider_executed,
    usage_metadata,
)
from streamlib.wires.encoders import sse
from streamlib.wires.event_handlers import EventHandlers
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
    BUILT_IN_CALLS,
    CustomToolCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)

__all__ = ["HEADERS", "Encoder", "encode_body", "error_body"]

CUSTOM: Final = (Opaque, *BUILT_IN_CALLS)
"""Items that version 7 of the SDK shows as `custom` parts."""

HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
FINISH_REASONS: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
    "pause": "other",
    "other": "other",
}


class Encoder:
    """Encodes one assistant message of one step.

    message_id: the id of the front end's message. Needed if this step continues a message of an
    earlier step; otherwise the response's own id is used.
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
        self._report = Report()
        # Used if `Created` has no model or no id.
        self._model = model
        self._response_id = response_id
        self._message_id = message_id
        self._version = version
        # Whether `start` was sent.
        self._started = False
        # Whether the terminal event was encoded.
        self._ended = False
        self._call_ids = CallIds()
        self._gaps = ReasoningGaps()
        # `text` or `reasoning` by index of a shown item.
        self._kinds: dict[int, str] = {}
        # Items whose `text-start` or `reasoning-start` was sent.
        self._open: set[int] = set()
        # Ids of provider-run calls that have no result yet.
        self._running: list[str] = []

    @property
    def report(self) -> list[Change]:
        """What the protocol could not carry."""
        return self._report.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """Returns the parts of one event."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            self._report.dropped(f"/{type(event).__name__}", "the protocol has no such part")
            return b""
        return handler(self, event)

    def close(self) -> bytes:
        """Returns the end mark that the client waits for.

        An error comes before it if no terminal event did.
        """
        out = b""
        if not self._ended:
            out = self._on_failed(Failed(ABANDONED))
        return out + b"data: [DONE]\n\n"

    # --- the message ---

    def _start(self, response_id: str | None = None) -> bytes:
        if self._started:
            return b""
        self._started = True
        fields: JsonObject = {}
        message_id = self._message_id or response_id or self._response_id
        if message_id:
            fields["messageId"] = message_id
        return part_frame("start", **fields) + part_frame("start-step")

    def _on_rate_limits(self, event: RateLimits) -> bytes:
        values = msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        return part_frame("data-rate-limits", data=values, transient=True)

    def _on_created(self, event: Created) -> bytes:
        self._model = event.model or self._model
        return self._start(event.response_id)

    def _on_usage(self, event: TokenCount) -> bytes:
        metadata = {"usage": usage_metadata(event.usage)}
        return part_frame("message-metadata", messageMetadata=metadata)

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._report.dropped("/metadata", "the protocol has no part for a provider's metadata")
        return b""

    def _on_passthrough(self, event: Passthrough) -> bytes:
        self._report.dropped("/passthrough", "an event of unknown kind")
        return b""

    def _on_completed(self, event: Completed) -> bytes:
        self._ended = True
        out = self._start()
        # After a pause the provider continues its calls in the next response.
        if event.stop_reason != "pause":
            for call_id in self._running:
                out += self._result_frame(call_id, None)
        fields: JsonObject = {"finishReason": FINISH_REASONS[event.stop_reason]}
        metadata = message_metadata(event.usage, event.model or self._model)
        if metadata:
            fields["messageMetadata"] = metadata
        return out + part_frame("finish-step") + part_frame("finish", **fields)

    def _on_failed(self, event: Failed) -> bytes:
        self._ended = True
        if event.error.kind == "cancelled":
            return self._start() + part_frame("abort", reason=event.error.message)
        return self._start() + sse(error_body(event.error))

    # --- its parts ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        out = self._start()
        hidden = why_hidden(item)
        if hidden is not None:
            if not self._is_custom(item):
                self._report.dropped(hidden.path, hidden.reason)
            return out
        if isinstance(item, CALLS):
            return out + self._start_call(event.index, item)
        if isinstance(item, Reasoning):
            self._kinds[event.index] = "reasoning"
            return out + self._start_part(event.index)
        self._kinds[event.index] = "text"
        return out

    def _is_custom(self, item: ResponseItem) -> bool:
        """Whether the item becomes a `custom` part."""
        return self._version == 7 and isinstance(item, CUSTOM) and not item.choice

    def _start_part(self, index: int) -> bytes:
        if index in self._open:
            return b""
        self._open.add(index)
        return part_frame(f"{self._kinds[index]}-start", id=str(index))

    def _start_call(self, index: int, item: Call) -> bytes:
        fields: JsonObject = {
            "toolCallId": self._call_ids.add(index, item.call_id),
            "toolName": item.name,
            "dynamic": True,
        }
        if isinstance(item, CustomToolCall):
            fields["inputEncoding"] = "text"
        return part_frame("tool-input-start", **fields, **provider_executed(item))

    def _on_text(self, event: OutputTextDelta | RefusalDelta) -> bytes:
        return self._text_delta(event.index, event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> bytes:
        return self._text_delta(event.index, self._gaps.with_gap(event))

    def _on_media(self, event: MediaDelta) -> bytes:
        return self._text_delta(event.index, event.transcript or "")

    def _text_delta(self, index: int, delta: str) -> bytes:
        if index not in self._kinds or not delta:
            return b""
        kind = f"{self._kinds[index]}-delta"
        return self._start_part(index) + part_frame(kind, id=str(index), delta=delta)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        call_id = self._call_ids.get(event.index)
        if call_id is None:
            return b""
        return part_frame("tool-input-delta", toolCallId=call_id, inputTextDelta=event.delta)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        if event.index not in self._kinds:
            return b""
        cited = source(event.annotation)
        if cited is None:
            reason = "a citation that names neither a page nor a document"
            self._report.dropped("/annotations", reason)
            return b""
        fields: JsonObject = {"sourceId": f"{event.index}-{event.seq}"}
        if cited.url is not None:
            fields["url"] = cited.url
            if cited.title:
                fields["title"] = cited.title
            return part_frame("source-url", **fields)
        fields["mediaType"] = "text/plain"
        fields["title"] = cited.title
        if cited.filename:
            fields["filename"] = cited.filename
        return part_frame("source-document", **fields)

    # --- ends of parts ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        index, item = event.index, event.item
        if isinstance(item, CALLS):
            call_id = self._call_ids.get(index)
            if call_id is None:
                return b""
            return self._end_call(call_id, item)
        if isinstance(item, CUSTOM) and self._is_custom(item):
            return custom_frame(item)
        if isinstance(item, ServerToolResult) and not item.choice:
            return self._result(item)
        return self._end_text(index, item)

    def _end_text(self, index: int, item: ResponseItem) -> bytes:
        out = b""
        if index in self._open:
            out = part_frame(f"{self._kinds[index]}-end", id=str(index))
        if opaque_state(item):
            self._report.dropped("/signatures", "signed and encrypted state stays in the history")
        if isinstance(item, Message) and index in self._kinds:
            out += self._files(item)
        return out

    def _files(self, item: Message) -> bytes:
        out = b""
        for file in files(item):
            if file is None:
                self._report.dropped("/files", "a file that only its provider can fetch")
            else:
                out += part_frame("file", url=file.url, mediaType=file.media_type)
        return out

    def _end_call(self, call_id: str, item: Call) -> bytes:
        fields: JsonObject = {"toolCallId": call_id, "toolName": item.name, "dynamic": True}
        fields.update(provider_executed(item))
        value, fault = call_input(item)
        fields["input"] = value
        if fault is not None:
            return part_frame("tool-input-error", **fields, errorText=fault)
        out = part_frame("tool-input-available", **fields)
        result = inline_result(item)
        if result is not None:
            return out + self._result_frame(call_id, result)
        if isinstance(item, ServerToolCall):
            self._running.append(call_id)
        return out

    def _result(self, item: ServerToolResult) -> bytes:
        call_id = self._call_ids.of_result(item.call_id)
        if call_id is None:
            self._report.dropped("/items/server_tool_result", "a result without its call")
            return b""
        if call_id in self._running:
            self._running.remove(call_id)
        return self._result_frame(call_id, item.output)

    def _result_frame(self, call_id: str, output: object) -> bytes:
        return part_frame(
            "tool-output-available", toolCallId=call_id, output=output, providerExecuted=True
        )


_HANDLERS: Final = EventHandlers[Encoder]()
_HANDLERS.register(OutputTextDelta, Encoder._on_text)
_HANDLERS.register(ReasoningContentDelta, Encoder._on_reasoning)
_HANDLERS.register(ReasoningSummaryDelta, Encoder._on_reasoning)
_HANDLERS.register(RefusalDelta, Encoder._on_text)
_HANDLERS.register(MediaDelta, Encoder._on_media)
_HANDLERS.register(FunctionCallArgumentsDelta, Encoder._on_arguments)
_HANDLERS.register(OutputItemAdded, Encoder._on_added)
_HANDLERS.register(OutputItemDone, Encoder._on_done)
_HANDLERS.register(AnnotationAdded, Encoder._on_annotation)
_HANDLERS.register(TokenCount, Encoder._on_usage)
_HANDLERS.register(RateLimits, Encoder._on_rate_limits)
_HANDLERS.register(Created, Encoder._on_created)
_HANDLERS.register(ResponseMetadata, Encoder._on_metadata)
_HANDLERS.register(Passthrough, Encoder._on_passthrough)
_HANDLERS.register(Completed, Encoder._on_completed)
_HANDLERS.register(Failed, Encoder._on_failed)
# The protocol has no part for either, and a front end needs none.
_HANDLERS.ignore(Notice, ItemProgress)
