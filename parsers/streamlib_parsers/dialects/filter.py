"""Dialects as a stage over the events of any wire: text in which a model wrote calls or thoughts becomes items.

    OutputTextDelta "Let me look.\\n<tool_call>{…"   ->   message 0 "Let me look.\\n", call 1 with its arguments, message 2 …

Wires know nothing of it. A recovered call is an ordinary `FunctionCall`: added at once, its arguments streamed where the dialect
writes JSON, and done at the answer's end, like the calls of Chat: only then is it known whether the wire gave calls of its own, beside
which those in the text do not count (equal ones are dropped, the rest comes back as text). Calls in a thought count only where the
answer ends with no text and no call at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from streamlib_parsers.dialects.choice_state import (
    ChoiceState,
    EventRenumberer,
    RecoveredCall,
    WireCall,
)
from streamlib_parsers.dialects.definitions import resolve_dialects
from streamlib_parsers.dialects.grammar import Dialect
from streamlib_parsers.dialects.reasoning_calls import calls_in
from streamlib_parsers.dialects.rewriter import MessageRewriter
from streamlib_parsers.dialects.scanner import OpenerTable, Scanner
from streamlib_parsers.dialects.sink import OfferedTools
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
from streamlib_parsers.items import CustomToolCall, FunctionCall, Message, Reasoning, ToolSpec
from streamlib_parsers.limits import LIMITS, Limits

NATIVE: Final = (FunctionCall, CustomToolCall)
NO_CALL: Final = "no_tool_call"
"""A wire's Notice: the answer ended for calls, and none came."""


