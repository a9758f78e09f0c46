"""What every wire does the same way: numbers the items, keeps the open ones, and says it in events.

A wire machine reads frames and calls the verbs below; the order of the events, the brackets, the ceilings and the single
terminal are held here, in one place. Nothing here knows a wire.

    open(item) -> OpenItem   text(item, …) reasoning(item, …) arguments(item, …) …   close(item) | settle(item, final)
    identify(id, model)   usage(…)   metadata(…)   passthrough(…)   notice(…)        complete(…) | fail(…)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from streamlib_parsers.errors import ErrorInfo, limit_exceeded
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
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
    StopReason,
    TokenCount,
)
from streamlib_parsers.items import (
    ContentPart,
    CustomToolCall,
    FunctionCall,
    ItemStatus,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    Text,
)
from streamlib_parsers.json_text import SurrogateJoiner, is_json, scrub
from streamlib_parsers.limits import Limits
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

NAMED: Final = (FunctionCall, CustomToolCall)
_MISSING: Final = object()


def _nothing_held() -> None:
    """What a machine that holds nothing back does at the end."""


def default_call_id(n: int) -> str:
    """`call_0`, `call_1` …: names for the calls that a wire left nameless."""
    return f"call_{n}"


class EventAssembler:
    """The items of one response while they grow, and the events they give."""

    def __init__(
        self,
        limits: Limits,
        origin: Origin,
        call_id: Callable[[int], str] = default_call_id,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.limits = limits
        self.origin = origin
        self.ended = False
        self.response_id: str | None = None
        self.model: str | None = None
        self.last_usage: Usage | None = None
        self.surrogates: SurrogateJoiner | None = None
        """Set by a machine once a payload held half an emoji; from then on deltas are joined and everything else scrubbed."""
        self.before_close: Callable[[], None] = _nothing_held
        """Set by a machine that holds something back: told before the open items are closed for good. May come twice, must not raise."""
        self._out: list[ResponseEvent] = []
        self._seq = -1
        self._created = False
        self._open: dict[int, OpenItem] = {}
        self._begun = 0
        self._minted = 0
        self._inferred = ""
        self._call_id = call_id
        self._names = names or {}
        self._metadata: dict[str, Any] = {}

    # --- out ---

    def take(self) -> list[ResponseEvent]:
        """The events since the last call."""
        out, self._out = self._out, []
        return out

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    @property
    def event_count(self) -> int:
        """How many events were given."""
        return self._seq + 1

    @property
    def item_count(self) -> int:
        """How many items have begun."""
        return self._begun

    @property
    def open_items(self) -> list[OpenItem]:
        """The items that are not closed, in the order they began."""
        return list(self._open.values())

    # --- the envelope ---

    def rate_limits(self, limits: RateLimits) -> None:
        """What is left; from headers before anything else, or from a frame."""
        self._out.append(msgspec.structs.replace(limits, seq=self._next()))

    def identify(self, response_id: str | None, model: str | None) -> None:
        """Names the response: the first non-empty id and model stay (Azure and Copilot begin with empty ones)."""
        self.model = self.model or self._clean(model) or None
        if response_id and not self.response_id:
            self.response_id = self._clean(response_id)
            self._create()

    def rename_model(self, model: str | None) -> None:
        """The provider says that another model goes on (Messages: a `fallback` block)."""
        self.model = self._clean(model) or self.model

    def _create(self) -> None:
        if not self._created:
            self._created = True
            self._out.append(Created(self.response_id, self.model, seq=self._next()))

    def usage(self, usage: Usage) -> None:
        """A newer running total; an event only where a number changed."""
        if not usage.same_numbers(self.last_usage):
            self._out.append(TokenCount(usage, seq=self._next()))
        self.last_usage = usage

    def metadata(self, values: Mapping[str, Any]) -> None:
        """Envelope keys; those that are new or changed are given out."""
        fresh = {
            key: value
            for key, value in values.items()
            if self._metadata.get(key, _MISSING) != value
        }
        if fresh:
            fresh = self._clean(fresh)
            self._metadata.update(fresh)
            self._out.append(ResponseMetadata(fresh, seq=self._next()))

    def passthrough(self, event: str, data: Any) -> None:
        """A kind we do not know, in its place."""
        self._out.append(Passthrough(self._clean(event), self._clean(data), seq=self._next()))

    def notice(self, code: str, detail: str = "", item: OpenItem | None = None) -> None:
        """Something odd or repaired."""
        self._out.append(
            Notice(code, self._clean(detail), item.index if item else None, seq=self._next())
        )

    def note_inferred_end(self, detail: str) -> None:
        """The end is inferred, not said: one `Notice("end_inferred")` before `Completed`, whoever noticed it first."""
        self._inferred = self._inferred or detail

    # --- items ---

    def new_call_id(self) -> str:
        """An id for a call that the wire left nameless."""
        self._minted += 1
        return self._call_id(self._minted - 1)

    def open(self, item: ResponseItem) -> OpenItem:
        """Begins an item: `item` is what is known of it, without the text that deltas will bring."""
        if self._begun >= self.limits.items:
            raise limit_exceeded("items", self.limits.items)
        self._create()
        item = self._clean_item(msgspec.structs.replace(self._own(item), status="incomplete"))
        open_item = self._open[self._begun] = OpenItem(self._begun, item)
        self._begun += 1
        self._out.append(OutputItemAdded(open_item.index, item, seq=self._next()))
        return open_item

    def text(
        self,
        item: OpenItem,
        delta: str,
        part: int = 0,
        logprobs: Sequence[JsonObject] | None = None,
    ) -> None:
        """Text of a message."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "text", part), delta)
        if delta or logprobs:
            (item.parts.get(part) or item.part(part)).fragments.append(delta)
            self._seq = seq = self._seq + 1
            self._out.append(OutputTextDelta(item.index, part, delta, logprobs, seq=seq))

    def reasoning(
        self,
        item: OpenItem,
        delta: str,
        part: int = 0,
        logprobs: Sequence[JsonObject] | None = None,
    ) -> None:
        """A thought, as the model wrote it."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "reasoning", part), delta)
        if delta or logprobs:
            (item.parts.get(part) or item.part(part)).fragments.append(delta)
            self._seq = seq = self._seq + 1
            self._out.append(ReasoningContentDelta(item.index, part, delta, logprobs, seq=seq))

    def summary(self, item: OpenItem, delta: str, part: int = 0) -> None:
        """A summary of a thought."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "summary", part), delta)
        if delta:
            item.summary.setdefault(part, []).append(delta)
            self._out.append(ReasoningSummaryDelta(item.index, part, delta, seq=self._next()))

    def arguments(self, item: OpenItem, delta: str) -> None:
        """Arguments, input or code of a call."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "arguments", 0), delta)
        if delta:
            item.size += len(delta)
            if item.size > self.limits.argument_bytes:
                raise limit_exceeded("argument_bytes", self.limits.argument_bytes)
            item.arguments.append(delta)
            self._seq = seq = self._seq + 1
            self._out.append(FunctionCallArgumentsDelta(item.index, delta, seq=seq))

    def refusal(self, item: OpenItem, delta: str, part: int = 0) -> None:
        """Words with which the model declines."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "refusal", part), delta)
        if delta:
            item.part(part).refusal_fragments.append(delta)
            self._out.append(RefusalDelta(item.index, part, delta, seq=self._next()))

    def media(
        self,
        item: OpenItem,
        part: int = 0,
        media_type: str | None = None,
        data: str | None = None,
        transcript: str | None = None,
    ) -> None:
        """Bytes of an image or audio (base64 text), and what is said in it."""
        transcript = self._clean(transcript)
        growing = item.part(part)
        growing.media_type = media_type or growing.media_type
        growing.data.extend([data] if data else [])
        growing.transcript_fragments.extend([transcript] if transcript else [])
        self._out.append(
            MediaDelta(item.index, part, media_type, data, transcript, seq=self._next())
        )

    def annotation(self, item: OpenItem, annotation: JsonObject, part: int = 0) -> None:
        """A citation of a text part."""
        annotation = self._clean(annotation)
        item.part(part).annotations.append(annotation)
        self._out.append(AnnotationAdded(item.index, part, annotation, seq=self._next()))

    def progress(self, item: OpenItem, status: str) -> None:
        """A hosted tool says how far it is."""
        self._out.append(ItemProgress(item.index, status, seq=self._next()))

    def mark_incomplete(self, item: OpenItem, detail: str) -> None:
        """The item received a delta we cannot apply: it will end `incomplete`, and says so."""
        item.forced_incomplete = True
        self.notice("unknown_delta", detail, item)

    def close(self, item: OpenItem, status: ItemStatus = "completed") -> ItemStatus:
        """Ends an item with what its deltas brought, and says how. Arguments that are not whole JSON make a call `incomplete`, always."""
        self._flush_halves(item)
        if (
            status == "completed"
            and not item.free_text
            and isinstance(item.item, (FunctionCall, ServerToolCall))
        ):
            arguments = "".join(item.arguments) or item.item.arguments
            if not is_json(arguments):
                status = "incomplete"
                self.notice("invalid_arguments", "the arguments are not whole JSON", item)
        status = "incomplete" if item.forced_incomplete else status
        self._done(item, item.snapshot(status))
        return status

    def finish_with(self, item: OpenItem, final: ResponseItem) -> None:
        """Ends an item with the wire's own final version: a tail that no delta brought is given as one, never twice.

        Where the final text does not continue what was streamed it replaces it, with `Notice("text_replaced")`; where the
        final version lacks what was streamed, the streamed stays.
        """
        self._flush_halves(item)
        streamed, final = item.snapshot("incomplete"), self._own(final)
        replaced = _final_lacks_parts(streamed, final)
        for emit, before, whole, part in text_changes(streamed, final):
            if not whole.startswith(before):
                replaced = True
            elif len(whole) > len(before):
                emit(self, item, whole[len(before) :], part)
        if replaced:
            self.notice("text_replaced", "the final item differs from what was streamed", item)
        item.item = _fill_missing(final, streamed)
        item.fields.clear()
        item.parts.clear()
        item.summary.clear()
        item.arguments.clear()
        self.close(item, final.status)

    def _own(self, item: ResponseItem) -> ResponseItem:
        changes: dict[str, Any] = {"origin": self.origin}
        if isinstance(item, NAMED) and item.name in self._names:
            changes["name"] = self.original_tool_name(item.name)
        return msgspec.structs.replace(item, **changes)

    def original_tool_name(self, name: str) -> str:
        """The caller's own name of a tool, where it was sent under another."""
        return self._names.get(name, name)

    def _done(self, item: OpenItem, whole: ResponseItem) -> None:
        item.closed = True
        item.item = self._clean_item(whole)
        del self._open[item.index]
        self._out.append(OutputItemDone(item.index, item.item, seq=self._next()))

    # --- the end ---

    def complete(
        self,
        stop_reason: StopReason,
        native_stop_reason: str | None = None,
        stop_sequence: str | None = None,
        choices: Iterable[FinishedChoice] = (),
    ) -> None:
        """The wire said that the answer is whole. What is still open was never closed by the wire: it ends `incomplete`."""
        self._close_all()
        self._create()
        if self._inferred:
            self.notice("end_inferred", self._inferred)
        ends = tuple(choices) or (FinishedChoice(0, stop_reason, native_stop_reason),)
        self._finish(
            Completed(
                self.response_id,
                self.model,
                stop_reason,
                native_stop_reason,
                stop_sequence,
                self.last_usage,
                ends,
                seq=self._next(),
            )
        )

    def fail(self, error: ErrorInfo) -> None:
        """Any other end."""
        if not self.ended:
            self._close_all()
            self._finish(Failed(error, seq=self._next()))

    def _finish(self, terminal: Completed | Failed) -> None:
        self.ended = True
        self.before_close = _nothing_held
        self._out.append(terminal)

    def _close_all(self) -> None:
        self.before_close()
        for item in self.open_items:
            self._flush_halves(item)
            self._done(item, item.snapshot("incomplete"))

    # --- halves of emoji ---

    def _flush_halves(self, item: OpenItem) -> None:
        if self.surrogates is None:
            return
        for key in self.surrogates.texts():
            index, kind, part = key
            if index == item.index and (rest := self.surrogates.rest(key)):
                _DELTAS[kind](self, item, rest, part)

    def _clean(self, value: Any) -> Any:
        return value if self.surrogates is None else scrub(value)

    def _clean_item(self, item: ResponseItem) -> ResponseItem:
        if self.surrogates is None:
            return item
        try:
            return msgspec.convert(scrub(msgspec.to_builtins(item)), type=ResponseItem)  # type: ignore[no-any-return, unused-ignore]
        except (
            RecursionError
        ):  # nested past the stack, and this runs while a stream is being failed
            return item


