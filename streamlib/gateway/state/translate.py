"""Translates events of the model's wire for the encoder of another wire: a stage between parser and
encoder.

State that only the model's wire can represent is put into envelopes. An envelope is sent in the one
field that clients store and return unread: the one for encrypted reasoning.

| client's wire | reasoning | an item without such a field, or that the wire cannot represent |
|---|---|---|
| messages | `thinking.signature` | a `redacted_thinking` block |
| responses | `reasoning.encrypted_content` | a `reasoning` item |
| chat | an element of `reasoning_details` | the same |
| gemini | `thoughtSignature` of the thought | an empty thought with a `thoughtSignature` |

Such a block is sent before a call if the call's state is already known (clients drop reasoning at
the end of a turn), else after it. `restore.py` is the inverse. Fields of the model's wire
(metadata, native stop reasons, unknown events) mean nothing to the client: they are dropped and
reported.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final, TypeAlias

import msgspec

from streamlib.gateway.state.envelopes import seal
from streamlib.providers.wire_specs import WIRE_SPECS, EnvelopeSlot
from streamlib.request.report import Change, Report
from streamlib_parsers.errors import InvalidArguments
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
    Passthrough,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.filter_assembler import FilterAssembler
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    Audio,
    Compaction,
    CustomToolCall,
    Document,
    FunctionCall,
    Image,
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
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

HIDDEN: Final = (ServerToolCall, ServerToolResult, Compaction, Opaque, *BUILT_IN_CALLS)
"""Kinds that only their own wire can represent: an envelope carries them through the client."""

CALLS: Final = (FunctionCall, CustomToolCall)

DELTAS: Final = (
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    MediaDelta,
    AnnotationAdded,
    ItemProgress,
)
"""Events about an open item that are the same on every wire."""

QualifiedName: TypeAlias = tuple[str | None, str]
"""Namespace, or None, and name of a tool."""

STATE_FIELDS: Final[JsonObject] = {
    "id": None,
    "signature": None,
    "encrypted_content": None,
    "redacted": False,
    "native": None,
}
"""Fields of reasoning that only the model's wire can represent -> their values in reasoning without
state."""

# The model's parser already enforces the limits. An envelope beside each item may double the number
# of items, and that must not end the response.
_PARSER_LIMITS: Final = msgspec.structs.replace(
    LIMITS, items=sys.maxsize, argument_bytes=sys.maxsize
)


class EventTranslator:
    """Translates the events of one response for a client of another wire.

    The assembler numbers and brackets events, as in a parser; this class decides what each item
    becomes.
    """

    def __init__(
        self,
        wire_api: WireApi,
        custom: frozenset[QualifiedName] = frozenset(),
        echoed: Collection[str] = (),
    ) -> None:
        """Starts a response.

        Args:
            wire_api: the client's wire. If it has no field for encrypted reasoning, state is lost,
                and `report` names the loss.
            custom: namespaces and names of the tools that the client declared as free-form.
            echoed: metadata of the model's wire that is no loss (`encoders.echoed_metadata`).
        """
        self._echoed = echoed
        self._origin = Origin(wire_api)
        self._custom = custom
        self._spec = WIRE_SPECS[wire_api].gateway
        """Fields for envelopes on the client's wire; None: it has none."""
        self._has_media = self._spec is None or self._spec.has_media
        """Whether the client's wire can represent images."""
        self._report = Report()
        self._assembler = FilterAssembler(_PARSER_LIMITS)
        """Numbers the client's events, and opens and closes its items."""
        self._sequencer: ItemSequencer | None = None
        """Reorders items, for a wire that cannot interleave them."""
        if not WIRE_SPECS[wire_api].has_blocks:
            self._sequencer = ItemSequencer(SEQUENTIAL)
        elif self._spec is not None and self._spec.is_sequential:
            self._sequencer = ItemSequencer((object,))
        self._items: dict[int, OpenItem] = {}
        """Index on the model's wire -> the client's item, closed ones included. Hidden items have
        none."""
        self._unopened: OutputItemAdded | None = None
        """The newest message while it has no content: empty messages are not sent."""
        self._free_form: set[int] = set()
        """Indexes of function calls that are sent to the client as free-form calls."""
        self._in_envelope: set[int] = set()
        """Indexes of calls whose envelope was sent before them."""
        self._envelope_count = 0
        """Number of envelopes made so far."""
        self._held_envelope: tuple[ResponseItem, int] | None = None
        """The newest text with state and its index, until another item follows it."""
        self._has_truncated_call = False
        """Whether a call was closed before its arguments were complete."""
        self._late_usage: TokenCount | None = None
        """The newest usage received after the first item; sent with the end of the response."""

    @property
    def report(self) -> list[Change]:
        """Changes for everything that was dropped so far."""
        return self._report.changes

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The events for the client's encoder; a hidden item becomes its envelope."""
        if self._sequencer is None:
            self._translate(event)
        else:
            for ready in self._sequencer.feed(event):
                self._translate(ready)
        return self._assembler.take()

    def _translate(self, event: ResponseEvent) -> None:
        # Runs for every delta, so the most frequent kinds come first and need no call.
        if isinstance(event, DELTAS):
            # An item with only a medium would become an empty text, which Messages refuses later.
            if isinstance(event, MediaDelta) and not self._has_media:
                self._drop_media()
                return
            if self._unopened is not None:
                self._open_message()
            item = self._items.get(event.index)
            if item is not None:
                self._assembler.forward_for(item, event)
            return
        match event:
            case FunctionCallArgumentsDelta():
                self._forward_arguments(event)
            case OutputItemAdded():
                self._open(event)
            case OutputItemDone():
                self._close(event)
            case Notice():
                self._forward_notice(event)
            case _:
                self._translate_envelope(event)

    def _translate_envelope(self, event: ResponseEvent) -> None:
        """Translates an event about the response, not about an item."""
        match event:
            case ResponseMetadata():
                for name in event.values:
                    self._drop_metadata(name)
            case Passthrough():
                self._drop_metadata(event.event)
            case TokenCount():
                self._count(event)
            case Completed():
                self._complete(event)
            case Failed():
                self._fail(event)
            case _:
                self._assembler.forward(event)

    def _forward_arguments(self, event: FunctionCallArgumentsDelta) -> None:
        item = self._items.get(event.index)
        # The text of a free-form call is known only when its JSON is complete.
        if item is not None and event.index not in self._free_form:
            self._assembler.forward_for(item, event)

    def _forward_notice(self, event: Notice) -> None:
        if event.index is None:
            self._assembler.forward(event)
            return
        if self._unopened is not None:
            self._open_message()
        item = self._items.get(event.index)
        if item is not None:
            self._assembler.forward(msgspec.structs.replace(event, index=item.index))

    # --- items ---

    def _open(self, event: OutputItemAdded) -> None:
        item: ResponseItem = event.item
        if self._unopened is not None:
            self._open_message()
        self._release_envelope()
        if isinstance(item, Message):
            self._unopened = event
            return
        # Hidden items become envelopes when they are complete.
        if isinstance(item, HIDDEN):
            return
        if isinstance(item, CALLS) and has_state(item) and self._add_envelope(item, event.index):
            self._in_envelope.add(event.index)
        if isinstance(item, Reasoning):
            # The client's encoder must treat it as its own item, and keep a slot for its envelope.
            item = msgspec.structs.replace(item, origin=self._origin, **STATE_FIELDS)
        elif isinstance(item, FunctionCall) and (item.namespace, item.name) in self._custom:
            self._free_form.add(event.index)
            item = _free_form(item)
        self._items[event.index] = self._assembler.open(item)

    def _open_message(self) -> None:
        """Opens the message that waited for content."""
        event = self._unopened
        if event is not None:
            self._unopened = None
            self._items[event.index] = self._assembler.open(event.item)

    def _close(self, event: OutputItemDone) -> None:
        item = event.item
        if self._unopened is not None:
            if self._unopened.index == event.index and self._is_blank(item):
                self._unopened = None
                if has_state(item):
                    self._add_text_envelope(item, event.index)
                return
            self._open_message()
        open_item = self._items.get(event.index)
        if open_item is None:
            self._close_hidden(item, event.index)
            return
        if isinstance(item, Reasoning):
            self._assembler.close_as(open_item, self._with_envelope(item, event.index))
            return
        if isinstance(item, CALLS) and item.status == "incomplete":
            self._has_truncated_call = True
        if isinstance(item, FunctionCall) and event.index in self._free_form:
            free_form = _free_form(item)
            self._assembler.arguments(open_item, free_form.input)
            self._assembler.close_as(open_item, free_form)
        else:
            self._assembler.close_as(open_item, item)
        if has_state(item) and event.index not in self._in_envelope:
            self._add_text_envelope(item, event.index)

    def _close_hidden(self, item: ResponseItem, index: int) -> None:
        """Ends an item that the client's wire cannot represent; its image is sent, if possible."""
        image = generated_image(item)
        if image is None:
            kind = type(item).__name__
            self._report.dropped(f"/{kind}", "the client's wire cannot represent it")
        elif self._has_media:
            self._add_image(image, item.choice)
        else:
            self._drop_media()
        self._add_envelope(item, index)

    def _add_image(self, image: Image, choice: int) -> None:
        """Adds a message with an image."""
        message = Message("assistant", choice=choice, origin=self._origin)
        open_item = self._assembler.open(message)
        delta = MediaDelta(0, 0, image.media_type, image.data)
        self._assembler.forward_for(open_item, delta)
        message = msgspec.structs.replace(message, content=(image,))
        self._assembler.close_as(open_item, message)

    def _drop_media(self) -> None:
        self._report.dropped("/media", "a response on the client's wire has no place for it")

    def _is_blank(self, item: ResponseItem) -> bool:
        """Whether clients would show a message as blank, although the model's wire has content.

        Gemini puts the last signature on an empty text: only its envelope is sent.
        """
        if not isinstance(item, Message):
            return False
        has_more = has_state(item)
        for part in item.content:
            match part:
                case Text():
                    if part.text or part.annotations:
                        return False
                case Image() | Audio() | Document() if not self._has_media:
                    has_more = True
                case _:
                    return False
        return has_more

    # --- envelopes ---

    def _add_text_envelope(self, item: ResponseItem, index: int) -> None:
        """Adds an item's envelope after it; on Messages, that of a text only if an item follows.

        A response on Messages then never ends with reasoning: Claude Code prints the last block as
        the result, which would be blank (``claude -p``).
        """
        is_redacted = self._spec is not None and self._spec.hides_as_redacted
        if is_redacted and isinstance(item, Message):
            self._held_envelope = (item, index)
        else:
            self._add_envelope(item, index)

    def _release_envelope(self) -> None:
        if self._held_envelope is not None:
            item, index = self._held_envelope
            self._held_envelope = None
            self._add_envelope(item, index)

    def _with_envelope(self, item: Reasoning, index: int) -> Reasoning:
        """The reasoning with its state in an envelope."""
        fields = dict(STATE_FIELDS)
        if self._spec is None:
            self._drop_state()
        else:
            fields.update(self._envelope_fields(self._spec.reasoning_slot, item, index))
        return msgspec.structs.replace(item, origin=self._origin, **fields)

    def _add_envelope(self, item: ResponseItem, index: int) -> bool:
        """Adds reasoning that has only an envelope; returns whether the wire has a field for it."""
        if self._spec is None:
            self._drop_state()
            return False
        fields = self._envelope_fields(self._spec.hidden_reasoning_slot, item, index)
        if self._spec.hides_as_redacted:
            fields["redacted"] = True
        # The carrier has the item's choice, because Chat clients store each choice as a message.
        carrier = Reasoning(choice=item.choice, origin=self._origin, **fields)
        self._assembler.close_as(self._assembler.open(carrier), carrier)
        return True

    def _envelope_fields(self, slot: EnvelopeSlot, item: ResponseItem, index: int) -> JsonObject:
        """The fields of a reasoning item with an envelope in a slot."""
        envelope = seal(item, index)
        self._envelope_count += 1
        if slot == "reasoning_details":
            # Clients join elements with the same index, so each envelope has its own.
            number = self._envelope_count - 1
            details = {"type": "reasoning.encrypted", "data": envelope, "index": number}
            return {"native": {"reasoning_details": [details]}}
        return {slot: envelope}

    def _drop_state(self) -> None:
        reason = "the client's wire has no field for state that only the model's wire can read"
        self._report.dropped("/state", reason)

    # --- the envelope of the response ---

    def _drop_metadata(self, name: str) -> None:
        if name in self._echoed:
            return
        self._report.dropped(f"/metadata/{name}", "a field of the model's wire")

    def _count(self, event: TokenCount) -> None:
        count = TokenCount(_numbers(event.usage))
        if self._assembler.item_count:
            # Some client wires have fields for usage only at the start and at the end.
            self._late_usage = count
        else:
            self._assembler.forward(count)

    def _complete(self, event: Completed) -> None:
        if self._held_envelope is not None:
            reason = "a response on this wire does not end with reasoning, which would hold it"
            self._report.dropped("/state", reason)
        usage: Usage | None = None
        if event.usage is not None:
            usage = _numbers(event.usage)
        elif self._late_usage is not None:
            usage = self._late_usage.usage
        # Native stop reasons are dropped, because the client's wire has its own.
        choices = [FinishedChoice(choice.choice, choice.stop_reason) for choice in event.choices]
        self._assembler.end_with(
            msgspec.structs.replace(
                event, native_stop_reason=None, usage=usage, choices=tuple(choices)
            )
        )

    def _fail(self, event: Failed) -> None:
        # A failure has no usage of its own. On Responses usage cannot be sent after a truncated
        # call: its Done event would make the call look complete, and Codex would execute it.
        if self._late_usage is not None:
            if self._has_truncated_call and self._origin.wire_api == "responses":
                reason = "a Done event here would make the cut call look complete"
                self._report.dropped("/usage", reason)
            else:
                self._assembler.forward(self._late_usage)
        self._assembler.end_with(event)


