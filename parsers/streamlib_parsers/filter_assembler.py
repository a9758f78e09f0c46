"""The assembler of a filter over events: it renumbers what the assembler of the wire emitted, and
adds items of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from streamlib_parsers.assembler import EventAssembler, default_call_id
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.items import ItemStatus, Origin, ResponseItem
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.open_items import OpenItem

ItemEvent: TypeAlias = (
    OutputTextDelta
    | ReasoningContentDelta
    | ReasoningSummaryDelta
    | FunctionCallArgumentsDelta
    | RefusalDelta
    | MediaDelta
    | AnnotationAdded
    | ItemProgress
)
"""The events about one open item."""


class FilterAssembler(EventAssembler):
    """Numbers, brackets and limits the events that leave a filter.

    Items are opened and closed as in any assembler, but keep the origin they have; `Created` is the
    wire's, forwarded.
    """

    def __init__(
        self,
        limits: Limits = LIMITS,
        call_id: Callable[[int], str] = default_call_id,
        first_seq: int = 0,
    ) -> None:
        """Starts without items.

        Args:
            limits: `items` and `argument_bytes` are enforced here.
            call_id: generates the id of the n-th call (from 0) that has none.
            first_seq: number of the first event, for a filter that passed those before it on
                untouched.
        """
        super().__init__(limits, Origin(), call_id)
        self._has_created = True
        self._seq = first_seq - 1
        self._used_call_ids: set[str] = set()
        """Ids given to `reserve_call_id` or returned by `unique_call_id`."""

    def _with_origin(self, item: ResponseItem, status: ItemStatus) -> ResponseItem:
        return replace(item, status=status)

    # --- call ids ---

    def reserve_call_id(self, call_id: str) -> None:
        """Keeps `unique_call_id` from returning an id that the wire uses."""
        self._used_call_ids.add(call_id)

    def unique_call_id(self, preferred: str = "") -> str:
        """`preferred` if it is not empty and no other call has it, else a generated id."""
        call_id = preferred
        # A `call_id` function that never repeats itself finds a free id in this many attempts. One
        # that does repeat itself (the caller may have written it) yields a duplicate id, not an
        # endless loop.
        for _ in range(len(self._used_call_ids) + 1):
            if call_id and call_id not in self._used_call_ids:
                break
            call_id = self.new_call_id()
        self._used_call_ids.add(call_id)
        return call_id

    # --- events of the wire's assembler ---

    def forward(self, event: ResponseEvent) -> None:
        """Emits an event under the next number; the same object where it has that already."""
        self._seq = seq = self._seq + 1
        if event.seq != seq:
            event = replace(event, seq=seq)
        self._events.append(event)

    def forward_for(self, item: OpenItem, event: ItemEvent) -> None:
        """Emits an event about `item`, whose index here may differ from the one of the wire."""
        if event.index == item.index:
            self.forward(event)
        else:
            self._events.append(replace(event, index=item.index, seq=self._next_seq()))

    def close_as(self, item: OpenItem, final: ResponseItem) -> None:
        """Closes an item with a version that the wire's assembler or the filter has checked."""
        self._done(item, final)

    def end_with(self, terminal: Completed | Failed) -> None:
        """Ends the response; what is still open ends `incomplete`."""
        self.close_open_items()
        self.ended = True
        self.forward(terminal)
