"""`BlockReader` finds the blocks that markdown-it-py finds in the complete text."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from streamlib.display.blocks import BlockReader, row_cells
from tests.support.metrics import figure

READER = MarkdownIt("commonmark").enable("table")
READER.core.ruler.disable("inline")

PARTS = ("a", "b c", "- ", "* ", "1. ", "2) ", "> ", "    ", "  ", "# ", "### x ##", "```", "~~~ p")
PARTS += ("---", "===", "***", "<div>", "<!-- x", "-->", "</div>", "\t", "1986. y", "-", "", " ")
PARTS += ("`",)
TABLE_PARTS = ("a", "b c", "> ", "  ", "***", "| a | b |", "|--|:-:|", "a | b", "| c", "", " ")
TABLE_PARTS += ("1. x", "- y")
"""Without what begins another block in the header's line, where markdown-it-py takes the table."""


class Outline:
    """A `Page` that lists the blocks."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._depth = 0
        self._kind = ""
        self._lines: list[Any] = []

    def enter_quote(self) -> None:
        self._enter("quote")

    def enter_item(self, marker: str) -> None:
        self._enter(f"item {marker}")

    def _enter(self, name: str) -> None:
        self.blocks.append(name)
        self._depth += 1

    def leave(self, depth: int) -> None:
        while self._depth > depth:
            self.blocks.append("end")
            self._depth -= 1

    def blank(self) -> None:
        pass

    def heading(self, level: int, text: str) -> None:
        self.blocks.append(f"heading {level} {text}")

    def rule(self) -> None:
        self.blocks.append("rule")

    def open_paragraph(self, text: str) -> None:
        self._kind, self._lines = "paragraph", [text.strip()]

    def add_line(self, text: str) -> None:
        self._lines.append(text.strip())

    def underline(self, level: int) -> None:
        self._kind = f"heading {level}"

    def open_table(self, header: list[str], alignments: list[Any]) -> bool:
        self._lines.pop()
        if self._lines:
            self.close_leaf()
        self._kind, self._lines = "table", [header]
        return True

    def add_row(self, cells: list[str]) -> None:
        self._lines.append(cells)

    def open_code(self, language: str | None) -> None:
        self._kind, self._lines = "code", []

    def add_code(self, line: str) -> None:
        self._lines.append(line)

    def add_more(self, text: str) -> None:
        raise AssertionError("no line is so long")

    def close_leaf(self) -> None:
        if self._kind == "table":
            self.blocks.append(f"table {self._lines}")
        else:
            self.blocks.append(f"{self._kind} {'|'.join(self._lines)}")


def ours(text: str) -> list[str]:
    page = Outline()
    reader = BlockReader(page)
    for line in text.split("\n"):
        reader.read(line)
    reader.close()
    page.leave(0)
    return [normal(block) for block in page.blocks]


def theirs(text: str) -> list[str]:
    blocks: list[str] = []
    lists: list[Any] = []
    tokens = iter(READER.parse(text))
    for token in tokens:
        match token.type:
            case "ordered_list_open":
                lists.append([int(token.attrs.get("start", 1)), token.markup])
            case "bullet_list_open":
                lists.append(None)
            case "ordered_list_close" | "bullet_list_close":
                lists.pop()
            case "list_item_open":
                blocks.append(f"item {marker_of(lists[-1])}")
            case _:
                blocks += block_of(token, tokens)
    return [normal(block) for block in blocks]


def marker_of(numbering: list[Any] | None) -> str:
    if numbering is None:
        return "•"
    numbering[0] += 1
    return f"{numbering[0] - 1}{numbering[1]}"


def block_of(token: Any, tokens: Any) -> list[str]:
    match token.type:
        case "blockquote_open":
            return ["quote"]
        case "blockquote_close" | "list_item_close":
            return ["end"]
        case "heading_open" | "paragraph_open":
            name = "paragraph" if token.tag == "p" else f"heading {token.tag[1]}"
            lines = next(tokens).content.split("\n")
            return [f"{name} {'|'.join(line.strip() for line in lines)}"]
        case "hr":
            return ["rule"]
        case "fence" | "code_block" | "html_block":
            return ["code " + token.content.replace("\n", "|")]
        case "table_open":
            return [f"table {table_rows(tokens)}"]
    return []


def table_rows(tokens: Any) -> list[list[str]]:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            rows[-1].append(token.content)
    return rows


def normal(block: str) -> str:
    """Without what cannot be seen: kinds of spaces, and empty lines at the end of code."""
    block = re.sub(r"(?<=\|)\s+(?=\|)", "", block)
    return re.sub(r"\s+", " ", re.sub(r"[|\s]+$", "", block))


EMPTY_NUMBER = re.compile(r"^[> ]*(?:(?:[-+*]|\d+[.)]) +)*\d+[.)] *$", re.MULTILINE)
"""An item without a text. Behind it and an empty line we begin a list, CommonMark goes on."""

MARKERS = re.compile(r"[ >]*(?:(?:[-+*]|\d+[.)]) +)+")


def is_misread(text: str) -> bool:
    """Whether markdown-it-py takes a line for a block that CommonMark takes for a paragraph's.

    Indented by four columns or more, but not behind the text of its item, it begins nothing.
    """
    offset = 0
    for line in text.expandtabs(4).split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if 4 <= indent <= offset:
            return True
        markers = MARKERS.match(line)
        if markers is not None:
            offset = max(offset, markers.end())
    return False


def check_outlines(texts: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(texts):
        parts = TABLE_PARTS if number % 2 else PARTS
        lines: list[str] = []
        for _ in range(chance.randint(1, 7)):
            count = chance.choice((0, 1, 1, 2, 3))
            if parts is TABLE_PARTS:
                count = min(count, 1)
            lines.append("".join(chance.choice(parts) for _ in range(count)))
        text = "\n".join(lines)
        if EMPTY_NUMBER.search(text) or is_misread(text):
            continue
        assert ours(text) == theirs(text), repr(text)
        figure("outlines", 1)


def test_blocks_are_those_of_commonmark() -> None:
    check_outlines(texts=800, seed=1)


@pytest.mark.slow
def test_blocks_are_those_of_commonmark_in_many_texts() -> None:
    check_outlines(texts=60_000, seed=2)


def test_row_cells_keep_an_escaped_bar() -> None:
    assert row_cells(r"| a \| b | c |") == ["a | b", "c"]
    assert row_cells("a|b") == ["a", "b"]
    assert row_cells("|") == [""]


@pytest.mark.parametrize(
    "text",
    [
        "```\na\n    ```\nb\n```",
        "```\na\n   ```\nb",
        "> a\n>b",
        ">a\n> b",
        "\tx",
        "-\ta\n\n\tb",
    ],
)
def test_blanks_mean_what_they_mean_in_commonmark(text: str) -> None:
    assert ours(text) == theirs(text)


def test_mark_of_a_quote_has_at_most_three_spaces_before() -> None:
    """With four it is text of the open paragraph; markdown-it-py takes it for a mark there."""
    assert ours("> a\n   > b") == ["quote", "paragraph a|b", "end"]
    assert ours("> a\n    > b") == ["quote", "paragraph a|> b", "end"]
    assert ours("> a\n>\n    > b") == ["quote", "paragraph a", "end", "code > b"]


def test_numbers_of_a_list_count_up() -> None:
    assert ours("1. a\n1. b\n1. c\n\n5) d") == [
        "item 1.",
        "paragraph a",
        "end",
        "item 2.",
        "paragraph b",
        "end",
        "item 3.",
        "paragraph c",
        "end",
        "item 5)",
        "paragraph d",
        "end",
    ]
