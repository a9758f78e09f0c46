"""The small form of `python -m lab.websocket`."""

from __future__ import annotations

import pytest

from lab.websocket.garbage import garbage
from lab.websocket.replays import EXPECTED, replay
from lab.websocket.storm import storm
from tests.support.websocket_scripts import conversations, received

pytestmark = pytest.mark.anyio


async def test_derived_conversations_are_replayed() -> None:
    for name, conversation in conversations().items():
        played = await replay(name, conversation)
        assert (played.texts, played.ends) == EXPECTED[name], name
        assert played.problems == [], name
        expected = "response_not_found" if name == "steer-failed" else None
        assert played.refused == expected, name


async def test_a_socket_lost_at_any_frame_ends_every_lane(anyio_backend: str) -> None:
    for name, conversation in conversations().items():
        count = len(received(conversation))
        step = 4 if anyio_backend == "asyncio" else 7
        for cut in range(0, count, step):
            played = await replay(name, conversation, cut)
            assert played.problems == [], (name, cut)
            lost = [end for end in played.ends if end is not None]
            assert lost or played.refused, (name, cut)


async def test_readers_that_come_and_go_leave_each_lane_complete() -> None:
    result = await storm(16)
    assert result["problems"] == []
    assert result["completed"] > 3
    assert result["cancelled"] > 3


async def test_garbage_of_a_server_ends_each_response_once() -> None:
    ends = await garbage(10)
    assert {"malformed", "truncated"} <= ends.keys()
