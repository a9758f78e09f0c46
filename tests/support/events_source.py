"""An async iterable of events that counts how often it was closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel

from streamlib import RunEvent

E_co = TypeVar("E_co", bound=RunEvent, covariant=True)


class EventsSource(Generic[E_co]):
    """Events one by one.

    A class, because a generator that stays suspended is a failure that tests look for.

    Args:
        events: what it sends.
        pause: seconds before each event.
        then: raised after the last one.
        stall: seconds of silence after the last one.
    """

    def __init__(
        self,
        events: Sequence[E_co],
        pause: float = 0.0,
        then: Exception | None = None,
        stall: float = 0.0,
    ) -> None:
        self.closed = 0
        self.sent = 0
        self._events = iter(events)
        self._pause = pause
        self._then = then
        self._stall = stall

    def __aiter__(self) -> EventsSource[E_co]:
        return self

    async def __anext__(self) -> E_co:
        await anyio.sleep(self._pause)
        for event in self._events:
            self.sent += 1
            return event
        await anyio.sleep(self._stall)
        if self._then is not None:
            raise self._then
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed += 1
