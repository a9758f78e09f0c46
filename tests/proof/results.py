"""What the proof came to, promise by promise, as JSON beside this file: the page is made of it, so that a part can be measured anew.

Mutation testing and coverage-guided fuzzing take longer than the proof may. Their commands write `tests/proof/quoted/NAME.json`:

    {"command": "python -m …", "date": "2026-11-22", "figures": {"mutants": 1234, "killed, %": 96.2}, "notes": ["survivor …"]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

QUOTED: Final = Path(__file__).with_name("quoted")
MEASURED: Final = Path(__file__).with_name("measured.json")


@dataclass(frozen=True)
class Counted:
    """All lines of one figure."""

    sum: float
    max: float
    min: float


def counted(figures: Mapping[str, list[float]]) -> dict[str, Counted]:
    """The lines of each figure as what a demand asks of them."""
    return {
        name: Counted(sum(values), max(values), min(values)) for name, values in figures.items()
    }


@dataclass(frozen=True)
class Result:
    """Of one promise: what was counted, how long it took, how its tests ended, where and when, and what is to be said."""

    figures: dict[str, Counted]
    seconds: float = 0.0
    outcome: str = "not run yet"
    failed: tuple[str, ...] = ()
    run: str = ""
    """When, on what."""
    command: str = ""
    notes: tuple[str, ...] = ()


def quoted(name: str) -> Result:
    """The last run of another command; empty where there was none."""
    path = QUOTED / f"{name}.json"
    if not path.exists():
        return Result({})
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = counted({key: [float(value)] for key, value in told["figures"].items()})
    return Result(
        found,
        outcome="quoted",
        command=told["command"],
        run=told["date"],
        notes=tuple(told.get("notes", ())),
    )


def known(promises: Iterable[tuple[int, str | None]]) -> dict[int, Result]:
    """What was measured before, and what other commands left since: (number, name of what is quoted)."""
    return load() | {number: quoted(name) for number, name in promises if name}


def load() -> dict[int, Result]:
    """What was measured before."""
    told: dict[str, Any] = (
        json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    )
    return {int(number): _result(values) for number, values in told.items()}


def _result(values: dict[str, Any]) -> Result:
    found = {name: Counted(**figure) for name, figure in values.pop("figures").items()}
    return Result(
        found,
        **{
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        },
    )


def save(results: Mapping[int, Result]) -> None:
    """All of them, in the order of their numbers."""
    told = {str(number): asdict(results[number]) for number in sorted(results)}
    MEASURED.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
