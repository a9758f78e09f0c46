"""OpenAI Responses: finds the item that an event is about.

The API has `output_index` in every event about an item. What servers send instead:

    Copilot      other ids in every event; the index is right
    llama.cpp    no index at all, ids are right
    vLLM         one id, but another index in `.done` than in the deltas before it
    shell, audio no id, or neither
    OpenRouter   `item: null` in `.added`, gaps between indexes
    a bridge     one index for all calls; ids are right

So: the index, else the id, else the newest item that is still open. An event of an item that is
done never goes to another.
"""

from __future__ import annotations

from msgspec import Struct

from streamlib_parsers.open_items import OpenItem


class Slot(Struct):
    """One item of the response.

    Attributes:
        kind: the wire's type of the item.
        output_index: the wire's index; None where the item was opened without one.
        id: the wire's id when the item was opened.
        open: the item; None once it is done.
        finished: whether the wire sent some text of the item in full (`.done`).
    """

    kind: str
    output_index: int | None
    id: str | None
    open: OpenItem | None
    finished: bool = False


class Slots:
    """The items of one response, found by index or id."""

    def __init__(self) -> None:
        # Open items by output_index, without those that share one. The machine's deltas read it
        # without a call.
        self.by_index: dict[int | None, OpenItem] = {}
        # Open items by the id they were opened with.
        self._by_id: dict[str | None, OpenItem] = {}
        # Items in order of start; closed ones are removed from its end when it is read.
        self._newest: list[OpenItem] = []
        # Slots by the item's own index, in order of start; never removed.
        self._slots: dict[int, Slot] = {}
        # The newest slot of each output_index; never removed.
        self._slot_at: dict[int | None, Slot] = {}
        # Output indexes that several open items had at once.
        self._shared: set[int | None] = set()
        # Ids of the items that are done.
        self._done_ids: set[str | None] = set()
        # Ids of the calls that were added without a name.
        self._nameless_ids: set[str | None] = set()

    def find(self, output_index: int | None, item_id: str | None) -> OpenItem | None:
        """The open item with this index, else with this id, else the newest one."""
        item_at_index = self.by_index.get(output_index)
        item_with_id = self._by_id.get(item_id)
        if output_index in self._shared:
            item_at_index = self._slot_at[output_index].open
        if item_at_index is not None and item_with_id is not None:
            # They differ where items share an index: then ids are right.
            if item_at_index.item.id == item_id:
                return item_at_index
            return item_with_id
        item = item_at_index or item_with_id
        if item is not None or output_index is not None:
            return item
        if item_id in self._done_ids or item_id in self._nameless_ids:
            return None
        return self._newest_open()

    def _newest_open(self) -> OpenItem | None:
        while self._newest and self._newest[-1].closed:
            self._newest.pop()
        if not self._newest:
            return None
        return self._newest[-1]

    def slot(self, item: OpenItem) -> Slot:
        """The slot of an item that was added."""
        return self._slots[item.index]

    @property
    def all(self) -> list[Slot]:
        """Every slot, in the order in which the items started."""
        return list(self._slots.values())

    def add(self, item: OpenItem, kind: str, output_index: int | None) -> None:
        """Adds an item that was opened."""
        slot = Slot(kind, output_index, item.item.id, item)
        self._slots[item.index] = slot
        self._newest.append(item)
        if output_index is not None:
            if self.by_index.pop(output_index, None) is not None:
                self._shared.add(output_index)
            if output_index not in self._shared:
                self.by_index[output_index] = item
            self._slot_at[output_index] = slot
        if slot.id is not None:
            self._by_id[slot.id] = item

    def add_nameless(self, item_id: str | None) -> None:
        """Records a call that was added without a name.

        It opens with its `.done`; until then no other item receives its events.
        """
        self._nameless_ids.add(item_id)

    def end(self, item: OpenItem, final_id: str | None) -> None:
        """Marks an item as done; its `.done` may have brought another id."""
        slot = self._slots[item.index]
        slot.open = None
        if self.by_index.get(slot.output_index) is item:
            del self.by_index[slot.output_index]
        for item_id in (slot.id, final_id):
            if item_id:
                self._done_ids.add(item_id)
            if self._by_id.get(item_id) is item:
                del self._by_id[item_id]

    def is_addressed(self, output_index: int | None, item_id: str | None) -> bool:
        """Whether the event names its item, so that `find` did not guess the newest."""
        return output_index is not None or item_id in self._by_id

    def is_done(self, output_index: int | None, item_id: str | None) -> bool:
        """Whether the item with this id or at this index is done."""
        if item_id in self._done_ids:
            return True
        slot = self._slot_at.get(output_index)
        return slot is not None and slot.open is None

    def is_repeated(self, output_index: int | None, item_id: str | None) -> bool:
        """Whether this item was added before.

        Another id at a known index is another item.
        """
        slot = self._slot_at.get(output_index)
        if slot is not None:
            return slot.id == item_id and (item_id is not None or slot.open is not None)
        return output_index is None and (item_id in self._by_id or item_id in self._done_ids)

    def match(self, kinds: list[str]) -> list[Slot | None]:
        """Finds the streamed item for each item of the last event.

        Ids do not identify an item here (Copilot changes them), and neither does the index alone
        (OpenRouter leaves gaps).

        Args:
            kinds: the types of the items of the last event.

        Returns:
            For each the slot at its index if it has that type, else the next free slot of that
            type, else None.
        """
        matches: list[Slot | None] = []
        for index, kind in enumerate(kinds):
            slot = self._slot_at.get(index)
            if slot is not None and slot.kind != kind:
                slot = None
            matches.append(slot)
        taken = {id(slot) for slot in matches}
        free: dict[str, list[Slot]] = {}  # the oldest last, so that `pop` takes it
        for slot in reversed(self._slots.values()):
            if id(slot) not in taken:
                free.setdefault(slot.kind, []).append(slot)
        for index, kind in enumerate(kinds):
            if matches[index] is None and free.get(kind):
                matches[index] = free[kind].pop()
        return matches
