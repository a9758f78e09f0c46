"""Any failure of any wire as one `ErrorInfo`.

`error_kinds` does it, and is loaded by the first failure: its tables and patterns would take as
long as a fifth of ``import streamlib_parsers``, and most responses are not failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from streamlib_parsers.errors import ErrorInfo


def classify(
    status: int | None,
    body: Any,
    headers: Mapping[str, str] | None = None,
    received_at: datetime | None = None,
) -> ErrorInfo:
    """The failure that a body describes.

    Args:
        status: of the HTTP response; None inside a stream.
        body: a decoded JSON value, or text or bytes of any kind.
        headers: of the response, or of the frame (Bedrock's ``:exception-type``).
        received_at: when it came, aware; turns dates into seconds.
    """
    from streamlib_parsers.error_kinds import error_of

    return error_of(status, body, headers, received_at)
