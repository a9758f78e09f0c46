"""What a dialect is: a name and the forms its calls take, each a table of literals with one way to read it.

A grammar is a frozen Struct: its fields are the table, its `read` the way. Grammars live in `grammars/`, the dialects made of them in
`known.py`; a user makes one of the same parts and passes it to `parser(dialects=…)`.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

if TYPE_CHECKING:
    from streamlib_parsers.dialects.cursor import Cursor, Parse
    from streamlib_parsers.dialects.sink import GrammarSink

NAME: Final = string.ascii_letters + string.digits + "_"
"""What a tool's name begins with."""

Where: TypeAlias = Literal["anywhere", "line", "start", "orphan"]
"""anywhere: outside of code. line: also at the start of a line. start: nothing but white space before it in the message.
orphan: everything before it in the whole answer is text, and no space or quote stands directly before it."""


class Opener(Struct, frozen=True):
    """A literal with which a form begins. The first `keep` characters of it are text, only there to say what comes before it."""

    marker: str
    where: Where = "anywhere"
    keep: int = 0


class Grammar(Protocol):
    """One form of a dialect.

    first: the characters that may follow the opener (white space aside); "" means any. Where several forms share an opener,
    as five do with `<tool_call>`, this tells them apart.
    """

    @property
    def openers(self) -> Sequence[Opener]:
        """How it begins."""
        ...

    @property
    def first(self) -> str:
        """What may follow."""
        ...

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """Reads from behind the opener (`text.opener` says which it was) and tells `found`; raises `Broken` where it is none."""
        ...


class Dialect(Struct, frozen=True):
    """How a family of models writes tool calls or thoughts into its text.

    in_thoughts: models of the family write calls into their thoughts and end there, with an ordinary stop; for others a call in a
    thought counts only where the wire itself says that the answer ended with calls.
    opens_inside: the thought has begun before the answer's first character: the chat template wrote the opening tag.
    """

    name: str
    grammars: Sequence[Grammar]
    in_thoughts: bool = True
    opens_inside: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "grammars", tuple(self.grammars))


def anywhere(*markers: str) -> tuple[Opener, ...]:
    """Openers that count wherever they stand."""
    return tuple(Opener(marker) for marker in markers)
