"""The oracle of what has to wait: it finds waiting in vain, and the counts hold in a short run."""

from __future__ import annotations

import re

from lab.buffering.__main__ import count_waits
from lab.buffering.oracle import HARD, most_in_vain, undecided
from streamlib.pipeline.patterns import read_pattern


def test_nothing_waits_in_vain_and_nothing_differs() -> None:
    counts = count_waits(1, 20, 2, HARD[:8])
    assert (counts["differing"], counts["splits"]) == (0, 20 * 8)
    assert counts["most_in_vain"] <= 1


def test_oracle_knows_what_a_continuation_changes() -> None:
    endings = ["b", "c", "bc"]
    assert undecided(re.compile("abc"), "xxab", endings) == 2
    assert undecided(re.compile("abc"), "xxaX", endings) == 0


def test_oracle_counts_characters_that_wait_in_vain() -> None:
    search = read_pattern(r"a\w*!")
    assert most_in_vain([search], re.compile("never"), ["a", "b", "c"], ["!"]) == 3
