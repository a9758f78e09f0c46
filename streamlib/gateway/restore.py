"""The way back of `crossing.py`: envelopes in a client's history become the items they hold, each in its place.

    [thinking "Hm" (signature: envelope), tool_use, redacted_thinking (envelope of the call)]  ->  [Reasoning, FunctionCall], as they were

What the client edited wins: a thought or a call that no longer says what its envelope says stays the client's. What is no envelope is
left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.gateway.envelopes import Envelope, is_envelope, open_envelope
from streamlib.gateway.translate import HIDDEN
from streamlib_parsers.errors import InvalidArguments
from streamlib_parsers.items import (
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

CALLS: Final = (FunctionCall, CustomToolCall)
STANDS: Final = (Reasoning, *HIDDEN)
"""Kinds that stand in the history though the client has no words of theirs. A text or a call without them was taken out by the client."""
DETAILS: Final = "reasoning_details"


def restore_history(
    items: Sequence[ResponseItem], known: Mapping[Origin | None, Origin]
) -> list[ResponseItem]:
    """The items as they were. known: disguised origins of the targets this request may go to."""
    out: list[ResponseItem] = []
    for number, turn in enumerate(_turns(items)):
        sealed = any(True for item in turn for _ in _texts(item))
        out += (
            [
                msgspec.structs.replace(item, response_id=f"turn_{number}")
                for item in _Turn(turn, known).items
            ]
            if sealed
            else turn
        )
    return out


def _turns(items: Sequence[ResponseItem]) -> Iterator[list[ResponseItem]]:
    """What the model said between two words of the caller is one turn; each of the caller's items is one too."""
    turn: list[ResponseItem] = []
    for item in items:
        if isinstance(item, (FunctionCallOutput, CustomToolCallOutput)) or (
            isinstance(item, Message) and item.role != "assistant"
        ):
            yield turn
            yield [item]
            turn = []
        else:
            turn.append(item)
    yield turn


class _Held(Struct):
    """What one item of the client carried. place: where it stood. listed: in a list, whose envelopes name their places in the answer."""

    place: int
    inside: list[Envelope]
    listed: bool


class _Turn:
    """One turn. Envelopes are taken out first, then each finds the item it is about, or its own place."""

    def __init__(self, turn: list[ResponseItem], known: Mapping[Origin | None, Origin]) -> None:
        self.items: list[ResponseItem] = []
        self._known = known
        self._settled: list[bool] = []
        held = [one for item in turn if (one := self._take(item)) is not None]
        for one in reversed(held):  # from the end, so that the places before stay what they are
            self._settle(one)

    def _take(self, item: ResponseItem) -> _Held | None:
        found = [inside for text in _texts(item) if (inside := open_envelope(text)) is not None]
        own = [inside for inside in found if isinstance(inside.item, Reasoning)]
        said = _squeezed(item)
        if not found or (said and said != "".join(_squeezed(inside.item) for inside in own)):
            origin = self._named(own[0].item).origin if own else item.origin
            self.items.append(_without(item, origin) if found else item)  # the client's own words
            self._settled.append(False)
            found = [inside for inside in found if inside not in own]
        return _Held(len(self.items), found, bool(_details(item))) if found else None

    def _settle(self, held: _Held) -> None:
        left = [
            inside
            for inside in held.inside
            if not (self._replaces(inside, held.place) or self._splits(inside.item))
        ]
        for inside in sorted(left, key=lambda one: one.at):
            if isinstance(inside.item, STANDS) or (
                isinstance(inside.item, Message) and not _text(inside.item)
            ):
                at = min(held.place + (inside.at if held.listed else 0), len(self.items))
                self.items.insert(at, self._named(inside.item))
                self._settled.insert(at, True)

    def _replaces(self, inside: Envelope, place: int) -> bool:
        """Puts the item where the client has its words; whether it has."""
        for at in (*range(min(place, len(self.items)) - 1, -1, -1), *range(place, len(self.items))):
            if not self._settled[at] and _same(self.items[at], inside.item):
                self.items[at], self._settled[at] = (
                    self._named(_filled(inside.item, self.items[at])),
                    True,
                )
                return True
        return False

    def _splits(self, item: ResponseItem) -> bool:
        """Takes a text out of a longer one: a client's wire without blocks has run them together."""
        for at, shown in enumerate(self.items):
            if (
                isinstance(item, Message)
                and isinstance(shown, Message)
                and item.text
                and item.text in shown.text
                and not self._settled[at]
            ):
                before, _, after = shown.text.partition(item.text)
                rest = [
                    msgspec.structs.replace(shown, content=(Text(text),) if text else ())
                    for text in (before, after)
                ]
                pieces = [(rest[0], False), (self._named(item), True), (rest[1], False)]
                kept = [
                    piece
                    for piece, text in zip(pieces, (before, item.text, after), strict=True)
                    if text
                ]
                self.items[at : at + 1] = [piece for piece, _ in kept]
                self._settled[at : at + 1] = [settled for _, settled in kept]
                return True
        return False

    def _named(self, item: ResponseItem) -> ResponseItem:
        return msgspec.structs.replace(item, origin=self._known.get(item.origin, item.origin))


