"""Reads a client's request: checks limits, decodes the body and finds the route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import anyio
import msgspec

from streamlib.asgi import Receive, Scope
from streamlib.gateway.clients.access import wire_of
from streamlib.gateway.clients.admission import Admission, LimitExceeded, admit, reserve
from streamlib.gateway.clients.identity import ClientIdentity, identity_of, tokens_of
from streamlib.gateway.clients.limits import ClientLimits
from streamlib.gateway.clients.named_clients import NamedClient, check_model, client_of
from streamlib.gateway.clients.stored_ids import named_ids
from streamlib.gateway.headers import limit_headers
from streamlib.gateway.paths import Endpoint, endpoint_of
from streamlib.gateway.requests.background import refuse_own_history
from streamlib.gateway.requests.body import BODY_ERRORS, BODY_SECONDS, read_body
from streamlib.gateway.targets.routes import RouteTable
from streamlib.gateway.targets.streams import GatewayRequest
from streamlib.gateway.watch.observer import AccessRefusal, Exchange, Observer, Watch
from streamlib.gateway.workers import Workers
from streamlib.providers.wire_specs import ANTHROPIC_BETA, WIRE_SPECS
from streamlib.recording.masked_bodies import SHORTEST
from streamlib.request.prompt import Prompt
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import encoder_options, request_settings
from streamlib.wires.responses.background import without_background
from streamlib.wires.routes import Route as RouteMatch
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.redaction import MASK, redact
from streamlib_parsers.stream_error import StreamError

CLIENT_WIRES: Final[frozenset[WireApi]] = frozenset(
    wire_api for wire_api, spec in WIRE_SPECS.items() if spec.gateway is not None
)
"""Wires that clients of the gateway may use."""

GEMINI_REQUEST: Final = "generateContentRequest"
"""Key of a `:countTokens` body that contains a complete request, not only contents."""


class Reading(Protocol):
    """Parts of the gateway that reading a request needs."""

    @property
    def table(self) -> RouteTable:
        """The current routes."""
        ...

    @property
    def limits(self) -> ClientLimits:
        """The counters for the limits of named clients."""
        ...

    @property
    def keeps_responses(self) -> bool:
        """Whether a response may outlive its request."""
        ...

    async def check_ids(self, identity: ClientIdentity, ids: Sequence[str]) -> None:
        """Refuses ids that a named client did not get."""
        ...


class RequestReader:
    """Reads the requests of a gateway."""

    def __init__(
        self, served: Reading, workers: Workers, body_seconds: float = BODY_SECONDS
    ) -> None:
        """Makes a reader.

        Args:
            served: the gateway.
            workers: decodes large requests.
            body_seconds: seconds in which a client must send its request.
        """
        self._served = served
        self._workers = workers
        self._body_seconds = body_seconds

    async def read(self, scope: Scope, receive: Receive, watch: Watch) -> GatewayRequest:
        """Reads a client's request, and takes it from the client's limits.

        Args:
            scope: ASGI scope of the request.
            receive: receives its ASGI messages.
            watch: records what is known of the request so far.

        Raises:
            StreamError: it cannot be read, no route matches its model, or a limit is reached.
        """
        sent = sent_path(scope)
        endpoint = endpoint_of(sent)
        if endpoint is None or endpoint.match.wire_api not in CLIENT_WIRES:
            raise _unknown_path(masked_path(scope, sent))
        watch.exchange.operation = endpoint.operation
        wire_api = endpoint.match.wire_api
        body = await read_body(scope, receive, seconds=self._body_seconds)
        size = len(body)
        if endpoint.operation == "count" and wire_api == "gemini":
            body = await self._workers.run(size, _whole_request, body)
        headers = beta_headers(scope)
        path = endpoint.path
        prompt = await self._workers.run(size, prompt_of, endpoint.match, body, path, headers)
        settings: JsonObject | None = None
        if endpoint.operation == "response":
            settings = await self._workers.run(size, request_settings, wire_api, body)
        model = prompt.model or ""
        note_route(watch, model)
        is_stream = _is_stream(endpoint, prompt)
        prompt, in_background = self._detached(endpoint, prompt)
        table, client = self._served.table, client_of(scope)
        check_model(client, model)
        rule = table.rule(model)
        note_route(watch, model, rule.model)
        targets = table.targets(rule, model)
        if client is not None:
            ids = await self._workers.run(size, named_ids, body, client)
            await self._served.check_ids(identity_of(scope), ids)
        # The last step that may wait: after it nothing can fail before the admission is settled.
        admission = await self._admission(endpoint, client, prompt, size)
        return GatewayRequest(
            wire_api=wire_api,
            operation=endpoint.operation,
            prompt=prompt,
            size=size,
            rule=rule,
            targets=targets,
            is_stream=is_stream,
            request_id=watch.exchange.request_id,
            # Google's REST clients receive an array by default; its SDKs send `alt=sse`.
            is_json_array=wire_api == "gemini" and b"alt=sse" not in scope["query_string"],
            settings=settings,
            in_background=in_background,
            encoder_options=encoder_options(wire_api, user_agent(scope)),
            identity=identity_of(scope),
            admission=admission,
        )

    def _detached(self, endpoint: Endpoint, prompt: Prompt) -> tuple[Prompt, bool]:
        """The prompt, and whether its response outlives the request."""
        if endpoint.operation != "response" or endpoint.match.wire_api != "responses":
            return prompt, False
        if not self._served.keeps_responses:
            return prompt, False
        refuse_own_history(prompt.extra)
        detached = without_background(prompt)
        if detached is None:
            return prompt, False
        return detached, True

    async def _admission(
        self, endpoint: Endpoint, client: NamedClient | None, prompt: Prompt, size: int
    ) -> Admission | None:
        limits = self._served.limits
        if endpoint.operation != "count":
            return await admit(client, limits, prompt, self._workers, size)
        # A count may be sent to the provider: it is taken as a request without tokens.
        if client is None or not client.is_limited:
            return None
        return await reserve(client, limits, 0)


def _is_stream(endpoint: Endpoint, prompt: Prompt) -> bool:
    if endpoint.operation != "response":
        return False
    if endpoint.match.stream is None:
        return bool(prompt.stream)
    return endpoint.match.stream


def _whole_request(body: bytes) -> bytes:
    """The complete request whose tokens a Gemini client wants to count."""
    try:
        value = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return body  # the decoder reports the error
    if isinstance(value, dict) and isinstance(value.get(GEMINI_REQUEST), dict):
        return msgspec.json.encode(value[GEMINI_REQUEST])
    return body


def _unknown_path(path: str) -> StreamError:
    message = f"no API has the path {path}"
    # The client's base URL ends in /v1, and the client itself adds /v1 again.
    if path.startswith("/v1/v1/"):
        message += ": the base URL that this client takes has no /v1"
    return StreamError(ErrorInfo("not_found", message, code="path"))


def sent_path(scope: Scope) -> str:
    """The path as it was sent: in a decoded one, a slash in a model's name looks like any other."""
    raw: bytes | None = scope.get("raw_path")
    if raw:
        return raw.decode("ascii", "replace").partition("?")[0]
    path: str = scope["path"]
    return path


