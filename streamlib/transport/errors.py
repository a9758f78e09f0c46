"""Classification of the exceptions that HTTP libraries and sockets raise.

An exception is recognised by the names of its class and bases: httpx, httpx2, aiohttp, anyio, trio
and the standard library are covered, and none of them is imported. The exception itself is dropped
with its traceback, whose locals hold the request's headers.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from streamlib.transport.deadlines import Deadlines, Phase, deadline_error
from streamlib_parsers.errors import RETRYABLE, ErrorInfo, ErrorKind
from streamlib_parsers.redaction import redact
from streamlib_parsers.stream_error import StreamError

ExceptionCategory: TypeAlias = Literal[
    "connect", "timeout", "request", "protocol", "content", "network"
]

EXCEPTION_CATEGORIES: Final[dict[str, ExceptionCategory]] = {
    "ConnectTimeout": "connect",
    "ConnectionTimeoutError": "connect",
    "TunnelTimeout": "connect",
    "TimeoutException": "timeout",
    "TimeoutError": "timeout",
    "TooSlowError": "timeout",
    "UnsupportedProtocol": "request",
    "InvalidURL": "request",
    "LocalProtocolError": "request",
    "RemoteProtocolError": "protocol",
    "ClientHttpProxyError": "network",  # aiohttp: a proxy refused the destination
    "ClientResponseError": "protocol",
    "DecodingError": "content",
    "ContentEncodingError": "content",
    "error": "content",  # zlib.error, brotli.error
    "ZstdError": "content",
}
"""Class name to category. The most derived class with a row decides; without one: network."""

NETWORK: Final = frozenset(
    {
        "TransportError",
        "HTTPError",
        "RemoteProtocolError",
        "OSError",
        "BrokenResourceError",
        "ClosedResourceError",
        "EndOfStream",
        "IncompleteRead",
        "ClientError",  # aiohttp
        "HTTPClientError",  # botocore
    }
)
"""Base classes of failures that may not recur. Any other exception is a programming error: it is
reported, and the request is not repeated."""

_CLOSED_BY_PEER: Final = re.compile(
    r"disconnect|closed|reset|ConnectionTerminated|StreamReset|incomplete", re.IGNORECASE
)
"""Text of a protocol error when the peer closed the connection, rather than sent invalid HTTP."""

_HTTP2_CLOSED: Final = "ConnectionState.CLOSED"
"""In the text of h2's error for a frame on a closed connection."""

_CONNECTION_CLOSED: Final = frozenset(
    {"ReadError", "WriteError", "CloseError", "ServerDisconnectedError", "ClientOSError"}
)
"""Classes that mean a closed connection, whatever their text is."""

_CERTIFICATE: Final = (
    "SSLCertVerificationError",
    "CertificateError",
    "ClientConnectorCertificateError",
)

_MESSAGE_CHARS: Final = 500
"""Maximum characters of an exception's own text in the message of the failure."""

_CAUSES: Final = 16
"""Maximum number of chained causes that are examined: chains may be circular."""


class FailurePoint(NamedTuple):
    """How far a request was when it failed.

    Attributes:
        has_response: whether the response headers had been received.
        phase: the deadline that was running.
        deadlines: the stream's deadlines.
    """

    has_response: bool
    phase: Phase
    deadlines: Deadlines


def is_decoding_error(error: BaseException) -> bool:
    """Whether compressed data was damaged."""
    return _category([cls.__name__ for cls in type(error).__mro__]) == "content"


def classify_exception(error: BaseException, point: FailurePoint) -> ErrorInfo:
    """The failure for an exception."""
    if isinstance(error, StreamError):
        return error.info
    names = [cls.__name__ for cls in type(error).__mro__]
    category = _category(names)
    if category == "connect":
        return deadline_error("connect", point.deadlines)
    if category == "timeout":
        phase: Phase = "queue" if names[0] == "PoolTimeout" else point.phase
        return deadline_error(phase, point.deadlines)
    kind = _kind(category, error, point)
    retryable = kind in RETRYABLE and not NETWORK.isdisjoint(names)
    if retryable and _is_certificate_error(error):
        retryable = False  # a retry does not make a certificate trusted
    return ErrorInfo(
        kind,
        _message(kind, error),
        retryable,
        code=type(error).__name__,
        detail={"phase": point.phase},
    )


def is_connection_closed(error: BaseException) -> bool:
    """Whether the peer closed the connection, as a server does with one that was idle for long."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if not names.isdisjoint(_CONNECTION_CLOSED):
        return True
    return "RemoteProtocolError" in names and _is_closed_by_peer(error)


def _category(names: list[str]) -> ExceptionCategory:
    for name in names:
        if name in EXCEPTION_CATEGORIES:
            return EXCEPTION_CATEGORIES[name]
    return "network"


def _kind(category: ExceptionCategory, error: BaseException, point: FailurePoint) -> ErrorKind:
    # A request over HTTP/2 that waited its turn on a connection which the peer then ended.
    is_too_late = _HTTP2_CLOSED in str(error)
    if category == "request" and not is_too_late:
        return "invalid_request"
    if category == "content":
        return "malformed"
    if category == "protocol" and not _is_closed_by_peer(error):
        return "malformed"
    return "truncated" if point.has_response else "connection"


def _is_closed_by_peer(error: BaseException) -> bool:
    return _CLOSED_BY_PEER.search(str(error)) is not None


def _is_certificate_error(error: BaseException) -> bool:
    """Whether any exception in the chain of causes is about a certificate."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return False
        if type(cause).__name__ in _CERTIFICATE or "CERTIFICATE_VERIFY_FAILED" in str(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _message(kind: ErrorKind, error: BaseException) -> str:
    name = type(error).__name__
    text = redact(str(error)[:_MESSAGE_CHARS]).strip()
    if text:
        return f"{_SUMMARIES[kind]} ({name}: {text})"
    return f"{_SUMMARIES[kind]} ({name})"


NO_RESPONSE: Final = "no response was received"
"""Summary of a connection that failed before the headers of a response."""

_SUMMARIES: Final[dict[str, str]] = {
    "connection": NO_RESPONSE,
    "truncated": "the connection ended before the response was complete",
    "malformed": "the response is not valid HTTP, or not encoded as its headers say",
    "invalid_request": "the request could not be sent",
}
