"""Origins of URLs, and which of them belong to a provider.

An origin is `scheme://host:port`. A key is sent only to an origin it belongs to.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from streamlib.providers import Provider
from streamlib_parsers.stream_error import invalid_request

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts of this machine: servers there need no key."""

AWS_HOSTS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
"""Ends of the host names that AWS keys are sent to."""

_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_ESCAPED_VARIABLE: Final = re.compile(r"\\{\w+\\}")
"""A variable such as `{region}` in an origin that went through `re.escape`."""

_HOST_LABEL: Final = "[a-z0-9-]+"
"""What a variable matches: one label, so that it cannot cross a dot into another domain."""


@lru_cache(maxsize=128)  # each request has one of the same few, several times
def origin_of(url: str) -> str:
    """The origin of a URL, in lower case and with its port.

    Raises:
        StreamError: `invalid_request`; not an http URL, or one with a user, a password, blanks or
            control characters. The message does not contain the URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        message = "a URL must begin with http:// or https:// and have a host"
        raise invalid_request(message, "base_url") from None
    if parts.username is not None or parts.password is not None:
        raise invalid_request("a URL must hold no user and no password: use api_key=", "base_url")
    if not parts.hostname or not _PRINTABLE.fullmatch(url):
        message = "a URL must have a host, and neither blanks nor control characters"
        raise invalid_request(message, "base_url")
    host = parts.hostname
    if ":" in host:  # IPv6: `urlsplit` removes the brackets
        host = f"[{host}]"
    return f"{parts.scheme}://{host}:{port}"


def own_origins(provider: Provider) -> set[str]:
    """The origins of a provider's own URLs, which may contain variables such as `{region}`."""
    urls = [provider.base_url, *provider.wire_urls.values(), *provider.other_urls]
    urls.extend(f"https:{host}" for host in provider.url_replacements.values())
    return {origin_of(url) for url in urls if url}


def is_own_origin(provider: Provider, origin: str) -> bool:
    """Whether the provider's key may be sent to an origin without the user saying so.

    A provider without a URL of its own (Azure: each customer has another) accepts any.
    """
    own = own_origins(provider)
    if not own or origin in own:
        return True
    if provider.auth == "aws" and origin.startswith("https://"):
        host = urlsplit(origin).hostname or ""
        if host.endswith(AWS_HOSTS):
            return True
    for own_origin in own:
        pattern = _ESCAPED_VARIABLE.sub(_HOST_LABEL, re.escape(own_origin))
        if re.fullmatch(pattern, origin):
            return True
    return False
