"""The inverse of `translate.py`: replaces the envelopes in a client's history by their items, each
at its position.

    [reasoning "Hm" (signature: envelope), call, redacted reasoning (envelope of the call)]
        ->  [Reasoning, FunctionCall], as the model made them

Edits by the client are kept: reasoning or a call that differs from the content of its envelope
stays as the client sent it. Anything that is not an envelope is not changed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.gateway.state.envelopes import SealedItem, is_envelope, open_envelope
from streamlib.gateway.state.same_items import (
    is_same,
    item_key,
    item_text,
    without_blanks,
)
from streamlib.gateway.state.translate import CALLS, HIDDEN
from streamlib_parsers.items import (
    BUILT_IN_OUTPUTS,
    Compaction,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Text,
)

ENVELOPE_ONLY: Final = (Reasoning, *HIDDEN)
"""Kinds whose item in the history may consist of only an envelope. If a text or a call is missing,
the client removed it."""

SAME_KEY: Final = 8
"""Limit of calls with one id that are compared with an envelope. Ids are unique, or nearly so; the
limit keeps a forged history from making each envelope compare all calls."""

SEARCHES: Final = 32
"""Limit of searches in the joined texts of a turn for the texts of its envelopes. All texts that
are found cost one search together; each one that the client removed costs at most one."""


DETAILS: Final = "reasoning_details"
"""Key of `native` with the list in which Chat clients keep envelopes."""


def restore_history(
    items: Sequence[ResponseItem],
    origins: Mapping[Origin | None, Origin],
    stored: Mapping[int, Sequence[StoredResponse]] | None = None,
) -> list[ResponseItem]:
    """Replaces the envelopes in a history by their items.

    Args:
        items: the client's history.
        origins: hashed origin -> origin, for the targets that this request may be sent to.
        stored: number of a turn -> responses that the gateway stored of it, in order, for clients
            that do not send envelopes back.
    """
    restored: list[ResponseItem] = []
    for number, turn in enumerate(turns_of(_with_joined_summaries(items))):
        responses = (stored or {}).get(number, ())
        # Without envelopes a turn is sent as it would be sent without a gateway.
        if not responses and not _has_envelope(turn):
            restored += turn
            continue
        for item in _Turn(turn, origins).restore(responses):
            # All items of a turn are sent as one response.
            restored.append(msgspec.structs.replace(item, response_id=f"turn_{number}"))
    return restored


def _with_joined_summaries(items: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The items; a summary that a client sends in parts is one item again.

    The AI SDK without ids (opencode) sends an item for each part of a summary, and each with the
    envelope of them all.
    """
    restored: list[ResponseItem] = []
    for envelopes, group in groupby(items, key=_summary_envelopes):
        parts = list(group)
        joined: Reasoning | None = None
        if envelopes:
            joined = _joined_summary(parts)
        if joined is None:
            restored += parts
        else:
            restored.append(joined)
    return restored


def _summary_envelopes(item: ResponseItem) -> list[str]:
    """The envelopes that come with a summary; none for any other item."""
    if isinstance(item, Reasoning) and item.summary:
        return _envelope_texts(item)
    return []


def _joined_summary(parts: Sequence[ResponseItem]) -> Reasoning | None:
    """The one item that a client split; None if these are not its parts: the client may have sent
    an item twice, or edited it.

    Args:
        parts: adjacent items with summaries, all with the same envelopes.
    """
    first, *later = parts
    if not later or not isinstance(first, Reasoning):
        return None
    summary = list(first.summary)
    for part in later:
        if not isinstance(part, Reasoning) or part.content:
            return None
        summary += part.summary
    joined = msgspec.structs.replace(first, summary=summary)
    if without_blanks(joined) != _reasoning_text(_opened(first)):
        return None
    return joined


def turns_of(items: Sequence[ResponseItem]) -> Iterator[list[ResponseItem]]:
    """Splits a history into turns: the model's items between two of the caller's are one turn, and
    so is each item of the caller."""
    turn: list[ResponseItem] = []
    for item in items:
        if is_from_caller(item):
            yield turn
            yield [item]
            turn = []
        else:
            turn.append(item)
    yield turn


