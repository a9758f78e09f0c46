"""The table of features on README and on the first page is that of the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.peers import feature_table
from lab.peers.abilities import ABILITIES, found
from tests.support.shared import ROOT


@pytest.mark.parametrize("page", feature_table.PAGES, ids=lambda page: page.name)
def test_feature_table_is_that_of_the_comparison(page: Path) -> None:
    comparison = feature_table.COMPARISON.read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert len(feature_table.BLOCK.findall(text)) == 1
    assert feature_table.fill(page, comparison) == text


def test_features_of_ours_have_names_and_tests() -> None:
    assert found("streamlib")
    titles = {feature_table.TRIO, *[ability.title for ability in ABILITIES]}
    assert set(feature_table.OWN_TESTS) <= titles
    assert [
        path for path in feature_table.OWN_TESTS.values() if not Path(ROOT, path).exists()
    ] == []
