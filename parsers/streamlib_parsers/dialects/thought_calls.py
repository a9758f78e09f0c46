"""Calls inside a finished thought: nothing is given out but whole calls."""

from __future__ import annotations

from streamlib_parsers.dialects.cursor import Broken
from streamlib_parsers.dialects.found import Offered
from streamlib_parsers.dialects.pieces import Pieces
from streamlib_parsers.dialects.scanner import Plan, Scanner
from streamlib_parsers.json_text import is_json


class _Calls:
    """A writer that keeps calls and forgets everything else."""

    def __init__(self) -> None:
        self.whole_ones: list[tuple[str, str, str]] = []
        self._open = ("", "")
        self._arguments = Pieces()

    def text(self, text: str) -> None:
        pass

    def thought(self, text: str) -> None:
        pass

    def end_thought(self) -> None:
        pass

    def unclosed_thought(self, opener: str, held: str) -> None:
        pass

    def reclassify(self) -> None:
        pass

    def call(self, name: str, call_id: str) -> None:
        self._open = (name, call_id)
        self._arguments.clear()

    def arguments(self, text: str) -> None:
        self._arguments.add(text)

    def whole(self, literal: str) -> bool:
        if not is_json(self._arguments.text()):
            raise Broken
        name, call_id = self._open
        self.whole_ones.append((name, call_id, self._arguments.text()))
        return True

    def broken(self) -> None:
        pass

    def notice(self, code: str, detail: str) -> None:
        pass


def calls_in(thought: str, plan: Plan, offered: Offered, held: int) -> list[tuple[str, str, str]]:
    """The whole calls of offered tools in a thought: (name, call id, arguments)."""
    calls = _Calls()
    scanner = Scanner(plan, calls, offered, held=held, untouched=False)
    scanner.feed(thought)
    scanner.end()
    return calls.whole_ones
