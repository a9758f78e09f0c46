"""OpenAI Responses: which item an event is about.

The wire promises `output_index` in every event about an item. What comes instead:

    Copilot      other ids in every event; the index is right
    llama.cpp    no index at all, ids are right
    vLLM         one id, but another index in `.done` than in the deltas before it
    shell, audio no id, or neither
    OpenRouter   `item: null` in `.added`, gaps between indexes
    a bridge     one index for all calls; ids are right

So: the index, else the id, else the item that began last and is still open. An event of an item that is done never goes to another.
"""

from __future__ import annotations

from msgspec import Struct

from streamlib_parsers.open_items import OpenItem


class Slot(Struct):
    """One item. kind: the wire's type. open: None once it is done. finished: some text of it was told whole."""

    kind: str
    place: int | None
    id: str | None
    open: OpenItem | None
    finished: bool = False


class Slots:
    """The items of one response by every name they have. `by_index`: those that are open and share their index with no other."""

    def __init__(self) -> None:
        self.by_index: dict[int | None, OpenItem] = {}
        self._by_id: dict[str | None, OpenItem] = {}
        self._newest: list[OpenItem] = []
        self._slots: dict[int, Slot] = {}
        self._places: dict[int | None, Slot] = {}
        self._shared: set[int | None] = set()
        self._ended: set[str | None] = set()
        self._unnamed: set[str | None] = set()

    def find(self, index: int | None, item_id: str | None) -> OpenItem | None:
        """The open item with this index, else with this id, else the one that began last."""
        by_index, by_id = self.by_index.get(index), self._by_id.get(item_id)
        if index in self._shared:
            by_index = self._places[index].open
        if by_index is not None and by_id is not None:
            return by_index if by_index.item.id == item_id else by_id
        found = by_index or by_id
        if (
            found is not None
            or index is not None
            or item_id in self._ended
            or item_id in self._unnamed
        ):
            return found
        while self._newest and self._newest[-1].closed:
            self._newest.pop()
        return self._newest[-1] if self._newest else None

    def slot(self, item: OpenItem) -> Slot:
        """What is known of an item that began."""
        return self._slots[item.index]

    @property
    def all(self) -> list[Slot]:
        """Every item, in the order they began."""
        return list(self._slots.values())

    def add(self, item: OpenItem, kind: str, place: int | None) -> None:
        """An item began."""
        slot = self._slots[item.index] = Slot(kind, place, item.item.id, item)
        self._newest.append(item)
        if place is not None:
            if self.by_index.pop(place, None) is not None:
                self._shared.add(place)
            if place not in self._shared:
                self.by_index[place] = item
            self._places[place] = slot
        if slot.id is not None:
            self._by_id[slot.id] = item

    def leave_unnamed(self, item_id: str | None) -> None:
        """A call was added without a name: it begins with its `.done`, and until then no other item takes its events."""
        self._unnamed.add(item_id)

    def end(self, item: OpenItem, final_id: str | None) -> None:
        """An item is done."""
        slot = self._slots[item.index]
        slot.open = None
        if self.by_index.get(slot.place) is item:
            del self.by_index[slot.place]
        for one in (slot.id, final_id):
            self._ended.update([one] if one else [])
            if self._by_id.get(one) is item:
                del self._by_id[one]

    def is_addressed(self, index: int | None, item_id: str | None) -> bool:
        """Whether an event with these names is surely about the item that was found, not only about the newest."""
        return index is not None or item_id in self._by_id

    def is_done(self, index: int | None, item_id: str | None) -> bool:
        """Whether the item with one of these names was done before."""
        return item_id in self._ended or (
            index in self._places and self._places[index].open is None
        )

    def is_repeated(self, index: int | None, item_id: str | None) -> bool:
        """Whether an item with these names has begun before; another id at a known place is another item."""
        slot = self._places.get(index)
        if slot is not None:
            return slot.id == item_id and (item_id is not None or slot.open is not None)
        return index is None and (item_id in self._by_id or item_id in self._ended)

    def matched(self, kinds: list[str]) -> list[Slot | None]:
        """For each item of the last event the one that was streamed: by place and type, else the next free one of its type.

        Ids say nothing (Copilot), and places alone neither (gaps).
        """
        placed = [self._places.get(place) for place in range(len(kinds))]
        found = [
            slot if slot is not None and slot.kind == kind else None
            for slot, kind in zip(placed, kinds, strict=True)
        ]
        taken = {id(slot) for slot in found}
        free: dict[str, list[Slot]] = {}
        for slot in reversed(self._slots.values()):
            if id(slot) not in taken:
                free.setdefault(slot.kind, []).append(slot)
        return [
            slot or (free[kind].pop() if free.get(kind) else None)
            for slot, kind in zip(found, kinds, strict=True)
        ]
