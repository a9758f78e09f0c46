"""Tool calls of Chat Completions: which fragment belongs to which call.

The schema promises an `index` on every fragment, `id` and `name` once, and argument text in pieces:

    {"index":0,"id":"call_1","function":{"name":"f","arguments":""}}     -> OutputItemAdded(FunctionCall)
    {"index":0,"function":{"arguments":"{\\"a\\":"}}                       -> FunctionCallArgumentsDelta
    {"index":1,"id":"call_2","function":{"name":"g","arguments":"{}"}}   a second call; both stay open to the end

Servers leave out the index, the id or both, number every call 0, send ids and names again in each chunk, put `{}` or `null`
where the arguments will be, encode them twice, or send an object where text belongs. Nothing says that a call is finished, and a
whole JSON text can be a prefix of what is meant, so calls end with the answer.

Held back: arguments until the call's name is known; the placeholder `{}` until the next fragment says what it was; text that
begins with a quotation mark (arguments encoded twice) to the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import limit_exceeded, malformed
from streamlib_parsers.items import FunctionCall, ResponseItem
from streamlib_parsers.open_items import OpenItem

__all__ = ["MOST_INDEX", "CallState", "Calls", "JsonDepth"]

MOST_INDEX: Final = 1_000_000
"""Indexes above it are no indexes. Nothing is padded up to them."""
PLACEHOLDER: Final = "{}"
_MARKS: Final = re.compile(r'\\(?:.|\Z)|["{}\[\]]', re.DOTALL)


class JsonDepth:
    """Whether JSON that comes in pieces has ended: no bracket and no string open. Linear in the text, and keeps none of it."""

    __slots__ = ("_begun", "_depth", "_escaped", "_within")

    def __init__(self) -> None:
        self._depth = 0
        self._within = False
        self._escaped = False
        self._begun = False

    def feed(self, text: str) -> None:
        """The next piece."""
        if self._escaped and text:
            text, self._escaped = text[1:], False
        for mark in _MARKS.findall(text):
            if mark[0] == "\\":
                self._escaped = len(mark) == 1
            elif mark == '"':
                self._within = not self._within
            elif not self._within:
                self._depth += 1 if mark in "{[" else -1
        self._begun = self._begun or not (not text or text.isspace())

    @property
    def is_complete(self) -> bool:
        """Whether what came is whole, so far."""
        return self._begun and self._depth == 0 and not self._within


class CallState:
    """One call while it grows.

    item: None until the name is known. held: argument text not given out yet. streaming: nothing is held any more.
    quoted: the text began with a quotation mark. fixed: the arguments came as a JSON value; no text is added to it.
    late: fields that no delta carries.
    """

    __slots__ = (
        "call_id",
        "fixed",
        "held",
        "item",
        "kind",
        "late",
        "name",
        "nesting",
        "quoted",
        "size",
        "streaming",
    )

    def __init__(self, kind: Callable[..., ResponseItem]) -> None:
        self.kind = kind
        self.call_id: str | None = None
        self.name = ""
        self.item: OpenItem | None = None
        self.late: dict[str, Any] = {}
        self.held: list[str] = []
        self.size = 0
        self.streaming = False
        self.quoted = False
        self.fixed = False
        self.nesting: JsonDepth | None = None

    def pieces(self) -> list[str]:
        """The argument text so far, given out or held."""
        return [*(self.item.arguments if self.item else ()), *self.held]

    @property
    def empty(self) -> bool:
        """Whether no argument text came yet."""
        return not (self.held or (self.item and self.item.arguments))

    @property
    def is_waiting(self) -> bool:
        """Whether what is held may turn out to be something else than arguments."""
        return not self.fixed and (self.quoted or self.held == [PLACEHOLDER])

    @property
    def is_complete(self) -> bool:
        """Whether the arguments could be whole. The text is only watched from the first time this is asked."""
        if self.nesting is None:
            self.nesting = JsonDepth()
            for piece in self.pieces():
                self.nesting.feed(piece)
        return self.nesting.is_complete

    def set_fields(
        self, *, signature: str | None = None, native: dict[str, Any] | None = None
    ) -> None:
        """Fields that came beside the arguments."""
        if signature:
            self.late["signature"] = signature
        if native:
            self.late["native"] = {**self.late.get("native", {}), **native}
        if self.item is not None:
            self.item.fields.update(self.late)

    def starts_new_call(self, call_id: str | None, name: str | None, arguments: str | None) -> bool:
        """Whether a fragment under this slot's own index belongs to another call.

        A different id alone says nothing: some servers make a new one for every chunk. A name without an id neither: some
        send it every time. What came so far must be whole, or the name another.
        """
        opens = (arguments or "").startswith("{")
        if call_id and self.call_id and call_id != self.call_id:
            renamed = bool(name) and (name != self.name or self.empty or self.is_complete)
            return renamed or (opens and self.is_complete)
        if name and not call_id and self.name:
            return (
                name != self.name or (opens and self.held != [PLACEHOLDER])
            ) and self.is_complete
        return False


class Calls:
    """The calls of one choice, in the order they began. `before` is told when a call is about to be added."""

    def __init__(self, assembly: EventAssembler, choice: int, before: Callable[[], None]) -> None:
        self._assembly = assembly
        self._choice = choice
        self._before = before
        self._slots: list[CallState] = []
        self._by_index: dict[int, CallState] = {}
        self._by_id: dict[str, CallState] = {}
        self._last: CallState | None = None
        self.running: dict[int | None, OpenItem] = {}
        self.begun = False
        """Whether any call came."""
        self.whole = 0
        """How many calls ended whole, known after `close`."""

    def add(
        self,
        index: int | None,
        call_id: str | None,
        name: str | None,
        arguments: str | None,
        kind: Callable[..., ResponseItem] = FunctionCall,
        *,
        fixed: bool = False,
    ) -> CallState | None:
        """One fragment; its slot, or None where it says nothing. `fixed`: the arguments are a JSON value, whole, in its own bytes."""
        slot = self._find(index, call_id, name, arguments)
        if slot is None:
            if not (call_id or name or arguments):
                return None
            slot = self._new(index, kind)
        self._last = slot
        if call_id and not slot.call_id:
            self._identify(slot, call_id)
        if name:
            self._name(slot, name)
        if arguments and not slot.fixed:
            (self._fix if fixed else self._append)(slot, arguments)
        self.running.pop(index, None)
        if (
            index is not None
            and slot.item is not None
            and slot.streaming
            and not slot.fixed
            and slot.nesting is None
        ):
            self.running[index] = slot.item
        return slot

    def _find(
        self, index: int | None, call_id: str | None, name: str | None, arguments: str | None
    ) -> CallState | None:
        if index is None:
            return self._by_id.get(call_id) if call_id else None if name else self._last
        slot = self._by_index.get(index)
        if (
            slot is not None
            and (call_id or name)
            and slot.starts_new_call(call_id, name, arguments)
        ):
            return None
        return slot

    def _new(self, index: int | None, kind: Callable[..., ResponseItem]) -> CallState:
        if len(self._slots) >= self._assembly.limits.items:
            raise limit_exceeded("items", self._assembly.limits.items)
        if index is not None and not 0 <= index <= MOST_INDEX:
            raise malformed(f"the index of a tool call is {index}")
        slot = CallState(kind)
        self.begun = True
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        return slot

    # --- id and name ---

    def _identify(self, slot: CallState, call_id: str) -> None:
        slot.call_id = call_id
        self._by_id[call_id] = slot
        if slot.item is not None:  # it was added under an id of ours
            slot.item.fields["call_id"] = call_id

    def _name(self, slot: CallState, name: str) -> None:
        """Assigned, never appended; but a name that goes on before any argument came was cut in two."""
        if slot.item is None:
            slot.name = name
            self._before()
            self._begin(slot)
            self._release(slot)
        elif name != slot.name:
            in_pieces = slot.empty and not name.startswith(slot.name)
            slot.name = slot.name + name if in_pieces else name
            slot.item.fields["name"] = self._assembly.original_tool_name(slot.name)
            self._assembly.notice(
                "call_renamed", f"the name of the call became {slot.name}", slot.item
            )

    def _begin(self, slot: CallState) -> OpenItem:
        item = self._assembly.open(
            slot.kind(call_id=slot.call_id or self._mint(), name=slot.name, choice=self._choice)
        )
        item.fields.update(slot.late)
        slot.item = item
        return item

    def _mint(self) -> str:
        """An id of ours, and not one that the wire has used by chance."""
        call_id = self._assembly.new_call_id()
        for _ in range(len(self._by_id)):
            if call_id not in self._by_id:
                break
            call_id = self._assembly.new_call_id()
        return call_id

    # --- arguments ---

    def _append(self, slot: CallState, text: str) -> None:
        if slot.nesting is not None:
            slot.nesting.feed(text)
        if slot.streaming and slot.item is not None:
            self._assembly.arguments(slot.item, text)
        else:
            self._hold(slot, text)

    def _fix(self, slot: CallState, text: str) -> None:
        """A JSON value takes the place of text that was not given out; nothing is added to it."""
        if not slot.streaming:
            slot.fixed, slot.held, slot.nesting = True, [], None
            self._hold(slot, text)

    def _hold(self, slot: CallState, text: str) -> None:
        if not slot.held and slot.kind is FunctionCall:
            if text.strip() == "null":
                return
            slot.quoted = text.lstrip().startswith('"') and not slot.fixed
        elif slot.held == [PLACEHOLDER] and text.lstrip().startswith("{"):
            slot.held, slot.nesting = [], None
        slot.held.append(text)
        slot.size += len(text)
        if slot.size > self._assembly.limits.argument_bytes:
            raise limit_exceeded("argument_bytes", self._assembly.limits.argument_bytes)
        self._release(slot)

    def _release(self, slot: CallState) -> None:
        """Gives out what is held, once there is a name and it is clear what the text is."""
        if slot.item is not None and slot.held and not slot.is_waiting:
            self._give(slot, slot.item)

    def _give(self, slot: CallState, item: OpenItem) -> None:
        slot.streaming = True
        held, slot.held = slot.held, []
        for piece in held:
            self._assembly.arguments(item, piece)

    # --- the end ---

    def flush(self) -> None:
        """Gives out what is still held; a call without a name is shown as what it is, never as callable. May come twice."""
        for slot in self._slots:
            self._shown(slot)

    def close(self) -> None:
        """Ends every call, once all of them are shown."""
        for item in [self._shown(slot) for slot in self._slots]:
            self.whole += self._assembly.close(item) == "completed"

    def _shown(self, slot: CallState) -> OpenItem:
        item = slot.item or self._nameless(slot)
        if slot.quoted:
            self._unquote(slot, item)
        self._give(slot, item)
        return item

    def _nameless(self, slot: CallState) -> OpenItem:
        item = self._begin(slot)
        item.forced_incomplete = True
        self._assembly.notice("nameless_call", "the call never got a name", item)
        return item

    def _unquote(self, slot: CallState, item: OpenItem) -> None:
        """Arguments that were encoded twice: a JSON string that holds an object."""
        try:
            inner = msgspec.json.decode("".join(slot.held), type=str)
            msgspec.json.decode(inner, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        slot.held = [inner]
        self._assembly.notice(
            "arguments_unquoted", "the arguments were JSON inside a JSON string", item
        )
