"""Asks the gateway with every SDK while its targets fail, and makes the tables of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import anyio

from lab.gateway_failures.sdks import SDKS, Ask, library_of, seen
from lab.gateway_failures.streaming_asgi import StreamingASGI
from lab.gateway_failures.targets import FAILURES, ONE, TWO, Failing, Failure
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from tests.support.virtual_time import JumpingLoop

ROUTES: Final = {"one": ONE, "two": TWO}
MODES: Final = {"streaming": True, "whole": False}
HEADS: Final = {"one": "the only target", "two": "the first of two targets"}
RULE: Final = "|---|---|"


async def cell(failure: Failure, route: RouteRule, ask: Ask, *, stream: bool) -> str:
    """What a client of an SDK sees, and when."""
    library = library_of(ask)
    # Without jitter the time of a cell is the same in each run.
    options: dict[str, Any] = {"http": Failing(failure), "jitter": lambda: 0.0}
    async with (
        Gateway(RouteTable([route]), client=options) as served,
        library.AsyncClient(transport=StreamingASGI(gateway(served), library)) as http,
    ):
        return await seen(ask, http, stream)


async def _rows(route: RouteRule, sdks: Sequence[str]) -> list[str]:
    rows: list[str] = []
    for failure in FAILURES:
        for mode, stream in MODES.items():
            cells = [await cell(failure, route, SDKS[name], stream=stream) for name in sdks]
            rows.append(f"| {failure.name} | {mode} | {' | '.join(cells)} |")
    return rows


def table(targets: str, sdks: Sequence[str] = tuple(SDKS)) -> str:
    """The table of a route with `one` or `two` targets.

    Args:
        targets: a key of `ROUTES`.
        sdks: its columns.
    """

    def rows() -> Any:
        return _rows(ROUTES[targets], sdks)

    found = anyio.run(rows, backend_options={"loop_factory": JumpingLoop})
    head = f"| {HEADS[targets]} | response | {' | '.join(sdks)} |"
    return "\n".join([head, RULE + "---|" * len(sdks), *found])


def columns(text: str, sdks: Sequence[str]) -> str:
    """Some columns of a table in Markdown, with its first two."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
    chosen = [0, 1, *(rows[0].index(name) for name in sdks)]
    kept = [f"| {' | '.join(row[index] for index in chosen)} |" for row in rows[:1] + rows[2:]]
    return "\n".join([kept[0], RULE + "---|" * len(sdks), *kept[1:]])
