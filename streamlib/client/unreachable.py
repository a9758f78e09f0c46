"""The failure of a request whose server could not be reached: which server, and what may help."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

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
    if "address" in detail:  # a transport that knows it better
        return info
    message = info.message
    if provider in HINTS:
        message = f"{message}; {HINTS[provider]}"
    address = address_of(url)
    proxy = _proxy_for(url)
    if proxy is not None:
        message = f"{message}; the proxy of the environment could not be reached, or refused"
        address = f"{address} through the proxy {proxy}"
    detail = {**detail, "address": address}
    return msgspec.structs.replace(info, message=message, detail=detail)


def _proxy_for(url: str) -> str | None:
    """The address of the proxy that the environment names for a URL, without its password."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    try:
        return address_of(proxy if "://" in proxy else f"http://{proxy}")
    except ValueError:  # its port is no number
        return "of an invalid address"


def name_page(info: ErrorInfo, url: str) -> ErrorInfo:
    """The failure of a response that is a page for people: the URL that was wrong, perhaps.

    Args:
        info: the failure.
        url: of the request.
    """
    detail: dict[str, Any] = {"received": info.detail}
    if isinstance(info.detail, dict):
        detail = info.detail
    shown = address_of(url) + urlsplit(url).path
    message = f"{info.message}: a page and no API, check base_url"
    return msgspec.structs.replace(info, message=message, detail={**detail, "address": shown})


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
