"""Whether this is the thorough run, `nox -s thorough`, which is a step of `.ci/run`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Final, TypeVar

Case = TypeVar("Case")

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
"""Of hypothesis; tests without hypothesis try more under `thorough`, too."""
THOROUGH: Final = PROFILE == "thorough"


def some(cases: Sequence[Case], one_of: int, seed: object) -> Sequence[Case]:
    """One of so many of the cases, in their order; all of them in the thorough run.

    For products, such as all recordings on all wires: chosen anew for each recording, every wire
    still reads many of every other wire.

    Args:
        seed: chooses them, by its text: the same ones each time.
    """
    if THOROUGH:
        return cases
    count = -(-len(cases) // one_of)
    chosen = random.Random(str(seed)).sample(range(len(cases)), count)
    return [cases[number] for number in sorted(chosen)]
