"""OpenAI Responses: named SSE events (or WebSocket messages), items by output_index.

The wire (event types of OpenAI's Python SDK 3.54; docs/wires/responses.md lists all of them):

    response.created, response.in_progress      id, model, request echo -> Created, ResponseMetadata
      response.output_item.added             0  {"type":"message",…}    -> OutputItemAdded
      response.content_part.added            0
      response.output_text.delta             0  "Hi"                    -> OutputTextDelta
      response.output_text.done              0  the part in full        -> what no delta brought
      response.output_item.done              0  the item in full, final -> OutputItemDone
    response.completed                          usage, all items again  -> Completed, at once

`.done` means done, whatever the item's `status` says. An event belongs to the item with its
output_index (Copilot changes every id in every event), else with its item_id (llama.cpp sends no
index), else to the newest open item. Items that are only in the last event are emitted there; they
are matched by index and type. A text that a delta has brought is never emitted again.

Buffered: half a surrogate pair; a call that was added without a name, until its `.done`; arguments
that are a JSON value (`action`), until their `.done`. `error` ends the stream at once: the
`response.failed` that usually follows adds nothing, a WebSocket sends none, and waiting for it
would turn a known error into a stall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.framing.sse import (
    SSEFraming as framing,  # noqa: N813  # the name every wire gives its framing
)
from streamlib_parsers.items import Message, Reasoning, ServerToolCall
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.rate_limits import read_in_band
from streamlib_parsers.wires.responses.envelope import Envelope
from streamlib_parsers.wires.responses.events import (
    AUDIO_EVENTS,
    END_EVENTS,
    KEEPALIVES,
    PART_EVENTS,
    PASSED_THROUGH,
    PROGRESS,
    RESPONSE_EVENTS,
    STATUS_RANK,
    UNFINISHED,
    AnyReasoningDelta,
    ArgumentsDelta,
    CallDelta,
    CodeDelta,
    CustomInputDelta,
    Delta,
    Frequent,
    ItemAdded,
    ItemDone,
    ItemEvent,
    McpArgumentsDelta,
    OpenReasoningDelta,
    ReasoningTextDelta,
    RefusalDelta,
    SummaryDelta,
    TextDelta,
    decode,
    index_of,
    items_in_body,
    items_in_end_event,
    list_of_objects,
    name_of,
    nonempty_string,
)
from streamlib_parsers.wires.responses.items import agent_name
from streamlib_parsers.wires.responses.output import OutputItems
from streamlib_parsers.wires.responses.texts import (
    CALLS,
    PART_TEXTS,
    TEXT_DONE_FIELDS,
    TEXT_FIELDS,
    Texts,
)

__all__ = ["EVENT_KINDS", "Machine", "body_frames", "framing"]

GROWING: Final = (Message, Reasoning, *CALLS)
"""Items that deltas append to."""


class Machine:
    """Reads the events of one response."""

    def __init__(self, assembler: EventAssembler) -> None:
        # True once the terminal event was emitted as `Completed`.
        self.complete = False
        self._assembler = assembler
        self._output = OutputItems(assembler)
        self._slots = self._output.slots
        # The slots' own dict of open items, so that frequent deltas find theirs without a call.
        self._by_index = self._slots.by_index
        self._texts = Texts(assembler)
        # The texts' own dict, for frequent deltas too: while it is empty, content_index is the
        # position.
        self._positions = self._texts.positions
        self._envelope = Envelope(assembler)
        # Set by `response.created`: a second one belongs to another response, for example of
        # another lane (`stream_id`) of a WebSocket.
        self._created = False

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one event."""
        # By the name in its `event:` line: to be refused by the decoder takes longer.
        if event in EVENTS:
            self._read_slow(event, data)
            return
        try:
            message = decode(data)
        except DECODE_ERRORS:
            self._read_slow(event, data)
        else:
            if message.agent is not None:
                self._read_agent(message)
            FAST_HANDLERS[type(message)](self, message, data)

    def _read_agent(self, message: Frequent) -> None:
        """Reads the agent of a delta; that of an item's start and end is read with the item."""
        if isinstance(message, Delta):
            self._output.find(message.output_index, message.item_id, message.agent)

    def end(self) -> None:
        """Raises an error: a response is complete at its `completed` or `incomplete` event only."""
        detail = None
        if self._envelope.status:
            detail = {"status": self._envelope.status}
        raise truncated("the stream ended before response.completed", detail)

    # --- frequent events ---

    def _on_added(self, event: ItemAdded, data: bytes) -> None:
        self._output.added(event, data)

    def _on_done(self, event: ItemDone, data: bytes) -> None:
        self._output.done(event, data)

    def _on_text(self, event: TextDelta, data: bytes) -> None:
        item = self._by_index.get(event.output_index)
        if item is None or type(item.item) is not Message:
            item = self._item_for_delta(event, (Message,), Message("assistant"), data)
            if item is None:
                return
        part = event.content_index
        if self._positions or part not in item.parts:
            part = self._texts.position(item, part)
        logprobs = event.logprobs
        if logprobs:
            logprobs = list_of_objects(logprobs)
            self._output.logprobs_streamed.add((item.index, part))
        self._assembler.text(item, event.delta, part, logprobs or None)

    def _on_arguments(self, event: CallDelta, data: bytes) -> None:
        item = self._by_index.get(event.output_index)
        if item is None or type(item.item) not in CALLS:
            item = self._item_for_delta(event, CALLS, None, data)
        if item is not None:
            self._assembler.arguments(item, event.delta)

    def _on_summary(self, event: SummaryDelta, data: bytes) -> None:
        item = self._by_index.get(event.output_index)
        if item is None or type(item.item) is not Reasoning:
            item = self._item_for_delta(event, (Reasoning,), Reasoning(), data)
        if item is not None:
            self._assembler.summary(item, event.delta, event.summary_index)

    def _on_reasoning(self, event: AnyReasoningDelta, data: bytes) -> None:
        item = self._item_for_delta(event, (Reasoning,), Reasoning(), data)
        if item is not None:
            # vLLM until 2026 counts content_index up with every delta, so it names no part: the
            # delta belongs to the part that was announced last.
            part = self._texts.announced.get(item.index, 0)
            self._assembler.reasoning(item, event.delta, part)

    def _on_refusal(self, event: RefusalDelta, data: bytes) -> None:
        item = self._item_for_delta(event, (Message,), Message("assistant"), data)
        if item is not None:
            part = self._texts.position(item, event.content_index)
            self._assembler.refusal(item, event.delta, part)

    def _item_for_delta(
        self,
        event: Delta,
        item_types: tuple[type, ...],
        skeleton: Message | Reasoning | None,
        data: bytes,
    ) -> OpenItem | None:
        """The item that a delta belongs to.

        Args:
            event: the delta.
            item_types: the types of item that take it.
            skeleton: opened as a new item where there is none.
            data: the bytes of the event.

        Returns:
            The item; None after the delta was passed through, because there is no item or it has
            another type. Such an item ends incomplete if the delta surely was meant for it.
        """
        item = self._slots.find(event.output_index, event.item_id)
        if item is None and skeleton is not None:
            item = self._output.placeholder(skeleton, event)
        if item is not None and type(item.item) in item_types:
            return item
        kind = name_of(event)
        self._pass_through(kind, decode_any(data))
        if item is None or type(item.item) not in GROWING:
            return None
        if self._slots.is_addressed(event.output_index, event.item_id):
            self._assembler.mark_incomplete(item, f"{kind} on {type(item.item).__name__}")
        return None

    # --- events that the decoder of the frequent ones refused ---

    def _read_slow(self, event_name: str | None, data: bytes) -> None:
        # Chat's end mark, which some servers send here too.
        if data[:1] != b"{" and data.lstrip()[:6].upper() == b"[DONE]":
            return
        event, data = self._assembler.decode_object(data)
        # Some servers name the event only in the `event:` line.
        kind = event.get("type") or event_name
        if not isinstance(kind, str):
            kind = ""
        if kind in EVENTS:
            EVENTS[kind](self, kind, event, data)
        elif kind in FAST_KINDS:
            self._apply_lenient(kind, event, data)
        elif event.get("error") and not kind.startswith("response."):
            # A bare error object; `response.…` events may have an `error` beside other fields.
            raise ParseFailure(classify(None, event))
        else:
            self._pass_through(kind, event)

    def _apply_lenient(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        """Reads an unusual frequent event.

        Its text was repaired, an index is a float or null, or only the event line has its type.
        """
        if "delta" in event and not isinstance(event["delta"], str):
            self._pass_through(kind, event)
            return
        fields: dict[str, Any] = {}
        # Raw values, so that an item keeps its own bytes.
        for key, raw in msgspec.json.decode(data, type=dict[str, Raw]).items():
            value = event[key]
            if isinstance(value, float) and value.is_integer():
                fields[key] = int(value)
            elif value is not None:
                fields[key] = raw
        fields["type"] = kind
        try:
            message = decode(msgspec.json.encode(fields))
        except msgspec.ValidationError as error:
            raise malformed(f"{kind}: {error}", data) from None
        if message.agent is not None:
            self._read_agent(message)
        FAST_HANDLERS[type(message)](self, message, data)

    # --- content parts and texts in full ---

    def _find(self, event: dict[str, Any]) -> OpenItem | None:
        output_index = index_of(event, "output_index")
        item_id = nonempty_string(event, "item_id")
        if event.get("agent") is None:
            return self._slots.find(output_index, item_id)
        return self._output.find(output_index, item_id, event["agent"])

    def _pass_through(self, kind: str, event: Any) -> None:
        self._assembler.passthrough(kind, event, agent_name(event.get("agent")))

    def _on_part(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        part = event.get("part")
        full_text = None
        if isinstance(part, dict):
            full_text = PART_TEXTS.get(nonempty_string(part, "type") or "")
        item = self._find(event)
        if (
            full_text is None
            or item is None
            or type(item.item) not in TEXT_FIELDS[full_text.kind].item_types
        ):
            self._pass_unmatched(kind, event)
            return
        if full_text.kind == "reasoning":
            self._texts.announce(item, event)
        self._texts.complete(item, full_text.kind, event, event["part"].get(full_text.field))
        if kind.endswith(".done"):
            self._slots.slot(item).finished = True

    def _on_text_done(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        full_text = TEXT_DONE_FIELDS[kind]
        item = self._find(event)
        if item is None or type(item.item) not in TEXT_FIELDS[full_text.kind].item_types:
            self._pass_unmatched(kind, event)
            return
        self._texts.complete(item, full_text.kind, event, event.get(full_text.field))
        self._slots.slot(item).finished = True

    def _pass_unmatched(self, kind: str, event: dict[str, Any]) -> None:
        """Passes an event through that is about no open item.

        A `.done` of an item that is done adds nothing and is dropped.
        """
        output_index = index_of(event, "output_index")
        is_done = self._slots.is_done(output_index, nonempty_string(event, "item_id"))
        if not (is_done and kind.endswith(".done")):
            self._pass_through(kind, event)

    def _on_annotation(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        item = self._find(event)
        annotation = event.get("annotation")
        if item is None or type(item.item) is not Message or not isinstance(annotation, dict):
            self._pass_through(kind, event)
            return
        self._assembler.annotation(item, annotation, self._texts.position_in(item, event))

    # --- hosted tools, images, audio ---

    def _on_progress(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        item = self._find(event)
        if item is None:
            self._pass_through(kind, event)
            return
        _, status = kind.rsplit(".", 1)
        self._assembler.progress(item, status)

    def _on_image(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        item = self._find(event)
        image = event.get("partial_image_b64")
        if item is None or type(item.item) is not ServerToolCall or not isinstance(image, str):
            self._pass_through(kind, event)
            return
        part = index_of(event, "partial_image_index") or 0
        media_type = f"image/{event.get('output_format') or 'png'}"
        self._assembler.media(item, part, media_type, image)
        # Every partial image is a complete one that replaces the one before, so none is kept.
        item.clear_parts()

    def _on_audio(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        output_index = index_of(event, "output_index")
        item = self._slots.find(output_index, nonempty_string(event, "item_id"))
        delta, agent = event.get("delta"), event.get("agent")
        # These events name no item: they belong to the newest message, if it is of their agent.
        is_of_agent = item is not None and agent_name(agent) in (None, item.agent)
        if item is None or type(item.item) is not Message or not is_of_agent:
            item = self._output.placeholder(Message("assistant"), ItemEvent(agent=agent))
        if item is not None and kind.endswith(".done"):
            self._slots.slot(item).finished = True
        elif item is not None and isinstance(delta, str):
            part = self._texts.position_in(item, event)
            if "transcript" in kind:
                self._assembler.media(item, part, transcript=delta)
            else:
                self._assembler.media(item, part, data=delta)
        else:
            self._pass_through(kind, event)

    def _on_passed_through(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        self._pass_through(kind, event)

    # --- the response ---

    def _on_response(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        response = event.get("response")
        if kind == "response.created":
            if self._created:
                detail = "its events are read as those of the first"
                lane = event.get("stream_id")
                if isinstance(lane, str):
                    detail = f"{detail}: stream_id {lane}"
                self._assembler.notice("second_response", detail)
            self._created = True
        if isinstance(response, dict):
            self._envelope.read(event, response)
        else:
            self._pass_through(kind, event)

    def _on_metadata(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        """Reads the `metadata` of the ChatGPT backend: further keys of the response."""
        values: dict[str, Any] = {}
        metadata = event.get("metadata")
        if isinstance(metadata, dict):
            values.update(metadata)
        if "headers" in event:
            values["headers"] = event["headers"]
        self._envelope.emit_metadata(values)

    def _on_rate_limits(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        limits = read_in_band(event)
        if limits is None:
            self._pass_through(kind, event)
        else:
            self._assembler.rate_limits(limits)

    def _on_keepalive(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        """Emits nothing: the event shows that the connection lives, not that the model works."""

    def _on_error(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        status = event.get("status") or event.get("status_code")
        if not isinstance(status, int):
            status = None
        # The error itself has no field for the agent whose error it is.
        self._envelope.emit_metadata({"agent": event.get("agent")})
        raise ParseFailure(classify(status, event))

    def _on_end(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        response = event.get("response")
        if not isinstance(response, dict):
            response = {}
        # The event decides; the response's own status only where it is worse (`incomplete` in
        # `response.completed`).
        status = kind.removeprefix("response.")
        reported = response.get("status")
        if status == "done":
            status = "cancelled" if reported == "cancelled" else "completed"
        if reported in STATUS_RANK and status in STATUS_RANK:
            status = max(reported, status, key=STATUS_RANK.index)
        self._envelope.read(event, response)
        self._finish(status, response, partial(items_in_end_event, data))

    def _on_body(self, kind: str, event: dict[str, Any], data: bytes) -> None:
        """Reads a complete body. It ends the response even if its status is unknown."""
        self._envelope.read({}, event)
        status = nonempty_string(event, "status")
        if status is None:
            status = "failed" if event.get("error") else ""
        self._finish(status, event, partial(items_in_body, data))

    def _finish(self, status: str, response: dict[str, Any], raws: Callable[[], list[Raw]]) -> None:
        is_partial = status in ("incomplete", "failed") or status in UNFINISHED
        self._output.add_missing_items(response.get("output"), raws, complete=not is_partial)
        # Copilot sends another id in every event: the last one counts.
        response_id = nonempty_string(response, "id")
        if response_id is not None:
            self._assembler.response_id = response_id
        if status == "failed":
            error = response.get("error") or {"message": "the response failed, no reason given"}
            raise ParseFailure(classify(None, {"error": error}))
        if status in UNFINISHED:
            raise truncated(f"the response is {status}", {"status": status})
        self.complete = True
        stop_reason, native = self._output.stop_reason(status, response.get("incomplete_details"))
        self._assembler.complete(stop_reason, native)


# --- handlers of frequent events ---

_Event = TypeVar("_Event", bound=ItemEvent)

FAST_HANDLERS: Final[dict[type[ItemEvent], Callable[[Machine, Any, bytes], None]]] = {}
"""Handlers by class of the event; filled by `_register` alone, which checks that both agree."""


def _register(event: type[_Event], handler: Callable[[Machine, _Event, bytes], None]) -> None:
    FAST_HANDLERS[event] = handler


_register(TextDelta, Machine._on_text)
_register(ArgumentsDelta, Machine._on_arguments)
_register(SummaryDelta, Machine._on_summary)
_register(ReasoningTextDelta, Machine._on_reasoning)
_register(OpenReasoningDelta, Machine._on_reasoning)
_register(RefusalDelta, Machine._on_refusal)
_register(CustomInputDelta, Machine._on_arguments)
_register(CodeDelta, Machine._on_arguments)
_register(McpArgumentsDelta, Machine._on_arguments)
_register(ItemAdded, Machine._on_added)
_register(ItemDone, Machine._on_done)

FAST_KINDS: Final = frozenset(name_of(event) for event in FAST_HANDLERS)

# --- handlers of all other events ---

EventHandler: TypeAlias = Callable[[Machine, str, dict[str, Any], bytes], None]
"""Takes the event's name, the event as decoded, and its bytes."""

EVENTS: Final[dict[str, EventHandler]] = {
    **dict.fromkeys(RESPONSE_EVENTS, Machine._on_response),
    **dict.fromkeys(END_EVENTS, Machine._on_end),
    "body": Machine._on_body,
    "error": Machine._on_error,
    **dict.fromkeys(PART_EVENTS, Machine._on_part),
    **dict.fromkeys(TEXT_DONE_FIELDS, Machine._on_text_done),
    "response.output_text.annotation.added": Machine._on_annotation,
    **dict.fromkeys(PROGRESS, Machine._on_progress),
    "response.image_generation_call.partial_image": Machine._on_image,
    **dict.fromkeys(AUDIO_EVENTS, Machine._on_audio),
    **dict.fromkeys(PASSED_THROUGH, Machine._on_passed_through),
    "response.metadata": Machine._on_metadata,
    "codex.rate_limits": Machine._on_rate_limits,
    **dict.fromkeys(KEEPALIVES, Machine._on_keepalive),
}
"""Handlers of every event that is not frequent, by name."""

EVENT_KINDS: Final = FAST_KINDS | frozenset(EVENTS)


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """Yields a complete response as one frame, which is read as the event `body`.

    An error that looks like the stream's `error` event is read as that event, by its `type`.
    """
    value = decode_any(body)
    if not isinstance(value, dict):
        raise malformed("the body is not a Response", body)
    kind = str(value.get("type"))
    # Some events of a stream have an `output` too.
    if kind != "error" and ("output" not in value or kind.startswith("response.")):
        raise malformed("the body is not a Response", body)
    yield "body", body
