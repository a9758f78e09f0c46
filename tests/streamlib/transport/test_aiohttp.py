"""The same promises on aiohttp: those of the other transports' tests, run with its session, and the faults of the catalogue.

On asyncio alone: aiohttp knows no other loop.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import anyio
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.errors import StreamError
from streamlib.transport import CONNECTIONS, transport_for
from streamlib.transport.deadlines import Deadlines
from tests.streamlib.client import test_auth, test_client, test_faults, test_stream
from tests.streamlib.transport import test_transport
from tests.support.clients import asked, client
from tests.support.response_bodies import HELLO, MESSAGE, SAID, frames_of
from tests.support.scripted_server import END, HANG, Wait, chunk, head, scripted, whole

aiohttp = pytest.importorskip(
    "aiohttp", reason="the extra `aiohttp` is not installed: its transport goes untested"
)
from streamlib.transport.aiohttp import AiohttpTransport  # noqa: E402  # after the library it needs


@pytest.fixture
def anyio_backend() -> str:
    """The one loop."""
    return "asyncio"


Promise = Callable[..., Awaitable[None]]

SAME: Final[dict[str, Promise]] = {
    promise.__name__.removeprefix("test_"): promise
    for promise in (
        test_transport.test_the_request_is_the_bytes_that_were_built,
        test_transport.test_a_path_that_is_encoded_already_stays_so,
        test_transport.test_a_hundred_streams_in_a_row_take_one_connection,
        test_transport.test_a_kept_connection_that_was_closed_is_replaced_once_and_silently,
        test_transport.test_a_new_connection_that_is_closed_is_not_replaced_silently,
        test_transport.test_the_library_itself_ends_a_silent_read_when_that_is_the_next_deadline,
        test_transport.test_reads_that_need_no_scope_enter_none,
        test_client.test_one_client_serves_a_hundred_streams_at_once,
        test_client.test_a_conversation_with_a_tool_goes_on_to_its_end,
    )
}


@pytest.mark.parametrize("promise", [name for name in SAME if not name.startswith("reads_that")])
async def test_what_holds_on_httpx_holds_on_aiohttp(promise: str) -> None:
    await SAME[promise]("aiohttp")


async def test_reads_need_no_scope_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    await SAME["reads_that_need_no_scope_enter_none"]("aiohttp", monkeypatch)


@pytest.mark.parametrize("way", ["break", "exception", "aclose"])
async def test_leaving_after_any_event_closes_the_connection(way: str) -> None:
    await test_stream.test_leaving_after_any_event_closes_the_connection("aiohttp", way)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.006, 0.01, 0.02])
async def test_another_task_may_close_at_any_moment(delay: float) -> None:
    await test_stream.test_another_task_may_close_at_any_moment("aiohttp", delay)


async def test_the_canary_is_found_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    await test_auth.test_the_canary_is_found_nowhere("aiohttp", "x-api-key", caplog)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in test_faults.ROWS])
async def test_a_fault_ends_as_the_catalogue_wants(
    row: test_faults.Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        test_faults.asking, "client", partial(client, http=(transport := AiohttpTransport()))
    )
    await test_faults.test_a_fault_ends_as_the_catalogue_wants(row)
    await transport.aclose()


# --- its own ---


async def test_a_session_of_ours_is_made_late_boundless_and_closed() -> None:
    ours = AiohttpTransport()
    assert ours.slots.total_tokens == CONNECTIONS
    await ours.aclose()  # nothing was opened
    async with scripted(whole(MESSAGE)) as server, client(server.url, ours) as asking:
        assert (await asking.respond(asked(server.url))).text == SAID
        assert ours._session is not None
        assert ours._session.connector is not None
        assert ours._session.connector.limit == 0
    await ours.aclose()
    assert ours._session.closed


async def test_a_users_session_stays_open_and_its_limit_is_kept() -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=3)) as users:
        transport = transport_for(users)
        assert isinstance(transport, AiohttpTransport)
        assert transport.slots.total_tokens == 3
        assert AiohttpTransport(users, 2).slots.total_tokens == 2
        await transport.aclose()
        assert not users.closed


async def test_a_users_session_that_follows_raises_and_unpacks_does_none_of_it_for_us() -> None:
    import gzip

    packed = whole(gzip.compress(MESSAGE), content_encoding="gzip")
    moved = b"HTTP/1.1 308 x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    async with (
        scripted(packed, [moved]) as server,
        aiohttp.ClientSession(raise_for_status=True) as users,
    ):
        asking = client(server.url, users)
        assert (await asking.respond(asked(server.url))).text == SAID
        with pytest.raises(StreamError, match="redirects"):
            await asking.respond(asked(server.url))
    assert len(server.requests) == 2


async def test_no_silence_is_counted_while_the_caller_holds_an_event() -> None:
    """aiohttp's own read timeout would be: it runs from one packet to the next, whoever has them."""
    even = Deadlines(first_byte=0.1, first_event=0.1, idle=0.1)
    first, *rest = frames_of(4)
    answer = [head(), chunk(first), Wait(0.25), chunk(b"".join(rest)), END]
    async with (
        scripted(answer) as server,
        client(server.url, AiohttpTransport(), deadlines=even) as asking,
    ):
        async with asking.stream(asked(server.url)) as stream:
            await anext(stream)
            await anyio.sleep(0.3)
            async for _ in stream:
                pass
            assert stream.response.status == "completed"
        await asking._transport.aclose()


