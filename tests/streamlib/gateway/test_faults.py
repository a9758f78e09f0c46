"""The faults of the shared catalogue behind a gateway: the client sees one honest error, of its own wire, or the whole answer.

The faults are those of `test_faults.py`, on real sockets. Every sixth by default, each for one client; `-m slow` takes all, for all.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from streamlib import Prompt
from streamlib.gateway import RouteRule
from streamlib.wires.encoders import error_body
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.streamlib.client import test_faults as faults
from tests.support.gateways import CLIENTS, ask, read, said, serving
from tests.support.scripted_server import scripted

BETWEEN: Final = {"connection", "truncated", "malformed", "limit_exceeded", "stalled", "deadline"}
"""Kinds that no wire has a word of its own for, or not all: what failed between the gateway and the model."""
TOLD_AS: Final = {"server_error", "stalled", "overloaded", "truncated", "connection"}
"""How a client may understand them."""
ROWS: Final = (
    *faults.ROWS,
    faults.Row("dns", (), "connection"),
    faults.Row("refused", (), "connection"),
)
NOWHERE: Final = {"dns": "http://no-such-host.invalid", "refused": faults.NOBODY}


def route(row: faults.Row, url: str) -> RouteRule:
    """Everything to the server with this fault."""
    return RouteRule("*", "custom:m-1", wire_api=row.wire, base_url=NOWHERE.get(row.id, url))


async def check(row: faults.Row, wire: WireApi) -> None:
    """One request through the gateway."""
    options: dict[str, Any] = {
        "deadlines": row.deadlines,
        "retry": row.retry,
        "limits": row.limits,
        "jitter": lambda: 0.0,
    }
    async with scripted(*(row.scripts or [[]])) as server:
        async with serving(None, route(row, server.url), client=options) as client:
            with anyio.fail_after(15):
                answer = await ask(client, wire, Prompt("Hello"))
        await server.quiet(0.3)
        assert server.open == 0
    if answer.status_code >= 400:
        got = read(wire, answer, whole=True)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json().keys() == error_body(wire, ErrorInfo("server_error", "")).keys()
    else:
        got = said(wire, answer.content)
    kind = got.error and got.error.kind
    assert kind == row.error or (row.error in BETWEEN and kind in TOLD_AS), (row.error, got.error)
    assert row.text is None or got.text == row.text or answer.status_code >= 400
    assert row.sent is None or len(server.requests) == row.sent


@pytest.mark.parametrize(
    ("row", "wire"),
    [pytest.param(row, CLIENTS[at % 4], id=row.id) for at, row in enumerate(ROWS[::6])],
)
async def test_a_fault_upstream_is_one_honest_error_of_the_clients_wire(
    row: faults.Row, wire: WireApi
) -> None:
    await check(row, wire)


@pytest.mark.slow
@pytest.mark.parametrize("wire", CLIENTS)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
async def test_every_fault_upstream_is_one_honest_error_of_every_wire(
    row: faults.Row, wire: WireApi
) -> None:
    await check(row, wire)
