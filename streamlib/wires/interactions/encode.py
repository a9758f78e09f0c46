"""Encodes events as a Gemini Interactions stream.

Each item of choice 0 is one step with its own index; overlapping items keep overlapping. A
truncated step gets no `step.stop`, since clients take a step with one for finished.

Buffered: `Created`, until the next event, so that its metadata are in `interaction.created`; usage
and metadata, until it is known whether they belong to `interaction.completed`; annotations of text
that is still to come; the arguments of provider-run and free-form calls, which are complete in one
delta.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Unpack

from msgspec import Raw

from streamlib.request.json_objects import without_keys
from streamlib.wires.encoders import is_event_of_other_wire, sse
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
from streamlib.wires.interactions.build_parts import content
from streamlib.wires.interactions.encode_objects import (
    ID_PREFIX,
    RESERVED,
    end_delta,
    error_body,
    has_step,
    interactions_usage,
    metadata_fields,
    native_status,
    start_of,
)
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
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    Document,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.wires.interactions import ByteOffsets

__all__ = ["Encoder", "body_of", "error_body"]

MEDIA_TYPES: Final = ("image", "audio", "video")
"""First halves of media types that are types of contents; any other is a document."""


class _Step:
    """One open step."""

    __slots__ = ("index", "item", "paragraph", "start", "texts", "waiting")

    def __init__(self, index: int, item: ResponseItem, start: JsonObject) -> None:
        self.index = index
        self.item = item
        self.start = start
        self.paragraph: tuple[str, int] | None = None
        """The paragraph of the summary that was written last."""
        self.texts: dict[int, list[str]] = {}
        """Fragments of each text, for the offsets of annotations."""
        self.waiting: list[AnnotationAdded] = []
        """Annotations of text that is still to come."""


class Encoder(WireEncoder):
    """Encodes one stream."""

    wire_api = "interactions"
    no_such_event = "Interactions has no such event"
    reserved_keys = RESERVED
    id_prefix = ID_PREFIX
    end_mark = b"event: done\ndata: [DONE]\n\n"

    def __init__(self, *, write: FrameWriter = sse, **names: Unpack[ResponseNames]) -> None:
        super().__init__(write, **names)
        self._interaction: JsonObject | None = None
        """The interaction of `interaction.created`, from `Created` on."""
        self._steps: dict[int, _Step] = {}
        """Open steps by the index of their item."""
        self._count = 0
        """Steps so far: the index of the next one."""
        self._usage_pending = False
        """Whether that usage is still to be sent."""

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._interaction = {
            "id": event.response_id or self._response_id,
            "object": "interaction",
            "model": event.model or self._model or "",
            "status": "in_progress",
        }
        return b""

    def _start(self) -> bytes:
        """`interaction.created`, once."""
        if self._started:
            return b""
        if self._interaction is None:
            self._on_created(Created())
        self._started = True
        event_id = self._envelope.pop("event_id", None)
        interaction = {**self._envelope, **(self._interaction or {})}
        self._envelope = {}
        if self._usage_pending:
            self._usage_pending = False
            interaction["usage"] = interactions_usage(self._usage, self._report)
        return self._event("interaction.created", _with_id({"interaction": interaction}, event_id))

    def _flush(self) -> bytes:
        """Everything that was buffered, since the stream goes on."""
        if not self._started:
            return self._start()
        if not self._usage_pending and not self._envelope:
            return b""
        event_id = self._envelope.pop("event_id", None)
        update: JsonObject = {
            **self._envelope,
            "interaction_id": (self._interaction or {}).get("id", ""),
            "status": "in_progress",
        }
        self._envelope = {}
        if self._usage_pending:
            self._usage_pending = False
            update["usage"] = interactions_usage(self._usage, self._report)
        return self._event("interaction.status_update", _with_id(update, event_id))

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        out = b""
        # `event_id` is the last field of an event: these values are of the next event.
        if "event_id" in self._envelope:
            out = self._flush()
        own = self._own_metadata(event.values)
        self._envelope.update(metadata_fields(own, self._report))
        return out

    def _on_usage(self, event: TokenCount) -> bytes:
        out = b""
        if self._usage_pending or "event_id" in self._envelope:
            out = self._flush()
        self._usage = event.usage
        self._usage_pending = True
        return out

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._flush()
        if not has_step(event.item, self._report):
            return out
        start = start_of(event.item, self._report)
        step = _Step(self._count, event.item, start)
        self._count += 1
        self._steps[event.index] = step
        return out + self._event("step.start", {"index": step.index, "step": start})

    def _delta(self, step: _Step, delta: JsonObject) -> bytes:
        return self._flush() + self._event("step.delta", {"index": step.index, "delta": delta})

    def _on_text(self, event: OutputTextDelta) -> bytes:
        step = self._steps.get(event.index)
        if event.logprobs:
            self._report.dropped("/logprobs", "Interactions has no logprobs")
        if step is None:
            return b""
        step.texts.setdefault(event.content_index, []).append(event.delta)
        out = self._delta(step, {"type": "text", "text": event.delta})
        if step.waiting:
            waiting, step.waiting = step.waiting, []
            for annotation in waiting:
                out += self._annotate(step, annotation)
        return out

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._report.dropped("/refusal", "a refusal is plain text in Interactions")
        step = self._steps.get(event.index)
        if step is None:
            return b""
        return self._delta(step, {"type": "text", "text": event.delta})

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._summary(event.index, ("content", event.content_index), event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        return self._summary(event.index, ("summary", event.summary_index), event.delta)

    def _summary(self, index: int, paragraph: tuple[str, int], text: str) -> bytes:
        step = self._steps.get(index)
        if step is None:
            return b""
        out = b""
        if step.paragraph not in (None, paragraph):
            # As the API does: an empty signature is between two paragraphs.
            out = self._delta(step, {"type": "thought_signature", "signature": ""})
        step.paragraph = paragraph
        summary = {"type": "text", "text": text}
        return out + self._delta(step, {"type": "thought_summary", "content": summary})

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        step = self._steps.get(event.index)
        if step is None or not isinstance(step.item, FunctionCall):
            return b""
        return self._delta(step, {"type": "arguments_delta", "arguments": event.delta})

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        step = self._steps.get(event.index)
        if step is None:
            return b""
        if not isinstance(event.annotation.get("type"), str):
            self._report.dropped("/annotations", "a citation of another wire")
            return b""
        return self._annotate(step, event)

    def _annotate(self, step: _Step, event: AnnotationAdded, *, is_final: bool = False) -> bytes:
        offsets = ByteOffsets("".join(step.texts.get(event.content_index, ())))
        if not is_final and not offsets.reaches(event.annotation, in_bytes=False):
            step.waiting.append(event)
            return b""
        annotations = [offsets.in_bytes(event.annotation)]
        delta = {"type": "text_annotation_delta", "annotations": annotations}
        return self._delta(step, delta)

    def _on_media(self, event: MediaDelta) -> bytes:
        step = self._steps.get(event.index)
        if step is None or not isinstance(step.item, Message):
            self._report.dropped("/media", "Interactions has images and audio in its output only")
            return b""
        if event.transcript:
            self._report.dropped("/transcript", "Interactions has no transcript beside audio")
        if not event.data:
            return b""
        kind = "audio"
        if event.media_type:
            kind = event.media_type.partition("/")[0]
        if kind not in MEDIA_TYPES:
            kind = "document"
        delta: JsonObject = {"type": kind, "data": event.data}
        if event.media_type:
            delta["mime_type"] = event.media_type
        return self._delta(step, delta)

    def _on_done(self, event: OutputItemDone) -> bytes:
        step = self._steps.pop(event.index, None)
        if step is None:
            return b""
        item = event.item
        out = self._flush()
        for annotation in step.waiting:
            out += self._annotate(step, annotation, is_final=True)
        if isinstance(item, Message):
            out += self._addressed_media(step, item)
        delta = end_delta(item, step.start)
        is_complete = item.status == "completed"
        if delta is not None and (is_complete or not isinstance(item, CustomToolCall)):
            out += self._delta(step, delta)
        self._report_losses(item)
        if is_complete:
            out += self._event("step.stop", {"index": step.index})
        return out

    def _addressed_media(self, step: _Step, item: Message) -> bytes:
        """The media that a message has as URLs only, which no delta carried."""
        out = b""
        for part in item.content:
            if isinstance(part, (Image, Audio, Document)) and not part.data:
                body = content(part, "/items", self._report)
                if body is not None:
                    out += self._delta(step, body)
        return out

    def _report_losses(self, item: ResponseItem) -> None:
        if item.signature and isinstance(item, Message):
            self._report.dropped("/signature", "Interactions has no signatures of texts")
        if isinstance(item, Reasoning) and item.encrypted_content:
            self._report.dropped("/encrypted_content", "Interactions has no encrypted reasoning")
        if isinstance(item, CustomToolCall):
            reason = "a free-form call is a function_call with its text as `input`"
            self._report.dropped("/custom_tool_call", reason)
        if isinstance(item, FunctionCall) and not item.arguments:
            self._report.dropped("/arguments", "empty arguments are written as {}")

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if is_event_of_other_wire("interactions", event.event):
            self._report.dropped("/passthrough", "events that only another wire knows")
            return b""
        return self._flush() + self._write(event.data, event.event)

    def _on_completed(self, event: Completed) -> bytes:
        out = self._start()
        self._ended = True
        if event.stop_sequence:
            self._report.dropped("/stop_sequence", "Interactions does not name it")
        event_id = self._envelope.pop("event_id", None)
        known: JsonObject = self._interaction or {}
        interaction: JsonObject = {
            **self._envelope,
            **known,
            "model": known.get("model") or event.model or "",
            "status": native_status(event.stop_reason, event.native_stop_reason, self._report),
        }
        usage = interactions_usage(event.usage or self._usage, self._report)
        if usage is not None:
            interaction["usage"] = usage
        body = _with_id({"interaction": interaction}, event_id)
        return out + self._event("interaction.completed", body)

    def _on_failed(self, event: Failed) -> bytes:
        self._ended = True
        return self._flush() + self._event("error", error_body(event.error))

    def _event(self, kind: str, fields: JsonObject) -> bytes:
        return self._write({"event_type": kind, **fields}, kind)


def _with_id(fields: JsonObject, event_id: Any) -> JsonObject:
    if event_id is None:
        return fields
    return {**fields, "event_id": event_id}


# --- bodies ---


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The interaction that clients accumulate from the events of a response."""
    interaction: JsonObject = {}
    steps: dict[int, JsonObject] = {}
    for name, value in frames:
        match name:
            case "interaction.created" | "interaction.completed":
                interaction |= value["interaction"]
            case "interaction.status_update":
                known = ("event_type", "event_id", "interaction_id", "status")
                interaction |= without_keys(value, *known)
            case "step.start":
                steps[value["index"]] = _started_step(value["step"])
            case "step.delta":
                _add_delta(steps[value["index"]], value["delta"])
            case _:
                pass
    for step in steps.values():
        # Where the next paragraph of a summary begins.
        step.pop(NEXT_PARAGRAPH, None)
    return {**interaction, "steps": [steps[index] for index in sorted(steps)]}


