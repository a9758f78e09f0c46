"""Dialects as a filter over the events of any wire: calls and reasoning in text become items.

    OutputTextDelta "Let me look.\\n<tool_call>{..."   ->   message 0 "Let me look.\\n",
                                                      call 1 with its arguments, message 2 ...

Wires know nothing of it. A recovered call is an ordinary `FunctionCall`: added at once, its
arguments streamed where the dialect writes JSON, and done at the end of its choice, like the calls
of Chat. Only then is it known whether the wire sent calls of its own. If it did, those in the text
do not count: one that equals a call of the wire is dropped, any other is emitted as text. Calls in
reasoning count only where the choice ends with no text and no call at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec.structs import replace

from streamlib_parsers.assembler import default_call_id
from streamlib_parsers.dialects.choice_state import ChoiceState, RecoveredCall, WireCall
from streamlib_parsers.dialects.definitions import resolve_dialects
from streamlib_parsers.dialects.reasoning_calls import calls_in, first_call_index
from streamlib_parsers.dialects.rewriter import MessageRewriter
from streamlib_parsers.dialects.scanner import UNFINISHED, OpenerTable, Scanner
from streamlib_parsers.dialects.sink import Dialect, OfferedTools
from streamlib_parsers.errors import ErrorInfo, ParseFailure
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    StopReason,
)
from streamlib_parsers.filter_assembler import FilterAssembler, ItemEvent
from streamlib_parsers.items import CustomToolCall, FunctionCall, Message, Reasoning, ToolSpec
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.open_items import OpenItem

NO_CALL: Final = "no_tool_call"
"""Code of a wire's Notice: the stop reason announced calls, but none came."""


