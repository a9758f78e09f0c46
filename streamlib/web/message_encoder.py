"""The state that the encoders of both UI protocols keep of a message, and how a run changes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import TypedDict

import msgspec

from streamlib.request.origins import opaque_state
from streamlib.web.public_errors import ErrorText
from streamlib.web.public_events import PublicView
from streamlib.web.run_encoder import NOT_RUN, OUTPUTS, PendingCalls, RunUsage, Waiting
from streamlib.web.ui_parts import (
    ABANDONED,
    TRUNCATED_CALL,
    CallIds,
    ReasoningGaps,
    why_hidden,
    without_state,
)
from streamlib.wires.encoders import RunEncoder, Sealer, sse
from streamlib.wires.event_encoder import EventEncoder
from streamlib.wires.missing_deltas import events_of
from streamlib_parsers.events import (
    Completed,
    Created,
    Event,
    Failed,
    MediaDelta,
    Notice,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.items import CallOutput, JsonObject, ResponseItem, ServerToolResult
from streamlib_parsers.response import Response


class MessageOptions(TypedDict, total=False):
    """What the caller of either encoder may choose.

    Attributes:
        model: the model's name, used if the events bring none.
        run: whether several responses are one message, a step each.
        page_tools: names of tools whose calls the page answers, after the end of a run too.
        approval_tools: names of tools whose calls a person at the page approves first; they wait
            too, as approvals that a provider asks for do.
        public: whether to leave out what a browser must not see: signatures and encrypted state,
            the provider's own objects and error messages.
        error_text: with `public`, returns the message for a failure.
        seal: seals signatures and encrypted state for the page; includes `public`.
        call_ids: ids of calls that the page has already: it takes a call with one of them for that
            call.
    """

    model: str | None
    run: bool
    page_tools: Collection[str]
    approval_tools: Collection[str]
    public: bool
    error_text: ErrorText | None
    seal: Sealer | None
    call_ids: Collection[str]


class MessageEncoder(EventEncoder, ABC):
    """Base of both encoders, whose further options are those of `MessageOptions`."""

    media_type = "text/event-stream"
    names_agents = True

    def __init__(
        self,
        message_id: str | None,
        *,
        model: str | None = None,
        run: bool = False,
        page_tools: Collection[str] = (),
        approval_tools: Collection[str] = (),
        public: bool = False,
        error_text: ErrorText | None = None,
        seal: Sealer | None = None,
        call_ids: Collection[str] = (),
    ) -> None:
        super().__init__(sse)
        self.ended = False
        """Whether the end of the message was sent."""
        self._view: PublicView | None = None
        """What a browser may see of the events; None: all that the protocol has a form for."""
        if public or seal is not None:
            self._view = PublicView(self._report, error_text)
        self._seal = seal
        self._sealed_state: str | None = None
        """The sealed state of the item that ends now; None if it has none, or without a seal."""
        self._model = model
        """The newest model that an event named; before the first, the caller's."""
        self._is_run = run
        self._started = False
        """Whether the start of the message was sent."""
        self._step = 0
        """The number of the step, from 1; ids in a run contain it."""
        self._is_in_step = False
        """Whether the start of a step was sent, but not its end."""
        self._call_ids = CallIds(message_id, call_ids)
        self._gaps = ReasoningGaps()
        self._open: set[int] = set()
        """Items whose part was started and not ended."""
        self._open_calls: dict[int, str] = {}
        """Ids of the calls that the model has not finished writing, by index."""
        self._running: list[str] = []
        """Ids of provider-run calls that have no result yet."""
        self._pending = PendingCalls(page_tools, approval_tools)
        self._broken: set[int] = set()
        """In a run, indexes of calls whose arguments are broken: an output tells the model so."""
        self._usage = RunUsage()
        self._last: Completed | None = None
        """The end of a response after which the run goes on."""
        self._agents: dict[int, str] = {}
        """The agent of each open item, by index, but for those of the one that was asked."""

    def feed(self, event: ResponseEvent) -> bytes:
        """The parts of one event."""
        if self._view is not None:
            if type(event) is OutputItemDone and self._seal is not None:
                event = self._with_sealed_state(event, self._seal)
            event = self._view.of(event)
        # As in the base: calling it would cost each delta a tenth more.
        method = self._methods.get(type(event))
        if method is None:
            return self._drop(event)
        return method(self, event)

    def _drop(self, event: Event) -> bytes:
        if isinstance(event, OUTPUTS):
            # The parts after it would stand behind the end of the message.
            raise TypeError(
                "the output of a call is part of a run: make the encoder with run=True "
                '(for a log: "run": True in its meta)'
            )
        return super()._drop(event)

    def _with_sealed_state(self, event: OutputItemDone, seal: Sealer) -> OutputItemDone:
        """The end of an item whose state goes to the page as `_sealed_state`."""
        self._sealed_state = None
        if opaque_state(event.item):
            self._sealed_state = seal.close(event.item)
        if self._sealed_state is None:
            return event
        return msgspec.structs.replace(event, item=without_state(event.item))

    def _on_notice(self, event: Notice) -> bytes:
        if not self._is_run or event.index is None:
            return b""
        if event.code == "invalid_arguments":
            self._broken.add(event.index)
        elif event.code == "leaked_tool_call":
            self._pending.may_be_asked_again = True
        return b""

    # --- items ---

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return self._text_delta(event.index, event.delta)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        return self._text_delta(event.index, event.delta)

    def _on_media(self, event: MediaDelta) -> bytes:
        return self._text_delta(event.index, event.transcript or "")

    def _on_reasoning(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> bytes:
        return self._text_delta(event.index, self._gaps.with_gap(event))

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        return self._on_reasoning(event)

    def _on_done(self, event: OutputItemDone) -> bytes:
        index, item = event.index, event.item
        is_broken = index in self._broken
        self._pending.add(item, self._call_ids.get(index), is_broken=is_broken)
        out = self._end_item(index, item)
        if why_hidden(item) is None:
            self._end_agent(index, item)
        return out

    def _begin_agent(self, index: int, item: ResponseItem) -> None:
        """Notes who makes an item that begins."""
        if item.agent is not None:
            self._agents[index] = item.agent

    def _end_agent(self, index: int, item: ResponseItem) -> None:
        """Reports an agent that was named after the item had begun."""
        if self._agents.pop(index, None) != item.agent:
            self._report.dropped("/agent", "it was named when the item was shown already")

    # --- responses ---

    def _on_created(self, event: Created) -> bytes:
        self._model = event.model or self._model
        return self._start()

    def _on_completed(self, event: Completed) -> bytes:
        out = self._start() + self._end_open_parts()
        # After a pause the provider continues its calls in the next response.
        if event.stop_reason != "pause":
            out += self._end_running()
        if self._set_end(event):
            return out
        return out + self._end_message(event)

    def _end_message(self, event: Completed) -> bytes:
        """The end of the message, with that of its last response."""
        return self._finish(event)

    def close(self) -> bytes:
        """The end of the stream, unless a terminal event has ended it already."""
        if self.ended:
            return b""
        if self._last is None:
            return self._on_failed(Failed(ABANDONED))
        return self._end_calls(self._pending.take_unanswerable()) + self._finish(self._last)

    def next_response(self) -> bytes:
        """The end of a step: another response of the run begins, and indexes with it."""
        out = self._end_calls(self._pending.next_response()) + self._finish_step()
        self._last = None
        self._agents.clear()
        self._broken.clear()
        self._usage.next_response()
        self._call_ids.next_response()
        self._gaps = ReasoningGaps()
        return out

    def _shown_call(
        self, item: CallOutput, waiting: Waiting | None, *, may_be_earlier: bool
    ) -> str | None:
        """The id by which the page knows the call of an output; None: it does not show that.

        Args:
            item: the output.
            waiting: its call, if that is of this message.
            may_be_earlier: whether the page may have the call from before this message.
        """
        if waiting is not None:
            call_id = waiting.shown_id
        else:
            call_id = item.call_id if may_be_earlier and not self._step else None
        if call_id is None:
            self._report.dropped("/outputs", "the page does not show the call")
        return call_id

    def _set_end(self, event: Completed) -> bool:
        """Takes the end of a response; returns whether the run goes on after it."""
        self._model = event.model or self._model
        if event.usage is not None:
            self._usage.set(event.usage, self._model)
        if not self._is_run or not self._pending.unfinished(event):
            return False
        self._last = event
        return True

    def _end_running(self) -> bytes:
        """Gives provider-run calls without a result an empty one: the response has ended."""
        out = b""
        for call_id in self._running:
            out += self._empty_result(call_id)
        self._running.clear()
        return out

    def _take_answered(self, item: ServerToolResult) -> str | None:
        """The id of the provider-run call that has its result now; None: it was not shown."""
        call_id = self._call_ids.of_result(item.call_id)
        if call_id is None:
            self._report.dropped("/items/server_tool_result", "a result without its call")
        elif call_id in self._running:
            self._running.remove(call_id)
        return call_id

    def _end_calls(self, calls: Iterable[Waiting]) -> bytes:
        """Ends calls that get no output any more with an error."""
        out = b""
        for waiting in calls:
            if waiting.shown_id is not None:
                # A truncated call was to get an output that tells the model so, and the run ended.
                error = NOT_RUN if waiting.item.status == "completed" else TRUNCATED_CALL
                out += self._no_output(waiting.shown_id, error)
        return out

    def _finish_step(self) -> bytes:
        """The end of the step, if one was started."""
        if not self._is_in_step:
            return b""
        self._is_in_step = False
        return self._step_end()

    @abstractmethod
    def _start(self) -> bytes:
        """The start of the message and of its step, as far as they were not sent."""

    @abstractmethod
    def _text_delta(self, index: int, delta: str) -> bytes:
        """A part of the text of an item."""

    @abstractmethod
    def _end_item(self, index: int, item: ResponseItem) -> bytes:
        """What ends an item."""

    @abstractmethod
    def _end_open_parts(self) -> bytes:
        """Ends the parts that are still open: an encoder may be closed at any point."""

    @abstractmethod
    def _finish(self, event: Completed) -> bytes:
        """The end of the message, which no further response continues."""

    @abstractmethod
    def _step_end(self) -> bytes:
        """The end of a step."""

    @abstractmethod
    def _empty_result(self, call_id: str) -> bytes:
        """The result of a provider-run call that has none."""

    @abstractmethod
    def _no_output(self, call_id: str, error: str) -> bytes:
        """The error of a call that gets no output."""


def frames_of(encode: MessageEncoder | RunEncoder, response: Response) -> Iterator[JsonObject]:
    """The JSON values of a response's stream, which its body is made of."""
    for seq, event in enumerate(events_of(response)):
        # The ids of sources are made of it.
        numbered = msgspec.structs.replace(event, seq=seq)
        yield from values_of(encode.feed(numbered))


def values_of(stream: bytes) -> Iterator[JsonObject]:
    """The JSON values of a part of a stream, without its end mark."""
    for frame in stream.split(b"\n\n"):
        lines = [line.removeprefix(b"data: ") for line in frame.split(b"\n")]
        data = b"\n".join(lines)
        if data not in (b"", b"[DONE]"):
            yield msgspec.json.decode(data)
