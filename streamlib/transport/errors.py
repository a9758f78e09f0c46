"""What HTTP libraries and sockets raise -> one `ErrorInfo`, by the name of the class: httpx, httpx2, aiohttp, anyio, trio and the
standard library alike, none of them imported. What is raised is dropped with its traceback, whose locals hold the request's headers.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from streamlib.errors import StreamError
from streamlib.transport.deadlines import Deadlines, Phase, deadline_error
from streamlib_parsers.errors import RETRYABLE, ErrorInfo, ErrorKind
from streamlib_parsers.redaction import redact

ExceptionCategory: TypeAlias = Literal[
    "connect", "timeout", "request", "protocol", "content", "network"
]

EXCEPTION_CATEGORIES: Final[dict[str, ExceptionCategory]] = {
    "ConnectTimeout": "connect",
    "ConnectionTimeoutError": "connect",
    "TimeoutException": "timeout",
    "TimeoutError": "timeout",
    "TooSlowError": "timeout",
    "UnsupportedProtocol": "request",
    "InvalidURL": "request",
    "LocalProtocolError": "request",
    "RemoteProtocolError": "protocol",
    "ClientResponseError": "protocol",
    "DecodingError": "content",
    "ContentEncodingError": "content",
    "error": "content",  # zlib.error
}
"""The first name of a class and its bases that stands here decides; every other exception is the network's."""

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
"""Bases of what may be gone at the next try. Anything else is a mistake in somebody's code: it is told, and not repeated."""

_GONE: Final = re.compile(
    r"disconnect|closed|reset|ConnectionTerminated|StreamReset|incomplete", re.IGNORECASE
)
"""In a protocol error: the peer went away, as opposed to having sent bytes that are no HTTP."""

_CERTIFICATE: Final = (
    "SSLCertVerificationError",
    "CertificateError",
    "ClientConnectorCertificateError",
)
_LONGEST: Final = 500


class FailurePoint(NamedTuple):
    """How far a request was when it failed: whether the head of its answer had come, and which deadline was running."""

    has_response: bool
    phase: Phase
    deadlines: Deadlines


def classify_exception(error: BaseException, stage: FailurePoint) -> ErrorInfo:
    """The failure that `error` is."""
    if isinstance(error, StreamError):
        return error.info
    names = [kind.__name__ for kind in type(error).__mro__]
    sorts: list[ExceptionCategory] = [
        EXCEPTION_CATEGORIES[name] for name in names if name in EXCEPTION_CATEGORIES
    ]
    sort = sorts[0] if sorts else "network"
    if sort in {"connect", "timeout"}:
        return deadline_error(
            "connect"
            if sort == "connect"
            else "queue"
            if names[0] == "PoolTimeout"
            else stage.phase,
            stage.deadlines,
        )
    kind = _kind(sort, error, stage)
    retryable = (
        kind in RETRYABLE and not NETWORK.isdisjoint(names) and not _refused_certificate(error)
    )
    return ErrorInfo(
        kind,
        _message(kind, error),
        retryable,
        code=type(error).__name__,
        detail={"phase": stage.phase},
    )


def is_connection_closed(error: BaseException) -> bool:
    """Whether the peer merely closed the connection, as a server does with one that was idle for long."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names
        & {"ReadError", "WriteError", "CloseError", "ServerDisconnectedError", "ClientOSError"}
    ) or ("RemoteProtocolError" in names and bool(_GONE.search(str(error))))


def _kind(sort: ExceptionCategory, error: BaseException, stage: FailurePoint) -> ErrorKind:
    if sort == "request":
        return "invalid_request"
    if sort == "content" or (sort == "protocol" and not _GONE.search(str(error))):
        return "malformed"
    return "truncated" if stage.has_response else "connection"


def _refused_certificate(error: BaseException) -> bool:
    """Anywhere in the chain of causes; trying again does not make a certificate trusted."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(seen) < 16:
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return any(
        type(one).__name__ in _CERTIFICATE or "CERTIFICATE_VERIFY_FAILED" in str(one)
        for one in seen
    )


def _message(kind: ErrorKind, error: BaseException) -> str:
    said = redact(str(error)[:_LONGEST]).strip()
    return f"{_WHAT[kind]} ({type(error).__name__}{': ' if said else ''}{said})"


_WHAT: Final[dict[str, str]] = {
    "connection": "no answer came",
    "truncated": "the connection broke before the answer was whole",
    "malformed": "the answer is not HTTP, or not packed as it says",
    "invalid_request": "the request could not be sent",
}
