"""Markdown as models write it, and pathological Markdown."""

from __future__ import annotations

import random

WORDS = ("river", "**bold**", "*soft", "`code`", "[here](https://e.org/a)", "snake_case", "x" * 45)
WORDS += ("a", "the", "*", "_", "`", "中文字", "\N{GRINNING FACE}", "&amp;", "<b>", "\\*", "~~no~~")
WORDS += ("![pic](p.png)", "<https://e.org>", "é\u0301", "\x1b[2J", "\u202ereversed", "end  \nnext")
STARTS = ("", "", "", "- ", "1. ", "2) ", "  - ", "   ", "    ", "> ", "# ", "### ", "> - ", "\t")
LINES = ("", "", "", "---", "===", "```", "```py", "~~~", "| a | b |", "|---|:-:|", "| 1 |", "***")
LINES += (
    "-",
    "<div>",
    "</div>",
    "[ref]: https://e.org",
    "\r",
    "| a | b |\n|---|---|\n| 中 | **2** |",
)


def random_markdown(chance: random.Random, lines: int) -> str:
    """Lines that begin, continue and end blocks in any order."""
    text: list[str] = []
    for _ in range(lines):
        if chance.random() < 0.4:
            text.append(chance.choice(LINES))
            continue
        count = chance.choice((1, 3, 8, 30, 120))
        words = [chance.choice(WORDS) for _ in range(count)]
        text.append(chance.choice(STARTS) + " ".join(words))
    return chance.choice(("\n", "\n", "\r\n")).join(text)


def worst_texts(size: int) -> dict[str, str]:
    """The longest possible block of each kind, of this size."""
    row = "| row | **x** and `y` | some longer text in here |\n"
    item = "- an item with **bold** text and `code`, long enough to be wrapped in a hundred columns"
    return {
        "fence": ("```python\n" + "    value = compute(argument)  # why\n" * (size // 36))[:size],
        "list": ((item + " of a screen\n") * (size // 90))[:size],
        "table": ("| a | b | c |\n|---|---|---|\n" + row * (size // 49))[:size],
        "paragraph": ("the river runs **down** to the `sea` and further " * (size // 48))[:size],
    }
