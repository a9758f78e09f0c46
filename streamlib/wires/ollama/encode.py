"""Encodes events as Ollama's /api/chat stream: one JSON object per line.

    {"model":"m","created_at":"…","message":{"role":"assistant","content":"Hi"},"done":false}
    {"model":"m","created_at":"…","message":{"role":"assistant","content":""},
     "done":true,"done_reason":"stop","eval_count":5}                          (one line)

Buffered: a call, until its arguments are complete, since the wire has complete calls only; usage
and metadata, which belong to the last line. A failed stream ends with `{"error": …}` and never has
`done: true`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Unpack

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import without_none
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.arguments import encoded_object
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
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
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
    StopReason,
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
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.ollama import TYPED_KEYS, USAGE_KEYS
from streamlib_parsers.wires.ollama import usage as read_usage

# --- what the lines of a stream and the body have in common ---

EPOCH: Final = "1970-01-01T00:00:00Z"
"""`created_at` of a response whose time is not known."""
KNOWN_DONE_REASONS: Final = frozenset({"stop", "length", "load", "unload"})
RESERVED_KEYS: Final = TYPED_KEYS | {"error"}
"""Envelope keys that have another meaning in a line."""
NOT_IN_OLLAMA: Final = "Ollama has no field for it"


def encode_line(value: JsonObject, name: str = "") -> bytes:
    """One line. Line breaks in JSON of the provider's own bytes become spaces."""
    return msgspec.json.encode(value).replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def call_object(item: FunctionCall | CustomToolCall, report: Report) -> JsonObject:
    """An entry of `tool_calls`: arguments in their own bytes, free text as `input`."""
    if isinstance(item, CustomToolCall):
        report.dropped("/custom_tool_call", "a free-form call has its text as `input`")
        arguments: Any = {"input": item.input}
    else:
        arguments = encoded_object(item.arguments, report)
    entry: JsonObject = {"id": item.call_id}
    function = {"name": flat_call_name(item), "arguments": arguments}
    if is_own(item, "ollama") and item.native:
        entry.update(item.native)
        function.update(item.native.get("function", {}))
        # The wire has the function last.
        entry.pop("function", None)
    entry["function"] = function
    return entry


def images_of(item: Message, report: Report) -> list[str]:
    """The images of a message in base64."""
    images: list[str] = []
    for part in item.content:
        if isinstance(part, Image) and part.data:
            images.append(part.data)
        elif not isinstance(part, (Text, Refusal)):
            report.dropped("/media", "Ollama has images as bytes only")
    return images


def done_reason(reason: StopReason, native: str | None, report: Report) -> str:
    """The native `done_reason` if it is one of this wire, else the nearest one."""
    if reason == "length":
        return "length"
    if native in KNOWN_DONE_REASONS and reason == "other":
        return native
    if reason not in ("stop", "tool_calls"):
        report.dropped("/stop_reason", f"Ollama has no value for {reason}: stop")
    return "stop"


def final_fields(
    reason: str, envelope: JsonObject, usage: Usage | None, report: Report
) -> JsonObject:
    """What the last line has beside its message."""
    fields: JsonObject = {"done": True, "done_reason": reason}
    for key, value in envelope.items():
        if key in RESERVED_KEYS:
            report.dropped(f"/metadata/{key}", "Ollama has another meaning for the key")
        else:
            fields[key] = value
    fields.update(_counts(usage, report))
    return fields


