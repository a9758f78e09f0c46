"""Makes events of what a wire machine reads: numbering, brackets, limits and generated ids.

A wire machine reads frames and calls the methods below. `EventAssembler` numbers events (`seq`) and
items (`index`), closes every item before the single terminal event, enforces `Limits` and generates
missing call ids. It knows no wire.

    open(item) -> OpenItem   text(item, delta)  reasoning(item, delta)  arguments(item, delta) ...
    close(item) | finish_with(item, final)
    identify(id, model)  usage(usage)  metadata(values)  passthrough(event, data)  notice(code) ...
    complete(stop_reason) | fail(error)

A filter over these events, as dialects are, emits through `filter_assembler.FilterAssembler`, which
is one of these too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from streamlib_parsers.envelope import Envelope
from streamlib_parsers.errors import ErrorInfo, limit_exceeded
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    StopReason,
)
from streamlib_parsers.item_text import call_text, fill_missing, final_lacks_parts, part_text
from streamlib_parsers.items import (
    ApprovalRequest,
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
    ToolSearchCall,
)
from streamlib_parsers.json_text import is_json, scrub
from streamlib_parsers.limits import Limits
from streamlib_parsers.open_items import OpenItem

CLIENT_CALLS: Final = frozenset({FunctionCall, CustomToolCall})
"""Items that the caller answers; by class, since `isinstance` takes several times as long."""

CALLS_WITH_JSON: Final = frozenset({FunctionCall, ServerToolCall, ApprovalRequest, ToolSearchCall})
"""Items whose arguments must be JSON to count as complete."""


def _nothing_to_flush() -> None:
    """The default of `EventAssembler.before_close`."""


def default_call_id(n: int) -> str:
    """`call_0`, `call_1` ...: ids of the calls that a wire sent without one."""
    return f"call_{n}"


class EventAssembler(Envelope):
    """The open items of one response, and the events that were not taken yet."""

    def __init__(
        self,
        limits: Limits,
        origin: Origin,
        call_id: Callable[[int], str] = default_call_id,
        names: Mapping[str, str] | None = None,
        offered: Collection[str] = frozenset(),
    ) -> None:
        """Starts without items and events.

        Args:
            limits: `items` and `argument_bytes` are enforced here.
            origin: stamped on every item.
            call_id: generates the id of the n-th call (from 0) that the wire sent without one.
            names: sent tool name -> the caller's own name.
            offered: names of the tools of the request, as they were sent.
        """
        super().__init__()
        self.limits = limits
        self.origin = origin
        self.offered = offered
        """Names of the tools of the request as they were sent; empty where they are not known."""
        self.ended = False
        """Set with the terminal event; nothing is emitted after it."""
        self.before_close: Callable[[], None] = _nothing_to_flush
        """Set by a machine that buffers items: called before the open items are closed for good.
        May be called twice, must not raise."""
        self._open: dict[int, OpenItem] = {}
        """The open items by index, in the order they were opened."""
        self._item_count = 0
        """Items opened so far: the index of the next one."""
        self.has_call = False
        """Whether a call for the caller was opened."""
        self.complete_calls: list[FunctionCall | CustomToolCall] = []
        """Those that were closed as `completed`."""
        self._generated_ids = 0
        """Call ids generated so far: the argument of the next call of `call_id`."""
        self._call_id = call_id
        self._names = names or {}

    # --- the open items ---

    @property
    def item_count(self) -> int:
        """How many items were opened."""
        return self._item_count

    @property
    def open_items(self) -> list[OpenItem]:
        """The open items, in the order they were opened."""
        return list(self._open.values())

    # --- call ids ---

    def new_call_id(self) -> str:
        """An id for a call that the wire sent without one."""
        self._generated_ids += 1
        return self._call_id(self._generated_ids - 1)

    # --- items ---

    def open(self, item: ResponseItem) -> OpenItem:
        """Opens an item: `item` is what is known of it, without the text that deltas will bring.

        Raises:
            ParseFailure: the response has more than `limits.items` items.
        """
        if self._item_count >= self.limits.items:
            raise limit_exceeded("items", self.limits.items)
        if not self._has_created:
            self._create()
        item = self._with_origin(item, "incomplete")
        if self.surrogates is not None:
            item = self._clean_item(item)
        index = self._item_count
        self._item_count = index + 1
        open_item = self._open[index] = OpenItem(index, item)
        if type(item) in CLIENT_CALLS:
            self.has_call = True
        self._seq = seq = self._seq + 1
        self._events.append(OutputItemAdded(index, item, seq=seq, agent=item.agent))
        return open_item

    # `text`, `reasoning`, `summary` and `arguments` run once per delta. So they number their event
    # in place (a call of `_next_seq` would be a tenth of their time), and find the usual part
    # without a call of `OpenItem.part`.

    def text(
        self,
        item: OpenItem,
        delta: str,
        part: int = 0,
        logprobs: Sequence[JsonObject] | None = None,
    ) -> None:
        """Appends a delta to the text of a message."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "text", part), delta)
        if delta or logprobs:
            (item.changed_parts.get(part) or item.part(part)).fragments.append(delta)
            self._seq = seq = self._seq + 1
            self._events.append(
                OutputTextDelta(item.index, part, delta, logprobs, seq=seq, agent=item.agent)
            )

    def reasoning(
        self,
        item: OpenItem,
        delta: str,
        part: int = 0,
        logprobs: Sequence[JsonObject] | None = None,
    ) -> None:
        """Appends a delta to readable reasoning."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "reasoning", part), delta)
        if delta or logprobs:
            (item.changed_parts.get(part) or item.part(part)).fragments.append(delta)
            self._seq = seq = self._seq + 1
            self._events.append(
                ReasoningContentDelta(item.index, part, delta, logprobs, seq=seq, agent=item.agent)
            )

    def summary(self, item: OpenItem, delta: str, part: int = 0) -> None:
        """Appends a delta to a paragraph of a reasoning summary."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "summary", part), delta)
        if delta:
            item.paragraph(part).append(delta)
            self._seq = seq = self._seq + 1
            self._events.append(
                ReasoningSummaryDelta(item.index, part, delta, seq=seq, agent=item.agent)
            )

    def arguments(self, item: OpenItem, delta: str) -> None:
        """Appends a delta to the arguments, input or code of a call.

        Raises:
            ParseFailure: they are longer than `limits.argument_bytes`, counted in characters.
        """
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "arguments", 0), delta)
        if delta:
            item.size += len(delta)
            if item.size > self.limits.argument_bytes:
                raise limit_exceeded("argument_bytes", self.limits.argument_bytes)
            item.arguments.append(delta)
            self._seq = seq = self._seq + 1
            self._events.append(
                FunctionCallArgumentsDelta(item.index, delta, seq=seq, agent=item.agent)
            )

    def refusal(
        self,
        item: OpenItem,
        delta: str,
        part: int = 0,
        logprobs: Sequence[JsonObject] | None = None,
    ) -> None:
        """Appends a delta to the text with which the model declines."""
        if self.surrogates is not None:
            delta = self.surrogates.join((item.index, "refusal", part), delta)
        if delta or logprobs:
            item.part(part).other("refusal").append(delta)
            self._events.append(
                RefusalDelta(
                    item.index, part, delta, logprobs, seq=self._next_seq(), agent=item.agent
                )
            )

    def media(
        self,
        item: OpenItem,
        part: int = 0,
        media_type: str | None = None,
        data: str | None = None,
        transcript: str | None = None,
    ) -> None:
        """Appends a fragment of an image or audio (base64 text), and of its transcript."""
        transcript = self._clean(transcript)
        open_part = item.part(part)
        open_part.media_type = media_type or open_part.media_type
        if data:
            open_part.other("data").append(data)
        if transcript:
            open_part.other("transcript").append(transcript)
        self._events.append(
            MediaDelta(
                item.index,
                part,
                media_type,
                data,
                transcript,
                seq=self._next_seq(),
                agent=item.agent,
            )
        )

    def annotation(self, item: OpenItem, annotation: JsonObject, part: int = 0) -> None:
        """Adds a citation of a text part."""
        annotation = self._clean(annotation)
        item.part(part).annotations.append(annotation)
        self._events.append(
            AnnotationAdded(item.index, part, annotation, seq=self._next_seq(), agent=item.agent)
        )

    def progress(self, item: OpenItem, status: str) -> None:
        """Emits the state of a provider-run tool."""
        self._events.append(
            ItemProgress(item.index, status, seq=self._next_seq(), agent=item.agent)
        )

    def mark_incomplete(self, item: OpenItem, detail: str) -> None:
        """Makes an item end `incomplete`, with a Notice of a delta that cannot be applied."""
        item.forced_incomplete = True
        self.notice("unknown_delta", detail, item)

    def close(self, item: OpenItem, status: ItemStatus = "completed") -> ItemStatus:
        """Closes an item with its streamed text.

        A call whose arguments are not JSON is closed as `incomplete`.

        Returns:
            The status that the item got.
        """
        if self.surrogates is not None:
            self.flush_surrogates(item)
        is_call = type(item.item) in CALLS_WITH_JSON  # asked here: no call for each message
        if is_call and status == "completed" and self._has_invalid_arguments(item):
            status = "incomplete"
            self.notice("invalid_arguments", "the arguments are not complete JSON", item)
        if item.forced_incomplete:
            status = "incomplete"
        self._done(item, item.snapshot(status))
        return status

    def _has_invalid_arguments(self, item: OpenItem) -> bool:
        call: Any = item.item
        return not (item.free_text or is_json("".join(item.arguments) or call.arguments))

    def finish_with(self, item: OpenItem, final: ResponseItem) -> None:
        """Closes an item with the wire's own final version.

        Text that no delta brought yet is emitted as a delta, never twice.
        Where the final text does not continue the streamed text it replaces it, with
        `Notice("text_replaced")`; where the final version lacks streamed text, the streamed text
        stays.
        """
        self.flush_surrogates(item)
        streamed, final = item.snapshot("incomplete"), self._with_origin(final, final.status)
        replaced = final_lacks_parts(streamed, final)
        for emit, before, after, part in text_changes(streamed, final):
            if not after.startswith(before):
                replaced = True
            elif len(after) > len(before):
                emit(self, item, after[len(before) :], part)
        if replaced:
            self.notice("text_replaced", "the final item differs from the streamed one", item)
        item.item = fill_missing(final, streamed)
        # From here on `item.item` holds all text: `close` must not add the fragments to it.
        item.clear()
        self.close(item, final.status)

    def _with_origin(self, item: ResponseItem, status: ItemStatus) -> ResponseItem:
        """The item with a status, this response's origin, and the caller's own name of a tool."""
        if self._names and isinstance(item, (FunctionCall, CustomToolCall)):
            name = self.original_tool_name(item.name)
            return replace(item, origin=self.origin, status=status, name=name)
        return replace(item, origin=self.origin, status=status)

    def original_tool_name(self, name: str) -> str:
        """The caller's own name of a tool that was sent under another one."""
        return self._names.get(name, name)

    def _done(self, item: OpenItem, final: ResponseItem) -> None:
        index = item.index
        item.closed = True
        done = final
        if self.surrogates is not None:
            done = self._clean_item(final)
        item.item = done
        del self._open[index]
        if type(final) in CLIENT_CALLS and final.status == "completed":
            self.complete_calls.append(cast("FunctionCall | CustomToolCall", final))
        self._seq = seq = self._seq + 1
        self._events.append(OutputItemDone(index, done, seq=seq, agent=done.agent))

    # --- the end ---

    def complete(
        self,
        stop_reason: StopReason,
        native_stop_reason: str | None = None,
        stop_sequence: str | None = None,
        choices: Iterable[FinishedChoice] = (),
    ) -> None:
        """Ends the response as complete, as the wire reported it.

        An item that the wire never closed ends `incomplete`.
        """
        self.close_open_items()
        self._create()
        if self._inferred_end:
            self.notice("end_inferred", self._inferred_end)
        finished = tuple(choices) or (FinishedChoice(0, stop_reason, native_stop_reason),)
        self._finish(
            Completed(
                self.response_id,
                self.model,
                stop_reason,
                native_stop_reason,
                stop_sequence,
                self.last_usage,
                finished,
                seq=self._next_seq(),
            )
        )

    def fail(self, error: ErrorInfo) -> None:
        """Ends the response with an error, unless it has ended."""
        if not self.ended:
            self.close_open_items()
            self._finish(Failed(error, seq=self._next_seq()))

    def _finish(self, terminal: Completed | Failed) -> None:
        self.ended = True
        self.before_close = _nothing_to_flush
        self._events.append(terminal)

    def close_open_items(self) -> None:
        """Closes what is still open as `incomplete`, in the order it was opened."""
        self.before_close()
        for item in self.open_items:
            self.flush_surrogates(item)
            self._done(item, item.snapshot("incomplete"))

    # --- half an emoji ---

    def flush_surrogates(self, item: OpenItem) -> None:
        """Emits the buffered half of each text of an item that ends."""
        if self.surrogates is None:
            return
        for key in self.surrogates.texts():
            index, kind, part = key
            if index == item.index:
                rest = self.surrogates.rest(key)
                if rest:
                    _DELTAS[kind](self, item, rest, part)

    def _clean_item(self, item: ResponseItem) -> ResponseItem:
        try:
            cleaned: ResponseItem = msgspec.convert(
                scrub(msgspec.to_builtins(item)), type=ResponseItem
            )
        except RecursionError:
            # Nested past the stack. This runs while a stream is being failed: an exception would
            # lose the terminal event.
            return item
        return cleaned


