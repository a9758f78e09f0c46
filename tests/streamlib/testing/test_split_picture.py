"""The picture of a failing split: the bytes, the cut at its place, and both results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from streamlib.testing.fuzz_targets import target_of
from streamlib.testing.fuzzing import FuzzFinding, fuzz
from streamlib.testing.split_picture import CELL, draw, readings
from streamlib.testing.svg import LEFT, WIDTH
from tests.support.cases import each_case

SVG = "{http://www.w3.org/2000/svg}"


class Decodes:
    """A parser that decodes each chunk for itself: the defect that is most often written."""

    text = ""

    def feed(self, chunk: bytes) -> list[str]:
        *lines, self.text = (self.text + chunk.decode("utf-8", "replace")).split("\n")
        return lines


class Raises:
    """A parser whose errors cannot stand in XML."""

    def feed(self, chunk: bytes) -> list[str]:
        raise ValueError(f"{chunk.decode('latin-1')}\x00\x1b[31m\ud800")


def picture_of(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)


def texts(picture: ET.Element, kind: str = "") -> list[str]:
    found: list[str] = []
    for text in picture.iter(f"{SVG}text"):
        if not kind or text.get("class") == kind:
            found.append(text.text or "")
    return found


def found(body: bytes, *offsets: int) -> FuzzFinding:
    return FuzzFinding("module:Decodes", "any partition", "", body, offsets)


def test_picture_shows_the_cut_between_the_bytes() -> None:
    finding = fuzz(Decodes, ["data: café\n".encode()], seconds=10, seed=1)
    assert finding is not None
    assert finding.chunks == [b"\xc3", b"\xa9\n"]
    picture = picture_of(draw(Decodes, finding))
    cells = [rect for rect in picture.iter(f"{SVG}rect") if "cell" in (rect.get("class") or "")]
    cuts = [path for path in picture.iter(f"{SVG}path") if path.get("class") == "cut"]
    assert len(cells) == len(finding.body)
    (cut,) = cuts
    x, y = (float(value) for value in re.findall(r"[\d.]+", cut.get("d") or "")[:2])
    left, right = cells[0], cells[1]
    assert float(left.get("x") or 0) + CELL <= x <= float(right.get("x") or 0)
    assert y < float(left.get("y") or 0) < y + 36
    # The chunks differ in more than the line between them.
    assert [cell.get("class") for cell in cells] == ["cell", "cell odd", "cell odd"]
    assert texts(picture)[1:4] == ["C3", "A9", "⏎"]
    assert "cut after 1" in texts(picture)


def test_picture_shows_what_came_out_each_time() -> None:
    picture = picture_of(draw(Decodes, found("é\n".encode(), 1)))
    assert texts(picture, "code")[-1] == '→ "é"'
    assert texts(picture, "code wrong") == ['≠ "\ufffd\ufffd"']
    title = picture.find(f"{SVG}title")
    assert title is not None
    assert "Cut after byte 1" in (title.text or "")


@each_case(
    "text, offset, differs",
    [("é\n", 1, 0), ("a\né\n", 3, 1), ("a\nb\né\nc\n", 5, 2), ("a\nb\n", 3, None), ("a", 1, None)],
)
def test_first_result_that_differs_is_named(text: str, offset: int, differs: int | None) -> None:
    unsplit, split = readings(target_of(Decodes), found(text.encode(), offset))
    assert (unsplit.differs, split.differs) == (differs, differs)


def test_picture_of_an_error_shows_the_error() -> None:
    finding = FuzzFinding("m:Raises", "ValueError", "", b"\x00\xff", ())
    shown = texts(picture_of(draw(Raises, finding)))
    assert shown[0] == "Raises: ValueError"
    assert any(text.startswith("→ ValueError: ") for text in shown)
    assert "In 1 chunks" not in shown


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=12))
def test_picture_of_any_finding_is_xml_that_fits(body: bytes, offsets: Sequence[int]) -> None:
    cuts = sorted({offset for offset in offsets if offset <= len(body)})
    for parser in (Decodes, Raises):
        drawn = draw(parser, found(body, *cuts))
        picture = picture_of(drawn)
        assert len(drawn) < 40_000
        for rect in picture.iter(f"{SVG}rect"):
            if rect.get("x"):
                assert LEFT <= float(rect.get("x") or 0) <= WIDTH - CELL
        if any(0 < cut < len(body) for cut in cuts):
            assert 'class="cut"' in drawn


@each_case("offset", [1, 15, 16, 17, 31, 32, 100, 299])
def test_cut_of_a_long_body_is_in_the_picture(offset: int) -> None:
    shown = texts(picture_of(draw(Decodes, found(b"a" * 300, offset))))
    assert f"cut after {offset}" in shown
    assert any("bytes" in text for text in shown if "more" in text or "after" in text)
