"""The long forms of the tests of invariants, about ten minutes.

    python -m pytest -m slow tests/properties/test_invariants_long.py -rP

1,000,000 partitions, 500,000 hostile inputs, 200,000 truncations: no difference, no undocumented
exception, no false completion. Every run has new inputs, unless STREAMLIB_SEED is set. A failure
prints a test that reproduces it.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from streamlib.testing.fuzz_targets import find_target
from streamlib.testing.fuzzing import Campaign, reproducer
from streamlib.testing.invariants import log
from streamlib.testing.responses import random_response
from streamlib.wires.encoders import encode_all
from streamlib_parsers import Completed
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.invariants import OURS, content_of, events_of, is_false_completion, wire_of
from tests.support.partitions import every_single_split, random_partitions
from tests.support.shared import STREAMS, WIRES, recordings

SEED: Final = int(os.environ.get("STREAMLIB_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
SPLIT_RUNS: Final = 1_000_000
HOSTILE_INPUTS: Final = 500_000
TRUNCATIONS: Final = 200_000

pytestmark = pytest.mark.slow


def report(figures: str) -> None:
    """Prints the figures of this run; `pytest -rP` shows them."""
    sys.stdout.write(f"{figures}; STREAMLIB_SEED={SEED}\n")


def bodies() -> Iterator[tuple[Any, bytes]]:
    """Our recordings, the corpus if present, then generated streams without end."""
    yield from ((wire_of(path), path.read_bytes()) for path in OURS)
    for folder in sorted(WIRES):
        for recording in recordings(folder, STREAMS):
            yield recording.wire, recording.body
    rng = random.Random(SEED)
    while True:
        wire_api = rng.choice(WIRE_APIS)
        yield (
            wire_api,
            encode_all(wire_api, random_response(rng, wire_api, failing=rng.random() < 0.2)),
        )


def test_invariant_1_a_million_partitions() -> None:
    """Generated streams and recordings up to 2 KB at every offset, the others at random."""
    runs = counted = 0
    for wire_api, body in bodies():
        reference = log(events_of(wire_api, [body]))
        if len(body) <= 2_000:
            several = every_single_split(body)
        else:
            several = random_partitions(body, 8, seed=SEED)
        for chunks in several:
            runs += 1
            assert log(events_of(wire_api, chunks)) == reference, (
                wire_api,
                body,
                [len(chunk) for chunk in chunks],
            )
        counted += 1
        if runs >= SPLIT_RUNS:
            break
    report(f"invariant 1: {counted:,} bodies, {runs:,} partitions, 0 differences")


def test_invariants_2_7_9_half_a_million_hostile_inputs() -> None:
    """Generated and mutated streams of every wire, at once and split at random.

    Items are bracketed, text is valid, errors are documented.
    """
    outcomes: list[str] = []
    for n, name in enumerate(WIRE_APIS):
        campaign = Campaign(find_target(name), seed=SEED + n, splits=1)
        rng = random.Random(SEED + n)
        pool = [
            path.read_bytes()
            for path in OURS
            if wire_of(path) == name and path.stat().st_size < 4_000
        ]
        while campaign.executions < -(-HOSTILE_INPUTS // len(WIRE_APIS)):
            campaign.try_body(_hostile(campaign, pool, rng), rng)
            assert campaign.finding is None, reproducer(campaign.finding)
        outcomes.append(f"{name} {campaign.executions:,} ({campaign.kinds:,} kinds of outcome)")
    report(f"invariants 2, 7, 9: {', '.join(outcomes)}: 0 violations")


def _hostile(campaign: Campaign, pool: list[bytes], rng: random.Random) -> bytes:
    body = campaign.target.seed(rng) if not pool or rng.random() < 0.9 else rng.choice(pool)
    return campaign.target.change(body, rng)[:8_000]


def test_invariant_3_two_hundred_thousand_truncations() -> None:
    """Our recordings, the smaller ones of the corpus and generated streams, at every byte."""
    truncations = counted = 0
    for wire_api, body in bodies():
        if len(body) > 6_000:
            continue
        events = events_of(wire_api, [body])
        if not isinstance(events[-1], Completed):
            continue
        complete = content_of(events)
        for offset in range(len(body)):
            truncations += 1
            assert not is_false_completion(wire_api, body, offset, complete), (
                wire_api,
                offset,
                body,
            )
        counted += 1
        if truncations >= TRUNCATIONS:
            break
    report(f"invariant 3: {counted:,} bodies, {truncations:,} truncations, 0 false completions")


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_invariant_3_recordings_truncated_at_every_byte(path: Path) -> None:
    body = path.read_bytes()
    complete = content_of(events_of(wire_of(path), [body]))
    wrong = [
        offset
        for offset in range(len(body))
        if is_false_completion(wire_of(path), body, offset, complete)
    ]
    assert wrong == []
