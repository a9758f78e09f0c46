"""Text of a model on a screen while it streams: Markdown on a terminal, a cell of a notebook.

`MarkdownWriter` and `Theme` need the extra `cli` (markdown-it-py, wcwidth); `display` runs in a
notebook. `printable` and `one_line` make any text safe for a terminal and need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.display.safe_text import Printable, one_line, printable
from streamlib.lazy import lazy

if TYPE_CHECKING:
    from streamlib.display.markdown import MarkdownWriter
    from streamlib.display.notebook import display
    from streamlib.display.themes import Theme

__all__ = ["MarkdownWriter", "Printable", "Theme", "display", "one_line", "printable"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.display.markdown": ("MarkdownWriter",),
        "streamlib.display.notebook": ("display",),
        "streamlib.display.themes": ("Theme",),
    },
)
