"""Finds calls and reasoning in text that arrives in chunks, independently of how it is split.

    text       is searched for the earliest opener; what may begin one is buffered, at most one
               literal's length
    opener     its grammar reads on, alone, until it has a complete call or finds that there is none
    no match   the text is emitted as it was written, and searched again after the opener

Nothing is read twice, except text in which a grammar did not match: that is searched again as long
as it adds no more than twice the message. Past `limits.held_bytes` (counted in characters) the text
is emitted and not searched again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamlib_parsers.dialects.code_spans import CodeSpans
from streamlib_parsers.dialects.cursor import BufferFull, NestedMatch, NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.channel_marks import Citations, Marks
from streamlib_parsers.dialects.grammars.reasoning_tags import ReasoningTags
from streamlib_parsers.dialects.literal_search import LiteralSearch
from streamlib_parsers.dialects.sink import (
    Dialect,
    Grammar,
    GrammarSink,
    OfferedTools,
    Opener,
    Sink,
)

FREE: Final = 65_536
"""Characters that may be searched again in any message, however short."""
LEAST: Final = 1024
"""The lowest limit: the beginning of a call must fit into it."""
UNFINISHED: Final = "the message ended inside a call"
QUOTES: Final = " \t\"'`([{*"
"""Directly before a closing tag these tell that the text mentions the tag."""


class OpenerTable:
    """The enabled dialects as one table: opener -> grammars.

    Shared by the messages of a response.
    """

    def __init__(self, dialects: Sequence[Dialect], *, reasoning: bool = True) -> None:
        """Indexes the openers.

        Args:
            dialects: in the order in which their grammars are tried.
            reasoning: False leaves the grammars of reasoning out.
        """
        self.grammars: dict[str, list[tuple[Opener, Grammar]]] = {}
        """By the opener's marker: what it may begin."""
        self.inside: Grammar | None = None
        """The grammar of reasoning that begins before the first character of the response."""
        for dialect in dialects:
            if dialect.opens_inside and reasoning and self.inside is None:
                self.inside = dialect.grammars[0]
            for grammar in dialect.grammars:
                if reasoning or not isinstance(grammar, ReasoningTags):
                    for opener in grammar.openers:
                        self.grammars.setdefault(opener.marker, []).append((opener, grammar))
        self.search = LiteralSearch(self.grammars)
        self.only_at_start: set[str] = set()
        """The markers that count nowhere but at the start of a message."""
        markers: list[str] = []
        marks: list[str] = []
        for marker, entries in self.grammars.items():
            if all(opener.where == "start" for opener, _ in entries):
                self.only_at_start.add(marker)
            if any(_begins_call(opener, grammar) for opener, grammar in entries):
                markers.append(marker)
            elif any(isinstance(grammar, (Marks, Citations)) for _, grammar in entries):
                marks.append(marker)
        self.markers = tuple(markers)
        """The markers that begin calls in any position."""
        self.marks = tuple(marks)
        """The markers that are around output text and begin no call."""


def _begins_call(opener: Opener, grammar: Grammar) -> bool:
    is_anywhere = opener.where == "anywhere" and not opener.keep
    return is_anywhere and not isinstance(grammar, (ReasoningTags, Marks, Citations))


