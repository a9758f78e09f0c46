"""The inverse of `translate.py`: envelopes in a client's history become the items they hold, each
at its position.

    [reasoning "Hm" (signature: envelope), call, redacted reasoning (envelope of the call)]
        ->  [Reasoning, FunctionCall], as the model made them

What the client edited wins: reasoning or a call that differs from the content of its envelope stays
the client's. What is no envelope is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.gateway.envelopes import Envelope, is_envelope, open_envelope
from streamlib.gateway.translate import CALLS, HIDDEN
from streamlib_parsers.errors import InvalidArguments
from streamlib_parsers.items import (
    Compaction,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)

ENVELOPE_ONLY: Final = (Reasoning, *HIDDEN)
"""Kinds that may be in the history as nothing but an envelope. A text or a call whose text is
missing was removed by the client."""

DETAILS: Final = "reasoning_details"
"""Key of `native` with the list in which Chat clients store envelopes."""


def restore_history(
    items: Sequence[ResponseItem], origins: Mapping[Origin | None, Origin]
) -> list[ResponseItem]:
    """Puts the items of all envelopes back into a history.

    Args:
        items: the client's history.
        origins: hashed origin -> origin, of the targets that this request may go to.
    """
    restored: list[ResponseItem] = []
    for number, turn in enumerate(_turns(items)):
        # Without envelopes a turn is sent as it would be without a gateway.
        if not _has_envelope(turn):
            restored += turn
            continue
        for item in _Turn(turn, origins).restore():
            # Items of one response are sent as one turn.
            restored.append(msgspec.structs.replace(item, response_id=f"turn_{number}"))
    return restored


def _turns(items: Sequence[ResponseItem]) -> Iterator[list[ResponseItem]]:
    """Splits a history: the model's items between two of the caller's are one turn, and so is each
    item of the caller's."""
    turn: list[ResponseItem] = []
    for item in items:
        if _is_from_caller(item):
            yield turn
            yield [item]
            turn = []
        else:
            turn.append(item)
    yield turn


def _is_from_caller(item: ResponseItem) -> bool:
    if isinstance(item, Message):
        return item.role != "assistant"
    return isinstance(item, (FunctionCallOutput, CustomToolCallOutput))


def _has_envelope(turn: list[ResponseItem]) -> bool:
    return any(_envelope_texts(item) for item in turn)


class _Entry(Struct):
    """One item of a turn.

    Attributes:
        item: the client's item, or the one of an envelope.
        is_restored: it is the one of an envelope.
    """

    item: ResponseItem
    is_restored: bool = False


class _Carrier(Struct):
    """The envelopes that one item of the client held.

    Attributes:
        position: index of the entry behind that item.
        envelopes: its envelopes.
        is_list: they were elements of a list, which is one item for a whole response: their
            indexes then tell where their items were.
    """

    position: int
    envelopes: list[Envelope]
    is_list: bool


class _Turn:
    """Restores one turn.

    All envelopes are opened first; then each item replaces the client's version of it, or goes to
    its own position.
    """

    def __init__(self, turn: list[ResponseItem], origins: Mapping[Origin | None, Origin]) -> None:
        self._turn = turn
        self._origins = origins
        self._entries: list[_Entry] = []
        """The turn so far."""

    def restore(self) -> list[ResponseItem]:
        """The items of the turn. To be called once."""
        carriers: list[_Carrier] = []
        for item in self._turn:
            carrier = self._add(item)
            if carrier is not None:
                carriers.append(carrier)
        # From the end, so that the positions of the carriers before do not change.
        for carrier in reversed(carriers):
            self._restore_from(carrier)
        return [entry.item for entry in self._entries]

    def _add(self, item: ResponseItem) -> _Carrier | None:
        """Adds an item of the client without its envelopes, unless they replace it as a whole."""
        envelopes: list[Envelope] = []
        for text in _envelope_texts(item):
            envelope = open_envelope(text)
            if envelope is not None:
                envelopes.append(envelope)
        if not envelopes:
            self._entries.append(_Entry(item))
            return None
        reasoning = [envelope.item for envelope in envelopes if _is_reasoning(envelope)]
        text = _without_blanks(item)
        original = "".join(_without_blanks(element) for element in reasoning)
        if text and text != original:
            # The text is not in the envelopes: it is another item that was given one beside its
            # own fields, or reasoning that the client edited.
            origin = item.origin
            if reasoning:
                origin = self._with_known_origin(reasoning[0]).origin
            self._entries.append(_Entry(_without_state(item, origin)))
            envelopes = [envelope for envelope in envelopes if not _is_reasoning(envelope)]
        if not envelopes:
            return None
        return _Carrier(len(self._entries), envelopes, bool(_details(item)))

    def _restore_from(self, carrier: _Carrier) -> None:
        remaining: list[Envelope] = []
        for envelope in carrier.envelopes:
            if self._replace(envelope, carrier.position):
                continue
            if isinstance(envelope.item, Message) and self._split_text(envelope.item):
                continue
            remaining.append(envelope)
        for envelope in sorted(remaining, key=lambda envelope: envelope.index):
            # The client removed it.
            if not _may_be_envelope_only(envelope.item):
                continue
            position = carrier.position
            if carrier.is_list:
                position += envelope.index
            entry = _Entry(self._with_known_origin(envelope.item), is_restored=True)
            self._entries.insert(min(position, len(self._entries)), entry)

    def _replace(self, envelope: Envelope, position: int) -> bool:
        """Replaces the client's version of an item by the item; False if there is none."""
        for index in _outwards(position, len(self._entries)):
            entry = self._entries[index]
            if not entry.is_restored and _is_same(entry.item, envelope.item):
                item = _with_arguments(envelope.item, entry.item)
                self._entries[index] = _Entry(self._with_known_origin(item), is_restored=True)
                return True
        return False

    def _split_text(self, item: Message) -> bool:
        """Takes a text out of a longer one: a client's wire without blocks has joined them."""
        if not item.text:
            return False
        for index, entry in enumerate(self._entries):
            joined = entry.item
            # Only a text that no other envelope has claimed.
            if entry.is_restored or not isinstance(joined, Message):
                continue
            if item.text not in joined.text:
                continue
            before, _, after = joined.text.partition(item.text)
            entries: list[_Entry] = []
            if before:
                entries.append(_Entry(msgspec.structs.replace(joined, content=(Text(before),))))
            entries.append(_Entry(self._with_known_origin(item), is_restored=True))
            if after:
                entries.append(_Entry(msgspec.structs.replace(joined, content=(Text(after),))))
            self._entries[index : index + 1] = entries
            return True
        return False

    def _with_known_origin(self, item: ResponseItem) -> ResponseItem:
        """The item with its origin in place of the hashed one, where the request may go there."""
        origin = self._origins.get(item.origin, item.origin)
        return msgspec.structs.replace(item, origin=origin)


