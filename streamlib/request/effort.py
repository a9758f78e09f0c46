"""How much a model may think: between levels and tokens, and to the nearest level a model takes."""

from __future__ import annotations

from typing import Final

from streamlib.request.prompt import ReasoningOptions

BUDGETS: Final = {
    "minimal": 1024,
    "low": 2048,
    "medium": 10_000,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""Levels, lowest first, with the tokens each stands for. More than the last is `max` too."""


def level(options: ReasoningOptions) -> str | None:
    """The level of the options.

    A budget gives the first level with as many tokens; options with neither give None.
    """
    if options.effort is not None or options.budget is None:
        return options.effort
    for name, tokens in BUDGETS.items():
        if tokens >= options.budget:
            return name
    return "max"


def nearest(wanted: str, allowed: tuple[str, ...]) -> str | None:
    """The allowed level nearest to the wanted one, the lower of two; None where none is allowed.

    `off` is below every level.
    """
    order = ("off", *BUDGETS)
    target = order.index(wanted)

    def distance(name: str) -> tuple[int, int]:
        index = order.index(name)
        return abs(index - target), index

    return min(allowed, key=distance, default=None)
