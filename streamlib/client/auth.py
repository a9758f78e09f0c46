"""Authentication of requests: where a key comes from, and which origins it may be sent to.

A key belongs to one origin. `api_key=` belongs to the origin of `base_url=`, else to the first
origin it is used for (a mapping holds one key per provider); a key from the environment belongs to
the provider's own URLs. Nothing is sent to any other origin, and the error says what to do. Keys
are put into headers when a request is sent, so a `Request` holds none.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

from streamlib.client.credentials import (
    ApiKey,
    AwsCredentials,
    RedactedHeaders,
    RequestAuth,
    Secret,
    Token,
    wrap_key,
)
from streamlib.client.origins import LOOPBACK, is_own_origin, origin_of, own_origins
from streamlib.client.sigv4 import sign
from streamlib.providers import Provider, misspelt
from streamlib.request.build import Request
from streamlib.request.endpoints import check_base_url
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.redaction import MASK
from streamlib_parsers.stream_error import StreamError

BEARER_VARIABLES: Final = frozenset({"ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"})
"""Environment variables whose key is a bearer token, whatever the provider's other keys are."""

AWS_KEY_ID: Final = "AWS_ACCESS_KEY_ID"
AWS_VARIABLES: Final = ("AWS_BEARER_TOKEN_BEDROCK", AWS_KEY_ID)

