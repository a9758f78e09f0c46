"""Exceptions of the HTTP libraries are classified."""

from __future__ import annotations

import ssl
import zlib
from typing import Final

import anyio

from streamlib.transport.deadlines import Deadlines
from streamlib.transport.errors import FailurePoint, classify_exception, is_connection_closed
from tests.support.cases import each_case

DEADLINES: Final = Deadlines(connect=3)


def raised(name: str, text: str = "", base: type[BaseException] = Exception) -> BaseException:
    """An exception of a class of that name, below a class of httpx's."""
    parent = type("TransportError", (base,), {})
    return type(name, (parent,), {})(text)


@each_case(
    "error, before, after, retryable",
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
        (
            raised(
                "LocalProtocolError",
                "Invalid input ConnectionInputs.SEND_HEADERS in state ConnectionState.CLOSED",
            ),
            "connection",
            "truncated",
            True,
        ),
        (raised("ConnectTimeout"), "stalled", "stalled", True),
        (raised("PoolTimeout"), "connection", "truncated", True),
        (TimeoutError(), "stalled", "stalled", True),
        (ConnectionResetError("reset"), "connection", "truncated", True),
        (anyio.BrokenResourceError(), "connection", "truncated", True),
        (zlib.error("incorrect header check"), "malformed", "malformed", False),
        (AssertionError("a bug"), "connection", "truncated", False),
    ],
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