NEXT_PARAGRAPH: Final = "next paragraph"
"""Key of a step whose next summary is a paragraph of its own, while it is accumulated."""


def _started_step(start: JsonObject) -> JsonObject:
    step = dict(start)
    if step["type"] in ("model_output", "user_input"):
        step.setdefault("content", [])
    return step


def _add_delta(step: JsonObject, delta: JsonObject) -> None:
    kind = delta["type"]
    if kind == step["type"]:
        # Arguments or result of a tool that the provider ran.
        step |= without_keys(delta, "type")
        return
    match kind:
        case "text":
            _add_text(step["content"], delta["text"])
        case "text_annotation_delta":
            text = step["content"][-1]
            text["annotations"] = [*text.get("annotations", ()), *delta["annotations"]]
        case "thought_summary":
            paragraphs = step.setdefault("summary", [])
            if step.pop(NEXT_PARAGRAPH, False) or not paragraphs:
                paragraphs.append({"type": "text", "text": ""})
            paragraphs[-1]["text"] += delta["content"]["text"]
        case "thought_signature" if delta["signature"]:
            step["signature"] = delta["signature"]
        case "thought_signature":
            step[NEXT_PARAGRAPH] = True
        case "arguments_delta" if is_json(delta["arguments"]):
            # Of a complete response they come in one delta: in the provider's own bytes.
            step["arguments"] = Raw(delta["arguments"].encode("utf-8", "surrogatepass"))
        case "arguments_delta":
            pass
        case _:
            step["content"].append(delta)


def _add_text(contents: list[JsonObject], text: str) -> None:
    if not contents or contents[-1]["type"] != "text":
        contents.append({"type": "text", "text": ""})
    contents[-1]["text"] += text
