"""Where one call out of text goes, from its name to its end: out at once, or aside where the wire gives calls of its own."""

from __future__ import annotations

from streamlib_parsers.dialects.choice_state import ChoiceState, EventRenumberer, RecoveredCall
from streamlib_parsers.dialects.cursor import NoMatch
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.events import FunctionCallArgumentsDelta, Notice
from streamlib_parsers.items import FunctionCall
from streamlib_parsers.json_text import is_json


class StreamedCall:
    """A call that goes out as it comes. open: neither whole nor broken yet."""

    __slots__ = ("_answer", "_item", "_outlet", "open")

    def __init__(self, item: FunctionCall, answer: ChoiceState, outlet: EventRenumberer) -> None:
        self._item = outlet.begin(item)
        self._answer = answer
        self._outlet = outlet
        self.open = True

    def add(self, text: str) -> None:
        """More of its arguments."""
        item = self._item
        item.size += len(text)
        self._outlet.check_arguments(item.size)
        item.arguments.append(text)
        self._outlet.add(FunctionCallArgumentsDelta(item.index, text, seq=self._outlet.next()))

    def complete(self, literal: str) -> bool:
        """It waits for the answer's end; `literal` is how it was written."""
        if not is_json("".join(self._item.arguments)):
            raise NoMatch
        self.open = False
        self._answer.recovered.append(RecoveredCall(self._item, literal))
        return True

    def discard(self) -> None:
        """It is none."""
        self.open = False
        self._outlet.close(self._item.index, self._item.snapshot("incomplete"))


class DuplicateCallCheck:
    """A call beside those of the wire: only compared with them."""

    __slots__ = ("_answer", "_arguments", "_name", "_outlet")

    def __init__(self, name: str, answer: ChoiceState, outlet: EventRenumberer) -> None:
        self._name = name
        self._arguments = StringBuffer()
        self._answer = answer
        self._outlet = outlet

    def add(self, text: str) -> None:
        """More of its arguments."""
        self._arguments.add(text)

    def complete(self, literal: str) -> bool:
        """Whether the wire gave the same call; its text is to be left out then."""
        same = self._answer.has_native(self._name, self._arguments.text())
        if same:
            self._outlet.emit(Notice("duplicate_call", f"{self._name}: the wire's own call stands"))
        return same

    def discard(self) -> None:
        """Nothing of it went out."""
