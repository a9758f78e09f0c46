"""Encodes events as an OpenAI Responses stream.

Each item of choice 0 is one output item with its own `output_index`; overlapping items keep
overlapping. As official clients expect it, a part or text is sent again complete when it ends, and
all items are sent once more in the event that ends the stream.

Buffered: `Created`, until the next event, so that its metadata is in `response.created`; usage
and metadata, until it is known whether they belong to the final event; an incomplete item, until it
is known whether the stream ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, Unpack

from streamlib.wires.encoders import is_event_of_other_wire, sse
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
from streamlib.wires.responses.encode_objects import (
    ARGUMENT_EVENTS,
    ID_PREFIX,
    OUTPUT_TEXT,
    REASONING,
    REFUSAL,
    SUMMARY,
    OutputItem,
    TextKind,
    citation,
    encodable,
    ending,
    error_body,
    error_object,
    generated_id,
    images_of,
    incomplete_details,
    item_object,
    report_unknown_counts,
    response_object,
    responses_usage,
)
from streamlib.wires.responses.repeated_settings import DEFAULTS, request_settings
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
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
from streamlib_parsers.item_text import call_text
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    ServerToolCall,
)
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses.events import PROGRESS, TYPED_KEYS
from streamlib_parsers.wires.responses.items import outline

__all__ = ["ECHOED", "Encoder", "body_of", "error_body", "request_settings"]

ECHOED: Final = (
    *DEFAULTS,
    "completed_at",
    "created_at",
    "incomplete_details",  # the stop reason has it
    "prompt_cache_retention",
)
"""Metadata that repeats the request, or says when the response was made."""

REPEATED_KEYS: Final = 64
"""Maximum metadata keys in each response object but the last. Without it, a provider that sends a
new key in every event would fill the stream with repetitions."""


TextDelta: TypeAlias = (
    OutputTextDelta | RefusalDelta | ReasoningContentDelta | ReasoningSummaryDelta
)


class Encoder(WireEncoder):
    """Encodes one stream.

    created_at: unix seconds. An encoder has no clock; without it, the response has only what the
    events have.
    settings: the request's settings (`request_settings`). With them, `created_at` and `clock`, each
    response object has all members that Open Responses requires.
    clock: returns the unix seconds of `completed_at`; called once.
    """

    wire_api = "responses"
    no_such_event = "Responses has no such event"
    has_failed_bodies = True
    names_agents = True
    # `type` is of events: a body that has one would be read as one
    reserved_keys = TYPED_KEYS | {"type"}
    id_prefix = ID_PREFIX
    end_mark = b"data: [DONE]\n\n"  # Open Responses requires it

    def __init__(
        self,
        *,
        created_at: int | None = None,
        settings: JsonObject | None = None,
        clock: Callable[[], float] | None = None,
        write: FrameWriter = sse,
        **names: Unpack[ResponseNames],
    ) -> None:
        super().__init__(write, **names)
        # Fields of every response object. Id and model are replaced by those of `Created`.
        self._common: JsonObject = {"id": self._response_id, "model": self._model or ""}
        if created_at is not None:
            self._common.update(created_at=created_at, parallel_tool_calls=True, tool_choice="auto")
        # Settings of the request, which every response object repeats.
        self._settings = settings
        # Read when the response is completed.
        self._clock = clock
        # The last `sequence_number`.
        self._sequence = -1
        # Whether `Created` came.
        self._created = False
        # The first `REPEATED_KEYS` of the metadata: every response object repeats them, and the
        # last one has all.
        self._repeated: JsonObject = {}
        # Whether metadata or usage came that no response object had yet.
        self._metadata_pending = False
        self._usage_pending = False
        # Output items by item index; images that follow a message have negative keys.
        self._outputs: dict[int, OutputItem] = {}
        # Incomplete items that are done, but not sent as done.
        self._incomplete: list[OutputItem] = []
        # Whether all items were made on this wire; None before the first item.
        self._all_own: bool | None = None

    # --- the envelope ---

    def _frame(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return self._write({"type": kind, "sequence_number": self._sequence, **fields}, kind)

    def _item_frame(self, output: OutputItem, kind: str, **fields: Any) -> bytes:
        address = {"item_id": output.id, "output_index": output.output_index, **output.agent}
        return self._frame(kind, **address, **fields)

    def _response(
        self, status: str, output: Iterable[JsonObject] = (), **fields: Any
    ) -> JsonObject:
        own = self._all_own is not False
        fields["usage"] = responses_usage(
            self._usage, own=own, with_details=self._settings is not None
        )
        envelope = self._envelope
        if status == "in_progress":
            envelope = self._repeated
        return response_object(self._common, status, output, envelope, self._settings, **fields)

    def _on_created(self, event: Created) -> bytes:
        self._created = True
        self._common["id"] = event.response_id or self._common["id"]
        self._common["model"] = event.model or self._common["model"]
        return b""

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        out = b""
        # A response object has metadata before usage; the reverse order takes two events.
        if self._metadata_pending or self._usage_pending or self._incomplete:
            out = self._flush()
        metadata = self._own_metadata(event.values)
        self._envelope.update(metadata)
        for key, value in metadata.items():
            if key in self._repeated or len(self._repeated) < REPEATED_KEYS:
                self._repeated[key] = value
                self._metadata_pending = True
        return out

    def _on_usage(self, event: TokenCount) -> bytes:
        out = b""
        if self._usage_pending or self._incomplete:
            out = self._flush()
        self._report_unknown_counts(event.usage)
        self._usage = event.usage
        self._usage_pending = True
        return out

    def _report_unknown_counts(self, usage: Usage | None) -> None:
        report_unknown_counts(usage, self._report, with_details=self._settings is not None)

    def _start_response(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        self._metadata_pending = False
        self._usage_pending = False
        response = self._response("in_progress")
        created = self._frame("response.created", response=response)
        return created + self._frame("response.in_progress", response=response)

    def _flush(self) -> bytes:
        """Everything that was buffered, since the stream goes on."""
        out = self._start_response()
        if self._metadata_pending or self._usage_pending:
            self._metadata_pending = False
            self._usage_pending = False
            out += self._frame("response.in_progress", response=self._response("in_progress"))
        return out + self._flush_incomplete()

    def _flush_incomplete(self) -> bytes:
        outputs, self._incomplete = self._incomplete, []
        out = b""
        for output in outputs:
            out += self._finish(output)
        return out

    def _flush_unordered(self) -> bytes:
        """Incomplete items that the end of the stream would close in another order.

        A parser closes open items at the end in the order of their `output_index`. Items that were
        closed in another order must therefore be sent as done; the last ascending run may stay.
        """
        start = 0
        for position in range(1, len(self._incomplete)):
            previous = self._incomplete[position - 1]
            if previous.output_index > self._incomplete[position].output_index:
                start = position
        remaining = self._incomplete[start:]
        self._incomplete = self._incomplete[:start]
        out = b""
        if self._incomplete:
            out = self._flush()
        self._incomplete = remaining
        return out

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._flush()
        self._all_own = self._all_own is not False and self._is_own(event.item)
        if event.item.choice:
            self._report.dropped("/choices", "Responses has one choice")
            return out
        item = encodable(event.item, self._report)
        if item is None:
            return out
        output = OutputItem(len(self._outputs), event.item)
        self._outputs[event.index] = output
        body = item_object(outline(item), "in_progress", self._common["id"], output.output_index)
        output.kind = str(body.get("type", ""))
        output.id = body.get("id") or self._generated_id(output.kind, output.output_index)
        if isinstance(body.get("agent"), dict):
            output.agent = {"agent": body["agent"]}
        index = output.output_index
        kind = "response.output_item.added"
        return out + self._frame(kind, output_index=index, item=body, **output.agent)

    def _generated_id(self, kind: str, output_index: int) -> str:
        return generated_id(kind, self._common["id"], output_index)

    def _on_text(self, event: OutputTextDelta) -> bytes:
        logprobs = list(event.logprobs or ())
        return self._text_delta(event, OUTPUT_TEXT, event.content_index, logprobs=logprobs)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        return self._text_delta(event, REFUSAL, event.content_index)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._text_delta(event, REASONING, event.content_index)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        return self._text_delta(event, SUMMARY, event.summary_index)

    def _text_delta(self, event: TextDelta, kind: TextKind, part: int, **fields: Any) -> bytes:
        output = self._outputs.get(event.index)
        if output is None:
            return b""
        if kind is not OUTPUT_TEXT and getattr(event, "logprobs", None):
            self._report.dropped("/logprobs", "Responses has logprobs of text only")
        out = self._flush() + self._start_part(output, kind, part)
        output.parts[kind, part].append(event.delta)
        index = {kind.index_key: part}
        return out + self._item_frame(
            output, f"{kind.events}.delta", **index, delta=event.delta, **fields
        )

    def _start_part(self, output: OutputItem, kind: TextKind, part: int) -> bytes:
        if (kind, part) in output.parts:
            return b""
        output.parts[kind, part] = []
        return self._part_frame(output, "added", kind, part, "")

    def _part_frame(
        self, output: OutputItem, state: str, kind: TextKind, part: int, text: str
    ) -> bytes:
        body: JsonObject = {"type": kind.part_type, kind.text_key: text}
        if kind is OUTPUT_TEXT:
            body.update(annotations=output.annotations.get(part, []), logprobs=[])
        index = {kind.index_key: part}
        return self._item_frame(output, f"{kind.part_events}.{state}", **index, part=body)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        output = self._outputs.get(event.index)
        if output is None:
            return b""
        out = self._flush()
        if output.kind in ARGUMENT_EVENTS:
            prefix, _ = ARGUMENT_EVENTS[output.kind]
            out += self._item_frame(output, f"{prefix}.delta", delta=event.delta)
        return out

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        output = self._outputs.get(event.index)
        if output is None:
            return b""
        annotation = citation(event.annotation, self._report, own=self._is_own(output.item))
        if annotation is None:
            return b""
        out = self._flush() + self._start_part(output, OUTPUT_TEXT, event.content_index)
        annotations = output.annotations.setdefault(event.content_index, [])
        annotations.append(annotation)
        return out + self._item_frame(
            output,
            "response.output_text.annotation.added",
            content_index=event.content_index,
            annotation_index=len(annotations) - 1,
            annotation=annotation,
        )

    def _on_media(self, event: MediaDelta) -> bytes:
        output = self._outputs.get(event.index)
        if output is not None and output.kind == "image_generation_call" and event.data:
            return self._flush() + self._item_frame(
                output,
                "response.image_generation_call.partial_image",
                partial_image_index=event.content_index,
                partial_image_b64=event.data,
                output_format=(event.media_type or "image/png").removeprefix("image/"),
            )
        if output is None or output.kind != "message" or event.media_type:
            reason = "Responses streams audio without its type, and images of its own tool only"
            self._report.dropped("/media", reason)
            return b""
        out = self._flush()
        index = event.content_index
        if event.data:
            out += self._item_frame(
                output, "response.audio.delta", content_index=index, delta=event.data
            )
        if event.transcript:
            kind = "response.audio.transcript.delta"
            out += self._item_frame(output, kind, content_index=index, delta=event.transcript)
        return out

    def _on_progress(self, event: ItemProgress) -> bytes:
        output = self._outputs.get(event.index)
        if output is not None:
            kind = f"response.{output.kind}.{event.status}"
            if kind in PROGRESS:
                return self._flush() + self._item_frame(output, kind)
        self._report.dropped("/progress", "this item has no status event on Responses")
        return b""

    # --- ends of items ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        output = self._outputs.get(event.index)
        if output is None:
            return b""
        item = encodable(event.item, self._report)
        if item is None:
            return b""
        if item.id not in (None, output.id):
            self._report.dropped("/id", "an item keeps the id that it started with")
        output.item = item
        output.images = images_of(event.item)
        output.body = item_object(item, item.status, self._common["id"], output.output_index)
        if "id" in output.body:
            output.body["id"] = output.id
        if item.status == "incomplete":
            self._incomplete.append(output)
            return b""
        return self._flush() + self._finish(output)

    def _finish(self, output: OutputItem) -> bytes:
        out = b""
        for (kind, part), fragments in output.parts.items():
            text = "".join(fragments)
            fields: JsonObject = {kind.index_key: part, kind.text_key: text}
            if kind is OUTPUT_TEXT:
                fields["logprobs"] = []
            out += self._item_frame(output, f"{kind.events}.done", **fields)
            out += self._part_frame(output, "done", kind, part, text)
        is_call = isinstance(output.item, (FunctionCall, CustomToolCall, ServerToolCall))
        if is_call and output.kind in ARGUMENT_EVENTS:
            prefix, key = ARGUMENT_EVENTS[output.kind]
            complete = {key: call_text(output.item)}
            out += self._item_frame(output, f"{prefix}.done", **complete)
        done = {"output_index": output.output_index, "item": output.body, **output.agent}
        out += self._frame("response.output_item.done", **done)
        for image in output.images:
            out += self._image(image, output)
        return out

    def _image(self, image: JsonObject, message: OutputItem) -> bytes:
        """An image of a message, as an item that no event announced."""
        index = len(self._outputs)
        output = OutputItem(index, message.item)
        # A key that no item of the events has.
        self._outputs[-index] = output
        identified = {**image, "id": self._generated_id(image["type"], index), **message.agent}
        output.body = {**identified, "status": "completed"}
        added = {**identified, "status": "in_progress", "result": None}
        out = self._frame("response.output_item.added", output_index=index, item=added)
        return out + self._frame("response.output_item.done", output_index=index, item=output.body)

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        data = event.data
        is_event = isinstance(data, dict) and data.get("type", event.event) == event.event
        if not is_event or not self._may_pass(event.event):
            self._report.dropped("/passthrough", "an event that only another wire knows")
            return b""
        out = b""
        if self._created:
            out = self._flush()
        return out + self._write(data, event.event)

    def _may_pass(self, kind: str) -> bool:
        """Whether an unknown event may be of this wire; without a name, whether it certainly is."""
        if is_event_of_other_wire("responses", kind):
            return False
        if kind:
            return self._all_own is not False
        return self._all_own is True or not self._created

    def _on_completed(self, event: Completed) -> bytes:
        out = self._start_response() + self._flush_unordered()
        if not self._metadata_pending and not self._usage_pending:
            out += self._flush_incomplete()
        self._usage = event.usage or self._usage
        self._report_unknown_counts(self._usage)
        self._common["model"] = event.model or self._common["model"]
        status, reason = ending(
            event.stop_reason, event.native_stop_reason, self._report, self._outputs.values()
        )
        if event.stop_sequence is not None:
            self._report.dropped("/stop_sequence", "Responses has no stop sequences")
        fields: JsonObject = {"incomplete_details": incomplete_details(self._envelope, reason)}
        if self._clock is not None and status == "completed":
            fields["completed_at"] = self._envelope.get("completed_at") or int(self._clock())
        response = self._response(status, self._output(), **fields)
        self._ended = True
        return out + self._frame(f"response.{status}", response=response)

    def _output(self) -> list[JsonObject]:
        return [output.body for output in self._outputs.values() if output.body]

    def _on_failed(self, event: Failed) -> bytes:
        """`error`, then `response.failed`, as OpenAI does it.

        Truncated items stay open: by that a client recognises them.
        """
        out = self._flush_unordered()
        self._incomplete.clear()
        if self._created:
            out += self._flush()
        error = error_object(event.error)
        if error is not event.error.detail:
            self._report.dropped("/error", f"written as {error['code']}")
        fields: JsonObject = {"error": error}
        if event.error.status is not None:
            fields["status"] = event.error.status
        response = self._response("failed", self._output(), error=error)
        self._ended = True
        out += self._frame("error", **fields)
        return out + self._frame("response.failed", response=response)


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The Response of the last frame: it has everything once more."""
    response: JsonObject = {}
    for _, value in frames:
        response = value.get("response", response)
    return response
