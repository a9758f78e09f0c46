"""The long forms of the laws, which count: `python -m pytest -m slow tests/properties/test_invariants_long.py -rP`, some ten minutes.

    1,000,000 readings of cut bodies, 500,000 hostile inputs, 200,000 truncations: no difference, no foreign exception, no false end

Every run has other inputs than the last one, unless STREAMLIB_SEED says which. What breaks is printed as the test that shows it.
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
from tests.support.invariants import OURS, cut_falsely, events_of, said, wire_of
from tests.support.partitions import every_single_cut, random_partitions
from tests.support.shared import STREAMS, WIRES, recordings

SEED: Final = int(os.environ.get("STREAMLIB_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
SPLIT_RUNS: Final = 1_000_000
HOSTILE_INPUTS: Final = 500_000
TRUNCATIONS: Final = 200_000

pytestmark = pytest.mark.slow


def tell(figures: str) -> None:
    """Figures of this run; `pytest -rP` shows them."""
    sys.stdout.write(f"{figures}; STREAMLIB_SEED={SEED}\n")


def bodies() -> Iterator[tuple[Any, bytes]]:
    """Our recordings, the corpus where it is, then generated streams without end."""
    yield from ((wire_of(path), path.read_bytes()) for path in OURS)
    for folder in sorted(WIRES):
        yield from ((one.wire, one.body) for one in recordings(folder, STREAMS))
    rng = random.Random(SEED)
    while True:
        wire_api = rng.choice(WIRE_APIS)
        yield (
            wire_api,
            encode_all(wire_api, random_response(rng, wire_api, failing=rng.random() < 0.2)),
        )


def test_invariant_1_a_million_partitions() -> None:
    """Generated streams and recordings under 2 KB at every place, the others at random."""
    runs = counted = 0
    for wire_api, body in bodies():
        whole = log(events_of(wire_api, [body]))
        several = (
            every_single_cut(body) if len(body) <= 2_000 else random_partitions(body, 8, seed=SEED)
        )
        for chunks in several:
            runs += 1
            assert log(events_of(wire_api, chunks)) == whole, (
                wire_api,
                body,
                [len(chunk) for chunk in chunks],
            )
        counted += 1
        if runs >= SPLIT_RUNS:
            break
    tell(f"law 1: {counted:,} bodies, {runs:,} readings of cut ones, 0 differences")


def test_invariants_2_7_9_half_a_million_hostile_inputs() -> None:
    """Generated and mutated streams of every wire, each whole and cut at random: brackets, valid text, only our errors."""
    told = []
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
        told.append(f"{name} {campaign.executions:,} ({campaign.kinds:,} kinds of outcome)")
    tell(f"laws 2, 7, 9: {', '.join(told)}: 0 broken")


def _hostile(campaign: Campaign, pool: list[bytes], rng: random.Random) -> bytes:
    body = campaign.target.seed(rng) if not pool or rng.random() < 0.9 else rng.choice(pool)
    return campaign.target.change(body, rng)[:8_000]


def test_invariant_3_two_hundred_thousand_truncations() -> None:
    """Every recording of ours at every byte, the smaller ones of the corpus at every byte, generated streams at every byte."""
    cuts = counted = 0
    for wire_api, body in bodies():
        if len(body) > 6_000:
            continue
        events = events_of(wire_api, [body])
        if not isinstance(events[-1], Completed):
            continue
        whole = said(events)
        for place in range(len(body)):
            cuts += 1
            assert not cut_falsely(wire_api, body, place, whole), (wire_api, place, body)
        counted += 1
        if cuts >= TRUNCATIONS:
            break
    tell(f"law 3: {counted:,} bodies, {cuts:,} truncations, 0 false ends")


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_invariant_3_recordings_truncated_at_every_byte(path: Path) -> None:
    body = path.read_bytes()
    whole = said(events_of(wire_of(path), [body]))
    assert not [
        place for place in range(len(body)) if cut_falsely(wire_of(path), body, place, whole)
    ]
