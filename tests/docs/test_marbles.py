"""The marble diagrams of docs/pipeline.md show what the operators do, to everybody."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from lab.marbles.files import IMAGES, PAGE, SHOWN, files, with_words
from lab.marbles.operators import NAMES_OF_PICTURES, STAGES, run
from lab.marbles.script import Line, Mark
from lab.marbles.svg import DARK, LIGHT, WIDTH, draw
from streamlib import pipeline
from tests.docs.test_casts import AA, luminance

SVG = "{http://www.w3.org/2000/svg}"
each_picture = pytest.mark.parametrize("name", NAMES_OF_PICTURES)

NO_PICTURE = {"chain", "pipe", "through", "from_machine", "ended"}
"""What composes, runs or makes stages, and `ended`, a condition for `until`."""


def test_pictures_show_what_the_operators_do_now() -> None:
    made = files()
    stale = [
        path.name
        for path, text in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "python -m lab.marbles draws them again; look at what has changed"
    assert {path.name for path in IMAGES.glob("marble-*")} == {
        path.name for path in made if path != PAGE
    }


def test_every_operator_has_a_picture_on_the_page() -> None:
    shown = set(SHOWN.findall(PAGE.read_text(encoding="utf-8")))
    assert shown == set(NAMES_OF_PICTURES)
    operators = {name for name in pipeline.__all__ if name.islower()} - NO_PICTURE
    assert operators <= shown


@each_picture
def test_picture_fits_a_telephone(name: str) -> None:
    """400 pixels wide, with letters of 11 and more; nothing leaves the frame."""
    picture = ET.fromstring((IMAGES / f"marble-{name}.svg").read_text(encoding="utf-8"))
    assert picture.get("width") == str(WIDTH)
    assert WIDTH <= 400
    for rect in picture.iter(f"{SVG}rect"):
        assert float(rect.get("x") or 0) + float(rect.get("width") or 0) <= WIDTH
    code = [text for text in picture.iter(f"{SVG}text") if text.get("class") == "code"]
    assert len(code[0].text or "") * 7.3 <= WIDTH - 12


@each_picture
def test_picture_is_small_and_needs_nothing_else(name: str) -> None:
    text = (IMAGES / f"marble-{name}.svg").read_text(encoding="utf-8")
    assert len(text.encode()) <= 12_000
    assert not re.search(r"<script|<image|<foreignObject|href|url\(|@import|@font-face", text)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_marbles_have_enough_contrast(colours: dict[str, str]) -> None:
    for ink, ground in (
        ("ink", "back"),
        ("quiet", "back"),
        ("bad", "back"),
        ("ink", "box"),
        ("ink", "first"),
        ("ink", "second"),
        ("ink", "third"),
    ):
        lights = sorted([luminance(colours[ink]) + 0.05, luminance(colours[ground]) + 0.05])
        assert lights[1] / lights[0] >= AA, (ink, ground)


def test_change_of_an_operator_changes_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    before = draw(run("replace"))
    script = STAGES["replace"]
    monkeypatch.setitem(STAGES, "replace", script._replace(code='replace("hunter2", "")'))
    assert draw(run("replace")) != before


def test_marks_of_one_moment_stand_below_each_other() -> None:
    marks = [Mark(1.0, "text", "one"), Mark(1.0, "text", "two"), Mark(2.0, "text", "three")]
    drawn = draw(run("words")._replace(above=[Line("in", marks)], below=[]))
    rects = [rect for rect in ET.fromstring(drawn).iter(f"{SVG}rect") if rect.get("rx") == "8"]
    first, second, third = [(rect.get("x"), rect.get("y")) for rect in rects[1:]]
    assert first[0] == second[0] != third[0]
    assert first[1] != second[1]


def test_words_of_a_picture_stand_on_the_page() -> None:
    page = "![old](images/marble-words.svg) ![](images/other.svg)"
    told = with_words(page, {"words": "in: 0 s [a]."})
    assert told == "![in: 0 s (a).](images/marble-words.svg) ![](images/other.svg)"
