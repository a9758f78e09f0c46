"""The streams of a request's targets, and their events for the encoder of the client's wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.client import Client
from streamlib.client.stream import RETRY_SAFE_EVENTS, ResponseStream
from streamlib.client.stream_timing import TOKEN_EVENTS
from streamlib.errors import StreamError
from streamlib.gateway.admission import Admission
from streamlib.gateway.client_state import ClientState
from streamlib.gateway.envelopes import hashed_origins
from streamlib.gateway.identity import ANONYMOUS, ClientIdentity
from streamlib.gateway.observer import Watch
from streamlib.gateway.operations import Operation
from streamlib.gateway.request_body import Workers
from streamlib.gateway.restore import StoredResponse, restore_history
from streamlib.gateway.routes import RouteRule, RouteTarget, apply_overrides, apply_rule_limits
from streamlib.gateway.token_count import usage_so_far
from streamlib.gateway.translate import EventTranslator, QualifiedName
from streamlib.providers.wire_specs import gateway_spec
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import Completed, Created, Failed, ResponseEvent
from streamlib_parsers.items import JsonObject, Origin, ResponseItem, WireApi
from streamlib_parsers.response import Response

REQUEST_FAULTS: Final[frozenset[ErrorKind]] = frozenset(
    {"invalid_request", "invalid_history", "request_too_large", "content_filter", "cancelled"}
)
"""Failures that another target would not prevent."""


FORGETFUL: Final[frozenset[WireApi]] = frozenset({"chat", "gemini"})
"""Wires whose clients lose state of their own wire: ``reasoning_details`` is an extension that most
of Chat's do not know, and Gemini CLI takes up a session without signatures."""


class GatewayRequest(Struct, frozen=True, kw_only=True):
    """A decoded request of a client.

    Attributes:
        wire_api: the client's wire.
        prompt: with the model that the client requested.
        operation: what is done with it.
        rule: the route.
        hops: the targets of the route, in the order in which they are tried.
        is_stream: the client wants a stream, not one body.
        request_id: names the request in the log and in the response headers.
        is_json_array: the stream is a JSON array (Gemini without `alt=sse`).
        in_background: the response outlives the request, in a log.
        size: bytes of the request body.
        settings: those that the response repeats; None on wires whose responses repeat none.
        encoder_options: what the client's SDK needs of a stream.
        identity: of the client, for what the gateway stores for it.
        admission: what it took from the limits of its client; None: that has none.
    """

    wire_api: WireApi
    prompt: Prompt
    rule: RouteRule
    hops: Sequence[RouteTarget]
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
        """Namespaces and names of the free-form tools."""
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

    Items get their origins back. An item with an envelope gets the origin in it. Any other is taken
    to be the first target's, if that target has the client's wire: its responses are sent
    unchanged, without envelopes.

    Args:
        request: the client's.
        stored: what the gateway has stored of responses in its history, by turn.
    """
    wire_api = request.wire_api
    # All of them: after a fallback the history has items of several.
    origins = [hop.target.origin for hop in request.hops]
    items = restore_history(request.prompt.items, hashed_origins(origins), stored)
    if origins[0].wire_api == wire_api:
        items = [_with_origin(item, wire_api, origins[0]) for item in items]
    prompt = msgspec.structs.replace(request.prompt, input=tuple(items), model=None, stream=None)
    return apply_rule_limits(prompt, request.rule)


def prompt_for(request: GatewayRequest, restored: Prompt, hop: RouteTarget) -> Prompt:
    """The prompt for one target.

    Args:
        request: the client's.
        restored: what `restored_prompt` returned for it.
        hop: the target.

    Raises:
        StreamError: the target cannot serve the request.
    """
    if hop.target.wire_api != request.wire_api:
        _refuse_stored_state(request)
    prompt = restored
    # Betas are Anthropic's own: whoever else has the wire refuses them, or learns of them.
    if not takes_betas(hop):
        prompt = msgspec.structs.replace(prompt, headers={})
    return apply_overrides(prompt, hop)


def takes_betas(hop: RouteTarget) -> bool:
    """Whether a target gets the `anthropic-beta` of a client."""
    return hop.provider.name == "anthropic" and hop.target.wire_api == "messages"


def _refuse_stored_state(request: GatewayRequest) -> None:
    """Refuses fields that name what the client's own provider stores: another has no such thing."""
    extra = request.prompt.extra or {}
    for name in gateway_spec(request.wire_api).stateful_fields:
        if extra.get(name):
            message = (
                f"{name} names state that only {request.wire_api} providers store: "
                "send the history itself"
            )
            raise StreamError(ErrorInfo("invalid_request", message, code=name))


def _with_origin(item: ResponseItem, wire_api: WireApi, origin: Origin) -> ResponseItem:
    """The item with an origin, if the decoder knew no more than its wire."""
    if item.origin is None or item.origin.provider is not None:
        return item
    if item.origin.wire_api != wire_api:
        return item
    return msgspec.structs.replace(item, origin=origin)


