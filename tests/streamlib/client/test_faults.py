"""Every fault of the shared catalogue, on a real socket, ends as the catalogue says, on both loops.

The rows are in `tests/support/fault_rows.py`. The last test fails if an id of the catalogue has no
row and no test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from streamlib.client import Client
from streamlib.client.stream import ResponseStream
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import Failed, Response
from tests.support import clients
from tests.support.cases import each_case
from tests.support.certificates import self_signed
from tests.support.clients import KEY, make_request
from tests.support.fault_row import LONG, NOBODY, OK, ONCE, QUICK, Row, stream, the_call
from tests.support.fault_rows import ROWS
from tests.support.http2_server import goaway_server
from tests.support.metrics import figure
from tests.support.response_bodies import (
    DONE,
    LAST,
    OPENED,
    calls,
    finish,
    part,
    stop,
    text,
)
from tests.support.scripted_server import (
    scripted,
)
from tests.support.shared import SHARED, vectors

HERE: Final = (
    "dns",
    "refused",
    "tls-bad",
    "307-cross",
    "slow-consumer",
    "tool-name-split",
    "h2-goaway",
)
"""Ids with a test of their own below."""
ELSEWHERE: Final = {
    "keepalive-stale": "test_connections.py",
    "cancel-any": "test_stream_stopping.py",
    "break-early": "test_stream_stopping.py",
    "no-with": "test_stream.py",
}


def client_for(url: str, row: Row) -> Client:
    """A client with the row's settings."""
    return clients.make_client(
        url, deadlines=row.deadlines, retry=row.retry, limits=row.limits, errors="event"
    )


async def outcome(url: str, row: Row) -> tuple[Response, ResponseStream, list[Any]]:
    """Response, stream and events of one request."""
    async with client_for(url, row) as client:
        async with client.stream(make_request(url, row.wire)) as response_stream:
            events = [event async for event in response_stream]
        return response_stream.response, response_stream, events


async def check_row(row: Row) -> None:
    """The fault of a row ends as the row says, and leaves no connection open."""
    async with scripted(*row.scripts) as server:
        with anyio.fail_after(10):
            response, response_stream, events = await outcome(server.url, row)
        await server.quiet(3)
        assert server.open == 0
    assert [event for event in events if type(event).__name__ in {"Completed", "Failed"}] == events[
        -1:
    ]
    assert (response.error and response.error.kind) == row.error, response.error
    assert row.text is None or response.text == row.text
    assert row.sent is None or len(server.requests) == row.sent
    assert set(row.notices) <= {notice.code for notice in response.notices}
    assert row.also is None or row.also(response, response_stream, server)
    if response.error is not None:
        assert row.phase is None or response.error.detail["phase"] == row.phase
        assert row.retryable in {None, response.error.retryable}
        assert row.status in {None, response.error.status}
        assert row.message in response.error.message
        assert len(response.error.message.encode()) <= 2200
        assert KEY not in repr(response)
    figure(f"fault/{row.id}")


@each_case("row", ROWS, ids=lambda row: row.id, at_once=4)
async def test_fault_ends_as_the_catalogue_lists(row: Row) -> None:
    await check_row(row)


async def test_dns_failure_is_a_connection_failure() -> None:
    response, _, _ = await outcome("http://no-such-host.invalid", Row("dns", ()))
    assert response.error is not None
    assert (response.error.kind, response.error.retryable) == ("connection", True)
    figure("fault/dns")


async def test_refused_connection_is_a_connection_failure() -> None:
    response, _, _ = await outcome(NOBODY, Row("refused", ()))
    assert response.error is not None
    assert (response.error.kind, response.error.retryable) == ("connection", True)
    figure("fault/refused")


async def test_untrusted_certificate_is_not_retried(tmp_path: Path) -> None:
    context = self_signed(tmp_path)
    async with scripted(OK, tls=context) as server:
        response, response_stream, _ = await outcome(server.url, Row("tls-bad", (), retry=QUICK))
        assert response.error is not None
        assert (response.error.kind, response.error.retryable) == ("connection", False)
        assert (response_stream.retried, server.requests) == ((), [])
    figure("fault/tls-bad")


async def test_redirect_sends_nothing_to_another_origin() -> None:
    async with scripted(OK) as other:
        there = other.url.replace("127.0.0.1", "localhost")
        redirect = (
            "HTTP/1.1 307 Temporary Redirect\r\n"
            f"location: {there}/v1/messages?key=secret\r\n"
            "content-length: 0\r\n\r\n"
        ).encode()
        async with scripted([redirect]) as server:
            response, _, _ = await outcome(server.url, Row("307-cross", (), retry=QUICK))
        assert response.error is not None
        assert response.error.kind == "invalid_request"
        assert "http://localhost" in response.error.message
        assert "secret" not in repr(response)
        assert (other.connections, len(server.requests)) == (0, 1)
    figure("fault/307-cross")


async def test_slow_consumer_meets_no_deadline() -> None:
    """Neither idle nor total; the server runs ahead by the buffers of the sockets at most."""
    row = Row(
        "slow-consumer",
        (),
        deadlines=Deadlines(first_byte=0.1, first_event=0.1, idle=0.1, total=0.4),
    )
    async with scripted(
        stream(*(OPENED if n == 0 else text("x") for n in range(6)), stop(), finish(), LAST)
    ) as server:
        async with (
            client_for(server.url, row) as client,
            client.stream(make_request(server.url)) as response_stream,
        ):
            for _ in range(4):
                await anext(response_stream)
                await anyio.sleep(0.15)
            async for _ in response_stream:
                pass
        assert response_stream.response.status == "completed"
    figure("fault/slow-consumer")


async def test_fragments_of_a_tool_name_are_joined() -> None:
    """A call under a name that was never offered must not result."""
    bodies = (
        calls({"index": 0, "id": "a", "function": {"name": "get_", "arguments": ""}}),
        calls({"index": 0, "function": {"name": "weather", "arguments": "{}"}}),
        part(finish_reason="tool_calls"),
        DONE,
    )
    async with scripted(stream(*bodies)) as server:
        response, _, _ = await outcome(server.url, Row("tool-name-split", (), wire="chat"))
    assert the_call(response).name == "get_weather"
    figure("fault/tool-name-split")


@pytest.mark.parametrize("error_code", [0, 2])
@pytest.mark.parametrize("name", clients.LIBRARIES)
async def test_http2_goaway_within_a_stream_is_truncated(name: str, error_code: int) -> None:
    """For an error code of success (0) and of failure (2): the response was incomplete."""
    options: dict[str, Any] = {"deadlines": LONG, "retry": ONCE, "errors": "event"}
    async with (
        goaway_server([OPENED + text("Hel")], error_code) as url,
        clients.open_http(name, http1=False, http2=True) as http,
        clients.make_client(url, http, **options) as client,
        client.stream(make_request(url)) as response_stream,
    ):
        events = [event async for event in response_stream]
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.retryable, response_stream.response.text) == (
        "truncated",
        True,
        "Hel",
    )
    figure("fault/h2-goaway")


def test_every_fault_of_the_catalogue_is_covered() -> None:
    """On a real socket, each."""
    catalogue = {vector["id"] for vector in vectors("faults")["vectors"]}
    covered = {row.id for row in ROWS} | set(HERE) | set(ELSEWHERE)
    assert len(ROWS) == len({row.id for row in ROWS})
    assert covered - catalogue == set()
    assert catalogue - covered == set(), (
        f"not made: {sorted(catalogue - covered)} of {len(catalogue)} in {SHARED}"
    )
