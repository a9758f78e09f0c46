"""The transports: requests, classification of exceptions, and a pool that survives cancellation."""

from __future__ import annotations

import gzip
import random
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.errors import StreamError
from streamlib.transport import CONNECTIONS, UNKNOWN_POOL, HttpxTransport, transport_for
from streamlib.transport import httpx as module
from streamlib.transport.closing import ShieldedAwait
from streamlib.transport.content_encoding import DECODED_CHUNK_BYTES, decode_content
from streamlib.transport.deadlines import Deadlines
from streamlib.transport.errors import FailurePoint, classify_exception, is_connection_closed
from streamlib.transport.httpcore_pool import pool_size
from tests.support.clients import (
    LIBRARIES,
    MemoryTransport,
    library,
    make_client,
    make_request,
    open_http,
)
from tests.support.metrics import figure
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, frames_of
from tests.support.scripted_server import END, HANG, Wait, chunk, complete_response, head, scripted
from tests.support.shared import ROOT

DEADLINES: Final = Deadlines(connect=3)


# --- what is accepted ---


def test_object_without_http_methods_is_refused() -> None:
    with pytest.raises(TypeError, match=r"httpx\.AsyncClient"):
        transport_for(object())


def test_custom_transport_is_used_unchanged() -> None:
    memory = MemoryTransport()
    assert transport_for(memory) is memory


@pytest.mark.parametrize("http", LIBRARIES)
async def test_stream_limit_is_at_most_the_users_pool(http: str) -> None:
    httpx = library(http)
    async with (
        httpx.AsyncClient(limits=httpx.Limits(max_connections=3)) as three,
        httpx.AsyncClient() as usual,
    ):
        assert pool_size(three) == 3
        assert pool_size(usual) == 100
        assert transport_for(three).slots.total_tokens == 3  # type: ignore[attr-defined]
        assert transport_for(three, 2).slots.total_tokens == 2  # type: ignore[attr-defined]
    assert pool_size(object()) == UNKNOWN_POOL


async def test_own_client_has_an_unlimited_pool() -> None:
    ours = transport_for()
    assert isinstance(ours, HttpxTransport)
    assert pool_size(ours._client) == sys.maxsize
    assert ours.slots.total_tokens == CONNECTIONS
    assert ours._client.follow_redirects is False
    await ours.aclose()
    assert ours._client.is_closed


@pytest.mark.parametrize("http", LIBRARIES)
async def test_client_of_the_user_stays_open(http: str) -> None:
    async with open_http(http) as users:
        async with make_client("http://127.0.0.1:9", users, retry=RetryPolicy(retries=0)) as client:
            with pytest.raises(StreamError):
                await client.respond(make_request("http://127.0.0.1:9"))
        assert not users.is_closed


@pytest.mark.parametrize("only", LIBRARIES)
def test_library_that_is_loaded_already_is_used(only: str) -> None:
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'parsers')]!r}; "
    code += f"import {only}, streamlib.transport as t; "
    code += "print(type(t.transport_for()._client).__module__)"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.partition(".")[0].strip() == only


def test_error_without_a_library_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(module.importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="httpx or httpx2"):
        transport_for()


# --- the request on the wire ---


@pytest.mark.parametrize("http", LIBRARIES)
async def test_request_is_sent_as_it_was_built(http: str) -> None:
    body = bytes(range(256)) * 10
    async with (
        scripted(complete_response(MESSAGE)) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):
        await client.respond(make_request(server.url, body=body))
    sent, _, payload = server.requests[0].partition(b"\r\n\r\n")
    lines = sent.lower().split(b"\r\n")
    assert lines[0] == b"post /messages http/1.1"
    assert payload == body
    assert b"content-length: 2560" in lines
    assert b"accept-encoding: identity" in lines
    assert not [line for line in lines if line.startswith(b"transfer-encoding")]


@pytest.mark.parametrize("http", LIBRARIES)
async def test_encoded_path_is_sent_unchanged(http: str) -> None:
    """A signature covers these very bytes."""
    async with (
        scripted(complete_response(MESSAGE)) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):
        request = make_request(server.url)
        url = f"{server.url}/model/us.a%3Ab%2Fc/x?alt=sse"
        await client.respond(
            type(request)("POST", url, request.headers, b"{}", [], "messages", "m", request.origin)
        )
    assert server.requests[0].startswith(b"POST /model/us.a%3Ab%2Fc/x?alt=sse HTTP/1.1")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_redirect_is_not_followed_by_a_users_client(http: str) -> None:
    moved = b"HTTP/1.1 308 x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    async with (
        scripted([moved]) as server,
        open_http(http, follow_redirects=True) as inner,
        make_client(server.url, inner) as client,
    ):
        with pytest.raises(StreamError, match="redirects"):
            await client.respond(make_request(server.url))
    assert len(server.requests) == 1


