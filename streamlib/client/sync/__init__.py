"""The client for code without an event loop: scripts, threads, notebooks, web frameworks.

with SyncClient() as client:
    print(client.text("hi", model="anthropic:claude-opus-5"))
    with client.stream("hi", model="anthropic:claude-opus-5") as stream:
        for event in stream: ...

It is `Client` in a thread of its own with an event loop: the same names, options, errors, retries.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Never, NoReturn, Unpack, overload

import anyio

from streamlib.client import Client, ClientOptions, StreamOptions
from streamlib.client.credentials import ApiKey
from streamlib.client.cursor import Cursor
from streamlib.client.model_list import ModelInfo
from streamlib.client.options import ResumeOptions, wrap_key_of
from streamlib.client.setup import with_fields
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_text import text_of
from streamlib.client.sync.loop_thread import CLOSED, LoopThread
from streamlib.client.sync.stream import LockedStream, SyncStream
from streamlib.client.watch import Watcher
from streamlib.pipeline.statements import SyncOnly
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib.request.mistakes import check_callable, refuse_unknown
from streamlib.request.prompt import Prompt, ToolSource
from streamlib.request.token_count import ItemCounter, PromptTokens
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.accumulate import Response
from streamlib_parsers.events import ResponseEvent, RunEvent
from streamlib_parsers.items import ResponseItem, WireApi

if TYPE_CHECKING:
    from streamlib.client.sync.piped import HookedEvents, HostedDriver, HostedSource
    from streamlib.pipeline.sync_stream import SyncPipeline

__all__ = ["SyncClient", "SyncOptions", "SyncStream"]


class SyncOptions(ClientOptions, total=False):
    """The keyword options of `SyncClient`: all those of `Client`."""

    base_url: str | None
    wire_api: WireApi | None


class _Connections:
    """What a client has to close. It does not refer to the client, which can be collected."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.loop = LoopThread()
        self.lock = threading.Lock()
        """Guards what all threads share: the open streams, and the creation of the transport."""
        self.streams: weakref.WeakSet[LockedStream] = weakref.WeakSet()
        """Streams that were entered, to be closed before the loop ends."""
        self.are_closed = False
        """Set by `close`."""

    def close(self) -> None:
        """Closes streams, connections and thread; at most some seconds."""
        self.are_closed = True
        self.loop.end(self._close_all)
        _open.discard(self)

    def close_soon(self) -> None:
        """The same in another thread: a finalizer may run anywhere, and must not wait."""
        threading.Thread(target=self.close, daemon=True).start()

    async def _close_all(self) -> None:
        with self.lock:
            open_streams = list(self.streams)
        async with anyio.create_task_group() as group:
            for stream in open_streams:
                group.start_soon(stream.aclose)
        await self.client.aclose()


def _runs_trio() -> bool:
    """Whether trio runs in this thread."""
    if "trio" not in sys.modules:
        return False
    try:
        sys.modules["trio"].lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True


_open: set[_Connections] = set()
"""Clients that are not closed, for the exit of the interpreter."""


def _close_open_clients() -> None:
    for connections in list(_open):
        connections.close()


atexit.register(_close_open_clients)


