"""One WebSocket: pings while sending, limits, close codes, keys, a missing library."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import ssl
import tracemalloc
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream

from streamlib import Failed, Prompt, StreamError, user
from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.testing import running
from streamlib.transport.deadlines import Deadlines
from streamlib.transport.websocket import (
    FRAGMENT_BYTES,
    SocketClosed,
    WebSocket,
    close_error,
    open_websocket,
)
from streamlib_parsers.limits import Limits
from tests.support.certificates import self_signed
from tests.support.keys import UNUSUAL_KEY, printed
from tests.support.loops import asyncio_alone
from tests.support.websocket_scripts import (
    EXPECT,
    FOREVER,
    Close,
    Drop,
    Pause,
    Ping,
    Raw,
    connected,
    error_frame,
    response_frames,
    scripted_socket,
)

pytestmark = pytest.mark.anyio


async def end_of(server: Any, **options: Any) -> Any:
    """How the response to a request ends."""
    async with connected(server.url, **options) as connection:
        async with connection.stream("x", errors="event") as stream:
            events = [event async for event in stream]
        last = events[-1]
        return last.error if isinstance(last, Failed) else stream.response.text


async def test_header_that_comes_twice_has_both_values() -> None:
    """As in HTTP: the last one alone would hide a limit, or a cookie."""
    refusal = b"HTTP/1.1 429 Slow\r\nX-Limit: 1\r\nx-limit: 2\r\nContent-Length: 0\r\n\r\n"
    async with scripted_socket(status=refusal) as server:
        upgrade = await open_websocket(server.url, {}, Deadlines(), 1 << 20)
    assert (upgrade.status, upgrade.headers["x-limit"]) == (429, "1, 2")


async def cancel_while_sending(stream: Any) -> None:
    """Enters a stream, and is cancelled once a part of its request was sent."""
    async with anyio.create_task_group() as group:
        group.start_soon(stream.__aenter__)
        with anyio.fail_after(5):
            while not stream.source.sent:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert stream.response.status == "cancelled"


async def test_a_ping_is_answered_while_a_response_is_read() -> None:
    frames = response_frames("r1", "One")
    async with scripted_socket([EXPECT, frames[0], Ping(), *frames[1:]]) as server:
        assert await end_of(server) == "One"
    assert server.pongs == [b"are you there"]


async def test_a_ping_is_answered_while_a_request_is_sent() -> None:
    """A server that pings during a large upload, and closes without an answer (1011)."""
    script = [Ping(b"early"), EXPECT, *response_frames("r1", "One")]
    text = "word " * 200_000
    async with scripted_socket(script) as server, connected(server.url) as connection:
        async with connection.stream(text) as stream:
            async for _ in stream:
                pass
        assert stream.response.text == "One"
    assert server.pongs == [b"early"]
    # The answer came between two fragments, not behind the message.
    assert len(server.sizes) > 10
    assert max(server.sizes) <= FRAGMENT_BYTES
    assert server.messages[0]["input"][0]["content"][0]["text"] == text


async def test_a_cancelled_upload_leaves_other_lanes_usable() -> None:
    script = [Pause(0.02), EXPECT, EXPECT, *response_frames("r2", "Two", lane="b"), FOREVER]
    async with scripted_socket(script) as server, connected(server.url) as connection:
        await cancel_while_sending(connection.stream("word " * 1_000_000, lane="a"))
        async with connection.stream("y", lane="b") as stream:
            async for _ in stream:
                pass
    assert stream.response.text == "Two"


async def test_a_cancelled_upload_still_has_its_response() -> None:
    """Its request was sent: what is received for it belongs to nobody else."""
    script = [Pause(0.02), EXPECT, EXPECT, *response_frames("r1", "One", lane="a")]
    script += response_frames("r2", "Two", lane="a")
    async with scripted_socket(script) as server, connected(server.url) as connection:
        await cancel_while_sending(connection.stream("word " * 1_000_000, lane="a"))
        async with connection.stream("y", lane="a") as stream:
            async for _ in stream:
                pass
    assert stream.response.text == "Two"


async def test_a_request_that_was_not_sent_has_no_response() -> None:
    """It waited behind the upload of another lane, and was cancelled."""
    script = [Pause(0.03), EXPECT, EXPECT, *response_frames("r2", "Two", lane="b")]
    async with scripted_socket(script) as server, connected(server.url) as connection:
        async with anyio.create_task_group() as group:
            large = connection.stream("word " * 1_000_000, lane="a")
            group.start_soon(large.__aenter__)
            with anyio.fail_after(5):
                while not large.source.sent:
                    await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(0.005):
                async with connection.stream("left", lane="b"):
                    pass
        async with connection.stream("y", lane="b") as stream:
            async for _ in stream:
                pass
        await large.aclose()
    assert stream.response.text == "Two"
    assert [message["stream_id"] for message in server.messages] == ["a", "b"]


async def test_an_upload_that_never_ends_breaks_only_its_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamlib.transport.websocket.CLOSING_SECONDS", 0.02)
    script = [EXPECT, *response_frames("r2", "Two", lane="b")]
    async with scripted_socket([FOREVER], script) as server, connected(server.url) as connection:
        await cancel_while_sending(connection.stream("word " * 2_000_000, lane="a"))
        async with connection.stream("y", lane="b") as stream:
            async for _ in stream:
                pass
    assert stream.response.text == "Two"
    assert len(server.handshakes) == 2


async def test_empty_fragments_take_no_memory() -> None:
    """Any number of them may come before the end of a message; each took eight bytes."""
    protocol = SimpleNamespace(events_received=lambda: frames, receive_data=len)
    socket = WebSocket(cast("ByteStream", None), protocol, [], 1000)
    empty = SimpleNamespace(opcode=SimpleNamespace(name="CONT"), data=b"", fin=False)
    frames = [empty] * 10_000
    tracemalloc.start()
    try:
        for _ in range(10):
            assert socket.feed(b"x") == []
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50_000
    frames = [SimpleNamespace(opcode=empty.opcode, data=b"{}", fin=True)]
    assert socket.feed(b"x") == [b"{}"]


async def test_a_message_over_the_limit_ends_with_its_name() -> None:
    limits = Limits(event_bytes=10_000)
    frames = response_frames("r1", "x" * 20_000)
    async with scripted_socket([EXPECT, *frames]) as server:
        error = await end_of(server, client={"limits": limits})
    assert (error.kind, error.code) == ("limit_exceeded", "event_bytes")
    assert "10000" in error.message


@pytest.mark.parametrize(
    ("step", "kind", "code"),
    [
        (Close(1000), "truncated", "websocket_1000"),
        (Close(1001, "going away"), "truncated", "websocket_1001"),
        (Close(1008, "policy"), "permission", "websocket_1008"),
        (Close(1009), "request_too_large", "websocket_1009"),
        (Close(1011, "keepalive timeout"), "server_error", "websocket_1011"),
        (Close(1013), "overloaded", "websocket_1013"),
        (Close(4321), "truncated", "websocket_4321"),
        (Drop(), "truncated", "websocket_1006"),
        (Raw(b"\xff\xff\xff\xff"), "malformed", "ProtocolError"),
        (b"no JSON", "malformed", None),
    ],
    ids=str,
)
async def test_the_end_of_a_connection_has_a_kind(step: Any, kind: str, code: str | None) -> None:
    script = [EXPECT, response_frames("r1", "One")[0], step]
    async with scripted_socket(script) as server:
        error = await end_of(server)
        assert (error.kind, error.code) == (kind, code)
        assert len(server.messages) == 1  # whatever the kind, nothing was repeated


def test_every_close_code_has_a_bounded_message() -> None:
    for code in range(1000, 5000, 7):
        error = close_error(code, "x" * 5_000)
        assert len(error.message) < 400
        assert error.detail == {"close_code": code, "reason": "x" * 200}
        assert error.code == f"websocket_{code}"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1007, "invalid_request"),
        (3000, "authentication"),
        (3003, "permission"),
        (3008, "stalled"),
        (1000, "truncated"),
        (3004, "truncated"),
    ],
)
def test_close_code_of_the_registry_has_its_kind(code: int, kind: str) -> None:
    error = close_error(code, "")
    assert error.kind == kind
    assert error.message.endswith(f" ({code})")


class Protocol:
    """What a `WebSocket` asks of its protocol."""

    def __init__(self, state: str = "OPEN") -> None:
        self.state = SimpleNamespace(name=state)
        self.writes: list[bytes] = []
        self.ends: list[bool] = []
        """Of each fragment, whether it is the last one."""
        self.parser_exc = None
        self.close_rcvd = None
        self.is_at_end = False

    def receive_eof(self) -> None:
        self.is_at_end = True

    def send_text(self, data: bytes, fin: bool) -> None:
        self.writes.append(data)
        self.ends.append(fin)

    def send_continuation(self, data: bytes, fin: bool) -> None:
        assert self.ends
        self.send_text(data, fin)

    def send_close(self, code: int) -> None:
        self.writes.append(b"close %d" % code)

    def data_to_send(self) -> list[bytes]:
        data, self.writes = self.writes, []
        return data


class Socket:
    """A socket whose bytes are kept and that has nothing to read, or that is broken."""

    def __init__(self, *, is_broken: bool = False) -> None:
        self.sent = b""
        self._is_broken = is_broken

    async def send(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        if self._is_broken:
            raise anyio.BrokenResourceError
        self.sent += data

    async def receive(self, most: int) -> bytes:
        await anyio.lowlevel.checkpoint()
        if self._is_broken:
            raise anyio.BrokenResourceError
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        pass


def websocket(socket: Socket, protocol: Protocol) -> WebSocket:
    return WebSocket(cast("ByteStream", socket), protocol, [], 1000)


@pytest.mark.parametrize(
    ("size", "fragments"),
    [(0, 1), (1, 1), (FRAGMENT_BYTES, 1), (FRAGMENT_BYTES + 1, 2), (2 * FRAGMENT_BYTES + 1, 3)],
)
async def test_every_byte_of_a_message_is_sent(size: int, fragments: int) -> None:
    socket, protocol = Socket(), Protocol()
    message = b"x" * max(size - 1, 0) + b"y" * min(size, 1)
    await websocket(socket, protocol).send(message)
    assert socket.sent == message
    assert protocol.ends == [False] * (fragments - 1) + [True]


async def test_request_on_a_broken_socket_fails() -> None:
    started: list[bool] = []
    opened = websocket(Socket(is_broken=True), Protocol())
    with pytest.raises(SocketClosed):
        await opened.send(b"x", lambda: started.append(True))
    assert started


@pytest.mark.parametrize("is_broken", [True, False])
async def test_connection_that_ends_while_it_is_read_is_closed(is_broken: bool) -> None:
    """The protocol learns of it: otherwise it goes on saying that it is open."""
    protocol = Protocol()
    with pytest.raises(SocketClosed) as raised:
        await websocket(Socket(is_broken=is_broken), protocol).read()
    assert protocol.is_at_end
    assert ("BrokenResourceError" in raised.value.info.message) is is_broken


async def test_request_does_not_begin_on_a_closed_socket() -> None:
    """Its caller may send it again: not a byte of it was written."""
    started: list[bool] = []
    socket = Socket()
    with pytest.raises(SocketClosed):
        await websocket(socket, Protocol("CLOSING")).send(b"x", lambda: started.append(True))
    assert (started, socket.sent) == ([], b"")


async def test_closing_sends_the_regular_code() -> None:
    socket = Socket()
    await websocket(socket, Protocol()).aclose()
    assert socket.sent == b"close 1000"


async def test_a_key_in_a_close_reason_is_masked() -> None:
    for step in (Close(1008, f"bad key {UNUSUAL_KEY}"), error_frame(UNUSUAL_KEY)):
        async with scripted_socket([EXPECT, step]) as server:
            error = await end_of(server, api_key=UNUSUAL_KEY)
        assert UNUSUAL_KEY not in repr(error)


async def test_a_key_is_in_no_log_repr_or_traceback(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answers = (
        f"HTTP/1.1 401 Unauthorized\r\ncontent-length: {len(UNUSUAL_KEY)}\r\n\r\n{UNUSUAL_KEY}",
        f"HTTP/1.1 101 Switching\r\nupgrade: {UNUSUAL_KEY}\r\nconnection: upgrade\r\n\r\n",
        f"{UNUSUAL_KEY}\r\n\r\n",
    )
    for answer in answers:
        async with scripted_socket(status=answer.encode()) as server, Client() as client:
            connection = client.connect("loopback:m", base_url=server.url, api_key=UNUSUAL_KEY)
            with pytest.raises(StreamError) as raised:
                async with connection:
                    pass
            assert UNUSUAL_KEY not in printed(raised.value, own=False), answer
            assert UNUSUAL_KEY not in repr(connection)
            assert server.handshakes[0]["authorization"] == f"Bearer {UNUSUAL_KEY}"
    async with running() as url, connected(url + "/v1", api_key=UNUSUAL_KEY) as connection:
        async with connection.stream("x") as stream:
            async for _ in stream:
                pass
        assert UNUSUAL_KEY not in repr((connection, stream, stream.request, stream.headers))
    assert UNUSUAL_KEY not in caplog.text


async def test_a_key_is_sent_only_to_its_own_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", UNUSUAL_KEY)
    async with scripted_socket([FOREVER]) as server, Client() as client:
        async with client.connect("openai:m", base_url=server.url):
            pass
        elsewhere = client.connect("openai:m", base_url="https://elsewhere.example/v1")
        with pytest.raises(StreamError) as raised:
            async with elsewhere:
                pass
    assert raised.value.kind == "authentication"
    assert "authorization" not in server.handshakes[0]
    with pytest.raises(StreamError, match="authorization"):
        async with Client() as client:
            client.connect("loopback:m", headers={"authorization": "Bearer x"})


async def test_no_server_is_a_failed_connection() -> None:
    async with Client(retry=RetryPolicy(retries=0)) as client:
        connection = client.connect("loopback:m", base_url="http://127.0.0.1:9/v1")
        with pytest.raises(StreamError) as raised:
            async with connection:
                pass
    assert raised.value.kind == "connection"


async def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def absent(name: str, package: str | None = None) -> Any:
        if name.startswith("websockets"):
            raise ModuleNotFoundError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", absent)
    async with Client(api_key="k" * 20) as client:
        with pytest.raises(StreamError, match=r"pip install 'streamlib\[websocket\]'"):
            client.connect("loopback:m")


async def test_messages_of_xai_are_read_as_over_http() -> None:
    """What xAI streams over HTTP, as the messages of a WebSocket."""
    from streamlib import accumulate, parser
    from tests.support.shared import SHARED, require

    folder = require(SHARED / "corpus-2" / "responses-xai")
    shortest = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size)
    for path in shortest[:2]:
        payloads = [line for line in path.read_bytes().splitlines() if line]
        alone = parser("responses")
        events = [event for payload in payloads for event in alone.feed_event(payload)]
        expected = accumulate([*events, *alone.close()])
        async with (
            scripted_socket([EXPECT, *payloads]) as server,
            connected(server.url, provider="xai") as connection,
            connection.stream(Prompt([user("x")])) as stream,
        ):
            async for _ in stream:
                pass
        assert stream.response.text == expected.text, path.name
        assert [item.id for item in stream.response.items] == [item.id for item in expected.items]
        assert "stream_id" not in json.dumps(server.messages)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    return self_signed(tmp_path_factory.mktemp("tls"))


async def test_tls_reads_sends_and_checks_certificates(tls: ssl.SSLContext) -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    script = [EXPECT, *response_frames("r1", "One"), Ping(), EXPECT, Drop()]
    async with scripted_socket(script, tls=tls) as server:
        async with connected(server.url, ssl_context=trusting) as connection:
            for _ in range(2):
                stream = connection.stream("word " * 100_000, errors="event")
                async with stream:
                    async for _ in stream:
                        pass
        assert stream.response.error is not None
        assert stream.response.error.kind == "truncated"
        assert server.pongs == [b"are you there"]
        async with Client(retry=RetryPolicy(base=0.0)) as client:
            strict = client.connect("loopback:m", base_url=server.url, api_key="k" * 20)
            with pytest.raises(StreamError) as raised:
                async with strict:
                    pass
    assert (raised.value.kind, raised.value.retryable) == ("connection", False)


@asyncio_alone
async def test_a_cancelled_asyncio_task_leaves_the_socket_usable(anyio_backend: str) -> None:
    """asyncio's own cancellation, which no scope of anyio announces."""
    frames = response_frames("r1", "One", lane="a")
    script = [EXPECT, frames[0], EXPECT, *response_frames("r2", "Two", lane="b")]
    async with scripted_socket(script) as server, connected(server.url) as connection:

        async def read_one() -> None:
            async with connection.stream("x", lane="a") as stream:
                async for _ in stream:
                    pass

        task = asyncio.create_task(read_one())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with connection.stream("y", lane="b") as stream:
            async for _ in stream:
                pass
    assert stream.response.text == "Two"