def _outwards(position: int, count: int) -> Iterator[int]:
    """All indexes: those before a position, the nearest first, then those after it."""
    yield from range(min(position, count) - 1, -1, -1)
    yield from range(position, count)


def _is_reasoning(envelope: Envelope) -> bool:
    return isinstance(envelope.item, Reasoning)


def _may_be_envelope_only(item: ResponseItem) -> bool:
    if isinstance(item, Message):
        return not _text(item)
    return isinstance(item, ENVELOPE_ONLY)


def _envelope_texts(item: ResponseItem) -> list[str]:
    """The envelopes of an item, not opened."""
    values: list[object] = [item.signature]
    if isinstance(item, (Reasoning, Compaction)):
        values.append(item.encrypted_content)
    for element in _details(item):
        values.append(element.get("data"))
    return [value for value in values if isinstance(value, str) and is_envelope(value)]


def _details(item: ResponseItem) -> list[JsonObject]:
    elements = (item.native or {}).get(DETAILS)
    if not isinstance(elements, list):
        return []
    return [element for element in elements if isinstance(element, dict)]


def _without_state(item: ResponseItem, origin: Origin | None) -> ResponseItem:
    """The client's item without the fields that may hold an envelope."""
    if isinstance(item, Reasoning):
        item = msgspec.structs.replace(item, encrypted_content=None, redacted=False)
    return msgspec.structs.replace(item, id=None, signature=None, native=None, origin=origin)


def _is_same(received: ResponseItem, item: ResponseItem) -> bool:
    """Whether an item is what the client got in place of `item`, unedited."""
    if isinstance(received, CALLS) and isinstance(item, CALLS):
        # A free-form call and the function it stands for have one id.
        if received.call_id != item.call_id:
            return False
        # The envelope before a call was made when its arguments were not known.
        return not _arguments(item) or _value(received) == _value(item)
    if type(received) is not type(item):
        return False
    if not isinstance(item, (Message, Reasoning)):
        return False
    return _without_blanks(received) == _without_blanks(item)


def _with_arguments(item: ResponseItem, received: ResponseItem) -> ResponseItem:
    """A call with the client's arguments, if its envelope was made before they were known."""
    if not isinstance(item, FunctionCall) or item.arguments:
        return item
    if isinstance(received, FunctionCall):
        arguments = received.arguments
    elif isinstance(received, CustomToolCall):
        arguments = msgspec.json.encode({"input": received.input}).decode()
    else:
        return item
    return msgspec.structs.replace(item, arguments=arguments, status=received.status)


def _arguments(call: FunctionCall | CustomToolCall) -> str:
    if isinstance(call, CustomToolCall):
        return call.input
    return call.arguments


def _value(call: FunctionCall | CustomToolCall) -> object:
    """The arguments as a JSON value; equal for a free-form call and the function it stands for."""
    if isinstance(call, CustomToolCall):
        return {"input": call.input}
    try:
        return call.parsed()
    except InvalidArguments:
        return call.arguments


def _text(item: ResponseItem) -> str:
    """The text of a message or of reasoning; a refusal's, if a message has no other."""
    if isinstance(item, Reasoning):
        return item.text
    if not isinstance(item, Message):
        return ""
    if item.text:
        return item.text
    return "".join(part.refusal for part in item.content if isinstance(part, Refusal))


def _without_blanks(item: ResponseItem) -> str:
    """The text without white space, for comparison: wires differ in what separates paragraphs."""
    return "".join(_text(item).split())
