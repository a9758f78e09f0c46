"""One answer to one client: the model's stream, crossed into the client's wire, from the first event to the last byte.

    asked ── a target's stream ── first event ── head ── bytes … ── end
                │ failed before its first event: the next target, else an HTTP error
                └ silent for `keep_alive` seconds: the head and a sign of life, and what fails now fails inside the stream

Three tasks an answer, none an event: the one that reads and writes, one that waits for the client to go, one that sleeps until a sign of
life is due. A client that is gone cancels the first, and with it closes the connection upstream; one that reads slowly holds it back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

import anyio
import msgspec
from msgspec import Struct
from starlette.types import Receive, Send

from streamlib.client import Client
from streamlib.client.stream import RETRY_SAFE_EVENTS, ResponseStream
from streamlib.client.stream_timing import TOKEN_EVENTS
from streamlib.errors import StreamError
from streamlib.gateway.access import refuse, send_whole
from streamlib.gateway.envelopes import hashed_origins
from streamlib.gateway.headers import MODEL, error_headers, id_header, limit_headers, report_header
from streamlib.gateway.json_array import JsonArray
from streamlib.gateway.restore import restore_history
from streamlib.gateway.routes import RouteRule, RouteTarget, apply_rule_limits, apply_rule_settings
from streamlib.gateway.translate import EventTranslator
from streamlib.providers.wire_specs import gateway_spec
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.wires.encoders import Encoder, encode_body, encoder
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import Completed, Created, Failed, ResponseEvent
from streamlib_parsers.items import ResponseItem, WireApi

OWN_FAULT: Final[frozenset[ErrorKind]] = frozenset(
    {"invalid_request", "invalid_history", "request_too_large", "content_filter", "cancelled"}
)
"""Failures that another target would not mend."""
NAMING: Final = frozenset({Created, Completed})
"""Events that name the model."""
NETWORK: Final[frozenset[ErrorKind]] = frozenset(
    {"connection", "stalled", "deadline", "authentication", "permission"}
)
"""Failures whose words are ours and say nothing of the content: the log has them."""
STREAM_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}

_log: Final = logging.getLogger("streamlib.gateway")


class GatewayRequest(Struct, frozen=True):
    """A client's request, read. hops: where it may go, the first before the others. whole: one body. array: a stream that is JSON."""

    wire_api: WireApi
    prompt: Prompt
    rule: RouteRule
    hops: Sequence[RouteTarget]
    whole: bool
    request_id: str
    array: bool = False

    @property
    def custom(self) -> frozenset[str]:
        """Names of the free-form tools."""
        return frozenset(tool.name for tool in self.prompt.tools if tool.format is not None)


def prompt_for(asked: GatewayRequest, hop: RouteTarget) -> Prompt:
    """The prompt for one target. Raises `StreamError` where the request cannot be said there.

    Items are given back their origins: those in envelopes their own; the others are taken to be of the first target, where that speaks
    the client's wire, for it is the one whose answers go out as they are.
    """
    wire_api = asked.wire_api
    stated = [
        word
        for word in gateway_spec(wire_api).stateful_fields
        if (asked.prompt.extra or {}).get(word)
    ]
    if stated and hop.where.wire_api != wire_api:
        info = ErrorInfo(
            "invalid_request",
            f"{stated[0]} names what only {wire_api} providers keep: send the history itself",
            code=stated[0],
        )
        raise StreamError(info)
    origins = [one.where.origin for one in asked.hops]
    items = restore_history(asked.prompt.items, hashed_origins(origins))
    if origins[0].wire_api == wire_api:
        items = [_of(item, wire_api, origins[0]) for item in items]
    prompt = msgspec.structs.replace(asked.prompt, input=tuple(items), model=None, stream=None)
    return apply_rule_settings(
        apply_rule_limits(prompt, asked.rule), asked.rule, hop.where.wire_api
    )


def _of(item: ResponseItem, wire_api: WireApi, origin: Any) -> ResponseItem:
    bare = (
        item.origin is not None
        and item.origin.wire_api == wire_api
        and item.origin.provider is None
    )
    return msgspec.structs.replace(item, origin=origin) if bare else item