async def test_a_thousand_cancellations_leave_no_connection_behind() -> None:
    draw, answer = (
        random.Random(7),
        [Wait(0.001), head(), chunk(HELLO), Wait(0.002), chunk(MESSAGE[len(HELLO) :]), END],
    )
    async with (
        scripted(answer) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4)) as users,
    ):
        async with client(server.url, users) as asking:

            async def one(delay: float) -> None:
                with anyio.move_on_after(delay):
                    await asking.respond(asked(server.url))

            for _ in range(50):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(one, draw.random() * 0.012)
            assert (await asking.respond(asked(server.url))).text == SAID
            assert asking._transport.slots.borrowed_tokens == 0  # type: ignore[attr-defined]
            assert not users.connector._acquired
        await users.close()
        await server.quiet()
        assert server.open == 0


async def test_a_request_of_many_megabytes_is_sent_as_it_is() -> None:
    async with (
        scripted(whole(MESSAGE)) as server,
        client(server.url, transport := AiohttpTransport()) as asking,
    ):
        await asking.respond(asked(server.url, body=bytes(3 << 20)))
        await transport.aclose()
    assert len(server.requests[0].partition(b"\r\n\r\n")[2]) == 3 << 20


async def test_a_header_that_came_twice_is_one_list() -> None:
    answer = [head(x_a="1")[:-2] + b"X-A: 2\r\n\r\n", chunk(MESSAGE), END]
    async with (
        scripted(answer) as server,
        client(server.url, transport := AiohttpTransport()) as asking,
    ):
        async with asking.stream(asked(server.url)) as stream:
            assert stream.headers["x-a"] == "1, 2"
        await transport.aclose()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_on_trio_it_says_what_to_use_instead() -> None:
    asking = client(
        "http://127.0.0.1:9", AiohttpTransport(), retry=RetryPolicy(retries=0), errors="event"
    )
    response = await asking.respond(asked("http://127.0.0.1:9"))
    assert response.error is not None
    assert "on trio give http= an httpx client" in response.error.message
    assert not response.error.retryable


async def test_a_silent_head_is_ended_although_the_connection_was_kept() -> None:
    async with scripted(whole(MESSAGE), [HANG]) as server:
        quick = Deadlines(first_byte=0.1)
        asking = client(
            server.url,
            transport := AiohttpTransport(),
            deadlines=quick,
            retry=RetryPolicy(retries=0),
            errors="event",
        )
        assert (await asking.respond(asked(server.url))).text == SAID
        error: Any = (await asking.respond(asked(server.url))).error
        assert (error.kind, error.detail) == ("stalled", {"phase": "first_byte"})
        await transport.aclose()
