"""Events of the model's wire, made ready for the encoder of another: a stage between the parser and the encoder.

What only the model's wire can read is put into envelopes, and those into the one slot that a client's wire keeps and gives back
unread: the one for sealed thoughts.

| client's wire | beside a thought | for an item that has no such slot, or no words here |
|---|---|---|
| messages | `thinking.signature` | a `redacted_thinking` block after it |
| responses | `reasoning.encrypted_content` | a `reasoning` item after it |
| chat | an element of `reasoning_details` | the same |
| gemini | `thoughtSignature` of the thought | an empty thought with a `thoughtSignature` |

`restoring.py` is the way back. The words of the model's wire (metadata, native stop reasons, unknown events) mean nothing here: left out,
and in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.encoders import Losses
from streamlib.gateway.envelopes import sealed
from streamlib.report import Change
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
BARE: Final[JsonObject] = {"id": None, "signature": None, "encrypted_content": None, "redacted": False, "native": None}
CARRIERS: Final = 1 << 30
"""Indexes of what is added here begin above those of any answer."""

Slot = Callable[[str, int], JsonObject]


def _in_details(envelope: str, at: int) -> JsonObject:
    """Clients join elements of one index: each has its own."""
    return {"native": {"reasoning_details": [{"type": "reasoning.encrypted", "data": envelope, "index": at}]}}


THOUGHTS: Final[dict[WireApi, Slot]] = {
    "messages": lambda envelope, at: {"signature": envelope},
    "responses": lambda envelope, at: {"encrypted_content": envelope},
    "chat": _in_details,
    "gemini": lambda envelope, at: {"signature": envelope},
}
"""Fields of a thought of the client's wire that hold an envelope."""
ALONE: Final[dict[WireApi, Slot]] = {**THOUGHTS, "messages": lambda envelope, at: {"redacted": True, "encrypted_content": envelope}}
"""The same for a thought that holds nothing else."""


class Crossing:
    """One answer on its way to a client of `wire_api`. custom: names of the tools that the client declared as free-form.

    A wire without a slot (it has no sealed thoughts) loses what would be in it; `report` says so.
    """

    def __init__(self, wire_api: WireApi, custom: frozenset[str] = frozenset()) -> None:
        self._origin = Origin(wire_api)
        self._custom = custom
        self._losses = Losses()
        self._hidden: set[int] = set()
        self._free: set[int] = set()
        self._carried = 0
        self._detailed = 0
        self._begun = False
        self._counted: TokenCount | None = None

    @property
    def report(self) -> list[Change]:
        """What was left out."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event as the client's encoder may see it; what belongs to a hidden item, nothing of."""
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            return handler(self, event)
        return [] if self._hidden and getattr(event, "index", None) in self._hidden else [event]

    # --- items ---

    def _added(self, event: OutputItemAdded) -> list[ResponseEvent]:
        item = event.item
        self._begun = True
        if isinstance(item, HIDDEN):
            self._hidden.add(event.index)
            return []
        if isinstance(item, Reasoning):
            return [OutputItemAdded(event.index, msgspec.structs.replace(item, origin=self._origin, **BARE))]
        if isinstance(item, FunctionCall) and item.name in self._custom:
            self._free.add(event.index)
            return [OutputItemAdded(event.index, _free_form(item))]
        return [event]

    def _arguments(self, event: FunctionCallArgumentsDelta) -> list[ResponseEvent]:
        return [] if event.index in self._hidden or event.index in self._free else [event]

    def _done(self, event: OutputItemDone) -> list[ResponseEvent]:
        item = event.item
        if event.index in self._hidden:
            self._hidden.discard(event.index)
            self._losses.note(f"/{type(item).__name__}", "the client's wire has no words for it")
            return self._carrier(item, event.index)
        if isinstance(item, Reasoning):
            return [OutputItemDone(event.index, self._thought(item, event.index))]
        said: list[ResponseEvent] = [event]
        if event.index in self._free and isinstance(item, FunctionCall):
            free = _free_form(item)
            said = [FunctionCallArgumentsDelta(event.index, free.input), OutputItemDone(event.index, free)]
        return said + (self._carrier(item, event.index) if _has_state(item) else [])

    def _thought(self, item: Reasoning, at: int) -> ResponseItem:
        slot = self._slot(THOUGHTS, item, at)
        return msgspec.structs.replace(item, **{**BARE, "origin": self._origin, **slot})

    def _carrier(self, item: ResponseItem, at: int) -> list[ResponseEvent]:
        """A thought without words, in the answer only for its envelope."""
        slot = self._slot(ALONE, item, at)
        if not slot:
            return []
        self._carried += 1
        index = CARRIERS + self._carried
        thought = Reasoning(choice=item.choice, origin=self._origin, **slot)
        return [OutputItemAdded(index, msgspec.structs.replace(thought, status="incomplete")), OutputItemDone(index, thought)]

    def _slot(self, slots: dict[WireApi, Slot], item: ResponseItem, at: int) -> JsonObject:
        made = slots.get(self._origin.wire_api or "chat")
        if made is None:
            self._losses.note("/state", "the client's wire has no slot for what only the model's wire can read")
            return {}
        self._detailed += 1
        return made(sealed(item, at), self._detailed - 1)

    # --- the envelope of the answer ---

    def _words(self, event: ResponseMetadata | Passthrough) -> list[ResponseEvent]:
        names = event.values if isinstance(event, ResponseMetadata) else [event.event]
        for name in names:
            self._losses.note(f"/metadata/{name}", "a word of the model's wire")
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


_HANDLERS: Final[dict[type, Callable[[Crossing, Any], list[ResponseEvent]]]] = {
    OutputItemAdded: Crossing._added,
    FunctionCallArgumentsDelta: Crossing._arguments,
    OutputItemDone: Crossing._done,
    ResponseMetadata: Crossing._words,
    Passthrough: Crossing._words,
    TokenCount: Crossing._usage,
    Completed: Crossing._completed,
    Failed: Crossing._failed,
}
"""What is not here goes through, unless its item is hidden."""


def _numbers(usage: Usage) -> Usage:
    """The numbers, without the object they were read from."""
    return msgspec.structs.replace(usage, raw={})


def _has_state(item: ResponseItem) -> bool:
    """Whether there is something about the item that no client's wire has a word for."""
    if item.signature or item.native or getattr(item, "phase", None):
        return True
    return isinstance(item, Message) and any(isinstance(part, Text) and (part.annotations or part.native) for part in item.content)


def _free_form(item: FunctionCall) -> CustomToolCall:
    """The call of a free-form tool that the model's wire has as a function of one string, `input`."""
    try:
        text = item.parsed().get("input", item.arguments)
    except ValueError:
        text = item.arguments
    said = text if isinstance(text, str) else item.arguments
    return CustomToolCall(item.call_id, item.name, said, status=item.status, choice=item.choice, origin=item.origin)