def generated_image(item: ResponseItem) -> Image | None:
    """The image made by a tool that the model's provider runs; None for all other items.

    Wire: Responses, ``image_generation_call``.
    """
    if not isinstance(item, ServerToolCall) or item.name != "image_generation":
        return None
    native = item.native or {}
    data = native.get("result")
    if not isinstance(data, str) or not data:
        return None
    return unchecked(Image)(data, media_type=f"image/{native.get('output_format') or 'png'}")


def _numbers(usage: Usage) -> Usage:
    """The usage without the object it was read from, which belongs to the model's wire."""
    return msgspec.structs.replace(usage, raw={})


def has_state(item: ResponseItem) -> bool:
    """Whether an item has a field that no other wire can represent."""
    if item.signature or item.native:
        return True
    if isinstance(item, CALLS):
        # Gemini's calls may have no id. If they have one, their outputs repeat it, so it must be
        # restored.
        return item.id == item.call_id
    if isinstance(item, Message):
        if item.phase:
            return True
        for part in item.content:
            if isinstance(part, Text) and (part.annotations or part.native):
                return True
    return False


def _free_form(item: FunctionCall) -> CustomToolCall:
    """The call of a free-form tool, which on the model's wire is a function with one string
    parameter, `input`."""
    text = item.arguments
    try:
        value = item.parsed().get("input")
    except InvalidArguments:
        value = None
    if isinstance(value, str):
        text = value
    return CustomToolCall(
        item.call_id,
        item.name,
        text,
        item.namespace,
        status=item.status,
        choice=item.choice,
        origin=item.origin,
    )


