"""The pictures of the pages on fuzzing and benchmarks show what was found and measured."""

from __future__ import annotations

import re

from lab.pictures.files import FUZZING, IMAGES, example, files
from tests.support.shared import ROOT


def test_pictures_show_what_was_found_and_measured() -> None:
    made = files()
    stale = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "python -m lab.pictures draws them again; look at what has changed"


def test_example_of_fuzzing_finds_the_planted_cut_in_ten_lines() -> None:
    code = [line for line in _example().splitlines() if line.strip()]
    assert len(code) <= 10
    names = example()
    assert names["finding"].chunks == [b"data: \xc3", b"\xa9\n"]
    assert "cut after 7" in (IMAGES / "fuzz-split.svg").read_text(encoding="utf-8")


def test_example_of_fuzzing_passes_once_it_is_mended() -> None:
    mended = _example().partition("print(")[0].replace("seconds=10", "seconds=0.5")
    for wrong, right in (
        ('text = ""', 'text = b""'),
        ('chunk.decode("utf-8", "replace")', "chunk"),
        (r'split("\n")', r'split(b"\n")'),
        ('startswith("data: ")', 'startswith(b"data: ")'),
    ):
        assert wrong in mended
        mended = mended.replace(wrong, right)
    names: dict[str, object] = {"__name__": "example"}
    exec(mended, names)
    assert names["finding"] is None


def _example() -> str:
    code = re.search(r"```python\n(.*?)```", FUZZING.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    return code[1]


def test_page_and_picture_measure_the_same_parser() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    picture = (IMAGES / "bench-curve.svg").read_text(encoding="utf-8")
    for name in re.findall(r"--parser (\S+)", page):
        if ":" in name:
            assert f">{name}</text>" in picture
