"""Opens streams of a request's targets, and translates their events for the client's wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import anyio
import msgspec
from msgspec import Struct, field

from streamlib.client import Client
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.gateway.clients.admission import Admission
from streamlib.gateway.clients.identity import ANONYMOUS, ClientIdentity
from streamlib.gateway.clients.stored_ids import brought_ids
from streamlib.gateway.paths import Operation
from streamlib.gateway.state.client_state import ClientState
from streamlib.gateway.state.envelopes import hashed_origins
from streamlib.gateway.state.restore import StoredResponse, restore_history
from streamlib.gateway.state.translate import EventTranslator, QualifiedName
from streamlib.gateway.targets.memory import HeldBatches, StreamMemory
from streamlib.gateway.targets.pool import Slot, TargetPool
from streamlib.gateway.targets.routes import (
    HEADERS_SECONDS,
    RouteRule,
    RouteTarget,
    apply_overrides,
    apply_rule_limits,
)
from streamlib.gateway.token_estimate import usage_so_far
from streamlib.gateway.watch.observer import Watch
from streamlib.gateway.workers import Workers
from streamlib.history.recover import recover
from streamlib.pipeline.attempts import Opened, read_opening
from streamlib.providers.wire_specs import gateway_spec
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.wires.encoders import echoed_metadata
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Created, Failed, RateLimits, ResponseEvent
from streamlib_parsers.items import JsonObject, Origin, ResponseItem, WireApi
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError

FORGETFUL: Final[frozenset[WireApi]] = frozenset({"chat", "gemini"})
"""Wires whose clients lose state even if the model has the same wire: most Chat clients do not know
the extension ``reasoning_details``, and Gemini CLI resumes sessions without signatures."""


RETRY: Final = RetryPolicy(retry_after_cap=2.0, within=60.0)
"""How the only target is asked again. A longer `retry-after` is for the client, whose SDK obeys it:
while the gateway waits, the client does not know why. One that was silent for its 15 minutes is not
asked again: its client would wait for three times as long."""


class Services(Struct, frozen=True, kw_only=True, eq=False):
    """What all requests of a running gateway share.

    Attributes:
        client: sends requests to targets.
        workers: builds and decodes large requests.
        pool: chooses targets.
        keep_alive: seconds of silence before a client is sent a keep-alive.
        memory: bounds what all streams hold.
        retry: when the only target of a request is asked again.
        state: stores state for clients; None: nothing is stored.
    """

    client: Client
    workers: Workers
    pool: TargetPool
    keep_alive: float
    memory: StreamMemory = field(default_factory=StreamMemory)
    retry: RetryPolicy = RETRY
    state: ClientState | None = None


class GatewayRequest(Struct, frozen=True, kw_only=True):
    """A decoded request of a client.

    Attributes:
        wire_api: the client's wire.
        prompt: prompt with the model name that the client requested.
        operation: operation that is requested.
        rule: route of the request.
        targets: targets of the route, in the order in which they are tried.
        is_stream: whether the client requests a stream, not one body.
        request_id: id of the request in the log and in response headers.
        is_json_array: whether the stream is a JSON array (Gemini without `alt=sse`).
        in_background: whether the response is stored in a log and outlives the request.
        size: bytes of the request body.
        settings: settings that the response repeats; None on wires whose responses repeat none.
        encoder_options: options of the encoder that the client's SDK needs.
        identity: identity of the client, for the state that the gateway stores for it.
        admission: what the request took from the client's limits; None: the client has none.
    """

    wire_api: WireApi
    prompt: Prompt
    rule: RouteRule
    targets: Sequence[RouteTarget]
    is_stream: bool
    request_id: str
    operation: Operation = "response"
    is_json_array: bool = False
    in_background: bool = False
    size: int = 0
    settings: JsonObject | None = None
    encoder_options: JsonObject = {}
    identity: ClientIdentity = ANONYMOUS
    admission: Admission | None = None

    @property
    def custom_tools(self) -> frozenset[QualifiedName]:
        """Namespaces and names of the free-form tools in the prompt."""
        names: set[QualifiedName] = set()
        for tool in self.prompt.tools:
            if tool.format is not None:
                names.add((None, tool.name))
            for member in tool.tools:
                if member.format is not None:
                    names.add((tool.name, member.name))
        return frozenset(names)


def restored_prompt(
    request: GatewayRequest, stored: Mapping[int, Sequence[StoredResponse]] | None = None
) -> Prompt:
    """The prompt for all targets of a request.

    Items get their origins back: an item with an envelope has its origin in it. Other items are
    assumed to be from the first target if that has the client's wire, because its responses are
    sent unchanged, without envelopes.

    Args:
        request: request of the client.
        stored: responses in its history that the gateway stored, by turn.
    """
    wire_api = request.wire_api
    # All targets, because after a fallback the history has items of several.
    origins = [target.resolved.origin for target in request.targets]
    items = restore_history(request.prompt.items, hashed_origins(origins), stored)
    if origins[0].wire_api == wire_api:
        items = [_with_origin(item, wire_api, origins[0]) for item in items]
    prompt = msgspec.structs.replace(request.prompt, input=tuple(items), model=None, stream=None)
    return apply_rule_limits(prompt, request.rule)


def prompt_for(request: GatewayRequest, restored: Prompt, target: RouteTarget) -> Prompt:
    """The prompt for one target.

    Args:
        request: request of the client.
        restored: result of `restored_prompt` for it.
        target: the target.

    Raises:
        StreamError: the target cannot serve the request.
    """
    if target.resolved.wire_api != request.wire_api:
        _refuse_stored_state(request)
    prompt = restored
    # Betas are Anthropic's: other servers with the wire refuse them, or should not see them.
    if not takes_betas(target):
        prompt = msgspec.structs.replace(prompt, headers={})
    return apply_overrides(prompt, target)


def takes_betas(target: RouteTarget) -> bool:
    """Whether the client's `anthropic-beta` is sent to a target."""
    return target.provider.name == "anthropic" and target.resolved.wire_api == "messages"


