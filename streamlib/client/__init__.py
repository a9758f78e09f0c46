"""The client: a prompt goes to a model, and its answer comes back as a stream of events or as one response.

async with Client() as client:
    async with client.stream("hi", model="anthropic:claude-opus-5") as stream:
        async for event in stream: ...
    response = await client.respond(prompt, model="openai:gpt-5")
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from types import TracebackType
from typing import Any, TypedDict, Unpack

import anyio

from streamlib.client.attempt import Attempt, Clock, HttpSource
from streamlib.client.auth import ApiKey, KeyStore, wrap_key
from streamlib.client.model_list import ModelInfo, models_request, read_models
from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import (
    ErrorMode,
    ResponseStream,
    StreamConfig,
    check_errors,
    wall_clock,
)
from streamlib.errors import StreamError
from streamlib.providers import Provider, find
from streamlib.providers import provider as provider_named
from streamlib.providers.models import Traits
from streamlib.request.build import Request, build_for
from streamlib.request.endpoints import resolve_target
from streamlib.request.prompt import Prompt
from streamlib.transport import Transport, transport_for
from streamlib.transport.deadlines import Deadlines, DeadlineTimer
from streamlib_parsers.accumulate import Response
from streamlib_parsers.dialects.by_model import dialects_for
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import ResponseItem, ToolSpec, WireApi
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import Parser, parser


class StreamOptions(TypedDict, total=False):
    """The options of `Client.stream`, for those who pass them on: `respond(prompt, model, **options)`."""

    provider: str | Provider | None
    wire_api: WireApi | None
    base_url: str | None
    api_key: ApiKey | None
    dialects: Sequence[str] | None
    strict: bool
    errors: ErrorMode | None


class Client:
    """Sends prompts to any provider. One client serves any number of streams at once, on asyncio and on trio.

    http: None (a client of ours), an `httpx.AsyncClient`, an `httpx2.AsyncClient`, anything with their methods, or a `Transport`; what
    is given stays yours to close. api_key: one key (for `base_url`, else for the provider asked first), a function that gives one, or
    `{provider: key}`; without it the provider's own variables of the environment are read. base_url, wire_api: for every request.
    providers: more of them, or others of the same name. limits: ceilings of what is read. errors: "raise", or "event" to be given
    `Failed` instead. models: traits of models that differ from the shipped ones. connections: streams at once (the rest queue).
    dialects: rows of (part of a model's name, dialects), looked at before the shipped ones. deadlines, retry: how long, how often.
    clock (seconds, running), now (aware) and jitter (0 to 1) are there for tests.
    """

    def __init__(
        self,
        *,
        http: Any = None,
        api_key: ApiKey | Mapping[str, ApiKey] | None = None,
        base_url: str | None = None,
        wire_api: WireApi | None = None,
        providers: Sequence[Provider] = (),
        limits: Limits = LIMITS,
        errors: ErrorMode = "raise",
        models: Mapping[str, Traits] | None = None,
        deadlines: Deadlines | None = None,
        retry: RetryPolicy | None = None,
        connections: int | None = None,
        dialects: Sequence[tuple[str, tuple[str, ...]]] = (),
        clock: Clock = anyio.current_time,
        now: Callable[[], datetime] = wall_clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._made: Transport | None = None
        self._orphans: list[Attempt] = []
        self._closed = False
        self._keys = KeyStore(api_key, base_url)
        del api_key  # a traceback shows the locals of this frame
        self._keys.check()
        self._http = http
        self._base_url = base_url
        self._wire_api: WireApi | None = wire_api
        self._providers = tuple(providers)
        self._limits = limits
        check_errors(errors)
        self._errors: ErrorMode = errors
        self._models = models
        self._deadlines = deadlines or Deadlines()
        self._retry = retry or RetryPolicy()
        self._connections = connections
        self._dialects = tuple(dialects)
        self._clock = clock
        self._now = now
        self._jitter = jitter

    def __repr__(self) -> str:
        return f"<Client {'closed' if self._closed else 'open'}>"

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the HTTP client, if it was made here. Streams that are open break."""
        self._closed = True
        made, self._made = self._made, None
        while self._orphans:
            await self._orphans.pop().close()
        if made is not None and made is not self._http:
            with anyio.CancelScope(shield=True):
                await made.aclose()

    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None = None,
        *,
        provider: str | Provider | None = None,
        wire_api: WireApi | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
        dialects: Sequence[str] | None = None,
        strict: bool = False,
        errors: ErrorMode | None = None,
    ) -> ResponseStream:
        """The stream of one response, to be used with `async with`; nothing is sent before.

        model: `"provider:model"`, or `provider=` and `model=` apart. A `Request` of `build` is sent as it is. base_url: for this
        request; the client's keys do not go there, `api_key=` does. dialects: None takes those the model is known to need, `()` none.
        What cannot be built raises here, all else while iterating.
        """
        if self._closed:
            raise RuntimeError("the client is closed")
        key = None if api_key is None else wrap_key(api_key)
        del api_key  # a traceback shows the locals of this frame
        if isinstance(key, ErrorInfo):
            raise StreamError(key)
        tools: Sequence[ToolSpec] = ()
        if isinstance(prompt, Request):
            request, found = prompt, self._provider(provider or prompt.origin.provider or "custom")
        else:
            prompt = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
            request, found = self._build(prompt, model, provider, wire_api, base_url, strict=strict)
            tools = prompt.tools
        if dialects is None:
            dialects = dialects_for(
                request.model, parses_calls=found.parses_calls, overrides=self._dialects
            )
        source = HttpSource(
            self._transport, request, self._keys, found, key, self._deadlines, self._now
        )
        return ResponseStream(
            StreamConfig(
                source,
                partial(_parser, request, tuple(tools), tuple(dialects), self._limits),
                request.wire_api,
                request,
                self._limits,
                self._deadlines,
                self._retry,
                errors or self._errors,
                self._clock,
                self._now,
                self._jitter,
                self._orphans,
            )
        )

    async def respond(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None = None,
        **options: Unpack[StreamOptions],
    ) -> Response:
        """The whole response: the same stream, read to its end. Options are those of `stream`."""
        async with self.stream(prompt, model, **options) as stream:
            async for _ in stream.batches():
                pass
        return stream.response

    async def models(
        self,
        provider: str | Provider,
        *,
        wire_api: WireApi | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
    ) -> list[ModelInfo]:
        """The models that a provider has, as it lists them. Raises `StreamError`; without a list that is `invalid_request`."""
        if self._closed:
            raise RuntimeError("the client is closed")
        found = self._provider(provider)
        request = models_request(found, wire_api or self._wire_api, base_url or self._base_url)
        models = read_models(await self.fetch(request, found, api_key=api_key))
        if isinstance(models, ErrorInfo):
            raise StreamError(models)
        return models

    async def fetch(
        self,
        request: Request,
        provider: str | Provider | None = None,
        *,
        api_key: ApiKey | None = None,
    ) -> bytes:
        """The body that answers a request which has no stream: a list, a count of tokens. Raises `StreamError`."""
        key = None if api_key is None else wrap_key(api_key)
        del api_key  # a traceback shows the locals of this frame
        if isinstance(key, ErrorInfo):
            raise StreamError(key)
        if self._closed:
            raise RuntimeError("the client is closed")
        found = self._provider(provider or request.origin.provider or "custom")
        source = HttpSource(
            self._transport, request, self._keys, found, key, self._deadlines, self._now
        )
        attempt = Attempt(
            source,
            lambda headers, at: parser(request.wire_api),
            DeadlineTimer(self._deadlines),
            request.wire_api,
            self._limits,
            self._clock,
        )
        try:
            read = await attempt.open(self._now) or await attempt.body()
        finally:
            await attempt.close()
        if isinstance(read, ErrorInfo):
            raise StreamError(read)
        return read

    def _build(
        self,
        prompt: Prompt,
        model: str | None,
        provider: str | Provider | None,
        wire_api: WireApi | None,
        base_url: str | None,
        *,
        strict: bool,
    ) -> tuple[Request, Provider]:
        name = provider.name if isinstance(provider, Provider) else provider
        more = (*self._providers, provider) if isinstance(provider, Provider) else self._providers
        found, model = find(model or prompt.model or "", name, more)
        where = resolve_target(
            found, model, wire_api or self._wire_api, base_url or self._base_url, self._models
        )
        return build_for(prompt, where, strict=strict), found

    def _provider(self, provider: str | Provider) -> Provider:
        return (
            provider
            if isinstance(provider, Provider)
            else provider_named(provider, self._providers)
        )

    @property
    def _transport(self) -> Transport:
        if self._made is None:
            self._made = transport_for(self._http, self._connections)
        return self._made


def _parser(
    request: Request,
    tools: Sequence[ToolSpec],
    dialects: Sequence[str],
    limits: Limits,
    headers: Mapping[str, str] | None,
    received_at: datetime | None,
) -> Parser:
    """The parser of an answer to `request`. Ids of nameless calls are made of the request: no two of a conversation are the same."""

    @cache
    def digest() -> str:
        return sha256(request.body).hexdigest()[:8]

    return parser(
        request.wire_api,
        tools=tools,
        dialects=dialects,
        headers=headers,
        received_at=received_at,
        origin=request.origin,
        limits=limits,
        call_id=lambda n: f"call_{digest()}_{n}",
        names=request.names,
    )