class RequestHandler:
    """One answer. `run` it once; `summary` says afterwards how it went."""

    def __init__(
        self, asked: GatewayRequest, client: Client, send: Send, keep_alive: float
    ) -> None:
        self.asked = asked
        self.model = ""
        self.error: ErrorInfo | None = None
        self.stream: ResponseStream | None = None
        self.report: list[Change] = []
        self._client = client
        self._send = send
        self._keep_alive = keep_alive
        self._encoder = self._new_encoder()
        self._head: dict[str, str] = {}
        self._started = self._ended = False
        self._spoke = anyio.current_time()
        self._writing = anyio.Lock(fast_acquire=True)

    def _new_encoder(self) -> Encoder:
        dated: dict[str, Any] = (
            {"created_at": int(time.time())} if gateway_spec(self.asked.wire_api).is_dated else {}
        )
        made = encoder(self.asked.wire_api, model=self.asked.prompt.model, **dated)
        return JsonArray(made) if self.asked.array else made

    async def run(self, receive: Receive) -> None:
        """Answers, until the end or until the client is gone."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._wait_for_leaving, receive, group.cancel_scope)
            if not self.asked.whole:
                group.start_soon(self._stay_alive)
            try:
                await self._try_hops()
            except OSError as error:  # some servers raise one where the client is gone
                self.error = ErrorInfo("cancelled", f"the client is gone: {type(error).__name__}")
            except Exception as error:  # noqa: BLE001  # what is wrong here is an error for the client, not a torn stream
                _log.exception("%s failed inside the gateway", self.asked.request_id)
                await self._fail(
                    ErrorInfo("server_error", f"the gateway failed: {type(error).__name__}")
                )
            group.cancel_scope.cancel()

    async def _wait_for_leaving(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not self._ended:
            self.error = self.error or ErrorInfo("cancelled", "the client is gone")
        scope.cancel()

    async def _stay_alive(self) -> None:
        wait = self._keep_alive
        while True:
            await anyio.sleep(wait)
            wait = self._spoke + self._keep_alive - anyio.current_time()
            if wait > 0:
                continue
            wait = self._keep_alive
            if (
                not self._writing.locked()
            ):  # else the client does not read: it knows that there is more
                await self._write(gateway_spec(self.asked.wire_api).keep_alive)

    # --- the way through the targets ---

    async def _try_hops(self) -> None:
        failure: ErrorInfo | None = None
        for hop in self.asked.hops:
            if failure is not None:
                _log.info(
                    "%s %s failed with %s: the next target",
                    self.asked.request_id,
                    self.model,
                    failure.kind,
                )
            self.model = f"{hop.provider.name}:{hop.where.model}"
            failure = await self._try(hop)
            if failure is None:
                return
            if failure.kind in OWN_FAULT or self._started:
                break
        if failure is not None:
            await self._fail(failure)

    async def _try(self, hop: RouteTarget) -> ErrorInfo | None:
        """The answer of one target; or why there was none, while another may still be asked."""
        try:
            self.stream = self._client.stream(
                prompt_for(self.asked, hop),
                hop.where.model,
                provider=hop.provider,
                wire_api=hop.where.wire_api,
                base_url=self.asked.rule.base_url,
                api_key=hop.key,
                dialects=self.asked.rule.dialects,
                errors="event",
            )
        except StreamError as error:
            return error.info
        self.report = list(self.stream.request.report)
        async with self.stream as stream:
            own = (
                stream.request.origin == self.asked.hops[0].where.origin
                and stream.request.wire_api == self.asked.wire_api
            )
            crossing = None if own else EventTranslator(self.asked.wire_api, self.asked.custom)
            return await (
                self._whole(stream, crossing)
                if self.asked.whole
                else self._streamed(stream, crossing)
            )

    async def _streamed(
        self, stream: ResponseStream, crossing: EventTranslator | None
    ) -> ErrorInfo | None:
        batches = aiter(stream.batches())
        first = await _first(batches)
        failed = first[-1]
        if (
            type(failed) is Failed
            and not self._started
            and not any(type(event) in TOKEN_EVENTS for event in first)
        ):
            return failed.error
        self._head |= limit_headers(self.asked.wire_api, stream.rate_limits, datetime.now(UTC))
        await self._encoded(first, crossing)
        async for batch in batches:
            await self._encoded(batch, crossing)
        await self._write(self._encoder.close(), more=False)
        self.report += [*self._encoder.report, *(crossing.report if crossing else ())]
        return None

    async def _encoded(self, batch: list[ResponseEvent], crossing: EventTranslator | None) -> None:
        """Writes what came together."""
        last = batch[-1]
        if type(last) is Failed:
            self.error = last.error
        data = b"".join([self._encoder.feed(event) for event in self._crossed(batch, crossing)])
        if data:
            await self._write(data)

    def _crossed(
        self, batch: list[ResponseEvent], crossing: EventTranslator | None
    ) -> list[ResponseEvent]:
        """The events as the client may see them, of the model that it asked for: Claude Code takes another name for another model, and
        leaves the thoughts of that one out of its next request.
        """
        asked = self.asked.prompt.model
        if not self.model.endswith(f":{asked}"):
            batch = [
                msgspec.structs.replace(event, model=asked) if type(event) in NAMING else event
                for event in batch
            ]
        return (
            batch if crossing is None else [event for one in batch for event in crossing.feed(one)]
        )

    async def _whole(
        self, stream: ResponseStream, crossing: EventTranslator | None
    ) -> ErrorInfo | None:
        fold = Accumulator()
        async for batch in stream.batches():
            for event in self._crossed(batch, crossing):
                fold.feed(event)
        response = fold.response
        if response.error is not None:
            return response.error
        body = encode_body(
            self.asked.wire_api, response, model=self.asked.prompt.model, report=self.report
        )
        self.report += crossing.report if crossing else ()
        limits = limit_headers(self.asked.wire_api, response.rate_limits, datetime.now(UTC))
        self._ended = True
        await send_whole(self._send, 200, body, {**self._common(), **limits})
        return None

    # --- bytes to the client ---

    def _common(self) -> dict[str, str]:
        head = {
            **id_header(self.asked.wire_api, self.asked.request_id),
            **report_header(self.report),
        }
        return {**head, MODEL: quote(self.model, safe=":/@")} if self.model else head

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        """Bytes of a stream, behind its head."""
        async with self._writing:
            if not self._started:
                self._started = True
                headers = {
                    "content-type": self._encoder.media_type,
                    **STREAM_HEADERS,
                    **self._common(),
                    **self._head,
                }
                listed: Any = [
                    (name.encode("latin-1"), value.encode("latin-1", "replace"))
                    for name, value in headers.items()
                ]
                await self._send({"type": "http.response.start", "status": 200, "headers": listed})
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
            self._spoke = anyio.current_time()
            self._ended = not more

    async def _fail(self, error: ErrorInfo) -> None:
        """The failure in the client's wire: an HTTP error, or inside the stream that has begun."""
        self.error = error
        error = _for_the_client(error)
        if self._started:
            await self._write(self._encoder.feed(Failed(error)) + self._encoder.close(), more=False)
            return
        limits = (
            limit_headers(self.asked.wire_api, self.stream.rate_limits, datetime.now(UTC))
            if self.stream
            else {}
        )
        await refuse(
            self.asked.wire_api,
            error,
            self._send,
            {**self._common(), **limits, **error_headers(error)},
        )

    def summary(self) -> str:
        """One line for the log: no content, no key."""
        response = self.stream.response if self.stream else None
        usage = response.usage if response else None
        tokens = f"{usage.input_tokens}+{usage.output_tokens} tokens" if usage else "no usage"
        end = (
            _failure(self.error) if self.error else response.stop_reason if response else "nothing"
        )
        at = f" at {urlsplit(self.asked.rule.base_url).netloc}" if self.asked.rule.base_url else ""
        return (
            f"{self.asked.request_id} {self.asked.wire_api} {self.asked.prompt.model} -> {self.model}{at}: {end}, {tokens}"
            f"{_counted(self.report)}"
        )


async def _first(batches: AsyncIterator[list[ResponseEvent]]) -> list[ResponseEvent]:
    """Everything up to the first event that says something of an answer, or that there is none."""
    held: list[ResponseEvent] = []
    async for batch in batches:
        held += batch
        if any(type(event) not in RETRY_SAFE_EVENTS or type(event) is Failed for event in batch):
            break
    return held


def _for_the_client(error: ErrorInfo) -> ErrorInfo:
    """A key that the gateway lacks is none that its client could set."""
    if error.code != "no_key":
        return error
    return ErrorInfo(
        "server_error",
        "the gateway has no key for this model's provider: its log says more",
        code="no_key",
    )


def _failure(error: ErrorInfo) -> str:
    return f"{error.kind} ({error.message})" if error.kind in NETWORK else error.kind


def _counted(report: Sequence[Change]) -> str:
    paths = ", ".join(dict.fromkeys(f"{change.action} {change.path}" for change in report))
    return f", not said: {paths[:500]}" if paths else ""
