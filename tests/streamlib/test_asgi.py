"""One HTTP exchange on an ASGI server: pings, clients that leave, responses that end early.

Durations are simulated, so a long silence costs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from streamlib.asgi import AsgiExchange, Pings, comments
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]


class Server:
    """An ASGI server with one client, which may leave or be gone.

    Args:
        gone_after: messages after which sending raises, as servers do whose client is gone.
        blocked: seconds that the client takes to read a message.
    """

    def __init__(self, gone_after: float = float("inf"), blocked: float = 0.0) -> None:
        self.left = anyio.Event()
        self.messages: list[Any] = []
        self._gone_after = gone_after
        self._blocked = blocked

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if len(self.messages) >= self._gone_after:
            raise OSError("the connection is gone")
        self.messages.append(message)
        await anyio.sleep(self._blocked)

    def exchange(self, **scope: Any) -> AsgiExchange:
        return AsgiExchange(scope, self.receive, self.send, lambda: (200, {"x-a": "b"}))

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def is_complete(self) -> bool:
        return bool(self.messages) and not self.messages[-1].get("more_body", True)


async def test_exchange_pings_while_its_block_is_silent() -> None:
    server = Server()
    exchange = server.exchange()
    async with exchange.while_connected(Pings(lambda: b".", 10.0)):
        await anyio.sleep(25)
        await exchange.write(b"a")
        await anyio.sleep(9)
        await exchange.write(b"b")
        await anyio.sleep(11)
        await exchange.write(b"", more=False)
        await anyio.sleep(50)
    assert server.body == b"..ab."
    assert server.messages[0] == {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"x-a", b"b")],
    }


async def test_exchange_without_seconds_has_no_pings() -> None:
    server = Server()
    async with server.exchange().while_connected(comments(None)):
        await anyio.sleep(1000)
    assert not server.messages


async def test_exchange_sends_no_ping_when_the_response_is_over() -> None:
    server = Server()
    pings = comments(10.0, anyio.current_time() + 30)
    async with server.exchange().while_connected(pings):
        await anyio.sleep(100)
    assert server.body == 2 * b": ping\n\n"


async def test_exchange_sends_no_ping_while_a_write_is_blocked() -> None:
    server = Server(blocked=100.0)
    exchange = server.exchange()
    async with exchange.while_connected(comments(10.0)):
        await exchange.write(b"a")
    assert server.body == b"a"


async def test_exchange_cancels_its_block_when_the_client_leaves() -> None:
    server = Server()
    exchange = server.exchange()
    async with exchange.while_connected():
        await exchange.write(b"a")
        server.left.set()
        await anyio.sleep(1000)
        await exchange.write(b"b")
    await exchange.end()
    assert exchange.client_left
    assert server.body == b"a"
    assert not server.is_complete


@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt])
async def test_exception_of_an_exchange_comes_out_alone(kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        async with Server().exchange().while_connected():
            raise kind


async def test_client_that_leaves_after_the_end_has_everything() -> None:
    server = Server()
    exchange = server.exchange()
    async with exchange.while_connected():
        await exchange.write(b"a", more=False)
        server.left.set()
        await anyio.sleep(1)
    assert not exchange.client_left


@pytest.mark.parametrize("gone_after", range(5))
async def test_send_that_fails_is_a_client_that_left(gone_after: int) -> None:
    async def frames() -> AsyncGenerator[bytes]:
        yield b"1"
        await anyio.sleep(15)
        yield b"2"

    server = Server(gone_after)
    exchange = server.exchange()
    async with exchange.while_connected(Pings(lambda: b".", 10.0)):
        await exchange.write_all(frames())
    assert exchange.client_left
    assert len(server.messages) == gone_after


async def test_exchange_raises_what_its_block_raises() -> None:
    server = Server()
    with pytest.raises(LookupError):
        async with server.exchange().while_connected(comments(10.0)):
            raise LookupError("a defect")


# --- responses that end early ---


async def ended(server: Server, *, cancel: bool = False, stop: bool = False) -> AsgiExchange:
    """An exchange that writes once and is then ended."""
    exchange = server.exchange()

    async def end_early() -> None:
        await exchange.write(b"end", more=False)

    with anyio.move_on_after(5) as scope:
        if not cancel:
            scope.deadline = float("inf")
        async with exchange.while_connected(end_early=end_early):
            await exchange.write(b"a")
            if stop:
                exchange.stop()
            await anyio.sleep(1000)
    return exchange


async def test_stopped_exchange_sends_its_end() -> None:
    server = Server()
    await ended(server, stop=True)
    assert (server.body, server.is_complete) == (b"aend", True)


async def test_exchange_that_its_server_cancels_sends_its_end() -> None:
    server = Server()
    await ended(server, cancel=True)
    assert (server.body, server.is_complete) == (b"aend", True)


async def test_exchange_that_ends_by_itself_sends_no_other_end() -> None:
    server = Server()
    exchange = await ended(server)
    assert (server.body, exchange.is_ended) == (b"a", False)


async def test_exchange_stopped_before_its_block_sends_its_end_only() -> None:
    server = Server()
    exchange = server.exchange()
    exchange.stop()

    async def end_early() -> None:
        await exchange.write(b"end", more=False)

    async with exchange.while_connected(end_early=end_early):
        await anyio.sleep(1000)
    assert (server.body, server.is_complete) == (b"end", True)


async def test_end_waits_a_second_for_a_client_that_does_not_read() -> None:
    server = Server(blocked=3.0)
    start = anyio.current_time()
    await ended(server, cancel=True)
    assert anyio.current_time() - start == pytest.approx(6.0)


# --- responses without a stream ---


@pytest.mark.parametrize(
    ("status", "length"), [(200, [(b"content-length", b"2")]), (204, []), (304, [])]
)
async def test_whole_response_has_its_length(status: int, length: list[Any]) -> None:
    server = Server()
    await server.exchange(method="GET").respond(status, {}, b"{}" if status == 200 else b"")
    assert server.messages[0]["headers"] == length
    assert server.is_complete


async def test_head_request_gets_no_body() -> None:
    server = Server()
    await server.exchange(method="HEAD").respond(200, {}, b"{}")
    assert server.messages[0]["headers"] == [(b"content-length", b"2")]
    assert server.body == b""


async def test_header_that_is_no_text_of_http_has_question_marks() -> None:
    server = Server()
    await server.exchange().respond(204, {"x-model": "m\u2603"})
    assert server.messages[0]["headers"] == [(b"x-model", b"m?")]


# --- requests ---


async def test_path_is_that_of_a_mounted_application() -> None:
    assert Server().exchange(path="/app/log/a", root_path="/app").path == "/log/a"
    assert Server().exchange(path="/application", root_path="/app").path == "/application"


async def test_headers_and_query_of_a_request() -> None:
    exchange = Server().exchange(headers=[(b"a", b"1")], query_string=b"b=2&b=&c=3")
    assert (exchange.header("a"), exchange.header("b")) == ("1", None)
    assert (exchange.query("b"), exchange.query("d")) == (["2", ""], [])
