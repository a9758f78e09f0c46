"""State that the gateway stores for its clients: what a response had of it, and where a later
request has that response.

    response  [reasoning (signed), call c1]      -> stored for its client under the call
    request   [question, call c1, output of c1]  -> [question, reasoning (signed), call c1, …]

A response is found by the id of its first call, or by its text if it has no call, and only among
those of the client that got it. Some ids are not unique: counted ones (`call_0`), and those that a
client made up. Then the call's name, its arguments and how often it was made are the key. As they
may be equal in two conversations of one client, like a short text, the question before them joins
the key.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import msgspec

from streamlib.gateway.clients.identity import ClientIdentity
from streamlib.gateway.state.envelopes import SealedItem, envelope_of, is_made_by_model
from streamlib.gateway.state.restore import StoredResponse, turns_of
from streamlib.gateway.state.same_items import call_value, without_blanks
from streamlib.gateway.state.store import CLIENT_BYTES, StateStore, StateUnavailableError
from streamlib.gateway.state.translate import CALLS, HIDDEN, has_state
from streamlib.gateway.workers import Workers
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    ResponseItem,
    Text,
    WireApi,
)
from streamlib_parsers.json_text import DECODE_ERRORS

UNIQUE_CHARACTERS: Final = 200
"""Length from which a text alone tells a response from others."""

MAX_LOOKUPS: Final = 4096
"""Keys that one request may look up, the newest turns first: a history of 4,000 calls is longer
than the context of any model."""

RESTORED_BYTES: Final = CLIENT_BYTES
"""State that one request gets back, the newest turns first: no more than all that its client may
have, however often its history has the same call."""

OFF_SECONDS: Final = 5.0
"""How long a store that did not answer is left alone: requests do not wait for it one by one."""

_RANDOM_ID: Final = re.compile(r"[0-9A-Za-z]{16}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")
"""Ids that a provider has drawn: nobody else has the same one."""

ID_KEY: Final = "id "
"""Beginning of the keys of ids; those of responses have other words."""

_log: Final = logging.getLogger("streamlib.gateway")


class ClientState:
    """The state of all clients of a gateway, in a store that is entered by the caller.

    A store that does not answer costs its clients their reasoning, and never a response.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._off_until = 0.0
        """Until then the store is not asked (`anyio.current_time`)."""

    async def find(
        self,
        identity: ClientIdentity,
        items: Sequence[ResponseItem],
        workers: Workers,
        size: int,
    ) -> dict[int, list[StoredResponse]]:
        """What is stored of the responses in a client's history, by the number of the turn.

        Args:
            identity: the client.
            items: its history.
            workers: computes the keys of a large one.
            size: bytes of the request.
        """
        if identity.key is None or self._is_off():
            return {}
        keys = await workers.run(size, turn_keys, items)
        if not keys:
            return {}
        # Each once: a client may repeat a call as often as it likes.
        texts = list(dict.fromkeys(key.text for key in keys))
        try:
            values = await self._store.get(identity.key, texts)
        except StateUnavailableError as error:
            self._turn_off(error)
            return {}
        by_key = dict(zip(texts, values, strict=True))
        return await workers.run(size, _responses, keys, by_key)

    async def store(
        self,
        identity: ClientIdentity,
        items: Sequence[ResponseItem],
        response: Sequence[ResponseItem],
        *,
        only_signed: bool = False,
    ) -> None:
        """Stores what the client of a complete response cannot send back: reasoning, signatures.

        `find` returns it when a later request has the response in its history.

        Args:
            identity: the client that gets the response.
            items: the history of its request.
            response: the response's items, as the model made them.
            only_signed: skip reasoning that has no signature: the client sends it back itself.
        """
        if identity.key is None or self._is_off():
            return
        envelopes = _with_state(response, only_signed=only_signed)
        if not envelopes:
            return
        key = _response_key(items, response)
        # Without a call or a text nothing in a later history could name this response.
        if key is None:
            return
        try:
            await self._store.put(identity.key, key, msgspec.json.encode(envelopes))
        except StateUnavailableError as error:
            self._turn_off(error)

    async def note_ids(self, identity: ClientIdentity, ids: Sequence[str]) -> None:
        """Remembers that a client got these ids of its provider."""
        if identity.key is None or self._is_off():
            return
        try:
            for stored_id in ids:
                await self._store.put(identity.key, ID_KEY + stored_id, b"1")
        except StateUnavailableError as error:
            self._turn_off(error)

    async def unknown_ids(self, identity: ClientIdentity, ids: Sequence[str]) -> list[str]:
        """Those of the ids that the client did not get, as far as the store knows."""
        if identity.key is None or self._is_off():
            return list(ids)
        try:
            values = await self._store.get(identity.key, [ID_KEY + text for text in ids])
        except StateUnavailableError as error:
            self._turn_off(error)
            return list(ids)
        return [text for text, value in zip(ids, values, strict=True) if value is None]

    def _is_off(self) -> bool:
        return anyio.current_time() < self._off_until

    def _turn_off(self, error: StateUnavailableError) -> None:
        self._off_until = anyio.current_time() + OFF_SECONDS
        _log.warning("the store of client state does not answer: %s", error)