def is_from_caller(item: ResponseItem) -> bool:
    """Whether an item was written on the client's side, not by a model."""
    if isinstance(item, Message):
        return item.role != "assistant"
    return isinstance(item, (FunctionCallOutput, CustomToolCallOutput, *BUILT_IN_OUTPUTS))


def _has_envelope(turn: list[ResponseItem]) -> bool:
    return any(_envelope_texts(item) for item in turn)


class StoredResponse(Struct, frozen=True):
    """The part of a response that the gateway stored.

    Attributes:
        envelopes: envelopes of its items with state.
        call_id: id of the call by which it was found; None: it was found by its text.
    """

    envelopes: tuple[SealedItem, ...]
    call_id: str | None = None


class _Carrier(Struct):
    """The envelopes in one item of the client.

    Attributes:
        position: index of the entry after that item.
        envelopes: the envelopes.
        is_list: whether they were elements of a list, which is one item for a complete response;
            their indexes then give the positions of their items.
    """

    position: int
    envelopes: list[SealedItem]
    is_list: bool


class _Candidates:
    """Positions of the client's items with one key. The search for the nearest one starts at a
    position that only decreases, so each step costs the same, however long the turn is."""

    def __init__(self) -> None:
        self.before: list[int] = []
        """Positions before the current one; the nearest is last."""
        self.behind: list[int] = []
        """Positions from the current one on; the nearest is last."""

    def move_to(self, position: int) -> None:
        """Moves the current position towards the start."""
        while self.before and self.before[-1] >= position:
            self.behind.append(self.before.pop())


