"""What a run of many requests showed: how many, their leaves, and each kind of loss once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lab.fidelity.compare import Body, Loss, WireTable, compare


@dataclass
class Figures:
    """What a run showed.

    Attributes:
        requests: how many were drawn.
        leaves: how many leaves of them were compared.
        silent: pattern of a pointer -> the first silent loss there, and its request.
        reported: pattern of a pointer and the reason of the report -> how often.
        refused: reason -> the first request that was refused for it.
        refusals: how many requests were refused, with an error that says why.
    """

    requests: int = 0
    leaves: int = 0
    silent: dict[str, tuple[Loss, Body]] = field(default_factory=dict)
    reported: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: dict[str, Body] = field(default_factory=dict)
    refusals: int = 0


def measure(table: WireTable, bodies: Iterable[Body]) -> Figures:
    """Compares every request with itself, decoded and built again."""
    figures = Figures()
    for body in bodies:
        add(figures, table, body)
    return figures


def add(figures: Figures, table: WireTable, body: Body) -> None:
    """Compares one request and counts what it showed."""
    outcome = compare(table, body)
    figures.requests += 1
    figures.leaves += outcome.leaves
    if outcome.error is not None:
        figures.refusals += 1
        figures.refused.setdefault(outcome.error.message, body)
    for loss in outcome.silent:
        figures.silent.setdefault(loss.pattern, (loss, body))
    for loss, reason in outcome.reported:
        key = (loss.pattern, reason)
        figures.reported[key] = figures.reported.get(key, 0) + 1


def described(figures: Figures) -> str:
    """The silent losses and refusals, one a line with its request."""
    lines: list[str] = []
    for pattern, (loss, body) in figures.silent.items():
        lines.append(f"{pattern}: {loss.sent!r} -> {loss.built!r} in {_short(body)}")
    for reason, body in figures.refused.items():
        lines.append(f"refused: {reason}: {_short(body)}")
    return "\n".join(lines)


def _short(body: Any) -> str:
    return msgspec.json.encode(body).decode()[:400]
