"""The client: sends a prompt to a model and returns a stream of events, or one response.

async with Client() as client:
    async with client.stream("hi", model="anthropic:claude-opus-5") as stream:
        async for event in stream: ...
    response = await client.respond(prompt, model="openai:gpt-5")
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import anyio
import msgspec

from streamlib.client.attempt import Attempt, Clock
from streamlib.client.auth import KeyStore
from streamlib.client.credentials import ApiKey, wrap_key
from streamlib.client.hooked_stream import HookedStream
from streamlib.client.hooks import AttemptHooks, OnEvent, OnRequest, OnResponse
from streamlib.client.model_list import ModelInfo, models_request, read_models
from streamlib.client.options import ClientOptions, StreamOptions
from streamlib.client.response_parser import response_parser
from streamlib.client.retry import RetryPolicy
from streamlib.client.sources import HttpSource, LoopGuard, Source
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_config import ErrorMode, StreamConfig, check_errors, wall_clock
from streamlib.client.stream_text import text_error
from streamlib.errors import StreamError, invalid_request
from streamlib.providers import Provider, find
from streamlib.providers import provider as provider_named
from streamlib.providers.models import Traits
from streamlib.providers.websocket import WebSocketSettings
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request, build_for
from streamlib.request.endpoints import resolve_target
from streamlib.request.headers import checked_headers, joined_headers
from streamlib.request.prompt import Prompt
from streamlib.request.target import Target
from streamlib.transport import Transport, transport_for
from streamlib.transport.deadlines import Deadlines, DeadlineTimer
from streamlib_parsers.accumulate import Response
from streamlib_parsers.dialects.by_model import dialects_for
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import ResponseItem, ToolSpec, WireApi
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import parser

if TYPE_CHECKING:
    from streamlib.client.websocket.connection import Connection

__all__ = ["Client", "ClientOptions", "StreamOptions"]

Sent = TypeVar("Sent", Prompt, Request)


class Client:
    """Sends prompts to any provider, on asyncio and on trio.

    One client serves any number of concurrent streams, all on the event loop of the first one.

    Args:
        http: None (the library creates an HTTP client), an `httpx.AsyncClient`, an
            `httpx2.AsyncClient`, any object with their methods, an `aiohttp.ClientSession`, or a
            `Transport`. One that is passed in stays its owner's to close.
        api_key: One key (for `base_url`, else for the first provider that is used), a function
            that returns one, or `{provider: key}`. Without it, the provider's own environment
            variables are read.
        base_url: Base URL of every request.
        wire_api: Wire API of every request; the default is the provider's first.
        providers: Additional providers, or replacements of the same name.
        limits: Limits of what is read.
        errors: "raise", or "event" to receive `Failed` instead of an exception.
        models: Traits of models that differ from the built-in ones.
        deadlines: How long is waited for what.
        retry: When a failed request is sent again.
        connections: Concurrent streams; further ones wait.
        dialects: Rows of (part of a model's name, dialects), which precede the built-in ones.
        on_request: Called before each attempt with an `AttemptRequest`; it may change headers.
        on_response: Called with the `AttemptResponse` of each attempt: status and headers.
        on_event: Called with each event before the reader gets it. All three may be coroutine
            functions; one that raises ends the stream with its exception.
        clock: Seconds, on a clock that runs steadily; for tests.
        now: The current time with a time zone; for tests.
        jitter: A random number from 0 to 1; for tests.

    Raises:
        StreamError: `authentication`; `api_key` is invalid.
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
        on_request: OnRequest | None = None,
        on_response: OnResponse | None = None,
        on_event: OnEvent | None = None,
        clock: Clock = anyio.current_time,
        now: Callable[[], datetime] = wall_clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._opened_transport: Transport | None = None
        """Created by the first request, None again after `aclose`."""
        self._orphans: list[Attempt] = []
        """Attempts of streams that were garbage-collected while open; closed by the next stream."""
        self._closed = False
        """Set by `aclose`."""
        self._loop_guard = LoopGuard()
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
        self._attempt_hooks: AttemptHooks | None = None
        """None without hooks, so that no attempt pays for them."""
        if on_request is not None or on_response is not None:
            self._attempt_hooks = AttemptHooks(on_request, on_response)
        self._make_stream: Callable[[StreamConfig], ResponseStream] = ResponseStream
        """The class of this client's streams."""
        self._on_event = on_event
        if on_event is not None:
            self._make_stream = partial(HookedStream, on_event=on_event)
        self._clock = clock
        self._now = now
        self._jitter = jitter

    def __repr__(self) -> str:
        return f"<Client {'closed' if self._closed else 'open'}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the HTTP client if the library created it. Open streams break."""
        # Before the first await: no other task may start a stream meanwhile.
        self._closed = True
        transport = self._opened_transport
        self._opened_transport = None
        while self._orphans:
            await self._orphans.pop().close()
        # A `Transport` of the user's own is used as it is: closing it is the user's.
        if transport is not None and transport is not self._http:
            with anyio.CancelScope(shield=True):
                await transport.aclose()

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
        strict_origin: bool = False,
        account: str | None = None,
        errors: ErrorMode | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ResponseStream:
        """Prepares the stream of one response, to be used with `async with`.

        Nothing is sent before `async with`. A request that cannot be built raises here; every
        other failure raises while iterating. What to ask for is the `Prompt`: its docstring has
        each option with its wires. What the wire or the model lacks is left out, and named in
        `ResponseStream.request.report`. The options here hold on every wire:

            async with client.stream("Hello", "anthropic:claude-opus-5") as stream:
                async for event in stream: ...

        Args:
            prompt: A `Prompt`, a history, a text, or a `Request` of `build`, which is sent
                unchanged.
            model: `"provider:model"`, or the model alone with `provider`. None: the prompt's own.
            provider: Name or value of the provider; "custom" is any server, with `base_url` and
                `wire_api`.
            wire_api: One of the provider's wires, by default its first. One that it lacks is
                `invalid_request`.
            base_url: Base URL of this request. The client's keys are not sent there; `api_key` is.
            api_key: Key of this request, which may be sent anywhere: a text or a function.
            dialects: Syntaxes of calls and reasoning to parse out of the text. None: those that
                the model is known to need; `()`: none. docs/dialects.md has their names.
            strict: Raise `invalid_request` where the report would name a change, so that what is
                sent is what the prompt says.
            strict_origin: What is unknown of an item's origin counts as foreign, so that its
                signed or encrypted state is downgraded and reported.
            account: The account that pays, part of the origin of items. Sent where the provider
                has a header for it (openai-codex).
            errors: "raise", or "event" to receive `Failed` as the last event instead of an
                exception. None: the client's own.
            headers: HTTP headers of this request alone, beside those of `Prompt.headers`, over
                which they win; no keys. Not the betas of a `Request` for Bedrock: they stand in
                its body, which is built.

        Raises:
            StreamError: The request cannot be built, or the key or a header is invalid.
            RuntimeError: The client is closed.
        """
        self._require_open()
        key = None if api_key is None else wrap_key(api_key)
        del api_key  # a traceback shows the locals of this frame
        if isinstance(key, ErrorInfo):
            raise StreamError(key)
        tools: Sequence[ToolSpec] = ()
        if isinstance(prompt, Request):
            request = _with_headers(prompt, headers)
            service = self._provider(provider or request.origin.provider or "custom")
        else:
            if not isinstance(prompt, Prompt):
                prompt = Prompt(prompt)
            prompt = _with_headers(prompt, headers)
            tools = prompt.tools
            target, service = self._target(
                model or prompt.model or "", provider, wire_api, base_url, account
            )
            request = build_for(prompt, target, strict=strict, strict_origin=strict_origin)
        config = self._config(request, service, key, tools, dialects, errors)
        return self._make_stream(config)

    async def respond(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None = None,
        **options: Unpack[StreamOptions],
    ) -> Response:
        """The complete response: the stream of `stream`, read to its end.

        Args:
            prompt: See `stream`.
            model: See `stream`.
            **options: The options of `stream`.

        Raises:
            StreamError: The request failed, unless `errors` is "event".
        """
        wrap_key_of(options)
        async with self.stream(prompt, model, **options) as stream:
            async for _ in stream.batches():
                pass
        return stream.response

    async def text(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None = None,
        **options: Unpack[StreamOptions],
    ) -> str:
        """The text of the response, if that is all of it: else an exception.

        A str cannot say that it is incomplete. So a response that ended otherwise raises, with the
        response in `StreamError.response`: refused (kind `content_filter`, code `refusal`), ended
        by a filter (`content_filter`), at the token limit (`truncated`, code `length`), with a
        call or a pause (`invalid_request`).

        Args:
            prompt: See `stream`.
            model: See `stream`.
            **options: The options of `stream`.

        Raises:
            StreamError: The request failed, with errors="event" too, or the text is not all of the
                response.
        """
        wrap_key_of(options)
        response = await self.respond(prompt, model, **options)
        error = text_error(response)
        if error is not None:
            raise StreamError(error, response)
        return response.text

    async def models(
        self,
        provider: str | Provider,
        *,
        wire_api: WireApi | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
    ) -> list[ModelInfo]:
        """The models that a provider lists.

        Args:
            provider: Name or value of the provider.
            wire_api: Wire API of the list.
            base_url: Base URL of this request.
            api_key: Key of this request.

        Raises:
            StreamError: The request failed; `invalid_request` if the provider has no list.
            RuntimeError: The client is closed.
        """
        self._require_open()
        service = self._provider(provider)
        request = models_request(service, wire_api or self._wire_api, base_url or self._base_url)
        models = read_models(await self.fetch(request, service, api_key=api_key))
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
        """The body of a response that is not a stream: a list of models, a count of tokens.

        Args:
            request: The request, sent unchanged.
            provider: The provider whose key is sent; the default is the request's own.
            api_key: Key of this request.

        Raises:
            StreamError: The request failed. It is not sent again.
            RuntimeError: The client is closed.
        """
        key = None if api_key is None else wrap_key(api_key)
        del api_key  # a traceback shows the locals of this frame
        if isinstance(key, ErrorInfo):
            raise StreamError(key)
        self._require_open()
        service = self._provider(provider or request.origin.provider or "custom")
        attempt = Attempt(
            self._source(request, service, key),
            # Never fed: an attempt needs a parser, and the body is returned as bytes.
            lambda headers, received_at: parser(request.wire_api),
            DeadlineTimer(self._deadlines),
            request.wire_api,
            self._limits,
            self._clock,
        )
        body: bytes | ErrorInfo | None
        try:
            body = await attempt.open(self._now)
            if body is None:
                body = await attempt.body()
        finally:
            await attempt.close()
        if isinstance(body, ErrorInfo):
            raise StreamError(body)
        return body

    def connect(
        self,
        model: str,
        *,
        provider: str | Provider | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
        account: str | None = None,
        errors: ErrorMode | None = None,
        headers: Mapping[str, str] | None = None,
        settings: WebSocketSettings | None = None,
        ssl_context: SSLContext | None = None,
    ) -> Connection:
        """A WebSocket connection to a model of OpenAI Responses. Experimental: docs/websocket.md.

        Args:
            model: As of `stream`, like the options that have the same names.
            headers: HTTP headers of the opening handshake, beside the provider's.
            settings: Limits, where the server's differ from those of the provider.
            ssl_context: Certificates; None: as the system has them.

        Raises:
            StreamError: `invalid_request`; the provider has no WebSocket (code `no_websocket`), or
                the package websockets is missing.
            RuntimeError: The client is closed.
        """
        # Few programs need it.
        from streamlib.client.websocket.connection import Connection, ConnectionConfig

        self._require_open()
        key = None if api_key is None else wrap_key(api_key)
        del api_key  # a traceback shows the locals of this frame
        if isinstance(key, ErrorInfo):
            raise StreamError(key)
        target, service = self._target(model, provider, "responses", base_url, account)
        return Connection(
            ConnectionConfig(
                target=target,
                settings=settings or service.websocket,
                keys=self._keys,
                key=key,
                headers=headers or {},
                errors=errors,
                limits=self._limits,
                deadlines=self._deadlines,
                retry=self._retry,
                loop_guard=self._loop_guard,
                hooks=self._attempt_hooks,
                on_event=self._on_event,
                stream_config=partial(self._config_for, service),
                require_open=self._require_open,
                clock=self._clock,
                now=self._now,
                jitter=self._jitter,
                ssl_context=ssl_context,
            )
        )

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the client is closed")

    def _target(
        self,
        model: str,
        provider: str | Provider | None,
        wire_api: WireApi | None,
        base_url: str | None,
        account: str | None,
    ) -> tuple[Target, Provider]:
        """Where a request goes, and the provider that it is for."""
        known = self._providers
        name: str | None
        if isinstance(provider, Provider):
            known = (*known, provider)
            name = provider.name
        else:
            name = provider
        service, model = find(model, name, known)
        target = resolve_target(
            service,
            model,
            wire_api or self._wire_api,
            base_url or self._base_url,
            self._models,
            account,
        )
        return target, service

    def _config(
        self,
        request: Request,
        service: Provider,
        key: ApiKey | None,
        tools: Sequence[ToolSpec],
        dialects: Sequence[str] | None,
        errors: ErrorMode | None,
    ) -> StreamConfig:
        """The configuration of a stream over HTTP."""
        source = self._source(request, service, key)
        return self._config_for(service, request, source, tools, dialects, errors)

    def _config_for(
        self,
        service: Provider,
        request: Request,
        source: Source,
        tools: Sequence[ToolSpec],
        dialects: Sequence[str] | None,
        errors: ErrorMode | None,
    ) -> StreamConfig:
        """What a stream needs: its request, and the client's settings where it has none."""
        if dialects is None:  # and not `()`, which turns them off
            dialects = dialects_for(
                request.model, parses_calls=service.parses_calls, overrides=self._dialects
            )
        return StreamConfig(
            source=source,
            parse=partial(response_parser, request, tuple(tools), tuple(dialects), self._limits),
            wire_api=request.wire_api,
            request=request,
            limits=self._limits,
            deadlines=self._deadlines,
            retry=self._retry,
            errors=errors or self._errors,
            clock=self._clock,
            now=self._now,
            jitter=self._jitter,
            orphans=self._orphans,
        )

    def _source(self, request: Request, provider: Provider, key: ApiKey | None) -> HttpSource:
        return HttpSource(
            self._transport,
            request,
            self._keys,
            provider,
            key,
            self._deadlines,
            self._now,
            self._loop_guard,
            self._attempt_hooks,
        )

    def _provider(self, provider: str | Provider) -> Provider:
        if isinstance(provider, Provider):
            return provider
        return provider_named(provider, self._providers)

    @property
    def _transport(self) -> Transport:
        # Created late: an HTTP library is imported, and its TLS context read, only when needed.
        if self._opened_transport is None:
            self._opened_transport = transport_for(self._http, self._connections)
        return self._opened_transport


def wrap_key_of(options: StreamOptions) -> None:
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


def _with_headers(sent: Sent, headers: Mapping[str, str] | None) -> Sent:
    """A prompt or a request with further headers."""
    if not headers:
        return sent
    checked = checked_headers(headers)
    if isinstance(sent, Request):
        spec = WIRE_SPECS[sent.wire_api]
        if spec.betas_in_body and spec.beta_header in checked:
            raise invalid_request(
                f"headers: {spec.beta_header} stands in the body of this request, which is built: "
                "set it before, with Prompt(headers=…)",
                "headers",
            )
    joined = joined_headers(sent.headers, checked)  # betas are joined
    return msgspec.structs.replace(sent, headers=joined)
