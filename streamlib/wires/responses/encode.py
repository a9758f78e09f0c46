"""Events as an OpenAI Responses stream or body.

Each item of choice 0 is one output item under its own output_index; overlapping items stay overlapping. Parts and texts are told
whole again when they end, and all items once more in the event that ends the stream, as the official clients want it.

Held back: `Created`, until the next event (so that its metadata stands in `response.created`); usage and metadata, until it is known
whether they belong to the final event; an item that was cut, until it is known whether the stream ends with it.

`created_at` (unix seconds) is the caller's: an encoder has no clock. Without it the response says only what the events said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from streamlib.request.report import Change, Report
from streamlib.wires.encoders import is_foreign_event, sse
from streamlib.wires.responses.encode_objects import (
    citation,
    ending,
    envelope_of,
    error_body,
    error_object,
    images_of,
    is_own,
    item_object,
    minted_id,
    note_unknown,
    response_object,
    sayable,
    usage_object,
)
from streamlib_parsers.accumulate import Response
from streamlib_parsers.item_text import call_text
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
    FunctionCall,
    JsonObject,
    ResponseItem,
    ServerToolCall,
)
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses.events import PROGRESS
from streamlib_parsers.wires.responses.items import outline

__all__ = ["Encoder", "encode_body", "error_body"]


class Family(NamedTuple):
    """One kind of text: its events, the type and field of its part, the events around the part, and what numbers its parts."""

    events: str
    part: str
    field: str
    around: str
    number: str


FAMILIES: Final[dict[type, Family]] = {
    OutputTextDelta: Family(
        "response.output_text", "output_text", "text", "response.content_part", "content_index"
    ),
    RefusalDelta: Family(
        "response.refusal", "refusal", "refusal", "response.content_part", "content_index"
    ),
    ReasoningContentDelta: Family(
        "response.reasoning_text",
        "reasoning_text",
        "text",
        "response.content_part",
        "content_index",
    ),
    ReasoningSummaryDelta: Family(
        "response.reasoning_summary_text",
        "summary_text",
        "text",
        "response.reasoning_summary_part",
        "summary_index",
    ),
}

ARGUMENTS: Final[dict[str, tuple[str, str]]] = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
"""Events of calls by type of the item: (name, field of the whole). Other hosted tools tell their arguments when they are done."""


CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)


class Slot:
    """One output item. parts: the fragments of each begun text. body: what was, or will be, told of it when it was done.

    images: what follows it as items of their own.
    """

    __slots__ = ("annotations", "body", "id", "images", "item", "kind", "parts", "place")

    def __init__(self, place: int, item: ResponseItem) -> None:
        self.place = place
        self.item = item
        self.id = ""
        self.kind = ""
        self.parts: dict[tuple[Family, int], list[str]] = {}
        self.annotations: dict[int, list[JsonObject]] = {}
        self.body: JsonObject = {}
        self.images: list[JsonObject] = []


class Encoder:
    """Writes one stream."""

    media_type = "text/event-stream"

    def __init__(
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        created_at: int | None = None,
    ) -> None:
        self._head: JsonObject = {"id": response_id or "resp_0", "model": model or ""}
        if created_at is not None:
            self._head.update(created_at=created_at, parallel_tool_calls=True, tool_choice="auto")
        self._losses = Report()
        self._sequence = -1
        self._created = False
        self._begun = False
        self._envelope: JsonObject = {}
        self._usage: Usage | None = None
        self._unsaid: set[type] = set()
        self._slots: dict[int, Slot] = {}
        self._cut: list[Slot] = []
        self._is_own: bool | None = None  # unknown until the first item

    @property
    def report(self) -> list[Change]:
        """What Responses could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            self._losses.dropped(f"/{type(event).__name__}", "Responses has no such event")
            return b""
        return handler(self, event)

    def close(self) -> bytes:
        """Responses has no end mark of its own."""
        return b""

    # --- the envelope ---

    def _frame(self, kind: str, **values: Any) -> bytes:
        self._sequence += 1
        return sse({"type": kind, "sequence_number": self._sequence, **values}, kind)

    def _response(self, status: str, **fields: Any) -> JsonObject:
        output = fields.pop("output", ())
        return response_object(
            self._head,
            status,
            output,
            self._envelope,
            usage=usage_object(self._usage, own=self._is_own is not False),
            **fields,
        )

    def _on_created(self, event: Created) -> bytes:
        self._created = True
        self._head["id"] = event.response_id or self._head["id"]
        self._head["model"] = event.model or self._head["model"]
        return b""

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        """A response tells its metadata before its usage: what came the other way round is two events."""
        out = self._flush() if self._unsaid or self._cut else b""
        self._envelope.update(envelope_of(event.values, self._losses))
        self._unsaid.add(ResponseMetadata)
        return out

    def _on_usage(self, event: TokenCount) -> bytes:
        out = self._flush() if TokenCount in self._unsaid or self._cut else b""
        note_unknown(event.usage, self._losses)
        self._usage = event.usage
        self._unsaid.add(TokenCount)
        return out

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        self._unsaid.clear()
        response = self._response("in_progress")
        return self._frame("response.created", response=response) + self._frame(
            "response.in_progress", response=response
        )

    def _flush(self) -> bytes:
        """Everything that was held: the stream goes on."""
        out = self._begin()
        if self._unsaid:
            self._unsaid.clear()
            out += self._frame("response.in_progress", response=self._response("in_progress"))
        return out + self._flush_cut()

    def _flush_cut(self) -> bytes:
        cut, self._cut = self._cut, []
        return b"".join([self._finish(slot) for slot in cut])

    def _flush_early(self) -> bytes:
        """The end closes what was cut in the order of its places; what was cut before that, in another order, is said now."""
        places = [slot.place for slot in self._cut]
        start = next((at for at in range(len(places) - 1, 0, -1) if places[at - 1] > places[at]), 0)
        late, self._cut = self._cut[start:], self._cut[:start]
        out = self._flush() if self._cut else b""
        self._cut = late
        return out

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._flush()
        self._is_own = self._is_own is not False and is_own(event.item)
        if event.item.choice:
            self._losses.dropped("/choices", "Responses gives one answer")
            return out
        item = sayable(event.item, self._losses)
        if item is None:
            return out
        slot = self._slots[event.index] = Slot(len(self._slots), event.item)
        body = item_object(outline(item), "in_progress", self._head["id"], slot.place)
        slot.kind = str(body.get("type", ""))
        slot.id = body.get("id") or minted_id(slot.kind, self._head["id"], slot.place)
        return out + self._frame("response.output_item.added", output_index=slot.place, item=body)

    def _about(self, slot: Slot, kind: str, **values: Any) -> bytes:
        return self._frame(kind, item_id=slot.id, output_index=slot.place, **values)

    def _on_text(
        self, event: OutputTextDelta | RefusalDelta | ReasoningContentDelta | ReasoningSummaryDelta
    ) -> bytes:
        slot = self._slots.get(event.index)
        if slot is None:
            return b""
        family = FAMILIES[type(event)]
        part: int = getattr(event, family.number)
        logprobs = getattr(event, "logprobs", None) or ()
        values = {"logprobs": list(logprobs)} if family.part == "output_text" else {}
        if logprobs and not values:
            self._losses.dropped("/logprobs", "Responses has logprobs of text only")
        out = self._flush() + self._begin_part(slot, family, part)
        slot.parts[family, part].append(event.delta)
        return out + self._about(
            slot, f"{family.events}.delta", **{family.number: part}, delta=event.delta, **values
        )

    def _begin_part(self, slot: Slot, family: Family, part: int) -> bytes:
        if (family, part) in slot.parts:
            return b""
        slot.parts[family, part] = []
        return self._part(slot, "added", family, part, "")

    def _part(self, slot: Slot, when: str, family: Family, part: int, text: str) -> bytes:
        body: JsonObject = {"type": family.part, family.field: text}
        if family.part == "output_text":
            body.update(annotations=slot.annotations.get(part, []), logprobs=[])
        return self._about(slot, f"{family.around}.{when}", **{family.number: part}, part=body)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        slot = self._slots.get(event.index)
        if slot is None:
            return b""
        name, _ = ARGUMENTS.get(slot.kind, ("", ""))
        return self._flush() + (
            self._about(slot, f"{name}.delta", delta=event.delta) if name else b""
        )

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        slot = self._slots.get(event.index)
        annotation = (
            citation(event.annotation, self._losses, own=is_own(slot.item)) if slot else None
        )
        if slot is None or annotation is None:
            return b""
        out = self._flush() + self._begin_part(slot, FAMILIES[OutputTextDelta], event.content_index)
        said = slot.annotations.setdefault(event.content_index, [])
        said.append(annotation)
        place = {"content_index": event.content_index, "annotation_index": len(said) - 1}
        return out + self._about(
            slot, "response.output_text.annotation.added", **place, annotation=annotation
        )

    def _on_media(self, event: MediaDelta) -> bytes:
        slot = self._slots.get(event.index)
        if slot is not None and slot.kind == "image_generation_call" and event.data:
            values = {"partial_image_index": event.content_index, "partial_image_b64": event.data}
            form = (event.media_type or "image/png").removeprefix("image/")
            return self._flush() + self._about(
                slot, f"response.{slot.kind}.partial_image", **values, output_format=form
            )
        if slot is None or slot.kind != "message" or event.media_type:
            self._losses.dropped(
                "/media",
                "Responses streams audio without its type, and images of its own tool only",
            )
            return b""
        out = self._flush()
        for kind, delta in (
            ("response.audio.delta", event.data),
            ("response.audio.transcript.delta", event.transcript),
        ):
            out += (
                self._about(slot, kind, content_index=event.content_index, delta=delta)
                if delta
                else b""
            )
        return out

    def _on_progress(self, event: ItemProgress) -> bytes:
        slot = self._slots.get(event.index)
        kind = f"response.{slot.kind}.{event.status}" if slot else ""
        if slot is None or kind not in PROGRESS:
            self._losses.dropped("/progress", "Responses has no such stage of this item")
            return b""
        return self._flush() + self._about(slot, kind)

    def _on_done(self, event: OutputItemDone) -> bytes:
        slot = self._slots.get(event.index)
        item = sayable(event.item, self._losses) if slot else None
        if slot is None or item is None:
            return b""
        if item.id not in (None, slot.id):
            self._losses.dropped("/id", "an item keeps the id it began with")
        slot.item = item
        slot.images = images_of(event.item)
        slot.body = item_object(item, item.status, self._head["id"], slot.place)
        slot.body.update({"id": slot.id} if "id" in slot.body else {})
        if item.status == "incomplete":
            self._cut.append(slot)
            return b""
        return self._flush() + self._finish(slot)

    def _finish(self, slot: Slot) -> bytes:
        out = b""
        for (family, part), fragments in slot.parts.items():
            text = "".join(fragments)
            more: JsonObject = {"logprobs": []} if family.part == "output_text" else {}
            out += self._about(
                slot, f"{family.events}.done", **{family.number: part, family.field: text}, **more
            )
            out += self._part(slot, "done", family, part, text)
        if slot.kind in ARGUMENTS and isinstance(slot.item, CALLS):
            name, field = ARGUMENTS[slot.kind]
            out += self._about(slot, f"{name}.done", **{field: call_text(slot.item)})
        out += self._frame("response.output_item.done", output_index=slot.place, item=slot.body)
        return out + b"".join([self._image(image, slot) for image in slot.images])

    def _image(self, image: JsonObject, message: Slot) -> bytes:
        """An item that no event announced."""
        place = len(self._slots)
        slot = self._slots[-place] = Slot(place, message.item)
        named = {**image, "id": minted_id(image["type"], self._head["id"], place)}
        slot.body = {**named, "status": "completed"}
        begun = {**named, "status": "in_progress", "result": None}
        out = self._frame("response.output_item.added", output_index=place, item=begun)
        return out + self._frame("response.output_item.done", output_index=place, item=slot.body)

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if (
            isinstance(event.data, dict)
            and event.data.get("type", event.event) == event.event
            and self._may_pass(event.event)
        ):
            return (self._flush() if self._created else b"") + sse(event.data, event.event or None)
        self._losses.dropped("/passthrough", "an event that only another wire knows")
        return b""

    def _may_pass(self, kind: str) -> bool:
        """An event of another wire is not passed on; one without a name only where it is surely this wire's."""
        if is_foreign_event("responses", kind):
            return False
        return self._is_own is not False if kind else self._is_own is True or not self._created

    def _on_completed(self, event: Completed) -> bytes:
        out = self._begin() + self._flush_early()
        if not self._unsaid:
            out += self._flush_cut()
        self._usage = event.usage or self._usage
        note_unknown(self._usage, self._losses)
        self._head["model"] = event.model or self._head["model"]
        refused = any(
            family.part == "refusal" for slot in self._slots.values() for family, _ in slot.parts
        )
        status, reason = ending(
            event.stop_reason, event.native_stop_reason, self._losses, refused=refused
        )
        if status == "completed" and event.stop_reason not in ("stop", "tool_calls", "refusal"):
            self._losses.dropped("/stop_reason", f"Responses has no word for {event.stop_reason}")
        if event.stop_sequence is not None:
            self._losses.dropped("/stop_sequence", "Responses has no stop sequences")
        details = self._envelope.get("incomplete_details") or (
            {"reason": reason} if reason else None
        )
        output = [slot.body for slot in self._slots.values() if slot.body]
        response = self._response(status, output=output, incomplete_details=details)
        return out + self._frame(f"response.{status}", response=response)

    def _on_failed(self, event: Failed) -> bytes:
        """As OpenAI does it: `error`, then `response.failed`. What was cut stays open; a client knows it by that."""
        out = self._flush_early()
        self._cut.clear()
        out += self._flush() if self._created else b""
        error = error_object(event.error)
        if error is not event.error.detail:
            self._losses.dropped("/error", f"written as {error['code']}")
        status = {"status": event.error.status} if event.error.status is not None else {}
        failed = self._response("failed", error=error)
        return (
            out
            + self._frame("error", error=error, **status)
            + self._frame("response.failed", response=failed)
        )

    def _nothing(self, event: Any) -> bytes:
        """Known, and rightly without bytes: headers carry rate limits, notices are made again by whoever parses."""
        return b""


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    RefusalDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_text,
    ReasoningSummaryDelta: Encoder._on_text,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    AnnotationAdded: Encoder._on_annotation,
    MediaDelta: Encoder._on_media,
    ItemProgress: Encoder._on_progress,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_metadata,
    TokenCount: Encoder._on_usage,
    Passthrough: Encoder._on_passthrough,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    RateLimits: Encoder._nothing,
    Notice: Encoder._nothing,
}