Emit: TypeAlias = Callable[[EventAssembler, OpenItem, str, int], None]


def _arguments_part(assembly: EventAssembler, item: OpenItem, delta: str, part: int = 0) -> None:
    assembly.arguments(item, delta)


_DELTAS: Final[dict[str, Emit]] = {
    "text": EventAssembler.text,
    "reasoning": EventAssembler.reasoning,
    "summary": EventAssembler.summary,
    "refusal": EventAssembler.refusal,
    "arguments": _arguments_part,
}


def text_changes(before: ResponseItem, after: ResponseItem) -> Iterator[tuple[Emit, str, str, int]]:
    """The texts of one item in two versions, with the verb that streams each: (verb, before, after, part)."""
    if isinstance(before, Message) and isinstance(after, Message):
        for index, part in enumerate(after.content):
            said = before.content[index] if index < len(before.content) else None
            if isinstance(part, Text):
                yield (
                    EventAssembler.text,
                    said.text if isinstance(said, Text) else "",
                    part.text,
                    index,
                )
            elif isinstance(part, Refusal):
                yield (
                    EventAssembler.refusal,
                    said.refusal if isinstance(said, Refusal) else "",
                    part.refusal,
                    index,
                )
    elif isinstance(before, Reasoning) and isinstance(after, Reasoning):
        if after.content:
            yield EventAssembler.reasoning, before.content, after.content, 0
        for index, paragraph in enumerate(after.summary):
            yield (
                EventAssembler.summary,
                before.summary[index] if index < len(before.summary) else "",
                paragraph,
                index,
            )
    elif (text := call_text(after)) and type(before) is type(after):
        yield _arguments_part, call_text(before), text, 0


