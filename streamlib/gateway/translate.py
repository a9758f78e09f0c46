"""Events of the model's wire, made ready for the encoder of another: a stage between the parser and the encoder.

What only the model's wire can read is put into envelopes, and those into the one slot that a client's wire keeps and gives back
unread: the one for sealed thoughts.

| client's wire | beside a thought | for an item that has no such slot, or no words here |
|---|---|---|
| messages | `thinking.signature` | a `redacted_thinking` block |
| responses | `reasoning.encrypted_content` | a `reasoning` item |
| chat | an element of `reasoning_details` | the same |
| gemini | `thoughtSignature` of the thought | an empty thought with a `thoughtSignature` |

Such a block stands before a call, where the call's state is known by then (clients leave out thoughts at the end of a turn), else after it.
`restoring.py` is the way back. The words of the model's wire (metadata, native stop reasons, unknown events) mean nothing here: left out,
and in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.gateway.envelopes import seal
from streamlib.gateway.reorder import ItemSequencer
from streamlib.providers.wire_specs import WIRE_SPECS, EnvelopeSlot
from streamlib.request.report import Change, Report
from streamlib_parsers.events import (
    Completed,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import (
    Compaction,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Origin,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    WireApi,
)
from streamlib_parsers.usage import Usage

HIDDEN: Final = (ServerToolCall, ServerToolResult, Compaction, Opaque)
"""Kinds that only the wire they come from has words for: in an envelope they go along unseen."""
CALLS: Final = (FunctionCall, CustomToolCall)
BARE: Final[JsonObject] = {
    "id": None,
    "signature": None,
    "encrypted_content": None,
    "redacted": False,
    "native": None,
}


def _slot_fields(slot: EnvelopeSlot, envelope: str, index: int) -> JsonObject:
    """The fields of a reasoning item that hold an envelope in a slot."""
    if slot == "reasoning_details":
        # Clients join elements of one index, so each envelope has an index of its own.
        details = {"type": "reasoning.encrypted", "data": envelope, "index": index}
        return {"native": {"reasoning_details": [details]}}
    return {slot: envelope}


class EventTranslator:
    """One answer on its way to a client of `wire_api`. custom: names of the tools that the client declared as free-form.

    A wire without a slot (it has no sealed thoughts) loses what would be in it; `report` says so.
    """

    def __init__(self, wire_api: WireApi, custom: frozenset[str] = frozenset()) -> None:
        self._origin = Origin(wire_api)
        self._custom = custom
        self._losses = Report()
        self._sequence = None if WIRE_SPECS[wire_api].has_blocks else ItemSequencer()
        self._places: dict[int, int] = {}
        self._begun = 0
        self._free: set[int] = set()
        self._told: set[int] = set()
        self._sealed = 0
        self._counted: TokenCount | None = None

    @property
    def report(self) -> list[Change]:
        """What was left out."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event as the client's encoder may see it; of a hidden item, nothing but its envelope."""
        if self._sequence is None:
            return self._cross(event)
        return [crossed for one in self._sequence.feed(event) for crossed in self._cross(one)]

    def _cross(self, event: ResponseEvent) -> list[ResponseEvent]:
        handler = _HANDLERS.get(type(event))
        return self._moved(event) if handler is None else handler(self, event)

    def _moved(self, event: Any) -> list[ResponseEvent]:
        """The event under the index that its item has here."""
        index: int | None = getattr(event, "index", None)
        if index is None:
            return [event]
        place = self._places.get(index)
        if place is None:
            return []
        return [event if place == index else msgspec.structs.replace(event, index=place)]

    # --- items ---

    def _added(self, event: OutputItemAdded) -> list[ResponseEvent]:
        item: ResponseItem = event.item
        if isinstance(item, HIDDEN):
            return []
        before = (
            self._carrier(item, event.index) if isinstance(item, CALLS) and _has_state(item) else []
        )
        self._told |= {event.index} if before else set()
        self._places[event.index] = self._next()
        if isinstance(item, Reasoning):
            item = msgspec.structs.replace(item, origin=self._origin, **BARE)
        elif isinstance(item, FunctionCall) and item.name in self._custom:
            self._free.add(event.index)
            item = _free_form(item)
        return [*before, OutputItemAdded(self._places[event.index], item)]

    def _next(self) -> int:
        self._begun += 1
        return self._begun - 1

    def _arguments(self, event: FunctionCallArgumentsDelta) -> list[ResponseEvent]:
        return [] if event.index in self._free else self._moved(event)

    def _done(self, event: OutputItemDone) -> list[ResponseEvent]:
        item, place = event.item, self._places.get(event.index)
        if place is None:
            self._losses.dropped(f"/{type(item).__name__}", "the client's wire has no words for it")
            return self._carrier(item, event.index)
        if isinstance(item, Reasoning):
            return [OutputItemDone(place, self._thought(item, event.index))]
        said: list[ResponseEvent] = [OutputItemDone(place, item)]
        if event.index in self._free and isinstance(item, FunctionCall):
            free = _free_form(item)
            said = [FunctionCallArgumentsDelta(place, free.input), OutputItemDone(place, free)]
        return said + (
            self._carrier(item, event.index)
            if _has_state(item) and event.index not in self._told
            else []
        )

    def _thought(self, item: Reasoning, at: int) -> ResponseItem:
        slot = self._slot(item, at, hidden=False)
        return msgspec.structs.replace(item, **{**BARE, "origin": self._origin, **slot})

    def _carrier(self, item: ResponseItem, at: int) -> list[ResponseEvent]:
        """A thought without words, in the answer only for its envelope."""
        slot = self._slot(item, at, hidden=True)
        if not slot:
            return []
        index = self._next()
        thought = Reasoning(choice=item.choice, origin=self._origin, **slot)
        return [
            OutputItemAdded(index, msgspec.structs.replace(thought, status="incomplete")),
            OutputItemDone(index, thought),
        ]

    def _slot(self, item: ResponseItem, at: int, *, hidden: bool) -> JsonObject:
        """The fields that hold the envelope; hidden: the item holds nothing else."""
        spec = WIRE_SPECS[self._origin.wire_api or "chat"].gateway
        if spec is None:
            self._losses.dropped(
                "/state", "the client's wire has no slot for what only the model's wire can read"
            )
            return {}
        self._sealed += 1
        envelope = seal(item, at)
        if not hidden:
            return _slot_fields(spec.reasoning_slot, envelope, self._sealed - 1)
        fields = _slot_fields(spec.hidden_reasoning_slot, envelope, self._sealed - 1)
        if spec.hides_as_redacted:
            fields["redacted"] = True
        return fields

    # --- the envelope of the answer ---

    def _words(self, event: ResponseMetadata | Passthrough) -> list[ResponseEvent]:
        names = event.values if isinstance(event, ResponseMetadata) else [event.event]
        for name in names:
            self._losses.dropped(f"/metadata/{name}", "a word of the model's wire")
        return []

    def _usage(self, event: TokenCount) -> list[ResponseEvent]:
        """What is known at the start goes out at once; what comes while items are open, with the end."""
        count = TokenCount(_numbers(event.usage), seq=event.seq)
        self._counted = count if self._begun else None
        return [] if self._begun else [count]

    def _completed(self, event: Completed) -> list[ResponseEvent]:
        ends = tuple(FinishedChoice(end.choice, end.stop_reason) for end in event.choices)
        usage = _numbers(event.usage) if event.usage else self._counted and self._counted.usage
        return [msgspec.structs.replace(event, native_stop_reason=None, usage=usage, choices=ends)]

    def _failed(self, event: Failed) -> list[ResponseEvent]:
        return [self._counted, event] if self._counted else [event]


