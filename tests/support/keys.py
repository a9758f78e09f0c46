"""Helpers for tests of keys: a provider with keys, a request, and everything that an exception
prints."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from typing import Any, Final

from streamlib.client.auth import KeyStore
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib_parsers import Origin

UNUSUAL_KEY: Final = "zQ7-canary/9f+1"
"""A key that looks like no provider's, so that no pattern masks it."""
NOW: Final = datetime(2026, 11, 21, 20, tzinfo=UTC)
TESTS_OF_KEYS: Final = (
    "test_auth.py",
    "test_key_exposure.py",
    "test_sync_client.py",
    "test_websocket.py",
    "websocket_scripts.py",
)
ACME: Final = Provider(
    "acme",
    base_url="https://api.acme.example/v1",
    wire_urls={"messages": "https://claude.acme.example"},
    key_env=("ACME_KEY", "ACME_TOKEN"),
)


def request(url: str, body: bytes = b"{}") -> Request:
    """A request to that address."""
    return Request(
        "POST", url, {"content-type": "application/json"}, body, [], "chat", "m", Origin("chat")
    )


async def auth_headers(
    keys: KeyStore, url: str, provider: Provider = ACME, own: Any = None
) -> dict[str, str]:
    """The headers that a request to that address gets."""
    return dict((await keys.stamp(request(url), provider, NOW, own)).headers)


def printed(error: BaseException, *, own: bool = True) -> str:
    """Everything that a tool may print of an exception: locals of every frame, chain and fields.

    own: whether frames of the tests are included.
    """
    frames = traceback.TracebackException.from_exception(error, capture_locals=True)
    lines: list[str] = []
    for frame in frames.stack:
        if own or not frame.filename.endswith(TESTS_OF_KEYS):
            lines.append(f"{frame.name} {frame.locals}")
    return "\n".join(
        [
            *lines,
            repr(error),
            str(error),
            repr(error.args),
            repr(error.__context__),
            repr(error.__cause__),
        ]
    )