def beta_headers(scope: Scope) -> dict[str, str]:
    """The only header of a client that may go upstream: the betas of Claude, as one list."""
    values: list[str] = []
    for name, value in scope["headers"]:
        if name.lower() == ANTHROPIC_BETA.encode():
            values.append(value.decode("latin-1"))
    if not values:
        return {}
    return {ANTHROPIC_BETA: ",".join(values)}


def user_agent(scope: Scope) -> str:
    """What the client says that it is; "" if it says nothing (ASGI scope)."""
    for name, value in scope["headers"]:
        if name == b"user-agent":
            return str(value.decode("latin-1"))
    return ""


def prompt_of(match: RouteMatch, body: bytes, path: str, headers: Mapping[str, str]) -> Prompt:
    """The prompt of a request, with its model."""
    prompt = parse_request(match.wire_api, body, path=path, headers=headers)
    # Gemini's clients put model and streaming into the path, all others into the body.
    return msgspec.structs.replace(prompt, model=prompt.model or match.model or "")


def closing_headers(scope: Scope, error: ErrorInfo) -> dict[str, str]:
    """Headers that close the connection of a client whose body was refused before its end."""
    # What is left of it would be read as the next request, or be received for ever.
    if error.code in BODY_ERRORS and scope["http_version"].startswith("1"):
        return {"connection": "close"}
    return {}


