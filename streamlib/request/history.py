"""The repairs of a history that every wire needs before it is sent.

In this order, each one in the report:

1. an incomplete call is dropped, and so is its output; so is an incomplete item of an unknown kind;
2. a call id used twice is made unique, on the call and on its output;
3. every call gets exactly one output, directly after the turn that made the calls: a missing one is
   generated as an error, a late one is moved up, a second one is dropped, and an output without a
   call becomes user text. Calls of built-in tools (`BuiltInCall`) get outputs of their own kind;
   that of a computer, whose output cannot state an error, becomes text, and so does the error.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from streamlib.request.built_in_text import call_as_text, error_output, output_as_text
from streamlib.request.report import Report
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    CallOutput,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Item,
    JsonObject,
    Message,
    Opaque,
    PendingCall,
    Reasoning,
    ResponseItem,
    Text,
    user,
)

INTERRUPTED: Final = "The call was interrupted: it gave no result."
"""Output of a call that has none: every provider refuses a call without its output."""

Call: TypeAlias = FunctionCall | CustomToolCall
CALLS: Final = (FunctionCall, CustomToolCall)
OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput)
ALL_CALLS: Final = (*CALLS, *BUILT_IN_CALLS)
ALL_OUTPUTS: Final = (*OUTPUTS, *BUILT_IN_OUTPUTS)


class IndexedItem(NamedTuple):
    """An item with its index in the prompt's input, for the report."""

    position: int
    item: ResponseItem

    @property
    def path(self) -> str:
        """The JSON pointer of the item."""
        return f"/input/{self.position}"


# --- what a turn of a decoded request had beside its content ---

TURN_FIELDS: Final = "message"
"""Key of an item's `native`: the fields of its turn beside role and content."""


def with_turn_fields(item: ResponseItem, fields: JsonObject | None) -> ResponseItem:
    """The item with the fields of its turn: each item of a turn has them all."""
    if not fields:
        return item
    native = {**(item.native or {}), TURN_FIELDS: fields}
    return msgspec.structs.replace(item, native=native)


def turn_fields(item: Item) -> JsonObject:
    """The fields of the item's turn."""
    fields: JsonObject = (item.native or {}).get(TURN_FIELDS) or {}
    return fields


def without_turn_fields(entry: IndexedItem) -> IndexedItem:
    """The item without the fields of its turn, which none of its parts has."""
    native = entry.item.native
    if native is None or TURN_FIELDS not in native:
        return entry
    native = {key: value for key, value in native.items() if key != TURN_FIELDS}
    return entry._replace(item=msgspec.structs.replace(entry.item, native=native or None))


def content_parts(item: ResponseItem) -> tuple[ContentPart, ...]:
    """The parts of a message or of a call's output; () where its output is a plain string."""
    if isinstance(item, Message):
        return tuple(item.content)
    if isinstance(item, OUTPUTS) and not isinstance(item.output, str):
        return tuple(item.output)
    return ()


def system_text(item: Message) -> str:
    """The text of a system message whose parts become one: a paragraph each."""
    return "\n\n".join(part.text for part in item.content if isinstance(part, Text))


def reasoning_text(item: Reasoning) -> str:
    """The text of reasoning; where there are only summaries, a paragraph each."""
    return item.content or "\n\n".join(item.summary)


def repair(
    items: Iterable[ResponseItem], report: Report, *, is_continued: bool = False
) -> list[IndexedItem]:
    """The items as any wire takes them: complete calls, unique ids, one output for each call.

    Args:
        items: the history.
        report: receives each repair.
        is_continued: the provider stores what was before, so an output may answer a call of that.
    """
    entries = [IndexedItem(index, item) for index, item in enumerate(items)]
    if not any(type(entry.item) in REPAIRED for entry in entries):
        return entries
    entries = drop_incomplete(entries, report)
    entries = _make_ids_unique(entries, report)
    return _pair_outputs(entries, report, is_continued=is_continued)


def drop_incomplete(entries: list[IndexedItem], report: Report) -> list[IndexedItem]:
    """Drops incomplete calls and their outputs, and incomplete items of unknown kinds."""
    incomplete: set[PairKey] = set()
    complete: set[PairKey] = set()
    for entry in entries:
        if isinstance(entry.item, ALL_CALLS):
            keys = incomplete if entry.item.status == "incomplete" else complete
            keys.add(pair_key(entry.item))
    # An id that a complete call has too may keep its output: it is that call's.
    incomplete_only = incomplete - complete
    remaining: list[IndexedItem] = []
    for entry in entries:
        item = entry.item
        if isinstance(item, ALL_CALLS) and item.status == "incomplete":
            report.dropped(entry.path, "the call is incomplete: its arguments were truncated")
        elif isinstance(item, ALL_OUTPUTS) and pair_key(item) in incomplete_only:
            report.dropped(entry.path, "its call is incomplete and was dropped")
        elif isinstance(item, Opaque) and item.status == "incomplete":
            # It has what its start contained: sent alone, that would pass for the complete item.
            report.dropped(entry.path, f"{item.kind} is incomplete: not all of it was read")
        else:
            remaining.append(entry)
    return remaining


