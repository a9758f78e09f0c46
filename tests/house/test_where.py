"""A test is found by its module's path, or `tests/where.txt` says where it is."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from lab.house.style import sources
from lab.house.where import (
    MIRRORS,
    TABLE,
    Row,
    find_tests,
    listed_tests,
    named_tests,
    rows,
)
from tests.support.cases import each_case
from tests.support.shared import ROOT

ROWS = rows(TABLE.read_text(encoding="utf-8"))
PACKAGES = ("streamlib", "parsers/streamlib_parsers")


def relative(path: Path) -> PurePosixPath:
    return PurePosixPath(path.relative_to(ROOT).as_posix())


def test_every_module_has_tests_of_its_name_or_a_row() -> None:
    modules = [relative(path) for path in sources()]
    assert len(modules) > 200
    missing = [
        str(path)
        for path in modules
        if named_tests(path) is None and listed_tests(path, ROWS) is None
    ]
    assert missing == [], "add tests of that name, or a row to tests/where.txt"


def test_every_row_names_modules_and_tests_that_exist() -> None:
    wrong = []
    for row in ROWS:
        if not (ROOT / row.tests).exists() or not any(ROOT.glob(row.modules)):
            wrong.append(row)
    assert wrong == []


def test_every_row_is_needed() -> None:
    """A row whose modules all have tests of their name, or an earlier row, says nothing."""
    unused = set(ROWS)
    for path in map(relative, sources()):
        if named_tests(path) is not None:
            continue
        for row in ROWS:
            if listed_tests(path, [row]) is not None:
                unused.discard(row)
                break
    assert unused == set()


def test_every_folder_of_tests_mirrors_one_of_sources() -> None:
    strays = []
    for package in PACKAGES:
        top = ROOT / MIRRORS[package]
        for path in top.rglob("test_*.py"):
            if not (ROOT / package / path.parent.relative_to(top)).is_dir():
                strays.append(str(relative(path)))
    assert strays == []


def test_no_test_is_in_the_lab_and_no_program_in_tests() -> None:
    assert [relative(path) for path in (ROOT / "lab").rglob("test_*.py")] == []
    assert [relative(path) for path in (ROOT / "tests").rglob("__main__.py")] == []


@each_case(
    "module, tests",
    [
        ("streamlib/client/auth.py", "tests/streamlib/client/test_auth.py"),
        ("streamlib/wires/chat/encode_objects.py", "tests/streamlib/wires/chat/test_encode.py"),
        ("streamlib/wires/chat/__init__.py", "tests/streamlib/wires/chat"),
        ("streamlib/providers/xai.py", "tests/streamlib/providers/test_providers.py"),
        ("streamlib/nowhere/new.py", "tests/streamlib"),
        ("lab/site/structs.py", "tests/lab/site"),
        ("docs/README.md", "tests/docs"),
        ("LICENSE", None),
    ],
)
def test_tests_of_a_file_are_found(module: str, tests: str | None) -> None:
    assert find_tests(PurePosixPath(module)) == tests


def test_star_of_a_row_stays_within_a_folder() -> None:
    row = Row("streamlib/cli/*.py", "tests/streamlib/cli/test_cli.py")
    assert listed_tests(PurePosixPath("streamlib/cli/chat.py"), [row]) == row.tests
    assert listed_tests(PurePosixPath("streamlib/cli/deeper/chat.py"), [row]) is None
