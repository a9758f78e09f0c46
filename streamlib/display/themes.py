"""How Markdown looks in a terminal: SGR parameters for each kind of text."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

ThemeName: TypeAlias = Literal["colour", "mono"]


class Theme(Struct, frozen=True):
    """SGR parameters ("1;36") for each kind of text.

    The colours are those of the terminal's own palette, so they can be read on a light and on a
    dark background.

    Attributes:
        title: headings of the first level.
        heading: other headings.
        strong: important text.
        emphasis: stressed text.
        deleted: struck text.
        code: code inside a line.
        block: lines of a code block.
        link: the text of a link.
        address: the address of a link, which always follows its text.
        faint: rules, bars and the language of code.
        marker: bullets and numbers of lists.
    """

    title: str = "1;4"
    heading: str = "1"
    strong: str = "1"
    emphasis: str = "3"
    deleted: str = "9"
    code: str = "36"
    block: str = "36"
    link: str = "4"
    address: str = "2"
    faint: str = "2"
    marker: str = "33"


THEMES: Final[dict[ThemeName, Theme]] = {
    "colour": Theme(),
    "mono": Theme(code="1", block="", marker=""),
}
"""`mono` is without colours, for `NO_COLOR`."""
