"""What one run of the proof came to, and what other commands left: small JSON documents.

Mutation testing and coverage-guided fuzzing take longer than the proof may. Their commands write `tests/proof/quoted/NAME.json`:

    {"command": "python -m …", "date": "2026-11-22", "figures": {"mutants": 1234, "killed, %": 96.2}, "notes": ["survivor …"]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

QUOTED: Final = Path(__file__).with_name("quoted")


@dataclass(frozen=True)
class Result:
    """Of one promise: what was counted, how long it took, how its tests ended, and what is to be said."""

    counted: dict[str, list[float]]
    seconds: float = 0.0
    outcome: str = ""
    failed: tuple[str, ...] = ()
    command: str = ""
    date: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)


def quoted(name: str) -> Result:
    """The last run of another command; empty where there was none."""
    path = QUOTED / f"{name}.json"
    if not path.exists():
        return Result({}, outcome="not run yet")
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    counted = {key: [float(value)] for key, value in told["figures"].items()}
    return Result(counted, outcome="quoted", command=told["command"], date=told["date"], notes=tuple(told.get("notes", ())))
