"""Every fault of the shared catalogue, on a real socket, ends as the catalogue says, on both loops.

One row per id: what the server does, and how the stream must end. The last test fails if an id of
the catalogue has no row and no test.
"""

from __future__ import annotations

import gzip
import json
import shutil
import ssl
import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import Failed, FunctionCall, Limits, Opaque, Response
from tests.support import clients
from tests.support.clients import KEY, make_request
from tests.support.http2_server import goaway_server
from tests.support.metrics import figure
from tests.support.response_bodies import (
    CALL,
    CHAT,
    COMPLETE_BODY,
    CREATED,
    DONE,
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    OPENED,
    OVERLOADED,
    PING,
    START,
    arguments,
    aws,
    block,
    calls,
    converse,
    error_body,
    finish,
    named,
    part,
    response_end,
    sse,
    stop,
    text,
)
from tests.support.scripted_server import (
    END,
    FIN,
    HANG,
    RST,
    Repeat,
    Script,
    Server,
    Step,
    Wait,
    chunk,
    complete_response,
    head,
    scripted,
)
from tests.support.shared import SHARED, vectors

SHORT: Final = Deadlines(
    connect=2, headers=0.8, first_byte=0.4, first_event=0.6, idle=0.3, total=5, tail=0.2, drain=0.1
)
LONG: Final = Deadlines(
    connect=2, headers=5, first_byte=5, first_event=5, idle=5, total=10, tail=0.2, drain=0.1
)
ONCE: Final = RetryPolicy(retries=0)
QUICK: Final = RetryPolicy(retries=2, base=0.01, jitter=0.0)
SMALL: Final = Limits(
    event_bytes=64 << 10, response_bytes=1 << 20, items=200, argument_bytes=32 << 10
)


@dataclass(frozen=True)
class Row:
    """One fault and how the stream ends.

    error: kind of the failure; None for a complete response. phase: phase of a deadline.
    sent: number of requests.
    """

    id: str
    scripts: Sequence[Script]
    error: str | None = None
    phase: str | None = None
    text: str | None = None
    retryable: bool | None = None
    status: int | None = None
    notices: tuple[str, ...] = ()
    sent: int | None = None
    wire: Any = "messages"
    deadlines: Deadlines = LONG
    retry: RetryPolicy = ONCE
    limits: Limits = field(default_factory=Limits)
    message: str = ""
    also: Callable[[Response, ResponseStream, Server], bool] | None = None


def stream(*bodies: bytes, then: Sequence[Step] = (END,), wire: str = "messages") -> list[Step]:
    """A stream of these bodies, one HTTP chunk each."""
    kind = "application/vnd.amazon.eventstream" if wire == "converse" else "text/event-stream"
    return [head(content_type=kind), *(chunk(body) for body in bodies), *then]


def closing(body: bytes, status: str = "200 OK", **headers: str) -> list[Step]:
    """A response without a length: it ends with the connection."""
    lines = [f"HTTP/1.1 {status}", "content-type: text/event-stream", "connection: close"]
    return [
        "\r\n".join(
            [*lines, *(f"{key}: {value}" for key, value in headers.items()), "", ""]
        ).encode()
        + body,
        FIN,
    ]


def the_call(response: Response) -> FunctionCall:
    """The only call of a response."""
    (call,) = (item for item in response.items if isinstance(item, FunctionCall))
    return call


def deep(levels: int) -> bytes:
    """Nested objects in place of a delta."""
    return (
        b'data: {"type":"content_block_delta","index":0,"delta":'
        + b'{"a":' * levels
        + b"1"
        + b"}" * levels
        + b"}\n\n"
    )


def gzipped(body: bytes) -> bytes:
    """gzip, flushed every 64 bytes as a streaming server does."""
    compressor = zlib.compressobj(wbits=31)
    return (
        b"".join(
            compressor.compress(body[start : start + 64]) + compressor.flush(zlib.Z_SYNC_FLUSH)
            for start in range(0, len(body), 64)
        )
        + compressor.flush()
    )


@cache
def bomb() -> bytes:
    """A few KiB that decompress to one comment line of 64 MiB."""
    return gzip.compress(b":" + b" " * (64 << 20))


