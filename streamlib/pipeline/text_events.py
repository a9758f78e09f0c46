"""What a text stage does, applied to events: in deltas, in the final item, in every copy.

A text stage is a *text machine* for each text: a text in, texts out (`units`, `patterns`). This
module alone knows which events carry a text, and where it is repeated: in the final item, in log
probabilities, citations, metadata and fields of the wire's own. So what comes out is one text,
wherever it is looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace as with_fields

from streamlib.pipeline.machine import PlainMachine
from streamlib.pipeline.streamed_texts import (
    StreamedItem,
    StreamedText,
    TextKey,
    bare_delta,
    citation_offsets,
    dropped_annotation,
    supports_same,
    text_key,
)
from streamlib.pipeline.units import TextMachine
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    Text,
    ToolSearchCall,
)

TEXT_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "text": (OutputTextDelta,),
    "reasoning": (ReasoningContentDelta, ReasoningSummaryDelta),
    "refusal": (RefusalDelta,),
    "arguments": (FunctionCallArgumentsDelta,),
}
"""Names of texts, as `of` takes them -> their deltas."""


TEXT_ALONE: Final[frozenset[type]] = frozenset({OutputTextDelta})

_PROBABILITIES: Final = frozenset({"logprobs", "logprobsresult", "top_logprobs"})
"""Keys, in small letters, of log probabilities: they repeat the text token by token."""


_COPIES: Final[dict[type, str]] = {
    ResponseMetadata: "values",
    Passthrough: "data",
    Notice: "detail",
}
"""Events of the response -> their field that may repeat the text."""


class TextEdit(NamedTuple):
    """What a text stage does with a text.

    Attributes:
        machine: makes the machine of one text: of its deltas (`CustomToolCall` for the free text of
            one), the choice that it is of, and a function that emits a notice of a code, once.
        kinds: the deltas that it reads.
        changes: the text may change; otherwise it is only cut into other deltas.
        changes_copies: strings that may repeat the text change as it does; otherwise it only ends
            early.
        waits: deltas of another part of the item wait until the text of this one is known;
            otherwise what is known of it is let out before them.
    """

    machine: Callable[[type, int, Callable[[str], None]], TextMachine]
    kinds: frozenset[type] = TEXT_ALONE
    changes: bool = True
    changes_copies: bool = True
    waits: bool = True


def text_edit(
    make: Callable[[], TextMachine], *, changes: bool = True, waits: bool = True
) -> TextEdit:
    """The same machines for every text; those of a stage that only cuts change none."""

    def machine(kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del kind, choice, note
        return make()

    return TextEdit(machine, changes=changes, changes_copies=changes, waits=waits)


class TextEvents(PlainMachine):
    """The machine of a text stage."""

    def __init__(self, rule: TextEdit) -> None:
        super().__init__()
        self._rule = rule
        self._changes = rule.changes
        self._items: dict[int, StreamedItem] = {}
        """The open items, by index."""
        self._growing = StreamedItem(-1)
        """The open item of the last delta."""
        self._notes: list[ResponseEvent] = []
        """Notices of text machines, to be emitted before what comes next."""
        self._handlers: dict[type, Callable[[Any], list[ResponseEvent]]] = {
            OutputItemAdded: self._add,
            OutputItemDone: self._finish,
            Completed: self._end,
            Failed: self._end,
        }
        if rule.changes:
            self._handlers[AnnotationAdded] = self._annotate
        if rule.changes_copies:
            self._handlers |= dict.fromkeys(_COPIES, self._change_copy)
        for kind in rule.kinds:
            self._handlers[kind] = self._grow_other

    @property
    def buffered(self) -> int:
        """Characters of deltas that are not emitted yet."""
        count = 0
        for item in self._items.values():
            for part in item.parts.values():
                count += part.buffered
            for waiting in item.waiting.values():
                count += sum([len(event.delta) for event in waiting])
        return count

    def feed(self, event: Any) -> list[ResponseEvent]:
        """The events to emit now."""
        item = self._growing
        part = item.current
        # Asked first: most events are a further delta of the same text.
        if (
            part is None
            or part.kind is not type(event)
            or part.position != getattr(event, part.key)
            or item.index != event.index
        ):
            return self._feed_other(event)
        text = event.delta
        # Log probabilities stay on a delta that comes out as it is, with nothing of another one.
        has_logprobs = getattr(event, "logprobs", None) is not None
        is_alone = not (has_logprobs and part.buffered)
        fragments = part.feed(text)
        part.last = event
        if self._changes:
            part.received.append(text)
            part.emitted += fragments
        events: list[ResponseEvent] = []
        if has_logprobs:
            is_alone = is_alone and not part.buffered
        for fragment in fragments:
            if fragment == text and is_alone:
                events.append(event)
            elif has_logprobs:
                events.append(bare_delta(event, fragment))
            else:
                events.append(with_fields(event, delta=fragment))
        if not (text or fragments or part.buffered):
            events.append(event)
        if item.waiting and not part.buffered:
            events += self._release(item)
        if self._notes:
            events = self._taken_notes() + events
        return events

    def _feed_other(self, event: Any) -> list[ResponseEvent]:
        handler = self._handlers.get(type(event))
        if handler is None:
            return [event]
        events = handler(event)
        return self._taken_notes() + events

    def _taken_notes(self) -> list[ResponseEvent]:
        notes = self._notes
        self._notes = []
        return notes

    def close(self, choice: int | None = None) -> list[ResponseEvent]:
        """What is buffered of items that the source has not closed: of a choice, or of all."""
        events: list[ResponseEvent] = []
        for item in list(self._items.values()):
            if choice in (None, item.choice):
                events += self._flush(self._items.pop(item.index))
        return events

    def texts_of(self, event: ResponseEvent) -> None:
        """Passes through the machines what `feed` would, of copies and of texts without deltas."""
        if isinstance(event, (OutputItemDone, OutputItemAdded)):
            item = self._items.get(event.index) or StreamedItem(event.index, event.item)
            self._changed_item(event.item, item)
            for annotation in item.annotations:
                self._copy(annotation.annotation)
        elif isinstance(event, AnnotationAdded):
            self._copy(event.annotation)
        elif type(event) in self._handlers and type(event) not in self._rule.kinds:
            self._handlers[type(event)](event)
        self._notes = []

    # --- deltas ---

    def _grow_other(self, event: Any) -> list[ResponseEvent]:
        """A delta of another item or part than the one before it."""
        item = self._items.get(event.index)
        if item is None:
            # A hand-made list may have deltas of an item that was never added.
            item = self._items[event.index] = StreamedItem(event.index)
        events: list[ResponseEvent] = []
        key = text_key(event)
        part = item.parts.get(key)
        current = item.current
        if current is not None and current is not part and current.buffered:
            if self._rule.waits:
                item.waiting.setdefault(key, []).append(event)
                return []
            events = self._close_part(current)
        self._begin(item, key, event)
        return events + self.feed(event)

    def _begin(self, item: StreamedItem, key: TextKey, event: Any) -> None:
        """The part that a delta belongs to: now it is the one that grows."""
        part = item.parts.get(key)
        if part is None:
            part = StreamedText(self._machine(type(event), item), event)
            item.parts[key] = part
        item.current = part
        self._growing = item

    def _release(self, item: StreamedItem) -> list[ResponseEvent]:
        """Lets out parts that waited, until one is not known to its end."""
        events: list[ResponseEvent] = []
        waiting = item.waiting
        item.waiting = OrderedDict()
        while waiting and not (item.current is not None and item.current.buffered):
            key, deltas = waiting.popitem(last=False)
            self._begin(item, key, deltas[0])
            for delta in deltas:
                events += self.feed(delta)
        item.waiting = waiting
        return events

    def _flush(self, item: StreamedItem) -> list[ResponseEvent]:
        """Lets out everything that is buffered: the item has ended."""
        events: list[ResponseEvent] = []
        while item.current is not None:
            events += self._close_part(item.current)
            item.current = None
            events += self._release(item)
        return events

    def _close_part(self, part: StreamedText) -> list[ResponseEvent]:
        fragments = part.machine.close()
        if self._changes:
            part.emitted += fragments
        return [bare_delta(part.last, fragment) for fragment in fragments]

    def _machine(self, kind: type, item: StreamedItem) -> TextMachine:
        codes: set[str] = set()

        def note(code: str) -> None:
            if code not in codes:
                codes.add(code)
                self._notes.append(Notice(code, index=item.index))

        if item.is_free_text:
            kind = CustomToolCall
        return self._rule.machine(kind, item.choice, note)

    # --- items ---

    def _add(self, event: OutputItemAdded) -> list[ResponseEvent]:
        item = self._growing = self._items[event.index] = StreamedItem(event.index, event.item)
        if not self._changes or event.item.native is None:
            return [event]
        changed = self._changed_item(event.item, item)
        return [with_fields(event, item=changed)]

    def _finish(self, event: OutputItemDone) -> list[ResponseEvent]:
        item = self._items.get(event.index)
        if item is None:
            item = StreamedItem(event.index, event.item)
        events = self._flush(item)
        self._items.pop(event.index, None)
        if not self._changes:
            events.append(event)
            return events
        for annotation in item.annotations:
            events += self._decided_annotation(annotation, item)
        changed = self._changed_item(event.item, item)
        # The notices of the item come before its end.
        events += self._taken_notes()
        if changed is not event.item:
            event = with_fields(event, item=changed)
        events.append(event)
        return events

    def _changed_item(self, item: ResponseItem, streamed: StreamedItem) -> ResponseItem:
        """A final item with the texts that were emitted; the same object if nothing changes."""
        texts = _ItemTexts(self, streamed)
        fields: dict[str, Any] = {}
        kinds = self._rule.kinds
        match item:
            case Message():
                fields["content"] = tuple([texts.content_part(part) for part in item.content])
            case Reasoning() if ReasoningContentDelta in kinds:
                fields["content"] = texts.text(ReasoningContentDelta, item.content)
                paragraphs = [texts.text(ReasoningSummaryDelta, text) for text in item.summary]
                fields["summary"] = tuple(paragraphs)
                is_changed = (fields["content"], fields["summary"]) != (item.content, item.summary)
                if is_changed and item.signature is not None:
                    # It signs a text that is no longer there.
                    fields["signature"] = None
                    self._notes.append(Notice("signature_dropped", index=streamed.index))
            case FunctionCall() | ServerToolCall() | ToolSearchCall():
                fields["arguments"] = texts.text(FunctionCallArgumentsDelta, item.arguments)
            case CustomToolCall():
                fields["input"] = texts.text(FunctionCallArgumentsDelta, item.input)
            case _:
                pass
        if item.native is not None:
            fields["native"] = self._copy(item.native)
        changed = {name: value for name, value in fields.items() if value != getattr(item, name)}
        if not changed:
            return item
        return with_fields(item, **changed)

    def _end(self, event: Completed | Failed) -> list[ResponseEvent]:
        """The end of the response, behind what is buffered of items that were not closed."""
        events = self.close()
        if isinstance(event, Failed) and self._rule.changes_copies:
            event = self._changed_failure(event)
        events.append(event)
        return events

    # --- citations ---

    def _annotate(self, event: AnnotationAdded) -> list[ResponseEvent]:
        item = self._items.get(event.index)
        offsets = citation_offsets(event.annotation)
        if item is None or offsets is None:
            return [self._changed_annotation(event)]
        part = item.parts.get((OutputTextDelta, event.index, event.content_index))
        known = 0
        if part is not None:
            known = len(part.texts()[0]) - part.buffered
        if known < offsets[1] or item.waiting:
            item.annotations.append(event)
            return []
        return self._decided_annotation(event, item)

    def _decided_annotation(
        self, event: AnnotationAdded, item: StreamedItem
    ) -> list[ResponseEvent]:
        part = item.parts.get((OutputTextDelta, event.index, event.content_index))
        if part is not None and not supports_same(event.annotation, *part.texts()):
            item.dropped += 1
            return [dropped_annotation(event.index)]
        return [self._changed_annotation(event)]

    def _changed_annotation(self, event: AnnotationAdded) -> ResponseEvent:
        return with_fields(event, annotation=self._copy(event.annotation))

    # --- copies ---

    def _change_copy(self, event: Any) -> list[ResponseEvent]:
        field = _COPIES[type(event)]
        return [with_fields(event, **{field: self._copy(getattr(event, field))})]

    def _changed_failure(self, event: Failed) -> Failed:
        error = event.error
        message = self._copy(error.message)
        detail = self._copy(error.detail)
        return with_fields(event, error=with_fields(error, message=message, detail=detail))

    def _copy(self, value: Any) -> Any:
        """A JSON value with its strings changed, and without log probabilities."""
        if not self._rule.changes_copies:
            return value
        # Without recursion: a server may nest its values as deep as the stack.
        copied: list[Any] = [None]
        open_values: list[tuple[Any, Any, Any]] = [(copied, 0, value)]
        """Where a copy belongs (container, key), and the value."""
        while open_values:
            container, key, inner = open_values.pop()
            if isinstance(inner, str):
                container[key] = self.anew(inner)
            elif isinstance(inner, dict):
                names = [name for name in inner if str(name).lower() not in _PROBABILITIES]
                container[key] = dict.fromkeys(names)
                open_values += [(container[key], name, inner[name]) for name in names]
            elif isinstance(inner, (list, tuple)):
                container[key] = [None] * len(inner)
                open_values += [(container[key], n, each) for n, each in enumerate(inner)]
            else:
                container[key] = inner
        return copied[0]

    def anew(self, text: str, machine: TextMachine | None = None) -> str:
        """What becomes of a text of which no deltas were read: by default, of a copy."""
        if machine is None:
            machine = self._rule.machine(OutputTextDelta, 0, lambda code: None)
        fragments = machine.feed(text)
        return "".join([*fragments, *machine.close()])


class _ItemTexts:
    """The texts of a final item: those that were emitted, or new ones where they differ."""

    def __init__(self, events: TextEvents, streamed: StreamedItem) -> None:
        self._events = events
        self._streamed = streamed
        self._dropped = streamed.dropped
        self._emitted: dict[tuple[type, str], list[str]] = {}
        """What was received -> what was emitted; first ones last."""
        parts = sorted(streamed.parts.values(), key=_position, reverse=True)
        for part in parts:
            self._put([part])
        reasoning = [part for part in reversed(parts) if part.kind is ReasoningContentDelta]
        if len(reasoning) > 1:
            self._put(reasoning)  # a final item has them as one text

    def _put(self, parts: Sequence[StreamedText]) -> None:
        received = "".join([part.texts()[0] for part in parts])
        emitted = "".join([part.texts()[1] for part in parts])
        self._emitted.setdefault((parts[0].kind, received), []).append(emitted)

    def content_part(self, part: Any) -> Any:
        """What a part of a message has become."""
        fields: dict[str, Any] = {}
        if isinstance(part, Text):
            text = self.text(OutputTextDelta, part.text)
            fields["text"] = text
            fields["annotations"] = self._annotations(part, text)
        elif isinstance(part, Refusal):
            fields["refusal"] = self.text(RefusalDelta, part.refusal)
        if part.native is not None:
            fields["native"] = self._events._copy(part.native)
        changed = {name: value for name, value in fields.items() if value != getattr(part, name)}
        if not changed:
            return part
        return with_fields(part, **changed)

    def _annotations(self, part: Text, text: str) -> tuple[JsonObject, ...]:
        """The citations that still support the text of a part; a notice for each other one."""
        annotations: list[JsonObject] = []
        for annotation in part.annotations:
            if supports_same(annotation, part.text, text):
                annotations.append(self._events._copy(annotation))
            elif self._dropped:
                # Reported when its event came.
                self._dropped -= 1
            else:
                self._events._notes.append(dropped_annotation(self._streamed.index))
        return tuple(annotations)

    def text(self, kind: type, text: str) -> str:
        """What a text of the item has become."""
        if kind not in self._events._rule.kinds or not text:
            return text
        same = self._emitted.get((kind, text))
        if same:
            return same.pop()
        return self._events.anew(text, self._events._machine(kind, self._streamed))


def _position(part: StreamedText) -> int:
    return part.position
