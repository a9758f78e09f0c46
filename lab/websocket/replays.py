"""Replays of the derived conversations by a client and a scripted server, on one event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import anyio.lowlevel

from streamlib import (
    Completed,
    Failed,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    StreamError,
    ToolSpec,
    user,
)
from streamlib.client.retry import RetryPolicy
from streamlib.client.websocket import Connection, LaneStream
from streamlib.client.websocket.lane_source import SuccessorSource
from streamlib_parsers.events import ResponseEvent
from tests.support.websocket_scripts import EXPECT, Drop, as_script, connected, scripted_socket

ONCE: Final = {"retry": RetryPolicy(retries=0)}
LOOKUP: Final = ToolSpec("lookup", None, {})


class Replay:
    """What one conversation gave.

    Attributes:
        streams: every stream, in the order in which they were asked for.
        events: of each stream, its terminal event included.
        refused: code of the error that a call raised, not a stream.
        problems: broken promises.
    """

    def __init__(self) -> None:
        self.streams: list[LaneStream] = []
        self.events: list[list[ResponseEvent]] = []
        self.refused: str | None = None
        self.problems: list[str] = []

    async def read(
        self,
        stream: LaneStream,
        on_event: Callable[[ResponseEvent], Awaitable[None]] | None = None,
    ) -> LaneStream:
        """Reads a stream to its end, which must be exactly one terminal event."""
        events: list[ResponseEvent] = []
        self.streams.append(stream)
        self.events.append(events)
        async with stream:
            async for event in stream:
                events.append(event)
                if on_event is not None:
                    await on_event(event)
        self._check(stream, events)
        return stream

    def _check(self, stream: LaneStream, events: list[ResponseEvent]) -> None:
        ends = [event for event in events if isinstance(event, Completed | Failed)]
        if len(ends) != 1 or events[-1] is not ends[0]:
            self.problems.append(f"{len(ends)} terminal events")
        if [event.seq for event in events] != list(range(len(events))):
            self.problems.append("seq has gaps")
        if isinstance(ends[-1], Failed) and stream.response.status == "completed":
            self.problems.append("failed and completed")

    @property
    def texts(self) -> list[str]:
        """The text of each response."""
        return [stream.response.text for stream in self.streams]

    @property
    def ends(self) -> list[str | None]:
        """The code of each failure, None where a response was completed."""
        ends: list[str | None] = []
        for events in self.events:
            last = events[-1]
            ends.append(last.error.code or last.error.kind if isinstance(last, Failed) else None)
        return ends


Player = Callable[[Connection, Replay], Awaitable[None]]


async def _connection_limit(connection: Connection, replay: Replay) -> None:
    await replay.read(connection.stream("x", errors="event"))


async def _continue(connection: Connection, replay: Replay) -> None:
    first = await replay.read(connection.stream("Say one.", errors="event"))
    history = [user("Say one."), *first.response.items, user("And two.")]
    await replay.read(connection.stream(history, errors="event"))


async def _not_found(connection: Connection, replay: Replay) -> None:
    known = Prompt("And two.", extra={"previous_response_id": "resp_gone"})
    await replay.read(connection.stream(known, errors="event"))
    await replay.read(connection.stream([user("Say one."), user("And two.")], errors="event"))


async def _steer_failed(connection: Connection, replay: Replay) -> None:
    try:
        await connection.steer("resp_x", "hi")
    except StreamError as error:
        replay.refused = error.code


async def _steer(connection: Connection, replay: Replay) -> None:
    stream = connection.stream("Draft.", errors="event")

    async def on_event(event: ResponseEvent) -> None:
        if isinstance(event, OutputTextDelta) and event.delta == "draft":
            replay.refused = await _steering(stream, "Keep it short.")

    await replay.read(stream, on_event)
    if stream.response.status != "failed":
        await replay.read(stream.successor())


async def _pending(connection: Connection, replay: Replay) -> None:
    history = [user("Look it up.")]
    stream = connection.stream(Prompt(history, tools=[LOOKUP]), errors="event")

    async def on_event(event: ResponseEvent) -> None:
        if isinstance(event, OutputItemDone):
            replay.refused = await _steering(stream, "Be brief.")

    await replay.read(stream, on_event)
    if stream.response.status == "failed":
        return
    history.extend(stream.response.items)
    history.extend(call.output("42") for call in stream.response.calls)
    await replay.read(connection.stream(Prompt(history, tools=[LOOKUP]), errors="event"))


async def _steering(stream: LaneStream, text: str) -> str | None:
    """Steers; returns the code of a refusal."""
    try:
        await stream.steer(text)
    except StreamError as error:
        return error.code
    return None


async def _two_lanes(connection: Connection, replay: Replay) -> None:
    async with anyio.create_task_group() as group:
        planner = connection.stream("Draft a plan.", lane="planner", errors="event")
        group.start_soon(replay.read, planner)
        while planner.source.turn is None and planner.source.sent is False:
            await anyio.lowlevel.checkpoint()
        research = connection.stream("List risks.", lane="research", errors="event")
        group.start_soon(replay.read, research)


PLAYERS: Final[dict[str, Player]] = {
    "connection-limit": _connection_limit,
    "continue-with-previous-response-id": _continue,
    "dropped-mid-answer": _connection_limit,
    "previous-response-not-found_then-full": _not_found,
    "steer-failed": _steer_failed,
    "steer-pending_then-required-input": _pending,
    "steer": _steer,
    "two-lanes-interleaved": _two_lanes,
}
"""What the client of each conversation does."""

EXPECTED: Final[dict[str, tuple[list[str], list[str | None]]]] = {
    "connection-limit": ([""], ["websocket_connection_limit_reached"]),
    "continue-with-previous-response-id": (["One", "Two"], [None, None]),
    "dropped-mid-answer": (["Half"], ["websocket_1006"]),
    "previous-response-not-found_then-full": (["", "Two"], ["previous_response_not_found", None]),
    "steer-failed": ([], []),
    "steer-pending_then-required-input": (["", "42."], [None, None]),
    "steer": (["Long draft", "Short."], [None, None]),
    "two-lanes-interleaved": (["Plan: build.", "Risk: none."], [None, None]),
}
"""Texts and ends of each, which follow from the frames that are named in it."""


async def replay(name: str, conversation: list[dict[str, Any]], cut: int | None = None) -> Replay:
    """Plays a conversation.

    Args:
        name: which.
        conversation: its lines.
        cut: the connection is lost before so many messages of the server; None: it is whole.
    """
    script = as_script(conversation)
    if name == "dropped-mid-answer":
        script.append(Drop())
    if cut is not None:
        script = _cut(script, cut)
    played = Replay()
    # After a loss every further request is lost, too.
    async with (
        scripted_socket(script, [EXPECT, Drop()]) as server,
        connected(server.url, client={**ONCE, "errors": "event"}) as connection,
    ):
        with anyio.fail_after(5):
            if cut is None:
                await PLAYERS[name](connection, played)
            else:
                await _play_lost(name, connection, played)
        creates = [sent for sent in server.messages if sent["type"] == "response.create"]
        asked = [one for one in played.streams if not isinstance(one.source, SuccessorSource)]
        if len(creates) > len(asked):
            played.problems.append("a request was repeated")
    return played


async def _play_lost(name: str, connection: Connection, played: Replay) -> None:
    """Plays with a connection that is lost: later calls may fail, and must do so by themselves."""
    try:
        await PLAYERS[name](connection, played)
    except StreamError as error:
        played.refused = error.code or error.kind


def _cut(script: list[Any], cut: int) -> list[Any]:
    """The script up to so many messages of the server, then a lost connection."""
    left = cut
    kept: list[Any] = []
    for step in script:
        if isinstance(step, dict):
            if left == 0:
                break
            left -= 1
        kept.append(step)
    return [*kept, Drop()]
