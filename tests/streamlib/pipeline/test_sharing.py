"""One stream for several readers: what a slow one gets, late ones, cancelled ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from streamlib.pipeline import coalesce, replace, share, tee
from streamlib.pipeline.branches import TeeReader
from streamlib_parsers.events import Completed, OutputTextDelta, ResponseEvent
from streamlib_parsers.stream_error import StreamError
from tests.streamlib.pipeline.test_starts import BUSY, Scripted, answer

pytestmark = pytest.mark.anyio

LONG = "x" * 1000


async def all_of(stream: Any) -> list[ResponseEvent]:
    return [event async for event in stream]


async def test_branch_is_a_stream() -> None:
    async with tee(Scripted(*answer("hello")), 2) as (one, two):
        assert "".join([text async for text in one.text()]) == "hello"
        assert one.response.text == "hello"
        batches = [batch async for batch in two.batches()]
        assert [event for batch in batches for event in batch] == answer("hello")


async def test_slow_branch_gets_joined_deltas() -> None:
    async with tee(Scripted(*answer(LONG)), 2, slow="coalesce", ahead=20) as (fast, slow):
        with anyio.fail_after(5):
            assert await all_of(fast) == answer(LONG)
        events = await all_of(slow)
    assert slow.response.text == LONG
    assert len(events) < 40
    assert [event.seq for event in events] == list(range(len(events)))


async def test_branch_that_cannot_be_joined_makes_the_source_wait() -> None:
    events = [OutputTextDelta(number % 2, 0, "x") for number in range(500)]
    source = Scripted(*events)
    async with tee(source, 2, slow="coalesce", ahead=20) as (fast, slow):
        with anyio.move_on_after(0.1):
            await all_of(fast)
        assert source.given <= 21
        await slow.aclose()


async def test_slow_branch_fails_and_the_other_goes_on() -> None:
    async with tee(Scripted(*answer(LONG)), 2, slow="fail", ahead=20) as (fast, slow):
        with anyio.fail_after(5):
            assert await all_of(fast) == answer(LONG)
        with pytest.raises(StreamError) as raised:
            await all_of(slow)
    assert (raised.value.info.kind, raised.value.info.code) == ("limit_exceeded", "slow_reader")
    assert raised.value.response is not None
    assert raised.value.response.text == LONG[: len(raised.value.response.text)] != ""


@pytest.mark.parametrize("is_shared", [False, True])
async def test_failure_of_a_branch_has_what_came_out_of_it(is_shared: bool) -> None:
    """Both had one exception, with the text of the branch that was read last."""
    failures: list[StreamError] = []

    async def read(stream: Any) -> None:
        try:
            async with stream as events:
                await all_of(events)
        except StreamError as error:
            failures.append(error)

    source = Scripted(*answer("a secret")[:-2], StreamError(BUSY))
    block: Any = share(source) if is_shared else tee(source, 2)
    async with block as readers:
        one, two = (readers.reader(), readers.reader()) if is_shared else readers
        await read(one.pipe(replace("secret", "[x]")))
        await read(two)
    texts = [error.response.text for error in failures if error.response is not None]
    assert texts == ["a [x]", "a secret"]
    assert failures[0].args[1] is failures[0].response


async def test_closed_branch_is_fed_no_more() -> None:
    """It would keep all that follows: nobody reads it, and the source waits for nobody."""
    async with TeeReader(Scripted(*answer("hello")), 2, ahead=1) as (one, two):
        await anext(one)
        await one.aclose()
        assert [event async for event in two] == answer("hello")
        assert (list(one.buffer), one.arrived()) == ([], [])


async def test_batch_makes_room_for_the_source() -> None:
    source = Scripted(*answer("hello"))
    async with TeeReader(source, 1, ahead=2) as (branch,):
        events: list[ResponseEvent] = []
        batches = branch.batches()
        with anyio.fail_after(5):
            while len(events) < len(answer("hello")):
                events += await anext(batches)
                assert len(events) >= source.given - 2
    assert events == answer("hello")


async def test_generator_is_closed_with_the_block() -> None:
    closed: list[bool] = []

    async def generate() -> AsyncIterator[ResponseEvent]:
        try:
            for event in answer("hello"):
                yield event
        finally:
            closed.append(True)

    source = generate()
    async with tee(source, 1, ahead=1) as (branch,):
        await anext(branch)
        assert closed == []
    assert closed == [True]


async def test_source_without_aclose_is_read() -> None:
    class Bare:
        """An iterator that has nothing to close."""

        def __init__(self) -> None:
            self.left = answer("hello")

        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> ResponseEvent:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    async with tee(Bare(), 1) as (branch,):
        assert await all_of(branch) == answer("hello")


@pytest.mark.parametrize("options", [{"count": 0}, {"ahead": 0}, {"slow": "later"}])
def test_tee_checks_its_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a whole number from 1|slow is one of"):
        tee(Scripted(), **options)


async def test_late_reader_gets_everything() -> None:
    source = Scripted(*answer("hello"))
    async with share(source) as shared:
        assert await all_of(shared.reader()) == answer("hello")
        late = shared.reader()
        assert await all_of(late) == answer("hello")
        assert late.response.text == "hello"
    assert source.is_closed


async def test_share_reads_no_further_than_its_readers() -> None:
    source = Scripted(*answer("hello"))
    async with share(source) as shared:
        await anyio.wait_all_tasks_blocked()
        assert source.given == 0
        reader = shared.reader()
        for _ in range(3):
            await anext(reader)
        await anyio.wait_all_tasks_blocked()
        assert source.given == 3


async def test_cancelled_reader_harms_no_other() -> None:
    source = Scripted(*answer("hello")[:4], 0.1, *answer("hello")[4:])
    async with share(source) as shared:
        with anyio.move_on_after(0.03) as scope:
            await all_of(shared.reader())
        assert scope.cancelled_caught
        assert await all_of(shared.reader()) == answer("hello")


async def test_each_reader_gets_the_failure() -> None:
    async with share(Scripted(*answer("hello")[:4], StreamError(BUSY))) as shared:
        for _ in range(2):
            reader = shared.reader()
            with pytest.raises(StreamError, match="busy"):
                await all_of(reader)
            assert reader.response.text == "h"


@pytest.mark.parametrize("open_readers", ["tee", "share"])
async def test_reader_has_stages(open_readers: str) -> None:
    source = Scripted(*answer("hello"))
    opened: Any = tee(source, 1) if open_readers == "tee" else share(source)
    async with opened as block:
        reader = block[0] if open_readers == "tee" else block.reader()
        async with reader.pipe(coalesce(60)) as events:
            seen = await all_of(events)
    assert isinstance(seen[-1], Completed)
    assert "".join(event.delta for event in seen if isinstance(event, OutputTextDelta)) == "hello"


@pytest.mark.parametrize("make", [share, lambda source: tee(source, 2)], ids=["share", "tee"])
async def test_error_of_the_caller_leaves_unwrapped(make: Callable[[Any], Any]) -> None:
    with pytest.raises(KeyError):
        async with make(Scripted(*answer("x"), 30)):
            raise KeyError("mine")
