"""Marks around output text that mean nothing themselves: `<|open|>response<|sep|>`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import Cursor, Parse
from streamlib_parsers.dialects.grammar import Opener, anywhere
from streamlib_parsers.dialects.sink import GrammarSink


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

    def read(self, text: Cursor, sink: GrammarSink) -> Parse[None]:
        """Nothing follows a mark."""
        text.commit()
        yield from ()
