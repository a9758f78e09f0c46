"""Events that httpx-sse framed give the response that the client reads."""

from __future__ import annotations

import httpx
import pytest
from httpx_sse import aconnect_sse

import streamlib
from streamlib.testing import MODEL, Behaviour, loopback, running
from streamlib_parsers.items import WireApi

pytestmark = pytest.mark.anyio

SSE_WIRES: tuple[WireApi, ...] = (
    "messages",
    "responses",
    "chat",
    "gemini",
    "interactions",
    "cohere",
)


async def read_with_httpx_sse(url: str, wire_api: WireApi) -> streamlib.Response:
    """The response, read as the page shows."""
    request = streamlib.build("Hello", MODEL, base_url=url, wire_api=wire_api)
    parser = streamlib.parser(request.wire_api, names=request.names, origin=request.origin)
    events: list[streamlib.ResponseEvent] = []
    async with (
        httpx.AsyncClient() as http,
        aconnect_sse(
            http, request.method, request.url, content=request.body, headers=request.headers
        ) as source,
    ):
        try:
            async for sse in source.aiter_sse():
                events += parser.feed_event(sse.data, sse.event)
        except httpx.RemoteProtocolError:
            pass  # the server closed its connection in the middle
    events += parser.close()
    return streamlib.accumulate(events)


@pytest.mark.parametrize("wire_api", SSE_WIRES)
async def test_httpx_sse_gives_the_response_of_the_client(wire_api: WireApi) -> None:
    async with running() as url:
        found = await read_with_httpx_sse(url, wire_api)
    async with loopback(wire_api=wire_api) as client:
        expected = await client.respond("Hello", MODEL)
    assert found.status == "completed"
    assert (found.text, found.stop_reason) == (expected.text, expected.stop_reason)
    assert found.usage == expected.usage


@pytest.mark.parametrize("wire_api", SSE_WIRES)
async def test_httpx_sse_cut_in_the_middle_is_truncated(wire_api: WireApi) -> None:
    async with running(Behaviour(fault="truncate", at=4)) as url:
        found = await read_with_httpx_sse(url, wire_api)
    assert found.status == "failed"
    assert found.error is not None
    assert found.error.kind == "truncated"
