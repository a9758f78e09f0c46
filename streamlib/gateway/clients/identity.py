"""Who a client of the gateway is: by this identity the gateway keeps what is a client's own, and
limits what it may do.

`AccessControl` finds it once a request and leaves it in the request's scope; `identity_of` reads it
there. A token is never kept: only its SHA-256, which is also what the route file has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from msgspec import Struct

from streamlib.asgi import Scope

TOKEN_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Headers in which the SDKs of OpenAI, Anthropic, Google and Azure send their API key, which here
is the gateway's token."""

QUERY_PARAMETER: Final = "key"
"""Query parameter in which Google's REST clients send theirs."""

_SCOPE_KEY: Final = "streamlib.client_identity"


class ClientIdentity(Struct, frozen=True):
    """Who sent a request.

    Attributes:
        name: of the client in the route file; None: the file names no client with this token.
        token_digest: SHA-256 of the token that a client without a name sent, in hex; None: it sent
            none.
    """

    name: str | None = None
    token_digest: str | None = None

    @property
    def key(self) -> str | None:
        """What state of this client is kept under; None: nothing tells it from other clients."""
        # A name cannot be mistaken for a digest: each has its own first word.
        if self.name is not None:
            return f"name {self.name}"
        if self.token_digest is not None:
            return f"token {self.token_digest}"
        return None


ANONYMOUS: Final = ClientIdentity()


def digest_of(token: str) -> str:
    """SHA-256 of a token, in hex, as the route file has it."""
    return hashlib.sha256(token.encode()).hexdigest()


def tokens_of(scope: Scope) -> Iterator[str]:
    """The tokens that a client sent: of its headers, then of its query (ASGI scope)."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    for header in TOKEN_HEADERS:
        token = headers.get(header, "").removeprefix("Bearer ").strip()
        if token:
            yield token
    query = scope.get("query_string", b"").decode("latin-1")
    for name, value in parse_qsl(query):
        if name == QUERY_PARAMETER and value:
            yield value


def hide_query_token(scope: Scope) -> None:
    """Takes the token out of a request's query, in the scope that the server has too.

    Servers log the query when the response starts, and read it from there.
    """
    query: bytes = scope.get("query_string", b"")
    if not query:
        return
    others: list[bytes] = []
    for field in query.split(b"&"):
        # As `parse_qsl` reads it: a name may be written with escapes.
        name = unquote_plus(field.partition(b"=")[0].decode("latin-1"))
        if name != QUERY_PARAMETER:
            others.append(field)
    scope["query_string"] = b"&".join(others)


def set_identity(scope: Scope, identity: ClientIdentity) -> None:
    """Leaves the identity in a request's scope, for whoever serves the request."""
    scope[_SCOPE_KEY] = identity


def identity_of(scope: Scope) -> ClientIdentity:
    """The identity in a request's scope; that of its token where nobody has set one."""
    identity = scope.get(_SCOPE_KEY)
    if isinstance(identity, ClientIdentity):
        return identity
    for token in tokens_of(scope):
        return ClientIdentity(token_digest=digest_of(token))
    return ANONYMOUS