class DialectFilter:
    """The events of one response.

    dialects: names or dialects. tools: those offered; no other is called. names: sent tool name -> your tool name.
    call_id: names the calls that the text left nameless.
    """

    def __init__(
        self,
        dialects: Sequence[str | Dialect],
        tools: Sequence[ToolSpec] = (),
        limits: Limits = LIMITS,
        call_id: Callable[[int], str] = "call_{}".format,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._dialects = resolve_dialects(dialects)
        self._limits = limits
        self._offered = OfferedTools(tools, names)
        shipped = tuple(dialect for dialect in dialects if isinstance(dialect, str))
        self._plan, self._calls_only = (
            _shipped(shipped) if len(shipped) == len(dialects) else _plans(self._dialects)
        )
        self._outlet = EventRenumberer(limits, call_id)
        self._answers: dict[int, ChoiceState] = {}
        self._indexes: dict[int, tuple[int, ChoiceState]] = {}
        self._scribes: dict[int, MessageRewriter] = {}
        self._waiting: list[MessageRewriter] = []
        self._no_call: Notice | None = None
        self._ended = False
        self.failure: ErrorInfo | None = None
        """Set where a ceiling was passed here; everything open ends with the next terminal event, which is `Failed`."""

    def feed(self, events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
        """The events that go out for `events`."""
        for event in events:
            handler = _HANDLERS.get(type(event), DialectFilter._pass)
            try:
                handler(self, event)
            except ParseFailure as failure:
                self._fail(failure.info)
                if isinstance(event, (Completed, Failed)):
                    self._failed(Failed(failure.info))
        return self._outlet.take()

    def _fail(self, error: ErrorInfo) -> None:
        self.failure = error
        for scribe in (*self._scribes.values(), *self._waiting):
            scribe.abandon()
        self._waiting.clear()

    def close(self) -> list[ResponseEvent]:
        """The end of a stream without a terminal event: what is open ends incomplete. After a terminal there is nothing to say."""
        if not self._ended:
            for scribe in self._scribes.values():
                scribe.abandon()
            try:
                self._end(None)
            except ParseFailure as failure:  # what waited was one item too many
                self._fail(failure.info)
                self._end(None)
            self._say_no_call()
        return self._outlet.take()

    # --- one method a kind of event ---

    def _pass(self, event: ResponseEvent) -> None:
        self._outlet.emit(event)

    def _text(self, event: OutputTextDelta) -> None:
        scribe = self._scribes.get(event.index)
        if scribe is None:
            self._inside(event)
        elif self.failure is None:
            scribe.feed(event)

    def _inside(self, event: Any) -> None:
        """Something about an item, under its new number."""
        scribe = self._scribes.get(event.index)
        if scribe is not None:
            if self.failure is None:
                scribe.other(event, ends_text=isinstance(event, (RefusalDelta, MediaDelta)))
        elif event.index in self._indexes:
            index, _ = self._indexes[event.index]
            self._outlet.emit(event, **({} if index == event.index else {"index": index}))

    def _thought(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> None:
        if event.index in self._indexes:
            self._indexes[event.index][1].native_thoughts = True
        self._inside(event)

    def _arguments(self, event: FunctionCallArgumentsDelta) -> None:
        if event.index in self._indexes:
            native = self._indexes[event.index][1].natives.get(event.index)
            if native is not None:
                native.arguments.append(event.delta)
        self._inside(event)

    def _notice(self, event: Notice) -> None:
        if event.code == NO_CALL:
            self._no_call = event
            return
        if event.index is None:
            self._outlet.emit(event)
            return
        scribe = self._scribes.get(event.index)
        known = self._indexes.get(event.index)
        index = scribe.index if scribe is not None else known[0] if known else None
        self._outlet.emit(event, **({} if index == event.index else {"index": index}))

    def _added(self, event: OutputItemAdded) -> None:
        if self.failure is not None:
            return
        item = event.item
        answer = self._answers.setdefault(item.choice, ChoiceState())
        self._settle_thoughts(answer, None)
        if isinstance(item, Message) and item.role == "assistant":
            self._scribes[event.index] = MessageRewriter(item, answer, self._outlet, self._scanner)
            return
        index = self._outlet.index()
        self._indexes[event.index] = (index, answer)
        if isinstance(item, NATIVE):
            answer.natives[event.index] = WireCall(item)
            self._outlet.taken(item.call_id)
        answer.begun = True
        self._outlet.emit(event, **({} if index == event.index else {"index": index}))

    def _done(self, event: OutputItemDone) -> None:
        scribe = self._scribes.pop(event.index, None)
        if scribe is not None:
            if self.failure is None and isinstance(event.item, Message):
                scribe.finish(event.item)
                if scribe.waits:
                    self._waiting.append(scribe)
            return
        if event.index not in self._indexes:
            return
        index, answer = self._indexes[event.index]
        item = event.item if self.failure is None else replace(event.item, status="incomplete")
        if isinstance(item, Reasoning):
            answer.thoughts.append(item)
        self._outlet.emit(
            replace(event, index=index, item=item)
            if index != event.index or item is not event.item
            else event
        )

    def _completed(self, event: Completed) -> None:
        if self.failure is not None:
            self._failed(Failed(self.failure))
            return
        ends = event.choices or (FinishedChoice(0, event.stop_reason, event.native_stop_reason),)
        self._end({end.choice: end.stop_reason for end in ends})
        self._say_no_call()
        choices = tuple(
            end._replace(stop_reason=self._reason(end.choice, end.stop_reason)) for end in ends
        )
        reason = self._reason(choices[0].choice if len(choices) == 1 else 0, event.stop_reason)
        self._outlet.emit(
            event
            if choices == event.choices
            else replace(event, choices=choices, stop_reason=reason)
        )

    def _failed(self, event: Failed) -> None:
        self._end(None)
        self._say_no_call()
        self._outlet.emit(event if self.failure is None else Failed(self.failure))

    # --- the end ---

    def _end(self, reasons: Mapping[int, StopReason] | None) -> None:
        """Before the terminal event. reasons: why each answer ended; None where the stream failed."""
        self._ended = True
        for choice, answer in self._answers.items():
            reason = None if reasons is None else reasons.get(choice)
            self._settle_thoughts(answer, reason)
            if reason in ("stop", "tool_calls") and not (
                answer.said or answer.natives or answer.recovered
            ):
                self._look_into_thoughts(choice, answer, reason)
            self._settle_calls(choice, answer, whole=reasons is not None)

    def _say_no_call(self) -> None:
        """The wire missed a call; it may have been found since."""
        notice, self._no_call = self._no_call, None
        if notice is not None and not any(answer.called for answer in self._answers.values()):
            self._outlet.emit(notice)

    def _settle_thoughts(self, answer: ChoiceState, reason: StopReason | None) -> None:
        for scribe in [scribe for scribe in self._waiting if scribe.answer is answer]:
            self._waiting.remove(scribe)
            scribe.resolve(reason)

    def _settle_calls(self, choice: int, answer: ChoiceState, *, whole: bool) -> None:
        """The recovered calls: they stand unless the wire gave calls of its own."""
        stands = whole and not answer.natives
        while answer.recovered:
            recovered = answer.recovered.pop(0)
            item, call = recovered.item, recovered.item.item
            self._outlet.close(item.index, item.snapshot("completed" if stands else "incomplete"))
            answer.called = answer.called or stands
            if stands or not whole:
                continue
            if isinstance(call, FunctionCall) and answer.has_native(
                call.name, "".join(item.arguments)
            ):
                self._outlet.emit(
                    Notice("duplicate_call", f"{call.name}: the wire's own call stands", item.index)
                )
            else:
                self._give_back(choice, call, recovered.literal)

    def _give_back(self, choice: int, call: Any, literal: str) -> None:
        """A call that does not count beside those of the wire, as text."""
        message = self._outlet.begin(Message("assistant", choice=choice, origin=call.origin))
        message.part(0).fragments.append(literal)
        self._outlet.emit(OutputTextDelta(message.index, 0, literal))
        self._outlet.close(message.index, message.snapshot("completed"))

    def _look_into_thoughts(self, choice: int, answer: ChoiceState, reason: StopReason) -> None:
        dialects = [
            dialect for dialect in self._dialects if dialect.in_thoughts or reason == "tool_calls"
        ]
        plan = OpenerTable(dialects, thoughts=False)
        for thought in answer.thoughts:
            for name, call_id, arguments in calls_in(
                thought.content, plan, self._offered, self._limits.held_bytes
            ):
                call = FunctionCall(
                    self._outlet.call_id(call_id), name, choice=choice, origin=thought.origin
                )
                opened = self._outlet.begin(call)
                opened.arguments.append(arguments)
                self._outlet.emit(FunctionCallArgumentsDelta(opened.index, arguments))
                answer.recovered.append(RecoveredCall(opened, ""))

    def _reason(self, choice: int, reason: StopReason) -> StopReason:
        """A recovered call turns an ordinary stop into one for calls."""
        answer = self._answers.get(choice)
        return "tool_calls" if reason == "stop" and answer is not None and answer.called else reason

    def _scanner(self, scribe: MessageRewriter) -> Scanner:
        answer = scribe.answer
        plan = self._calls_only if answer.native_thoughts or scribe.thoughts_over else self._plan
        return Scanner(
            plan, scribe, self._offered, held=self._limits.held_bytes, untouched=not answer.begun
        )


def _plans(dialects: Sequence[Dialect]) -> tuple[OpenerTable, OpenerTable]:
    """The dialects with thoughts, and calls alone."""
    return OpenerTable(dialects), OpenerTable(dialects, thoughts=False)


@lru_cache(maxsize=64)
def _shipped(names: tuple[str, ...]) -> tuple[OpenerTable, OpenerTable]:
    """A plan never changes, and a client asks for the same one again and again."""
    return _plans(resolve_dialects(names))


_HANDLERS: Final[dict[type, Callable[[DialectFilter, Any], None]]] = {
    OutputTextDelta: DialectFilter._text,
    ReasoningContentDelta: DialectFilter._thought,
    ReasoningSummaryDelta: DialectFilter._thought,
    FunctionCallArgumentsDelta: DialectFilter._arguments,
    RefusalDelta: DialectFilter._inside,
    MediaDelta: DialectFilter._inside,
    AnnotationAdded: DialectFilter._inside,
    ItemProgress: DialectFilter._inside,
    Notice: DialectFilter._notice,
    OutputItemAdded: DialectFilter._added,
    OutputItemDone: DialectFilter._done,
    Completed: DialectFilter._completed,
    Failed: DialectFilter._failed,
}
