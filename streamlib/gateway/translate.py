"""Events of the model's wire, translated for the encoder of another wire: a stage between the
parser and the encoder.

State that only the model's wire can read is put into envelopes, and those into the one field that a
client's wire stores and sends back unread: the one for encrypted reasoning.

| client's wire | reasoning | an item without such a field, or that the wire cannot represent |
|---|---|---|
| messages | `thinking.signature` | a `redacted_thinking` block |
| responses | `reasoning.encrypted_content` | a `reasoning` item |
| chat | an element of `reasoning_details` | the same |
| gemini | `thoughtSignature` of the thought | an empty thought with a `thoughtSignature` |

Such a block comes before a call where the call's state is known by then (clients leave out
reasoning at the end of a turn), else after it. `restore.py` is the way back. Fields of the model's
wire (metadata, native stop reasons, unknown events) have no meaning for the client: they are left
out and reported.
"""

from __future__ import annotations

import sys
from typing import Final, TypeAlias

import msgspec

from streamlib.gateway.envelopes import seal
from streamlib.gateway.reorder import ItemSequencer
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
"""Kinds that only the wire they come from can represent: an envelope carries them unseen."""

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
"""Fields of reasoning that only the model's wire can read, with the values of reasoning without
state."""

# The model's parser has enforced the limits; an envelope beside each item may double the number of
# items, which must not end the response.
_PARSER_LIMITS: Final = msgspec.structs.replace(
    LIMITS, items=sys.maxsize, argument_bytes=sys.maxsize
)


