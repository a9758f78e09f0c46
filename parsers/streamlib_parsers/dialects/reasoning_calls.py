"""Calls inside a finished thought: nothing is given out but whole calls."""

from __future__ import annotations

from typing import Any

from streamlib_parsers.dialects.cursor import NoMatch
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.scanner import OpenerTable, Scanner
from streamlib_parsers.dialects.sink import OfferedTools
from streamlib_parsers.json_text import is_json


class _Calls:
    """A writer that keeps calls and forgets everything else."""

    def __init__(self) -> None:
        self.whole_ones: list[tuple[str, str, str]] = []

    def call(self, name: str, call_id: str) -> _Call:
        return _Call(name, call_id, self.whole_ones)

    def _forget(self, *_: Any, **__: Any) -> None:
        """The thought itself was given out by the wire."""

    text = thought = end_thought = unclosed_thought = reclassify = notice = _forget


class _Call:
    """One of them, so far."""

    def __init__(self, name: str, call_id: str, whole_ones: list[tuple[str, str, str]]) -> None:
        self._name = name
        self._call_id = call_id
        self._arguments = StringBuffer()
        self._whole_ones = whole_ones

    def add(self, text: str) -> None:
        self._arguments.add(text)

    def complete(self, literal: str) -> bool:
        arguments = self._arguments.text()
        if not is_json(arguments):
            raise NoMatch
        self._whole_ones.append((self._name, self._call_id, arguments))
        return True

    def discard(self) -> None:
        """Nothing of it was kept."""


def calls_in(
    thought: str, plan: OpenerTable, offered: OfferedTools, held: int
) -> list[tuple[str, str, str]]:
    """The whole calls of offered tools in a thought: (name, call id, arguments)."""
    calls = _Calls()
    scanner = Scanner(plan, calls, offered, held=held)
    scanner.feed(thought)
    scanner.end()
    return calls.whole_ones
