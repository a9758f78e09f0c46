"""Events as a Bedrock ConverseStream or a whole Converse body.

Each item of choice 0 is one content block; overlapping items stay overlapping. Held back: the begin of a text or a thought, until its
first delta opens it (the wire has no other start for them) or another event wants its place; usage and metadata, until the end, since
clients read them there; the input of a free-form call, until it is whole, for it becomes JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.request.report import Change, Report
from streamlib.wires.bedrock_frames import MEDIA_TYPE, error_body, event_frame, exception_frame
from streamlib.wires.converse.encode_blocks import (
    IMAGE_TYPES,
    block_of,
    can_stand,
    free_form,
    is_broken,
    is_own,
    native_stop,
    on_s3,
    opening,
    results,
    sealed,
    start_of,
    usage_object,
)
from streamlib.wires.encoders import is_foreign_event
from streamlib_parsers.accumulate import Response
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
    TokenCount,
)
from streamlib_parsers.items import (
    CustomToolCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolResult,
)
from streamlib_parsers.usage import Usage

__all__ = ["Encoder", "encode_body", "error_body"]

STOP_FIELDS: Final = "additionalModelResponseFields"
OWN_KEYS: Final = frozenset({STOP_FIELDS, "metrics", "trace", "performanceConfig", "serviceTier"})
"""Envelope keys of this wire; those of others are left out."""
LONGEST_NAME: Final = 1024
"""Characters of an event's name; a frame's header holds little more."""


class Encoder:
    """Writes one stream."""

    media_type = MEDIA_TYPE

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        self._losses = Report()
        self._started = False
        self._foreign = False
        self._items: dict[int, ResponseItem] = {}
        self._blocks: dict[int, int] = {}
        self._pending: int | None = None
        self._images: set[int] = set()
        self._paragraphs: set[tuple[int, int]] = set()
        self._inputs: dict[int, list[str]] = {}
        self._envelope: JsonObject = {}
        self._usage: Usage | None = None

    @property
    def report(self) -> list[Change]:
        """What Converse could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        return _HANDLERS[type(event)](self, event)

    def close(self) -> bytes:
        """Converse has no end mark of its own."""
        return b""

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        if event.response_id or event.model:
            self._losses.dropped(
                "/response_id", "Converse names neither the response nor its model"
            )
        return b""

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._envelope.update(event.values)
        return b""

    def _on_usage(self, event: TokenCount) -> bytes:
        self._usage = event.usage
        return b""

    def _begin(self) -> bytes:
        """The start of the message, with what was said of it before its first block."""
        early: JsonObject = {}
        if not self._started:
            early, self._envelope = self._envelope, {}
        return self._start_message(self._sayable(early))

    def _start_message(self, early: JsonObject) -> bytes:
        if self._started:
            return b""
        self._started = True
        return event_frame("messageStart", {"role": "assistant", **early})

    def _sayable(self, values: JsonObject) -> JsonObject:
        """Envelope keys without those of another wire."""
        if not self._foreign:
            return values
        for key in values.keys() - OWN_KEYS:
            self._losses.dropped(f"/metadata/{key}", "Converse has no such key")
        return {key: value for key, value in values.items() if key in OWN_KEYS}

    # --- blocks ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        self._foreign = self._foreign or not is_own(item)
        out = self._begin() + self._settle()
        if item.choice:
            self._losses.dropped("/choices", "Converse has one choice")
            return out
        if not can_stand(item) or (
            isinstance(item, Reasoning) and item.redacted and self._foreign and sealed(item) is None
        ):
            self._losses.dropped(f"/{type(item).__name__}", "Converse has no such block")
            return out
        self._items[event.index] = item
        if isinstance(item, CustomToolCall):
            self._losses.dropped(
                "/custom_tool_call", "a free-form call is a toolUse with its text as `input`"
            )
            self._inputs[event.index] = []
        start = start_of(item)
        if start is None:
            self._pending = event.index
            return out
        return out + self._start(event.index, start)

    def _start(self, index: int, start: JsonObject) -> bytes:
        self._images.update({index} if "image" in start else ())
        block = self._blocks[index] = len(self._blocks)
        return event_frame("contentBlockStart", {"contentBlockIndex": block, "start": start})

    def _settle(self, index: int | None = None) -> bytes:
        """Opens the text or thought that waits for its first delta, unless this event is its own."""
        if self._pending is None or self._pending == index:
            return b""
        return self._delta(self._pending, opening(self._items[self._pending]))

    def _delta(self, index: int, member: JsonObject) -> bytes:
        out = self._settle(index)
        if index == self._pending:
            self._pending = None
            self._blocks[index] = len(self._blocks)
        if index not in self._blocks:
            return out
        return out + event_frame(
            "contentBlockDelta", {"contentBlockIndex": self._blocks[index], "delta": member}
        )

    def _say(self, index: int, text: str) -> bytes:
        if index in self._images:
            self._losses.dropped("/media", "an image block of Converse has no text")
            return b""
        return self._delta(index, {"text": text})

    def _on_text(self, event: OutputTextDelta) -> bytes:
        if event.logprobs:
            self._losses.dropped("/logprobs", "Converse has no logprobs")
        return self._say(event.index, event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._losses.dropped("/refusal", "a refusal is plain text in Converse")
        return self._say(event.index, event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._delta(event.index, {"reasoningContent": {"text": event.delta}})

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._losses.dropped("/summary", "a summary is plain reasoning in Converse")
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._delta(event.index, {"reasoningContent": {"text": gap + event.delta}})

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        if event.index in self._inputs:
            self._inputs[event.index].append(event.delta)
            return b""
        return self._delta(event.index, {"toolUse": {"input": event.delta}})

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        if self._foreign:
            self._losses.dropped("/annotations", "a citation of another wire")
            return b""
        return self._delta(event.index, {"citation": event.annotation})

    def _on_media(self, event: MediaDelta) -> bytes:
        out = b""
        if event.transcript:
            self._losses.dropped("/media", "what was spoken is plain text in Converse")
            out = self._say(event.index, event.transcript)
        if event.data is None:
            return out
        if event.index == self._pending and event.media_type in IMAGE_TYPES:
            self._pending = None
            out = self._start(event.index, {"image": {"format": IMAGE_TYPES[event.media_type]}})
        if event.index not in self._images:
            self._losses.dropped(
                "/media", "Converse has images of its own formats only, each in a block of its own"
            )
            return out
        return out + self._delta(event.index, {"image": {"source": {"bytes": event.data}}})

    # --- blocks end ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        if event.index not in self._items:
            return b""
        item = event.item
        out = self._settle(event.index) + b"".join(
            self._delta(event.index, member) for member in self._late(event.index, item)
        )
        if self._pending == event.index:
            out += self._delta(event.index, opening(item))  # it said nothing
        if event.index in self._blocks and (item.status == "completed" or is_broken(item)):
            out += event_frame("contentBlockStop", {"contentBlockIndex": self._blocks[event.index]})
        del self._items[event.index]
        return out

    def _late(self, index: int, item: ResponseItem) -> list[JsonObject]:
        """What only the finished item tells: signatures, sealed thoughts, results, and inputs that had to be whole."""
        if isinstance(item, Reasoning):
            return self._seals(item)
        if item.signature:
            self._losses.dropped("/signature", "only thoughts are signed in Converse")
        if isinstance(item, ServerToolResult):
            return [{"toolResult": results(item)}] if item.output else []
        if index in self._inputs:
            return (
                [{"toolUse": {"input": free_form("".join(self._inputs.pop(index)))}}]
                if item.status == "completed"
                else []
            )
        image = item.content[0] if isinstance(item, Message) and item.content else None
        if index in self._images and isinstance(image, Image) and (source := on_s3(image)):
            return [{"image": {"source": source}}]
        return []

    def _seals(self, item: Reasoning) -> list[JsonObject]:
        seal = sealed(item)
        if item.encrypted_content and seal is None:
            self._losses.dropped(
                "/encrypted_content",
                "Converse carries sealed reasoning as redacted content in base64 only",
            )
        values = {"redactedContent": seal, "signature": item.signature}
        return [{"reasoningContent": {name: value}} for name, value in values.items() if value]

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if self._foreign or is_foreign_event("converse", event.event):
            self._losses.dropped("/passthrough", "events that only another wire knows")
            return b""
        return self._begin() + self._settle() + event_frame(event.event[:LONGEST_NAME], event.data)

    def _on_completed(self, event: Completed) -> bytes:
        out = self._start_message({}) + self._settle()
        envelope = self._sayable(self._envelope)
        stop: JsonObject = {"stopReason": native_stop(event, foreign=self._foreign)}
        if fields := envelope.pop(STOP_FIELDS, None):
            stop[STOP_FIELDS] = fields
        elif event.stop_sequence:
            stop[STOP_FIELDS] = {"stop_sequence": event.stop_sequence}
        out += event_frame("messageStop", stop)
        metadata = self._last_words(event.usage or self._usage, envelope)
        return out + event_frame("metadata", metadata) if metadata else out

    def _last_words(self, usage: Usage | None, envelope: JsonObject) -> JsonObject:
        """`metadata`. Clients count on its numbers: for another wire's answer, those that nobody said are zeros."""
        said = usage_object(usage, self._losses, complete=self._foreign)
        return {
            **({"usage": said} if said else {}),
            **({"metrics": {"latencyMs": 0}} if self._foreign else {}),
            **envelope,
        }

    def _on_failed(self, event: Failed) -> bytes:
        return self._settle() + exception_frame(event.error)

    def _nothing(self, event: Any) -> bytes:
        """Known, and rightly without bytes: headers carry rate limits, notices are made again by whoever parses."""
        return b""


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_reasoning,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    ReasoningSummaryDelta: Encoder._on_summary,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    TokenCount: Encoder._on_usage,
    RefusalDelta: Encoder._on_refusal,
    MediaDelta: Encoder._on_media,
    AnnotationAdded: Encoder._on_annotation,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_metadata,
    Passthrough: Encoder._on_passthrough,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    RateLimits: Encoder._nothing,
    Notice: Encoder._nothing,
    ItemProgress: Encoder._nothing,
}


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """A whole Converse body, or the error body of a response that failed. It names no model."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    foreign = any(not is_own(item) for item in response.items)
    content = [
        block
        for item in response.items
        if can_stand(item) and (block := block_of(item, losses)) is not None
    ]
    metadata = {
        key: value for key, value in response.metadata.items() if not foreign or key in OWN_KEYS
    }
    if response.stop_sequence:
        metadata.setdefault(STOP_FIELDS, {"stop_sequence": response.stop_sequence})
    last = response.timing.last if response.timing else None
    latency = {"metrics": {"latencyMs": int((last or 0) * 1000)}} if foreign else {}
    usage = usage_object(response.usage, losses, complete=foreign)
    body = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": native_stop(response, foreign=foreign),
        **({"usage": usage} if usage else {}),
        **latency,
        **metadata,
    }
    return msgspec.json.encode(body)
