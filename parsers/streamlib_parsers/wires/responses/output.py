"""OpenAI Responses: the life of an item, from `output_item.added` (or the first text of one never added) to its final version.

The wire promises the item whole in `output_item.done`, and all of them once more in the event that ends the stream. Either may
be missing: a call named only when done, `output: []` from the Codex backend, items that only the last event tells of.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib_parsers.assembler import EventAssembler, text_changes
from streamlib_parsers.errors import malformed
from streamlib_parsers.events import StopReason
from streamlib_parsers.item_text import call_text
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
)
from streamlib_parsers.json_text import decode_any, mark_surrogates, scrub
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.responses.events import (
    ItemAdded,
    ItemDone,
    ItemEvent,
    name_of,
    type_of,
    word,
)
from streamlib_parsers.wires.responses.items import (
    HOSTED,
    item_of,
    outline,
    to_answer,
    unknown_parts,
)
from streamlib_parsers.wires.responses.slots import Slots

INCOMPLETE_REASONS: Final[dict[str, StopReason]] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
"""Stop reasons by `incomplete_details.reason`; every other one (max_messages, steered) is `other`."""

NAMED: Final = (FunctionCall, CustomToolCall)


class OutputItems:
    """The items of one response."""

    def __init__(self, assembly: EventAssembler) -> None:
        self.slots = Slots()
        self._assembly = assembly
        self._open_calls: dict[str, None] = {}
        self._has_text = False
        self._has_refusal = False
        self._unnamed: dict[tuple[int | None, str | None], ResponseItem] = {}

    # --- begin ---

    def added(self, message: ItemAdded, data: bytes) -> None:
        """`output_item.added`: text that it brings already counts as its first delta."""
        block, raw = self._read(message.item)
        if not block or self._is_repeated(block, message, data):
            return
        item = item_of(block, raw)
        if isinstance(item, NAMED) and not item.name:
            self.slots.leave_unnamed(item.id or message.item_id)
            self._unnamed[message.output_index, item.id or message.item_id] = item
            self._assembly.before_close = self._never_named
            return
        opened = self._begin(item, type_of(message.item), message.output_index)
        is_text = not call_text(item) or call_text(item) in block.values()
        for emit, before, whole, part in text_changes(opened.item, item) if is_text else ():
            emit(self._assembly, opened, whole[len(before) :], part)

    def placeholder(self, item: Message | Reasoning, message: ItemEvent) -> OpenItem | None:
        """An item whose text came though it was never added (OpenRouter: `item: null`); None where it is done already."""
        if self.slots.is_done(message.output_index, message.item_id):
            return None
        kind = "message" if isinstance(item, Message) else "reasoning"
        return self._begin(
            msgspec.structs.replace(item, id=message.item_id), kind, message.output_index
        )

    def _begin(self, item: ResponseItem, kind: str, place: int | None) -> OpenItem:
        if isinstance(item, NAMED) and not item.call_id:
            item = msgspec.structs.replace(item, call_id=self._assembly.new_call_id())
        opened = self._assembly.open(outline(item))
        opened.free_text = kind in HOSTED and HOSTED[kind].free_text
        self.slots.add(opened, kind, place)
        return opened

    def _read(self, item: Raw) -> tuple[JsonObject, bytes]:
        """The item with its bytes; `{}` for null, which tells nothing."""
        raw = bytes(item)
        try:
            block = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raw = mark_surrogates(raw) or raw
            block = decode_any(raw)
        if block is not None and not isinstance(block, dict):
            raise malformed("an item is not a JSON object", raw)
        return (block if self._assembly.surrogates is None else scrub(block)) or {}, raw

    def _is_repeated(self, block: JsonObject, message: ItemAdded | ItemDone, data: bytes) -> bool:
        repeated = self.slots.is_repeated(message.output_index, word(block.get("id")))
        if repeated:
            self._assembly.notice(
                "repeated_item", f"{type_of(message.item)} {message.output_index}"
            )
            self._assembly.passthrough(name_of(message), decode_any(data))
        return repeated

    # --- end ---

    def done(self, message: ItemDone, data: bytes) -> None:
        """`output_item.done`: the final version, whatever came before."""
        block, raw = self._read(message.item)
        if not block:
            return
        item, item_id = item_of(block, raw), word(block.get("id")) or message.item_id
        opened = self.slots.find(message.output_index, item_id)
        if opened is not None and type(opened.item) is not type(item):
            if opened.item.id == item_id:  # what began as one kind is done as another
                self._assembly.close(opened, "incomplete")
                self.slots.end(opened, None)
            opened = None
        elif opened is None and self._is_repeated(block, message, data):
            return
        self._named(message.output_index, item_id)
        self._settle(
            opened or self._begin(item, type_of(message.item), message.output_index), item, block
        )

    def _named(self, place: int | None, item_id: str | None) -> None:
        """A call that was added without a name is told of again, at its place or under its id. No id at all is none in common."""
        for key in [*self._unnamed]:
            if (
                (place, item_id) == key
                or (place is not None and place == key[0])
                or (item_id is not None and item_id == key[1])
            ):
                del self._unnamed[key]

    def _never_named(self) -> None:
        """Calls that were added and never got a name: nobody can answer them, and they are told of all the same."""
        for item in self._unnamed.values():
            if self._assembly.item_count < self._assembly.limits.items:
                opened = self._begin(item, "", None)
                self._assembly.notice("nameless_call", "the call never got a name", opened)
                self._assembly.close(opened, "incomplete")
        self._unnamed.clear()

    def _settle(self, opened: OpenItem, final: ResponseItem, block: JsonObject) -> None:
        before = opened.item
        if isinstance(final, NAMED) and isinstance(before, NAMED):
            final = msgspec.structs.replace(
                final, call_id=final.call_id or before.call_id, name=final.name or before.name
            )
            if not final.name:
                self._assembly.notice(
                    "nameless_call", "a call without a name cannot be answered", opened
                )
                final = msgspec.structs.replace(final, status="incomplete")
        elif isinstance(final, Message):
            self._annotate(opened, final)
        self._assembly.finish_with(opened, final)
        self.slots.end(opened, final.id)
        for part in unknown_parts(block):
            self._assembly.close(self._assembly.open(part))
        self._tally(opened.item)

    def _annotate(self, opened: OpenItem, final: Message) -> None:
        """Citations that no event brought."""
        for place, part in enumerate(final.content):
            growing = opened.part(place)
            for annotation in getattr(part, "annotations", ())[len(growing.annotations) :]:
                self._assembly.annotation(opened, annotation, place)

    def add_missing_items(self, raws: list[Raw], *, whole: bool) -> None:
        """The last event tells all items: those that were never done are given now. whole: it says that the answer is complete.

        An item that it does not tell of ends complete where its own text was told whole.
        """
        for place, (raw, slot) in enumerate(
            zip(raws, self.slots.matched([type_of(raw) for raw in raws]), strict=True)
        ):
            block, own = self._read(raw) if slot is None or slot.open is not None else ({}, b"")
            if not block:
                continue
            item = item_of(block, own)
            if not whole and block.get("status") not in (None, "completed"):
                item = msgspec.structs.replace(item, status="incomplete")
            opened = slot.open if slot is not None else None
            self._named(place, item.id)
            self._settle(opened or self._begin(item, type_of(raw), None), item, block)
        for opened in [
            slot.open
            for slot in self.slots.all
            if whole and slot.finished and slot.open is not None
        ]:
            self._assembly.close(opened)
            self._tally(opened.item)

    # --- why it stopped ---

    def _tally(self, item: ResponseItem) -> None:
        if isinstance(item, NAMED) and item.status == "completed":
            self._open_calls[item.call_id] = None
        elif isinstance(item, Opaque):
            waiting = to_answer(item)
            if waiting is not None:
                self._open_calls[waiting] = None
            elif item.kind.endswith("_output"):
                self._open_calls.pop(str(item.payload.get("call_id")), None)
        elif isinstance(item, Message):
            self._has_text = self._has_text or bool(item.text)
            self._has_refusal = self._has_refusal or any(
                isinstance(part, Refusal) for part in item.content
            )

    def stop_reason(self, status: str, details: Any) -> tuple[StopReason, str | None]:
        """The wire has no stop reason: status, `incomplete_details` and the items tell it. With the wire's own words for it."""
        reason = details.get("reason") if isinstance(details, dict) else None
        if status == "incomplete":
            return INCOMPLETE_REASONS.get(
                str(reason), "other"
            ), f"incomplete:{reason}" if reason else status
        if status != "completed":
            return "other", status or None
        if self._open_calls:
            return "tool_calls", status
        return "refusal" if self._has_refusal and not self._has_text else "stop", status
