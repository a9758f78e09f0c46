"""A long answer in the web example, read in Chromium while it streams; the keyboard; the tree.

Figures: `python -m pytest -s -m slow tests/examples/test_reading.py`.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from lab.real.ui_readers import HOME, absence, chromium
from streamlib.testing import Behaviour
from streamlib.testing.bench.records import load_of_machine
from tests.examples.serving import web
from tests.real.conftest import ABSENT

pytestmark = [pytest.mark.slow]  # a minute in a browser

SCRIPT: Final = Path(__file__).with_name("reading.mjs")

SENTENCE: Final = "the model writes one word after another and the page shows them as they come"
WORDS: Final = SENTENCE.split()
HEADER: Final = (
    "| a wide column | another column | a third column | and a fourth column |\n|---|---|--:|---|\n"
)
CHAPTER: Final = "\n\n".join(
    [
        "## A chapter",
        " ".join(WORDS * 6) + ".",
        "\n".join(f"- **entry {n}** with `code` and {' '.join(WORDS[:8])}" for n in range(8)),
        HEADER + "\n".join(f"| value {n} | `code {n}` | {n * 17} | {WORDS[n]} |" for n in range(8)),
        "```python\n" + "\n".join(f"def f{n}(x):\n    return x + {n}" for n in range(12)) + "\n```",
        " ".join(WORDS * 8) + ".",
    ]
)
LONG: Final = "\n\n".join([CHAPTER] * 55)
"""About 20,000 words."""


GROWING: Final = [
    CHAPTER,
    "".join(f"- entry {n} *with* `code`\n" for n in range(40)) + "\nend",
    "".join(f"{n}. entry\n   - inner\n\n" for n in range(7, 40)) + "end",
    HEADER + "".join(f"| {n} | **b** | `c` | {n * 17} |\n" for n in range(40)) + "\nend",
    "text\n```python\n"
    + "".join(f"def f{n}():  # {n}\n    pass\n\n" for n in range(70))
    + "```\nend",
    "> quote\n> - a\n> - b\n\nSetext\n===\n\n    indented\n\n1. a\n\n2\n3. c\n\n***\nend",
]
"""Long lists, tables and code, of which the first entries are frozen, and blocks that change."""


@cache
def seen() -> dict[str, Any]:
    """What one visit saw."""
    why = absence() or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    found: dict[str, Any] = anyio.run(_visit)
    return found


async def _visit() -> dict[str, Any]:
    async with (
        web(Behaviour(turns=[LONG], chunk=3000, pace=0.02)) as (long, _),
        web(Behaviour(pace=0.03), grace=0.05) as (short, provider),
    ):
        command = ["node", str(SCRIPT), str(HOME), chromium() or ""]
        given = json.dumps({"long": long, "short": short, "texts": GROWING})
        with anyio.fail_after(300):
            done = await anyio.run_process(command, input=given.encode(), check=False)
        assert done.returncode == 0, done.stderr.decode()
        with anyio.move_on_after(2):
            await provider.wait_for_disconnect()
        return {**json.loads(done.stdout), "left": provider.disconnects}


def test_nothing_moves_under_the_reader() -> None:
    """E6: the page jumped to the end although the reader had scrolled up."""
    page = seen()
    assert page["followed"] < 60, "it follows while the reader is at the end"
    assert page["jump"]
    assert page["reading"]["came"] > 500, "words came meanwhile"
    assert (page["reading"]["shift"], page["reading"]["moved"]) == (0, 0)
    assert page["atEnd"]["moved"] == 0, "nor at the end of the answer"
    assert page["jumped"]


def test_selection_and_scrolled_table_survive_streaming() -> None:
    """E6: selection and scroll position were lost while an answer streamed."""
    page = seen()
    assert page["reading"]["selected"]
    assert page["reading"]["table"] == [60, 60]
    now, before = page["openEnd"]
    assert now == before != ""


def test_long_response_stays_smooth() -> None:
    page = seen()
    assert page["atEnd"]["words"] > 19_000
    assert page["same"]
    for name in ("reading", "following"):
        assert page[name]["cpu"]["all"] < 600, "milliseconds of CPU a second"


def test_text_in_random_deltas_looks_as_if_it_came_at_once() -> None:
    assert seen()["growing"] == []


def test_keyboard_reaches_everything() -> None:
    page = seen()
    assert page["stopped"] == 1, "Escape stops"
    for stop in ("New chat", "Conversation", "Copy the code", "Copy the answer", "Message"):
        assert stop in page["stops"], page["stops"]


def test_screen_reader_is_given_authors_and_headings() -> None:
    """E6: no headings or authors."""
    page = seen()
    assert (page["role"], page["busyLog"]) == (1, "true")
    tree = page["tree"]
    for line in ('article "You"', 'heading "You" [level=2]', 'article "Assistant"', "code:"):
        assert line in tree, tree
    assert 'button "Copy the code"' in tree


def test_tab_in_the_background_closes_its_connection() -> None:
    assert seen()["resumed"]


def test_lost_connection_is_taken_up_again() -> None:
    page = seen()
    assert page["lost"].startswith("No connection to the server.")
    assert page["back"] == 3


def test_mistake_of_the_page_closes_the_upstream() -> None:
    """E6: a rendering error showed "No connection", and the upstream kept running."""
    page = seen()
    assert page["mistake"].startswith("This page could not show the answer.")
    assert page["left"] == 2, "that of Escape, and that of the mistake"


def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    page = seen()
    with capsys.disabled():
        sys.stdout.write(f"\nload {load_of_machine()}, {page['atEnd']['words']} words\n")
        for name in ("reading", "following", "reload"):
            sys.stdout.write(f"{name}: {page[name]}\n")
    assert page["reload"]["seconds"] < 60
