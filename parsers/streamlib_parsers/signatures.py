"""Signatures as `help` prints them: names and defaults in a few lines, without the types.

    Prompt(input=(), instructions=None, tools=(), tool_choice=None,
            parallel_tools=None, …)

`help(Prompt)` would open with one line of 2,400 characters: msgspec replaces each type by its
definition, and that of the input is a union of twenty classes. Programs still read the types, from
`inspect.signature(Prompt).parameters`.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

WIDTH: Final = 64
"""Of a line: `help` puts the name before the first one and a margin before the others, in a
terminal of 80 columns."""


class ShortSignature(inspect.Signature):
    """A signature that is printed without the types of its parameters."""

    def __str__(self) -> str:
        untyped = [
            parameter.replace(annotation=parameter.empty) for parameter in self.parameters.values()
        ]
        text = str(inspect.Signature(untyped))
        if isinstance(self.return_annotation, str):
            text += f" -> {self.return_annotation}"
        # A space that does not break keeps the arrow beside its type.
        text = text.replace("-> ", "->\N{NO-BREAK SPACE}")
        indent = " " * 8
        folded = textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False)
        return folded.replace("\N{NO-BREAK SPACE}", " ")

    def format(self, **_options: Any) -> str:
        """The same text: `help` of Python 3.13 asks for it here."""
        return str(self)


def short_help(function: FunctionT) -> FunctionT:
    """Decorates a function with many parameters, so that `help` begins with a short signature."""
    # setattr, because a function's type does not name the attribute.
    setattr(function, "__signature__", _short(inspect.signature(function)))  # noqa: B010
    return function


def _short(signature: inspect.Signature) -> ShortSignature:
    parameters = list(signature.parameters.values())
    return ShortSignature(parameters, return_annotation=signature.return_annotation)


if TYPE_CHECKING:
    from msgspec import StructMeta

    class ShortHelp(StructMeta):
        """What type checkers see: they need the base's rules for fields."""

else:
    # A class's own `__signature__` would not be found: that of msgspec's metaclass comes first.
    try:

        class ShortHelp(type(Struct)):
            """Metaclass of a Struct with many fields, for a short signature in `help`."""

            @property
            def __signature__(cls):
                return _short(super().__signature__)

    except TypeError:
        # msgspec 0.19 allows no class of its metaclass: there `help` shows its long signature.
        ShortHelp = type(Struct)