def _refuse_stored_state(request: GatewayRequest) -> None:
    """Refuses fields that name stored state of the client's own provider: no other one has it."""
    extra = request.prompt.extra or {}
    for name in gateway_spec(request.wire_api).stateful_fields:
        if extra.get(name):
            message = (
                f"{name} names state that only {request.wire_api} providers store: "
                "send the history itself"
            )
            raise StreamError(ErrorInfo("invalid_request", message, code=name))


def _with_origin(item: ResponseItem, wire_api: WireApi, origin: Origin) -> ResponseItem:
    """The item with an origin, if its own origin names only this wire."""
    if item.origin is None or item.origin.provider is not None:
        return item
    if item.origin.wire_api != wire_api:
        return item
    return msgspec.structs.replace(item, origin=origin)


class TargetStreams:
    """Opens the streams of a request's targets, one at a time, and translates their events."""

    def __init__(
        self,
        request: GatewayRequest,
        services: Services,
        watch: Watch,
    ) -> None:
        """Makes an object without any open stream.

        Args:
            request: request of the client.
            services: what the gateway's requests share.
            watch: records the course of the request.
        """
        self.request = request
        self.watch = watch
        self.model = ""
        """`provider:model` of the target that was tried last."""
        self.stream: ResponseStream | None = None
        """The stream of the target that was tried last."""
        self.body: Response | None = None
        """The response so far of a target that does not stream."""
        self.report: list[Change] = []
        """Changes to the request for that target, later also those to its response."""
        self._services = services
        self._stored: Mapping[int, Sequence[StoredResponse]] | None = None
        """Stored responses for this request, by turn; None before the first target is tried."""
        self._restored: Prompt | None = None
        """The prompt for all targets; None before the first target is tried."""
        self._recovered: list[Change] = []
        """Provider state that was taken out of it, because a target refused it."""
        self._translator: EventTranslator | None = None
        """Translates the events of that stream; None if they are sent unchanged."""

    @asynccontextmanager
    async def opened(
        self, slot: Slot, built: ResponseStream | None = None
    ) -> AsyncGenerator[Opened]:
        """Opens the stream of a target, and reads it up to its first output.

        Args:
            slot: at the target.
            built: the stream, where `build` was called already.
        """
        try:
            stream = built or await self.build(slot.target, is_last=slot.is_last)
        except StreamError as error:
            self.watch.failed(error.info)
            yield Opened([], failure=error.info)
            return
        async with AsyncExitStack() as stack:
            opened = await self._read_opening(stream, stack, slot.target)
            if opened.failure is not None and await self._recover(opened.failure):
                stream = await self.build(slot.target, is_last=slot.is_last)
                opened = await self._read_opening(stream, stack, slot.target)
            if opened.failure is None:
                slot.responded()
            else:
                self._note_failure(opened.failure)
            yield opened

    async def _recover(self, failure: ErrorInfo) -> bool:
        """Takes provider state out of the prompt; returns whether there was any that it refused."""
        refused = self.request.rule.recover and failure.kind == "invalid_history"
        if not refused or self._restored is None or self._recovered:
            return False
        self.watch.failed(failure)
        items = self._restored.items
        history = await self._services.workers.run(self.request.size, recover, items)
        self._restored = msgspec.structs.replace(self._restored, input=history)
        self._recovered = history.report
        return bool(history.report)

    async def _read_opening(
        self, stream: ResponseStream, stack: AsyncExitStack, target: RouteTarget
    ) -> Opened:
        """Enters a stream, which `stack` closes, and reads it up to its first output."""
        stack.push_async_callback(stream.aclose)  # also where the entry is cancelled
        seconds = target.to.first_output_seconds
        with anyio.move_on_after(seconds):
            await stream.__aenter__()
            batches = HeldBatches(stream.batches(), self._services.memory)
            stack.callback(batches.close)
            return await read_opening(batches)
        message = f"the model had no output within {seconds:g} s"
        return Opened([], failure=ErrorInfo("stalled", message, retryable=True))

    async def build(self, target: RouteTarget, *, is_last: bool = True) -> ResponseStream:
        """The stream of a target, whose request is built but not sent.

        Args:
            target: of the request.
            is_last: whether no other target can be tried, so that this one may be asked again.

        Raises:
            StreamError: the target cannot serve the request.
        """
        self.note_tried(target)
        request, workers = self.request, self._services.workers
        state = self._services.state
        if state is not None and self._stored is None:
            self._stored = await state.find(
                request.identity, request.prompt.items, workers, request.size
            )
        retry = self._retry_at(target, is_last=is_last)
        limits = _limits_at(target, is_last=is_last)
        stream = await workers.run(request.size, self._build, target, retry, limits)
        self.stream = stream
        self.report = [*self._recovered, *stream.request.report]
        self._translator = None
        # Responses of the first target are sent unchanged if it has the client's wire, because
        # `prompt_for` recognizes its items without envelopes.
        is_first_target = stream.request.origin == self.request.targets[0].resolved.origin
        if not is_first_target or stream.request.wire_api != self.request.wire_api:
            echoed = echoed_metadata(stream.request.wire_api)
            self._translator = EventTranslator(request.wire_api, request.custom_tools, echoed)
        return stream

    def note_tried(self, target: RouteTarget) -> None:
        """Records that the request is sent to a target."""
        self.model = f"{target.provider.name}:{target.resolved.model}"
        self.watch.tried(self.model, target.resolved.wire_api, target.base_url)

    def _note_failure(self, error: ErrorInfo) -> None:
        """Records the failure of the stream, with the id by which its provider can find it."""
        limits = self.rate_limits
        self.watch.failed(error, None if limits is None else limits.request_id)

    def note_body(self, response: Response) -> None:
        """Records a response that is not streamed; called again when more of it is known."""
        self.stream = None
        self.body = response

    @property
    def rate_limits(self) -> RateLimits | None:
        """Remaining rate limits at the target that was tried last, as far as it reported them."""
        if self.stream is None:
            return None
        return self.stream.rate_limits

    @property
    def response(self) -> Response | None:
        """The response so far of the target that was tried last; None if no request was sent to a
        target."""
        if self.stream is not None:
            return self.stream.response
        return self.body

    def _build(
        self, target: RouteTarget, retry: RetryPolicy, limits: dict[str, float]
    ) -> ResponseStream:
        client = self._services.client
        # Restored once for all targets.
        if self._restored is None:
            self._restored = restored_prompt(self.request, self._stored)
        return client.stream(
            prompt_for(self.request, self._restored, target),
            target.resolved.model,
            provider=target.provider,
            wire_api=target.resolved.wire_api,
            base_url=target.base_url,
            api_key=target.key,
            dialects=self.request.rule.dialects,
            errors="event",
            retry=retry,
            deadlines=msgspec.structs.replace(client.deadlines, **limits),
        )

    def _retry_at(self, target: RouteTarget, *, is_last: bool) -> RetryPolicy:
        """When a target is asked again: not where another one can be asked at once."""
        if not is_last:
            return NO_RETRY
        retry = self._services.retry
        if target.to.retries is None:
            return retry
        return msgspec.structs.replace(retry, retries=target.to.retries)

    async def store_state(self) -> None:
        """Stores the state of the complete response that the client's next request needs.

        Must be called before the client receives the end: it may then send the next request.
        """
        state = self._services.state
        if state is None or self.stream is None:
            return
        is_translated = self._translator is not None
        # Of another wire, nothing that its provider stores can be named by the client.
        if not is_translated and self.request.identity.name is not None:
            await state.note_ids(self.request.identity, brought_ids(self.stream.response))
        # If both wires are equal, a client keeps the provider's own fields; else they are lost.
        if not is_translated and self.request.wire_api not in FORGETFUL:
            return
        await state.store(
            self.request.identity,
            self.request.prompt.items,
            self.stream.response.items,
            only_signed=not is_translated,
        )

    def client_events(self, batch: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events for the client's encoder, with the model name that the client requested.

        If Claude Code receives another name, it takes it for another model, and omits its reasoning
        from the next request.
        """
        self.watch.received(batch)
        last = batch[-1]
        if isinstance(last, Failed):
            self._note_failure(last.error)
        requested = self.request.prompt.model
        if not self.model.endswith(f":{requested}"):
            batch = [_with_model(event, requested) for event in batch]
        if self._translator is None:
            return batch
        events: list[ResponseEvent] = []
        for event in batch:
            events += self._translator.feed(event)
        return events

    def report_translation(self) -> None:
        """Adds to the report the parts of the response that the client's wire cannot represent."""
        if self._translator is not None:
            self.report += self._translator.report

    def end(self, error: ErrorInfo | None) -> None:
        """Records the end of the request.

        Args:
            error: error that ended it; None if it succeeded.
        """
        response = self.response
        if response is not None:
            exchange = self.watch.exchange
            exchange.usage, exchange.is_usage_estimated = usage_so_far(response)
            exchange.stop_reason = response.stop_reason
        self.watch.ended(error, self.report)


def _with_model(event: ResponseEvent, model: str | None) -> ResponseEvent:
    """The event with another model name, if it has one."""
    if isinstance(event, (Created, Completed)):
        return msgspec.structs.replace(event, model=model)
    return event


def _limits_at(target: RouteTarget, *, is_last: bool) -> dict[str, float]:
    """The deadlines of a target's stream that are not those of the gateway's client."""
    limits: dict[str, float] = {}
    if target.to.headers_seconds is not None:
        limits["headers"] = target.to.headers_seconds
    elif not is_last:
        limits["headers"] = HEADERS_SECONDS
    if target.to.total_seconds is not None:
        limits["total"] = target.to.total_seconds
    return limits


def hide_missing_key(error: ErrorInfo) -> ErrorInfo:
    """The error for the client, which cannot set a key that is missing in the gateway."""
    if error.code != "no_key":
        return error
    message = "the gateway has no key for this model's provider: its log says more"
    return ErrorInfo("server_error", message, code="no_key")
