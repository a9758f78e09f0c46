"""Several responses and the outputs between them as one message: what both UI protocols share.

A run goes on as `Response.unfinished` says: while something waits for an output of the caller's, or
the provider paused. Any other end of a response ends the run, and so does `close`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, Protocol

from streamlib.request.report import Change, Report
from streamlib.wires.missing_deltas import WithMissingDeltas
from streamlib_parsers.events import Completed, Event, Failed, ResponseEvent, RunEvent
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    ApprovalRequest,
    CallOutput,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Opaque,
    PendingCall,
    ResponseItem,
)
from streamlib_parsers.usage import Usage

OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput, *BUILT_IN_OUTPUTS)
"""The classes of `CallOutput`, for `isinstance`."""
TERMINAL: Final = frozenset({Completed, Failed})
"""Events that end a response."""
NOT_RUN: Final = "the run ended before this call had an output"
"""The error of a call that gets no output any more."""


class _OneMessage(Protocol):
    """An encoder of a UI protocol that was made for a run."""

    media_type: str
    ended: bool

    @property
    def report(self) -> list[Change]: ...

    def feed(self, event: ResponseEvent) -> bytes: ...

    def output(self, item: CallOutput) -> bytes: ...

    def next_response(self) -> bytes: ...

    def close(self) -> bytes: ...


class MessageRunEncoder:
    """Encodes the responses of a run, and the outputs between them, as one message."""

    def __init__(self, encoder: _OneMessage, keep_alive: bytes) -> None:
        self.media_type = encoder.media_type
        self.headers: Mapping[str, str] = getattr(encoder, "headers", {})
        """Headers of the protocol's own, beside the content type."""
        self._encoder = encoder
        self._keep_alive = keep_alive
        """What `ping` returns."""
        self._report = Report()
        """Changes: what pipeline stages dropped, and what came after the end."""
        self._response = WithMissingDeltas(encoder, report=self._report)
        """Encodes the current response; a new one for each response, since indexes begin again."""
        self._response_ended = False
        """Whether the terminal event of that response came."""

    @property
    def report(self) -> list[Change]:
        """What the protocol could not carry, so far."""
        return self._encoder.report + self._report.changes

    def feed(self, event: RunEvent) -> bytes:
        """The bytes of one event, or of the output of a call.

        Raises:
            TypeError: the argument is neither.
        """
        if not isinstance(event, Event):
            if not isinstance(event, OUTPUTS):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"a {type(event).__name__} is neither an event nor an output")
            if self._encoder.ended:
                return self._after_end()
            return self._encoder.output(event)
        if self._response_ended:
            if self._encoder.ended:
                return self._after_end()
            if isinstance(event, Failed):
                # The next request failed before there was a response: no step of its own.
                return self._encoder.feed(event)
            self._response_ended = False
            self._response = WithMissingDeltas(self._encoder, report=self._report)
            return self._encoder.next_response() + self.feed(event)
        # One look-up for each delta: an `isinstance` that misses costs more.
        if type(event) in TERMINAL:
            self._response_ended = True
        return self._response.feed(event)

    def close(self) -> bytes:
        """The end of the message, with the ends of all parts that are still open."""
        return self._response.close()

    def ping(self) -> bytes:
        """Bytes that readers ignore, to send while the model or a tool is silent."""
        return self._keep_alive

    def _after_end(self) -> bytes:
        self._report.dropped("/run", "it came after a response that waits for no output")
        return b""


class Waiting(NamedTuple):
    """A call that waits for an output of the caller's; `shown_id` is None if the page lacks it."""

    item: PendingCall
    shown_id: str | None


