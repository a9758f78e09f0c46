"""Keys: where they come from, whom they may be sent to, and that nothing ever shows them.

A key belongs to one origin. `api_key=` belongs to the origin of `base_url=`, else to the first it is used for (a mapping holds one key
for each provider); a variable of the environment belongs to the provider's own addresses. To every other origin nothing is sent, and
the error says what to do. Keys are put into headers when a request is sent, so a `Request` holds none.
"""

from __future__ import annotations

import hmac
import inspect
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib.client.sigv4 import sign
from streamlib.errors import StreamError, invalid_request
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.redaction import MASK

_ALLOWED: Final = re.compile(r"[\x21-\x7e]+")
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
BEARER_VARIABLES: Final = frozenset({"ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"})
"""Variables whose key goes into `authorization`, whatever header the provider's other keys have."""

AWS_KEY_ID: Final = "AWS_ACCESS_KEY_ID"
AWS_VARIABLES: Final = ("AWS_BEARER_TOKEN_BEDROCK", AWS_KEY_ID)
AWS_HOSTS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")

STYLES: Final[dict[str, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer {}"),
    "x-api-key": ("x-api-key", "{}"),
    "x-goog-api-key": ("x-goog-api-key", "{}"),
    "api-key": ("api-key", "{}"),
}
"""`Provider.auth` -> header and its form. `aws` signs (or takes a bearer token), `none` sends nothing unless a key was given."""


class Secret:
    """A key that shows itself to nobody: `reveal()` is the only way to its text."""

    __slots__ = ("_value",)

    def __init__(self, value: str | Secret) -> None:
        text = value.reveal() if isinstance(value, Secret) else str(value).strip()
        self._value = text if _ALLOWED.fullmatch(text) else ""
        del value, text  # a traceback shows the locals of this frame
        if not self._value:
            raise StreamError(
                ErrorInfo(
                    "authentication", "a key is printable ASCII without blanks", code="invalid_key"
                )
            )

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not written down")


class AwsCredentials(Struct, frozen=True):
    """What AWS requests are signed with. region and service: read from the host where they are None."""

    key_id: str
    secret: Secret
    token: Secret | None = None
    region: str | None = None
    service: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "secret", Secret(self.secret))
        force_setattr(self, "token", Secret(self.token) if self.token else None)


Token: TypeAlias = str | Secret | AwsCredentials
ApiKey: TypeAlias = Token | Callable[[], Token | Awaitable[Token]]
"""A key, or a function (sync or async) that gives one: it is called for every request, and keeps its own cache."""


class RedactedHeaders(dict[str, str]):
    """Headers with a key among them: only their names are shown."""

    def __repr__(self) -> str:
        return f"Sealed({', '.join(self)})"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("headers with a key are not written down")


class RequestAuth(NamedTuple):
    """What one request is sent with: the headers that the key makes, and the key itself, to be masked wherever it comes back."""

    headers: RedactedHeaders
    secrets: tuple[Secret, ...] = ()

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """The failure without the key: servers echo what they refuse."""
        if not self.secrets:
            return info
        texts = {
            name: self.redact_value(getattr(info, name)) for name in ("message", "code", "detail")
        }
        return msgspec.structs.replace(info, **texts)

    def redact_value(self, value: Any) -> Any:
        """Texts, lists and dicts without the key."""
        if isinstance(value, str):
            for secret in self.secrets:
                value = value.replace(secret.reveal(), MASK)
            return value
        if isinstance(value, dict):
            return {self.redact_value(key): self.redact_value(one) for key, one in value.items()}
        return [self.redact_value(one) for one in value] if isinstance(value, list) else value


class _Key(NamedTuple):
    """A key that may be sent, and the style it asks for (None: the provider's)."""

    value: ApiKey
    style: str | None = None