def _make_ids_unique(entries: list[IndexedItem], report: Report) -> list[IndexedItem]:
    """Gives the second call with an id a new one, and so its output."""
    items = [entry.item for entry in entries]
    call_of = answered_calls(items)
    taken: set[PairKey] = set()
    uses: dict[PairKey, int] = {}
    ids: dict[int, str] = {}
    """Ids of calls, by their index."""
    unique: list[IndexedItem] = []
    for index, (position, item) in enumerate(entries):
        if isinstance(item, ALL_CALLS):
            key = family, call_id = pair_key(item)
            while (family, call_id) in taken:
                uses[key] = uses.get(key, 1) + 1
                call_id = f"{item.call_id}_{uses[key]}"
            taken.add((family, call_id))
            ids[index] = call_id
        if isinstance(item, ALL_CALLS + ALL_OUTPUTS):
            call_id = ids.get(call_of.get(index, index), item.call_id)
            if call_id != item.call_id:
                path = f"/input/{position}/call_id"
                report.add("renamed", path, "the id was used by an earlier call")
                item = msgspec.structs.replace(item, call_id=call_id)  # noqa: PLW2901
        unique.append(IndexedItem(position, item))
    return unique


def answered_calls(items: Iterable[ResponseItem]) -> dict[int, int]:
    """Index of each output that answers a call -> index of that call.

    Calls of one turn may have the same id: their outputs are in the order of the calls. An output
    for which no call waits is a second one of the newest call with its id.
    """
    answered: dict[int, int] = {}
    waiting: defaultdict[PairKey, deque[int]] = defaultdict(deque)
    newest: dict[PairKey, int] = {}
    turn_end = -1
    """Index of the newest output, or of the newest message that is not the model's."""
    for index, item in enumerate(items):
        if isinstance(item, ALL_OUTPUTS):
            turn_end = index
            key = pair_key(item)
            if waiting[key]:
                answered[index] = waiting[key].popleft()
            elif key in newest:
                answered[index] = newest[key]
        elif isinstance(item, ALL_CALLS) and item.status != "incomplete":
            key = pair_key(item)
            if newest.get(key, index) < turn_end:
                waiting[key].clear()  # calls of an earlier turn, which nobody answered
            waiting[key].append(index)
            newest[key] = index
        elif isinstance(item, Message) and item.role != "assistant":
            turn_end = index
    return answered


PairKey: TypeAlias = tuple[str, str]

_FAMILIES: Final[dict[type, str]] = {
    **dict.fromkeys(CALLS + OUTPUTS, "function"),
    **{kind: kind.__name__ for kind in BUILT_IN_CALLS},
    **{
        output: call.__name__ for call, output in zip(BUILT_IN_CALLS, BUILT_IN_OUTPUTS, strict=True)
    },
}
"""Kinds of which an output answers a call."""

REPAIRED: Final = frozenset((*_FAMILIES, Opaque))
"""Kinds that `repair` looks for: a history without them stays as it is."""


def pair_key(item: PendingCall | CallOutput) -> PairKey:
    """What a call and its output have in common."""
    return _FAMILIES[type(item)], item.call_id


def _opaque_pairs(entries: list[IndexedItem]) -> set[str]:
    """Ids of calls and outputs that a version before the built-in calls saved as `Opaque`."""
    ids: set[str] = set()
    for entry in entries:
        if isinstance(entry.item, Opaque):
            values = (entry.item.payload.get("call_id"), entry.item.payload.get("id"))
            ids.update(value for value in (*values, entry.item.answers) if isinstance(value, str))
    return ids


def _pair_outputs(
    entries: list[IndexedItem], report: Report, *, is_continued: bool
) -> list[IndexedItem]:
    pairing = _Pairing(entries, report, is_continued=is_continued)
    for entry in entries:
        pairing.take(entry)
    pairing.flush()
    return pairing.paired


