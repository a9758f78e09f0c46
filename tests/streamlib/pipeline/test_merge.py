"""Several streams as one: names, turns, failures, and what is closed."""

from __future__ import annotations

import anyio
import pytest

from streamlib.pipeline.sharing import merge
from streamlib_parsers.events import Failed, OutputTextDelta
from streamlib_parsers.stream_error import StreamError
from tests.streamlib.pipeline.test_starts import BUSY, Scripted, answer

pytestmark = pytest.mark.anyio


async def test_merge_gives_the_events_of_each_in_their_order() -> None:
    streams = {name: Scripted(*answer(name)) for name in ("one", "two", "three")}
    async with merge(streams) as pairs:
        seen = [pair async for pair in pairs]
    for name in streams:
        assert [event for of, event in seen if of == name] == answer(name)
    assert all(stream.is_closed for stream in streams.values())


async def test_merge_takes_turns_where_several_have_arrived() -> None:
    streams = {"fast": Scripted(*answer("x" * 50)), "slow": Scripted(*answer("yy"))}
    async with merge(streams) as pairs:
        await anyio.wait_all_tasks_blocked()
        names = [name async for name, _ in pairs]
    assert [set(names[place : place + 2]) for place in range(0, 8, 2)] == [{"fast", "slow"}] * 4


@pytest.mark.parametrize("failure", [StreamError(BUSY), Failed(BUSY)], ids=["raised", "event"])
async def test_stream_that_fails_ends_as_an_event(failure: object) -> None:
    streams = {"bad": Scripted(*answer("bad")[:3], failure), "good": Scripted(*answer("good"))}
    async with merge(streams) as pairs:
        seen = [pair async for pair in pairs]
    assert [event for name, event in seen if name == "bad"][-1] == Failed(BUSY)
    assert [event for name, event in seen if name == "good"] == answer("good")


async def test_other_exceptions_are_the_reader_s() -> None:
    streams = {"bug": Scripted(*answer("x")[:2], KeyError("bug")), "good": Scripted(30)}
    with anyio.fail_after(5):
        async with merge(streams) as pairs:
            with pytest.raises(KeyError):
                [pair async for pair in pairs]
    assert all(stream.is_closed for stream in streams.values())


async def test_merge_reads_at_most_so_far_ahead() -> None:
    stream = Scripted(*answer("x" * 500))
    async with merge({"a": stream}, ahead=10) as pairs:
        await anyio.wait_all_tasks_blocked()
        assert stream.given <= 11
        assert len([pair async for pair in pairs]) == 505


async def test_leaving_the_block_closes_every_stream() -> None:
    streams = {number: Scripted(*answer("abc"), 30) for number in range(5)}
    with anyio.fail_after(5):
        async with merge(streams) as pairs:
            async for _, event in pairs:
                if isinstance(event, OutputTextDelta):
                    break
    assert all(stream.is_closed for stream in streams.values())


async def test_merge_of_nothing_is_empty() -> None:
    async with merge({}) as pairs:
        assert [pair async for pair in pairs] == []


def test_merge_needs_room_for_an_event() -> None:
    with pytest.raises(ValueError, match="ahead"):
        merge({}, ahead=0)