class TurnKey(msgspec.Struct, frozen=True):
    """Under which key a response of a turn may be stored.

    Attributes:
        turn: the number of the turn.
        text: the key.
        call: that it is made of, as it is in the history; None: it is made of a text.
        is_repeatable: it is made of what another call may have too, not of its id.
    """

    turn: int
    text: str
    call: FunctionCall | CustomToolCall | None = None
    is_repeatable: bool = False


def turn_keys(items: Sequence[ResponseItem]) -> list[TurnKey]:
    """The keys under which the responses in a history may be stored, the newest turn first.

    At most `MAX_LOOKUPS`: the oldest turns of a longer history are not looked up.
    """
    question = ""
    earlier_calls: Counter[str] = Counter()
    keys_by_turn: list[list[TurnKey]] = []
    for number, turn in enumerate(turns_of(items)):
        if turn and _is_question(turn[0]):
            question = _question_text(turn[0]) or question
            # The question is part of the key: equal calls are counted from each one anew.
            earlier_calls.clear()
        else:
            keys_by_turn.append(_keys_of(turn, number, question, earlier_calls))
    newest_first: list[TurnKey] = []
    for keys in reversed(keys_by_turn):
        newest_first += keys
    return newest_first[:MAX_LOOKUPS]


def _response_key(items: Sequence[ResponseItem], response: Sequence[ResponseItem]) -> str | None:
    """The key of a response to a history; None if it has neither a call nor a text."""
    start = 0
    for position, item in enumerate(items):
        if _is_question(item) and _question_text(item):
            start = position
    question = ""
    earlier_calls: Counter[str] = Counter()
    for turn in turns_of(items[start:]):
        if turn and _is_question(turn[0]):
            question = _question_text(turn[0]) or question
        else:
            _keys_of(turn, 0, question, earlier_calls)
    keys = _keys_of(response, 0, question, earlier_calls)
    if not keys:
        return None
    call = keys[0].call
    # Gemini's calls may have no id: then each client makes up one, which may look random.
    is_nameless = call is not None and call.id != call.call_id and _is_of(call, "gemini")
    if is_nameless:
        keys = [key for key in keys if key.is_repeatable]
    return keys[0].text


def _is_of(item: ResponseItem, wire_api: WireApi) -> bool:
    return item.origin is not None and item.origin.wire_api == wire_api


def _is_question(item: ResponseItem) -> bool:
    return isinstance(item, Message) and item.role == "user"


