"""The clients that a gateway knows by name. Each has a token of its own, and may have limits.

    [[client]]                           # in the route file
    name = "alice"
    token_sha256 = "5e88…"               # `streamlib gateway --new-token` makes it, with its token
    models = ["claude-*"]                # which models it sees and may ask; unset: all
    requests_per_minute = 60
    tokens_per_minute = 200000

The file has the digest of a token and never the token: whoever reads the file cannot use it. A
token is random, so a plain SHA-256 is enough; nobody guesses one, however fast the digest is.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct
from starlette.types import Scope

from streamlib.client.credentials import Secret
from streamlib.errors import StreamError
from streamlib.gateway.identity import digest_of
from streamlib_parsers.errors import ErrorInfo

TOKEN_PREFIX: Final = "slg_"  # noqa: S105  # part of a token, and public
"""Begins each token: scanners for leaked secrets find it, and people know what it is."""

TOKEN_BYTES: Final = 32
"""Random bytes of a token."""

SCOPE_KEY: Final = "streamlib.client"
"""Where access control puts the client of a request, for everything behind it (ASGI scope)."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class NamedClient(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """One client.

    Attributes:
        name: is in log lines and metrics.
        token_sha256: hexadecimal SHA-256 of its token.
        models: patterns of the model names that it sees and may ask, as in routes.
        requests_per_minute: None: no limit.
        tokens_per_minute: of requests and responses together, those read from a cache too. None:
            no limit.
    """

    name: str
    token_sha256: str
    models: tuple[str, ...] = ("*",)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            # It becomes a field of log lines and the label of a metric.
            raise ValueError("a client's name is 1 to 64 letters, digits and ._@-")
        if not _DIGEST.fullmatch(self.token_sha256):
            # Not quoted: a token in its place would be shown.
            raise ValueError(
                f"the client {self.name}: token_sha256 is 64 hexadecimal digits, the digest of "
                "its token; `streamlib gateway --new-token` makes both"
            )
        for limit in (self.requests_per_minute, self.tokens_per_minute):
            if limit is not None and limit < 1:
                raise ValueError(f"the client {self.name}: a limit must be at least 1")

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit for a minute."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    def may_use(self, model: str) -> bool:
        """Whether it sees and may ask this model."""
        # Not `fnmatch`, which ignores case on Windows.
        return any(fnmatchcase(model, pattern) for pattern in self.models)


class ClientTable:
    """The clients of one route file, with a look-up by their tokens."""

    def __init__(self, clients: Sequence[NamedClient] = ()) -> None:
        """Checks the clients.

        Raises:
            ValueError: Two have the same name or the same token.
        """
        self.clients = tuple(clients)
        self._by_digest: dict[str, NamedClient] = {}
        names: set[str] = set()
        for client in self.clients:
            if client.name in names:
                raise ValueError(f"two clients have the name {client.name}")
            other = self._by_digest.setdefault(client.token_sha256, client)
            if other is not client:
                raise ValueError(f"the clients {other.name} and {client.name} have the same token")
            names.add(client.name)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.clients)

    def find(self, tokens: Iterable[str]) -> NamedClient | None:
        """The client with one of these tokens."""
        matching: NamedClient | None = None
        for token in tokens:
            # How long a look-up by digest takes tells nothing about a token: whoever tries some
            # cannot choose their digests.
            client = self._by_digest.get(digest_of(token))
            if matching is None:
                matching = client
        return matching


def new_token() -> Secret:
    """A token that nobody guesses."""
    return Secret(TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES))


def client_of(scope: Scope) -> NamedClient | None:
    """The client of a request that access control let in; None where it is nobody by name."""
    client: NamedClient | None = scope.get(SCOPE_KEY)
    return client


def check_model(client: NamedClient | None, model: str) -> None:
    """Refuses a model that a client does not see, as one that does not exist.

    Raises:
        StreamError: `not_found`.
    """
    if client is not None and not client.may_use(model):
        message = f"no route for the model {model[:200]!r}"
        raise StreamError(ErrorInfo("not_found", message, code="model_not_found"))
