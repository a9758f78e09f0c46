"""How much a model may think, in the words its wire takes: a level for tokens, and the nearest level where one is not taken."""

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
"""Levels, least first, with the tokens each stands for, whichever of the two a wire takes. More than the last is `max`, too."""


def level(asked: ReasoningOptions) -> str | None:
    """The level asked for; of a budget the first that gives as many tokens, of neither None."""
    if asked.effort is not None or asked.budget is None:
        return asked.effort
    return next((name for name, tokens in BUDGETS.items() if tokens >= asked.budget), "max")


def nearest(wanted: str, allowed: tuple[str, ...]) -> str | None:
    """The allowed level that is nearest, the lower of two; `off` is below them all. None where no level is allowed."""
    order = ("off", *BUDGETS)
    return min(
        allowed,
        key=lambda name: (abs(order.index(name) - order.index(wanted)), order.index(name)),
        default=None,
    )