def _question_text(item: ResponseItem) -> str:
    """The last text of a message of the user.

    What clients add they put before it, and it changes: Gemini CLI lists the files of the folder.
    """
    if isinstance(item, Message):
        for part in reversed(item.content):
            if isinstance(part, Text) and part.text.strip():
                return "".join(part.text.split())
    return ""


def _keys_of(
    turn: Sequence[ResponseItem], number: int, question: str, earlier_calls: Counter[str]
) -> list[TurnKey]:
    """The keys of a turn: of its calls, in order, or else of its text.

    Args:
        turn: its items.
        number: of the turn.
        question: the user's last, before the turn.
        earlier_calls: how often each call was made since the question; the turn's own are added.
    """
    keys: list[TurnKey] = []
    is_first = True
    for item in turn:
        if not isinstance(item, CALLS):
            continue
        if _RANDOM_ID.search(item.call_id):
            keys.append(TurnKey(number, _digest("call", item.call_id), item))
        content = _digest("repeated call", item.name, _arguments(item), question)
        # Another call of the turn may have been the first one of another conversation.
        if is_first:
            text = _digest(content, str(earlier_calls[content]))
            keys.append(TurnKey(number, text, item, is_repeatable=True))
        earlier_calls[content] += 1
        is_first = False
    text = "".join(without_blanks(item) for item in turn if isinstance(item, Message))
    if keys or not text:
        return keys
    if len(text) >= UNIQUE_CHARACTERS:
        question = ""
    return [TurnKey(number, _digest("text", text, question))]


def _arguments(call: FunctionCall | CustomToolCall) -> str:
    """The arguments, however a client has written them."""
    value = call_value(call)
    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except (OverflowError, RecursionError, UnicodeEncodeError):
        return repr(value)


def _digest(*texts: str) -> str:
    # As a list of JSON: no two lists of texts have the same bytes.
    content = msgspec.json.encode(texts)
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def _with_state(response: Sequence[ResponseItem], *, only_signed: bool) -> list[SealedItem]:
    """The items that a client may not send back as they are."""
    always: tuple[type[ResponseItem], ...] = HIDDEN
    if not only_signed:
        always = (Reasoning, *HIDDEN)
    envelopes: list[SealedItem] = []
    for index, item in enumerate(response):
        # Alternatives have an order of their own; only one goes into a history.
        if item.choice or item.status == "incomplete":
            return []
        if isinstance(item, always) or has_state(item):
            envelopes.append(envelope_of(item, index))
    return envelopes


def _responses(
    keys: Sequence[TurnKey], values: Mapping[str, bytes | None]
) -> dict[int, list[StoredResponse]]:
    responses: dict[int, list[StoredResponse]] = {}
    last_call: FunctionCall | CustomToolCall | None = None
    size = 0
    for key in keys:
        value = values[key.text]
        # A call that was found by its id needs no other key.
        if value is None or (key.call is not None and key.call is last_call):
            continue
        size += len(value)
        if size > RESTORED_BYTES:
            break
        try:
            envelopes = msgspec.json.decode(value, type=tuple[SealedItem, ...])
        except DECODE_ERRORS:
            continue  # another release of the gateway has written it
        if not all(is_made_by_model(envelope) for envelope in envelopes):
            continue
        call_id: str | None = None
        if key.call is not None:
            last_call, call_id = key.call, key.call.call_id
            envelopes = tuple(_as_received(envelope, key.call) for envelope in envelopes)
        responses.setdefault(key.turn, []).append(StoredResponse(envelopes, call_id))
    return responses


def _as_received(envelope: SealedItem, call: FunctionCall | CustomToolCall) -> SealedItem:
    """The envelope of a call with the id that its client has made up for it."""
    item = envelope.item
    if not isinstance(item, CALLS) or item.call_id == call.call_id or item.name != call.name:
        return envelope
    if call_value(item) != call_value(call):
        return envelope
    item = msgspec.structs.replace(item, call_id=call.call_id, id=call.id)
    return msgspec.structs.replace(envelope, item=item)