@pytest.mark.parametrize("http", LIBRARIES)
async def test_response_of_a_mock_transport_is_read(http: str) -> None:
    httpx = library(http)
    for content in (MESSAGE, gzip.compress(MESSAGE)):
        headers = {"content-type": "text/event-stream"}
        if content != MESSAGE:
            headers["content-encoding"] = "gzip"
        script = httpx.MockTransport(
            lambda request, content=content, headers=headers: httpx.Response(
                200, headers=headers, content=content
            )
        )
        async with (
            httpx.AsyncClient(transport=script) as inner,
            make_client("http://a.example", inner) as client,
        ):
            assert (await client.respond(make_request("http://a.example"))).text == HELLO_TEXT


async def test_object_with_only_the_methods_is_accepted() -> None:
    class Response:
        status_code = 200
        headers: Final = {"Content-Type": "text/event-stream"}
        extensions: Final[dict[str, Any]] = {}

        async def aiter_raw(self) -> AsyncIterator[bytes]:
            yield MESSAGE

        async def aclose(self) -> None:
            pass

    class Lookalike:
        def build_request(self, method: str, url: str, **options: Any) -> Any:
            return type("Request", (), {"stream": None})()

        async def send(self, request: Any, **options: Any) -> Response:
            assert options == {"stream": True, "follow_redirects": False}
            return Response()

        async def aclose(self) -> None:
            raise AssertionError("it is not ours")

    async with make_client("http://a.example", Lookalike()) as client:
        assert (await client.respond(make_request("http://a.example"))).text == HELLO_TEXT


# --- connections ---


@pytest.mark.parametrize("http", [None, *LIBRARIES])
async def test_a_hundred_streams_in_a_row_use_one_connection(http: str | None) -> None:
    inner = open_http(http) if http else None
    async with (
        scripted([*complete_response(MESSAGE)]) as server,
        make_client(server.url, inner) as client,
    ):
        for n in range(100):
            async with client.stream(make_request(server.url)) as stream:
                async for event in stream:
                    if n % 2 and type(event).__name__ == "Completed":
                        break
            assert stream.response.text == HELLO_TEXT
        figure("connections", server.connections)
        assert (server.connections, len(server.requests)) == (1, 100)
        if inner is not None:
            await inner.aclose()


@pytest.mark.parametrize("http", LIBRARIES)
async def test_reused_connection_that_was_closed_is_replaced_once(http: str) -> None:
    """The server closes it when the second request comes: too late to be seen before."""
    async with (
        scripted(complete_response(MESSAGE), ["RST"], complete_response(MESSAGE)) as server,
        open_http(http) as inner,
    ):
        async with make_client(server.url, inner, retry=RetryPolicy(retries=0)) as client:
            for _ in range(2):
                assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        assert (server.connections, len(server.requests)) == (2, 3)
    figure("fault/keepalive-stale")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_new_connection_that_is_closed_is_not_replaced(http: str) -> None:
    async with scripted(["RST"], complete_response(MESSAGE)) as server, open_http(http) as inner:
        client = make_client(server.url, inner, retry=RetryPolicy(retries=0), errors="event")
        response = await client.respond(make_request(server.url))
    assert response.error is not None
    assert (response.error.kind, len(server.requests)) == ("connection", 1)


@pytest.mark.parametrize("http", LIBRARIES)
async def test_library_ends_a_silent_read_at_the_next_deadline(
    http: str,
) -> None:
    """No timeout scope is entered then; otherwise it is one per read."""
    even = Deadlines(first_byte=0.15, first_event=0.15, idle=0.15)
    for script, phase in (
        ([HANG], "first_byte"),
        ([head(), HANG], "first_byte"),
        ([head(), chunk(HELLO), HANG], "idle"),
    ):
        async with scripted(script) as server, open_http(http) as inner:
            client = make_client(
                server.url, inner, deadlines=even, retry=RetryPolicy(retries=0), errors="event"
            )
            began = anyio.current_time()
            response = await client.respond(make_request(server.url))
        assert response.error is not None
        assert (response.error.kind, response.error.detail) == ("stalled", {"phase": phase})
        assert 0.1 < anyio.current_time() - began < 1


