"""Access to the gateway's page: for anybody who posted its token from the page itself.

A browser keeps its session in a cookie: the expiry time, and a digest of it under a key made from
the token. The cookie does not reveal the token, all workers accept it, and a new token ends all
sessions. It gives access to the page only, not to models or metrics.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from streamlib.asgi import Scope
from streamlib.client.credentials import Secret

COOKIE: Final = "streamlib_gateway"

SESSION_SECONDS: Final = 12 * 3600

_PURPOSE: Final = b"gateway page"
"""Separates this key from other keys that are made from the token (16 bytes at most)."""


class PageAccess:
    """Sessions of the page.

    Args:
        token: the gateway's own token; None: there is none, and this machine may see the page.
        is_closed: whether nobody may see the page: clients have tokens of their own, but the
            gateway has none.
        now: returns seconds since 1970.
    """

    def __init__(
        self,
        token: Secret | None,
        is_closed: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._is_closed = is_closed
        self._now = now
        self._key = b""
        if token is not None:
            digest = hashlib.blake2b(token.reveal().encode(), person=_PURPOSE, digest_size=32)
            self._key = digest.digest()

    @property
    def has_token(self) -> bool:
        """Whether the page requires the token."""
        return self._token is not None

    def allows(self, scope: Scope) -> bool:
        """Whether a request may see the page (ASGI scope)."""
        if self._token is None:
            return not self._is_closed()
        return self._is_session(_cookie(scope))

    def session(self, token: str) -> str | None:
        """The value of the cookie for somebody who sent this token; None: the token is wrong."""
        if self._token is None:
            return None
        sent = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        expected = hashlib.sha256(self._token.reveal().encode()).digest()
        if not hmac.compare_digest(sent, expected):
            return None
        until = int(self._now()) + SESSION_SECONDS
        text = f"{until}.{secrets.token_hex(16)}"
        return f"{text}.{self._digest(text)}"

    def _is_session(self, value: str) -> bool:
        text, _, digest = value.rpartition(".")
        expected = self._digest(text)
        if not hmac.compare_digest(digest.encode(), expected.encode()):
            return False
        until = text.partition(".")[0]
        return until.isdigit() and int(until) > self._now()

    def _digest(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def set_cookie(scope: Scope, session: str | None) -> str:
    """A ``Set-Cookie`` header with a session; None deletes the cookie (ASGI scope)."""
    path: str = scope.get("root_path", "") or "/"
    seconds = SESSION_SECONDS if session else 0
    fields = f"{COOKIE}={session or ''}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict"
    if scope.get("scheme") == "https":
        fields += "; Secure"
    return fields


def is_own_origin(scope: Scope) -> bool:
    """Whether the browser says that the form was posted by a page of this server.

    The scheme is not compared, because it differs behind a proxy that ends TLS.
    """
    headers: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        headers[name.lower()] = value.decode("latin-1").lower()
    if headers.get(b"sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get(b"origin")
    return origin is None or urlsplit(origin).netloc == headers.get(b"host")


def _cookie(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name.lower() != b"cookie":
            continue
        try:
            morsel = SimpleCookie(value.decode("latin-1")).get(COOKIE)
        except CookieError:
            continue
        if morsel is not None:
            return morsel.value
    return ""
