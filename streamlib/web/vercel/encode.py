"""Encodes events as the Vercel AI SDK's UI message stream.

`useChat` and ``readUIMessageStream`` read it:

    data: {"type":"start"}
    data: {"type":"start-step"}
    data: {"type":"text-start","id":"0"} … text-delta … text-end
    data: {"type":"tool-input-start","toolCallId":"c","toolName":"f","dynamic":true}
          … tool-input-delta … tool-input-available
    data: {"type":"finish-step"}
    data: {"type":"finish","finishReason":"tool-calls"}
    data: [DONE]

`version=6` (default) is the subset that 6 and 7 both read: an unknown part is a hard error in that
client. 7 adds `custom` parts for items of unknown kinds. Send `HEADERS` with the stream.

A run (`run=True`) is one message of several steps, with the outputs of its tools between them:

    … finish-step, start-step … tool-output-available | tool-output-error …

Usage is in the message's metadata, in the SDK's own shape, and grows; rate limits are a transient
`data-rate-limits` part; an error has a `data-error` part before it. Declared tools are static
parts (`tool-weather`), as the SDK sends them, any other tool is a dynamic one. Each item is one
part; a text starts with its first delta, so that none is empty. Signatures and encrypted state of
items stay on the server, where the history is, or go to the page sealed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal, Unpack

import msgspec

from streamlib.request.origins import opaque_state
from streamlib.web.message_encoder import MessageEncoder, MessageOptions, frames_of
from streamlib.web.run_encoder import MessageRunEncoder
from streamlib.web.ui_parts import (
    CALLS,
    TRUNCATED_CALL,
    Call,
    call_input,
    inline_result,
    source,
    why_hidden,
)
from streamlib.web.vercel.parts import (
    approval_frames,
    citation,
    custom_frame,
    error_body,
    error_frames,
    file_frames,
    message_metadata,
    message_of,
    output_frame,
    own_metadata,
    part_frame,
    provider_executed,
    source_frame,
)
from streamlib.wires.encoders import SSE_COMMENT
from streamlib.wires.generated_ids import new_id
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    Passthrough,
    RateLimits,
    ResponseMetadata,
    StopReason,
    TokenCount,
)
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    CallOutput,
    CustomToolCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.response import Response

__all__ = ["HEADERS", "VercelEncoder", "encode_body", "error_body", "run_encoder"]

CUSTOM: Final = (Opaque, *BUILT_IN_CALLS)
"""Items that version 7 of the SDK shows as `custom` parts."""

PROTOCOL_HEADERS: Final = {"x-vercel-ai-ui-message-stream": "v1"}
"""The header that names the protocol, beside the content type."""

HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    **PROTOCOL_HEADERS,
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


class VercelEncoder(MessageEncoder):
    """Encodes one assistant message: of one step, or of a run of several.

    Args:
        response_id: not used: a provider may repeat its ids, and a page keeps messages by theirs.
        message_id: the id of the page's message. Needed if the page has the message already and
            this step continues it; without one, the page makes an id.
        version: the SDK's version. 6 is the subset that 6 and 7 both read.
        tools: names of declared tools: the page gets their calls as `tool-{name}`.
        metadata: the application's own metadata of the message, which the page gets first.
        **options: those of every page's encoder (`MessageOptions`). Sealed state is
            ``providerMetadata``.
    """

    headers = PROTOCOL_HEADERS
    no_such_event = "the protocol has no such part"

    def __init__(
        self,
        *,
        response_id: str | None = None,
        message_id: str | None = None,
        version: Literal[6, 7] = 6,
        tools: Collection[str] = (),
        metadata: JsonObject | None = None,
        **options: Unpack[MessageOptions],
    ) -> None:
        super().__init__(message_id, **options)
        self._message_id = message_id
        self._tools = frozenset(tools)
        self._metadata = metadata
        self._citations: dict[int, list[JsonObject]] = {}
        """Citations of each open text, by index, for the end of its part (version 7)."""
        self._version = version
        self._kinds: dict[int, str] = {}
        """`text` or `reasoning` by index of a shown item."""

    def close(self) -> bytes:
        """The end mark that the client waits for, after the end of the message."""
        return super().close() + b"data: [DONE]\n\n"

    # --- the message ---

    def _start(self) -> bytes:
        out = self._start_message()
        if not self._is_in_step:
            self._is_in_step = True
            self._step += 1
            out += part_frame("start-step")
        return out

    def _start_message(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        fields: JsonObject = {}
        if self._message_id:
            fields["messageId"] = self._message_id
        if self._metadata:
            fields["messageMetadata"] = self._metadata
        return part_frame("start", **fields)

    def _on_rate_limits(self, event: RateLimits) -> bytes:
        values = msgspec.to_builtins(msgspec.structs.replace(event, raw={}, seq=0))
        return part_frame("data-rate-limits", data=values, transient=True)

    def _on_usage(self, event: TokenCount) -> bytes:
        self._usage.set(event.usage, self._model)
        metadata = message_metadata(self._usage.total, None)
        return part_frame("message-metadata", messageMetadata=metadata)

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._report.dropped("/metadata", "the protocol has no part for a provider's metadata")
        return b""

    def _on_passthrough(self, event: Passthrough) -> bytes:
        self._report.dropped("/passthrough", "an event of unknown kind")
        return b""

    def _finish(self, event: Completed) -> bytes:
        self.ended = True
        out = b""
        if self._is_run:
            # A pause may have left calls without a result.
            out = self._end_running()
        # Sent at the end, not with the call: the page must answer every approval that it is asked
        # for, and in a run somebody else may have answered before.
        out += approval_frames(self._pending.approvals)
        fields: JsonObject = {"finishReason": FINISH_REASONS[event.stop_reason]}
        metadata = message_metadata(self._usage.total, self._model)
        if metadata:
            fields["messageMetadata"] = metadata
        return out + self._finish_step() + part_frame("finish", **fields)

    def _step_end(self) -> bytes:
        return part_frame("finish-step")

    def _empty_result(self, call_id: str) -> bytes:
        return self._result_frame(call_id, None)

    def _no_output(self, call_id: str, error: str) -> bytes:
        return part_frame("tool-output-error", toolCallId=call_id, errorText=error)

    def _on_failed(self, event: Failed) -> bytes:
        self.ended = True
        out = self._start() + self._end_open_parts()
        if self._is_run:
            out += self._end_running() + self._end_calls(self._pending.next_response())
        return out + error_frames(event.error, public=self._view is not None)

    def _end_open_parts(self) -> bytes:
        out = b""
        for index in sorted(self._open):
            out += part_frame(f"{self._kinds[index]}-end", id=self._part_id(index))
        self._open.clear()
        for call_id in self._open_calls.values():
            out += part_frame("tool-output-error", toolCallId=call_id, errorText=TRUNCATED_CALL)
        self._open_calls.clear()
        return out

    # --- between two responses of a run ---

    def next_response(self) -> bytes:
        """The end of a step: another response of the run begins."""
        self._kinds.clear()
        self._citations.clear()
        return super().next_response()

    def output(self, item: CallOutput) -> bytes:
        """The parts for the output of a call."""
        waiting = self._pending.take(item.call_id)
        # With an id it may continue a message of the page.
        call_id = self._shown_call(item, waiting, may_be_earlier=bool(self._message_id))
        if call_id is None:
            return b""
        if self._view is not None:
            item = self._view.of(item)
        return self._start_message() + output_frame(call_id, item, was_asked=waiting is None)

    # --- its parts ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        out = self._start()
        hidden = why_hidden(item)
        if hidden is not None:
            if not self._is_custom(item):
                self._report.dropped(hidden.path, hidden.reason)
            return out
        self._begin_agent(event.index, item)
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
        agent = own_metadata(self._agents.get(index))
        return part_frame(f"{self._kinds[index]}-start", id=self._part_id(index), **agent)

    def _part_id(self, index: int) -> str:
        """The id of a part: the item's index, in a run after the number of the step."""
        if self._is_run:
            return f"{self._step}-{index}"
        return str(index)

    def _start_call(self, index: int, item: Call) -> bytes:
        call_id = self._call_ids.add(index, item.call_id)
        self._open_calls[index] = call_id
        fields = self._tool_fields(call_id, item)
        if isinstance(item, CustomToolCall):
            fields["inputEncoding"] = "text"
        return part_frame("tool-input-start", **fields)

    def _tool_fields(self, call_id: str, item: Call) -> JsonObject:
        """The fields of both ends of a tool's input."""
        fields: JsonObject = {"toolCallId": call_id, "toolName": item.name}
        if item.name not in self._tools:
            fields["dynamic"] = True
        return {**fields, **provider_executed(item)}

    def _text_delta(self, index: int, delta: str) -> bytes:
        if index not in self._kinds or not delta:
            return b""
        kind = f"{self._kinds[index]}-delta"
        return self._start_part(index) + part_frame(kind, id=self._part_id(index), delta=delta)

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
        source_id = f"{self._part_id(event.index)}-{event.seq}"
        if self._version == 7:
            quoted = citation(cited, source_id, event.annotation)
            self._citations.setdefault(event.index, []).append(quoted)
        return source_frame(cited, source_id)

    # --- ends of parts ---

    def _end_item(self, index: int, item: ResponseItem) -> bytes:
        if isinstance(item, CALLS):
            call_id = self._open_calls.pop(index, None)
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
        metadata = self._item_metadata(item)
        if self._sealed_state and index in self._kinds:
            out = self._start_part(index)  # sealed state needs a part, even an empty one
        if index in self._open:
            self._open.discard(index)
            if index in self._citations:
                metadata["citations"] = self._citations.pop(index)
            out += part_frame(f"{self._kinds[index]}-end", id=self._part_id(index), **metadata)
        self._report_state(item)
        if isinstance(item, Message) and index in self._kinds:
            out += file_frames(item, self._report)
        return out

    def _report_state(self, item: ResponseItem) -> None:
        if opaque_state(item):
            self._report.dropped("/signatures", "signed and encrypted state stays in the history")

    def _item_metadata(self, item: ResponseItem) -> JsonObject:
        """The metadata at the end of a part, which replaces that of its start: agent and state."""
        if self._sealed_state is None and not isinstance(item, CALLS):
            return {}
        return own_metadata(item.agent, self._sealed_state)

    def _end_call(self, call_id: str, item: Call) -> bytes:
        self._report_state(item)
        fields = self._tool_fields(call_id, item)
        fields.update(self._item_metadata(item))
        value, fault = call_input(item)
        fields["input"] = value
        if fault is not None:
            if inline_result(item) is not None:
                self._report.dropped("/items/server_tool_result", "the result of a truncated call")
            return part_frame("tool-input-error", **fields, errorText=fault)
        out = part_frame("tool-input-available", **fields)
        result = inline_result(item)
        if result is not None:
            return out + self._result_frame(call_id, result)
        if isinstance(item, ServerToolCall):
            self._running.append(call_id)
        return out

    def _result(self, item: ServerToolResult) -> bytes:
        call_id = self._take_answered(item)
        if call_id is None:
            return b""
        return self._result_frame(call_id, item.output)

    def _result_frame(self, call_id: str, output: object) -> bytes:
        return part_frame(
            "tool-output-available", toolCallId=call_id, output=output, providerExecuted=True
        )


def encode_body(
    response: Response, model: str | None = None, message_id: str | None = None
) -> bytes:
    """The UI message `{id, role, metadata, parts}` that a reader of the stream has at its end.

    Args:
        response: The response.
        model: The model's name, used if the response has none.
        message_id: The message's id; random if not given, since the page keeps messages by it.
    """
    message_id = message_id or new_id("msg-")
    encode = VercelEncoder(model=model, message_id=message_id)
    return msgspec.json.encode(message_of(frames_of(encode, response), message_id))


def run_encoder(**options: Any) -> MessageRunEncoder:
    """An encoder of a run; options as those of `VercelEncoder`."""
    return MessageRunEncoder(VercelEncoder(run=True, **options), SSE_COMMENT)
