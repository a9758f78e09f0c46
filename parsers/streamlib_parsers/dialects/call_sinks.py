"""What receives one call found in text: an item, or a comparison with the wire's own calls."""

from __future__ import annotations

from collections.abc import Callable

from streamlib_parsers.dialects.choice_state import ChoiceState, RecoveredCall
from streamlib_parsers.dialects.cursor import NoMatch
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.filter_assembler import FilterAssembler
from streamlib_parsers.json_text import is_json
from streamlib_parsers.open_items import OpenItem


class StreamedCall:
    """A call whose arguments are emitted as they are read.

    Its item is opened with the first of them: a call that is cut off before has none, and its text
    is emitted instead.
    """

    __slots__ = ("_assembler", "_choice", "_item", "_open", "is_open")

    def __init__(
        self, open_item: Callable[[], OpenItem], choice: ChoiceState, assembler: FilterAssembler
    ) -> None:
        self._open = open_item
        self._item: OpenItem | None = None
        """The item of the call; None until its first argument."""
        self._choice = choice
        self._assembler = assembler
        self.is_open = True
        """Until `complete` or `discard`."""

    def add(self, text: str) -> None:
        """A fragment of its arguments."""
        if not text:
            return
        if self._item is None:
            self._item = self._open()
        self._assembler.arguments(self._item, text)

    def complete(self, literal: str, *, has_end: bool) -> bool:
        """The call was read; its item stays open until the choice ends."""
        if self._item is None or not is_json("".join(self._item.arguments)):
            raise NoMatch
        self.is_open = False
        self._choice.recovered.append(RecoveredCall(self._item, literal, has_end=has_end))
        return True

    def discard(self, detail: str = "") -> bool:
        """Not a complete call. Where arguments of it were emitted, its item ends incomplete."""
        self.is_open = False
        if self._item is None:
            return False
        if detail:
            self._assembler.notice("leaked_tool_call", detail, self._item)
        self._assembler.close(self._item, "incomplete")
        return True


class DuplicateCallCheck:
    """A call beside calls of the wire itself: only compared with them."""

    __slots__ = ("_arguments", "_assembler", "_choice", "_name")

    def __init__(self, name: str, choice: ChoiceState, assembler: FilterAssembler) -> None:
        self._name = name
        self._arguments = StringBuffer()
        self._choice = choice
        self._assembler = assembler

    def add(self, text: str) -> None:
        """A fragment of its arguments."""
        self._arguments.add(text)

    def complete(self, literal: str, *, has_end: bool) -> bool:
        """Whether the wire sent the same call; if so, its text is left out."""
        is_duplicate = self._choice.has_wire_call(self._name, self._arguments.text())
        if is_duplicate:
            self._assembler.notice("duplicate_call", f"{self._name}: the wire's own call stands")
        return is_duplicate

    def discard(self, detail: str = "") -> bool:
        """Nothing of it was emitted."""
        return False