class _Turn:
    """Restores one turn, in time linear in its size, because an attacker can choose the number of
    envelopes in a request.

    All envelopes are opened first. Then each item replaces the client's version of it, is taken
    out of a joined text, or is inserted at its own position.
    """

    def __init__(self, turn: list[ResponseItem], origins: Mapping[Origin | None, Origin]) -> None:
        self._turn = turn
        self._origins = origins
        self._entries: list[list[ResponseItem]] = []
        """For each remaining item of the client: the item, or the items that replace it."""
        self._is_restored: list[bool] = []
        """For each entry: whether an item of an envelope replaced it."""
        self._candidates: dict[object, _Candidates] = {}
        """Key of an item -> entries with this key that were not replaced."""
        self._split_texts: list[Message] = []
        """Messages in envelopes that equal no item of the client, in reverse order."""
        self._inserted: dict[int, list[tuple[int, ResponseItem]]] = {}
        """Entry -> items to insert before it, each with its offset from there, in reverse order."""

    def restore(self, stored: Sequence[StoredResponse] = ()) -> list[ResponseItem]:
        """The items of the turn. May be called only once.

        Args:
            stored: responses of the turn that the gateway stored.
        """
        carriers: list[_Carrier] = []
        responses = self._without_received(stored)
        replaced = _reasoning_in(self._turn, responses)
        for item in self._turn:
            # Reasoning without state is dropped if the gateway stored it with its state.
            if id(item) in replaced:
                continue
            carrier = self._add(item)
            if carrier is not None:
                carriers.append(carrier)
        carriers += self._stored_carriers(responses)
        carriers.sort(key=lambda carrier: carrier.position)
        for position, entry in enumerate(self._entries):
            key = item_key(entry[0])
            self._candidates.setdefault(key, _Candidates()).before.append(position)
        # In reverse order, as `_Candidates` requires.
        for carrier in reversed(carriers):
            self._restore_from(carrier)
        self._split_joined_texts()
        return self._merge()

    def _without_received(self, stored: Sequence[StoredResponse]) -> list[StoredResponse]:
        """The stored responses without those that the client itself sent back."""
        received: set[object] = set()
        for item in self._turn:
            for envelope in _opened(item):
                received.add((envelope.index, item_key(envelope.item)))
        responses: list[StoredResponse] = []
        for response in stored:
            envelopes: list[SealedItem] = []
            for envelope in response.envelopes:
                if (envelope.index, item_key(envelope.item)) not in received:
                    envelopes.append(envelope)
            responses.append(StoredResponse(tuple(envelopes), response.call_id))
        return responses

    def _stored_carriers(self, responses: Sequence[StoredResponse]) -> list[_Carrier]:
        """The carriers of stored responses. All entries must exist before."""
        calls: dict[str, int] = {}
        for position, entry in enumerate(self._entries):
            item = entry[0]
            if isinstance(item, CALLS):
                calls.setdefault(item.call_id, position)
        carriers: list[_Carrier] = []
        for number, response in enumerate(responses):
            envelopes = self._unedited(response.envelopes)
            # The turn begins with its first response. A later response, with no item of the client
            # between them, begins before its call.
            position = 0
            if number > 0 and response.call_id is not None:
                position = calls.get(response.call_id, 0)
            carriers.append(_Carrier(position, envelopes, number == 0))
        return carriers

    def _unedited(self, envelopes: Sequence[SealedItem]) -> list[SealedItem]:
        """The envelopes; without those of reasoning if the client sent reasoning of its own."""
        sent = {item_key(entry[0]) for entry in self._entries if isinstance(entry[0], Reasoning)}
        if not sent:
            return list(envelopes)
        unedited: list[SealedItem] = []
        for envelope in envelopes:
            if not _is_reasoning(envelope) or item_key(envelope.item) in sent:
                unedited.append(envelope)
        return unedited

    def _add(self, item: ResponseItem) -> _Carrier | None:
        """Adds an item of the client without its envelopes, unless they replace it completely."""
        envelopes = _opened(item)
        if not envelopes:
            self._add_entry(item)
            return None
        reasoning = [envelope.item for envelope in envelopes if _is_reasoning(envelope)]
        text = without_blanks(item)
        if text and text != _reasoning_text(envelopes):
            # The text is not in the envelopes: the item is another one that received an envelope
            # beside its own fields, or it is reasoning that the client edited.
            origin = item.origin
            if reasoning:
                origin = self._with_known_origin(reasoning[0]).origin
            self._add_entry(_without_state(item, origin))
            envelopes = [envelope for envelope in envelopes if not _is_reasoning(envelope)]
        if not envelopes:
            return None
        return _Carrier(len(self._entries), envelopes, bool(_details(item)))

    def _add_entry(self, item: ResponseItem) -> None:
        self._entries.append([item])
        self._is_restored.append(False)

    def _restore_from(self, carrier: _Carrier) -> None:
        remaining: list[SealedItem] = []
        texts: list[Message] = []
        for envelope in carrier.envelopes:
            item = envelope.item
            if self._replace(item, carrier.position):
                continue
            if isinstance(item, Message) and item.text:
                texts.append(item)
            elif _may_be_envelope_only(item):
                remaining.append(envelope)
            # All other items were removed by the client.
        self._split_texts += reversed(texts)
        remaining.sort(key=lambda envelope: envelope.index)
        inserted = self._inserted.setdefault(carrier.position, [])
        for envelope in reversed(remaining):
            offset = 0
            if carrier.is_list:
                offset = envelope.index
            inserted.append((offset, self._with_known_origin(envelope.item)))

    def _replace(self, item: ResponseItem, position: int) -> bool:
        """Replaces the client's version of an item by the item; returns False if there is none."""
        candidates = self._candidates.get(item_key(item))
        if candidates is None:
            return False
        candidates.move_to(position)
        for positions in (candidates.before, candidates.behind):
            nearest = positions[-SAME_KEY:]
            for back, index in enumerate(reversed(nearest), 1):
                received = self._entries[index][0]
                if is_same(received, item):
                    item = _with_arguments(item, received)
                    self._entries[index] = [self._with_known_origin(item)]
                    self._is_restored[index] = True
                    del positions[-back]
                    return True
        return False

    def _split_joined_texts(self) -> None:
        """Takes texts out of longer ones, which a wire without blocks joined."""
        if not self._split_texts:
            return
        joined: list[tuple[int, Message]] = []
        characters = 0
        # Only texts that no other envelope replaced.
        for index, (item, *_) in enumerate(self._entries):
            if isinstance(item, Message) and not self._is_restored[index]:
                joined.append((index, item))
                characters += len(item.text)
        budget = SEARCHES * characters
        pending = self._split_texts
        for index, client_message in joined:
            text = client_message.text
            parts: list[ResponseItem] = []
            end = 0
            missing: list[Message] = []
            # Joined texts are in order: each search starts after the text before.
            while pending and budget > 0 and end < len(text):
                item = pending.pop()
                start = text.find(item.text, end)
                if start < 0:
                    budget -= len(text) - end
                    missing.append(item)
                    continue
                budget -= start - end
                parts += _text_parts(client_message, text[end:start])
                parts.append(self._with_known_origin(item))
                end = start + len(item.text)
            # The missing texts may be in the next message.
            pending += reversed(missing)
            if parts:
                parts += _text_parts(client_message, text[end:])
                self._entries[index] = parts

    def _merge(self) -> list[ResponseItem]:
        """The entries, and the items inserted between them."""
        items: list[ResponseItem] = []
        # Index in `items` before which an item is inserted, a number for the order of items with
        # the same index, and the item.
        pending: list[tuple[int, int, ResponseItem]] = []
        number = 0
        for position in range(len(self._entries) + 1):
            for offset, item in reversed(self._inserted.get(position, [])):
                heapq.heappush(pending, (len(items) + offset, number, item))
                number += 1
            entry: list[ResponseItem] = []
            if position < len(self._entries):
                entry = self._entries[position]
            for item in entry:
                while pending and pending[0][0] <= len(items):
                    items.append(heapq.heappop(pending)[2])
                items.append(item)
        while pending:
            items.append(heapq.heappop(pending)[2])
        return items

    def _with_known_origin(self, item: ResponseItem) -> ResponseItem:
        """The item with its origin instead of the hash, if the request may be sent there."""
        origin = self._origins.get(item.origin, item.origin)
        return msgspec.structs.replace(item, origin=origin)