def _texts(item: ResponseItem) -> list[str]:
    """The envelopes of an item, as they are."""
    held: list[object] = [item.signature, getattr(item, "encrypted_content", None)]
    held += [one.get("data") for one in _details(item)]
    return [text for text in held if isinstance(text, str) and is_envelope(text)]


def _details(item: ResponseItem) -> list[JsonObject]:
    elements = (item.native or {}).get(DETAILS)
    return [one for one in elements if isinstance(one, dict)] if isinstance(elements, list) else []


def _without(item: ResponseItem, origin: Origin | None) -> ResponseItem:
    """The client's item without its slot."""
    more: JsonObject = (
        {"encrypted_content": None, "redacted": False} if isinstance(item, Reasoning) else {}
    )
    return msgspec.structs.replace(
        item, id=None, signature=None, native=None, origin=origin, **more
    )


def _same(shown: ResponseItem, item: ResponseItem) -> bool:
    """Whether the client's item is what it was shown of this one."""
    if isinstance(shown, CALLS) and isinstance(item, CALLS):
        return shown.call_id == item.call_id and (
            not _arguments(item) or _value(shown) == _value(item)
        )
    return (
        type(shown) is type(item)
        and isinstance(item, (Message, Reasoning))
        and _squeezed(shown) == _squeezed(item)
    )


def _filled(item: ResponseItem, shown: ResponseItem) -> ResponseItem:
    """A call whose envelope was written before its arguments were known has those that the client has."""
    if isinstance(item, FunctionCall) and isinstance(shown, FunctionCall) and not item.arguments:
        return msgspec.structs.replace(item, arguments=shown.arguments, status=shown.status)
    if isinstance(item, FunctionCall) and isinstance(shown, CustomToolCall) and not item.arguments:
        return msgspec.structs.replace(
            item,
            arguments=msgspec.json.encode({"input": shown.input}).decode(),
            status=shown.status,
        )
    return item


def _arguments(call: FunctionCall | CustomToolCall) -> str:
    return call.input if isinstance(call, CustomToolCall) else call.arguments


def _value(call: FunctionCall | CustomToolCall) -> object:
    """What a call says: of a free-form one, its text."""
    if isinstance(call, CustomToolCall):
        return {"input": call.input}
    try:
        return call.parsed()
    except InvalidArguments:
        return call.arguments


def _text(item: ResponseItem) -> str:
    if isinstance(item, Message):
        return item.text or "".join(
            part.refusal for part in item.content if isinstance(part, Refusal)
        )
    return item.text if isinstance(item, Reasoning) else ""


def _squeezed(item: ResponseItem) -> str:
    """Its text without blanks: wires put other ones between paragraphs."""
    return "".join(_text(item).split())
