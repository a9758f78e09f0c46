"""What a dialect is: a name and its grammars, each a table of literals and one way to read them.

A grammar is a frozen Struct: its fields are the table, its `read` the way. Grammars live in
`grammars/`, the dialects made of them in `definitions.py`; a caller makes one of the same parts and
passes it to `parser(dialects=...)`.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

if TYPE_CHECKING:
    from streamlib_parsers.dialects.cursor import Parse, TextCursor
    from streamlib_parsers.dialects.sink import GrammarSink

NAME: Final = string.ascii_letters + string.digits + "_"
"""The characters with which a tool's name begins."""

Position: TypeAlias = Literal["anywhere", "line", "start", "orphan"]
"""Where an opener counts; never inside code.

anywhere: in any text. line: at the start of a line. start: after nothing but white space in the
message. orphan: where the response has only text before it, and no space or quote is directly
before it.
"""


class Opener(Struct, frozen=True):
    """A literal that begins a grammar.

    Args:
        marker: the literal.
        where: the position in which it counts.
        keep: its first characters that are text, and only tell what must be before it.
    """

    marker: str
    where: Position = "anywhere"
    keep: int = 0


class Grammar(Protocol):
    """One syntax of a dialect."""

    @property
    def openers(self) -> Sequence[Opener]:
        """The literals that begin it."""
        ...

    @property
    def first(self) -> str:
        """The characters that may follow the opener, white space aside; "" means any.

        It tells apart the grammars that share an opener, as five do with `<tool_call>`.
        """
        ...

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Reads on after the opener (`text.opener`) and reports to `sink`.

        Raises:
            NoMatch: this is not a call; the text read so far is emitted as it was written.
        """
        ...


class Dialect(Struct, frozen=True):
    """How a family of models writes tool calls or reasoning into its text.

    Args:
        name: the name in `parser(dialects=...)`.
        grammars: its syntaxes.
        in_thoughts: whether models of the family write calls into their reasoning and stop there
            with an ordinary reason. For others a call in reasoning counts only where the wire
            itself reports that the response stopped for calls.
        opens_inside: whether reasoning begins before the first character of the response, because
            the chat template wrote the opening tag.
    """

    name: str
    grammars: Sequence[Grammar]
    in_thoughts: bool = True
    opens_inside: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "grammars", tuple(self.grammars))


def anywhere(*markers: str) -> tuple[Opener, ...]:
    """Openers that count in any position."""
    return tuple(Opener(marker) for marker in markers)
