"""Charts: bars and curves, as a picture and as a page, for every screen and without colours."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from streamlib.testing.bench import chart
from streamlib.testing.bench.records import OURS, BenchRun, Figure
from streamlib.testing.svg import WIDTH

SVG = "{http://www.w3.org/2000/svg}"
MACHINE = {
    "streamlib": "1.2.3",
    "build": "compiled",
    "python": "3.11.7",
    "cpu": "A <fast> one",
    "cores": "2",
    "load": "0.5, 0.6 before, 0.7, 0.8 after",
}
RESULT = BenchRun("x", "2026-01-02 03:04 UTC", MACHINE, {}, ())
ORIGIN = ("2026-01-02", "1.2.3", "compiled", "3.11.7", "A <fast> one", "0.7, 0.8 after")


def bar(contestant: str, *rounds: float, unit: str = "µs") -> Figure:
    return Figure("peers", "<chat>", "16 KiB", contestant, "time", unit, rounds)


def curve(contestant: str, **rates: tuple[float, ...]) -> list[Figure]:
    made: list[Figure] = []
    for size, rounds in rates.items():
        chunks = size.replace("_", " ")
        made.append(Figure("curve", "a & b.sse", chunks, contestant, "bytes", "MB/s", rounds))
    return made


BARS = [bar(OURS, 1.5, 3.0, 2.0), bar("open&ai", 120.0)]
CURVE = [
    *curve(OURS, B1=(1, 2, 3), B4=(9, 10, 14), KiB=(40, 50, 60)),
    *curve("mine:Parser", B1=(3, 4, 5), B4=(5, 6, 7), KiB=(90, 91, 93)),
]
figures = pytest.mark.parametrize("figures", [BARS, CURVE, []], ids=["bars", "curve", "none"])


def words(drawn: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(drawn).iter(f"{SVG}text")]


@figures
def test_drawing_names_time_machine_and_build(figures: list[Figure]) -> None:
    drawn = " ".join(words(chart.drawing("speed", figures, RESULT)))
    assert [told for told in ORIGIN if told not in drawn] == []


@figures
def test_drawing_fits_a_phone_and_needs_nothing_else(figures: list[Figure]) -> None:
    drawn = chart.drawing("speed " * 30, figures, RESULT)
    picture = ET.fromstring(drawn)
    assert picture.get("width") == str(WIDTH)
    for rect in picture.iter(f"{SVG}rect"):
        if rect.get("x"):
            assert float(rect.get("x") or 0) + float(rect.get("width") or 0) <= WIDTH
    for text in picture.iter(f"{SVG}text"):
        assert len(text.text or "") <= 60
    assert not re.search(r"<script|<image|<foreignObject|href|@import|@font-face", drawn)
    assert "prefers-color-scheme: dark" in drawn


def test_bar_shows_the_best_round_and_the_median() -> None:
    picture = ET.fromstring(chart.drawing("times", BARS, RESULT))
    rects = [rect for rect in picture.iter(f"{SVG}rect") if rect.get("x")]
    # A colour alone tells nobody whose bar it is, and not every screen is white.
    fills = [rect.get("fill") for rect in rects]
    assert fills == ["url(#message)", "url(#message)", "url(#other)", "url(#other)"]
    median, best, peer, _ = [float(rect.get("width") or 0) for rect in rects]
    assert median / best == pytest.approx(2.0 / 1.5, abs=0.1)
    assert peer > median
    assert "1.50 / 2.00 µs" in words(chart.drawing("times", BARS, RESULT))
    patterns = {part.get("id") for part in picture.iter(f"{SVG}pattern")}
    assert {"message", "other"} <= patterns


@pytest.mark.parametrize("reader", [OURS, "mine:Parser"])
def test_label_keeps_the_end_of_a_long_path(reader: str) -> None:
    path = f"/home/{'a-long-name-of-a-folder/' * 9}"
    bars = [
        Figure("files", f"{path}{name}.sse", chunks, reader, "bytes", "MB/s", (1.0,))
        for name in ("one", "two")
        for chunks in ("an event", "16 KiB")
    ]
    labels = words(chart.drawing("speed", bars, RESULT))[1:9:2]
    ends = ["one.sse, an event", "one.sse, 16 KiB", "two.sse, an event", "two.sse, 16 KiB"]
    assert [label[-len(end) :] for label, end in zip(labels, ends, strict=True)] == ends
    curves = [msgspec.structs.replace(entry, bench="curve") for entry in bars]
    headings = [label for label in words(chart.drawing("s", curves, RESULT)) if label[0] == "…"]
    assert [heading[-7:] for heading in headings] == ["one.sse", "two.sse"]


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_curve_has_a_line_of_medians_and_a_band() -> None:
    picture = ET.fromstring(chart.drawing("speed", CURVE, RESULT))
    bands = [path for path in picture.iter(f"{SVG}path") if path.get("class") == "band"]
    lines = [path for path in picture.iter(f"{SVG}path") if path.get("class") == "line"]
    lines = [line for line in lines if "L" in (line.get("d") or "")]
    assert len(bands) == len(lines) == 2
    # The lines differ in more than their colours.
    assert [bool(line.get("stroke-dasharray")) for line in lines] == [False, True]
    ours, theirs = (points(line.get("d") or "") for line in lines)
    assert len(ours) == 3
    heights = [y for _, y in ours]
    assert heights == sorted(heights, reverse=True)  # faster in larger chunks
    # At 4 bytes ours is above theirs, in the largest chunks below.
    assert ours[1][1] < theirs[1][1]
    assert ours[2][1] > theirs[2][1]
    band = points(bands[0].get("d") or "")
    assert min(y for _, y in band) < min(heights)
    assert {OURS, "mine:Parser", "a & b.sse"} <= set(words(chart.drawing("s", CURVE, RESULT)))


def test_words_below_a_curve_are_in_its_picture() -> None:
    panel = chart.curve("speed", CURVE)
    heights: dict[str, float] = {}
    for part in panel.parts:
        if part.startswith("<text"):
            text = ET.fromstring(part)
            heights[text.text or ""] = float(text.get("y") or 0)
    below = [heights[word] for word in ("B1", "bytes in a chunk", OURS, "mine:Parser")]
    assert below == sorted(below)
    assert max(heights.values()) < panel.height
    assert min(heights.values()) > 0


def test_words_of_a_curve_hold_its_numbers() -> None:
    title = ET.fromstring(chart.drawing("speed", CURVE, RESULT)).find(f"{SVG}title")
    assert title is not None
    assert "streamlib: B1 2.00, B4 10.0, KiB 50.0." in (title.text or "")


@figures
def test_page_has_the_drawing_and_the_numbers(figures: list[Figure], tmp_path: Path) -> None:
    path = tmp_path / "chart.html"
    chart.draw(path, "speed <b>", figures, RESULT)
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "speed &lt;b&gt;" in page
    assert "A &lt;fast&gt; one" in page
    assert page.count("<tr>") == 1 + len(figures)
    ids = re.findall(r'id="(panel-\d+)"', page)
    assert len(ids) == len(set(ids)) == page.count("<svg")
    assert not re.search(r"<script|<img|href|@import|@font-face", page)


def test_chart_is_an_svg_unless_its_name_ends_in_html(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    chart.draw(path, "speed", CURVE, RESULT)
    assert ET.parse(path).getroot().tag == f"{SVG}svg"


@pytest.mark.parametrize(
    ("value", "end"), [(0, 1), (63.8, 70), (1.2, 2), (100, 100), (0.031, 0.04)]
)
def test_axis_ends_at_a_number_of_one_digit(value: float, end: float) -> None:
    entry = Figure("curve", "a", "1 B", OURS, "bytes", "MB/s", (value,))
    assert f"{end:.4g}" in words(chart.drawing("speed", [entry], RESULT))