SEQUENTIAL: Final = (Message, Reasoning)
"""Kinds of items whose deltas these wires cannot tell apart."""


class ItemSequencer:
    """Delays items, so that each choice has one open at a time, in order of start.

    It only changes the order of events; `EventTranslator` numbers them afterwards.
    """

    def __init__(self, kinds: tuple[type, ...]) -> None:
        """Starts a response.

        Args:
            kinds: classes of the items that are delayed; others may overlap.
        """
        self._kinds = kinds
        self._open: dict[int, int] = {}
        """Choice -> index of its open item: each choice has an order of its own."""
        self._buffered: dict[int, list[ResponseEvent]] = {}
        """Item index -> events of an item that waits, in the order in which items opened: they are
        released in that order."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event and those that waited for it; nothing if it has to wait itself."""
        if isinstance(event, OutputItemAdded) and isinstance(event.item, self._kinds):
            open_index = self._open.setdefault(event.item.choice, event.index)
            if open_index != event.index:
                self._buffered[event.index] = []
        if self._buffered:
            # Events without an item (`TokenCount`) do not wait.
            buffer = self._buffered.get(getattr(event, "index", -1))
            if buffer is not None:
                buffer.append(event)
                return []
        if type(event) is OutputItemDone and self._open.get(event.item.choice) == event.index:
            return [event, *self._release(event.item.choice)]
        return [event]

    def _release(self, choice: int) -> list[ResponseEvent]:
        """The buffered events of a choice, up to those of an item that is still open."""
        del self._open[choice]
        released: list[ResponseEvent] = []
        # A copy, because the loop removes entries.
        for index, events in list(self._buffered.items()):
            added = events[0]
            if not isinstance(added, OutputItemAdded) or added.item.choice != choice:
                continue
            released += self._buffered.pop(index)
            # The item is still open: its next events pass, and later items continue to wait.
            if not isinstance(events[-1], OutputItemDone):
                self._open[choice] = index
                break
        return released
