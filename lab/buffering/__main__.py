"""Counts what waits in vain, and what differs from `re.sub`, as JSON: `python -m lab.buffering`.

--texts 100      texts of each pattern, each fed in several splits, at whose every delta the
                 characters that wait are compared with those that must
--splits 10000   further splits of each pattern, whose output is compared with that of `re.sub`
--seed 1
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from random import Random
from typing import Any

from lab.buffering.oracle import (
    HARD,
    continuations_of,
    most_in_vain,
    pieces_of,
    random_text,
    replaced,
)
from streamlib.pipeline.patterns import Replacer, read_pattern

PIECES = (1, 3, 8)
"""The longest piece of each split of a text."""


def count_waits(
    texts: int, splits: int, seed: int, patterns: Sequence[tuple[str, str]] = HARD
) -> dict[str, Any]:
    """Tries patterns.

    Args:
        texts: of each pattern; at every delta the characters that wait are counted.
        splits: of each pattern; the output is compared with that of `re.sub`.
        seed: of the random numbers.
        patterns: each with the letters of its texts.
    """
    most = deltas = differing = 0
    for source, letters in patterns:
        random = Random(f"{seed} {source}")
        search = read_pattern(source)
        endings = continuations_of(search.pattern, letters, random)
        for _ in range(texts):
            text = random_text(letters, random, 12)
            for longest in PIECES:
                pieces = pieces_of(text, random, longest)
                deltas += len(pieces)
                most = max(most, most_in_vain([search], search.pattern, pieces, endings))
        for _ in range(splits):
            text = random_text(letters, random)
            output = replaced(Replacer([search], "<>"), pieces_of(text, random))
            differing += output != search.pattern.sub("<>", text)
    return {
        "patterns": len(patterns),
        "deltas": deltas,
        "most_in_vain": most,
        "splits": splits * len(patterns),
        "differing": differing,
    }


def main() -> None:
    """Reads the options, and prints the counts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--texts", type=int, default=100)
    options.add_argument("--splits", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began = time.process_time()
    counts = count_waits(given.texts, given.splits, given.seed)
    seconds = round(time.process_time() - began, 1)
    print(json.dumps({**counts, "cpu_seconds": seconds}))  # noqa: T201


if __name__ == "__main__":
    main()