class KeyStore:
    """The keys of one client. Neither its repr nor its pickle holds one."""

    def __init__(
        self,
        api_key: ApiKey | Mapping[str, ApiKey] | None = None,
        base_url: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._origins = {origin_of(base_url)} if base_url else set[str]()
        self._single: ApiKey | None = None
        self._named: dict[str, ApiKey] = {}
        self._problem = self._keep(api_key)

    def __repr__(self) -> str:
        return f"Keys({MASK})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not written down")

    def _keep(self, api_key: ApiKey | Mapping[str, ApiKey] | None) -> ErrorInfo | None:
        named = (
            api_key
            if isinstance(api_key, Mapping)
            else {"": api_key}
            if api_key is not None
            else {}
        )
        kept = {name: wrap_key(one) for name, one in named.items()}
        self._named = {name: one for name, one in kept.items() if not isinstance(one, ErrorInfo)}
        self._single = self._named.pop("", None)
        return next((one for one in kept.values() if isinstance(one, ErrorInfo)), None)

    def check(self) -> None:
        """Raises where a key cannot be one. Not at once: the frame of whoever made this still holds it."""
        if self._problem is not None:
            raise StreamError(self._problem)

    async def stamp(
        self, request: Request, provider: Provider, now: datetime, own: ApiKey | None = None
    ) -> RequestAuth:
        """The headers that prove who sends `request`. own: a key given for this very request, wherever it goes."""
        self.check()
        origin = origin_of(request.url)
        key = (
            _Key(own)
            if own is not None
            else self._given(provider, origin) or self._found(provider, origin)
        )
        if key is None:
            self._require(provider, origin)
            return RequestAuth(RedactedHeaders())
        return sign_request(await _token(key.value), key.style or provider.auth, request, now)

    def can_authenticate(self, provider: Provider, url: str) -> bool:
        """Whether the provider can be asked there: a key may be sent to it, or it needs none."""
        origin = origin_of(url)
        if self._given(provider, origin) or self._found(provider, origin):
            return True
        try:
            self._require(provider, origin)
        except StreamError:
            return False
        return True

    def _given(self, provider: Provider, origin: str) -> _Key | None:
        """The key of `api_key=`, where it may be sent to `origin`."""
        named = [
            self._named[name] for name in (provider.name, *provider.aliases) if name in self._named
        ]
        if named:
            return (
                _Key(named[0])
                if origin in self._origins or is_own_origin(provider, origin)
                else None
            )
        if self._single is None:
            return None
        if not self._origins:
            self._origins = {
                origin,
                *(own_origins(provider) if is_own_origin(provider, origin) else ()),
            }
        return _Key(self._single) if origin in self._origins else None

    def _found(self, provider: Provider, origin: str) -> _Key | None:
        """The key of the environment, where it may be sent to `origin`."""
        variables = [name for name in variables_of(provider) if self._environ.get(name, "").strip()]
        if not variables or not is_own_origin(provider, origin):
            return None
        if variables[0] == AWS_KEY_ID:
            return _Key(_aws(self._environ, origin))
        return _Key(
            Secret(self._environ[variables[0]]),
            "bearer" if variables[0] in BEARER_VARIABLES else None,
        )

    def _require(self, provider: Provider, origin: str) -> None:
        if (
            provider.auth == "none"
            or provider.key_optional
            or urlsplit(origin).hostname in LOOPBACK
        ):
            return
        variables = variables_of(provider)
        message = f"{provider.name} needs a key: set {' or '.join((*variables, 'api_key='))}"
        if self._single is not None or any(self._environ.get(name) for name in variables):
            message = f"there is a key, but it belongs to another origin than {origin}: give api_key= together with base_url="
        raise StreamError(
            ErrorInfo(
                "authentication",
                message,
                code="no_key",
                detail={"variables": list(variables), "origin": origin},
            )
        )


def wrap_key(key: ApiKey) -> ApiKey | ErrorInfo:
    """The same key, not to be seen; or why it is none, to be raised where no frame holds it."""
    try:
        return Secret(key) if isinstance(key, str) else key
    except StreamError as error:
        return error.info


def variables_of(provider: Provider) -> tuple[str, ...]:
    """The variables of the environment that may hold the provider's key, in order."""
    return tuple(
        dict.fromkeys((*provider.key_env, *(AWS_VARIABLES if provider.auth == "aws" else ())))
    )