Emit: TypeAlias = Callable[[EventAssembler, OpenItem, str, int], None]
"""A method that emits a delta: (assembler, item, delta, part)."""


def _arguments_part(assembler: EventAssembler, item: OpenItem, delta: str, part: int = 0) -> None:
    assembler.arguments(item, delta)


_DELTAS: Final[dict[str, Emit]] = {
    "text": EventAssembler.text,
    "reasoning": EventAssembler.reasoning,
    "summary": EventAssembler.summary,
    "refusal": EventAssembler.refusal,
    "arguments": _arguments_part,
}
"""By the kind in a key of `SurrogateJoiner`."""


def text_changes(before: ResponseItem, after: ResponseItem) -> Iterator[tuple[Emit, str, str, int]]:
    """Each text of an item in two versions: (method that streams it, before, after, part)."""
    if isinstance(before, Message) and isinstance(after, Message):
        for index, part in enumerate(after.content):
            earlier = before.content[index] if index < len(before.content) else None
            if isinstance(part, Text):
                yield EventAssembler.text, part_text(earlier, Text), part.text, index
            elif isinstance(part, Refusal):
                yield EventAssembler.refusal, part_text(earlier, Refusal), part.refusal, index
    elif isinstance(before, Reasoning) and isinstance(after, Reasoning):
        if after.content:
            yield EventAssembler.reasoning, before.content, after.content, 0
        for index, paragraph in enumerate(after.summary):
            earlier_paragraph = before.summary[index] if index < len(before.summary) else ""
            yield EventAssembler.summary, earlier_paragraph, paragraph, index
    elif type(before) is type(after):
        text = call_text(after)
        if text:
            yield _arguments_part, call_text(before), text, 0
