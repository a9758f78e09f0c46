"""The states of a stream: every transition of the table, and each of them on a real stream."""

from __future__ import annotations

from itertools import product
from typing import Final

import anyio
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_state import (
    BUSY,
    ENDED,
    TRANSITIONS,
    StreamAction,
    StreamState,
    next_state,
)
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, OVERLOADED, START

URL: Final = "http://memory.example"

PATHS: Final[dict[StreamState, str]] = {
    StreamState.NEW: "",
    StreamState.UNUSED: "cancel",
    StreamState.READY: "enter",
    StreamState.CONNECTING: "enter wait",
    StreamState.READING: "enter wait deliver",
    StreamState.IDLE: "enter wait deliver resume",
    StreamState.STOPPING: "enter wait deliver close",
    StreamState.CANCELLING: "enter wait cancel",
    StreamState.CLOSED: "enter wait deliver close resume",
    StreamState.CANCELLED: "enter cancel",
}
"""The actions that lead from a new stream to each state."""

PAIRS: Final = list(product(StreamState, StreamAction))
"""Every state with every action."""

IGNORED: Final = {
    (state, action) for state in ENDED for action in (StreamAction.CLOSE, StreamAction.CANCEL)
} - {(StreamState.STOPPING, StreamAction.CANCEL)}
"""A stream that ended stays as it is when it is closed again."""


def test_state_table_has_a_row_for_each_state() -> None:
    assert TRANSITIONS.keys() == set(StreamState)


@each_case("state", StreamState)
def test_each_state_can_be_reached_from_a_new_stream(state: StreamState) -> None:
    reached = StreamState.NEW
    for action in PATHS[state].split():
        reached = next_state(reached, StreamAction(action))
    assert reached is state


@each_case("state, action", PAIRS)
def test_an_action_leads_to_the_next_state_or_raises(
    state: StreamState, action: StreamAction
) -> None:
    following = TRANSITIONS[state].get(action)
    if following is None:
        with pytest.raises(RuntimeError):
            next_state(state, action)
    else:
        assert next_state(state, action) is following


@each_case("state, action", PAIRS)
def test_an_action_keeps_to_the_meaning_of_states(state: StreamState, action: StreamAction) -> None:
    """The table agrees with what `BUSY` and `ENDED` mean."""
    following = TRANSITIONS[state].get(action)
    if (state, action) in IGNORED:
        assert following is state
    if following is None:
        return
    if state in ENDED:
        assert following in ENDED or action is StreamAction.ENTER
    if action in {StreamAction.CLOSE, StreamAction.CANCEL}:
        assert following in ENDED
        assert (following in BUSY) == (state in BUSY)
    if action is StreamAction.WAIT:
        assert state not in BUSY
        assert following in BUSY
    if action is StreamAction.RESUME:
        assert state in BUSY
        assert following not in BUSY


@each_case(
    "state, action, message",
    [
        (StreamState.NEW, StreamAction.WAIT, "async with"),
        (StreamState.UNUSED, StreamAction.WAIT, "async with"),
        (StreamState.IDLE, StreamAction.ENTER, "entered once"),
        (StreamState.CLOSED, StreamAction.ENTER, "entered once"),
        (StreamState.READING, StreamAction.WAIT, "another task"),
        (StreamState.CANCELLING, StreamAction.WAIT, "another task"),
        (StreamState.IDLE, StreamAction.DELIVER, "no task waits"),
        (StreamState.NEW, StreamAction.RESUME, "no task waits"),
    ],
)
def test_an_impossible_action_names_what_to_do(
    state: StreamState, action: StreamAction, message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        next_state(state, action)


# --- on a real stream ---


async def read_to_end(stream: ResponseStream) -> list[StreamState]:
    """Reads a stream; the state before the first event and after each."""
    states: list[StreamState] = []
    async with stream:
        states.append(stream._state)
        states += [stream._state async for _ in stream]
    return states


async def test_stream_is_closed_after_its_own_end() -> None:
    async with make_client(URL, MemoryTransport([MESSAGE])) as client:
        stream = client.stream(make_request(URL))
        assert (stream._state, repr(stream)) == (
            StreamState.NEW,
            "<ResponseStream messages new>",
        )
        first, *others = await read_to_end(stream)
        assert first is StreamState.READY
        assert set(others) == {StreamState.IDLE}
        assert (stream._state, repr(stream)) == (
            StreamState.CLOSED,
            "<ResponseStream messages closed>",
        )
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert stream._state is StreamState.CLOSED


async def test_stream_is_cancelled_when_left_before_its_end() -> None:
    async with make_client(URL, MemoryTransport([HELLO, 60.0])) as client:
        async with client.stream(make_request(URL)) as stream:
            await anext(stream)
            assert repr(stream) == "<ResponseStream messages open>"
        assert stream._state is StreamState.CANCELLED
        await stream.aclose()
        assert stream._state is StreamState.CANCELLED


async def test_stream_closed_before_it_is_entered_sends_nothing() -> None:
    memory = MemoryTransport([MESSAGE])
    async with make_client(URL, memory) as client:
        stream = client.stream(make_request(URL))
        await stream.aclose()
        assert stream._state is StreamState.UNUSED
        with pytest.raises(StreamError) as raised:
            await read_to_end(stream)
        assert raised.value.kind == "cancelled"
        assert stream._state is StreamState.CANCELLED
        assert memory.sent == []


async def test_stream_is_cancelling_while_its_reader_wakes() -> None:
    async with make_client(URL, MemoryTransport([START, 60.0]), errors="event") as client:
        stream = client.stream(make_request(URL))
        async with anyio.create_task_group() as group:
            group.start_soon(read_to_end, stream)
            while stream._state is not StreamState.READING:  # noqa: ASYNC110  # no event
                await anyio.sleep(0.001)
            closing: list[StreamState] = []

            async def close() -> None:
                await stream.aclose()

            group.start_soon(close)
            while stream._state is StreamState.READING:
                await anyio.lowlevel.checkpoint()
            closing.append(stream._state)
        assert closing[0] in {StreamState.CANCELLING, StreamState.CANCELLED}
        assert stream._state is StreamState.CANCELLED
        assert stream.response.status == "cancelled"


async def test_stream_is_connecting_until_events_are_delivered() -> None:
    """Only then may the request be sent again."""
    policy = RetryPolicy(retries=1, base=0.05, jitter=0.0)
    async with make_client(URL, MemoryTransport([OVERLOADED], [MESSAGE]), retry=policy) as client:
        stream = client.stream(make_request(URL))
        async with anyio.create_task_group() as group:
            group.start_soon(read_to_end, stream)
            while not stream.retried:  # noqa: ASYNC110  # no event
                await anyio.sleep(0.001)
            assert stream._state is StreamState.CONNECTING
        assert (stream._state, stream.response.text) == (StreamState.CLOSED, HELLO_TEXT)


async def test_stream_closed_in_the_pause_before_a_retry_stops() -> None:
    policy = RetryPolicy(retries=1, base=60.0, cap=60.0, jitter=0.0)
    memory = MemoryTransport([OVERLOADED], [MESSAGE])
    async with make_client(URL, memory, retry=policy, errors="event") as client:
        stream = client.stream(make_request(URL))
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(read_to_end, stream)
                while not stream.retried:  # noqa: ASYNC110  # no event
                    await anyio.sleep(0.001)
                await stream.aclose()
        assert stream._state is StreamState.CANCELLED
        assert len(memory.sent) == 1
