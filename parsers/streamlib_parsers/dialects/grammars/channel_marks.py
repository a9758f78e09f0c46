"""Marks around output text that mean nothing themselves: `<|open|>response<|sep|>`.

The <co: 0>tower</co: 0> is tall.       Cohere's citations: the text stays, what is cited is an
                                        annotation
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.sink import GrammarSink, Opener, anywhere


class Marks(Struct, frozen=True):
    """Literals to leave out of the text.

    Args:
        marks: the literals.
    """

    marks: Sequence[str]
    first: str = ""

    @property
    def openers(self) -> Sequence[Opener]:
        """The marks."""
        return anywhere(*self.marks)

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Nothing follows a mark."""
        text.commit()
        yield from ()


CITED: Final = frozenset("0123456789:,[] ")
"""What is in the tags of citations: numbers of documents, and of the calls they came from."""
LONGEST_CITATION: Final = 128
"""Characters of a closing tag."""


class Citations(Struct, frozen=True):
    """Cohere's citations: `<co: 0,1>text</co: 0,1>`, since Command A `<co>text</co: 0:[1]>`."""

    openers: Sequence[Opener] = anywhere("<co>", "<co:", "</co>", "</co:")
    first: str = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """One tag; the text between two of them is text."""
        sources = ""
        if text.opener.endswith(":"):
            sources, _ = yield from text.head(">", limit=LONGEST_CITATION)
            if not CITED.issuperset(sources):
                raise NoMatch
        text.commit()
        if text.opener.startswith("</"):
            sink.end_citation(sources.strip())
        else:
            sink.begin_citation()
