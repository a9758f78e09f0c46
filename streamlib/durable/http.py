"""Logs over HTTP: read, resumed and stopped from anywhere. An ASGI application, no framework.

    Mount("/", log_app(log, allow=may_read))        # in Starlette; app.mount("/", …) in FastAPI

    GET|HEAD /log/{id}              the read side of the Durable Streams protocol
    GET      /log/{id}/events       server-sent events, resumed by `Last-Event-ID`
    POST     /log/{id}/stop         stops the response, whichever host writes it
    DELETE   /log/{id}              deletes the log
    GET      /api/chat/{id}/stream  what ``useChat({resume: true})`` asks: the message, or 204
    POST     /api/chat/{id}/stop    stops the response of a chat

Knowing an id gives no access: `allow` decides about each request, before anything is looked up. A
browser receives only public fields. CORS is up to the application: expose `STREAM_HEADERS` to other
sites.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeAlias

from msgspec import Struct

from streamlib.asgi import Receive, Scope, Send
from streamlib.durable.event_stream import EventStream, MessageStream, SealOf, log_encoder
from streamlib.durable.log import Log
from streamlib.durable.log_exchange import LogExchange
from streamlib.durable.reader import LogReader
from streamlib.durable.records import LogError, check_id, is_terminal, parse_cursor
from streamlib.durable.stream_protocol import (
    STREAM_HEADERS,
    BadRequest,
    JsonMessages,
    StreamRequest,
)
from streamlib.pipeline.numbers import check_seconds
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.pipeline.reading import BatchSource
from streamlib.request.mistakes import check_callable
from streamlib_parsers.accumulate import Accumulator, Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Event, RunEvent
from streamlib_parsers.stream_error import StreamError

__all__ = ["STREAM_HEADERS", "LogApp", "LogSource", "log_app", "log_encoder"]

Allow: TypeAlias = Callable[[Scope, str], bool | Awaitable[bool]]
"""Whether a request may access the log or chat with this id; sync or async. The scope contains the
method, the path, and keys of middleware such as the user."""

ChatLog: TypeAlias = Callable[[str], str | Awaitable[str | None] | None]
"""The id of the log with a chat's newest response; None if there is none. Sync or async."""


def log_app(
    log: Log,
    *,
    allow: Allow,
    chat_log: ChatLog | None = None,
    log_path: str = "/log",
    chat_path: str = "/api/chat",
    replay_ended: bool = False,
    seal: SealOf | None = None,
    ping: float | None = 15.0,
    poll: float = 20.0,
    lifetime: float | None = 60.0,
) -> LogApp:
    """An ASGI application that serves logs, at the URLs in this module's docstring.

    Args:
        log: the logs, entered with ``async with`` while requests are served.
        allow: whether a request may read, stop or delete the log or chat of the id in its URL. Only
            True allows it; else the status is 403, whether the log exists or not.
        chat_log: returns the log id of a chat's newest response; by default the chat's id, so that
            a chat has one response.
        log_path: prefix of the URLs of logs.
        chat_path: prefix of the URLs of chats: the `api` of ``useChat``.
        replay_ended: whether a chat's message that has ended is sent again while its log is kept:
            for a page that resumes after a lost connection, where 204 would leave part of the
            message. It needs a `message_id` in `meta`, or the page shows the message twice.
        seal: makes the `streamlib.web.Seal` of a chat's message from the `meta` of its log, for a
            page that keeps the conversation: ``seal=lambda meta: Seal(KEY, meta["user"])``. By
            default such a page gets no signatures.
        ping: seconds without data after which a comment is sent, so that no proxy closes the
            connection; None: never.
        poll: seconds for which a long poll waits.
        lifetime: seconds after which an SSE response of the Durable Streams protocol ends, and its
            client reconnects; None: never. Its official client takes less than a second as a fault.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: a time is not above 0, or a path is none.
    """
    if not callable(allow):
        raise TypeError(f"allow is a function that decides about a request, not {allow!r:.100}")
    check_callable("chat_log", chat_log, "a function of the id of a chat")
    check_callable("seal", seal, "a function of the `meta` of a log")
    for name, seconds in (("ping", ping), ("poll", poll), ("lifetime", lifetime)):
        if seconds is not None:
            check_seconds(name, seconds, may_be_zero=name == "poll")
    for name, path in (("log_path", log_path), ("chat_path", chat_path)):
        if path and (path[0] != "/" or path[-1] == "/"):
            raise ValueError(f"{name} begins with a slash and ends with none, unlike {path!r}")
    options = LogAppOptions(
        log_path=log_path,
        chat_path=chat_path,
        replay_ended=replay_ended,
        seal=seal,
        ping=ping,
        poll=poll,
        lifetime=lifetime,
    )
    return LogApp(log, allow, chat_log, options)


