"""Thoughts between tags.

    <think>⏎I look it up.⏎</think>⏎⏎Paris.        a thought, then text: one newline inside each tag and two after it belong to the tags

Given out as it comes. Held back: what may be the closing tag, and a call at the start of a line: it ends a thought that nothing else
ends, but if the closing tag still comes, it was only thought of. A closing tag with no opening tag makes a thought of everything
before it. A thought that never ends waits, as a fact, for the reason why the answer ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import BufferFull, Cursor, Parse
from streamlib_parsers.dialects.grammar import Opener, Where
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink


class ReasoningTags(Struct, frozen=True):
    """tags: (opening, closing). unopened: the closing tags that also come without their opening tag. where: the openings that count."""

    tags: Sequence[tuple[str, str]]
    unopened: Sequence[str] = ()
    where: Where = "line"
    first: str = ""

    @property
    def openers(self) -> Sequence[Opener]:
        """Opening tags, and closing tags that lost theirs."""
        return [
            *(Opener(begin, self.where) for begin, _ in self.tags),
            *(Opener(end, "orphan") for end in self.unopened),
        ]

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """From behind a tag, or, with no opener, from the first character of the answer."""
        closing = dict(self.tags)
        if text.opener in closing:
            yield from self._thought(text, found, (closing[text.opener],))
        elif text.opener:
            found.reclassify()
            yield from _newlines(text, 2)
        else:
            yield from text.spaces()
            opening = yield from text.literal(*closing)
            if not opening and text.size:
                found.thought(text.kept().removeprefix("\n"))
            yield from self._thought(
                text, found, (closing[opening],) if opening else tuple(self.unopened)
            )

    def _thought(self, text: Cursor, found: GrammarSink, ends: tuple[str, ...]) -> Parse[None]:
        opener = text.kept()
        ends = (*ends, *("\n" + end for end in ends))
        calls = tuple("\n" + marker for marker in found.markers)
        if (yield from text.ahead("\n", *ends, *calls)) == "\n":
            text.take(text.at + 1)
            opener += "\n"
        text.commit()
        while True:
            stop = yield from text.until((*ends, *calls), found.thought)
            if stop not in calls:
                break
            held = StringBuffer()
            held.add(stop)
            try:
                stop = yield from text.until(ends, held.add)
            except BufferFull:
                found.thought(held.text())
                continue
            if not stop:
                found.unclosed_thought(opener, held.text())
                return
            found.thought(held.text())
            break
        if not stop:
            found.unclosed_thought(opener)
            return
        found.end_thought()
        yield from _newlines(text, 2)


def _newlines(text: Cursor, most: int) -> Parse[None]:
    for _ in range(most):
        if not (yield from text.literal("\n")):
            break
    text.commit()
