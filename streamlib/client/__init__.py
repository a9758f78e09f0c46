"""The client: sends a prompt to a model and returns a stream of events, or one response.

async with Client() as client:
    async with client.stream("hi", model="anthropic:claude-opus-5") as stream:
        async for event in stream: ...
    response = await client.respond(prompt, model="openai:gpt-5")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from ssl import SSLContext
from typing import TYPE_CHECKING, Never, NoReturn, Self, Unpack, overload

from streamlib.client.attempt import Attempt
from streamlib.client.background import cancel_request, is_background, response_in
from streamlib.client.credentials import ApiKey
from streamlib.client.cursor import Cursor
from streamlib.client.hooks import AttemptRequest, AttemptResponse
from streamlib.client.model_list import ModelInfo, models_request, read_models
from streamlib.client.options import ClientOptions, ResumeOptions, StreamOptions, wrap_key_of
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.client.setup import STREAM_NAMES, ClientSetup, with_fields, with_headers
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_config import ErrorMode
from streamlib.client.stream_text import text_of
from streamlib.client.token_endpoint import counted_tokens
from streamlib.pipeline.statements import AsyncOnly
from streamlib.providers import Provider
from streamlib.providers.websocket import WebSocketSettings
from streamlib.request.build import Request, build_for
from streamlib.request.mistakes import check_switches, refuse_unknown
from streamlib.request.prompt import Prompt, ToolSource
from streamlib.request.token_count import ItemCounter, PromptTokens, count_locally, count_request
from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import ResponseItem, ToolSpec, WireApi
from streamlib_parsers.protocol import parser
from streamlib_parsers.signatures import short_help
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.client.websocket.connection import Connection
    from streamlib.pipeline.starts import StartedStream

__all__ = [
    "AttemptRequest",
    "AttemptResponse",
    "Client",
    "ClientOptions",
    "ResumeOptions",
    "StreamOptions",
]


class Client(AsyncOnly, ClientSetup):
    """Sends prompts to any provider, on asyncio and on trio.

    One client serves any number of concurrent streams, all on the event loop of the first one.

    Args:
        http: None (on asyncio aiohttp where it is installed, else httpx or httpx2), the name of one
            of these, an `httpx.AsyncClient`, an `httpx2.AsyncClient`, any object with their
            methods, an `aiohttp.ClientSession`, or a `Transport`. One that is passed in stays its
            owner's to close. docs/transports.md says which to choose.
        api_key: one key (for `base_url`, else for the first provider that is used), a function
            that returns one, or `{provider: key}`. Without it, the provider's own environment
            variables are read.
        base_url: base URL of every request.
        wire_api: wire API of every request; the default is the provider's first.
        providers: additional providers, or replacements of the same name.
        limits: limits of what is read.
        errors: "raise", or "event" to receive `Failed` instead of an exception.
        models: traits of models that differ from the built-in ones.
        deadlines: time limits for each kind of wait.
        retry: when a failed request is sent again.
        connections: concurrent streams; further ones wait.
        dialects: rows of (part of a model's name, dialects), which precede the built-in ones.
        on_request: called before each attempt with an `AttemptRequest`; it may change headers.
        on_response: called with the `AttemptResponse` of each attempt: status and headers.
        on_event: called with each event before the reader gets it. All three may be coroutine
            functions; one that raises ends the stream with its exception.
        resume: whether a stream of a background response that breaks goes on over another
            connection by itself, as often as `retry` says. Experimental: docs/resume.md.
        telemetry: records with OpenTelemetry: `True`, or `otel.Telemetry(…)` (docs/hooks.md).
        clock: seconds of a monotonic clock; for tests.
        now: the current time with a time zone; for tests.
        jitter: a random number from 0 to 1; for tests.

    Raises:
        StreamError: `authentication`; `api_key` is invalid.
        ValueError: `http` is a text that names none of the libraries.
        ModuleNotFoundError: the library that `http` names is not installed.
    """

    def __repr__(self) -> str:
        return f"<Client {'closed' if self._closed else 'open'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client cannot be pickled: it holds keys and connections")

    async def __aenter__(self) -> Self:
        # The HTTP library is loaded here, which takes 200 ms, not by the first stream.
        _ = self._transport
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @overload
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None = None,
        **options: Unpack[StreamOptions],
    ) -> ResponseStream: ...
    @overload
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem],
        model: list[str] | tuple[str, ...],
        **options: Unpack[StreamOptions],
    ) -> StartedStream: ...
    @overload
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None,
        **options: Unpack[StreamOptions],
    ) -> ResponseStream | StartedStream: ...
    @short_help
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None = None,
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
        resume: bool | None = None,
        retry: RetryPolicy | None = None,
        deadlines: Deadlines | None = None,
        **unknown: Never,
    ) -> ResponseStream | StartedStream:
        """Prepares the stream of one response, to be used with `async with`.

            async with client.stream("Hello", "anthropic:claude-opus-5") as stream:
                async for event in stream: ...

        Nothing is sent before `async with`. A request that cannot be built raises
        here; every other failure raises while iterating. What to ask for is the
        `Prompt`: its docstring has each option with its wires. What the wire or the
        model lacks is left out, and named in `ResponseStream.request.report`.

        Args:
            prompt: a `Prompt`, a history, a text, or a `Request` of `build`, which
                is sent unchanged.
            model: `"provider:model"`, or the model alone with `provider`. None: the
                prompt's own. A list: the next one serves where one fails before its
                first output (`streamlib.pipeline.fallback`); `retry` is that of the
                last, since another model is worth more than a wait.
            provider: its name or value; "custom" with `base_url` and `wire_api`.
            wire_api: one of the provider's wires, by default its first.
            base_url: base URL of this request; no key is sent there but `api_key`.
            api_key: key of this request, a text or a function; sent anywhere.
            dialects: syntaxes of calls and reasoning to parse out of the text
                (docs/dialects.md). None: those that the model needs; `()`: none.
            strict: raise `invalid_request` where the report would name a change.
            strict_origin: treat what is unknown of an item's origin as that of
                another provider: its signed state is downgraded and reported.
            account: the account that pays, for providers with a header for it.
            errors: "raise", or "event": `Failed` is last. None: the client's own.
            headers: HTTP headers of this request, before `Prompt.headers`. No keys;
                betas of a built `Request` for Bedrock are in its body.
            resume: whether a background response goes on over a new connection.
            retry: when this request is sent again. None: as the client's others.
            deadlines: time limits of this stream. None: those of the client.

        Raises:
            StreamError: the request, the key or a header is invalid.
            RuntimeError: the client is closed.
        """
        options = StreamOptions(
            provider=provider,
            wire_api=wire_api,
            base_url=base_url,
            api_key=api_key,
            dialects=dialects,
            strict=strict,
            strict_origin=strict_origin,
            account=account,
            errors=errors,
            headers=headers,
            resume=resume,
            retry=retry,
            deadlines=deadlines,
        )
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        refuse_unknown("stream()", unknown, STREAM_NAMES, Prompt.__struct_fields__)
        self._require_open()
        if isinstance(model, (list, tuple)):
            return self._stream_of_first(prompt, model, options)
        return self._stream_of_one(prompt, model, options)

    def _stream_of_one(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None,
        options: StreamOptions,
    ) -> ResponseStream:
        strict = options.get("strict", False)
        strict_origin = options.get("strict_origin", False)
        provider = options.get("provider")
        headers = options.get("headers")
        api_key = options.get("api_key")
        resume = options.get("resume")
        check_switches(strict=strict, strict_origin=strict_origin, resume=resume)
        tools: Sequence[ToolSpec] = ()
        wanted: Prompt | None = None
        if isinstance(prompt, Request):
            request = with_headers(prompt, headers)
            service = self._provider(provider or request.origin.provider or "custom")
        else:
            wanted = with_headers(prompt if isinstance(prompt, Prompt) else Prompt(prompt), headers)
            tools = wanted.tools
            name = model or wanted.model or ""
            target, service = self._target(
                name,
                provider,
                options.get("wire_api"),
                options.get("base_url"),
                options.get("account"),
            )
            request = build_for(wanted, target, strict=strict, strict_origin=strict_origin)
        source = self._source(request, service, api_key)
        config = self._config_for(service, request, source, tools, options)
        config = self._watched(config, wanted)
        if is_background(request):
            config = self._resumable(config, service, api_key, None, automatic=resume)
        return self._make_stream(config)

    def _stream_of_first(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        models: Sequence[str],
        options: StreamOptions,
    ) -> StartedStream:
        """The stream of the first model that has output."""
        # Imported here: few streams have several models.
        from streamlib.pipeline.starts import fallback

        def start(stream: ResponseStream) -> ResponseStream:
            return stream

        streams = self._streams_of(prompt, models, options)
        return fallback([partial(start, stream) for stream in streams])

    def _streams_of(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        models: Sequence[str],
        options: StreamOptions,
    ) -> list[ResponseStream]:
        """A stream for each model, made at once, so that a wrong request is found at once."""
        if isinstance(prompt, Request):
            raise TypeError("a Request is of one model: give a Prompt with a list of models")
        own: StreamOptions = {**options, "retry": NO_RETRY}
        streams = [self._stream_of_one(prompt, model, own) for model in models[:-1]]
        streams += [self._stream_of_one(prompt, model, options) for model in models[-1:]]
        return streams

    def resume(
        self,
        cursor: Cursor,
        prompt: Prompt | Request | None = None,
        *,
        provider: str | Provider | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
        dialects: Sequence[str] | None = None,
        errors: ErrorMode | None = None,
        headers: Mapping[str, str] | None = None,
        resume: bool | None = None,
    ) -> ResponseStream:
        """Resumes the stream of a background response after a cursor. Experimental.

        The stream delivers the events that followed, with the same numbers (`seq`), and its
        `response` holds all of them: the server sends the stream from its start, so that the
        parser knows what the events belong to. Nothing is generated again. docs/resume.md.

        Args:
            cursor: `ResponseStream.cursor`, of this client or another.
            prompt: what the response answers, for the names of its tools; without it, calls have
                the names that were sent.
            provider: as in `stream`. None: that of the cursor.
            base_url: as in `stream`.
            api_key: as in `stream`.
            dialects: as in `stream`.
            errors: as in `stream`.
            headers: as in `stream`.
            resume: as in `stream`.

        Raises:
            StreamError: `invalid_request`, code `cursor`: it is of another origin than the
                client's requests, which gets neither a key nor a request.
            RuntimeError: the client is closed.
        """
        options: StreamOptions = {"api_key": api_key, "dialects": dialects, "errors": errors}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        key = options.get("api_key")
        creating, service = self._creating_request(cursor, prompt, provider, base_url, headers)
        tools: Sequence[ToolSpec] = ()
        if isinstance(prompt, Prompt):
            tools = prompt.tools
        source = self._source(creating, service, key)
        config = self._config_for(service, creating, source, tools, options)
        config = self._resumable(config, service, key, cursor, automatic=resume)
        return self._make_stream(config)

    async def cancel(
        self,
        cursor: Cursor,
        *,
        provider: str | Provider | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
    ) -> Response:
        """Stops a background response; returns it as it is then. Experimental.

        Its `status` is "cancelled", or "completed" where it had ended before. What it generated
        until then is billed. Leaving its stream alone does not stop it.

        Args:
            cursor: `ResponseStream.cursor`, of this client or another.
            provider: as in `stream`. None: that of the cursor.
            base_url: as in `stream`.
            api_key: as in `stream`.

        Raises:
            StreamError: the request failed, or the cursor is of another origin (see `resume`).
            RuntimeError: the client is closed.
        """
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        creating, service = self._creating_request(cursor, None, provider, base_url, None)
        request = cancel_request(creating, cursor.response_id)
        body = await self.fetch(request, service, api_key=options.get("api_key"))
        return response_in(body, request)

    async def respond(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None = None,
        *,
        instructions: str | None = None,
        temperature: float | None = None,
        tools: Sequence[ToolSource] = (),
        **options: Unpack[StreamOptions],
    ) -> Response:
        """The complete response: the stream of `stream`, read to its end.

        Args:
            prompt: see `stream`.
            model: see `stream`.
            instructions: the system prompt.
            temperature: sampling temperature, from 0.
            tools: what the model may call: see `Prompt`, which has many more such options.
            **options: the options of `stream`.

        Raises:
            ValueError: the prompt has one of the three already, or is a `Request`.
            StreamError: the request failed, unless `errors` is "event".
        """
        # A traceback shows the locals of this frame, and with them a key in `options`.
        wrap_key_of(options)
        question = with_fields(prompt, instructions, temperature, tools)
        async with self.stream(question, model, **options) as stream:
            async for _ in stream.batches():
                pass
        return stream.response

    async def text(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None = None,
        *,
        instructions: str | None = None,
        temperature: float | None = None,
        tools: Sequence[ToolSource] = (),
        **options: Unpack[StreamOptions],
    ) -> str:
        """Returns the text of the response; raises if the response is anything but complete text.

        A str cannot say that it is incomplete. So a response that ended otherwise raises, with the
        response in `StreamError.response`: refused (kind `content_filter`, code `refusal`), ended
        by a filter (`content_filter`), at the token limit (`truncated`, code `length`), with a
        call or a pause (`invalid_request`).

        Args:
            prompt: see `stream`.
            model: see `stream`.
            instructions: the system prompt.
            temperature: sampling temperature, from 0.
            tools: what the model may call: see `Prompt`, which has many more such options.
            **options: the options of `stream`.

        Raises:
            ValueError: as `respond`.
            StreamError: the request failed, with errors="event" too, or the text is not all of the
                response.
        """
        wrap_key_of(options)
        question = with_fields(prompt, instructions, temperature, tools)
        response = await self.respond(question, model, **options)
        return text_of(response)

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
            provider: name or value of the provider.
            wire_api: wire API of the list.
            base_url: base URL of this request.
            api_key: key of this request.

        Raises:
            StreamError: the request failed; `invalid_request` if the provider has no list.
            RuntimeError: the client is closed.
        """
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        self._require_open()
        service = self._provider(provider)
        request = models_request(service, wire_api or self._wire_api, base_url or self._base_url)
        models = read_models(await self.fetch(request, service, api_key=options.get("api_key")))
        if isinstance(models, ErrorInfo):
            raise StreamError(models)
        return models

    async def count(
        self,
        prompt: Prompt | str | Sequence[ResponseItem],
        model: str | None = None,
        *,
        last: Response | None = None,
        estimate: ItemCounter | None = None,
        provider: str | Provider | None = None,
        wire_api: WireApi | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
        account: str | None = None,
    ) -> PromptTokens:
        """The tokens of a prompt: counted by its provider where that can, else an estimate.

        Args:
            prompt: a `Prompt`, a history or a text.
            model: as in `stream`, like the options that have the same names.
            last: the newest response in the history. None: the one that `History.add` appended.
            estimate: counts items without the provider; None: by their characters.

        Raises:
            StreamError: the request failed. That a provider cannot count is no failure.
            RuntimeError: the client is closed.
        """
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        self._require_open()
        prompt = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
        model = model or prompt.model or ""
        target, service = self._target(model, provider, wire_api, base_url, account)
        fetch = partial(self.fetch, provider=service, api_key=options.get("api_key"))
        counted = await counted_tokens(fetch, count_request(prompt, target))
        return counted or count_locally(prompt, target, last, estimate)

    async def fetch(
        self,
        request: Request,
        provider: str | Provider | None = None,
        *,
        api_key: ApiKey | None = None,
    ) -> bytes:
        """The body of a response that is not a stream: a list of models, a count of tokens.

        Args:
            request: the request, sent unchanged.
            provider: the provider whose key is sent; the default is the request's own.
            api_key: key of this request.

        Raises:
            StreamError: the request failed. It is not sent again.
            RuntimeError: the client is closed.
        """
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        key = options.get("api_key")
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
            model: as in `stream`, like the options that have the same names.
            headers: HTTP headers of the opening handshake, beside the provider's.
            settings: limits, where the server's differ from those of the provider.
            ssl_context: certificates; None: as the system has them.

        Raises:
            StreamError: `invalid_request`; the provider has no WebSocket (code `no_websocket`), or
                the package websockets is missing.
            RuntimeError: the client is closed.
        """
        # Few programs need it.
        from streamlib.client.websocket.connection import Connection

        self._require_open()
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        key = options.get("api_key")
        target, service = self._target(model, provider, "responses", base_url, account)
        chosen = settings or service.websocket
        config = self._connection_config(target, service, key, headers, errors, chosen, ssl_context)
        return Connection(config)