class _Pairing:
    """Walks the items once. The calls of a turn wait for its end, where their outputs are set."""

    def __init__(self, entries: list[IndexedItem], report: Report, *, is_continued: bool) -> None:
        self.paired: list[IndexedItem] = []
        """The repaired history so far."""
        self._is_continued = is_continued
        """An output without a call here may answer one that the provider stores."""
        self._report = report
        self._calls: list[tuple[int, PendingCall]] = []
        """Position and call, of the current turn, whose outputs are not set yet."""
        self._has_output = False
        """The current turn has had an output, so its calls are over."""
        self._response: str | None = None
        """`response_id` of the newest item: items of one response are one turn."""
        self._orphans: set[int] = set()
        """Positions of outputs that are before their call, or have none."""
        self._outputs: defaultdict[PairKey, list[IndexedItem]] = defaultdict(list)
        """Every other output by the id of its call."""
        self._opaque = _opaque_pairs(entries)
        """Ids in calls and outputs of unknown kinds; what belongs to them stays where it is."""
        called: set[PairKey] = set()
        for entry in entries:
            item = entry.item
            if isinstance(item, ALL_CALLS):
                called.add(pair_key(item))
            elif not isinstance(item, ALL_OUTPUTS):
                continue
            elif pair_key(item) in called:
                self._outputs[pair_key(item)].append(entry)
            elif not self._is_beside_opaque(item):
                self._orphans.add(entry.position)

    def take(self, entry: IndexedItem) -> None:
        """Takes the next item."""
        item = entry.item
        if isinstance(item, ALL_OUTPUTS):
            if entry.position not in self._orphans:
                self._has_output = True
                if self._is_beside_opaque(item):
                    self.paired.append(entry)
                return
            if self._is_continued:
                self.flush()
                self.paired.append(entry)
                return
            reason = "an output without its call, sent as user text"
            self._report.add("downgraded", entry.path, reason)
            self.flush()
            self.paired.append(IndexedItem(entry.position, orphan_as_text(item)))
            return
        if self._ends_turn(item):
            self.flush(entry.position)
        if isinstance(item, ALL_CALLS) and not self._is_beside_opaque(item):
            self._calls.append((entry.position, item))
        self._response = item.response_id
        self.paired.append(entry)

    def _is_beside_opaque(self, item: PendingCall | CallOutput) -> bool:
        is_built_in = isinstance(item, BUILT_IN_CALLS + BUILT_IN_OUTPUTS)
        return is_built_in and item.call_id in self._opaque

    def _ends_turn(self, item: ResponseItem) -> bool:
        if isinstance(item, Message) and item.role != "assistant":
            return True
        is_same_response = self._response is not None and item.response_id == self._response
        return self._has_output and not is_same_response

    def flush(self, before: int | None = None) -> None:
        """Ends the turn: the outputs of its calls in their order, then the generated ones."""
        present: list[IndexedItem] = []
        generated: list[IndexedItem] = []
        texts: list[IndexedItem] = []
        for position, call in self._calls:
            output = self._output_of(call, before)
            if output is not None:
                present.append(output)
                continue
            reason = "the call had no output; it gets an error as its output"
            self._report.add("generated", f"/input/{position}", reason)
            error = error_output(call, INTERRUPTED)
            if error is not None:
                generated.append(IndexedItem(position, error))
                continue
            self._replace_by_text(position)
            texts.append(IndexedItem(position, user(f"[{INTERRUPTED}]")))
        present.sort(key=lambda entry: entry.position)
        self.paired += present
        self.paired += generated
        # Other wires want the outputs of functions directly after their calls.
        self.paired += texts
        self._calls.clear()
        self._has_output = False

    def _replace_by_text(self, position: int) -> None:
        """Replaces a call of this turn by assistant text."""
        for index in range(len(self.paired) - 1, -1, -1):
            entry = self.paired[index]
            if entry.position == position and isinstance(entry.item, BUILT_IN_CALLS):
                self.paired[index] = IndexedItem(position, call_as_text(entry.item))
                return

    def _output_of(self, call: PendingCall, before: int | None) -> IndexedItem | None:
        """The output of a call; `before` is the position of the item that ends the turn."""
        outputs = self._outputs.get(pair_key(call))
        if not outputs:
            return None
        for extra in outputs[1:]:
            self._report.dropped(extra.path, "a second output of the same call")
        first = outputs[0]
        if before is not None and first.position > before:
            reason = "moved up after its call"
            self._report.add("repaired", first.path, reason, breaks_prefix=True)
        return first


def orphan_as_text(item: CallOutput) -> Message:
    """An output without its call, as a user message."""
    if isinstance(item, BUILT_IN_OUTPUTS):
        return output_as_text(item)
    parts = item.output
    if isinstance(parts, str):
        parts = (Text(parts),)
    # Providers refuse an empty text part.
    texts = [part for part in parts if not isinstance(part, Text) or part.text]
    return user(f"[result of the call {item.call_id}, which is not in this conversation]", *texts)
