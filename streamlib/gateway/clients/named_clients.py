"""Clients that a gateway knows by name. Each has its own token, and may have limits.

    [[client]]                           # in the route file
    name = "alice"
    token_sha256 = "5e88…"               # `streamlib gateway --new-token` makes it, with its token
    models = ["claude-*"]                # which models it sees and may ask; unset: all
    requests_per_minute = 60
    tokens_per_minute = 200000

The file contains the digest of a token, not the token: reading the file does not give access. A
token is random, so plain SHA-256 is enough: it cannot be guessed, however fast the digest is.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from streamlib.asgi import Scope
from streamlib.client.credentials import Secret
from streamlib.gateway.clients.identity import digest_of
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

TOKEN_PREFIX: Final = "slg_"  # noqa: S105  # part of a token, and public
"""Prefix of each token, by which people and scanners for leaked secrets recognize it."""

TOKEN_BYTES: Final = 32
"""Number of random bytes in a token."""

SCOPE_KEY: Final = "streamlib.client"
"""Key of the ASGI scope under which access control stores the client of a request."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class NamedClient(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """One client.

    Attributes:
        name: name in log lines and metrics.
        token_sha256: hexadecimal SHA-256 of its token; several, while a token is replaced.
        models: patterns of the model names that it may see and request, as in routes.
        requests_per_minute: limit of requests; None: no limit.
        tokens_per_minute: limit of tokens in requests and responses together, cached tokens
            included; None: no limit.
        ids: patterns of ids at its providers (files, vector stores …) that it may name, beside
            those that its own responses bring.
    """

    name: str
    token_sha256: str | tuple[str, ...]
    models: tuple[str, ...] = ("*",)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            # The name is a field of log lines and a label of metrics.
            raise ValueError("a client's name is 1 to 64 letters, digits and ._@-")
        if not self.digests or not all(map(_DIGEST.fullmatch, self.digests)):
            # The value is not quoted, because it might be a token.
            raise ValueError(
                f"the client {self.name}: token_sha256 is 64 hexadecimal digits, the digest of "
                "its token; `streamlib gateway --new-token` makes both"
            )
        for limit in (self.requests_per_minute, self.tokens_per_minute):
            if limit is not None and limit < 1:
                raise ValueError(f"the client {self.name}: a limit must be at least 1")

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of all its tokens."""
        if isinstance(self.token_sha256, str):
            return (self.token_sha256,)
        return self.token_sha256

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit of requests or tokens."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    def may_use(self, model: str) -> bool:
        """Whether the client may see and request a model."""
        # `fnmatchcase`, because `fnmatch` ignores case on Windows.
        return any(fnmatchcase(model, pattern) for pattern in self.models)

    def may_name(self, stored_id: str) -> bool:
        """Whether the route file lets the client name an id at its providers."""
        return any(fnmatchcase(stored_id, pattern) for pattern in self.ids)


class ClientTable:
    """The clients of one route file, found by their tokens."""

    def __init__(self, clients: Sequence[NamedClient] = ()) -> None:
        """Checks the clients.

        Raises:
            ValueError: two have the same name or the same token.
        """
        self.clients = tuple(clients)
        self._by_digest: dict[str, NamedClient] = {}
        names: set[str] = set()
        for client in self.clients:
            if client.name in names:
                raise ValueError(f"two clients have the name {client.name}")
            names.add(client.name)
            for digest in client.digests:
                other = self._by_digest.setdefault(digest, client)
                if other is not client:
                    raise ValueError(
                        f"the clients {other.name} and {client.name} have the same token"
                    )

    def __bool__(self) -> bool:
        """Whether there are named clients."""
        return bool(self.clients)

    def find(self, tokens: Iterable[str]) -> NamedClient | None:
        """The client that one of these tokens belongs to; None if none does."""
        matching: NamedClient | None = None
        for token in tokens:
            # The time of this look-up reveals nothing about a token, because an attacker cannot
            # choose the digests of the tokens that are tried.
            client = self._by_digest.get(digest_of(token))
            if matching is None:
                matching = client
        return matching


def new_token() -> Secret:
    """A new random token."""
    return Secret(TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES))


def client_of(scope: Scope) -> NamedClient | None:
    """The named client of a request, set by access control; None if the client has no name."""
    client: NamedClient | None = scope.get(SCOPE_KEY)
    return client


def check_model(client: NamedClient | None, model: str) -> None:
    """Refuses a model that a client may not see, as if it did not exist.

    Raises:
        StreamError: `not_found`.
    """
    if client is not None and not client.may_use(model):
        message = f"no route for the model {model[:200]!r}"
        raise StreamError(ErrorInfo("not_found", message, code="model_not_found"))
