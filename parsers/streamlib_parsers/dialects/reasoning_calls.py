"""Calls inside finished reasoning: only complete ones count, everything else is ignored."""

from __future__ import annotations

from typing import NamedTuple

from streamlib_parsers.dialects.cursor import NoMatch
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.scanner import OpenerTable, Scanner
from streamlib_parsers.dialects.sink import OfferedTools
from streamlib_parsers.json_text import is_json


class ReasoningCall(NamedTuple):
    """A complete call of an offered tool."""

    name: str
    call_id: str
    """Empty where the model wrote none."""
    arguments: str


class _CallCollector:
    """A `Sink` that keeps calls. The reasoning itself was emitted before."""

    def __init__(self) -> None:
        self.calls: list[ReasoningCall] = []
        """The complete calls so far."""
        self.first_literal = ""
        """The first of them as the model wrote it."""
        self.text_size = 0
        """Characters of text before it."""

    def call(self, name: str, call_id: str) -> _ReasoningCall:
        return _ReasoningCall(name, call_id, self)

    def add(self, call: ReasoningCall, literal: str) -> None:
        """A complete call."""
        if not self.calls:
            self.first_literal = literal
        self.calls.append(call)

    def text(self, text: str) -> None:
        """Only counted."""
        if not self.calls:
            self.text_size += len(text)

    def reasoning(self, text: str) -> None:
        """Ignored."""

    def end_reasoning(self) -> None:
        """Ignored."""

    def unclosed_reasoning(self, opener: str, rest: str) -> None:
        """Ignored."""

    def reclassify(self) -> None:
        """Ignored."""

    def begin_citation(self) -> None:
        """Ignored."""

    def end_citation(self, sources: str) -> None:
        """Ignored."""

    def notice(self, code: str, detail: str) -> None:
        """Ignored."""


class _ReasoningCall:
    """The `CallWriter` of one call."""

    def __init__(self, name: str, call_id: str, collector: _CallCollector) -> None:
        self._name = name
        self._call_id = call_id
        self._arguments = StringBuffer()
        self._collector = collector

    def add(self, text: str) -> None:
        self._arguments.add(text)

    def complete(self, literal: str, *, has_end: bool) -> bool:
        arguments = self._arguments.text()
        if not is_json(arguments):
            raise NoMatch
        self._collector.add(ReasoningCall(self._name, self._call_id, arguments), literal)
        return True

    def discard(self, detail: str = "") -> bool:
        """Nothing of it was kept."""
        return False


def calls_in(
    reasoning: str, table: OpenerTable, tools: OfferedTools, limit: int
) -> list[ReasoningCall]:
    """The complete calls of offered tools in reasoning.

    Args:
        reasoning: its text.
        table: the dialects.
        tools: the tools that may be called.
        limit: characters that may be buffered.
    """
    return _collected(reasoning, table, tools, limit).calls


def first_call_index(
    reasoning: str, table: OpenerTable, tools: OfferedTools, limit: int
) -> int | None:
    """Where the first complete call of an offered tool begins; None where there is none.

    The arguments are those of `calls_in`.
    """
    collector = _collected(reasoning, table, tools, limit)
    if not collector.calls:
        return None
    # Marks before it were left out of the text: it may begin later than that is long.
    return reasoning.index(collector.first_literal, collector.text_size)


def _collected(
    reasoning: str, table: OpenerTable, tools: OfferedTools, limit: int
) -> _CallCollector:
    collector = _CallCollector()
    # The same scanner as for text: code is left out, and calls are read alike.
    scanner = Scanner(table, collector, tools, limit=limit)
    scanner.feed(reasoning)
    scanner.end()
    return collector
