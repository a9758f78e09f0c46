"""The shapes are what recordings are: the same lengths, keys and padding, and nobody eases them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from benchmarks.recordings import streams_in
from benchmarks.shapes import SIZES, digests, pinned, shapes
from benchmarks.shapes.statistics import (
    LENGTHS,
    PERCENTILES,
    SHARES,
    Statistics,
    load,
    measured,
    statistics,
)
from streamlib.testing.bench.corpus import Stream
from streamlib_parsers import WIRE_APIS, Completed, Notice, Opaque, Passthrough, parser
from tests.support.cases import Case, in_one_test
from tests.support.shared import CORPUS, ROOT, SHARED, require

COMPARED = (10, 50, 90)
"""Percentiles that are compared."""

TENTH = 0.1
"""By how much a length may differ, relative to it; by how much a share may."""

SHORTEST = 200
"""Events from which the percentiles of a body say something."""


def cases(events: int = 0) -> Iterator[Case]:
    """The shapes of so many events at least; made when a test asks, since that takes a second."""
    for shape in shapes():
        if len(shape.events) >= events:
            yield shape.name, {"shape": shape}


def differences(found: Statistics, expected: Statistics) -> list[str]:
    """What differs by more than a tenth, and by more than one."""
    differing: list[str] = []
    for name in SHARES:
        share, wanted = getattr(found, name), getattr(expected, name)
        if abs(share - wanted) > TENTH:
            differing.append(f"{name}: {share}, not {wanted}")
    for name in LENGTHS:
        for percentile in COMPARED:
            at = PERCENTILES.index(percentile)
            length, wanted = getattr(found, name)[at], getattr(expected, name)[at]
            if abs(length - wanted) > max(1, TENTH * wanted):
                differing.append(f"p{percentile} of {name}: {length}, not {wanted}")
    return differing


@cache
def recorded() -> dict[str, Statistics]:
    """The statistics of the recordings beside this checkout; a skip where there are none."""
    require(CORPUS)
    require(SHARED / "corpus-2")
    return measured(streams_in([]))


@pytest.mark.parametrize("wire", WIRE_APIS)
def test_published_statistics_are_those_of_recordings(wire: str) -> None:
    assert differences(load()[wire], recorded()[wire]) == []


@in_one_test(["shape"], lambda: cases(SHORTEST))
def test_shapes_have_the_statistics_of_recordings(shape: Stream) -> None:
    assert differences(statistics([shape]), load()[shape.wire_api]) == []


def test_shapes_are_there_for_each_wire_and_length() -> None:
    found = {(shape.wire_api, len(shape.events)) for shape in shapes()}
    assert found == {(wire, size) for wire in WIRE_APIS for size in SIZES}


def test_shapes_have_the_pinned_digests() -> None:
    assert digests() == pinned()


@in_one_test(["shape"], cases)
def test_shapes_are_complete_responses_without_oddities(shape: Stream) -> None:
    parse = parser(shape.wire_api)
    events = [event for chunk in shape.events for event in parse.feed(chunk)] + parse.close()
    assert isinstance(events[-1], Completed)
    odd = [event for event in events if isinstance(event, (Notice, Passthrough))]
    items = [getattr(event, "item", None) for event in events]
    assert odd == []
    assert not any(isinstance(item, Opaque) for item in items)


def test_no_commit_changes_shapes_and_parsers() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    log = ("git", "log", "--no-merges", "--format=commit %h", "--name-only")
    both = (*log, "--full-diff", "--", "benchmarks/shapes")
    shown = subprocess.run(both, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    mixed: list[str] = []
    for commit in shown.split("commit ")[1:]:
        name, *files = commit.split()
        if any(file.startswith("parsers/streamlib_parsers/") for file in files):
            mixed.append(name)
    assert mixed == []