def refusal_headers(scope: Scope, wire_api: WireApi, error: StreamError) -> dict[str, str]:
    """Headers of a request that no target was asked to serve."""
    headers = closing_headers(scope, error.info)
    if isinstance(error, LimitExceeded):
        headers.update(limit_headers(wire_api, error.limits, datetime.now(UTC)))
    return headers


# --- what observers are told ---


TRACE_HEADERS: Final = (b"traceparent", b"tracestate")
"""Headers of W3C Trace Context, by which the gateway's span becomes a child of the client's."""

PATH_CHARACTERS: Final = 200
"""Characters of a path that are shown."""


def watch_of(scope: Scope, request_id: str, observers: Sequence[Observer]) -> Watch:
    """Watches a request that begins to arrive (ASGI scope)."""
    trace_headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in TRACE_HEADERS:
            trace_headers[name.decode()] = value.decode("latin-1")
    exchange = Exchange(
        request_id=request_id,
        wire_api=wire_of(scope),
        client=identity_of(scope).name,
        trace_headers=trace_headers,
    )
    return Watch(exchange, observers)


def masked_path(scope: Scope, path: str) -> str:
    """The path of a request (ASGI scope), limited in length; keys and sent tokens are masked."""
    # A client may have put its key into the path too.
    for token in tokens_of(scope):
        if len(token) >= SHORTEST:
            path = path.replace(token, MASK)
    return redact(path[:PATH_CHARACTERS])


def refusal_of(scope: Scope, error: ErrorInfo, status: int) -> AccessRefusal:
    """What is known of a request that access control refused (ASGI scope)."""
    client = scope.get("client")
    return AccessRefusal(
        reason=error.code or error.kind,
        error=error,
        status=status,
        method=scope["method"],
        path=masked_path(scope, scope["path"]),
        address=client[0] if client else None,
    )


def note_route(watch: Watch, requested: str, route: str | None = None) -> None:
    """What is known of a request while it is read: it may be refused before it is complete.

    Args:
        watch: of the request.
        requested: the model that the client requested.
        route: the pattern of the route; None: not found yet.
    """
    watch.exchange.requested = requested
    watch.exchange.route = route


def note_request(watch: Watch, request: GatewayRequest) -> None:
    """The request was read."""
    exchange = watch.exchange
    exchange.wire_api = request.wire_api
    note_route(watch, request.prompt.model or "", request.rule.model)
    exchange.is_stream = request.is_stream
    exchange.in_background = request.in_background
    watch.started()


def end_unread(watch: Watch, error: BaseException) -> None:
    """The request ended before it was read: its client left, or the gateway failed."""
    if isinstance(error, anyio.get_cancelled_exc_class() | OSError):
        info = ErrorInfo("cancelled", "the client disconnected")
    else:
        info = ErrorInfo("server_error", f"the gateway failed: {type(error).__name__}")
        watch.exchange.status = 500
    end_refused(watch, info)


def end_refused(watch: Watch, error: ErrorInfo) -> None:
    """The request ended with an error of the gateway's own, unless a target was tried."""
    watch.exchange.is_refused = watch.exchange.targets_tried == 0
    watch.ended(error, ())