def _counts(usage: Usage | None, report: Report) -> JsonObject:
    if usage is None:
        return {}
    input_key, output_key = USAGE_KEYS
    counts = without_none({input_key: usage.input_tokens, output_key: usage.output_tokens})
    if not read_usage(counts).same_numbers(usage):
        report.dropped("/usage", "Ollama separates neither cached input nor reasoning")
    return counts


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error: only a message."""
    return {"error": error.message}


__all__ = ["Encoder", "body_of", "error_body"]


class Encoder(WireEncoder):
    """Encodes one stream.

    created_at: RFC 3339. An encoder has no clock; without it, the start of 1970 is written, which
    clients can read.
    """

    media_type = "application/x-ndjson"
    wire_api = "ollama"
    no_such_event = NOT_IN_OLLAMA

    def __init__(
        self,
        *,
        created_at: str = EPOCH,
        write: FrameWriter = encode_line,
        **names: Unpack[ResponseNames],
    ) -> None:
        super().__init__(write, **names)
        # Fields that every line repeats. The model is replaced by that of `Created`.
        self._common: JsonObject = {"model": self._model or "", "created_at": created_at}
        # Each item by index, as `OutputItemAdded` had it.
        self._items: dict[int, ResponseItem] = {}
        # Items of other choices and roles.
        self._left_out: set[int] = set()
        # Calls that were sent before they were done.
        self._sent_calls: set[int] = set()
        # Calls that had arguments.
        self._with_arguments: set[int] = set()

    def _item_line(self, index: int, *, logprobs: Any = None, **message: Any) -> bytes:
        """A line of one item, unless Ollama has no place for it."""
        if index in self._left_out:
            return b""
        line = {**self._common, "message": {"role": "assistant", "content": "", **message}}
        if logprobs:
            line["logprobs"] = list(logprobs)
        line["done"] = False
        return self._write(line, "")

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._identify(event)
        return b""

    def _identify(self, event: Created | Completed) -> None:
        if event.response_id is not None:
            self._report.dropped("/response_id", NOT_IN_OLLAMA)
        self._common["model"] = event.model or self._common["model"]

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._envelope.update(event.values)
        return b""

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = self._items[event.index] = event.item
        if item.choice:
            self._report.dropped("/choices", "Ollama has one choice")
            self._left_out.add(event.index)
        elif isinstance(item, Message) and item.role != "assistant":
            self._report.dropped("/role", "a response of Ollama has one role")
            self._left_out.add(event.index)
        return b""

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return self._item_line(event.index, logprobs=event.logprobs, content=event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._report.dropped("/refusal", "a refusal is plain text in Ollama")
        return self._item_line(event.index, content=event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._item_line(event.index, logprobs=event.logprobs, thinking=event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._report.dropped("/summary", "a summary is plain thinking in Ollama")
        return self._item_line(event.index, thinking=self._gaps.with_gap(event))

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        """A call of this wire, which comes complete in one delta and keeps its position.

        A call of another wire, or in fragments (from a dialect), waits until it is done.
        """
        item = self._items[event.index]
        is_first = event.index not in self._with_arguments
        self._with_arguments.add(event.index)
        if not is_first or not isinstance(item, FunctionCall):
            return b""
        if not self._is_own(item) or not item.name:
            return b""
        if not event.delta.startswith("{") or not is_json(event.delta):
            return b""
        self._sent_calls.add(event.index)
        call = msgspec.structs.replace(item, arguments=event.delta)
        return self._item_line(event.index, tool_calls=[call_object(call, self._report)])

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        self._report.dropped("/annotations", NOT_IN_OLLAMA)
        return b""

    def _on_media(self, event: MediaDelta) -> bytes:
        return b""  # sent complete, when its item is done

    def _on_done(self, event: OutputItemDone) -> bytes:
        item = event.item
        match item:
            case FunctionCall() | CustomToolCall():
                return self._end_call(event.index, item)
            case Message():
                images = images_of(item, self._report)
                if images:
                    return self._item_line(event.index, images=images)
            case Reasoning():
                pass
            case _:
                self._report.dropped(f"/{type(item).__name__}", NOT_IN_OLLAMA)
        return b""

    def _end_call(self, index: int, item: FunctionCall | CustomToolCall) -> bytes:
        if index in self._sent_calls:
            return b""
        if item.status == "incomplete":
            reason = "an incomplete call is left out: it would look callable"
            self._report.dropped("/incomplete", reason)
            return b""
        return self._item_line(index, tool_calls=[call_object(item, self._report)])

    # --- the end ---

    def _on_completed(self, event: Completed) -> bytes:
        self._identify(event)
        reason = done_reason(event.stop_reason, event.native_stop_reason, self._report)
        usage = event.usage or self._usage
        fields = final_fields(reason, self._envelope, usage, self._report)
        message = {"role": "assistant", "content": ""}
        return self._write({**self._common, "message": message, **fields}, "")

    def _on_failed(self, event: Failed) -> bytes:
        return self._write(error_body(event.error), "")


def body_of(frames: Iterable[EncodedFrame]) -> Raw:
    """The last line, with the message that clients accumulate from all of them."""
    message: JsonObject = {}
    line: JsonObject = {}
    for _, line in frames:
        for key, value in line["message"].items():
            if key in message and key != "role":
                message[key] = message[key] + value
            else:
                message[key] = value
    return Raw(encode_line({**line, "message": message}))