class PendingCalls:
    """The calls of a response that wait for an output, as `Response.pending` has them.

    Args:
        page_tools: names of tools whose calls the page answers, so they may wait after the end.
        approval_tools: names of tools whose calls somebody at the page approves; they wait too.
    """

    def __init__(
        self, page_tools: Collection[str] = (), approval_tools: Collection[str] = ()
    ) -> None:
        self._page_tools = frozenset(page_tools)
        self._approval_tools = frozenset(approval_tools)
        self._waiting: list[Waiting] = []
        """In the order in which the calls were complete."""
        self._has_items = False
        """Whether the response has any item."""
        self.may_be_asked_again = False
        """Whether the model wrote a call as text: a run may ask it to write the call again."""

    def add(self, item: ResponseItem, shown_id: str | None, *, is_broken: bool = False) -> None:
        """Records an item that is done: a call to answer, or the provider's own output.

        Args:
            item: the item.
            shown_id: the id of a call that the page shows.
            is_broken: whether it is an incomplete call that gets an error as its output.
        """
        if item.choice:
            return
        self._has_items = True
        if isinstance(item, Opaque):
            # An output of a kind that only the provider knows: it ran the call itself.
            self.take(item.answers or "")
        elif isinstance(item, (FunctionCall, CustomToolCall, *BUILT_IN_CALLS)):
            if item.status == "completed" or is_broken:
                self._waiting.append(Waiting(item, shown_id))

    def take(self, call_id: str) -> Waiting | None:
        """Removes and returns the oldest call with this id; None if none waits."""
        for position, waiting in enumerate(self._waiting):
            if waiting.item.call_id == call_id:
                return self._waiting.pop(position)
        return None

    def take_unanswerable(self) -> list[Waiting]:
        """Removes and returns the calls that get no output once the run has ended."""
        taken: list[Waiting] = []
        for_page: list[Waiting] = []
        for waiting in self._waiting:
            if self._is_for_page(waiting.item):
                for_page.append(waiting)
            else:
                taken.append(waiting)
        self._waiting = for_page
        return taken

    @property
    def approvals(self) -> list[Waiting]:
        """The calls that the page shows and somebody has to approve."""
        waiting_calls: list[Waiting] = []
        for waiting in self._waiting:
            if waiting.shown_id is not None and self._needs_approval(waiting.item):
                waiting_calls.append(waiting)
        return waiting_calls

    @property
    def shown_ids(self) -> list[str]:
        """The ids of the calls that the page shows, in their order."""
        return [waiting.shown_id for waiting in self._waiting if waiting.shown_id is not None]

    def unfinished(self, event: Completed) -> bool:
        """Whether the run goes on after this end of a response, as `Response.unfinished` says."""
        if event.stop_reason == "pause":
            return self._has_items
        return bool(self._waiting) or self.may_be_asked_again

    def next_response(self) -> list[Waiting]:
        """Removes and returns all waiting calls: none is carried over to the next response."""
        self._has_items = False
        self.may_be_asked_again = False
        taken = self._waiting
        self._waiting = []
        return taken

    def _is_for_page(self, item: PendingCall) -> bool:
        """Whether somebody at the page answers a call: by running a tool, or by an approval."""
        if item.status != "completed":
            return False
        if isinstance(item, (FunctionCall, CustomToolCall)) and item.name in self._page_tools:
            return True
        return self._needs_approval(item)

    def _needs_approval(self, item: PendingCall) -> bool:
        """Whether somebody at the page approves a complete call, before it is made."""
        if item.status != "completed":
            return False
        if isinstance(item, (FunctionCall, CustomToolCall)):
            return item.name in self._approval_tools
        return isinstance(item, ApprovalRequest)


class RunUsage:
    """The usage of a run: that of its earlier responses, and of the one that streams."""

    def __init__(self) -> None:
        self._earlier: dict[str | None, Usage] = {}
        """The sum of the responses that ended, by model."""
        self._model: str | None = None
        """The model of the response that streams."""
        self._current: Usage | None = None
        """The newest usage of that response."""

    def set(self, usage: Usage, model: str | None) -> None:
        """Takes a snapshot of the response that streams; it replaces the one before."""
        self._current = usage
        self._model = model

    def next_response(self) -> None:
        """Adds the response that ended to the sum."""
        self._earlier = self.by_model
        self._current = None

    @property
    def by_model(self) -> dict[str | None, Usage]:
        """The sums so far, in the order in which the models were first used."""
        sums = dict(self._earlier)
        if self._current is not None:
            earlier = sums.get(self._model, Usage())
            sums[self._model] = earlier.plus(self._current)
        return sums

    @property
    def total(self) -> Usage | None:
        """The sum of everything; None while nothing is known."""
        usage: Usage | None = None
        for of_model in self.by_model.values():
            usage = (usage or Usage()).plus(of_model)
        return usage