class LogAppOptions(Struct, frozen=True, kw_only=True):
    """Options of `log_app`, which describes them."""

    log_path: str
    chat_path: str
    replay_ended: bool
    seal: SealOf | None
    ping: float | None
    poll: float
    lifetime: float | None


class LogApp:
    """Serves logs; made by `log_app`."""

    def __init__(
        self, log: Log, allow: Allow, chat_log: ChatLog | None, options: LogAppOptions
    ) -> None:
        self._log = log
        self._allow = allow
        self._chat_log = chat_log
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request (ASGI)."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            raise ValueError(f"no request of type {scope['type']!r} is served here")
        exchange = LogExchange(scope, receive, send)
        try:
            await self._serve(exchange)
        except LogError as error:
            if exchange.is_started:
                await exchange.end()
            else:
                await exchange.refuse_log_error(error)
        except BadRequest as error:
            await exchange.refuse(400, "invalid_request", str(error))

    async def _serve(self, exchange: LogExchange) -> None:
        path = exchange.path
        target = _id_of(path, self._options.log_path)
        if target is not None:
            await self._serve_log(exchange, *target)
            return
        target = _id_of(path, self._options.chat_path)
        if target is not None and target[1]:
            await self._serve_chat(exchange, *target)
            return
        await exchange.refuse(404, "not_found", "nothing is served at this path")

    async def _may(self, exchange: LogExchange, name: str, methods: tuple[str, ...]) -> bool:
        """Whether the request is allowed; if it is not, a response was sent."""
        if exchange.method not in methods:
            fields = {"allow": ", ".join(methods)}
            await exchange.refuse(405, "invalid_request", "no such method here", fields)
            return False
        allowed = self._allow(exchange.scope, name)
        if inspect.isawaitable(allowed):
            allowed = await allowed
        if allowed is not True:
            await exchange.refuse(403, "permission", "not allowed")
            return False
        return True

    # --- logs ---

    async def _serve_log(self, exchange: LogExchange, log_id: str, action: str) -> None:
        match action:
            case "":
                await self._serve_stream(exchange, log_id)
            case "events":
                await self._serve_events(exchange, log_id)
            case "stop":
                if await self._may(exchange, log_id, ("POST",)):
                    await self._log.stop(log_id)
                    await exchange.respond(204)
            case _:
                await exchange.refuse(404, "not_found", "nothing is served at this path")

    async def _serve_stream(self, exchange: LogExchange, log_id: str) -> None:
        if not await self._may(exchange, log_id, ("GET", "HEAD", "DELETE")):
            return
        request = StreamRequest(
            exchange,
            self._log,
            log_id,
            JsonMessages(),
            poll=self._options.poll,
            ping=self._options.ping,
            lifetime=self._options.lifetime,
        )
        match exchange.method:
            case "GET":
                await request.get()
            case "HEAD":
                await request.head()
            case _:
                await self._log.delete(log_id)
                await exchange.respond(204)

    async def _serve_events(self, exchange: LogExchange, log_id: str) -> None:
        if not await self._may(exchange, log_id, ("GET",)):
            return
        # EventSource reconnects with the same URL, so the header is newer than the query.
        after = exchange.header("last-event-id")
        if not after:
            after = next(iter(exchange.query("after")), None)
        try:
            parse_cursor(after)
        except ValueError as error:
            raise BadRequest(str(error)) from None
        stream = EventStream(exchange, self._log, log_id, ping=self._options.ping)
        await stream.serve(after)

    # --- chats ---

    async def _serve_chat(self, exchange: LogExchange, chat_id: str, action: str) -> None:
        match action:
            case "stream":
                if await self._may(exchange, chat_id, ("GET",)):
                    await self._resume_chat(exchange, chat_id)
            case "stop":
                if await self._may(exchange, chat_id, ("POST",)):
                    await self._stop_chat(exchange, chat_id)
            case _:
                await exchange.refuse(404, "not_found", "nothing is served at this path")

    async def _resume_chat(self, exchange: LogExchange, chat_id: str) -> None:
        log_id = await self._log_of(chat_id)
        if log_id is None:
            await exchange.respond(204)
        else:
            options = self._options
            stream = MessageStream(
                exchange, self._log, log_id, ping=options.ping, seal_of=options.seal
            )
            await stream.serve(replay_ended=options.replay_ended)

    async def _stop_chat(self, exchange: LogExchange, chat_id: str) -> None:
        log_id = await self._log_of(chat_id)
        if log_id is not None:
            try:
                await self._log.stop(log_id)
            except LogError as error:
                if error.kind != "gone":
                    raise
        await exchange.respond(204)

    async def _log_of(self, chat_id: str) -> str | None:
        if self._chat_log is None:
            return chat_id
        log_id = self._chat_log(chat_id)
        if inspect.isawaitable(log_id):
            log_id = await log_id
        return log_id


