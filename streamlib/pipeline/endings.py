"""How a machine ends a response before its source does: as a whole one, never cut off.

    items = OpenItems()
    items.feed(event)                                       # every event that the machine lets out
    items.end(Failed(ErrorInfo("stalled", …)))              # what it lets out at the end
    items.end(Completed(stop_reason="stop"), "found END")   # the same, with its notice

So every item is closed, the terminal event says who has ended the stream, and an encoder or a log
behind it sees a response like any other.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    DELTA_KEYS,
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
)
from streamlib_parsers.items import Message, Reasoning

STOPPED: Final = "stopped_by_stage"
"""Code of the notice, or of the failure, of a response that a stage has ended."""

LIMIT_REACHED: Final = "the limit was reached"
"""Detail of that notice."""

TERMINAL: Final = frozenset({Completed, Failed})
"""The events that end a response."""

CONTENT: Final = frozenset({*DELTA_KEYS, MediaDelta, AnnotationAdded})
"""Events that add to an open item."""

STOPPED_BY_CALLER: Final = ErrorInfo("cancelled", "a stage ended the stream", code=STOPPED)
"""The failure of a stream whose reader has seen enough."""


class OpenItems:
    """The open items of what a machine lets out, and how to end its response.

    It keeps what open items have so far: of a long stream no more than its open item.
    """

    def __init__(self) -> None:
        self.has_ended = False
        """The terminal event was let out."""
        self._open: dict[int, Accumulator] = {}
        """Index of an open item to what it has so far."""
        self._created = Created()
        self._choices: set[int] = set()
        """The choices that have an item."""

    def feed(self, event: ResponseEvent) -> None:
        """Notes an event that the machine lets out."""
        kind = type(event)
        if kind in CONTENT:
            # A hand-made list may have deltas of an item that was never added.
            index: int = event.index  # type: ignore[union-attr, assignment]
            accumulator = self._open.get(index)
            if accumulator is not None:
                accumulator.feed(event)
        elif isinstance(event, OutputItemAdded):
            accumulator = self._open[event.index] = Accumulator()
            accumulator.feed(event)
            self._choices.add(event.item.choice)
        elif isinstance(event, OutputItemDone):
            self._open.pop(event.index, None)
            self._choices.add(event.item.choice)
        elif isinstance(event, Created):
            self._created = event
        elif kind in TERMINAL:
            self.has_ended = True

    def end(
        self, terminal: Completed | Failed, detail: str = "", *, completed: int | None = None
    ) -> list[ResponseEvent]:
        """The events that end the response here; they are noted as let out.

        Each open item is closed as incomplete. `Completed` gets a ``Notice("stopped_by_stage")``
        before it, and the id, the model and the choices of the response; its usage is unknown,
        since the request is closed.

        Args:
            terminal: the terminal event.
            detail: text of the notice: why the stream ends.
            completed: index of an item that ends as it should, as before a stop text. A call
                never does: its arguments are not all there.

        Returns:
            Empty if the response has ended already.
        """
        if self.has_ended:
            return []
        self.has_ended = True
        endings = self.close_items(completed=completed)
        if isinstance(terminal, Completed):
            endings.append(Notice(STOPPED, detail))
            terminal = self._named(terminal)
        endings.append(terminal)
        return endings

    def close_items(
        self, choice: int | None = None, *, completed: int | None = None
    ) -> list[ResponseEvent]:
        """The ends of the open items, of one choice or of all; see `end`."""
        endings: list[ResponseEvent] = []
        for index, accumulator in sorted(self._open.items()):
            item = accumulator.item(index)
            if choice is not None and item.choice != choice:
                continue
            if index == completed and isinstance(item, (Message, Reasoning)):
                item = replace(item, status="completed")
            endings.append(OutputItemDone(index, item, agent=item.agent))
            del self._open[index]
        return endings

    def _named(self, terminal: Completed) -> Completed:
        """`terminal` with what is known of the response."""
        choices = terminal.choices
        if not choices:
            reason = terminal.stop_reason
            choices = tuple(FinishedChoice(n, reason) for n in sorted(self._choices or {0}))
        return replace(
            terminal,
            response_id=terminal.response_id or self._created.response_id,
            model=terminal.model or self._created.model,
            choices=choices,
        )