def _can_stand(item: ResponseItem) -> bool:
    """A call that was cut has no place in a whole body: there it would look callable."""
    return item.status == "completed" or not isinstance(item, CALLS)


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """A whole Response; the error body of one that failed before it began."""
    if response.error is not None and response.response_id is None and not response.items:
        return msgspec.json.encode(error_body(response.error))
    head = {"id": response.response_id or "resp_0", "model": response.model or model or ""}
    envelope = envelope_of(response.metadata, losses)
    own = all(map(is_own, response.items))
    status, fields = _end(response, envelope, losses, own=own)
    note_unknown(response.usage, losses)
    usage = usage_object(response.usage, own=own)
    return msgspec.json.encode(
        response_object(
            head, status, _output(response, head["id"], losses), envelope, usage=usage, **fields
        )
    )


def _end(
    response: Response, envelope: JsonObject, losses: Report, *, own: bool
) -> tuple[str | None, JsonObject]:
    """Status, and why. A server's own word for its status, where it is none of the wire's, stays."""
    if response.error is not None:
        return "failed", {"error": error_object(response.error)}
    status, reason = ending(
        response.stop_reason or "other",
        response.native_stop_reason,
        losses,
        refused=bool(response.refusal),
    )
    if response.stop_reason == "other" and status == "completed" and own:
        return response.native_stop_reason, {}
    return status, {
        "incomplete_details": envelope.get("incomplete_details")
        or ({"reason": reason} if reason else None)
    }


def _output(response: Response, response_id: str, losses: Report) -> list[JsonObject]:
    output: list[JsonObject] = []
    for item in response.items:
        said = sayable(item, losses) if _can_stand(item) else None
        if said is not None:
            output.append(item_object(said, item.status, response_id, len(output)))
        for image in images_of(item):
            output.append(
                {
                    **image,
                    "id": minted_id(image["type"], response_id, len(output)),
                    "status": "completed",
                }
            )
    return output