@pytest.mark.parametrize("http", LIBRARIES)
async def test_reads_enter_no_scope_when_none_is_needed(
    http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes = 0
    original = anyio.CancelScope

    def counted(**options: Any) -> Any:
        nonlocal scopes
        scopes += 1
        return original(**options)

    monkeypatch.setattr("streamlib.client.attempt.anyio.CancelScope", counted)
    frames = [step for frame in frames_of(50) for step in (chunk(frame), Wait(0.001))]
    async with (
        scripted([head(), *frames, END]) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):
        monkeypatch.setattr(module.anyio, "CancelScope", original)
        before = scopes
        async with client.stream(make_request(server.url)) as stream:
            batches = [batch async for batch in stream.batches()]
    assert len(batches) > 20
    assert scopes - before < 10


# --- the storm ---


async def storm(http: str, cancellations: int, connections: int = 4) -> None:
    """Random cancellations of many streams on a small pool; then every slot must still work."""
    httpx, rng = library(http), random.Random(7)
    script = [Wait(0.001), head(), chunk(HELLO), Wait(0.002), chunk(MESSAGE[len(HELLO) :]), END]
    async with (
        scripted(script) as server,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=connections)) as inner,
    ):
        async with make_client(server.url, inner) as client:

            async def respond(delay: float) -> None:
                with anyio.move_on_after(delay):
                    await client.respond(make_request(server.url))

            for _ in range(0, cancellations, 20):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(respond, rng.random() * 0.012)
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    for _ in range(connections * 2):
                        group.start_soon(respond, 5)
            assert client._transport.slots.borrowed_tokens == 0  # type: ignore[attr-defined]
        assert all(connection.is_idle() for connection in inner._transport._pool.connections), (
            inner._transport._pool.connections
        )
        assert inner._transport._pool._requests == []
        await inner.aclose()
        await server.quiet()
        assert server.open == 0
    figure("cancellations", cancellations)