STYLES: Final[dict[str, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer {}"),
    "x-api-key": ("x-api-key", "{}"),
    "x-goog-api-key": ("x-goog-api-key", "{}"),
    "api-key": ("api-key", "{}"),
}
"""`Provider.auth` to a header and the format of its value.

`aws` signs, or sends a bearer token; `none` sends nothing unless a key was configured.
"""

_AWS_HOST: Final = re.compile(
    r"""
    (?:.*\.)?
    (?P<service>[a-z-]+?)(?:-runtime)?(?:-fips)?
    \.(?P<region>[a-z]{2,4}(?:-[a-z]+)+-[0-9])
    \.(?:amazonaws|api)\..*
    """,
    re.VERBOSE,
)
"""`bedrock-runtime.eu-west-1.amazonaws.com`, `bedrock-mantle.us-east-1.api.aws`."""


class _Key(NamedTuple):
    """A key that may be sent, and its style (None: the provider's)."""

    value: ApiKey
    style: str | None = None


class KeyStore:
    """The keys of one client. Its repr shows none, and it cannot be pickled.

    Args:
        api_key: one key, or keys by provider name.
        base_url: the client's base URL: `api_key` belongs to its origin.
        environ: environment variables; the default is `os.environ`.
    """

    def __init__(
        self,
        api_key: ApiKey | Mapping[str, ApiKey] | None = None,
        base_url: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._origins: set[str] = set()
        """Origins that configured keys may be sent to. Without `base_url`, those of the first
        request that uses the single key."""
        if base_url:
            check_base_url(base_url)
            self._origins.add(origin_of(base_url))
        self._single: ApiKey | None = None
        """The key that was configured without a provider's name."""
        self._by_provider: dict[str, ApiKey] = {}
        """Provider name to the key that was configured for it."""
        self._problem: ErrorInfo | None = self._store(api_key)
        """Why the first invalid key is invalid; raised by `check`."""

    def __repr__(self) -> str:
        return f"KeyStore({MASK})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys cannot be pickled")

    def _store(self, api_key: ApiKey | Mapping[str, ApiKey] | None) -> ErrorInfo | None:
        """Keeps the valid keys; returns why the first invalid one is invalid."""
        keys: Mapping[str, ApiKey] = {}
        if isinstance(api_key, Mapping):
            keys = api_key
        elif api_key is not None:
            keys = {"": api_key}
        problem: ErrorInfo | None = None
        for name, key in keys.items():
            wrapped = wrap_key(key)
            if not isinstance(wrapped, ErrorInfo):
                self._by_provider[name] = wrapped
            elif problem is None:
                problem = wrapped
        self._single = self._by_provider.pop("", None)
        return problem

    def check(self, providers: Iterable[Provider] = ()) -> None:
        """Raises if a configured key is invalid, or that of a provider whose name is misspelt.

        `__init__` does not: the frame of its caller still holds the key, and a traceback would
        show it.

        Args:
            providers: further ones; a stream may have one of its own, with any name.
        """
        if self._problem is not None:
            raise StreamError(self._problem)
        for name in self._by_provider:
            near = misspelt(name, providers)
            if near is not None:
                raise ValueError(f"api_key has a key for {name!r}, no provider: write {near!r}")

    async def stamp(
        self, request: Request, provider: Provider, now: datetime, own: ApiKey | None = None
    ) -> RequestAuth:
        """Authenticates a request.

        Args:
            request: the request; its URL decides which key may be used.
            provider: the provider that it is sent to.
            now: the time of an AWS signature.
            own: a key for this very request, which may be sent anywhere.

        Raises:
            StreamError: `authentication`; there is no key, or it belongs to another origin.
        """
        self.check()
        origin = origin_of(request.url)
        key = self._key_for(provider, origin) if own is None else _Key(own)
        if key is None:
            self._require_no_key(provider, origin)
            return RequestAuth(RedactedHeaders())
        token = await _resolve_token(key.value)
        return sign_request(token, key.style or provider.auth, request, now)

    def can_authenticate(self, provider: Provider, url: str) -> bool:
        """Whether requests to a provider at a URL have a key, or need none."""
        origin = origin_of(url)
        if self._key_for(provider, origin) is not None:
            return True
        try:
            self._require_no_key(provider, origin)
        except StreamError:
            return False
        return True

    def _key_for(self, provider: Provider, origin: str) -> _Key | None:
        """The key that may be sent to an origin: a configured one first."""
        configured = self._configured_key(provider, origin)
        if configured is not None:
            return configured
        return self._environment_key(provider, origin)

    def _configured_key(self, provider: Provider, origin: str) -> _Key | None:
        for name in (provider.name, *provider.aliases):
            if name in self._by_provider:
                if origin in self._origins or is_own_origin(provider, origin):
                    return _Key(self._by_provider[name])
                return None  # neither the single key: this provider has one of its own
        if self._single is None:
            return None
        if not self._origins:
            # The first use decides where the key belongs.
            self._origins = {origin}
            if is_own_origin(provider, origin):
                self._origins |= own_origins(provider)
        if origin in self._origins:
            return _Key(self._single)
        return None

    def _environment_key(self, provider: Provider, origin: str) -> _Key | None:
        for variable in variables_of(provider):
            if self._environ.get(variable, "").strip():
                break
        else:
            return None
        # Otherwise whoever controls `base_url` would receive the key.
        if not is_own_origin(provider, origin):
            return None
        if variable == AWS_KEY_ID:
            return _Key(_environment_credentials(self._environ, origin))
        style = "bearer" if variable in BEARER_VARIABLES else None
        return _Key(Secret(self._environ[variable]), style)

    def _require_no_key(self, provider: Provider, origin: str) -> None:
        """Raises unless requests to the origin work without a key."""
        if provider.auth == "none" or provider.key_optional:
            return
        if urlsplit(origin).hostname in LOOPBACK:
            return
        variables = variables_of(provider)
        options = " or ".join((*variables, "api_key="))
        message = f"{provider.name} needs a key: set {options}"
        if self._single is not None or any(self._environ.get(name) for name in variables):
            message = (
                f"there is a key, but it belongs to another origin than {origin}: "
                "pass api_key= together with base_url="
            )
        detail = {"variables": list(variables), "origin": origin}
        raise StreamError(ErrorInfo("authentication", message, code="no_key", detail=detail))


def variables_of(provider: Provider) -> tuple[str, ...]:
    """The environment variables that may hold a provider's key, in order of precedence."""
    names = list(provider.key_env)
    if provider.auth == "aws":
        names.extend(AWS_VARIABLES)
    return tuple(dict.fromkeys(names))  # each once, in order


def sign_request(token: Token, style: str, request: Request, now: datetime) -> RequestAuth:
    """The headers that authenticate a request with a key, in a style of `STYLES`."""
    if isinstance(token, AwsCredentials):
        return _sign_for_aws(token, request, now)
    secret = Secret(token)
    # `none` with a configured key (a local server behind a proxy) sends it as a bearer token.
    header, template = STYLES.get(style, STYLES["bearer"])
    return RequestAuth(RedactedHeaders({header: template.format(secret.reveal())}), (secret,))


def _sign_for_aws(credentials: AwsCredentials, request: Request, now: datetime) -> RequestAuth:
    region, service = _region_and_service(urlsplit(request.url).hostname or "")
    secrets = [credentials.secret]
    token: str | None = None
    if credentials.token:
        secrets.append(credentials.token)
        token = credentials.token.reveal()
    headers = sign(
        request.method,
        request.url,
        request.headers,
        request.body,
        key_id=credentials.key_id,
        secret=credentials.secret.reveal(),
        token=token,
        # A host without a region (a VPC endpoint, a proxy) is signed for AWS's default region.
        region=credentials.region or region or "us-east-1",
        service=credentials.service or service or "bedrock",
        now=now,
    )
    return RequestAuth(RedactedHeaders(headers), tuple(secrets))


def _region_and_service(host: str) -> tuple[str | None, str | None]:
    """Region and service in the name of an AWS host."""
    match = _AWS_HOST.fullmatch(host)
    if match is None:
        return None, None
    return match["region"], match["service"]


def _environment_credentials(environ: Mapping[str, str], origin: str) -> AwsCredentials:
    key_id = environ.get(AWS_KEY_ID, "").strip()
    secret = environ.get("AWS_SECRET_ACCESS_KEY", "").strip()
    token = environ.get("AWS_SESSION_TOKEN", "").strip()
    if not secret:
        message = f"{AWS_KEY_ID} is set, AWS_SECRET_ACCESS_KEY is not"
        raise StreamError(ErrorInfo("authentication", message, code="no_key"))
    region, _ = _region_and_service(urlsplit(origin).hostname or "")
    region = region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return AwsCredentials(key_id, Secret(secret), Secret(token) if token else None, region)


async def _resolve_token(key: ApiKey) -> Token:
    """The key, or what the function that stands for it returns."""
    if not callable(key):
        return key
    try:
        token = key()
        return await token if inspect.isawaitable(token) else token
    except Exception as error:  # noqa: BLE001  # the caller's function: its text may hold a key
        name = type(error).__name__
    # Raised outside `except`: the original exception must not become the context.
    message = f"the function given as api_key raised {name}"
    raise StreamError(ErrorInfo("authentication", message, code="no_key"))
