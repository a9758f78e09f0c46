"""The transport over aiohttp: tests of the other transports and the catalogue of faults, repeated.

On asyncio alone, since aiohttp has no other event loop.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.transport import CONNECTIONS, transport_for
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.stream_error import StreamError
from tests.streamlib.client import test_client, test_faults, test_key_exposure, test_stream_stopping
from tests.streamlib.transport import test_connections, test_transport
from tests.support.cases import each_case
from tests.support.clients import make_client, make_request, open_http
from tests.support.fault_row import Row
from tests.support.fault_rows import ROWS
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, frames_of
from tests.support.scripted_server import END, HANG, Wait, chunk, complete_response, head, scripted

aiohttp = pytest.importorskip(
    "aiohttp", reason="the extra `aiohttp` is not installed: its transport goes untested"
)
from streamlib.transport.aiohttp import AiohttpTransport  # noqa: E402  # after the library it needs


@pytest.fixture
def anyio_backend() -> str:
    """The only event loop of aiohttp."""
    return "asyncio"


SharedTest = Callable[..., Awaitable[None]]

SHARED_TESTS: Final[dict[str, SharedTest]] = {
    shared_test.__name__.removeprefix("test_"): shared_test
    for shared_test in (
        test_transport.test_request_is_sent_as_it_was_built,
        test_transport.test_encoded_path_is_sent_unchanged,
        test_connections.test_a_hundred_streams_in_a_row_use_one_connection,
        test_connections.test_reused_connection_that_was_closed_is_replaced_once,
        test_connections.test_new_connection_that_is_closed_is_not_replaced,
        test_connections.test_library_ends_a_silent_read_at_the_next_deadline,
        test_connections.test_reads_enter_no_scope_when_none_is_needed,
        test_client.test_client_serves_a_hundred_streams_at_once,
        test_client.test_conversation_with_a_tool_completes,
    )
}


@pytest.mark.parametrize(
    "shared_test", [name for name in SHARED_TESTS if not name.startswith("reads_enter")]
)
async def test_invariants_of_httpx_hold_on_aiohttp(shared_test: str) -> None:
    await SHARED_TESTS[shared_test]("aiohttp")


async def test_reads_enter_no_timeout_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    await SHARED_TESTS["reads_enter_no_scope_when_none_is_needed"]("aiohttp", monkeypatch)


@pytest.mark.parametrize("way", ["break", "exception", "aclose"])
async def test_leaving_after_any_event_closes_the_connection(way: str) -> None:
    await test_stream_stopping.test_leaving_after_any_event_closes_the_connection("aiohttp", way)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.006, 0.01, 0.02])
async def test_another_task_may_close_at_any_moment(delay: float) -> None:
    await test_stream_stopping.test_another_task_may_close_at_any_moment("aiohttp", delay)


async def test_key_is_found_in_no_output(caplog: pytest.LogCaptureFixture) -> None:
    await test_key_exposure.search("aiohttp", "x-api-key", caplog)


@each_case("row", ROWS, ids=lambda row: row.id, at_once=4)
async def test_fault_ends_as_the_catalogue_lists(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def client_of_aiohttp(*arguments: Any, **options: Any) -> AsyncIterator[Client]:
        async with open_http("aiohttp") as transport:
            yield make_client(*arguments, **options, http=transport)

    monkeypatch.setattr(test_faults.clients, "make_client", client_of_aiohttp)
    await test_faults.check_row(row)


# --- of aiohttp alone ---


async def test_own_session_is_created_late_unlimited_and_closed() -> None:
    ours = AiohttpTransport()
    assert ours.slots.total_tokens == CONNECTIONS
    await ours.aclose()  # nothing was opened
    async with (
        scripted(complete_response(MESSAGE)) as server,
        make_client(server.url, ours) as client,
    ):
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        assert ours._session is not None
        assert ours._session.connector is not None
        assert ours._session.connector.limit == 0
    await ours.aclose()
    assert ours._session.closed


async def test_named_aiohttp_session_is_closed_with_its_client() -> None:
    async with (
        scripted(complete_response(MESSAGE)) as server,
        make_client(server.url, "aiohttp") as client,
    ):
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        transport = client._opened_transport
    assert isinstance(transport, AiohttpTransport)
    assert transport._session is not None
    assert transport._session.closed


async def test_session_of_the_user_stays_open_and_limited() -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=3)) as users:
        transport = transport_for(users)
        assert isinstance(transport, AiohttpTransport)
        assert transport.slots.total_tokens == 3
        assert AiohttpTransport(users, 2).slots.total_tokens == 2
        await transport.aclose()
        assert not users.closed


async def test_options_of_the_users_session_do_not_apply() -> None:
    import gzip

    packed = complete_response(gzip.compress(MESSAGE), content_encoding="gzip")
    moved = b"HTTP/1.1 308 x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    async with (
        scripted(packed, [moved]) as server,
        aiohttp.ClientSession(raise_for_status=True) as users,
    ):
        client = make_client(server.url, users)
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        with pytest.raises(StreamError, match="redirects"):
            await client.respond(make_request(server.url))
    assert len(server.requests) == 2


async def test_silence_does_not_count_while_the_caller_works() -> None:
    """aiohttp's own read timeout counts it: it runs from one packet to the next."""
    even = Deadlines(first_byte=0.1, first_event=0.1, idle=0.1)
    first, *rest = frames_of(4)
    script = [head(), chunk(first), Wait(0.25), chunk(b"".join(rest)), END]
    async with (
        scripted(script) as server,
        make_client(server.url, AiohttpTransport(), deadlines=even) as client,
    ):
        async with client.stream(make_request(server.url)) as stream:
            await anext(stream)
            await anyio.sleep(0.3)
            async for _ in stream:
                pass
            assert stream.response.status == "completed"
        await client._transport.aclose()