def own_origins(provider: Provider) -> set[str]:
    """The origins of a provider's own addresses; `{region}` and its like stand for one label of a host."""
    written = (
        provider.base_url,
        *provider.wire_urls.values(),
        *provider.other_urls,
        *(f"https:{host}" for host in provider.url_replacements.values()),
    )
    return {origin_of(url) for url in written if url}


def is_own_origin(provider: Provider, origin: str) -> bool:
    """Whether the provider's key may go there without being told: to its own addresses, or anywhere where it has none (Azure)."""
    own = own_origins(provider)
    aws = (
        provider.auth == "aws"
        and origin.startswith("https://")
        and (urlsplit(origin).hostname or "").endswith(AWS_HOSTS)
    )
    return (
        not own
        or aws
        or any(
            re.fullmatch(re.sub(r"\\{\w+\\}", "[a-z0-9-]+", re.escape(one)), origin) for one in own
        )
    )


def origin_of(url: str) -> str:
    """`scheme://host:port`, in one spelling. A URL that carries a user or a password, or is no http URL at all, is refused."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        raise invalid_request(
            "a URL begins with http:// or https:// and has a host", "base_url"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise invalid_request("a URL holds no user and no password: give api_key=", "base_url")
    if not parts.hostname or not _ALLOWED.fullmatch(url):
        raise invalid_request(
            "a URL has a host, and neither blanks nor control characters", "base_url"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def sign_request(token: Token, style: str, request: Request, now: datetime) -> RequestAuth:
    """The headers of one key in one style."""
    if isinstance(token, AwsCredentials):
        return _signed(token, request, now)
    secret = Secret(token)
    name, form = STYLES.get(style, STYLES["bearer"])
    return RequestAuth(RedactedHeaders({name: form.format(secret.reveal())}), (secret,))


def _signed(credentials: AwsCredentials, request: Request, now: datetime) -> RequestAuth:
    host = urlsplit(request.url).hostname or ""
    region, service = _place(host)
    secrets = (credentials.secret, *((credentials.token,) if credentials.token else ()))
    headers = sign(
        request.method,
        request.url,
        request.headers,
        request.body,
        key_id=credentials.key_id,
        secret=credentials.secret.reveal(),
        token=credentials.token.reveal() if credentials.token else None,
        region=credentials.region or region or "us-east-1",
        service=credentials.service or service or "bedrock",
        now=now,
    )
    return RequestAuth(RedactedHeaders(headers), secrets)


_PLACE: Final = re.compile(
    r"(?:.*\.)?(?P<service>[a-z-]+?)(?:-runtime)?(?:-fips)?\.(?P<region>[a-z]{2,4}(?:-[a-z]+)+-[0-9])\.(?:amazonaws|api)\..*"
)


def _place(host: str) -> tuple[str | None, str | None]:
    """Region and service of an AWS host: `bedrock-runtime.eu-west-1.amazonaws.com`, `bedrock-mantle.us-east-1.api.aws`."""
    found = _PLACE.fullmatch(host)
    return (found["region"], found["service"]) if found else (None, None)


def _aws(environ: Mapping[str, str], origin: str) -> AwsCredentials:
    key_id, secret, token = (
        environ.get(name, "").strip()
        for name in (AWS_KEY_ID, "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    )
    if not secret:
        raise StreamError(
            ErrorInfo(
                "authentication",
                f"{AWS_KEY_ID} is set, AWS_SECRET_ACCESS_KEY is not",
                code="no_key",
            )
        )
    region, _ = _place(urlsplit(origin).hostname or "")
    region = region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return AwsCredentials(key_id, Secret(secret), Secret(token) if token else None, region)


async def _token(key: ApiKey) -> Token:
    if not callable(key):
        return key
    try:
        token = key()
        return await token if inspect.isawaitable(token) else token
    except Exception as error:  # noqa: BLE001  # the caller's own function: whatever it raises may hold a key
        name = type(error).__name__
    raise StreamError(
        ErrorInfo("authentication", f"the function given as api_key raised {name}", code="no_key")
    )
