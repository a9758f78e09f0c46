"""The short tables of README and of the documentation's first page, from docs/comparison.md.

README has what was counted, the first page also what each library has.

A page has `<!-- features -->` and `<!-- end of features -->`; what is between them is written by
`python -m lab.peers run`, and a test compares it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lab.peers.abilities import ABILITIES, PACKAGES, TRIO
from lab.peers.cases import CASES, THEMES, Case
from tests.support.shared import ROOT

COMPARISON: Final = ROOT / "docs" / "comparison.md"
README: Final = ROOT / "README.md"
PAGES: Final = (README, ROOT / "docs" / "index.md")
BLOCK: Final = re.compile(
    r"(?P<begin><!-- features -->\n).*?(?P<end><!-- end of features -->)", re.DOTALL
)

LIBRARIES: Final = {
    "streamlib": "streamlib",
    "openai": "openai stream",
    "anthropic": "anthropic stream",
    "litellm": "litellm",
    "pydantic-ai": "pydantic-ai",
    "Vercel AI SDK": "Vercel AI SDK",
}
"""Heading here -> column of the comparison: of the official SDKs, the helper that accumulates."""

OWN_TESTS: Final = {
    "runs on trio": "tests/proof/test_loops.py",
    "parses a response without an HTTP client": "tests/properties/test_partitions.py",
    "a gateway that other clients can point at": "tests/streamlib/gateway/state/test_translate.py",
    "responses for `useChat`": "tests/streamlib/web/test_round_trips.py",
    "runs your functions until the model has finished": "tests/streamlib/tools/test_agent.py",
    "a model for tests, without a network": "tests/streamlib/testing/test_scripted.py",
    "code without `async`": "tests/streamlib/client/sync/test_sync_client.py",
}
"""Title of an ability -> our tests of it."""

NO_PYTHON: Final = ("Vercel AI SDK",)
OF_PYTHON: Final = (TRIO, "code without `async`")
"""Abilities that a library of another language cannot have."""

Row = dict[str, str]
"""Column -> cell."""


class Comparison:
    """The tables of docs/comparison.md."""

    def __init__(self, text: str) -> None:
        self.cases: dict[tuple[str, str], Row] = {}
        """(condition, wire) -> the verdicts."""
        self.libraries: dict[str, Row] = {}
        """Library -> its counts of all cases."""
        self.abilities: dict[str, Row] = {}
        """Title of an ability -> the names that show it."""
        heading: list[str] = []
        for line in text.splitlines():
            if line.startswith("|--"):
                continue
            if not line.startswith("|"):
                heading = []
                continue
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not heading:
                heading = cells
                continue
            self._add(dict(zip(heading, cells, strict=True)))

    def _add(self, row: Row) -> None:
        if "condition" in row:
            self.cases[row["condition"], row["wire"]] = row
        elif "cases" in row:
            self.libraries[row["library"]] = row
        elif "it has" in row:
            self.abilities[row["it has"]] = row

    def verdicts(self, cases: list[Case], column: str) -> list[str]:
        """What a library did with the cases that it was asked."""
        words: list[str] = []
        for case in cases:
            source = f" ({case.source})" if case.source else ""
            word = self.cases[case.condition + source, case.wire].get(column, "n.a.")
            if word != "n.a.":
                words.append(word.strip("*"))
        return words


def table(text: str, link: Callable[[str], str], abilities: bool = True) -> str:
    """The table, in Markdown.

    Args:
        text: docs/comparison.md.
        link: makes a link's target of a path from the root of the repository.
        abilities: whether it has rows of what each library has.
    """
    comparison = Comparison(text)
    rows = [*_counted(comparison, link), *_all_cases(comparison, link)]
    for row in _had(comparison, link) if abilities else ():
        if "no" in row or "—" in row or "yes" not in row:  # what every library has says nothing
            rows.append(row)
    lines = [f"| | {' | '.join(LIBRARIES)} |", f"|---{'|---' * len(LIBRARIES)}|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def _counted(comparison: Comparison, link: Callable[[str], str]) -> list[list[str]]:
    """Rows of some cases: how many of those that a library was asked it passed."""
    endless = [case for case in CASES if case.id in ("37", "37-ping", "37-first")]
    themes = {title: list(cases) for title, cases in THEMES}
    signatures = next(title for title in themes if "signatures" in title)
    selected = {
        # The whole section, also streams that only look as if they were cut.
        "complete and truncated streams are told apart": themes["How streams end"],
        "endless pings and comments end by the timeout": endless,
        "order and signatures of reasoning and calls are kept": themes[signatures],
    }
    rows: list[list[str]] = []
    for title, cases in selected.items():
        row = [f"[{title}]({link(f'docs/comparison.md#{_anchor(cases[0])}')})"]
        for column in LIBRARIES.values():
            words = comparison.verdicts(cases, column)
            row.append(f"{words.count('ok')} of {len(words)}" if words else "not asked")
        rows.append(row)
    return rows


def _anchor(case: Case) -> str:
    """Of the heading under which the comparison has a case."""
    title = next(title for title, cases in THEMES if case in cases)
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _all_cases(comparison: Comparison, link: Callable[[str], str]) -> list[list[str]]:
    """Rows of all cases."""
    target = link("docs/comparison.md#all-cases")
    passed, lost = [f"[all cases: as expected]({target})"], [f"[… content lost silently]({target})"]
    for column in LIBRARIES.values():
        row = comparison.libraries[column]
        passed.append(f"{row['ok']} of {row['cases']}")
        lost.append(row["silent loss"])
    return [passed, lost]


def _had(comparison: Comparison, link: Callable[[str], str]) -> list[list[str]]:
    """Rows of what is there or not."""
    target = link("docs/comparison.md#what-each-library-has")
    rows: list[list[str]] = []
    for title in (TRIO, *[ability.title for ability in ABILITIES], PACKAGES):
        found = comparison.abilities[title]
        row = [f"[{title}]({target})"]
        for name, column in LIBRARIES.items():
            cell = found.get(name, found.get(column, "—"))
            own = OWN_TESTS.get(title)
            if cell.startswith("`"):
                cell = "yes"
            if name in NO_PYTHON and title in OF_PYTHON:
                cell = "JavaScript"
            if name == "streamlib" and own is not None:
                cell = f"[{cell}]({link(own)})"
            row.append(cell)
        rows.append(row)
    return rows


def fill(page: Path, comparison: str) -> str:
    """A page's text with the table written anew."""

    def link(path: str) -> str:
        if page.parent == ROOT:
            return path
        return path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"

    written = table(comparison, link, abilities=page != README)
    text = page.read_text(encoding="utf-8")
    return BLOCK.sub(lambda block: f"{block['begin']}{written}\n{block['end']}", text)


def write() -> None:
    """Writes the table of each page."""
    comparison = COMPARISON.read_text(encoding="utf-8")
    for page in PAGES:
        page.write_text(fill(page, comparison), encoding="utf-8")
