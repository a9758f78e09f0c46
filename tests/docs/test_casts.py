"""The casts are those of their recording, and anybody can read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.casts.files import IMAGES, TITLES, files
from lab.casts.svg import BACKGROUND, COLOURS
from tests.support.shared import ROOT

NAMES = [f"cast-{name}{form}.svg" for name in TITLES for form in ("", "-still")]
each_file = pytest.mark.parametrize("name", NAMES)
AA = 4.5
"""Contrast of text, by WCAG."""


def test_casts_show_what_the_commands_write() -> None:
    made = files()
    stale = [path.name for path, text in made.items() if path.read_text("utf-8") != text]
    assert stale == [], "python -m lab.casts draws them again"
    assert sorted(path.name for path in made) == sorted(NAMES)


@each_file
def test_cast_is_small_and_needs_nothing_else(name: str) -> None:
    text = (IMAGES / name).read_text(encoding="utf-8")
    assert len(text.encode()) <= 40_000
    assert not re.search(r"<script|<image|<foreignObject|href|url\(|@import|@font-face", text)


@pytest.mark.parametrize("name", TITLES)
def test_cast_rests_for_readers_who_want_less_motion(name: str) -> None:
    text = (IMAGES / f"cast-{name}.svg").read_text(encoding="utf-8")
    assert "@media (prefers-reduced-motion:reduce){*{animation:none!important}}" in text
    assert "@keyframes" not in (IMAGES / f"cast-{name}-still.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("colour", sorted(COLOURS.values()))
def test_colours_of_casts_have_enough_contrast(colour: str) -> None:
    lighter, darker = luminance(colour) + 0.05, luminance(BACKGROUND) + 0.05
    assert lighter / darker >= AA


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", by WCAG."""
    total = 0.0
    for start, weight in ((1, 0.2126), (3, 0.7152), (5, 0.0722)):
        part = int(colour[start : start + 2], 16) / 255
        if part <= 0.04045:
            part /= 12.92
        else:
            part = ((part + 0.055) / 1.055) ** 2.4
        total += weight * part
    return total


def test_pages_show_a_still_where_less_motion_is_wanted() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    shown = [page for page in pages if _animated_casts(page)]
    assert shown
    for page in shown:
        text = page.read_text(encoding="utf-8")
        for name in _animated_casts(page):
            assert f"{name}-still.svg" in text, f"{page.name}: {name}"


def _animated_casts(page: Path) -> list[str]:
    return re.findall(r"(cast-\w+)\.svg", page.read_text(encoding="utf-8"))