def _id_of(path: str, prefix: str) -> tuple[str, str] | None:
    """The id, and the part after it, of a path ``prefix/{id}/…``; None for any other path."""
    if not path.startswith(prefix + "/"):
        return None
    name, _, action = path[len(prefix) + 1 :].partition("/")
    try:
        check_id(name)
    except ValueError:
        return None
    return name, action


# --- a log as the source of a web response, such as `StreamResponse` ---


class LogSource(BatchSource[RunEvent]):
    """The events of a log as a stream to enter and leave; leaving it does not end what is written.

        StreamResponse(LogSource(log, log_id), log_encoder(meta))

    Args:
        log: the logs.
        log_id: id of an existing log.
    """

    def __init__(self, log: Log, log_id: str) -> None:
        super().__init__()
        self._log = log
        self._log_id = log_id
        self._reader: LogReader | None = None
        """The reader; None before it is entered."""
        self._accumulator = Accumulator()
        self._is_in_response = True
        """Whether the last event left a response open."""

    @property
    def response(self) -> Response:
        """The response so far; of a run the newest one."""
        return self._accumulator.response

    async def __aenter__(self) -> LogSource:
        self._reader = self._log.read(self._log_id)
        # Entered again, it begins again: nothing of the earlier block follows.
        self._rest.clear()
        self._accumulator = Accumulator()
        self._is_in_response = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return self._reader is None

    pipe: ClassVar = pipe_method

    async def _next_batch(self) -> list[RunEvent]:
        """The events of the next record.

        Raises:
            StreamError: the log cannot be read further.
            StopAsyncIteration: the log has ended.
        """
        if self._reader is None:
            raise RuntimeError("a source is used inside of `async with`")
        try:
            entries = await anext(self._reader.batches())
        except LogError as error:
            raise StreamError(_info(error)) from error
        events = [entry.event for entry in entries]
        for event in events:
            if not isinstance(event, Event):
                continue  # an output, between two responses of a run
            if not self._is_in_response:
                self._accumulator = Accumulator()
            self._accumulator.feed(event)
            self._is_in_response = not is_terminal(event)
        return events


def _info(error: LogError) -> ErrorInfo:
    """The error that a page receives if a log cannot be read further."""
    if error.kind == "gone":
        return ErrorInfo("not_found", str(error), code=error.kind)
    if error.kind in {"rewound", "unreadable"}:
        is_retryable = error.kind == "rewound"
        return ErrorInfo("truncated", str(error), retryable=is_retryable, code=error.kind)
    return ErrorInfo("server_error", str(error), retryable=True, status=503, code=error.kind)
