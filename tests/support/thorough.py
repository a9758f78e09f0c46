"""Whether this is the thorough run, `nox -s thorough`, which is a step of `.ci/run`."""

from __future__ import annotations

import os
from typing import Final

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
"""Of hypothesis; tests without hypothesis try more under `thorough`, too."""
THOROUGH: Final = PROFILE == "thorough"
