"""Runs of the form that `streamlib.web` takes, made of any events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio

from streamlib.request.prompt import Prompt
from streamlib.testing import echo_response
from streamlib_parsers import accumulate


async def _until(is_true: Callable[[], object]) -> None:
    """Waits for what happens elsewhere, and tells nobody."""
    while not is_true():  # noqa: ASYNC110  # there is no event to wait for
        await anyio.sleep(0.005)


class Run:
    """A run of the agreed form: entered, iterated, with `response`.

    Args:
        *events: what it gives. An exception is raised; a number is waited for, in seconds; a
            function is asked until it returns something true.
    """

    def __init__(self, *events: Any) -> None:
        self._events = events
        self.response = accumulate(echo_response(Prompt("hi")))
        self.closed = False

    async def __aenter__(self) -> AsyncIterator[Any]:
        async def each() -> AsyncIterator[Any]:
            for event in self._events:
                if isinstance(event, Exception):
                    raise event
                if isinstance(event, float):
                    await anyio.sleep(event)
                elif callable(event):
                    await _until(event)
                else:
                    yield event

        return each()

    async def __aexit__(self, *_: object) -> None:
        self.closed = True
