"""The lists of `collection`: a file that moved would be in no place of its own."""

from __future__ import annotations

from tests.support.collection import LONG_FILES, SDK_FILES
from tests.support.shared import ROOT


def test_listed_files_exist() -> None:
    assert [name for name in (*LONG_FILES, *SDK_FILES) if not (ROOT / name).is_file()] == []
