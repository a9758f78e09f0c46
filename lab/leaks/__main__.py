"""Counts the secrets that are read behind `replace`, as JSON: `python -m lab.leaks`.

--splits 1000000    texts that are split at random, over 200 secrets
--encode 50         every how many responses a log and all encoders write, too
--every-split       200 texts, each in every way in which it can be split; nothing else
--seed 1
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from random import Random
from typing import Any

from lab.leaks.every_split import outputs_of
from lab.leaks.places import ENCODERS, quick_places, written_places
from lab.leaks.streams import PATTERNS, hidden, response, secrets, text_with
from streamlib.pipeline.patterns import Replacer, read_pattern
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
        encode: every how many responses are written to a log, and by all encoders.
        seed: of the random numbers.
    """
    random = Random(seed)
    every = secrets(SECRETS, random)
    leaks: Counter[str] = Counter()
    encoded = 0
    responses = -(-splits // TEXTS)
    for number in range(responses):
        secret = every[number % SECRETS]
        events = through(response(text_with(secret, random), hidden(secret), random), stage)
        places = quick_places(events, hidden(secret))
        if number % encode == 0:
            encoded += 1
            places += written_places(events, hidden(secret))
        leaks.update(places)
    return {
        "secrets": SECRETS,
        "splits": responses * TEXTS,
        "encoded": encoded,
        "encoders": len(ENCODERS),
        "leaks": dict(leaks),
    }


def count_every_split(seed: int, texts: int = SECRETS) -> dict[str, Any]:
    """Splits texts in every way: the fewest splits of one, and how many let out a secret.

    Args:
        seed: of the random numbers.
        texts: how many, each with a secret of its own.
    """
    random = Random(seed)
    searches = [read_pattern(pattern) for pattern in PATTERNS]
    leaks = differing = states = 0
    fewest = math.inf
    for secret in secrets(texts, random):
        text = text_with(secret, random)
        every = outputs_of(Replacer(searches, "[secret]"), text, searches)
        leaks += sum(ways for output, ways in every.outputs.items() if hidden(secret) in output)
        differing += len(every.outputs) - 1
        states = max(states, every.states)
        fewest = min(fewest, sum(every.outputs.values()))
    return {
        "texts": texts,
        "fewest_splits": fewest,
        "states": states,
        "differing": differing,
        "leaks": leaks,
    }


def main() -> None:
    """Reads the options, and prints the counts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--splits", type=int, default=1_000_000)
    options.add_argument("--encode", type=int, default=50)
    options.add_argument("--every-split", action="store_true")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began = time.process_time()
    if given.every_split:
        counts = count_every_split(given.seed)
    else:
        counts = count_leaks(redact(), given.splits, given.encode, given.seed)
    seconds = round(time.process_time() - began, 1)
    print(json.dumps({**counts, "cpu_seconds": seconds}))  # noqa: T201


if __name__ == "__main__":
    main()