def _final_lacks_parts(before: ResponseItem, after: ResponseItem) -> bool:
    """Whether text was streamed into a part or a paragraph that the final version has not, or has as something else."""
    if isinstance(before, Message) and isinstance(after, Message) and after.content:
        said = [type(part) if _part_text(part) else None for part in before.content]
        told = [type(part) for part in after.content]
        return any(kind is not None and told[at : at + 1] != [kind] for at, kind in enumerate(said))
    if isinstance(before, Reasoning) and isinstance(after, Reasoning) and after.summary:
        return any(before.summary[len(after.summary) :])
    return False


def _part_text(part: ContentPart) -> str:
    """The text of a text or refusal part."""
    return (
        part.text if isinstance(part, Text) else part.refusal if isinstance(part, Refusal) else ""
    )


def call_text(item: ResponseItem) -> str:
    """Arguments or input of a call; empty for every other kind."""
    if isinstance(item, (FunctionCall, ServerToolCall)):
        return item.arguments
    return item.input if isinstance(item, CustomToolCall) else ""


STREAMED_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    Message: ("content",),
    Reasoning: ("content", "summary"),
    FunctionCall: ("arguments",),
    ServerToolCall: ("arguments",),
    CustomToolCall: ("input",),
}
"""The fields that deltas fill."""


def _fill_missing(final: ResponseItem, streamed: ResponseItem) -> ResponseItem:
    """`final`, with what was streamed wherever it says nothing."""
    if type(final) is not type(streamed):
        return final
    missing = {
        name: getattr(streamed, name)
        for name in STREAMED_FIELDS.get(type(final), ())
        if not getattr(final, name)
    }
    return msgspec.structs.replace(final, **missing)
