"""Encodes events as a Bedrock ConverseStream.

Each item of choice 0 is one content block; overlapping items keep overlapping. Buffered: the start
of a text or reasoning, until its first delta opens it (the wire has no other start for them) or
another event comes first; usage and metadata, until the end, since clients read them there; the
input of a free-form call, until it is complete, since it becomes JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Unpack

from msgspec import Raw

from streamlib.wires.arguments import free_form_input, is_free_form
from streamlib.wires.bedrock_frames import MEDIA_TYPE, error_body, event_frame, exception_frame
from streamlib.wires.converse.encode_objects import (
    IMAGE_FORMATS,
    OWN_KEYS,
    RESERVED_KEYS,
    STOP_FIELDS,
    base64_state,
    converse_usage,
    empty_delta,
    has_block,
    has_broken_arguments,
    image_error,
    native_stop,
    result_content,
    s3_source,
    start_of,
)
from streamlib.wires.encoders import is_event_of_other_wire
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
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
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolResult,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.notes import BESIDE, split_note
from streamlib_parsers.usage import Usage

__all__ = ["Encoder", "body_of", "error_body"]

EVENT_NAME_LENGTH: Final = 1024
"""Maximum characters of an event's name; a frame header can hold little more."""


class Encoder(WireEncoder):
    """Encodes one stream."""

    media_type = MEDIA_TYPE
    wire_api = "converse"
    reserved_keys = RESERVED_KEYS
    no_such_event = "Converse has no such event"

    def __init__(self, *, write: FrameWriter = event_frame, **names: Unpack[ResponseNames]) -> None:
        super().__init__(write, **names)
        # Whether all items were made on this wire; None before the first item.
        self._all_own: bool | None = None
        # Items of choice 0 that are open, as `OutputItemAdded` had them.
        self._items: dict[int, ResponseItem] = {}
        # Index of the content block of each started item, by item index.
        self._blocks: dict[int, int] = {}
        # The text or reasoning whose block its first delta will open.
        self._unopened: int | None = None
        # Items whose block is an image.
        self._images: set[int] = set()
        # Input fragments of each call whose input may be plain text, by item index.
        self._inputs: dict[int, list[str]] = {}

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._report_identity(event)
        return b""

    def _report_identity(self, event: Created | Completed) -> None:
        if event.response_id or event.model:
            self._report.dropped("/response_id", "Converse has neither response id nor model")

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._envelope.update(self._own_metadata(event.values))
        return b""

    def _start_message(self) -> bytes:
        """`messageStart`, with the metadata that came before the first block."""
        if self._started:
            return b""
        envelope, self._envelope = self._envelope, {}
        return self._message_start(self._own_fields(envelope))

    def _message_start(self, fields: JsonObject) -> bytes:
        self._started = True
        return self._write({"role": "assistant", **fields}, "messageStart")

    def _own_fields(self, values: JsonObject) -> JsonObject:
        """The envelope keys without those of another wire."""
        if self._all_own:
            return values
        fields: JsonObject = {}
        for key, value in values.items():
            if key in OWN_KEYS:
                fields[key] = value
            else:
                self._report.dropped(f"/metadata/{key}", "Converse has no such key")
        return fields

    # --- blocks ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        self._all_own = self._all_own is not False and self._is_own(item)
        out = self._start_message() + self._open_pending()
        if item.choice:
            self._report.dropped("/choices", "Converse has one choice")
            return out
        if not has_block(item) or self._is_unreadable(item):
            self._report.dropped(f"/{type(item).__name__}", "Converse has no such block")
            return out
        self._items[event.index] = item
        if isinstance(item, CustomToolCall):
            reason = "a free-form call is a toolUse with its text as `input`"
            self._report.dropped("/custom_tool_call", reason)
        if is_free_form(item, own=self._is_own(item)):
            self._inputs[event.index] = []
        start = start_of(item)
        if start is None:
            self._unopened = event.index
            return out
        return out + self._start_block(event.index, start)

    def _is_unreadable(self, item: ResponseItem) -> bool:
        """Whether an item is reasoning of another provider that consists of its state."""
        is_redacted = isinstance(item, Reasoning) and item.redacted
        return is_redacted and not self._is_own(item)

    def _start_block(self, index: int, start: JsonObject) -> bytes:
        if "image" in start:
            self._images.add(index)
        block = len(self._blocks)
        self._blocks[index] = block
        return self._write({"contentBlockIndex": block, "start": start}, "contentBlockStart")

    def _open_pending(self, index: int | None = None) -> bytes:
        """Opens the block that waits for its first delta, unless it is the block of `index`."""
        if self._unopened is None or self._unopened == index:
            return b""
        return self._delta(self._unopened, empty_delta(self._items[self._unopened]))

    def _delta(self, index: int, delta: JsonObject) -> bytes:
        # Nearly every event of a stream is a delta of an open block, while no other waits.
        block = self._blocks.get(index)
        if block is not None and self._unopened is None:
            return self._write({"contentBlockIndex": block, "delta": delta}, "contentBlockDelta")
        return self._first_delta(index, delta)

    def _first_delta(self, index: int, delta: JsonObject) -> bytes:
        """Opens the block of a delta, after the block of an earlier item that waits for one."""
        out = self._open_pending(index)
        if index == self._unopened:
            self._unopened = None
            self._blocks[index] = len(self._blocks)
        if index not in self._blocks:
            return out
        block = self._blocks[index]
        return out + self._write({"contentBlockIndex": block, "delta": delta}, "contentBlockDelta")

    def _text_delta(self, index: int, text: str) -> bytes:
        if index in self._images:
            self._report.dropped("/media", "an image block of Converse has no text")
            return b""
        return self._delta(index, {"text": text})

    def _on_text(self, event: OutputTextDelta) -> bytes:
        if event.logprobs:
            self._report.dropped("/logprobs", "Converse has no logprobs")
        return self._text_delta(event.index, event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._report.dropped("/refusal", "a refusal is plain text in Converse")
        return self._text_delta(event.index, event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._delta(event.index, {"reasoningContent": {"text": event.delta}})

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._report.dropped("/summary", "a summary is plain reasoning in Converse")
        text = self._gaps.with_gap(event)
        return self._delta(event.index, {"reasoningContent": {"text": text}})

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        fragments = self._inputs.get(event.index)
        if fragments is not None:
            fragments.append(event.delta)
            return b""
        return self._delta(event.index, {"toolUse": {"input": event.delta}})

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        if not self._all_own:
            self._report.dropped("/annotations", "a citation of another wire")
            return b""
        return self._delta(event.index, {"citation": event.annotation})

    def _on_media(self, event: MediaDelta) -> bytes:
        out = b""
        if event.transcript:
            self._report.dropped("/media", "a transcript is plain text in Converse")
            out = self._text_delta(event.index, event.transcript)
        if event.data is None:
            return out
        if event.index == self._unopened and event.media_type in IMAGE_FORMATS:
            self._unopened = None
            start = {"image": {"format": IMAGE_FORMATS[event.media_type]}}
            out = self._start_block(event.index, start)
        if event.index not in self._images:
            self._report_image()
            return out
        return out + self._delta(event.index, {"image": {"source": {"bytes": event.data}}})

    def _report_image(self) -> None:
        reason = "Converse has images of its own formats only, each in a block of its own"
        self._report.dropped("/media", reason)

    # --- ends of blocks ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        index, item = event.index, event.item
        if index not in self._items:
            return b""
        if isinstance(item, (Message, Reasoning)) and item.native and self._is_own(item):
            # Their blocks open with a delta, or a start, of content alone.
            inside, siblings = split_note(item.native, BESIDE)
            names = ", ".join(sorted({*inside, *siblings}))
            self._report.dropped(
                "/native", f"such a block is written without further keys: {names}"
            )
        out = self._open_pending(index)
        if self._unopened == index and isinstance(item, Message):
            start = start_of(item)
            if start is not None and not self._image_deltas(item):
                self._report_image()
                self._unopened = None
            elif start is not None:
                # An image with an address: no delta carried it.
                self._unopened = None
                out += self._start_block(index, start)
        for delta in self._final_deltas(index, item):
            out += self._delta(index, delta)
        if self._unopened == index:
            # An item without any delta still becomes a block.
            out += self._delta(index, empty_delta(item))
        # A truncated block stays open: parsers recognise the truncation by that.
        is_closed = item.status == "completed" or has_broken_arguments(item)
        if index in self._blocks and is_closed:
            out += self._write({"contentBlockIndex": self._blocks[index]}, "contentBlockStop")
        del self._items[index]
        return out

    def _final_deltas(self, index: int, item: ResponseItem) -> list[JsonObject]:
        """Deltas of what only the final item has.

        Those are signatures, encrypted reasoning, results, and inputs that had to be complete.
        """
        if isinstance(item, Reasoning):
            return self._state_deltas(item)
        if item.signature:
            self._report.dropped("/signature", "only reasoning has a signature in Converse")
        if isinstance(item, ServerToolResult):
            if not item.output:
                return []
            return [{"toolResult": result_content(item)}]
        if index in self._inputs or isinstance(item, FunctionCall):
            return self._input_deltas(index, item)
        if index in self._images and isinstance(item, Message) and item.content:
            return self._image_deltas(item)
        return []

    def _input_deltas(self, index: int, item: ResponseItem) -> list[JsonObject]:
        """The input of a call, where it had to be complete or there is none."""
        if item.status != "completed":
            return []
        text = ""
        if index in self._inputs:
            text = free_form_input(item, "".join(self._inputs.pop(index)), self._report)
        elif isinstance(item, FunctionCall) and not item.arguments and not self._is_own(item):
            self._report.dropped("/arguments", "empty arguments are written as {}")
            text = "{}"
        if not text:
            return []
        return [{"toolUse": {"input": text}}]

    def _image_deltas(self, item: Message) -> list[JsonObject]:
        image = item.content[0]
        if not isinstance(image, Image):
            return []
        deltas: list[JsonObject] = []
        source = s3_source(image)
        # Otherwise its bytes were streamed.
        if source is not None:
            deltas.append({"image": {"source": source}})
        error = image_error(image)
        if error is not None and self._is_own(item):
            deltas.append({"image": {"error": error}})
        return deltas

    def _state_deltas(self, item: Reasoning) -> list[JsonObject]:
        state = base64_state(item)
        if item.encrypted_content and state is None:
            reason = "Converse carries encrypted reasoning as redacted content in base64 only"
            self._report.dropped("/encrypted_content", reason)
        deltas: list[JsonObject] = []
        if state:
            deltas.append({"reasoningContent": {"redactedContent": state}})
        if item.signature:
            deltas.append({"reasoningContent": {"signature": item.signature}})
        return deltas

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if self._all_own is False or is_event_of_other_wire("converse", event.event):
            self._report.dropped("/passthrough", "events that only another wire knows")
            return b""
        out = self._start_message() + self._open_pending()
        return out + self._write(event.data, event.event[:EVENT_NAME_LENGTH])

    def _on_completed(self, event: Completed) -> bytes:
        self._report_identity(event)
        out = b""
        if not self._started:
            # Without items, metadata belongs to the end.
            out = self._message_start({})
        out += self._open_pending()
        envelope = self._own_fields(self._envelope)
        reason = native_stop(event, self._report, foreign=self._all_own is False)
        stop: JsonObject = {"stopReason": reason}
        stop_fields = envelope.pop(STOP_FIELDS, None)
        if stop_fields:
            stop[STOP_FIELDS] = stop_fields
        elif event.stop_sequence:
            stop[STOP_FIELDS] = {"stop_sequence": event.stop_sequence}
        out += self._write(stop, "messageStop")
        metadata = self._metadata(event.usage or self._usage, envelope)
        if metadata:
            out += self._write(metadata, "metadata")
        return out

    def _metadata(self, usage: Usage | None, envelope: JsonObject) -> JsonObject:
        """The fields of `metadata`.

        Clients rely on its numbers: for a response of another wire, unknown ones are zeros.
        """
        fields: JsonObject = {}
        usage_fields = converse_usage(usage, self._report, complete=self._all_own is False)
        if usage_fields:
            fields["usage"] = usage_fields
        if self._all_own is False:
            fields["metrics"] = {"latencyMs": 0}
        return {**fields, **envelope}

    def _on_failed(self, event: Failed) -> bytes:
        return self._open_pending() + exception_frame(event.error)


# --- bodies ---


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The Converse body that clients accumulate from the frames of a response."""
    body: JsonObject = {}
    blocks: dict[int, JsonObject] = {}
    for name, value in frames:
        match name:
            case "contentBlockStart":
                blocks[value["contentBlockIndex"]] = _started_block(value["start"])
            case "contentBlockDelta":
                block = blocks.setdefault(value["contentBlockIndex"], {})
                _add_delta(block, value["delta"])
            case "contentBlockStop":
                pass
            case _:
                body |= value
    content = [_complete_block(blocks[index]) for index in sorted(blocks)]
    message = {"role": body.pop("role"), "content": content}
    return {"output": {"message": message}, **body}


def _started_block(start: JsonObject) -> JsonObject:
    """A block of its own, to which deltas can be added."""
    block: JsonObject = {}
    for kind, fields in start.items():
        block[kind] = dict(fields) if isinstance(fields, dict) else fields
    if "toolUse" in block:
        block["toolUse"].setdefault("input", Raw(b"{}"))
    if "toolResult" in block:
        block["toolResult"].setdefault("content", [])
    return block


def _add_delta(block: JsonObject, delta: JsonObject) -> None:
    match delta:
        case {"text": str(text)}:
            block["text"] = block.get("text", "") + text
        case {"reasoningContent": dict(fields)}:
            known = block.setdefault("reasoningContent", {})
            for key, text in fields.items():
                known[key] = known.get(key, "") + text
        case {"toolUse": {"input": str(arguments)}} if is_json(arguments):
            # Of a complete response the input comes in one delta: in the provider's own bytes.
            block["toolUse"]["input"] = Raw(arguments.encode("utf-8"))
        case {"toolResult": list(content)}:
            block["toolResult"]["content"] = content
        case {"image": dict(fields)}:
            block["image"] |= fields
        case {"citation": citation}:
            block.setdefault("citations", []).append(citation)
        case _:
            pass


def _complete_block(block: JsonObject) -> JsonObject:
    """A block in the form that it has in a body."""
    reasoning = block.get("reasoningContent", {})
    if "text" in reasoning:
        return {"reasoningContent": {"reasoningText": reasoning}}
    if "citations" in block:
        text = {"text": block["text"]}
        return {"citationsContent": {"content": [text], "citations": block["citations"]}}
    return block
