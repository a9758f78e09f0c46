"""Counts the secrets that are read behind `replace`, as JSON: `python -m lab.leaks`.

--splits 1000000    texts that are split at random, over 200 secrets
--encode 20         every how many responses all encoders write, too
--seed 1
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from random import Random
from typing import Any

from lab.leaks.places import ENCODERS, encoder_places, quick_places
from lab.leaks.streams import PATTERNS, hidden, response, secrets, text_with
from streamlib.pipeline.stages import Keep, through
from streamlib.pipeline.text_stages import replace

SECRETS = 200
TEXTS = 6
"""Texts of a response, each split for itself."""

ALL_TEXTS = ("text", "reasoning", "refusal", "arguments")


def redact() -> Keep:
    """The stage that is tried."""
    return replace(PATTERNS, "[secret]", of=ALL_TEXTS)


def count_leaks(stage: Keep, splits: int, encode: int, seed: int) -> dict[str, Any]:
    """Splits streams, and counts in how many a secret is left, by place.

    Args:
        stage: removes the secrets.
        splits: how many texts.
        encode: every how many responses are written by all encoders.
        seed: of the random numbers.
    """
    random = Random(seed)
    every = secrets(SECRETS, random)
    leaks: Counter[str] = Counter()
    encoded = 0
    responses = -(-splits // TEXTS)
    for number in range(responses):
        secret = every[number % SECRETS]
        events = through(response(text_with(secret, random), random), stage)
        places = quick_places(events, hidden(secret))
        if number % encode == 0:
            encoded += 1
            places += encoder_places(events, hidden(secret))
        leaks.update(places)
    return {
        "secrets": SECRETS,
        "splits": responses * TEXTS,
        "encoded": encoded,
        "encoders": len(ENCODERS),
        "leaks": dict(leaks),
    }


def main() -> None:
    """Reads the options, and prints the counts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--splits", type=int, default=1_000_000)
    options.add_argument("--encode", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began = time.process_time()
    counts = count_leaks(redact(), given.splits, given.encode, given.seed)
    seconds = round(time.process_time() - began, 1)
    print(json.dumps({**counts, "cpu_seconds": seconds}))  # noqa: T201


if __name__ == "__main__":
    main()
