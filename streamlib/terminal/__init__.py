"""Text of a model on a terminal: Markdown while it streams, and text that is safe there.

`MarkdownWriter` needs the extra `cli` (markdown-it-py, wcwidth); `printable` needs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlib.terminal.printable import Printable, one_line, printable

if TYPE_CHECKING:
    from streamlib.terminal.markdown import MarkdownWriter
    from streamlib.terminal.themes import Theme

__all__ = ["MarkdownWriter", "Printable", "Theme", "one_line", "printable"]


def __getattr__(name: str) -> Any:
    # Late: `streamlib --version` must not load what reads Markdown.
    if name == "MarkdownWriter":
        from streamlib.terminal.markdown import MarkdownWriter

        return MarkdownWriter
    if name == "Theme":
        from streamlib.terminal.themes import Theme

        return Theme
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