class TargetStreams:
    """The streams of a request's targets: one at a time is opened, and its events translated."""

    def __init__(
        self,
        request: GatewayRequest,
        client: Client,
        workers: Workers,
        watch: Watch,
        state: ClientState | None = None,
    ) -> None:
        """Prepares the streams; none is opened.

        Args:
            request: the client's.
            client: sends the requests.
            workers: builds large requests.
            watch: notes how the request fares.
            state: what the gateway stores for its clients; None: nothing.
        """
        self.request = request
        self.watch = watch
        self.model = ""
        """`provider:model` of the target that was tried last."""
        self.stream: ResponseStream | None = None
        """The stream of the target that was tried last."""
        self.body: Response | None = None
        """What is known of a target's response that was no stream."""
        self.report: list[Change] = []
        """Changes to the request for that target, later those to its response too."""
        self._client = client
        self._workers = workers
        self._state = state
        """What the gateway stores for its clients; None: nothing."""
        self._stored: Mapping[int, Sequence[StoredResponse]] | None = None
        """What it has for this request, once the first target is tried."""
        self._restored: Prompt | None = None
        """The prompt for all targets, once the first is tried."""
        self._translator: EventTranslator | None = None
        """Translates that stream's events; None where they are sent as they are."""

    async def open(self, hop: RouteTarget) -> ResponseStream:
        """The stream of a target, with its request built and not sent.

        Raises:
            StreamError: the target cannot serve the request.
        """
        self.note_tried(hop)
        if self._state is not None and self._stored is None:
            self._stored = await self._state.find(
                self.request.identity, self.request.prompt.items, self._workers, self.request.size
            )
        stream = await self._workers.run(self.request.size, self._build, hop)
        self.stream = stream
        self.report = list(stream.request.report)
        self._translator = None
        # The first target on the client's own wire is sent unchanged: `prompt_for` recognises its
        # items without envelopes.
        is_first_target = stream.request.origin == self.request.hops[0].target.origin
        if not is_first_target or stream.request.wire_api != self.request.wire_api:
            self._translator = EventTranslator(self.request.wire_api, self.request.custom_tools)
        return stream

    def note_tried(self, hop: RouteTarget) -> None:
        """The request goes to a target."""
        self.model = f"{hop.provider.name}:{hop.target.model}"
        self.watch.tried(self.model, hop.target.wire_api, hop.base_url)

    def note_body(self, response: Response) -> None:
        """A target that does not stream was asked; called again when more is known of it."""
        self.stream = None
        self.body = response

    @property
    def response(self) -> Response | None:
        """The response of the target that was tried last, as far as it came; None: none was sent
        a request."""
        if self.stream is not None:
            return self.stream.response
        return self.body

    def _build(self, hop: RouteTarget) -> ResponseStream:
        # Once for all targets.
        if self._restored is None:
            self._restored = restored_prompt(self.request, self._stored)
        return self._client.stream(
            prompt_for(self.request, self._restored, hop),
            hop.target.model,
            provider=hop.provider,
            wire_api=hop.target.wire_api,
            base_url=hop.base_url,
            api_key=hop.key,
            dialects=self.request.rule.dialects,
            errors="event",
        )

    async def store_state(self) -> None:
        """Stores what the next request of the client needs of the complete response.

        To be called before the client learns of its end: it may ask at once.
        """
        if self._state is None or self.stream is None:
            return
        is_translated = self._translator is not None
        # Between equal wires a client has the provider's own fields, which those of two lose.
        if not is_translated and self.request.wire_api not in FORGETFUL:
            return
        await self._state.store(
            self.request.identity,
            self.request.prompt.items,
            self.stream.response.items,
            only_signed=not is_translated,
        )

    def client_events(self, batch: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events for the client's encoder, with the model that the client requested.

        Claude Code takes another name for another model, and leaves that one's reasoning out of its
        next request.
        """
        self.watch.received(batch)
        last = batch[-1]
        if isinstance(last, Failed):
            self.watch.failed(last.error)
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
        """Adds to the report what the client's wire could not represent of the response."""
        if self._translator is not None:
            self.report += self._translator.report

    def end(self, error: ErrorInfo | None) -> None:
        """The request ended.

        Args:
            error: what ended it, unless it succeeded.
        """
        response = self.response
        if response is not None:
            exchange = self.watch.exchange
            exchange.usage, exchange.is_usage_estimated = usage_so_far(response)
            exchange.stop_reason = response.stop_reason
        self.watch.ended(error, self.report)


async def until_first_output(
    batches: AsyncIterator[list[ResponseEvent]],
) -> list[ResponseEvent]:
    """The events up to the first that belongs to a response, or up to its failure."""
    events: list[ResponseEvent] = []
    async for batch in batches:
        events += batch
        for event in batch:
            if type(event) not in RETRY_SAFE_EVENTS or isinstance(event, Failed):
                return events
    return events


def failure_before_output(first: list[ResponseEvent]) -> ErrorInfo | None:
    """The failure of a response without output, whose target may be replaced by another.

    Args:
        first: what `until_first_output` returned.
    """
    last = first[-1]
    if not isinstance(last, Failed) or any(type(event) in TOKEN_EVENTS for event in first):
        return None
    return last.error


def _with_model(event: ResponseEvent, model: str | None) -> ResponseEvent:
    """The event with another model, if it names one."""
    if isinstance(event, (Created, Completed)):
        return msgspec.structs.replace(event, model=model)
    return event


def hide_missing_key(error: ErrorInfo) -> ErrorInfo:
    """The error for the client, which cannot set a key that the gateway lacks."""
    if error.code != "no_key":
        return error
    message = "the gateway has no key for this model's provider: its log says more"
    return ErrorInfo("server_error", message, code="no_key")