class Scanner:
    """The scanner of one message."""

    def __init__(
        self,
        table: OpenerTable,
        sink: Sink,
        tools: OfferedTools,
        *,
        limit: int,
        at_response_start: bool = True,
    ) -> None:
        """Begins a message.

        Args:
            table: the enabled dialects.
            sink: receives what is found.
            tools: the tools that may be called.
            limit: characters that may be buffered.
            at_response_start: whether nothing of the response came before this message.
        """
        self._table = table
        self._sink = sink
        self._limit = max(limit, LEAST)
        self._cursor = TextCursor()
        self._code = CodeSpans()
        self._grammar_sink = GrammarSink(self._cursor, sink, tools, self._code, table.markers)
        self._grammar_sink.marks = table.marks
        self._may_be_orphan = at_response_start
        """Whether a closing tag may still turn all before it into reasoning: the response has only
        text so far, and mentions no such tag."""
        self._reading: Parse[None] | None = None
        """The grammar that reads; None while text is searched for openers."""
        self._fed = 0
        """Characters of the message so far."""
        self._searched_again = 0
        """Characters of it that were searched more than once."""
        if at_response_start and table.inside is not None:
            self._begin([table.inside])

    def is_plain(self, text: str) -> bool:
        """Whether `text` is nothing but text, as most is.

        If so it is counted; the caller emits it.
        """
        if self._reading is not None or self._cursor.unread or not self._table.search.absent(text):
            return False
        self._fed += len(text)
        self._code.add(text)
        return True

    def feed(self, text: str) -> None:
        """Adds text of the message."""
        cursor, index = self._cursor, 0
        while index < len(text):
            # No more at once than may be buffered: whether the limit is reached must not depend on
            # how the text was split.
            portion = text[index : index + self._limit - cursor.size - cursor.unread]
            index += len(portion)
            self._fed += len(portion)
            cursor.feed(portion)
            self._run()

    def end(self) -> None:
        """The message is over: what was buffered is decided."""
        self._cursor.ended = True
        self._run()

    # --- the loop ---

    def _run(self) -> None:
        while True:
            self._advance()
            # Text without a grammar is never buffered, but for a literal's length.
            if self._reading is None or self._cursor.size + self._cursor.unread < self._limit:
                return
            self._overflow(self._reading)

    def _advance(self) -> None:
        """Reads until more text is needed."""
        while True:
            if self._reading is None:
                if not self._find_opener():
                    return
            elif not self._resume(self._reading):
                return

    def _find_opener(self) -> bool:
        """Emits text up to an opener; True where a grammar begins."""
        cursor, text = self._cursor, self._cursor.text
        for index, marker in self._table.search.matches(text, cursor.index, final=cursor.ended):
            if not marker:
                self._emit_to(index)
                return False
            entries = self._allowed(marker, index)
            if entries:
                self._emit_to(index + entries[0][0].keep)
                # Taken, not committed: it is emitted again where the grammar does not match.
                cursor.opener = cursor.take(index + len(marker))
                self._begin([grammar for _, grammar in entries])
                return True
        return False

    def _allowed(self, marker: str, index: int) -> list[tuple[Opener, Grammar]]:
        """What `marker` may begin at `index`."""
        entries = self._table.grammars[marker]
        code = self._code
        if code.started and marker in self._table.only_at_start:
            # Without the text in between being read for code: `{` is one of them.
            self._note_mention(entries)
            return []
        self._emit_to(index)
        allowed: list[tuple[Opener, Grammar]] = []
        if not code.inside:
            allowed = [entry for entry in entries if self._is_in_position(entry[0])]
        if not allowed:
            self._note_mention(entries)
        return allowed

    def _note_mention(self, entries: list[tuple[Opener, Grammar]]) -> None:
        """Notes a marker that is only text.

        A text that mentions a tag of reasoning may also mention its closing tag, which then
        does not prove that reasoning ended.
        """
        if self._may_be_orphan:
            self._may_be_orphan = not any(
                isinstance(grammar, ReasoningTags) for _, grammar in entries
            )

    def _is_in_position(self, opener: Opener) -> bool:
        match opener.where:
            case "anywhere":
                return True
            case "line":
                return self._code.line_start
            case "start":
                return not self._code.started
            case "orphan":
                last = self._code.last  # "" at the start of the message
                return self._may_be_orphan and (not last or last not in QUOTES)

    def _begin(self, grammars: list[Grammar]) -> None:
        if len(grammars) == 1:
            self._reading = grammars[0].read(self._cursor, self._grammar_sink)
        else:
            self._reading = self._choose(grammars)

    def _choose(self, grammars: list[Grammar]) -> Parse[None]:
        """Several grammars share the opener: the character after it tells them apart."""
        yield from self._cursor.spaces()
        character = yield from self._cursor.peek()
        chosen = grammars[0]
        for grammar in grammars:
            if not grammar.first or (character and character in grammar.first):
                chosen = grammar
                break
        yield from chosen.read(self._cursor, self._grammar_sink)

    def _resume(self, reading: Parse[None]) -> bool:
        """Lets the grammar read on; True where it has ended."""
        try:
            next(reading)
        except StopIteration:
            self._may_be_orphan = False
            # White space after a call that the grammar read in search of another one.
            self._grammar_sink.emit_as_text()
        except NoMatch:
            if self._cursor.ended:
                self._end_inside_call()
            elif self._search_again():
                return True
        except NestedMatch:
            self._grammar_sink.discard_call()
            self._grammar_sink.emit_as_text()
        else:
            return False
        self._reading = None
        return True

    def _end_inside_call(self) -> None:
        """The message ended inside what may be a call: it is not callable.

        Where arguments were emitted, they are its incomplete item; otherwise it is text. It is not
        searched again: a call in it may be in one of its values.
        """
        cursor, sink = self._cursor, self._grammar_sink
        is_call = cursor.opener in self._table.markers or sink.has_named_tool
        cursor.take(len(cursor.text))
        if sink.discard_call(UNFINISHED):
            cursor.commit()
            return
        is_text = bool(cursor.uncommitted())
        sink.emit_as_text()
        if is_call and is_text:
            self._sink.notice("leaked_tool_call", UNFINISHED)

    def _search_again(self) -> bool:
        """No call: its opener is text, and what follows is searched again.

        Returns:
            Whether another grammar reads it.
        """
        cursor, sink = self._cursor, self._grammar_sink
        sink.discard_call()
        if sink.expects_call and self._table.inside is not None:
            # No call: the message begins inside reasoning, as its chat template lets it.
            sink.expects_call, sink.is_reasoning = False, True
            cursor.opener = ""
            cursor.go_back(cursor.size)
            self._begin([self._table.inside])
            return True
        if self._searched_again + cursor.size > FREE + 2 * (self._fed - cursor.unread):
            sink.emit_as_text()
            return False
        self._searched_again += cursor.size
        opener = ""
        # Where earlier calls of the section were committed, the opener is gone with them.
        if cursor.uncommitted().startswith(cursor.opener):
            opener = cursor.opener
        cursor.go_back(cursor.size - len(opener))
        sink.emit_text(opener)
        return False

    def _overflow(self, reading: Parse[None]) -> None:
        """The limit: the grammar may emit what it buffers, or its text is text for good."""
        try:
            reading.throw(BufferFull())
        except (BufferFull, StopIteration):
            # Not searched again: with many openers in it that would be quadratic in the limit.
            self._reading = None
            self._grammar_sink.discard_call()
            self._grammar_sink.emit_as_text()
            self._sink.notice("leaked_tool_call", f"not closed within held_bytes, {self._limit}")

    # --- text ---

    def _emit_to(self, index: int) -> None:
        """Emits the text up to `index`."""
        cursor = self._cursor
        text = cursor.take(index)
        cursor.commit()
        self._grammar_sink.emit_text(text)
