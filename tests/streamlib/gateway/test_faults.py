"""The faults of the shared catalogue behind a gateway: the client sees one error of its own wire,
or the complete response.

The faults are those of `tests/support/fault_rows.py`, on real sockets. Every sixth by default, each
for one client; `-m slow` takes all, for all.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from streamlib import Prompt, Response
from streamlib.gateway import RouteRule
from streamlib.wires.encoders import error_body
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.support.fault_row import NOBODY, Row
from tests.support.fault_rows import ROWS as CLIENT_ROWS
from tests.support.gateways import CLIENTS, parse_stream, read, send, serving
from tests.support.scripted_server import scripted

BETWEEN: Final = {"connection", "truncated", "malformed", "limit_exceeded", "stalled", "deadline"}
"""Failures between the gateway and the model, for which not every wire has an error of its own."""

RECEIVED_AS: Final = {"server_error", "stalled", "overloaded", "truncated", "connection"}
"""How a client may understand them."""

ROWS: Final = (
    *CLIENT_ROWS,
    Row("dns", (), "connection"),
    Row("refused", (), "connection"),
)
UNREACHABLE: Final = {"dns": "http://no-such-host.invalid", "refused": NOBODY}


def route(row: Row, url: str) -> RouteRule:
    """Everything to the server with this fault."""
    base_url = UNREACHABLE.get(row.id, url)
    return RouteRule("*", "custom:m-1", wire_api=row.wire, base_url=base_url)


def check_error(row: Row, response: Response) -> None:
    kind = response.error and response.error.kind
    if row.error in BETWEEN:
        assert kind == row.error or kind in RECEIVED_AS, (row.error, response.error)
    else:
        assert kind == row.error, (row.error, response.error)


async def check(row: Row, wire: WireApi) -> None:
    """Sends one request through the gateway."""
    options: dict[str, Any] = {
        "deadlines": row.deadlines,
        "retry": row.retry,
        "limits": row.limits,
        "jitter": lambda: 0.0,
    }
    async with scripted(*(row.scripts or [[]])) as server:
        async with serving(None, route(row, server.url), client=options) as client:
            with anyio.fail_after(15):
                received = await send(client, wire, Prompt("Hello"))
        await server.quiet(0.3)
        assert server.open == 0
    if received.status_code >= 400:
        response = read(wire, received, stream=False)
        assert received.headers["content-type"] == "application/json"
        assert received.json().keys() == error_body(wire, ErrorInfo("server_error", "")).keys()
    else:
        response = parse_stream(wire, received.content)
        assert row.text is None or response.text == row.text
    check_error(row, response)
    assert row.sent is None or len(server.requests) == row.sent


@pytest.mark.parametrize(
    ("row", "wire"),
    [pytest.param(row, CLIENTS[number % 4], id=row.id) for number, row in enumerate(ROWS[::6])],
)
async def test_fault_is_one_error_of_the_client_wire(row: Row, wire: WireApi) -> None:
    await check(row, wire)


@pytest.mark.slow
@pytest.mark.parametrize("wire", CLIENTS)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
async def test_every_fault_is_one_error_of_every_wire(row: Row, wire: WireApi) -> None:
    await check(row, wire)
