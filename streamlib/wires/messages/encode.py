"""Encodes events as an Anthropic Messages stream.

Each item of choice 0 is one content block with its own index; overlapping items keep overlapping.
Buffered: `Created`, until the next event, so that its usage is in `message_start`; usage and
metadata, until it is known whether they belong to the final `message_delta`; the input of a
free-form call, until it is complete, since it becomes JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Unpack

from msgspec import Raw

from streamlib.request.json_objects import without_keys
from streamlib.wires.arguments import free_form_input, is_free_form
from streamlib.wires.encoders import is_event_of_other_wire, sse
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
from streamlib.wires.messages.encode_objects import (
    ID_PREFIX,
    RESERVED_KEYS,
    block_of,
    compaction_fields,
    error_body,
    has_block,
    has_broken_arguments,
    messages_usage,
    native_stop,
    skeleton,
)
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import (
    Compaction,
    FunctionCall,
    JsonObject,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    WireApi,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.usage import Usage, count
from streamlib_parsers.wires.messages.token_counts import ESTIMATE

__all__ = ["Encoder", "body_of", "error_body"]


class Encoder(WireEncoder):
    """Encodes one stream."""

    wire_api: ClassVar[WireApi | None] = "messages"
    no_such_event = "Messages has no such event"
    reserved_keys = RESERVED_KEYS
    id_prefix = ID_PREFIX

    def __init__(self, *, write: FrameWriter = sse, **names: Unpack[ResponseNames]) -> None:
        super().__init__(write, **names)
        # The message of `message_start`, from `Created` on.
        self._message: JsonObject | None = None
        # Index of the content block of each item of choice 0, by item index.
        self._blocks: dict[int, int] = {}
        # Items whose `content_block_start` was sent.
        self._open: set[int] = set()
        # Input fragments of each call whose input may be plain text, by item index.
        self._inputs: dict[int, list[str]] = {}
        # Calls with broken arguments whose block is not closed yet: it never is, if the response
        # fails, since clients take a call for finished at its `content_block_stop`.
        self._broken: list[int] = []
        # Whether the latest usage is still to be sent in a `message_delta`.
        self._usage_pending = False
        # Item indexes of blocks without their `content_block_stop`; they delay `message_delta`.
        self._unclosed: set[int] = set()
        # Item index of the thinking that is open.
        self._thinking: int | None = None

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._message = {
            "id": event.response_id or self._response_id,
            "type": "message",
            "role": "assistant",
            "model": event.model or self._model or "",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        return b""

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        values = self._own_metadata(event.values)
        if self._message is not None and not self._started:
            self._message.update(values)
            return b""
        out = b""
        if self._usage_pending:
            out = self._flush_envelope()
        self._envelope.update(values)
        return out

    def _on_usage(self, event: TokenCount) -> bytes:
        previous, self._usage = self._usage, event.usage
        if self._message is not None and not self._started:
            return self._start_message()
        tokens = _estimated_tokens(previous, event.usage)
        if tokens and self._thinking is not None:
            # Omitted thinking: the API sends its estimated length so far, but no text.
            delta = {"type": "thinking_delta", "thinking": "", "estimated_tokens": tokens}
            return self._delta(self._thinking, delta)
        out = b""
        if self._usage_pending:
            out = self._flush_envelope()
        self._usage_pending = True
        return out

    def _start_message(self) -> bytes:
        if self._started:
            return b""
        if self._message is None:
            self._on_created(Created())
        self._started = True
        usage = messages_usage(self._usage, self._report) or {"input_tokens": 0, "output_tokens": 0}
        message = {**(self._message or {}), "usage": usage}
        return self._write({"type": "message_start", "message": message}, "message_start")

    def _flush(self) -> bytes:
        """Everything that was buffered, since the stream goes on."""
        return self._close_broken() + self._flush_envelope()

    def _flush_envelope(self) -> bytes:
        """A `message_delta` with the buffered metadata and usage, if there are any."""
        if not self._usage_pending and not self._envelope:
            return b""
        # Clients of the real API never met one inside a block.
        if self._unclosed:
            return b""
        return self._message_delta({"stop_reason": None, "stop_sequence": None})

    def _close_broken(self) -> bytes:
        indexes, self._broken = self._broken, []
        out = b""
        for index in indexes:
            out += self._close_block(index)
        return out

    def _close_block(self, index: int) -> bytes:
        self._unclosed.discard(index)
        if self._thinking == index:
            self._thinking = None
        return self._frame("content_block_stop", index)

    def _message_delta(self, stop: JsonObject) -> bytes:
        body = {
            "type": "message_delta",
            "delta": {**self._envelope, **stop},
            "usage": messages_usage(self._usage, self._report) or {"output_tokens": 0},
        }
        self._envelope = {}
        self._usage_pending = False
        return self._write(body, "message_delta")

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        out = self._start_message() + self._flush()
        if item.choice:
            self._report.dropped("/choices", "Messages has one choice")
            return out
        if not has_block(item, self._report, own=self._is_own(item)):
            return out
        self._blocks[event.index] = len(self._blocks)
        if is_free_form(item, own=self._is_own(item)):
            self._inputs[event.index] = []
        if _starts_when_done(item):
            return out
        return out + self._start_block(event.index, item)

    def _start_block(self, index: int, item: ResponseItem) -> bytes:
        self._open.add(index)
        self._unclosed.add(index)
        if isinstance(item, Reasoning):
            self._thinking = index
        block = block_of(skeleton(item), self._report)
        return self._frame("content_block_start", index, content_block=block)

    def _frame(self, kind: str, index: int, **fields: Any) -> bytes:
        return self._write({"type": kind, "index": self._blocks[index], **fields}, kind)

    def _delta(self, index: int, delta: JsonObject) -> bytes:
        if index not in self._open:
            return b""
        kind = "content_block_delta"
        event = {"type": kind, "index": self._blocks[index], "delta": delta}
        # Nearly every event of a stream is a delta, before which nothing is buffered.
        if self._broken or self._envelope or self._usage_pending:
            return self._flush() + self._write(event, kind)
        return self._write(event, kind)

    def _on_text(self, event: OutputTextDelta) -> bytes:
        if event.logprobs:
            self._report.dropped("/logprobs", "Messages has no logprobs")
        return self._delta(event.index, {"type": "text_delta", "text": event.delta})

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._report.dropped("/refusal", "a refusal is plain text in Messages")
        return self._delta(event.index, {"type": "text_delta", "text": event.delta})

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._delta(event.index, {"type": "thinking_delta", "thinking": event.delta})

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._report.dropped("/summary", "a summary is plain thinking in Messages")
        return self._delta(
            event.index, {"type": "thinking_delta", "thinking": self._gaps.with_gap(event)}
        )

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        fragments = self._inputs.get(event.index)
        if fragments is not None:
            fragments.append(event.delta)
            return b""
        return self._delta(event.index, {"type": "input_json_delta", "partial_json": event.delta})

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        return self._delta(event.index, {"type": "citations_delta", "citation": event.annotation})

    def _on_done(self, event: OutputItemDone) -> bytes:
        index, item = event.index, event.item
        if index not in self._blocks:
            return b""
        if item.status != "completed":
            # A truncated item: its block is never closed, but later events come after it.
            self._unclosed.discard(index)
        out = self._flush() + self._complete_block(index, item)
        if item.signature:
            out += self._signature(index, item)
        if isinstance(item, (FunctionCall, ServerToolCall)) and not item.arguments:
            self._report.dropped("/arguments", "empty arguments are written as {}")
        if item.status == "completed":
            out += self._close_block(index)
        elif has_broken_arguments(item):
            self._broken.append(index)
        # Any other truncated block stays open: parsers recognise the truncation by that.
        return out

    def _complete_block(self, index: int, item: ResponseItem) -> bytes:
        """What could not be written before the item was complete."""
        if index not in self._open:
            return self._start_block(index, item)
        if isinstance(item, Compaction):
            return self._delta(index, {"type": "compaction_delta", **compaction_fields(item)})
        if index not in self._inputs or item.status != "completed":
            return b""
        text = free_form_input(item, "".join(self._inputs.pop(index)), self._report)
        if not text:
            return b""
        return self._delta(index, {"type": "input_json_delta", "partial_json": text})

    def _signature(self, index: int, item: ResponseItem) -> bytes:
        if isinstance(item, Reasoning):
            return self._delta(index, {"type": "signature_delta", "signature": item.signature})
        # Clients fail on a signature in any other block: Claude Code stops, pydantic-ai crashes.
        # In these two kinds the signature is part of the block.
        if not isinstance(item, (Compaction, Opaque)):
            self._report.dropped("/signature", "Messages has signatures on thinking only")
        return b""

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if is_event_of_other_wire("messages", event.event):
            self._report.dropped("/passthrough", "events that only another wire knows")
            return b""
        return self._flush() + self._write(event.data, event.event)

    def _on_completed(self, event: Completed) -> bytes:
        out = self._start_message() + self._close_broken()
        self._usage = event.usage or self._usage
        usage = self._usage
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            self._report.add("changed", "/usage", "Messages cannot leave usage unknown: zeros")
        stop_reason = native_stop(event.stop_reason, event.native_stop_reason, self._report)
        stop = {"stop_reason": stop_reason, "stop_sequence": event.stop_sequence}
        out += self._message_delta(stop)
        return out + self._write({"type": "message_stop"}, "message_stop")

    def _on_failed(self, event: Failed) -> bytes:
        # Calls with broken arguments stay open: the error comes instead of any closing.
        return self._flush_envelope() + self._write(error_body(event.error), "error")


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The Message that clients accumulate from the frames of a response."""
    message: JsonObject = {}
    blocks: dict[int, JsonObject] = {}
    for name, value in frames:
        match name:
            case "message_start":
                message = dict(value["message"])
            case "content_block_start":
                blocks[value["index"]] = dict(value["content_block"])
            case "content_block_delta":
                _add_delta(blocks[value["index"]], value["delta"])
            case "message_delta":
                usage = {**message["usage"], **value["usage"]}
                message = {**message, **value["delta"], "usage": usage}
            case "message_stop":
                # Bedrock's fields are there.
                message |= without_keys(value, "type")
            case _:
                pass
    message["content"] = [blocks[index] for index in sorted(blocks)]
    return message


def _add_delta(block: JsonObject, delta: JsonObject) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case "input_json_delta" if is_json(delta["partial_json"]):
            # Of a complete response the arguments come in one delta: in the provider's own bytes.
            block["input"] = Raw(delta["partial_json"].encode("utf-8"))
        case "compaction_delta":
            block |= without_keys(delta, "type")
        case _:
            pass


def _estimated_tokens(previous: Usage | None, usage: Usage) -> int:
    """Number of tokens by which the estimate of omitted thinking rose (wire: `thinking_delta`).

    0 if the usage has no such estimate.
    """
    estimate = count(usage.raw, ESTIMATE)
    if estimate is None:
        return 0
    before = None
    if previous is not None:
        before = count(previous.raw, ESTIMATE)
    return estimate - (before or 0)


def _starts_when_done(item: ResponseItem) -> bool:
    """Whether the start of the block must have the complete content, which is not there yet."""
    return isinstance(item, ServerToolResult) and not item.output
