"""A key is in no output: events, responses, exceptions, logs and requests are searched."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any, Final

import anyio
import pytest

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.providers import Provider
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.clients import (
    LIBRARIES,
    MemoryTransport,
    make_client,
    make_request,
    open_http,
)
from tests.support.keys import UNUSUAL_KEY, printed
from tests.support.metrics import figure
from tests.support.response_bodies import HELLO, MESSAGE, error_body, named
from tests.support.scripted_server import (
    FIN,
    HANG,
    RST,
    Script,
    Wait,
    chunk,
    complete_response,
    head,
    scripted,
)

ECHO: Final = error_body(
    "authentication_error", f"x-api-key {UNUSUAL_KEY} is no good, nor is Bearer {UNUSUAL_KEY}"
)
SCRIPTS: Final[dict[str, Script]] = {
    "whole": complete_response(MESSAGE),
    "echo 401": complete_response(ECHO, "401 Unauthorized", "application/json"),
    "echo 400 in HTML": complete_response(
        f"<html>{UNUSUAL_KEY}</html>".encode(), "400 Bad Request", "text/html"
    ),
    "echo in a header": complete_response(
        ECHO, "403 Forbidden", "application/json", x_request_id=UNUSUAL_KEY
    ),
    "echo in the stream": [
        head(),
        chunk(HELLO),
        chunk(named("error", error={"type": "api_error", "message": UNUSUAL_KEY})),
        FIN,
    ],
    "echo of junk": [head(), chunk(HELLO), chunk(f"data: {{{UNUSUAL_KEY}\n\n".encode()), FIN],
    "echo where HTTP should be": [f"HTTX {UNUSUAL_KEY}\r\n\r\n".encode(), FIN],
    "redirect": [
        f"HTTP/1.1 307 x\r\nlocation: http://localhost/{UNUSUAL_KEY}\r\n".encode()
        + b"content-length: 0\r\n\r\n"
    ],
    "reset": [RST],
    "reset later": [head(), chunk(HELLO), Wait(0.01), RST],
    "cut": [head(), chunk(HELLO), FIN],
    "silence": [HANG],
    "stall": [head(), chunk(HELLO), HANG],
}
SHORT_DEADLINES: Final = Deadlines(headers=2, first_byte=0.15, first_event=0.15, idle=0.15)


def exposures(client: Client, stream: Any, error: BaseException | None) -> Iterator[str]:
    """Everything that a careless program could print, log or store."""
    objects = [
        client,
        stream,
        stream.request,
        stream.response,
        stream.snapshot,
        stream.retried,
        stream._config,
        stream._config.source,
        stream._attempt,
    ]
    for item in objects:
        yield repr(item)
        yield str(item)
        yield f"{item}"
    for item in (stream.request, stream.response, error):
        yield repr(pickle.dumps(item))
    for item in (client, client._keys, stream, stream._config.source):
        with pytest.raises(TypeError):
            pickle.dumps(item)
    yield repr(vars(stream._config.source))
    yield repr(vars(client))
    if error is not None:
        yield printed(error, own=False)


async def search(http: str, style: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Looks for the key in all that a client with this authentication has or logs."""
    caplog.set_level(logging.DEBUG)
    searched = 0
    inner = open_http(http)
    for script in SCRIPTS.values():
        async with scripted(script) as server:
            provider = Provider("faulty", wires=("messages",), base_url=server.url, auth=style)
            options: Any = {"deadlines": SHORT_DEADLINES, "retry": RetryPolicy(retries=0)}
            client = make_client(
                server.url, inner, providers=(provider,), api_key=UNUSUAL_KEY, **options
            )
            stream, error = client.stream(make_request(server.url)), None
            try:
                async with stream:
                    async for _ in stream:
                        pass
            except StreamError as raised:
                error = raised
            assert any(UNUSUAL_KEY.encode() in sent for sent in server.requests)
            for shown in exposures(client, stream, error):
                assert UNUSUAL_KEY not in shown
                searched += 1
    await inner.aclose()
    figure("exposures", searched)
    assert searched > 400
    # httpcore logs response headers at DEBUG, with whatever they echo: there the key may be.
    assert all(
        UNUSUAL_KEY not in record.getMessage()
        for record in caplog.records
        if "receive_response_headers" not in record.getMessage()
    )


@pytest.mark.parametrize("http", LIBRARIES)
@each_case("style", ["bearer", "x-api-key", "x-goog-api-key", "api-key"], at_once=4)
async def test_key_is_found_in_no_output(
    http: str, style: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Faults that echo, break and redirect; DEBUG logs; tracebacks with their locals.

    Over 1,000 exposures in all.
    """
    await search(http, style, caplog)


async def test_cancellation_carries_no_frames_with_the_key() -> None:
    async with scripted([HANG]) as server, make_client(server.url, api_key=UNUSUAL_KEY) as client:
        caught: list[BaseException] = []
        with anyio.move_on_after(0.05):
            try:
                await client.respond(make_request(server.url))
            except BaseException as error:
                caught.append(error)
                raise
        assert len(caught) == 1
        assert UNUSUAL_KEY not in printed(caught[0], own=False)


async def test_key_is_sent_in_its_header_only() -> None:
    memory = MemoryTransport([MESSAGE])
    async with make_client("http://memory.example", memory, api_key=UNUSUAL_KEY) as client:
        await client.respond(make_request("http://memory.example"))
    ((_, url, headers, body, _),) = memory.sent
    assert headers["x-api-key"] == UNUSUAL_KEY
    assert UNUSUAL_KEY not in url
    assert UNUSUAL_KEY.encode() not in body
    assert headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("method", ["respond", "text"])
@pytest.mark.parametrize("key", [UNUSUAL_KEY, UNUSUAL_KEY + "\x7f"], ids=["valid", "invalid"])
async def test_key_of_one_request_is_in_no_traceback(method: str, key: str) -> None:
    """`**options` are a local of the frames that the exception passes."""
    memory = MemoryTransport([b"garbage"])
    async with make_client("http://memory.example", memory) as client:
        with pytest.raises(StreamError) as raised:
            await getattr(client, method)(make_request("http://memory.example"), api_key=key)
    assert UNUSUAL_KEY not in printed(raised.value, own=False)


@pytest.mark.parametrize("key", [UNUSUAL_KEY, UNUSUAL_KEY + "\x7f"], ids=["valid", "invalid"])
async def test_key_of_a_list_of_models_is_in_no_traceback(key: str) -> None:
    memory = MemoryTransport([b"garbage"])
    async with make_client("http://memory.example", memory) as client:
        with pytest.raises(StreamError) as raised:
            await client.models("openai", base_url="http://memory.example", api_key=key)
    assert UNUSUAL_KEY not in printed(raised.value, own=False)
