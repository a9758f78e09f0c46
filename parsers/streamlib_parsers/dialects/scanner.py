"""Finds calls and thoughts in text that comes in pieces; gives the same answer for every way to cut it.

    text        the earliest opener is looked for. What may be the beginning of one is held back, at most one literal's length.
    opener      its grammar reads on, alone, until it has a whole call, or finds that there is none
    no call     its text comes back where it stood, and is looked through again from behind the opener

Nothing is read twice, but for texts that broke off: they are looked through again as long as that adds no more than twice the
message. Past `limits.held_bytes` (counted in characters) the text comes back and is not looked through again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from streamlib_parsers.dialects.code_spans import CodeSpans
from streamlib_parsers.dialects.cursor import BufferFull, Cursor, NestedMatch, NoMatch, Parse
from streamlib_parsers.dialects.grammar import Dialect, Grammar, Opener, Where
from streamlib_parsers.dialects.grammars.reasoning_tags import ReasoningTags
from streamlib_parsers.dialects.literal_search import LiteralSearch
from streamlib_parsers.dialects.sink import GrammarSink, OfferedTools, Sink

FREE: Final = 65_536
"""So much may be looked through again in any message, however short."""
LEAST: Final = 1024
"""No ceiling may be lower than the beginning of a call."""
QUOTES: Final = " \t\"'`([{*"
"""Directly before a closing tag these say that the tag is spoken of."""


class OpenerTable:
    """The enabled dialects as one table: opener -> forms. Made once a response, shared by its messages.

    only_at_start: openers that count nowhere else. markers: those with which calls begin.
    inside: the grammar of a thought that has begun before the first character, where there is one.
    """

    def __init__(self, dialects: Sequence[Dialect], *, thoughts: bool = True) -> None:
        """thoughts: False leaves thoughts out."""
        self.forms: dict[str, list[tuple[Opener, Grammar]]] = {}
        for grammar in (grammar for dialect in dialects for grammar in dialect.grammars):
            if thoughts or not isinstance(grammar, ReasoningTags):
                for opener in grammar.openers:
                    self.forms.setdefault(opener.marker, []).append((opener, grammar))
        self.only_at_start = {
            marker
            for marker, forms in self.forms.items()
            if all(opener.where == "start" for opener, _ in forms)
        }
        self.needles = LiteralSearch(self.forms)
        self.inside = next(
            (dialect.grammars[0] for dialect in dialects if dialect.opens_inside and thoughts), None
        )
        self.markers = tuple(
            marker
            for marker, forms in self.forms.items()
            if any(_begins_call(*form) for form in forms)
        )


def _begins_call(opener: Opener, grammar: Grammar) -> bool:
    return opener.where == "anywhere" and not opener.keep and not isinstance(grammar, ReasoningTags)


class Scanner:
    """One message.

    held: most characters that may be held back. untouched: nothing of the answer came before this message.
    """

    def __init__(
        self,
        plan: OpenerTable,
        writer: Sink,
        offered: OfferedTools,
        *,
        held: int,
        untouched: bool = True,
    ) -> None:
        self._plan = plan
        self._writer = writer
        self._held = max(held, LEAST)
        self._cursor = Cursor()
        self._code = CodeSpans()
        self._found = GrammarSink(self._cursor, writer, offered, self._code, plan.markers)
        self._untouched = untouched
        self._reading: Parse[None] | None = None
        self._fed = 0
        self._again = 0
        if untouched and plan.inside is not None:
            self._begin([plan.inside])

    def plain(self, text: str) -> bool:
        """Whether `text` is text and nothing else, as most is. Then it is taken note of, and the caller gives it out itself."""
        if self._reading is not None or self._cursor.unread or not self._plan.needles.absent(text):
            return False
        self._fed += len(text)
        self._code.say(text)
        return True

    def feed(self, text: str) -> None:
        """More text of the message."""
        cursor, at = self._cursor, 0
        while at < len(
            text
        ):  # no more at once than may be held: the ceiling must not depend on how the text was cut
            portion = text[at : at + self._held - cursor.size - cursor.unread]
            at += len(portion)
            self._fed += len(portion)
            cursor.feed(portion)
            self._run()

    def end(self) -> None:
        """The message is over: what was held back is decided."""
        self._cursor.over = True
        self._run()

    # --- the loop ---

    def _run(self) -> None:
        while True:
            while self._look() if self._reading is None else self._resume():
                pass
            if self._reading is None or self._cursor.size + self._cursor.unread < self._held:
                return
            self._overflow(self._reading)

    def _look(self) -> bool:
        """Text: says what is no opener; True where a form begins."""
        cursor, text = self._cursor, self._cursor.text
        hits = self._plan.needles.hits(text, cursor.at, over=cursor.over)
        while True:
            place, marker = next(hits)
            if not marker:
                self._say_to(place)
                return False
            forms = self._allowed(marker, place)
            if forms:
                self._say_to(place + forms[0][0].keep)
                cursor.opener = cursor.take(place + len(marker))
                self._begin([grammar for _, grammar in forms])
                return True

    def _allowed(self, marker: str, place: int) -> list[tuple[Opener, Grammar]]:
        """The forms that `marker` may begin here."""
        forms = self._plan.forms[marker]
        code = self._code
        if code.started and marker in self._plan.only_at_start:
            return []
        self._say_to(place)
        allowed = (
            [] if code.inside else [form for form in forms if _ALLOWED[form[0].where](self, code)]
        )
        if not allowed and any(isinstance(grammar, ReasoningTags) for _, grammar in forms):
            self._untouched = False  # tags of thoughts are spoken of: a closing one is no proof of a thought any more
        return allowed

    def _is_orphan(self) -> bool:
        return self._untouched and self._code.last not in QUOTES

    def _begin(self, grammars: list[Grammar]) -> None:
        self._reading = (
            grammars[0].read(self._cursor, self._found)
            if len(grammars) == 1
            else self._choose(grammars)
        )

    def _choose(self, grammars: list[Grammar]) -> Parse[None]:
        """Several forms begin alike: what follows tells them apart."""
        yield from self._cursor.spaces()
        character = yield from self._cursor.peek()
        fitting = (
            grammar
            for grammar in grammars
            if not grammar.first or (character and character in grammar.first)
        )
        yield from next(fitting, grammars[0]).read(self._cursor, self._found)

    def _resume(self) -> bool:
        """Lets the form read on; True where it has ended."""
        try:
            next(self._reading)  # type: ignore[arg-type]  # asked for only where there is one
        except StopIteration:
            self._untouched = False
            self._found.emit_as_text()
        except NoMatch:
            self._give_back()
        except NestedMatch:
            self._found.fail()
            self._found.emit_as_text()
        else:
            return False
        self._reading = None
        return True

    def _give_back(self) -> None:
        """No call: its text comes back, and is looked through again from behind its opener."""
        cursor = self._cursor
        self._found.fail()
        if self._again + cursor.size > FREE + 2 * (self._fed - cursor.unread):
            self._found.emit_as_text()
            return
        self._again += cursor.size
        opener = cursor.opener if cursor.kept().startswith(cursor.opener) else ""
        cursor.go_back(cursor.size - len(opener))
        self._found.emit_text(opener)

    def _overflow(self, reading: Parse[None]) -> None:
        """The ceiling: the form may give out what it holds, or its text comes back and is text for good."""
        try:
            reading.throw(BufferFull())
        except (BufferFull, StopIteration):
            self._reading = None
            self._found.fail()
            self._found.emit_as_text()
            self._writer.notice("leaked_tool_call", f"not closed within held_bytes, {self._held}")

    # --- text ---

    def _say_to(self, place: int) -> None:
        cursor = self._cursor
        piece = cursor.take(place)
        cursor.commit()
        self._found.emit_text(piece)


_ALLOWED: Final[dict[Where, Callable[[Scanner, CodeSpans], bool]]] = {
    "anywhere": lambda _, __: True,
    "line": lambda _, code: code.line_start,
    "start": lambda _, code: not code.started,
    "orphan": lambda scanner, _: scanner._is_orphan(),
}
