"""The page at `/`: live streams and the last errors, in plain HTML and server-sent events."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qs

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from streamlib.asgi import SSE_HEADERS, AsgiExchange, Pings, Receive, Scope, Send
from streamlib.gateway.clients.access import NoteRefusal, note_nothing
from streamlib.gateway.watch.health import Readiness
from streamlib.gateway.watch.live_view import LiveView
from streamlib.gateway.watch.page_access import PageAccess, is_own_origin, set_cookie
from streamlib_parsers.errors import ErrorInfo

PERIOD: Final = 1.0
"""Seconds between two updates of the open streams."""

STREAM_SECONDS: Final = 30.0
"""Seconds after which a browser must reconnect: a stopping server waits for open streams."""

VIEWERS: Final = 50
"""Limit of browsers that receive events at the same time."""

LIVE_HEADERS: Final = SSE_HEADERS | {"cache-control": "no-store"}

LIVE_PINGS: Final = Pings(lambda: b":\n\n", PERIOD * 10)

FORM_BYTES: Final = 8192

FORM_SECONDS: Final = 10.0
"""Seconds in which a browser must send the form."""

MISTAKEN: Final = '<p role="alert">That is not the token.</p>'

_OTHER_ORIGIN: Final = ErrorInfo("permission", "a form from another origin", code="origin")

_WRONG_TOKEN: Final = ErrorInfo("authentication", "the page's form had another token", code="login")

_NO_SESSION: Final = ErrorInfo("authentication", "the page without a session", code="session")

_NO_OWNER: Final = ErrorInfo(
    "permission", "the page of a gateway without a token of its own", code="session"
)

_INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


class Page:
    """Handlers for the paths of the page."""

    def __init__(
        self,
        view: LiveView,
        access: PageAccess,
        readiness: Readiness,
        served: str,
        refused: NoteRefusal = note_nothing,
    ) -> None:
        """Prepares the page.

        Args:
            view: data to show.
            access: decides who may see the page.
            readiness: ends the events when the gateway is about to stop.
            served: paths of the gateway, sent to programs that request `/`.
            refused: called with each refused request.
        """
        self._refused = refused
        self._view = view
        self._access = access
        self._readiness = readiness
        self._served = served
        self._viewers = 0
        """Number of browsers that receive events now."""

    async def show(self, request: Request) -> Response:
        """`/`: the page or the form for the token; for other programs than browsers, one line."""
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(f"streamlib gateway: {self._served}\n")
        if self._access.allows(request.scope):
            return html_page("live.html")
        if not self._access.has_token:
            self._refused(request.scope, _NO_OWNER, 403)
            message = "this page needs the gateway's own token: start it with --token-env\n"
            return PlainTextResponse(message, 403)
        self._refused(request.scope, _NO_SESSION, 401)
        return html_page("login.html", status=401)

    async def login(self, request: Request) -> Response:
        """`/login`: checks the token of the form and sets the cookie."""
        if not is_own_origin(request.scope):
            self._refused(request.scope, _OTHER_ORIGIN, 403)
            return PlainTextResponse("from another origin\n", 403)
        token = await _form_token(request)
        session = self._access.session(token)
        if session is None:
            self._refused(request.scope, _WRONG_TOKEN, 401)
            return html_page("login.html", status=401, message=MISTAKEN)
        return _to_page(request.scope, session)

    async def logout(self, request: Request) -> Response:
        """`/logout`: removes the cookie."""
        if not is_own_origin(request.scope):
            self._refused(request.scope, _OTHER_ORIGIN, 403)
            return PlainTextResponse("from another origin\n", 403)
        return _to_page(request.scope, None)

    async def live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`/live`: sends the data of the page as server-sent events (ASGI)."""
        if not self._access.allows(scope):
            self._refused(scope, _NO_SESSION, 401)
            await PlainTextResponse("sign in first\n", 401)(scope, receive, send)
        elif self._viewers >= VIEWERS:
            await PlainTextResponse("too many viewers\n", 503)(scope, receive, send)
        else:
            self._viewers += 1
            try:
                exchange = AsgiExchange(scope, receive, send, lambda: (200, LIVE_HEADERS))
                events = self._events(scope)
                async with aclosing(events), exchange.while_connected(LIVE_PINGS):
                    await exchange.write_all(events)
            finally:
                self._viewers -= 1

    async def _events(self, scope: Scope) -> AsyncGenerator[bytes]:
        yield b"retry: 1000\n\n"
        until = anyio.current_time() + STREAM_SECONDS
        sent = b""
        while anyio.current_time() < until and not self._readiness.reasons:
            # A session may expire while its page is open.
            if not self._access.allows(scope):
                return
            view = {**self._view.snapshot(), "has_token": self._access.has_token}
            data = b"data: " + msgspec.json.encode(view) + b"\n\n"
            if data != sent:
                sent = data
                yield data
            await anyio.sleep(PERIOD)


async def _form_token(request: Request) -> str:
    """The token in a posted form; "" if there is none."""
    body = b""
    with anyio.move_on_after(FORM_SECONDS) as scope:
        more = True
        while more and len(body) <= FORM_BYTES:
            message = await request.receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
    if scope.cancelled_caught or len(body) > FORM_BYTES:
        return ""
    fields = parse_qs(body.decode("latin-1"))
    return fields.get("token", [""])[-1].strip()


def _to_page(scope: Scope, session: str | None) -> Response:
    # Only a path, so that no other host can be named; it begins where the gateway is mounted.
    location = f"{scope.get('root_path', '')}/"
    headers = {"location": location, "set-cookie": set_cookie(scope, session)}
    return Response(status_code=303, headers=headers)


def html_page(name: str, *, status: int = 200, message: str = "") -> Response:
    """A page of the gateway; its policy allows only its own script, and nothing from elsewhere."""
    text, policy = _page(name)
    headers = {
        "content-security-policy": policy,
        "cache-control": "no-store",
        # With `no-referrer` browsers would post a form without its origin.
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
    return HTMLResponse(text.replace("<!--message-->", message), status, headers)


@cache
def _page(name: str) -> tuple[str, str]:
    """A page, and its ``Content-Security-Policy`` with the digests of inline parts."""
    text = (files("streamlib.gateway.watch") / "pages" / name).read_text(encoding="utf-8")
    sources: dict[str, list[str]] = {"script": [], "style": []}
    for kind, content in _INLINE.findall(text):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        sources[kind].append(f"'sha256-{digest}'")
    rules = ["default-src 'none'", "connect-src 'self'", "form-action 'self'", "base-uri 'none'"]
    rules.append("frame-ancestors 'none'")
    for kind, digests in sources.items():
        if digests:
            rules.append(f"{kind}-src {' '.join(digests)}")
    return text, "; ".join(rules)