class SyncClient(SyncOnly):
    """Sends prompts to any provider, without an event loop of the caller's.

    One client serves any number of threads, and works where an event loop runs already, as in a
    notebook: it has a thread of its own, from the first request until `close`, at the latest until
    the interpreter exits. It cannot be used in a process that was forked after its first request.

    `on_event` is called in the thread that reads; `on_request`, `on_response` and functions given
    as `api_key` in the client's own: they must not block, nor use the client.

    Args:
        **options: the options of `Client`, with the same meaning.

    Raises:
        StreamError: `authentication`; `api_key` is invalid.
    """

    def __init__(self, *values: Never, **options: Unpack[SyncOptions]) -> None:
        unnamed = len(values)
        del values  # a traceback shows the locals of this frame
        refuse_unknown("SyncClient", (), (), unnamed=unnamed)
        self._on_event = options.pop("on_event", None)
        """Called by the streams, in the thread of their reader."""
        try:
            self._client = Client(**options)  # pyright: ignore[reportArgumentType]
        finally:
            options.pop("api_key", None)  # a traceback shows the locals of this frame
        check_callable("on_event", self._on_event, "a function")
        self._client._make_stream = LockedStream
        self._connections = _Connections(self._client)
        _open.add(self._connections)
        self._finalizer = weakref.finalize(self, self._connections.close_soon)
        """Closes a client that was abandoned."""
        self._finalizer.atexit = False  # `_close_open_clients` waits; a thread cannot start there

    def __repr__(self) -> str:
        # Without connections, `__init__` failed.
        connections: _Connections | None = getattr(self, "_connections", None)
        is_open = connections is not None and not connections.are_closed
        return f"<SyncClient {'open' if is_open else 'closed'}>"

    def __reduce__(self) -> NoReturn:
        # As in `Client`: of a compiled class Python takes the attributes for none.
        raise TypeError("a client cannot be pickled: it holds keys and connections")

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes every stream, the connections and the thread. A second call does nothing.

        A thread that waits for a stream gets `StreamError`, kind `cancelled`. In a process that
        was forked it does nothing.
        """
        self._finalizer.detach()
        self._connections.close()

    @property
    def deadlines(self) -> Deadlines:
        """The time limits of its streams."""
        return self._client.deadlines

    @property
    def telemetry(self) -> Watcher | None:
        """What records its streams; None: nothing does."""
        return self._client.telemetry

    @overload
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | None = None,
        **options: Unpack[StreamOptions],
    ) -> SyncStream: ...
    @overload
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem],
        model: list[str] | tuple[str, ...],
        **options: Unpack[StreamOptions],
    ) -> SyncPipeline[ResponseEvent]: ...
    @overload
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None,
        **options: Unpack[StreamOptions],
    ) -> SyncStream | SyncPipeline[ResponseEvent]: ...
    def stream(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None = None,
        **options: Unpack[StreamOptions],
    ) -> SyncStream | SyncPipeline[ResponseEvent]:
        """Prepares the stream of one response, to be used with `with`.

        Nothing is sent before `with`. A request that cannot be built raises here; every other
        failure raises while iterating.

        Args:
            prompt: a prompt, a history, a text, or a `Request` of `build`, sent unchanged.
            model: `"provider:model"`, or the model alone with `provider=`. A list: the next one
                serves where one fails before its first output, as in `Client.stream`.
            **options: the options of `Client.stream`.

        Raises:
            StreamError: the request cannot be built, or the key or a header is invalid.
            RuntimeError: the client is closed.
        """
        wrap_key_of(options)
        self._create_transport()
        if isinstance(model, (list, tuple)):
            return self._stream_of_first(prompt, model, options)
        return self._in_thread(self._client.stream(prompt, model, **options))

    def resume(
        self,
        cursor: Cursor,
        prompt: Prompt | Request | None = None,
        **options: Unpack[ResumeOptions],
    ) -> SyncStream:
        """Resumes the stream of a background response after a cursor, as `Client.resume`.

        Args:
            cursor: `SyncStream.cursor`, of this client or another.
            prompt: what the response answers, for the names of its tools.
            **options: the options of `Client.resume`.

        Raises:
            StreamError: `invalid_request`, code `cursor`: it is of another origin than the
                client's requests.
            RuntimeError: the client is closed.
        """
        wrap_key_of(options)
        self._create_transport()
        return self._in_thread(self._client.resume(cursor, prompt, **options))

    def cancel(
        self,
        cursor: Cursor,
        *,
        provider: str | Provider | None = None,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
    ) -> Response:
        """Stops a background response, as `Client.cancel`; returns it as it is then.

        Args:
            cursor: `SyncStream.cursor`, of this client or another.
            provider: as in `stream`. None: that of the cursor.
            base_url: as in `stream`.
            api_key: as in `stream`.

        Raises:
            StreamError: the request failed, or the cursor is of another origin.
            RuntimeError: the client is closed.
        """
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        cancel = partial(
            self._client.cancel,
            cursor,
            provider=provider,
            base_url=base_url,
            api_key=options.get("api_key"),
        )
        self._create_transport()
        return self._connections.loop.call(cancel)

    def respond(
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
            **options: the options of `Client.stream`.

        Raises:
            ValueError: the prompt has one of the three already, or is a `Request`.
            StreamError: the request failed, unless `errors` is "event".
        """
        wrap_key_of(options)
        question = with_fields(prompt, instructions, temperature, tools)
        with self.stream(question, model, **options) as stream:
            if isinstance(stream, SyncStream):
                stream._read_all()
            else:
                for _ in stream.batches():
                    pass
        return stream.response

    def text(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        model: str | list[str] | tuple[str, ...] | None = None,
        *,
        instructions: str | None = None,
        temperature: float | None = None,
        tools: Sequence[ToolSource] = (),
        **options: Unpack[StreamOptions],
    ) -> str:
        """Returns the text of the response, or raises if that is not all of it, as `Client.text`.

        Args:
            prompt: see `stream`.
            model: see `stream`.
            instructions: the system prompt.
            temperature: sampling temperature, from 0.
            tools: what the model may call: see `Prompt`, which has many more such options.
            **options: the options of `Client.stream`.

        Raises:
            ValueError: as `respond`.
            StreamError: the request failed, with errors="event" too, or the text is not all of the
                response.
        """
        wrap_key_of(options)
        question = with_fields(prompt, instructions, temperature, tools)
        response = self.respond(question, model, **options)
        return text_of(response)

    def count(
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
        """How many tokens a prompt has, as the input of a request: see `Client.count`."""
        options: StreamOptions = {"api_key": api_key}
        del api_key  # a traceback shows the locals of this frame
        wrap_key_of(options)
        count = partial(
            self._client.count,
            prompt,
            model,
            last=last,
            estimate=estimate,
            provider=provider,
            wire_api=wire_api,
            base_url=base_url,
            api_key=options.get("api_key"),
            account=account,
        )
        self._create_transport()
        return self._connections.loop.call(count)

    def models(
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
        list_models = partial(
            self._client.models,
            provider,
            wire_api=wire_api,
            base_url=base_url,
            api_key=options.get("api_key"),
        )
        self._create_transport()
        return self._connections.loop.call(list_models)

    def fetch(
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
        fetch = partial(self._client.fetch, request, provider, api_key=options.get("api_key"))
        self._create_transport()
        return self._connections.loop.call(fetch)

    def _stream_of_first(
        self,
        prompt: Prompt | str | Sequence[ResponseItem] | Request,
        models: Sequence[str],
        options: StreamOptions,
    ) -> SyncPipeline[ResponseEvent]:
        from streamlib.client.sync.piped import HookedEvents, HostedDriver
        from streamlib.pipeline.starts import fallback
        from streamlib.pipeline.sync_stream import SyncPipeline

        starts: list[Callable[[], HookedEvents]] = []
        for stream in self._client._streams_of(prompt, models, options):
            starts.append(partial(HookedEvents, stream, self._on_event))
        return SyncPipeline(partial(HostedDriver, fallback(starts), self))

    def _hosted(self, source: HostedSource) -> Callable[..., HostedDriver]:
        """Makes what reads a source in the client's thread."""
        from streamlib.client.sync.piped import HookedEvents, HostedDriver
        from streamlib.pipeline.stream import Pipeline

        pipeline: Pipeline[RunEvent] = Pipeline(HookedEvents(source, self._on_event), (), {})
        return partial(HostedDriver, pipeline, self)

    def _in_thread(self, stream: ResponseStream) -> SyncStream:
        """The stream for a reader without an event loop."""
        if not isinstance(stream, LockedStream):
            raise TypeError("the streams of a SyncClient are LockedStreams")
        return SyncStream(self, self._connections.loop, stream, self._on_event)

    def _create_transport(self) -> None:
        """Creates the transport, if this is the first request of any thread."""
        if self._connections.are_closed:
            raise RuntimeError(CLOSED)
        if self._client._opened_transport is None and _runs_trio():
            # Made here, its limit of connections would be one of trio's. Not with the lock, which
            # the loop takes when it closes: each would wait for the other.
            self._connections.loop.call(self._create_transport_in_loop)
        with self._connections.lock:
            _ = self._client._transport

    async def _create_transport_in_loop(self) -> None:
        with self._connections.lock:
            _ = self._client._transport

    def _opened(self, stream: LockedStream) -> None:
        """Notes a stream that is about to be entered."""
        with self._connections.lock:
            self._connections.streams.add(stream)