async def test_a_thousand_cancellations_leave_no_connection_open() -> None:
    draw, script = (
        random.Random(7),
        [Wait(0.001), head(), chunk(HELLO), Wait(0.002), chunk(MESSAGE[len(HELLO) :]), END],
    )
    async with (
        scripted(script) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4)) as users,
    ):
        async with make_client(server.url, users) as client:

            async def respond(delay: float) -> None:
                with anyio.move_on_after(delay):
                    await client.respond(make_request(server.url))

            for _ in range(50):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(respond, draw.random() * 0.012)
            assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
            assert client._transport.slots.borrowed_tokens == 0  # type: ignore[attr-defined]
            assert not users.connector._acquired
        await users.close()
        await server.quiet()
        assert server.open == 0


async def test_request_of_many_megabytes_is_sent_unchanged() -> None:
    async with (
        scripted(complete_response(MESSAGE)) as server,
        make_client(server.url, transport := AiohttpTransport()) as client,
    ):
        await client.respond(make_request(server.url, body=bytes(3 << 20)))
        await transport.aclose()
    assert len(server.requests[0].partition(b"\r\n\r\n")[2]) == 3 << 20


async def test_repeated_header_becomes_one_list() -> None:
    script = [head(x_a="1")[:-2] + b"X-A: 2\r\n\r\n", chunk(MESSAGE), END]
    async with (
        scripted(script) as server,
        make_client(server.url, transport := AiohttpTransport()) as client,
    ):
        async with client.stream(make_request(server.url)) as stream:
            assert stream.headers["x-a"] == "1, 2"
        await transport.aclose()


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.parametrize("named", [False, True])
async def test_error_on_trio_names_the_alternative(named: bool) -> None:
    http = "aiohttp" if named else AiohttpTransport()
    client = make_client("http://127.0.0.1:9", http, retry=RetryPolicy(retries=0), errors="event")
    response = await client.respond(make_request("http://127.0.0.1:9"))
    assert response.error is not None
    assert "on trio give http= an httpx client" in response.error.message
    assert not response.error.retryable


async def test_missing_headers_time_out_on_a_reused_connection() -> None:
    async with scripted(complete_response(MESSAGE), [HANG]) as server:
        quick = Deadlines(first_byte=0.1)
        client = make_client(
            server.url,
            transport := AiohttpTransport(),
            deadlines=quick,
            retry=RetryPolicy(retries=0),
            errors="event",
        )
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        error: Any = (await client.respond(make_request(server.url))).error
        assert (error.kind, error.detail) == ("stalled", {"phase": "first_byte"})
        await transport.aclose()