_HANDLERS: Final[dict[type, Callable[[EventTranslator, Any], list[ResponseEvent]]]] = {
    OutputItemAdded: EventTranslator._added,
    FunctionCallArgumentsDelta: EventTranslator._arguments,
    OutputItemDone: EventTranslator._done,
    ResponseMetadata: EventTranslator._words,
    Passthrough: EventTranslator._words,
    TokenCount: EventTranslator._usage,
    Completed: EventTranslator._completed,
    Failed: EventTranslator._failed,
}
"""What is not here goes through, unless its item is hidden."""


def _numbers(usage: Usage) -> Usage:
    """The numbers, without the object they were read from."""
    return msgspec.structs.replace(usage, raw={})


def _has_state(item: ResponseItem) -> bool:
    """Whether there is something about the item that no client's wire has a word for.

    An id that is the call's own is one: Gemini's calls may have none, and where they have, the outputs have it too.
    """
    if item.signature or item.native or getattr(item, "phase", None):
        return True
    if isinstance(item, CALLS) and item.id == item.call_id:
        return True
    return isinstance(item, Message) and any(
        isinstance(part, Text) and (part.annotations or part.native) for part in item.content
    )


def _free_form(item: FunctionCall) -> CustomToolCall:
    """The call of a free-form tool that the model's wire has as a function of one string, `input`."""
    try:
        text = item.parsed().get("input", item.arguments)
    except ValueError:
        text = item.arguments
    said = text if isinstance(text, str) else item.arguments
    return CustomToolCall(
        item.call_id, item.name, said, status=item.status, choice=item.choice, origin=item.origin
    )
