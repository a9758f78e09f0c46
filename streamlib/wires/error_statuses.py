"""HTTP statuses by which servers of a wire report kinds of errors."""

from __future__ import annotations

from typing import Final

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.errors import ErrorKind
from streamlib_parsers.items import WireApi

STATUS: Final[dict[ErrorKind, int]] = {
    "authentication": 401,
    "permission": 403,
    "rate_limited": 429,
    "quota_exhausted": 429,
    "context_window_exceeded": 400,
    "request_too_large": 413,
    "invalid_request": 400,
    "invalid_history": 400,
    "content_filter": 400,
    "not_found": 404,
    "stalled": 504,
    "deadline": 504,
    "connection": 502,
    "truncated": 502,
    "malformed": 502,
    "limit_exceeded": 502,
}
"""ErrorKind -> HTTP status; other kinds have 500. A failure between a gateway and its model is 502,
not an error of the client."""


def status_of_kind(wire_api: WireApi, kind: ErrorKind) -> int:
    """The HTTP status of an error of this kind."""
    if kind == "overloaded":
        return WIRE_SPECS[wire_api].overloaded_status
    return STATUS.get(kind, 500)
