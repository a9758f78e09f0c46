"""Many tasks on one connection that stop reading, are cancelled or close early, at random."""

from __future__ import annotations

import random
from typing import Any

import anyio

from streamlib import Completed, Failed, StreamError
from streamlib.client.websocket import Connection
from streamlib.testing import Behaviour, running
from streamlib_parsers.events import ResponseEvent
from tests.support.websocket_scripts import connected

HANG_SECONDS = 30
"""A storm that lasts this long, and a second more for each response, hangs."""


class _Storm:
    """What happened so far."""

    def __init__(self, connection: Connection, seed: int) -> None:
        self.connection = connection
        self.drawn = random.Random(seed)
        self.counts = {"completed": 0, "cancelled": 0}
        self.problems: list[str] = []

    async def talk(self, number: int) -> None:
        """One response, which is read, left, cancelled or closed by another task."""
        lane = f"lane{number % 8}"
        text = f"word{number} " * self.drawn.randint(1, 12)
        stream = self.connection.stream(text, lane=lane, errors="event")
        action = self.drawn.choice(["read", "read", "leave", "cancel", "close", "pause"])
        events: list[ResponseEvent] = []
        scope = anyio.CancelScope()
        last = self.drawn.randint(1, 8)
        with scope:
            async with anyio.create_task_group() as group, stream:
                async for event in stream:
                    events.append(event)
                    if len(events) != last:
                        continue
                    if action == "leave":
                        break
                    if action == "cancel":
                        scope.cancel()
                    if action == "close":
                        group.start_soon(stream.aclose)
                    if action == "pause":
                        await anyio.sleep(0.005)
        self._check(text, stream.response.text, action, [*events, *stream.rest()])

    def _check(self, text: str, answer: str, action: str, events: list[ResponseEvent]) -> None:
        ends = [event for event in events if isinstance(event, Completed | Failed)]
        if len(ends) != 1 or events[-1] is not ends[0]:
            self.problems.append(f"{action}: {len(ends)} ends")
            return
        if isinstance(ends[0], Completed):
            self.counts["completed"] += 1
            if f"You said: {text}".strip() not in answer:
                self.problems.append(f"another response: {answer[:40]!r}")
        elif ends[0].error.kind == "cancelled":
            self.counts["cancelled"] += 1
        else:
            self.problems.append(f"{action}: {ends[0].error.kind}: {ends[0].error.message}")


async def storm(count: int, seed: int = 18) -> dict[str, Any]:
    """So many responses on one connection. Returns counts and what went wrong."""
    async with running(Behaviour(pace=0.0)) as url, connected(url + "/v1") as connection:
        storms = _Storm(connection, seed)
        try:
            with anyio.fail_after(HANG_SECONDS + count):
                async with anyio.create_task_group() as group:
                    for number in range(count):
                        group.start_soon(storms.talk, number)
                        if number % 10 == 9:
                            await anyio.sleep(0.002)
        except TimeoutError:
            storms.problems.append("it hangs")
        except StreamError as error:
            storms.problems.append(str(error))
    return {**storms.counts, "problems": storms.problems}