class EventTranslator:
    """Translates the events of one response for a client of another wire.

    Numbering and bracketing are the assembler's, as in a parser; this class decides what becomes of
    each item.
    """

    def __init__(self, wire_api: WireApi, custom: frozenset[QualifiedName] = frozenset()) -> None:
        """Starts a response.

        Args:
            wire_api: the client's wire. One without a field for encrypted reasoning loses the
                state that would be in it; `report` names it.
            custom: namespaces and names of the tools that the client declared as free-form.
        """
        self._origin = Origin(wire_api)
        self._custom = custom
        self._spec = WIRE_SPECS[wire_api].gateway
        """How envelopes travel on the client's wire; None: they cannot."""
        self._has_media = self._spec is None or self._spec.has_media
        """The client's wire has a place for images."""
        self._report = Report()
        self._assembler = FilterAssembler(_PARSER_LIMITS)
        """Numbers what the client gets, and opens and closes its items."""
        self._sequencer: ItemSequencer | None = None
        """Reorders items, for a wire that cannot interleave them."""
        if not WIRE_SPECS[wire_api].has_blocks:
            self._sequencer = ItemSequencer()
        self._items: dict[int, OpenItem] = {}
        """By index on the model's wire, the item that the client gets; closed ones too. Hidden
        items have none."""
        self._unopened: OutputItemAdded | None = None
        """The newest message, until it has content: the client gets no item for an empty one."""
        self._free_form: set[int] = set()
        """Indexes of function calls that the client gets as free-form calls."""
        self._in_envelope: set[int] = set()
        """Indexes of calls whose envelope was sent before them."""
        self._envelope_count = 0
        """Envelopes made so far."""
        self._held_envelope: tuple[ResponseItem, int] | None = None
        """The newest text with state, and its index, until another item follows it."""
        self._has_truncated_call = False
        """A call was closed before its arguments were complete."""
        self._late_usage: TokenCount | None = None
        """The newest usage that arrived after the first item: sent with the end."""

    @property
    def report(self) -> list[Change]:
        """What was left out, so far."""
        return self._report.changes

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """Returns the events that the client's encoder gets; of a hidden item, its envelope."""
        if self._sequencer is None:
            self._translate(event)
        else:
            for ready in self._sequencer.feed(event):
                self._translate(ready)
        return self._assembler.take()

    def _translate(self, event: ResponseEvent) -> None:
        # Runs once a delta, so the most frequent kinds are first and handled without a call.
        if isinstance(event, DELTAS):
            # An item for a medium alone would be an empty text, which Messages refuses later.
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
        # The text of a free-form call is known once its JSON is complete.
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
        # Hidden items get their envelope when they are complete.
        if isinstance(item, HIDDEN):
            return
        if isinstance(item, CALLS) and has_state(item) and self._add_envelope(item, event.index):
            self._in_envelope.add(event.index)
        if isinstance(item, Reasoning):
            # The encoder of the client's wire must take it for its own, and keep its slot.
            item = msgspec.structs.replace(item, origin=self._origin, **STATE_FIELDS)
        elif isinstance(item, FunctionCall) and (item.namespace, item.name) in self._custom:
            self._free_form.add(event.index)
            item = _free_form(item)
        self._items[event.index] = self._assembler.open(item)

    def _open_message(self) -> None:
        """Opens the message that waits for its content."""
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
        """Ends an item that the client's wire cannot represent, and gives it what it can."""
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
        """Whether clients would show a message as a blank one, although the model made more of it.

        Gemini puts the last signature on an empty text: its envelope goes alone.
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
        """Adds the envelope of an item after it; of a text on Messages only if an item follows.

        There a response never ends with reasoning: Claude Code prints its last block as the answer,
        which would be blank (``claude -p``).
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
        """Adds reasoning without text that holds only an envelope; whether the wire has a field."""
        if self._spec is None:
            self._drop_state()
            return False
        fields = self._envelope_fields(self._spec.hidden_reasoning_slot, item, index)
        if self._spec.hides_as_redacted:
            fields["redacted"] = True
        # Of the item's choice: each choice is a message of its own in a Chat client's history.
        carrier = Reasoning(choice=item.choice, origin=self._origin, **fields)
        self._assembler.close_as(self._assembler.open(carrier), carrier)
        return True

    def _envelope_fields(self, slot: EnvelopeSlot, item: ResponseItem, index: int) -> JsonObject:
        """The fields of a reasoning item that hold an envelope in a slot."""
        envelope = seal(item, index)
        self._envelope_count += 1
        if slot == "reasoning_details":
            # Clients join elements of one index, so each envelope has an index of its own.
            number = self._envelope_count - 1
            details = {"type": "reasoning.encrypted", "data": envelope, "index": number}
            return {"native": {"reasoning_details": [details]}}
        return {slot: envelope}

    def _drop_state(self) -> None:
        reason = "the client's wire has no field for state that only the model's wire can read"
        self._report.dropped("/state", reason)

    # --- the envelope of the response ---

    def _drop_metadata(self, name: str) -> None:
        self._report.dropped(f"/metadata/{name}", "a field of the model's wire")

    def _count(self, event: TokenCount) -> None:
        count = TokenCount(_numbers(event.usage))
        if self._assembler.item_count:
            # Some client wires have a place for usage at the start and at the end only.
            self._late_usage = count
        else:
            self._assembler.forward(count)

    def _complete(self, event: Completed) -> None:
        if self._held_envelope is not None:
            reason = (
                "a response on this wire does not end with reasoning, which would hold it (A14)"
            )
            self._report.dropped("/state", reason)
        usage: Usage | None = None
        if event.usage is not None:
            usage = _numbers(event.usage)
        elif self._late_usage is not None:
            usage = self._late_usage.usage
        # Native stop reasons are left out: the client's wire has its own.
        choices = [FinishedChoice(choice.choice, choice.stop_reason) for choice in event.choices]
        self._assembler.end_with(
            msgspec.structs.replace(
                event, native_stop_reason=None, usage=usage, choices=tuple(choices)
            )
        )

    def _fail(self, event: Failed) -> None:
        # A failure has no usage of its own. After a truncated call there is no room for one on
        # Responses: it would close the call, which Codex then runs.
        if self._late_usage is not None:
            if self._has_truncated_call and self._origin.wire_api == "responses":
                self._report.dropped("/usage", "it would close the call that the failure truncated")
            else:
                self._assembler.forward(self._late_usage)
        self._assembler.end_with(event)


def generated_image(item: ResponseItem) -> Image | None:
    """The image of a tool that the model's provider runs; None of any other item.

    Wire: Responses, ``image_generation_call``.
    """
    if not isinstance(item, ServerToolCall) or item.name != "image_generation":
        return None
    native = item.native or {}
    data = native.get("result")
    if not isinstance(data, str) or not data:
        return None
    return Image(data, media_type=f"image/{native.get('output_format') or 'png'}")


def _numbers(usage: Usage) -> Usage:
    """The usage without the object it was read from, which is the model's wire's."""
    return msgspec.structs.replace(usage, raw={})


def has_state(item: ResponseItem) -> bool:
    """Whether an item has a field that no client's wire can represent."""
    if item.signature or item.native:
        return True
    if isinstance(item, CALLS):
        # Gemini's calls may have no id; where they have one, their outputs have it too, so it must
        # come back.
        return item.id == item.call_id
    if isinstance(item, Message):
        if item.phase:
            return True
        for part in item.content:
            if isinstance(part, Text) and (part.annotations or part.native):
                return True
    return False


def _free_form(item: FunctionCall) -> CustomToolCall:
    """The call of a free-form tool, which the model's wire has as a function with one string
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
