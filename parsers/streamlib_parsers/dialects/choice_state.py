"""What a stage knows of the answers while they pass: what they hold so far, and the numbers of the items that go out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.errors import limit_exceeded
from streamlib_parsers.events import OutputItemAdded, OutputItemDone, ResponseEvent
from streamlib_parsers.items import CustomToolCall, FunctionCall, Reasoning, ResponseItem
from streamlib_parsers.limits import Limits
from streamlib_parsers.open_items import OpenItem


class RecoveredCall(Struct, frozen=True):
    """A whole call out of text, open until the answer's end; `literal` is how it was written."""

    item: OpenItem
    literal: str


class WireCall:
    """A call of the wire itself."""

    __slots__ = ("arguments", "name")

    def __init__(self, item: FunctionCall | CustomToolCall) -> None:
        self.name = item.name
        self.arguments = [item.arguments if isinstance(item, FunctionCall) else item.input]


class ChoiceState:
    """One of the answers (n > 1: several).

    begun: anything but white space came. said: text for the user came. native_thoughts: the wire itself sends thoughts.
    called: a recovered call stands.
    """

    __slots__ = ("begun", "called", "native_thoughts", "natives", "recovered", "said", "thoughts")

    def __init__(self) -> None:
        self.begun = False
        self.called = False
        self.said = False
        self.native_thoughts = False
        self.natives: dict[int, WireCall] = {}
        self.recovered: list[RecoveredCall] = []
        self.thoughts: list[Reasoning] = []

    def has_native(self, name: str, arguments: str) -> bool:
        """Whether the wire itself gave this call."""
        return any(
            native.name == name and _same("".join(native.arguments), arguments)
            for native in self.natives.values()
        )


def _same(one: str, other: str) -> bool:
    """Whether two argument texts say the same."""
    value = decoded(one or "{}")
    return one == other or (value is not None and value == decoded(other or "{}"))


class EventRenumberer:
    """Events on their way out: numbered anew, for there are more items than came in."""

    def __init__(self, limits: Limits, mint: Callable[[int], str]) -> None:
        self._limits = limits
        self._mint = mint
        self._minted = 0
        self._ids: set[str] = set()
        self._out: list[ResponseEvent] = []
        self._seq = -1
        self._begun = 0

    def take(self) -> list[ResponseEvent]:
        """The events since the last call."""
        out, self._out = self._out, []
        return out

    def next(self) -> int:
        """The next `seq`."""
        self._seq += 1
        return self._seq

    def add(self, event: ResponseEvent) -> None:
        """Adds an event that was made with `next`."""
        self._out.append(event)

    def emit(self, event: ResponseEvent, **changes: Any) -> None:
        """Adds an event under the next number, unchanged where it has that already."""
        seq = self.next()
        self._out.append(
            event if event.seq == seq and not changes else replace(event, seq=seq, **changes)
        )

    def index(self) -> int:
        """The index of the next item."""
        if self._begun >= self._limits.items:
            raise limit_exceeded("items", self._limits.items)
        self._begun += 1
        return self._begun - 1

    def begin(self, item: ResponseItem) -> OpenItem:
        """A new item."""
        opened = OpenItem(self.index(), replace(item, status="incomplete"))
        self.add(OutputItemAdded(opened.index, opened.item, seq=self.next()))
        return opened

    def close(self, index: int, item: ResponseItem) -> None:
        """The item is done."""
        self.add(OutputItemDone(index, item, seq=self.next()))

    def call_id(self, given: str) -> str:
        """The id of a recovered call: the model's own if it is new, else a generated one."""
        call_id = given
        while not call_id or call_id in self._ids:
            call_id = self._mint(self._minted)
            self._minted += 1
        self._ids.add(call_id)
        return call_id

    def taken(self, call_id: str) -> None:
        """An id that the wire uses."""
        self._ids.add(call_id)

    def check_arguments(self, size: int) -> None:
        """The ceiling of one call's arguments."""
        if size > self._limits.argument_bytes:
            raise limit_exceeded("argument_bytes", self._limits.argument_bytes)
