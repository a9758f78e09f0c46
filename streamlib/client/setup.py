"""What a client is made of: its settings, its keys, its connections.

`Client` adds the methods that send requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar

import anyio
import msgspec

from streamlib.client.attempt import Attempt, Clock
from streamlib.client.auth import KeyStore
from streamlib.client.background import creating_request, stream_request, target_of
from streamlib.client.credentials import ApiKey
from streamlib.client.cursor import Cursor
from streamlib.client.hooked_stream import HookedStream
from streamlib.client.hooks import AttemptHooks, OnEvent, OnRequest, OnResponse
from streamlib.client.options import ClientOptions, StreamOptions
from streamlib.client.response_parser import response_parser, resumable_parsers
from streamlib.client.resumption import Resumption
from streamlib.client.retry import RetryPolicy
from streamlib.client.sources import HttpSource, LoopGuard, ResponseSource
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_config import ErrorMode, StreamConfig, check_errors, wall_clock
from streamlib.client.watch import NOBODY, Watcher
from streamlib.providers import Provider
from streamlib.providers import provider as provider_named
from streamlib.providers.models import Traits
from streamlib.providers.websocket import WebSocketSettings
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request, build_for
from streamlib.request.endpoints import find_service, resolve_target
from streamlib.request.headers import checked_headers, joined_headers
from streamlib.request.mistakes import (
    check_callable,
    check_kind,
    check_switches,
    check_word,
    refuse_unknown,
)
from streamlib.request.prompt import Prompt, ToolSource
from streamlib.request.target import Target
from streamlib.transport import Transport, check_library, transport_for
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.dialects.by_model import dialects_for
from streamlib_parsers.items import ResponseItem, ToolSpec, WireApi
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import WIRE_APIS
from streamlib_parsers.resumable import Position
from streamlib_parsers.stream_error import invalid_request

if TYPE_CHECKING:
    from streamlib.client.websocket.connection import ConnectionConfig

Sent = TypeVar("Sent", Prompt, Request)

WIRES_ELSEWHERE: Final = {
    **dict.fromkeys(("chat_completions", "completions", "openai"), "chat"),
    **dict.fromkeys(("anthropic", "claude"), "messages"),
    **dict.fromkeys(("google", "generate_content", "vertex"), "gemini"),
    "bedrock": "converse",
}
"""Name of a wire elsewhere -> the one to write."""

CLIENT_NAMES: Final = ("base_url", "wire_api", *ClientOptions.__annotations__)
"""The options of a client."""

STREAM_NAMES: Final = tuple(StreamOptions.__annotations__)
"""The options of a stream."""


class ClientSetup:
    """The settings of a client. Its arguments are explained at `Client`."""

    def __init__(
        self,
        *values: Never,
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
        resume: bool = False,
        telemetry: Watcher | bool | None = None,
        clock: Clock = anyio.current_time,
        now: Callable[[], datetime] = wall_clock,
        jitter: Callable[[], float] = random.random,
        **unknown: Never,
    ) -> None:
        self._opened_transport: Transport | None = None
        """Created by the first request, None again after `aclose`."""
        self._orphans: list[Attempt] = []
        """Attempts of streams that were garbage-collected while open; closed by the next stream."""
        self._closed = False
        """Set by `aclose`."""
        self._loop_guard = LoopGuard()
        self._keys = KeyStore(api_key, base_url)
        unnamed = len(values)
        del api_key, values  # a traceback shows the locals of this frame
        refuse_unknown("Client", unknown, CLIENT_NAMES, Prompt.__struct_fields__, unnamed)
        _check_settings(deadlines, limits, connections, retry, resume)
        _check_choices(wire_api, errors, http, [on_request, on_response, on_event])
        _check_lists(providers, models, dialects)
        self._keys.check(providers)
        self._http = http
        self._base_url = base_url
        self._wire_api: WireApi | None = wire_api
        self._providers = tuple(providers)
        self._limits = limits
        self._errors: ErrorMode = errors
        self._models = models
        self._deadlines = deadlines or Deadlines()
        self._retry = retry or RetryPolicy()
        self._connections = connections
        self._dialects = tuple(dialects)
        self._attempt_hooks = _attempt_hooks(on_request, on_response)
        self._make_stream: Callable[[StreamConfig], ResponseStream] = ResponseStream
        """The class of this client's streams."""
        self._on_event = on_event
        if on_event is not None:
            self._make_stream = partial(HookedStream, on_event=on_event)
        self._resumes = resume
        self._telemetry = _watcher_of(telemetry)
        self._background_endpoints: set[str] = set()
        """Base URLs that this client requested background responses from: for their cursors."""
        self._clock = clock
        self._now = now
        self._jitter = jitter

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

    @property
    def deadlines(self) -> Deadlines:
        """The time limits of its streams."""
        return self._deadlines

    @property
    def telemetry(self) -> Watcher | None:
        """What records its streams; None: nothing does."""
        return self._telemetry

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
        service, model = find_service(model, provider, self._providers)
        target = resolve_target(
            service,
            model,
            wire_api or self._wire_api,
            base_url or self._base_url,
            self._models,
            account,
        )
        return target, service

    def _config_for(
        self,
        service: Provider,
        request: Request,
        source: ResponseSource,
        tools: Sequence[ToolSpec],
        options: StreamOptions,
    ) -> StreamConfig:
        """What a stream needs: its request, and the client's settings where it has none."""
        dialects = options.get("dialects")
        retry = options.get("retry")
        deadlines = options.get("deadlines")
        check_dialects(dialects)
        check_retry(retry)
        check_deadlines(deadlines)
        if dialects is None:  # and not `()`, which turns them off
            dialects = dialects_for(
                request.model,
                parses_calls=service.parses_calls,
                types_reasoning=WIRE_SPECS[request.wire_api].types_reasoning,
                overrides=self._dialects,
            )
        return StreamConfig(
            source=source,
            parse=partial(response_parser, request, tuple(tools), tuple(dialects), self._limits),
            wire_api=request.wire_api,
            request=request,
            limits=self._limits,
            deadlines=deadlines or self._deadlines,
            retry=retry or self._retry,
            errors=options.get("errors") or self._errors,
            clock=self._clock,
            now=self._now,
            jitter=self._jitter,
            orphans=self._orphans,
        )

    def _connection_config(
        self,
        target: Target,
        service: Provider,
        key: ApiKey | None,
        headers: Mapping[str, str] | None,
        errors: ErrorMode | None,
        settings: WebSocketSettings | None,
        ssl_context: SSLContext | None,
    ) -> ConnectionConfig:
        """The configuration of a WebSocket connection."""
        # Few programs need it.
        from streamlib.client.websocket.connection import ConnectionConfig

        return ConnectionConfig(
            target=target,
            settings=settings,
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
            watched=self._watched,
            require_open=self._require_open,
            clock=self._clock,
            now=self._now,
            jitter=self._jitter,
            ssl_context=ssl_context,
        )

    def _resumable(
        self,
        config: StreamConfig,
        service: Provider,
        key: ApiKey | None,
        cursor: Cursor | None,
        *,
        automatic: bool | None,
    ) -> StreamConfig:
        """The configuration of a stream that knows its position.

        Args:
            config: of the same stream without.
            service: the provider.
            key: key of this stream.
            cursor: where it is resumed; None: the request of `config` creates the response.
            automatic: `resume` of `Client.stream`.
        """
        creating = config.request
        if creating is None:
            return config
        if creating.origin.endpoint:
            self._background_endpoints.add(creating.origin.endpoint)

        def connect(response_id: str, position: Position | None) -> HttpSource:
            request = stream_request(creating, response_id, position)
            return self._source(request, service, key)

        resumption = Resumption(
            origin=creating.origin,
            connect=connect,
            response_id=None if cursor is None else cursor.response_id,
            automatic=self._resumes if automatic is None else automatic,
        )
        after: Position | None = None
        source, request = config.source, creating
        if cursor is not None:
            after = cursor.position
            request = stream_request(creating, cursor.response_id, None)
            source = connect(cursor.response_id, None)
        return msgspec.structs.replace(
            config,
            source=source,
            request=request,
            parse=resumable_parsers(config.parse, after, self._limits),
            resumption=resumption,
        )

    def _creating_request(
        self,
        cursor: Cursor,
        prompt: Prompt | Request | None,
        provider: str | Provider | None,
        base_url: str | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[Request, Provider]:
        """What requests for the response of a cursor are made from, and their provider."""
        self._require_open()
        service = self._provider(provider or cursor.origin.provider or "custom")
        used = self._background_endpoints
        target = target_of(cursor, service, base_url or self._base_url, used)
        if isinstance(prompt, Prompt):
            prompt = build_for(prompt, target)
        return with_headers(creating_request(target, prompt), headers), service

    def _source(self, request: Request, provider: Provider, key: ApiKey | None) -> HttpSource:
        return HttpSource(
            self._transport,
            request,
            self._keys,
            provider,
            key,
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

    def _watched(self, config: StreamConfig, prompt: Prompt | None) -> StreamConfig:
        """The configuration of a stream that the client's telemetry is told of."""
        watch = NOBODY
        if self._telemetry is not None and config.request is not None:
            watch = self._telemetry.of_stream(config.request, prompt)
        return msgspec.structs.replace(config, prompt=prompt, watch=watch)


def _watcher_of(telemetry: Watcher | bool | None) -> Watcher | None:  # noqa: FBT001  # an option
    """The telemetry of a client: `True` stands for one with its defaults.

    Raises:
        ModuleNotFoundError: the extra `otel` is not installed.
        TypeError: it is something else.
    """
    if telemetry is None or telemetry is False:
        return None
    if telemetry is True:
        from streamlib.client.otel import Telemetry  # an extra: loaded where somebody asks for it

        return Telemetry()
    if not hasattr(telemetry, "of_stream"):
        raise TypeError(f"telemetry is True or `Telemetry(…)`, not {telemetry!r:.100}")
    return telemetry


def _attempt_hooks(
    on_request: OnRequest | None, on_response: OnResponse | None
) -> AttemptHooks | None:
    """The hooks of each attempt; None without any, so that no attempt pays for them."""
    if on_request is None and on_response is None:
        return None
    return AttemptHooks(on_request, on_response)


def _check_choices(
    wire_api: str | None, errors: ErrorMode, http: Any, hooks: Sequence[Any]
) -> None:
    """Refuses misspelt words, what sends no requests, and hooks that cannot be called."""
    check_word("wire_api", wire_api, WIRE_APIS, WIRES_ELSEWHERE)
    check_errors(errors)
    check_library(http)
    for name, hook in zip(("on_request", "on_response", "on_event"), hooks, strict=True):
        check_callable(name, hook, "a function")


def _check_settings(
    deadlines: Deadlines | None,
    limits: Limits,
    connections: int | None,
    retry: RetryPolicy | None,
    resume: Any,
) -> None:
    """Refuses a number where a class with names says what it is."""
    check_deadlines(deadlines)
    check_kind("limits", limits, Limits, "`Limits(…)`")
    check_kind("connections", connections, int, "a whole number")
    if connections is not None and connections < 1:
        raise ValueError(f"connections is a whole number from 1, not {connections}")
    check_retry(retry)
    check_switches(resume=resume)


def _check_lists(providers: Any, models: Any, dialects: Any) -> None:
    """Refuses a name where a list, or a dict, of several is meant."""
    if isinstance(providers, (str, Provider)) or not isinstance(providers, Iterable):
        raise TypeError(f"providers is a list of `Provider(…)`, not {providers!r:.100}")
    for provider in providers:
        check_kind("providers", provider, Provider, "a list of `Provider(…)`")
    check_kind("models", models, Mapping, "a dict of a model's name and its `Traits(…)`")
    for name, traits in (models or {}).items():
        check_kind(f"models[{name!r}]", traits, Traits, "`Traits(…)`")
    rows = 'a list of ("part of a model\'s name", ("dialect", …))'
    if isinstance(dialects, str) or not isinstance(dialects, Iterable):
        raise TypeError(f"dialects is {rows}, not {dialects!r:.100}")
    for row in dialects:
        if not isinstance(row, (tuple, list)) or len(row) != 2:
            raise TypeError(f"dialects is {rows}, not {row!r:.100}")
        check_dialects(row[1])


def check_dialects(names: Any) -> None:
    """Refuses dialects that do not exist, before a request is sent for which they would be needed.

    Raises:
        TypeError: it is no list of names.
        ValueError: no dialect has such a name; it has similar ones.
    """
    if not names:
        return
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"dialects is a list of names, not {names!r:.100}: write [{names!r:.100}]")
    # Imported here: most clients name no dialect, and the grammars take long to load.
    from streamlib_parsers.dialects.definitions import resolve_dialects

    resolve_dialects(tuple(names))


def check_deadlines(deadlines: Deadlines | None) -> None:
    """Refuses a number of seconds alone."""
    check_kind("deadlines", deadlines, Deadlines, "`Deadlines(…)`, such as Deadlines(total=30)")


def check_retry(retry: RetryPolicy | None) -> None:
    """Refuses a number of retries alone."""
    check_kind("retry", retry, RetryPolicy, "`RetryPolicy(…)`, such as RetryPolicy(retries=3)")


def with_headers(sent: Sent, headers: Mapping[str, str] | None) -> Sent:
    """A prompt or a request with further headers."""
    if not headers:
        return sent
    checked = checked_headers(headers)
    if isinstance(sent, Request):
        spec = WIRE_SPECS[sent.wire_api]
        if spec.betas_in_body and spec.beta_header in checked:
            raise invalid_request(
                f"headers: {spec.beta_header} belongs in the body of this request, already built: "
                "set it before, with Prompt(headers=…)",
                "headers",
            )
    joined = joined_headers(sent.headers, checked)  # betas are joined
    return msgspec.structs.replace(sent, headers=joined)


def with_fields(
    prompt: Prompt | str | Sequence[ResponseItem] | Request,
    instructions: str | None,
    temperature: float | None,
    tools: Sequence[ToolSource],
) -> Prompt | str | Sequence[ResponseItem] | Request:
    """The prompt with what its call adds to it; without additions the prompt itself.

    Raises:
        ValueError: the prompt has one of them already, or is a request that was built.
        TypeError: a value of the wrong kind.
    """
    added: dict[str, Any] = {}
    if instructions is not None:
        added["instructions"] = instructions
    if temperature is not None:
        added["temperature"] = temperature
    if tools:
        added["tools"] = tools
    if not added:
        return prompt
    if isinstance(prompt, Request):
        names = ", ".join(added)
        message = f"a Request is sent unchanged: set {names} in the Prompt that it is built from"
        raise ValueError(message)  # noqa: TRY004  # as where the prompt has one already
    if not isinstance(prompt, Prompt):
        return Prompt(prompt, **added)
    for name in added:
        value = getattr(prompt, name)
        if value is not None and (name != "tools" or value):
            raise ValueError(f"the prompt has {name} already: set it there, or in the call")
    checked = Prompt(**added)
    return msgspec.structs.replace(prompt, **{name: getattr(checked, name) for name in added})
