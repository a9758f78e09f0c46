"""The keyword options of the client, as types for callers that pass them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from streamlib.client.attempt import Clock
from streamlib.client.credentials import ApiKey, wrap_key
from streamlib.client.hooks import OnEvent, OnRequest, OnResponse
from streamlib.client.retry import RetryPolicy
from streamlib.client.stream_config import ErrorMode
from streamlib.client.watch import Watcher
from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import Limits
from streamlib_parsers.stream_error import StreamError


class StreamOptions(TypedDict, total=False):
    """The keyword options of `Client.stream`, for callers that pass them on."""

    provider: str | Provider | None
    wire_api: WireApi | None
    base_url: str | None
    api_key: ApiKey | None
    dialects: Sequence[str] | None
    strict: bool
    strict_origin: bool
    account: str | None
    errors: ErrorMode | None
    headers: Mapping[str, str] | None
    resume: bool | None
    retry: RetryPolicy | None
    deadlines: Deadlines | None


class ResumeOptions(TypedDict, total=False):
    """The keyword options of `Client.resume`, for callers that pass them on."""

    provider: str | Provider | None
    base_url: str | None
    api_key: ApiKey | None
    dialects: Sequence[str] | None
    errors: ErrorMode | None
    headers: Mapping[str, str] | None
    resume: bool | None


class ClientOptions(TypedDict, total=False):
    """The options of `Client` that do not say where requests go, for callers that pass them on."""

    http: Any
    api_key: ApiKey | Mapping[str, ApiKey] | None
    providers: Sequence[Provider]
    limits: Limits
    errors: ErrorMode
    models: Mapping[str, Traits] | None
    deadlines: Deadlines | None
    retry: RetryPolicy | None
    connections: int | None
    dialects: Sequence[tuple[str, tuple[str, ...]]]
    on_request: OnRequest | None
    on_response: OnResponse | None
    on_event: OnEvent | None
    resume: bool
    telemetry: Watcher | bool | None
    clock: Clock
    now: Callable[[], datetime]
    jitter: Callable[[], float]


def wrap_key_of(options: StreamOptions | ResumeOptions) -> None:
    """Makes the key among the options a `Secret`: a traceback shows the locals of its frames.

    Raises:
        StreamError: `authentication`; the key is invalid.
    """
    key = options.pop("api_key", None)
    if key is None:
        return
    wrapped = wrap_key(key)
    del key  # a traceback shows the locals of this frame
    if isinstance(wrapped, ErrorInfo):
        raise StreamError(wrapped)
    options["api_key"] = wrapped
