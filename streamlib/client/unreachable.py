"""The failure of a request whose server could not be reached: which server, and what may help."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from streamlib_parsers.errors import ErrorInfo

HINTS: Final = {
    "loopback": "start `streamlib serve`, or take the URL of `streamlib.testing.running()`",
}
"""Provider -> what its user has probably forgotten: a server of this machine that is not running.
"""


def name_server(info: ErrorInfo, url: str, provider: str) -> ErrorInfo:
    """The failure with the address of the server, if no connection to it was made or kept.

    The address is in `detail` and not in the message: a gateway sends the message to its clients,
    which must not learn what is behind it.

    Args:
        info: the failure of an attempt before the response headers.
        url: of the request.
        provider: the name of the provider that the request is for.
    """
    detail: dict[str, Any] = {}
    if isinstance(info.detail, dict):
        detail = info.detail
    if info.kind != "connection" and detail.get("phase") != "connect":
        return info
    message = info.message
    if provider in HINTS:
        message = f"{message}; {HINTS[provider]}"
    detail = {**detail, "address": address_of(url)}
    return msgspec.structs.replace(info, message=message, detail=detail)


def address_of(url: str) -> str:
    """Scheme, host and port of a URL, which contain no secret."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        # An IPv6 address is in brackets in a URL.
        host = f"[{host}]"
    if parts.port is not None:
        host += f":{parts.port}"
    return f"{parts.scheme}://{host}"
