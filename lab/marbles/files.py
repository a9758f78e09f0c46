"""The files of the pictures, and the page with their words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lab.marbles.operators import NAMES_OF_PICTURES, run
from lab.marbles.svg import draw, words_of
from tests.support.shared import ROOT

IMAGES: Final = ROOT / "docs" / "images"
PAGE: Final = ROOT / "docs" / "pipeline.md"
SHOWN: Final = re.compile(r"!\[[^\]]*\]\(images/marble-([\w-]+)\.svg\)")
"""A picture on the page: its words, its name."""


def files() -> dict[Path, str]:
    """Every picture and the page: path and content."""
    found: dict[Path, str] = {}
    words: dict[str, str] = {}
    for name in NAMES_OF_PICTURES:
        picture = run(name)
        found[IMAGES / f"marble-{name}.svg"] = draw(picture)
        words[name] = words_of(picture)
    found[PAGE] = with_words(PAGE.read_text(encoding="utf-8"), words)
    return found


def with_words(page: str, words: Mapping[str, str]) -> str:
    """A page whose pictures have these words; brackets, which would end them, are round."""

    def replaced(shown: re.Match[str]) -> str:
        told = words[shown[1]].replace("[", "(").replace("]", ")")
        return f"![{told}](images/marble-{shown[1]}.svg)"

    return SHOWN.sub(replaced, page)
