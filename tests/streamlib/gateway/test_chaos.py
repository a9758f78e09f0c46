"""The short form of `python -m lab.gateway_chaos`: a model that fails a third of the time, and a
gateway that stops with its streams open. No stream ends as if it were complete, and is not."""

from __future__ import annotations

from collections import Counter
from typing import Final

import httpx
import pytest

from lab.gateway_chaos import (
    COMPLETE,
    HTTP_ERROR,
    SILENT,
    WIRE_ERROR,
    model,
    outcome,
    run_clients,
)
from streamlib.client.retry import RetryPolicy
from streamlib.gateway import Gateway, RouteRule, RouteTable, RouteTo, gateway
from tests.support.asgi_servers import serving_app
from tests.support.scripted_server import scripted

REQUESTS: Final = 24

pytestmark = pytest.mark.usefixtures("asgi_server")


async def test_no_stream_is_silently_truncated() -> None:
    async with scripted(choose=model(seed=3, pause=0.002)) as upstream:
        to = RouteTo("custom:m", base_url=upstream.url, wire_api="messages")
        rule = RouteRule("*", (to, to), cooldown_seconds=0.2)
        retry = RetryPolicy(retries=1, base=0.01)
        running = Gateway(RouteTable([rule]), client={"retry": retry})
        async with serving_app(gateway(running)) as server:
            is_stopped = False

            def stop_after_enough(counts: Counter[str]) -> bool:
                nonlocal is_stopped
                if counts.total() >= REQUESTS and not is_stopped:
                    is_stopped = True
                    running.end_streams()
                return is_stopped

            counts = await run_clients(server.url, 8, stop_after_enough)
    assert counts[SILENT] == 0
    assert counts[COMPLETE] > REQUESTS / 4
    assert counts[WIRE_ERROR] > 0
    assert counts[WIRE_ERROR] + counts[HTTP_ERROR] < counts.total()


async def test_chaos_notices_a_truncated_stream() -> None:
    """Without the gateway, a response that a proxy has cut looks complete to HTTP."""
    seen: set[str] = set()
    async with (
        scripted(choose=model(seed=1, pause=0.0)) as upstream,
        httpx.AsyncClient() as client,
    ):
        for _ in range(60):
            seen.add(await outcome(client, upstream.url, "messages"))
    assert SILENT in seen