class DialectFilter:
    """Filters the events of one response."""

    def __init__(
        self,
        dialects: Sequence[str | Dialect],
        tools: Sequence[ToolSpec] = (),
        limits: Limits = LIMITS,
        call_id: Callable[[int], str] = default_call_id,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Begins before the first event.

        Args:
            dialects: names or dialects, in the order in which they are tried.
            tools: the tools offered; calls of others are text.
            limits: `items`, `argument_bytes` and `held_bytes` are enforced.
            call_id: generates the id of the n-th call (from 0) whose text has none.
            names: sent tool name -> the caller's own name.

        Raises:
            ValueError: no dialect has this name.
        """
        self.failure: ErrorInfo | None = None
        """Set where a limit was exceeded here; the next terminal event becomes `Failed`."""
        self._dialects = resolve_dialects(dialects)
        self._limits = limits
        self._tools = OfferedTools(tools, names)
        self._tables = _tables_for(dialects, self._dialects)
        self._assembler = FilterAssembler(limits, call_id)
        self._choices: dict[int, ChoiceState] = {}
        """By choice index."""
        self._rewriters: dict[int, MessageRewriter] = {}
        """The open messages of the assistant, by the wire's index."""
        self._undecided: list[MessageRewriter] = []
        """Closed messages that ended inside reasoning; decided by what follows."""
        self._forwarded: dict[int, _ForwardedItem] = {}
        """All other items, by the wire's index."""
        self._no_call: Notice | None = None
        """The wire's `NO_CALL`, kept until the end: a dialect may find the call."""
        self._ended = False
        """Whether the end of the choices was handled."""

    def feed(self, events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
        """The events to emit for `events`."""
        for event in events:
            try:
                if isinstance(event, OutputTextDelta):  # most events: saves a call
                    self._on_text(event)
                else:
                    self._on_event(event)
            except ParseFailure as failure:
                self._fail(failure.info)
                if isinstance(event, (Completed, Failed)):
                    self._on_failed(Failed(failure.info))
        return self._assembler.take()

    def close(self) -> list[ResponseEvent]:
        """Ends a stream without a terminal event: what is open ends incomplete. After one: `[]`."""
        if not self._ended:
            for rewriter in self._rewriters.values():
                rewriter.abandon()
            try:
                self._end_choices(None)
            except ParseFailure as failure:  # what was undecided exceeds a limit
                self._fail(failure.info)
                self._end_choices(None)
            self._emit_no_call()
            self._assembler.close_open_items()
        return self._assembler.take()

    def _fail(self, error: ErrorInfo) -> None:
        self.failure = error
        for rewriter in (*self._rewriters.values(), *self._undecided):
            rewriter.abandon()
        self._undecided.clear()

    # --- one method a kind of event ---

    def _on_event(self, event: ResponseEvent) -> None:
        match event:  # the most frequent first
            case ReasoningContentDelta() | ReasoningSummaryDelta():
                self._on_reasoning(event)
            case FunctionCallArgumentsDelta():
                self._on_arguments(event)
            case OutputItemAdded():
                self._on_added(event)
            case OutputItemDone():
                self._on_done(event)
            case RefusalDelta() | MediaDelta() | AnnotationAdded() | ItemProgress():
                self._forward_for_item(event)
            case Notice():
                self._on_notice(event)
            case Completed():
                self._on_completed(event)
            case Failed():
                self._on_failed(event)
            case _:
                self._assembler.forward(event)

    def _on_text(self, event: OutputTextDelta) -> None:
        rewriter = self._rewriters.get(event.index)
        if rewriter is None:
            self._forward_for_item(event)
        elif self.failure is None:
            rewriter.feed(event)

    def _on_reasoning(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> None:
        forwarded = self._forwarded.get(event.index)
        if forwarded is not None:
            forwarded.choice.has_wire_reasoning = True
        self._forward_for_item(event)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> None:
        forwarded = self._forwarded.get(event.index)
        if forwarded is not None:
            wire_call = forwarded.choice.wire_calls.get(event.index)
            if wire_call is not None:
                wire_call.arguments.append(event.delta)
        self._forward_for_item(event)

    def _forward_for_item(self, event: ItemEvent) -> None:
        """Forwards an event about an item, whose index here may differ."""
        rewriter = self._rewriters.get(event.index)
        if rewriter is not None:
            if self.failure is None:
                rewriter.forward(event)
            return
        forwarded = self._forwarded.get(event.index)
        if forwarded is not None:
            self._assembler.forward_for(forwarded.item, event)

    def _on_notice(self, event: Notice) -> None:
        if event.code == NO_CALL:
            self._no_call = event
            return
        item = None
        if event.index in self._rewriters:
            item = self._rewriters[event.index].open_item
        elif event.index in self._forwarded:
            item = self._forwarded[event.index].item
        self._assembler.notice(event.code, event.detail, item)

    def _on_added(self, event: OutputItemAdded) -> None:
        if self.failure is not None:
            return
        item = event.item
        choice = self._choices.get(item.choice)
        if choice is None:
            choice = self._choices[item.choice] = ChoiceState()
        # An item follows: unclosed reasoning before it was not the end of the response.
        self._decide_reasoning(choice, None)
        if isinstance(item, Message) and item.role == "assistant":
            self._rewriters[event.index] = MessageRewriter(
                item, choice, self._assembler, self._make_scanner, self._find_call
            )
            return
        self._forwarded[event.index] = _ForwardedItem(self._assembler.open(item), choice)
        if isinstance(item, (FunctionCall, CustomToolCall)):
            choice.wire_calls[event.index] = WireCall(item)
            self._assembler.reserve_call_id(item.call_id)
        choice.has_content = True

    def _on_done(self, event: OutputItemDone) -> None:
        item = event.item
        rewriter = self._rewriters.pop(event.index, None)
        if rewriter is not None:
            if self.failure is None and isinstance(item, Message):
                rewriter.finish(item)
                if rewriter.is_undecided:
                    self._undecided.append(rewriter)
            return
        forwarded = self._forwarded.get(event.index)
        if forwarded is None or forwarded.item.closed:
            return
        if self.failure is not None:
            # The wire's assembler completes what it can, but the stream failed here.
            item = replace(item, status="incomplete")
        if isinstance(item, Reasoning):
            forwarded.choice.reasoning.append(item)  # searched for calls at the end
        self._assembler.close_as(forwarded.item, item)

    def _on_completed(self, event: Completed) -> None:
        if self.failure is not None:
            self._on_failed(Failed(self.failure))
            return
        finished = event.choices
        if not finished:
            finished = (FinishedChoice(0, event.stop_reason, event.native_stop_reason),)
        self._end_choices({choice.choice: choice.stop_reason for choice in finished})
        self._emit_no_call()
        choices = tuple(self._with_calls(choice) for choice in finished)
        if choices != event.choices:
            stop_reason = event.stop_reason
            # The response's own reason is that of its only choice, or of choice 0.
            main_choice = choices[0].choice if len(choices) == 1 else 0
            if stop_reason == "stop" and self._has_calls(main_choice):
                stop_reason = "tool_calls"
            event = replace(event, choices=choices, stop_reason=stop_reason)
        self._assembler.end_with(event)

    def _on_failed(self, event: Failed) -> None:
        self._end_choices(None)
        self._emit_no_call()
        if self.failure is not None:
            event = Failed(self.failure)
        self._assembler.end_with(event)

    # --- the end ---

    def _end_choices(self, reasons: Mapping[int, StopReason] | None) -> None:
        """Decides what is open, before the terminal event.

        Args:
            reasons: why each choice ended; None where the stream failed.
        """
        self._ended = True
        for index, choice in self._choices.items():
            reason = None if reasons is None else reasons.get(index, "other")
            self._decide_reasoning(choice, reason)  # may find text, and calls
            is_empty = not (choice.has_text or choice.wire_calls or choice.recovered)
            if is_empty and reason is not None and reason in ("stop", "tool_calls"):
                self._search_reasoning(index, choice, reason)
            self._close_calls(index, choice, reason)

    def _emit_no_call(self) -> None:
        """The wire missed a call: emits its Notice, unless a dialect found one."""
        notice, self._no_call = self._no_call, None
        if notice is not None and not any(choice.calls_stand for choice in self._choices.values()):
            self._assembler.forward(notice)

    def _decide_reasoning(self, choice: ChoiceState, reason: StopReason | None) -> None:
        """Decides what the unclosed reasoning of a choice was, once something follows it.

        Args:
            choice: the choice.
            reason: why the choice ended; None where an item follows, or the stream failed.
        """
        for rewriter in list(self._undecided):
            if rewriter.choice is choice:
                self._undecided.remove(rewriter)
                rewriter.resolve(reason)

    def _close_calls(self, index: int, choice: ChoiceState, reason: StopReason | None) -> None:
        """Closes the recovered calls: they stand unless the wire sent calls of its own.

        Args:
            index: of the choice.
            choice: its state.
            reason: why it ended; None where the stream failed.
        """
        while choice.recovered:
            recovered = choice.recovered.pop(0)
            item = recovered.item
            is_finished = recovered.has_end or reason in ("stop", "tool_calls")
            # Beside calls of the wire itself those in text do not count.
            stands = is_finished and reason is not None and not choice.wire_calls
            if not is_finished:
                self._assembler.notice("leaked_tool_call", UNFINISHED, item)
            # Not `close`: the arguments were checked when the call's end was read.
            self._assembler.close_as(item, item.snapshot("completed" if stands else "incomplete"))
            if stands:
                choice.calls_stand = True
            elif is_finished and reason is not None:
                self._undo_call(index, choice, recovered)

    def _undo_call(self, index: int, choice: ChoiceState, recovered: RecoveredCall) -> None:
        """Ends a call that does not count: a duplicate with a Notice, any other as text."""
        item, call = recovered.item, recovered.item.item
        if not isinstance(call, FunctionCall):
            return
        if choice.has_wire_call(call.name, "".join(item.arguments)):
            detail = f"{call.name}: the wire's own call stands"
            self._assembler.notice("duplicate_call", detail, item)
            return
        message = self._assembler.open(Message("assistant", choice=index, origin=call.origin))
        self._assembler.text(message, recovered.literal)
        self._assembler.close(message)

    def _search_reasoning(self, index: int, choice: ChoiceState, reason: StopReason) -> None:
        """A choice without any output: its calls may be in its reasoning."""
        # A wire that announced a call and sent none says `stop`, with a notice.
        announced = reason == "tool_calls" or self._no_call is not None
        dialects = [dialect for dialect in self._dialects if dialect.in_thoughts or announced]
        table = OpenerTable(dialects, reasoning=False)
        for reasoning in choice.reasoning:
            for call in calls_in(reasoning.content, table, self._tools, self._limits.held_bytes):
                call_id = self._assembler.unique_call_id(call.call_id)
                item = self._assembler.open(
                    FunctionCall(call_id, call.name, choice=index, origin=reasoning.origin)
                )
                # Before its arguments: where they exceed the limit, it is closed with the others.
                choice.recovered.append(RecoveredCall(item, ""))
                self._assembler.arguments(item, call.arguments)

    def _has_calls(self, index: int) -> bool:
        """Whether a choice has recovered calls that stand."""
        choice = self._choices.get(index)
        return choice is not None and choice.calls_stand

    def _with_calls(self, choice: FinishedChoice) -> FinishedChoice:
        """The choice, with `tool_calls` in place of `stop` if recovered calls stand."""
        if choice.stop_reason == "stop" and self._has_calls(choice.choice):
            return choice._replace(stop_reason="tool_calls")
        return choice

    def _make_scanner(self, rewriter: MessageRewriter) -> Scanner:
        with_reasoning, calls_only = self._tables
        choice, table = rewriter.choice, with_reasoning
        if choice.has_wire_reasoning or rewriter.reasoning_ended:
            table = calls_only  # the wire or the message reports reasoning itself: tags are text
        return Scanner(
            table,
            rewriter,
            self._tools,
            limit=self._limits.held_bytes,
            at_response_start=not choice.has_content,
        )

    def _find_call(self, text: str) -> int | None:
        """Where the first complete call in reasoning begins; None where there is none."""
        _, calls_only = self._tables
        return first_call_index(text, calls_only, self._tools, self._limits.held_bytes)


class _ForwardedItem:
    """An item of the wire that is not a message of the assistant."""

    __slots__ = ("choice", "item")

    def __init__(self, item: OpenItem, choice: ChoiceState) -> None:
        self.item = item
        self.choice = choice


_Tables: TypeAlias = tuple[OpenerTable, OpenerTable]
"""The openers of the enabled dialects: all of them, and those of calls only."""


def _tables_for(names: Sequence[str | Dialect], dialects: Sequence[Dialect]) -> _Tables:
    shipped = tuple(name for name in names if isinstance(name, str))
    if len(shipped) == len(names):
        return _shipped_tables(shipped)
    return _make_tables(dialects)


@lru_cache(maxsize=64)
def _shipped_tables(names: tuple[str, ...]) -> _Tables:
    """Cached: a client asks for the same dialects again and again, and tables never change."""
    return _make_tables(resolve_dialects(names))


def _make_tables(dialects: Sequence[Dialect]) -> _Tables:
    return OpenerTable(dialects), OpenerTable(dialects, reasoning=False)
