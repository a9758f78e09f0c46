"""Where one call out of text goes, from its name to its end: out at once, or aside where the wire gives calls of its own."""

from __future__ import annotations

from streamlib_parsers.dialects.answer import Answer, Outlet, Recovered
from streamlib_parsers.dialects.cursor import Broken
from streamlib_parsers.dialects.pieces import Pieces
from streamlib_parsers.events import FunctionCallArgumentsDelta, Notice
from streamlib_parsers.items import FunctionCall
from streamlib_parsers.json_text import is_json


class Streamed:
    """A call that goes out as it comes. open: neither whole nor broken yet."""

    __slots__ = ("_answer", "_item", "_outlet", "open")

    def __init__(self, item: FunctionCall, answer: Answer, outlet: Outlet) -> None:
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

    def whole(self, literal: str) -> bool:
        """It waits for the answer's end; `literal` is how it was written."""
        if not is_json("".join(self._item.arguments)):
            raise Broken
        self.open = False
        self._answer.recovered.append(Recovered(self._item, literal))
        return True

    def broken(self) -> None:
        """It is none."""
        self.open = False
        self._outlet.close(self._item.index, self._item.snapshot("incomplete"))


class Aside:
    """A call beside those of the wire: only compared with them."""

    __slots__ = ("_answer", "_arguments", "_name", "_outlet")

    def __init__(self, name: str, answer: Answer, outlet: Outlet) -> None:
        self._name = name
        self._arguments = Pieces()
        self._answer = answer
        self._outlet = outlet

    def add(self, text: str) -> None:
        """More of its arguments."""
        self._arguments.add(text)

    def whole(self, literal: str) -> bool:
        """Whether the wire gave the same call; its text is to be left out then."""
        same = self._answer.has_native(self._name, self._arguments.text())
        if same:
            self._outlet.give(Notice("duplicate_call", f"{self._name}: the wire's own call stands"))
        return same

    def broken(self) -> None:
        """Nothing of it went out."""
