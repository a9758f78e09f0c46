"""What receives one call found in text: an item, or a comparison with the wire's own calls."""

from __future__ import annotations

from streamlib_parsers.dialects.choice_state import ChoiceState, RecoveredCall
from streamlib_parsers.dialects.cursor import NoMatch
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.filter_assembler import FilterAssembler
from streamlib_parsers.items import FunctionCall
from streamlib_parsers.json_text import is_json


class StreamedCall:
    """A call whose arguments are emitted as they are read."""

    __slots__ = ("_assembler", "_choice", "_item", "is_open")

    def __init__(self, item: FunctionCall, choice: ChoiceState, assembler: FilterAssembler) -> None:
        self._item = assembler.open(item)
        self._choice = choice
        self._assembler = assembler
        self.is_open = True
        """Until `complete` or `discard`."""

    def add(self, text: str) -> None:
        """A fragment of its arguments."""
        self._assembler.arguments(self._item, text)

    def complete(self, literal: str) -> bool:
        """The end of the call was read; its item stays open until the choice ends."""
        if not is_json("".join(self._item.arguments)):
            raise NoMatch
        self.is_open = False
        self._choice.recovered.append(RecoveredCall(self._item, literal))
        return True

    def discard(self) -> None:
        """Not a call after all. Its arguments were emitted: the item ends incomplete."""
        self.is_open = False
        self._assembler.close(self._item, "incomplete")


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

    def complete(self, literal: str) -> bool:
        """Whether the wire sent the same call; if so, its text is left out."""
        is_duplicate = self._choice.has_wire_call(self._name, self._arguments.text())
        if is_duplicate:
            self._assembler.notice("duplicate_call", f"{self._name}: the wire's own call stands")
        return is_duplicate

    def discard(self) -> None:
        """Nothing of it was emitted."""
