"""Headers of one request (`Prompt.headers`): which may be set, and how they join the provider's.

A key is not among them: `api_key=` is kept out of logs and goes to its own origin only, and a
`Request` with its headers can be printed and stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.target import Target
from streamlib_parsers.stream_error import invalid_request

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
"""``field-name`` of RFC 9110, 5.1."""

_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
"""``field-value`` of RFC 9110, 5.5, in ASCII: no line break, no blank at either end."""

_KEY_NAME: Final = re.compile(
    r"""
    .*authorization | .*(?:^|[-_])auth | .*cookie2? | .*token | .*secret | .*passw(?:or)?d
    | .*credentials? | .*(?:^|[-_])jwt(?:[-_].*)? | .*signature
    | (?!.*(?:idempotency|cache|affinity|routing)[-_]key).*(?:^|[-_]|api|app|access|auth)key
    """,
    re.VERBOSE,
)
"""Names of headers that hold keys: those of the providers (`STYLES` of `client/auth.py`), of
proxies (``proxy-authorization``, ``helicone-auth``, ``ocp-apim-subscription-key``) and of AWS
(``x-amz-security-token``). Names of other keys (``idempotency-key``) do not count."""

_KEY_VALUE: Final = re.compile(r"(?:bearer|basic|aws4-hmac-sha256)\s.*", re.IGNORECASE)
"""A value in one of the schemes of ``authorization``."""

_OF_TRANSPORT: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-amz-content-sha256",
        "x-amz-date",
    }
)
"""Headers that describe the connection, the body or its signature: only who writes those knows
their values."""


BETA_HEADERS: Final = frozenset(
    spec.beta_header for spec in WIRE_SPECS.values() if spec.beta_header
)
"""Headers that are lists of betas."""


def checked_headers(headers: Any) -> dict[str, str]:
    """The headers with their names in lower case.

    Raises:
        TypeError: not a mapping of texts to texts.
        StreamError: `invalid_request`, code `headers`; a header that may not be set, or one that
            HTTP cannot carry. The message has no value.
    """
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers is a dict of texts, not a {type(headers).__name__}")
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError("headers is a dict of texts: each name and each value is a str")
        lowered = name.lower()
        if not _NAME.fullmatch(name):
            _refuse(f"{name[:100]!r} is not the name of a header")
        if is_key_header(name, value):
            _refuse(f"{name} is a key: use api_key=, which is sent to its own origin only")
        if is_transport_header(name):
            _refuse(f"{name} is set by the library")
        if not _VALUE.fullmatch(value):
            _refuse(
                f"the value of {name} must be printable ASCII without line breaks, and not empty"
            )
        if lowered in checked:
            _refuse(f"{name} is set twice")
        checked[lowered] = value
    return checked


def is_key_header(name: str, value: str) -> bool:
    """Whether a header holds a key, by its name or by the form of its value."""
    return bool(_KEY_NAME.fullmatch(name.lower()) or _KEY_VALUE.fullmatch(value))


def is_transport_header(name: str) -> bool:
    """Whether a header describes the connection, the body or its signature."""
    return name.lower() in _OF_TRANSPORT


def _refuse(message: str) -> NoReturn:
    raise invalid_request(f"headers: {message}", "headers")


def with_headers(target: Target, headers: Mapping[str, str]) -> Target:
    """The target with headers that win over its provider's; lists of betas are joined.

    They become the provider's own, so that whatever a builder reads there (a version, a beta) is
    what is sent.
    """
    provider = target.provider
    # A route's or a provider's may be in any case: two of one header would replace each other.
    own = {name.lower(): value for name, value in provider.headers.items()}
    joined = joined_headers(own, headers)
    if joined == provider.headers:
        return target
    return msgspec.structs.replace(
        target, provider=msgspec.structs.replace(provider, headers=joined)
    )


def joined_headers(under: Mapping[str, str], over: Mapping[str, str]) -> dict[str, str]:
    """Headers of which the second win; the lists of betas are joined. Names are in lower case."""
    joined = dict(under)
    for name, value in over.items():
        if name in joined and name in BETA_HEADERS:
            joined[name] = ",".join(joined_lists(joined[name], value))
        else:
            joined[name] = value
    return joined


def joined_lists(*values: str) -> list[str]:
    """The elements of headers that are lists with commas, each once, in order."""
    elements: dict[str, None] = {}
    for value in values:
        for element in value.split(","):
            if element.strip():
                elements[element.strip()] = None
    return list(elements)
