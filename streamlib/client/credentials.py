"""Keys as values: types that hold a key and never show it.

An API key, an AWS key pair, and the headers made from either. Their `repr` shows no key, and they
cannot be pickled.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.redaction import MASK
from streamlib_parsers.stream_error import StreamError

_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
"""Printable ASCII without blanks: nothing in it can end a header line."""


SHORT_KEY: Final = 8
"""Characters from which a key is masked wherever its text occurs."""


class Secret:
    """A key. `reveal` is the only way to its text.

    Args:
        value: the key; blanks around it are removed.

    Raises:
        StreamError: `authentication`; the key is empty or not printable ASCII.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | Secret) -> None:
        text = value.reveal() if isinstance(value, Secret) else str(value).strip()
        self._value = text if _PRINTABLE.fullmatch(text) else ""
        del value, text  # a traceback shows the locals of this frame
        if not self._value:
            message = "a key must be printable ASCII without blanks"
            raise StreamError(ErrorInfo("authentication", message, code="invalid_key"))

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
        # `compare_digest` takes the same time whether the first or the last character differs.
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


class AwsCredentials(Struct, frozen=True):
    """Credentials that sign requests to AWS.

    Attributes:
        key_id: access key id.
        secret: secret access key.
        token: session token of temporary credentials.
        region: AWS region; None reads it from the host name.
        service: AWS service name; None reads it from the host name.
    """

    key_id: str
    secret: Secret
    token: Secret | None = None
    region: str | None = None
    service: str | None = None

    def __post_init__(self) -> None:
        # Callers pass plain strings as well.
        force_setattr(self, "secret", Secret(self.secret))
        force_setattr(self, "token", Secret(self.token) if self.token else None)


Token: TypeAlias = str | Secret | AwsCredentials

ApiKey: TypeAlias = Token | Callable[[], Token | Awaitable[Token]]
"""A key, or a function (sync or async) that returns one: it is called for every request, and is
responsible for its own caching."""


class RedactedHeaders(dict[str, str]):
    """Headers with a key among them; `repr` shows their names alone."""

    def __repr__(self) -> str:
        return f"RedactedHeaders({', '.join(self)})"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("headers with a key cannot be pickled")


class RequestAuth(NamedTuple):
    """Authentication of one request.

    Attributes:
        headers: headers to add to the request.
        secrets: the keys in them, to be masked wherever a server echoes them.
    """

    headers: RedactedHeaders
    secrets: tuple[Secret, ...] = ()

    def redact(self, info: ErrorInfo) -> ErrorInfo:
        """The failure with keys masked: servers echo the key that they reject."""
        if not self.secrets:
            return info
        return msgspec.structs.replace(
            info,
            message=self.redact_value(info.message),
            code=self.redact_value(info.code),
            detail=self.redact_value(info.detail),
        )

    def redact_value(self, value: Any) -> Any:
        """A JSON value with keys masked in every string, including the names of fields."""
        if isinstance(value, str):
            for secret in self.secrets:
                value = _mask(value, secret.reveal())
            return value
        if isinstance(value, dict):
            return {self.redact_value(key): self.redact_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.redact_value(item) for item in value]
        return value

    def redact_texts(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Names and texts, such as headers, with keys masked."""
        # Nearly always no key is in any of them: one search, not one for each.
        everything = "\n".join((*texts, *texts.values()))
        if self.redact_value(everything) == everything:
            return dict(texts)
        redacted: dict[str, str] = self.redact_value(dict(texts))
        return redacted


def _mask(text: str, key: str) -> str:
    """The text with a key masked; a short one only where it is a token of its own.

    A local server's key may be `x` or `1`: within other words it gives nothing away, and masking it
    there would make every text unreadable.
    """
    if len(key) >= SHORT_KEY or key not in text:
        return text.replace(key, MASK)
    return re.sub(rf"(?<![\w-]){re.escape(key)}(?![\w-])", MASK, text)


def wrap_key(key: ApiKey) -> ApiKey | ErrorInfo:
    """The key as a `Secret`, or why it is invalid.

    An invalid key is returned as a failure rather than raised: the caller raises after it has
    deleted its own variable, so that no frame of the traceback holds the key.
    """
    if isinstance(key, (Secret, AwsCredentials)) or callable(key):
        return key
    # A key that is no text has come from a file, perhaps; the message must not show it.
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = '"…"'
        if isinstance(key, (bytes, bytearray)):
            text = "key.decode()"
        message = f"a key is a text, not {type(key).__name__}: write `api_key={text}`"
        return ErrorInfo("authentication", message, code="invalid_key")
    try:
        return Secret(key)
    except StreamError as error:
        return error.info
