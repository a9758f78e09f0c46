"""Where the tests of a source file are: the mirror of its path, else a row of `tests/where.txt`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
TABLE: Final = ROOT / "tests" / "where.txt"

MIRRORS: Final = {
    "parsers/streamlib_parsers": "tests/parsers",
    "streamlib": "tests/streamlib",
    "lab": "tests/lab",
    "docs": "tests/docs",
    "benchmarks": "tests/benchmarks",
    "examples": "tests/examples",
}
"""Folder -> the folder of its tests."""


class Row(NamedTuple):
    """A row of the table."""

    modules: str
    """A path or a glob."""
    tests: str
    """A test file or a folder."""


def rows(text: str) -> list[Row]:
    """Reads the table: two columns, `#` begins a comment."""
    return [Row(*line.split()) for line in text.splitlines() if line and not line.startswith("#")]


def mirrored(path: PurePosixPath) -> PurePosixPath | None:
    """The path that the file has among the tests, whether or not anything is there."""
    for folder, tests_folder in MIRRORS.items():
        if path.is_relative_to(folder):
            return PurePosixPath(tests_folder) / path.relative_to(folder)
    return None


def named_tests(path: PurePosixPath) -> str | None:
    """The tests that have the module's name, or a name that the module's continues.

    A package is a module too: `recording/__init__.py` is tested by the folder `recording` or by
    `test_recording.py` beside it.
    """
    mirror = mirrored(path)
    if mirror is None:
        return None
    if mirror.name == "__init__.py":
        mirror = mirror.parent
        if (ROOT / mirror).is_dir():
            return str(mirror)
    words = mirror.stem.strip("_").split("_")
    while words:
        candidate = mirror.with_name(f"test_{'_'.join(words)}.py")
        if (ROOT / candidate).exists():
            return str(candidate)
        words.pop()
    return None


def listed_tests(path: PurePosixPath, table: list[Row]) -> str | None:
    """The tests of the first row that the module matches; a `*` stays within a folder."""
    for row in table:
        pattern = PurePosixPath(row.modules)
        if len(pattern.parts) == len(path.parts) and path.match(row.modules):
            return row.tests
    return None


def find_tests(path: PurePosixPath) -> str | None:
    """The tests of a source file; else the nearest folder of tests above it."""
    found = named_tests(path) or listed_tests(path, rows(TABLE.read_text(encoding="utf-8")))
    if found is not None:
        return found
    mirror = mirrored(path)
    if mirror is None:
        return None
    for folder in mirror.parents:
        if (ROOT / folder).is_dir():
            return str(folder)
    return None
