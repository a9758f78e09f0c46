"""Bytes after a complete response never become the response to the next prompt (C5)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from types import SimpleNamespace as Layer
from typing import Any, Final

import anyio
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.transport.httpcore_pool import keep_only_if_empty
from tests.support.cases import each_case
from tests.support.certificates import self_signed
from tests.support.clients import EVERY_TRANSPORT, make_client, make_request, open_http
from tests.support.response_bodies import HELLO_TEXT, LAST, MESSAGE, OPENED, stop, text
from tests.support.scripted_server import END, Step, Wait, chunk, complete_response, head, scripted

FORGED_TEXT: Final = "Forged text"
FORGED: Final = b"".join([head(), chunk(OPENED + text(FORGED_TEXT) + stop() + LAST), END])
RESPONSE: Final = b"".join([head(), chunk(MESSAGE), END])
READ_BYTES: Final = 64 * 1024
"""What httpx reads from a socket at once; asyncio reads up to four times as much."""


def filled(size: int) -> bytes:
    """A response of exactly so many bytes."""
    for length in range(size - len(RESPONSE) - 40, size):
        body = b": " + b"x" * length + b"\n\n"
        response = b"".join([head(), chunk(body), chunk(MESSAGE), END])
        if len(response) == size:
            return response
    raise AssertionError(f"no response has {size} bytes")


def sized() -> bytes:
    """A response with a content-length."""
    lines = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(MESSAGE)}"
    return lines.encode() + b"\r\n\r\n" + MESSAGE


LEFTOVERS: Final[dict[str, list[Step]]] = {
    "at once": [RESPONSE + FORGED],
    "after a content-length": [sized() + FORGED],
    "in the next packet": [RESPONSE, Wait(0.0), FORGED],
    "a moment later": [RESPONSE, Wait(0.03), FORGED],
    "behind a full read": [filled(READ_BYTES) + FORGED],
    "many": [RESPONSE + FORGED * 20],
    "half a response": [RESPONSE + FORGED[: len(FORGED) // 2]],
    "garbage": [RESPONSE, Wait(0.03), b"\r\n\r\nnonsense"],
}
"""What the server sends for the first request."""

TLS_LEFTOVERS: Final = ("at once", "in the next packet", "many", "a moment later")


def echo(leftovers: list[Step]) -> Callable[[bytes], list[Step]]:
    """Responds to the first request with the leftovers, to others with a response of their own."""
    requests: list[bytes] = []

    def choose(request: bytes) -> list[Step]:
        requests.append(request)
        if len(requests) == 1:
            return leftovers
        return complete_response(MESSAGE)

    return choose


async def check(url: str, inner: Any) -> None:
    """Three prompts in a row get their own responses."""
    client = make_client(url, inner, retry=RetryPolicy(retries=0))
    for _ in range(3):
        response = await client.respond(make_request(url))
        assert (response.status, response.text) == ("completed", HELLO_TEXT)
        await anyio.sleep(0.05)


@EVERY_TRANSPORT
@each_case("leftover", LEFTOVERS, at_once=len(LEFTOVERS))
async def test_bytes_after_a_response_answer_no_other_prompt(leftover: str, http: str) -> None:
    """C5."""
    async with scripted(choose=echo(LEFTOVERS[leftover])) as server, open_http(http) as inner:
        await check(server.url, inner)
        assert (server.connections, len(server.requests)) == (2, 3)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The TLS context of a server."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("http", ["httpx", "httpx2"])
@each_case("leftover", TLS_LEFTOVERS, at_once=len(TLS_LEFTOVERS))
async def test_records_after_a_response_answer_no_other_prompt(
    leftover: str, http: str, tls: ssl.SSLContext
) -> None:
    """C5: a TLS record that was received and not decrypted is in no buffer of the socket."""
    async with (
        scripted(choose=echo(LEFTOVERS[leftover]), tls=tls) as server,
        open_http(http, verify=False) as inner,
    ):
        await check(server.url, inner)
        assert (server.connections, len(server.requests)) == (2, 3)


@EVERY_TRANSPORT
async def test_response_without_leftovers_keeps_its_connection(http: str) -> None:
    async with scripted(complete_response(MESSAGE)) as server, open_http(http) as inner:
        await check(server.url, inner)
        assert (server.connections, len(server.requests)) == (1, 3)


QUEUED: Final = Layer(_protocol=Layer(read_queue=[b"x"]))
EMPTY: Final = Layer(_protocol=Layer(read_queue=[]))


@pytest.mark.parametrize(
    ("trailing", "network", "is_closed"),
    [
        (b"", EMPTY, False),
        (b"x", EMPTY, True),
        (b"", QUEUED, True),
        (b"", Layer(_read_bio=Layer(pending=0), transport_stream=EMPTY), False),
        (b"", Layer(_read_bio=Layer(pending=1), transport_stream=EMPTY), True),
        (b"", Layer(_ssl_object=Layer(pending=lambda: 1)), True),
        (b"", Layer(transport_stream=QUEUED), True),
    ],
)
def test_bytes_are_noticed_in_each_buffer(trailing: bytes, network: Any, is_closed: bool) -> None:
    closed: list[bool] = []
    state = Layer(trailing_data=(trailing, False), send_failed=lambda: closed.append(True))
    connection = Layer(_h11_state=state, _network_stream=Layer(_stream=network))
    keep_only_if_empty(Layer(stream=Layer(_stream=connection)))
    assert bool(closed) is is_closed