@pytest.mark.parametrize("http", LIBRARIES)
async def test_a_thousand_cancellations_leave_the_pool_usable(http: str) -> None:
    await storm(http, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("http", LIBRARIES)
async def test_ten_thousand_cancellations_leave_the_pool_usable(http: str) -> None:
    await storm(http, 10_000)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The TLS context of a server."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def self_signed(folder: Path) -> ssl.SSLContext:
    """A self-signed certificate."""
    import shutil

    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("this needs the openssl command to make a certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command_options = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run(
        [openssl, *command_options, "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize("http", LIBRARIES)
async def test_cancellation_in_a_handshake_closes_the_socket(
    http: str, tls: ssl.SSLContext
) -> None:
    """The libraries close it only where the handshake fails, not where it is cancelled."""
    async with (
        scripted(complete_response(MESSAGE), tls=tls) as server,
        open_http(http, verify=False) as inner,
    ):
        async with make_client(server.url, inner) as client:
            for n in range(40):
                with anyio.move_on_after(n * 0.0005):
                    await client.respond(make_request(server.url))
            assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        pool = inner._transport._pool
        assert all(connection.is_idle() for connection in pool.connections)


# --- exceptions ---


def raised(name: str, text: str = "", base: type[BaseException] = Exception) -> BaseException:
    """An exception of a class of that name, below a class of httpx's."""
    parent = type("TransportError", (base,), {})
    return type(name, (parent,), {})(text)


@pytest.mark.parametrize(
    ("error", "before", "after", "retryable"),
    [
        (raised("ConnectError", "refused"), "connection", "truncated", True),
        (raised("ReadError"), "connection", "truncated", True),
        (
            raised("RemoteProtocolError", "Server disconnected without sending a response."),
            "connection",
            "truncated",
            True,
        ),
        (
            raised("RemoteProtocolError", "<ConnectionTerminated error_code:0, last_stream_id:1>"),
            "connection",
            "truncated",
            True,
        ),
        (
            raised(
                "RemoteProtocolError", "<StreamReset stream_id:1, error_code:8, remote_reset:True>"
            ),
            "connection",
            "truncated",
            True,
        ),
        (
            raised("RemoteProtocolError", "illegal status line: bytearray(b'x')"),
            "malformed",
            "malformed",
            False,
        ),
        (
            raised("LocalProtocolError", "Illegal header value"),
            "invalid_request",
            "invalid_request",
            False,
        ),
        (raised("ConnectTimeout"), "stalled", "stalled", True),
        (raised("PoolTimeout"), "connection", "truncated", True),
        (TimeoutError(), "stalled", "stalled", True),
        (ConnectionResetError("reset"), "connection", "truncated", True),
        (anyio.BrokenResourceError(), "connection", "truncated", True),
        (zlib.error("incorrect header check"), "malformed", "malformed", False),
        (AssertionError("a bug"), "connection", "truncated", False),
    ],
    ids=lambda value: (
        f"{type(value).__name__} {value}" if isinstance(value, BaseException) else None
    ),
)
def test_exception_is_classified_by_its_name(
    error: BaseException, before: str, after: str, *, retryable: bool
) -> None:
    for has_response, kind in ((False, before), (True, after)):
        info = classify_exception(
            error, FailurePoint(has_response=has_response, phase="idle", deadlines=DEADLINES)
        )
        assert (info.kind, info.retryable) == (kind, retryable)


def test_http2_connection_termination_is_truncated() -> None:
    """GOAWAY within a stream, as httpcore reports it."""
    info = classify_exception(
        raised("RemoteProtocolError", "<ConnectionTerminated error_code:2>"),
        FailurePoint(has_response=True, phase="idle", deadlines=DEADLINES),
    )
    assert info.kind == "truncated"


def test_certificate_error_is_not_retryable() -> None:
    error = raised("ConnectError", "handshake")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed")
    assert not classify_exception(
        error, FailurePoint(has_response=False, phase="connect", deadlines=DEADLINES)
    ).retryable


def test_exception_text_is_masked_and_short() -> None:
    info = classify_exception(
        OSError("Bearer sk-abcdef0123456789 " + "x" * 5000),
        FailurePoint(has_response=False, phase="connect", deadlines=DEADLINES),
    )
    assert "sk-abcdef" not in info.message
    assert len(info.message) < 700


def test_only_a_closed_connection_counts_as_closed() -> None:
    assert is_connection_closed(raised("ReadError"))
    assert is_connection_closed(raised("RemoteProtocolError", "Server disconnected"))
    assert not is_connection_closed(raised("RemoteProtocolError", "illegal chunk header"))
    assert not is_connection_closed(raised("ConnectError"))


# --- compressed bodies ---


async def _chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk_ in chunks:
        yield chunk_


COMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate without a header": lambda body: zlib.compress(body, wbits=-15),
    "two members": lambda body: (
        gzip.compress(body[: len(body) // 2]) + gzip.compress(body[len(body) // 2 :])
    ),
}


@pytest.mark.parametrize("compressor", COMPRESSORS)
async def test_compressed_body_is_equal_for_every_chunk_size(compressor: str) -> None:
    compressed = COMPRESSORS[compressor](MESSAGE * 3)
    encoding = {"content-encoding": "gzip" if compressor in {"gzip", "two members"} else "deflate"}
    for size in (1, 7, 100, len(compressed)):
        chunks = [compressed[start : start + size] for start in range(0, len(compressed), size)]
        assert (
            b"".join([decoded async for decoded in decode_content(_chunks(*chunks), encoding)])
            == MESSAGE * 3
        )


async def test_no_step_decodes_more_than_its_limit() -> None:
    size = 20 * DECODED_CHUNK_BYTES + 5
    chunks = [
        len(decoded)
        async for decoded in decode_content(
            _chunks(gzip.compress(bytes(size))), {"content-encoding": "gzip"}
        )
    ]
    assert sum(chunks) == size
    assert max(chunks) <= DECODED_CHUNK_BYTES


async def test_truncated_compressed_body_raises() -> None:
    compressed = gzip.compress(MESSAGE)
    for end in range(1, len(compressed) - 1, 7):
        with pytest.raises((StreamError, zlib.error)):
            [
                decoded
                async for decoded in decode_content(
                    _chunks(compressed[:end]), {"content-encoding": "gzip"}
                )
            ]


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "br", "zstd", "gzip, identity, deflate", "x" * 500]
)
def test_unsupported_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(StreamError) as raised_:
        decode_content(_chunks(), {"content-encoding": encoding})
    assert raised_.value.kind == "malformed"
    assert len(raised_.value.message) < 200


@pytest.mark.parametrize("encoding", ["", "identity", "Identity, identity", "GZIP"])
async def test_identity_encoding_returns_the_same_iterator(encoding: str) -> None:
    chunks = _chunks()
    assert (decode_content(chunks, {"content-encoding": encoding}) is chunks) is (
        encoding != "GZIP"
    )
    await chunks.aclose()  # type: ignore[attr-defined]


# --- closing ---


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancellation_is_raised_after_closing_completes() -> None:
    import asyncio

    done: list[int] = []

    async def closing() -> None:
        for n in range(5):
            await asyncio.sleep(0)
            done.append(n)

    async def run() -> None:
        await ShieldedAwait(closing())

    for wait in range(4):
        done.clear()
        task = asyncio.create_task(run())
        for _ in range(wait + 1):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancellation_wins_over_a_failure_to_close() -> None:
    import asyncio

    async def closing() -> None:
        await asyncio.sleep(0)
        raise BrokenPipeError

    async def run() -> None:
        await ShieldedAwait(closing())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(BrokenPipeError):
        await run()


def test_transport_is_created_by_the_first_request() -> None:
    assert Client()._opened_transport is None