OK: Final = complete_response(MESSAGE)
OVERLOAD: Final = complete_response(
    error_body("overloaded_error"), "529 Overloaded", "application/json"
)
FAILURE: Final = complete_response(
    error_body("api_error"), "500 Internal Server Error", "application/json"
)


def refusal(
    status: str,
    kind: str,
    body: bytes | None = None,
    content_type: str = "application/json",
    **headers: str,
) -> list[Step]:
    """An HTTP error."""
    return complete_response(
        error_body(kind) if body is None else body, status, content_type, **headers
    )


def error(name: str, *scripts: Script, kind: str, **values: Any) -> Row:
    """A row that ends in a failure."""
    return Row(name, scripts, kind, **values)


def complete(name: str, *scripts: Script, **values: Any) -> Row:
    """A row that ends with a complete response."""
    return Row(name, scripts, None, **{"text": HELLO_TEXT, **values})


TOOL_START: Final = {
    "index": 0,
    "id": "call_a",
    "type": "function",
    "function": {"name": "get_weather", "arguments": ""},
}
PAGE: Final = (
    b"<html><head><title>Just a moment</title></head><body>" + b"x" * 4000 + b"</body></html>"
)
NOBODY: Final = "http://127.0.0.1:9"

CONNECTION: Final = (
    error("rst-before-headers", [RST], kind="connection", retryable=True),
    error("silence-before-headers", [HANG], kind="stalled", phase="first_byte", deadlines=SHORT),
    error(
        "headers-drip",
        [b"HTTP/1.1 200 OK\r\n", Repeat(b"x", 0.05)],
        kind="stalled",
        phase="headers",
        deadlines=SHORT,
    ),
    error(
        "headers-100kB",
        [b"HTTP/1.1 200 OK\r\nx-long: " + b"a" * 150_000 + b"\r\n\r\n", HANG],
        kind="malformed",
    ),
)

TRUNCATED: Final = (
    error("eof-no-terminal-clean", stream(HELLO), kind="truncated", text=HELLO_TEXT),
    error("eof-no-terminal-close", closing(HELLO), kind="truncated", text=HELLO_TEXT),
    error(
        "eof-all-but-terminal", stream(HELLO, stop(), finish()), kind="truncated", text=HELLO_TEXT
    ),
    error("eof-mid-event", stream(HELLO, text("more")[:-20]), kind="truncated", text=HELLO_TEXT),
    error(
        "eof-mid-chunk",
        [head(), chunk(HELLO), b"400\r\ndata: {", FIN],
        kind="truncated",
        text=HELLO_TEXT,
    ),
    error("rst-mid", [head(), chunk(HELLO), Wait(0.05), RST], kind="truncated", text=HELLO_TEXT),
    complete(
        "no-final-blank", stream(HELLO, stop(), finish(), LAST[:-2]), notices=("end_inferred",)
    ),
    complete("done-missing", stream(CHAT.removesuffix(DONE)), wire="chat"),
    complete(
        "finish-missing",
        stream(part({"content": "Hello"}), part({"content": " there"}), DONE),
        wire="chat",
    ),
)

OTHER_BODIES: Final = (
    error("empty-200", stream(), kind="malformed"),
    error("only-comments", stream(b": ping\n\n", b": ping\n\n"), kind="malformed"),
    error(
        "html-200",
        complete_response(PAGE, content_type="text/html"),
        kind="malformed",
        message="text/html",
        also=lambda r, s, _: "Just a" in str(r.error),
    ),
    error(
        "json-200",
        complete_response(error_body("overloaded_error"), content_type="application/json"),
        kind="overloaded",
        retryable=True,
    ),
    complete("json-200-ok", complete_response(COMPLETE_BODY, content_type="application/json")),
    complete("ct-missing", complete_response(MESSAGE, content_type=None)),
    complete(
        "ct-case", complete_response(MESSAGE, content_type="Text/Event-Stream; Charset=UTF-8")
    ),
    complete(
        "ct-charset-1252",
        complete_response(
            OPENED + text("Grüße ✓") + stop() + finish() + LAST,
            content_type="text/event-stream; charset=windows-1252",
        ),
        text="Grüße ✓",
    ),
)

