"""`iter_bytes`: the same bytes as `StreamResponse`, and ends in every way."""

from __future__ import annotations

import asyncio

import anyio
import anyio.to_thread
import pytest

from streamlib import Response, StreamError
from streamlib.web import StreamResponse, iter_bytes
from streamlib.web.byte_iterator import BUFFER_BYTES
from streamlib_parsers import ErrorInfo
from tests.support.asgi_calls import AsgiCall
from tests.support.client_streams import FRAMES, stream_over
from tests.support.loops import asyncio_alone
from tests.support.response_bodies import text
from tests.support.ui_streams import read_vercel
from tests.support.web_runs import Run


async def test_iterated_bytes_are_those_of_the_response() -> None:
    call = await AsgiCall()(StreamResponse(stream_over(*FRAMES), "vercel"))
    body = iter_bytes(stream_over(*FRAMES), "vercel")
    assert b"".join([chunk async for chunk in body]) == call.body
    assert body.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert body.headers["content-type"] == "text/event-stream"
    with pytest.raises(StopAsyncIteration):
        await anext(body)


async def test_an_early_failure_is_an_error_part() -> None:
    refused = StreamError(ErrorInfo("authentication", "key sk-1", status=401))
    chunks = [chunk async for chunk in iter_bytes(Run(refused), "vercel")]
    assert read_vercel(b"".join(chunks))[-1]["type"] == "error"
    assert b"sk-1" not in b"".join(chunks)


async def test_a_defect_is_raised_after_the_bytes() -> None:
    run = Run(KeyError("password"))
    with pytest.raises(KeyError):
        async for _ in iter_bytes(run, "vercel"):
            pass
    assert run.closed


async def test_leaving_the_block_closes_the_stream() -> None:
    seen: list[str] = []

    def save(response: Response) -> None:
        seen.append(response.status)

    silent = stream_over(*FRAMES[:3], 100.0)
    async with iter_bytes(silent, "vercel", on_done=save) as body:
        await anext(body)
    assert seen == ["cancelled"]


@asyncio_alone
async def test_iterator_closed_in_an_exception_raises_nothing() -> None:
    """It raised again what the code around it was handling."""
    body = iter_bytes(stream_over(*FRAMES[:3], 100.0), "vercel")
    await anext(body)
    try:
        raise asyncio.CancelledError
    except asyncio.CancelledError:
        await body.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(body)


async def test_nothing_comes_after_closing() -> None:
    body = iter_bytes(stream_over(*FRAMES), "vercel")
    await body.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(body)


async def test_a_block_allows_a_scope_around_each_step() -> None:
    """Its tasks were started and ended inside of the scope: a `RuntimeError`, for trio a crash."""
    chunks: list[bytes] = []
    async with iter_bytes(stream_over(*FRAMES), "vercel") as body:
        while not chunks or chunks[-1]:
            with anyio.fail_after(5):
                chunks.append(await anext(body, b""))
        await anyio.lowlevel.checkpoint()
    assert read_vercel(b"".join(chunks))[-1]["type"] == "finish"


async def test_a_step_that_times_out_in_a_block_ends_it() -> None:
    seen: list[str] = []

    def save(response: Response) -> None:
        seen.append(response.status)

    silent = stream_over(*FRAMES[:3], 100.0)
    async with iter_bytes(silent, "vercel", on_done=save) as body:
        await anext(body)
        with anyio.move_on_after(0.01) as scope:
            await anext(body)
        assert scope.cancelled_caught
        with pytest.raises(StopAsyncIteration):
            await anext(body)
    assert seen == ["cancelled"]


@pytest.mark.parametrize("in_thread", [True, False])
async def test_close_ends_the_stream_from_any_thread(in_thread: bool) -> None:
    run = Run(*[event async for event in stream_over_events()], 100.0)
    body = iter_bytes(run, "vercel")
    await anext(body)
    if in_thread:
        await anyio.to_thread.run_sync(body.close)
    else:
        body.close()
    with anyio.fail_after(5):
        while not run.closed:  # noqa: ASYNC110  # set by the task of the iterator
            await anyio.sleep(0.001)
    await body.aclose()


async def stream_over_events():  # type: ignore[no-untyped-def]
    async with stream_over(*FRAMES) as stream:
        async for event in stream:
            yield event
            if event.seq == 3:
                return


async def test_a_slow_reader_slows_the_model() -> None:
    read = 0
    words = "x" * 1_000

    def counted() -> list[bytes]:
        return [*FRAMES[:2], *[text(words)] * 1_000, *FRAMES[4:]]

    stream = stream_over(*counted())
    async with iter_bytes(stream, "vercel") as body:
        await anext(body)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        read = len(stream.response.text)
        assert read < 4 * BUFFER_BYTES
        rest = [chunk async for chunk in body]
    assert len(stream.response.text) == 1_000_000
    assert max(map(len, rest)) < 4 * BUFFER_BYTES
