"""The page at `/`: live streams and the last errors, in plain HTML and server-sent events.

It shows no content and no key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from streamlib.asgi import SSE_HEADERS, AsgiExchange, Pings, Receive, Scope, Send
from streamlib.client.credentials import Secret
from streamlib.gateway.clients.access import NoteRefusal, note_nothing
from streamlib.gateway.log_text import log_text
from streamlib.gateway.watch.health import Readiness
from streamlib.gateway.watch.observer import Exchange, Observer
from streamlib.gateway.watch.request_log import shown_message
from streamlib_parsers.errors import ErrorInfo

SHOWN_STREAMS: Final = 100
"""Open streams that are listed, the newest; the others are counted."""

SHOWN_ERRORS: Final = 30

SHOWN_CHANGES: Final = 20
"""Changes that are listed with an error."""


class LiveView(Observer):
    """Remembers what is open and what failed.

    Args:
        clock: seconds of the event loop's clock, as `Exchange.started_at`.
        now: seconds since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = anyio.current_time,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._now = now
        self._open: dict[str, Exchange] = {}
        """Request id -> exchange, in the order in which they started."""
        self._failures: dict[str, ErrorInfo] = {}
        """Request id -> the newest failure of one of its targets."""
        self._errors: deque[dict[str, Any]] = deque(maxlen=SHOWN_ERRORS)
        self._totals = {"ended": 0, "failed": 0, "input": 0, "output": 0}
        """Since the gateway started."""

    def started(self, exchange: Exchange) -> None:
        """Lists a stream; agents count tokens too often to show that."""
        if exchange.operation != "count":
            self._open[exchange.request_id] = exchange

    def upstream_failed(self, exchange: Exchange, error: ErrorInfo) -> None:
        """Remembers a failure; another target may make it good."""
        self._failures[exchange.request_id] = error

    def ended(self, exchange: Exchange) -> None:
        """Counts a stream, and lists its error."""
        self._open.pop(exchange.request_id, None)
        failure = self._failures.pop(exchange.request_id, None)
        if exchange.operation == "count" and exchange.error is None:
            return
        self._totals["ended"] += 1
        if exchange.usage is not None:
            self._totals["input"] += exchange.usage.input_tokens or 0
            self._totals["output"] += exchange.usage.output_tokens or 0
        error = exchange.error
        if error is not None:
            # A client that disconnects is not an error of the gateway's.
            if error.kind != "cancelled":
                self._totals["failed"] += 1
                self._errors.appendleft(self._entry(exchange, error, made_good=False))
        elif failure is not None:
            self._errors.appendleft(self._entry(exchange, failure, made_good=True))

    def _entry(self, exchange: Exchange, error: ErrorInfo, *, made_good: bool) -> dict[str, Any]:
        lost: dict[str, None] = {}
        for change in exchange.report:
            if len(lost) == SHOWN_CHANGES:
                break
            lost[log_text(f"{change.action} {change.path}: {change.reason}", 200)] = None
        return {
            "time": self._now(),
            "kind": error.kind,
            "message": shown_message(error, is_own=exchange.is_refused),
            "made_good": made_good,
            "client": exchange.client,
            "wire": exchange.wire_api,
            "requested": log_text(exchange.requested, 100),
            "model": log_text(exchange.target, 100),
            "lost": list(lost),
        }

    def snapshot(self) -> dict[str, Any]:
        """Everything that the page shows, as JSON."""
        now = self._clock()
        newest = list(self._open.values())[-SHOWN_STREAMS:]
        return {
            "totals": {"open": len(self._open), **self._totals},
            "streams": [_stream(exchange, now) for exchange in reversed(newest)],
            "errors": list(self._errors),
        }


def _stream(exchange: Exchange, now: float) -> dict[str, Any]:
    seconds = now - exchange.started_at
    last = exchange.last_token_at
    rate: float | None = None
    idle = seconds
    if exchange.first_token is not None and last is not None:
        idle = now - last
        # A delta is about a token. The first says nothing of the speed: it waited for its prompt.
        streaming = seconds - exchange.first_token
        if streaming > 0:
            rate = round((exchange.deltas - 1) / streaming, 1)
    gap: float | None = None
    if exchange.first_token is not None:
        gap = max(exchange.longest_gap, idle)
    return {
        "id": exchange.request_id,
        "client": exchange.client,
        "wire": exchange.wire_api,
        "requested": log_text(exchange.requested, 100),
        "model": log_text(exchange.target, 100),
        "target_wire": exchange.target_wire,
        "tokens": exchange.deltas,
        "rate": rate,
        "first_token": exchange.first_token,
        "gap": gap,
        "idle": idle,
        "seconds": seconds,
    }


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


# --- who may see the page ---
#
# Anybody who posted its token from the page itself. A browser keeps its session in a cookie: the
# expiry time, and a digest of it under a key made from the token. The cookie does not reveal the
# token, all workers accept it, and a new token ends all sessions. It gives access to the page only,
# not to models or metrics.


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