IN_BAND: Final = (
    error(
        "error-event", stream(HELLO, OVERLOADED), kind="overloaded", text=HELLO_TEXT, retryable=True
    ),
    error("error-event-first", stream(OVERLOADED), kind="overloaded", text="", retryable=True),
    error(
        "error-in-chunk",
        stream(
            part({"content": HELLO_TEXT}), sse({"error": {"message": "slow down", "code": 429}})
        ),
        kind="rate_limited",
        wire="chat",
    ),
    error(
        "response-failed",
        stream(CREATED, response_end("failed", error={"code": "server_error", "message": "oh"})),
        kind="server_error",
        wire="responses",
    ),
    error(
        "aws-exception",
        stream(
            converse("messageStart", role="assistant"),
            aws(
                {"message": "slow"}, message_type="exception", exception_type="throttlingException"
            ),
            wire="converse",
        ),
        kind="rate_limited",
        wire="converse",
    ),
)

PAYLOADS: Final = (
    error(
        "bad-json",
        stream(HELLO, b'data: {"type": "content_block_delta", oops\n\n', LAST),
        kind="malformed",
        text=HELLO_TEXT,
    ),
    error("json-scalar", stream(HELLO, b"data: 1\n\n"), kind="malformed"),
    complete("unknown-event", stream(HELLO, named("brand_new", a=1), stop(), finish(), LAST)),
    complete("unknown-fields", stream(MESSAGE.replace(b'{"type"', b'{"new": {"x": [1]}, "type"'))),
    complete(
        "unknown-block",
        stream(HELLO, stop(), block(1, "hologram", depth=3), stop(1), finish(), LAST),
        also=lambda r, *_: any(
            isinstance(item, Opaque) and item.kind == "hologram" for item in r.items
        ),
    ),
    complete(
        "unknown-delta",
        stream(
            HELLO,
            named("content_block_delta", index=0, delta={"type": "new_delta"}),
            stop(),
            finish(),
            LAST,
        ),
        notices=("unknown_delta",),
    ),
    error("deep-json", stream(HELLO, deep(100_000)), kind="malformed"),
    error(
        "huge-int",
        stream(
            START,
            named("content_block_delta", index=0, delta=0).replace(
                b'"index": 0', b'"index": ' + b"9" * 5000
            ),
        ),
        kind="malformed",
    ),
)

STALLS: Final = (
    error(
        "ping-forever",
        [head(), chunk(HELLO), Repeat(chunk(b": ping\n\n"), 0.02)],
        kind="stalled",
        phase="idle",
        deadlines=SHORT,
        text=HELLO_TEXT,
    ),
    error(
        "ping-event-forever",
        [head(), chunk(HELLO), Repeat(chunk(PING), 0.02)],
        kind="stalled",
        phase="idle",
        deadlines=SHORT,
        text=HELLO_TEXT,
    ),
    error(
        "stall",
        [head(), chunk(HELLO), HANG],
        kind="stalled",
        phase="idle",
        deadlines=SHORT,
        text=HELLO_TEXT,
    ),
    error(
        "drip",
        [head(), Repeat(chunk(text("a")), 0.02)],
        kind="deadline",
        phase="total",
        deadlines=Deadlines(total=0.3),
    ),
)