def _reasoning_in(
    turn: Sequence[ResponseItem], responses: Sequence[StoredResponse]
) -> frozenset[int]:
    """Python ids of the client's reasoning items if their joined text is that of the stored items:
    joined, because a client may join items."""
    sent = [item for item in turn if isinstance(item, Reasoning) and not _envelope_texts(item)]
    stored_text = "".join(_reasoning_text(response.envelopes) for response in responses)
    if "".join(without_blanks(item) for item in sent) != stored_text:
        return frozenset()
    return frozenset(id(item) for item in sent)


def _text_parts(message: Message, text: str) -> list[ResponseItem]:
    """A message with a part of the client's text; no message if the part is empty."""
    if not text:
        return []
    return [msgspec.structs.replace(message, content=(Text(text),))]


def _is_reasoning(envelope: SealedItem) -> bool:
    return isinstance(envelope.item, Reasoning)


def _reasoning_text(envelopes: Iterable[SealedItem]) -> str:
    """The text of the reasoning in envelopes, without white space."""
    items = [envelope.item for envelope in envelopes if _is_reasoning(envelope)]
    return "".join(without_blanks(item) for item in items)


def _may_be_envelope_only(item: ResponseItem) -> bool:
    if isinstance(item, Message):
        return not item_text(item)
    return isinstance(item, ENVELOPE_ONLY)


def _envelope_texts(item: ResponseItem) -> list[str]:
    """The envelopes in an item, as text."""
    values: list[object] = [item.signature]
    if isinstance(item, (Reasoning, Compaction)):
        values.append(item.encrypted_content)
    for element in _details(item):
        values.append(element.get("data"))
    return [value for value in values if isinstance(value, str) and is_envelope(value)]


def _opened(item: ResponseItem) -> list[SealedItem]:
    """The envelopes in an item, without those that cannot be opened."""
    envelopes: list[SealedItem] = []
    for text in _envelope_texts(item):
        envelope = open_envelope(text)
        if envelope is not None:
            envelopes.append(envelope)
    return envelopes


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


def _with_arguments(item: ResponseItem, received: ResponseItem) -> ResponseItem:
    """A call with the client's arguments, if its envelope was made before its own were known."""
    if not isinstance(item, FunctionCall) or item.arguments:
        return item
    if isinstance(received, FunctionCall):
        arguments = received.arguments
    elif isinstance(received, CustomToolCall):
        arguments = msgspec.json.encode({"input": received.input}).decode()
    else:
        return item
    return msgspec.structs.replace(item, arguments=arguments, status=received.status)