STATES: Final = (
    complete("dup-terminal", stream(MESSAGE, LAST), also=lambda r, *_: r.status == "completed"),
    complete("after-terminal", stream(CHAT, part({"content": "more"})), wire="chat"),
    error("dup-start", stream(HELLO, block(0)), kind="malformed", text=HELLO_TEXT),
    error("delta-no-start", stream(START, text("lost")), kind="malformed"),
    error(
        "delta-after-stop", stream(HELLO, stop(), text("late")), kind="malformed", text=HELLO_TEXT
    ),
    error("stop-no-start", stream(START, stop(3)), kind="malformed"),
    complete(
        "start-no-stop",
        stream(HELLO, finish(), LAST),
        also=lambda r, *_: r.items[0].status == "incomplete",
    ),
    complete(
        "interleaved",
        stream(
            START,
            block(0),
            block(1),
            text("Hel"),
            text("B", 1),
            text("lo there"),
            stop(1),
            stop(),
            finish(),
            LAST,
        ),
        text=HELLO_TEXT + "B",
    ),
    complete(
        "index-jump",
        stream(
            START,
            block(0),
            text("Hello"),
            stop(),
            block(7),
            text(" there", 7),
            stop(7),
            finish(),
            LAST,
        ),
    ),
    error("index-2e53", stream(START, block(2**53 + 1)), kind="malformed"),
    error("index-negative", stream(START, block(-1)), kind="malformed"),
    error("index-string", stream(HELLO, text("x", "0")), kind="malformed"),
    error("index-null", stream(HELLO, text("x", None)), kind="malformed"),
    error("index-bool", stream(HELLO, text("x", True)), kind="malformed"),
)

TOOLS: Final = (
    complete(
        "tool-id-missing",
        stream(
            calls({"index": 0, "function": {"name": "f", "arguments": "{}"}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).call_id.startswith("call_"),
    ),
    complete(
        "tool-name-late",
        stream(
            calls({"index": 0, "id": "a"}),
            calls({"index": 0, "function": {"name": "f", "arguments": "{}"}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).name == "f",
    ),
    complete(
        "tool-args-object",
        stream(
            calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).parsed() == {"x": 1},
    ),
    complete(
        "tool-args-null",
        stream(
            calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: the_call(r).parsed() == {},
    ),
    complete(
        "tool-args-cut",
        stream(CALL, arguments('{"city": "Par'), stop(), finish("max_tokens"), LAST),
        text="",
        also=lambda r, *_: (
            r.status == "incomplete" and not r.calls and the_call(r).arguments == '{"city": "Par'
        ),
    ),
    complete(
        "tool-same-index",
        stream(
            calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
            calls({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}),
            part(finish_reason="tool_calls"),
            DONE,
        ),
        wire="chat",
        text="",
        also=lambda r, *_: (
            [call.name for call in r.items if isinstance(call, FunctionCall)] == ["f", "g"]
        ),
    ),
)

LIMIT_ROWS: Final = (
    error(
        "blocks-1e6",
        [head(), chunk(START), *(chunk(block(n) + stop(n)) for n in range(400)), FIN],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "args-1GiB",
        [head(), chunk(CALL), Repeat(chunk(arguments("9" * 4000)))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "line-1GiB",
        [head(), Repeat(chunk(b"data: " + b"x" * 16_000))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "lines-forever",
        [head(), Repeat(chunk(b"data: x\n" * 2000))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "text-forever",
        [head(), chunk(OPENED), Repeat(chunk(text("y" * 4000)))],
        kind="limit_exceeded",
        limits=SMALL,
    ),
)

COMPRESSED: Final = (
    complete("gzip", complete_response(gzipped(MESSAGE), content_encoding="gzip")),
    error(
        "gzip-bomb",
        complete_response(bomb(), content_encoding="gzip"),
        kind="limit_exceeded",
        limits=SMALL,
    ),
    error(
        "gzip-twice",
        complete_response(gzip.compress(gzip.compress(MESSAGE)), content_encoding="gzip, gzip"),
        kind="malformed",
    ),
    error(
        "gzip-cut",
        complete_response(gzipped(HELLO)[:-20], content_encoding="gzip"),
        kind="truncated",
    ),
)

STATUSES: Final = (
    error(
        "401",
        refusal(
            "401 Unauthorized",
            "authentication_error",
            error_body("authentication_error", f"bad key {KEY}"),
        ),
        kind="authentication",
        sent=1,
        retry=QUICK,
    ),
    error(
        "403-html",
        refusal("403 Forbidden", "", PAGE, "text/html"),
        kind="permission",
        status=403,
        retry=QUICK,
        sent=1,
    ),
    error(
        "404",
        refusal("404 Not Found", "not_found_error"),
        kind="not_found",
        status=404,
        retry=QUICK,
        sent=1,
    ),
    complete("408", refusal("408 Request Timeout", "timeout_error"), OK, retry=QUICK, sent=2),
    complete("409", refusal("409 Conflict", "conflict_error"), OK, retry=QUICK, sent=2),
    error(
        "413",
        refusal("413 Too Large", "request_too_large"),
        kind="request_too_large",
        retry=QUICK,
        sent=1,
    ),
    complete(
        "429-s",
        refusal("429 Too Many", "rate_limit_error", retry_after="0.2"),
        OK,
        retry=QUICK,
        sent=2,
        also=lambda r, s, _: s.retried[0].retry_after == 0.2,
    ),
    complete(
        "429-date",
        refusal("429 Too Many", "rate_limit_error", retry_after="Sat, 21 Nov 2020 20:00:00 GMT"),
        OK,
        retry=QUICK,
        sent=2,
    ),
    complete(
        "429-ms",
        refusal("429 Too Many", "rate_limit_error", retry_after_ms="50"),
        OK,
        retry=QUICK,
        sent=2,
        also=lambda r, s, _: s.retried[0].retry_after == 0.05,
    ),
    error(
        "429-hour",
        refusal("429 Too Many", "rate_limit_error", retry_after="3600"),
        kind="rate_limited",
        retry=QUICK,
        sent=1,
        also=lambda r, *_: r.error is not None and r.error.retry_after == 3600,
    ),
    error(
        "429-quota",
        refusal(
            "429 Too Many",
            "",
            json.dumps(
                {
                    "error": {
                        "message": "You exceeded your current quota",
                        "type": "insufficient_quota",
                        "code": "insufficient_quota",
                    }
                }
            ).encode(),
        ),
        kind="quota_exhausted",
        wire="chat",
        retry=QUICK,
        sent=1,
    ),
    complete("500", FAILURE, OK, retry=QUICK, sent=2),
    complete(
        "502-html", refusal("502 Bad Gateway", "", PAGE, "text/html"), OK, retry=QUICK, sent=2
    ),
    complete("503", refusal("503 Unavailable", "overloaded_error"), OK, retry=QUICK, sent=2),
    complete("529", OVERLOAD, OK, retry=QUICK, sent=2),
    error("retry-storm", FAILURE, kind="server_error", retry=QUICK, sent=3),
    error(
        "fail-after-first-event",
        stream(HELLO, OVERLOADED),
        OK,
        kind="overloaded",
        retry=QUICK,
        sent=1,
        text=HELLO_TEXT,
    ),
)

REDIRECTS: Final = (
    error(
        "307-same",
        [b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"],
        kind="invalid_request",
        message="redirects to another path",
        retry=QUICK,
        sent=1,
    ),
    error(
        "redirect-http",
        [
            b"HTTP/1.1 301 Moved\r\nlocation: http://plain.example/v1/messages\r\n",
            b"content-length: 0\r\n\r\n",
        ],
        kind="invalid_request",
        message="http://plain.example",
        retry=QUICK,
        sent=1,
    ),
)

ROWS: Final = (
    *CONNECTION,
    *TRUNCATED,
    *OTHER_BODIES,
    *IN_BAND,
    *PAYLOADS,
    *STALLS,
    *STATES,
    *TOOLS,
    *LIMIT_ROWS,
    *COMPRESSED,
    *STATUSES,
    *REDIRECTS,
)

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
    "keepalive-stale": "test_transport.py",
    "cancel-any": "test_stream.py",
    "break-early": "test_stream.py",
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


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
async def test_fault_ends_as_the_catalogue_lists(row: Row) -> None:
    async with scripted(*row.scripts) as server:
        with anyio.fail_after(10):
            response, response_stream, events = await outcome(server.url, row)
        await server.quiet(0.3)
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
    assert server.open == 0
    figure(f"fault/{row.id}")


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody has reason to trust."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("tls-bad needs the openssl command to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "self-signed.pem"
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
        [openssl, *command_options, "-keyout", str(path), "-out", str(path) + ".crt"],
        check=True,
        capture_output=True,
    )
    return path


async def test_untrusted_certificate_is_not_retried(
    certificate: Path,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(certificate) + ".crt", str(certificate))
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
            async for _ in response_stream:
                await anyio.sleep(0.15)
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
