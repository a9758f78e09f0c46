"""Selects the response to a request: a recording, a scripted turn, an echo, or a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.prompt import Prompt
from streamlib.testing.provider.background import LoopbackBackground, runs_in_background
from streamlib.testing.provider.behaviour import (
    JSON,
    Behaviour,
    ReceivedRequest,
    RequestHook,
    ServedResponse,
    error_response,
    split_body,
)
from streamlib.testing.provider.responses import scripted_response
from streamlib.testing.provider.turns import Turn, http_error
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import encode_body, encoder, encoder_options, request_settings
from streamlib.wires.routes import Route, stored_route
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import JsonObject, ResponseItem, WireApi
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.testing.provider.strict import StrictProvider

Responder: TypeAlias = Callable[[Prompt, Any], Sequence[ResponseEvent]]
"""(prompt, wire API) -> the events of the response."""

LOOPBACK_TIME: Final = 1_735_689_600
"""Unix seconds of every response, so that equal requests have equal responses."""


class Loopback:
    """State that all connections share: the behaviour, and which recording or turn is next.

    Attributes:
        behaviour: settings of all requests, before `failing` is applied.
    """

    def __init__(
        self, behaviour: Behaviour, respond: Responder, on_request: RequestHook | None = None
    ) -> None:
        self.behaviour = behaviour
        self._on_request = on_request
        """Called with each request of a wire."""
        self._respond = respond
        """Makes the events of a response if there is no recording."""
        self._background = LoopbackBackground()
        """Responses that run in the background, by their id."""
        self._requests = 0
        """Requests of a wire so far; `Behaviour.failing` counts these."""
        self._recordings_sent = 0
        """Number of recordings that were sent; requests that must fail do not count."""
        self._turns_sent = 0
        """Number of scripted turns that were sent."""
        self._stored = StoredResponses()
        """Responses that a later request may continue by their id."""
        self._strict: StrictProvider | None = None
        """Rules and signatures; None if every request is accepted."""
        if behaviour.strict:
            from streamlib.testing.provider.strict import StrictProvider  # the rules of every wire

            self._strict = StrictProvider()

    def next_behaviour(self) -> Behaviour:
        """Counts a request, and returns the behaviour for it."""
        self._requests += 1
        behaviour = self.behaviour
        if behaviour.failing is None:
            return behaviour
        is_error = behaviour.status >= 400
        if self._requests <= behaviour.failing:
            recordings = behaviour.recordings[:1]
            if is_error:
                recordings = ()  # an HTTP error has a body of the wire
            return msgspec.structs.replace(behaviour, recordings=recordings)
        status = 200 if is_error else behaviour.status
        return msgspec.structs.replace(behaviour, fault=None, status=status)

    def record(self, request: ReceivedRequest) -> None:
        """Hands a request of a wire to `on_request`."""
        if self._on_request is not None:
            self._on_request(request)

    def response(
        self,
        matched: Route | None,
        body: bytes,
        headers: dict[str, str],
        path: str,
        method: str = "POST",
    ) -> ServedResponse:
        """The response to a request; `matched` is None for a path of no wire."""
        stored = stored_route(path)
        if stored is not None:
            return self._background.respond(stored, method, path, self.next_behaviour())
        if matched is None and self._strict is not None:
            cached = self._strict.cached(method, path, body)
            if cached is not None:
                return ServedResponse(cached.status, JSON, [cached.body], Behaviour())
        if matched is None:
            page = side_page(method, path, headers)
            if page is not None:
                return page
            not_found = b'{"error":{"message":"no such path","type":"not_found_error"}}'
            return ServedResponse(404, JSON, [not_found], Behaviour())
        wire_api = matched.wire_api
        if self._strict is not None:
            refused = self._strict.check(wire_api, body, headers, matched.model)
            if refused is not None:
                behaviour = Behaviour(headers=refused.headers)
                return ServedResponse(refused.status, JSON, [refused.body], behaviour)
        try:
            prompt = parse_request(wire_api, body, headers=headers, path=path)
        except StreamError as error:
            return error_response(wire_api, error.info, 400, Behaviour())
        options = encoder_options(wire_api, headers.get("user-agent", ""))
        if runs_in_background(wire_api, body):
            streams = prompt.stream is True
            prompt = msgspec.structs.replace(prompt, stream=True)
            served = self._served(matched, prompt, body, options)
            return self._background.start(wire_api, served, streams=streams)
        return self._served(matched, prompt, body, options)

    def _served(
        self, matched: Route, prompt: Prompt, body: bytes, options: JsonObject
    ) -> ServedResponse:
        """The response to a prompt: the next recording, error or turn, or an echo."""
        wire_api = matched.wire_api
        behaviour = self.next_behaviour()
        if behaviour.recordings:
            media_type = encoder(wire_api).media_type
            body = self._next_recording(behaviour)
            chunks = split_body(wire_api, body, behaviour.chunk)
            return ServedResponse(behaviour.status, media_type, chunks, behaviour)
        status = behaviour.status
        if status >= 400:
            kind = classify(status, b"").kind
            error_info = ErrorInfo(kind, "the loopback provider was configured to fail")
            return error_response(wire_api, error_info, status, behaviour)
        prompt = msgspec.structs.replace(prompt, model=prompt.model or matched.model)
        try:
            prompt = self._stored.continued(wire_api, prompt)
        except StreamError as error:
            return error_response(wire_api, error.info, 400, behaviour)
        if behaviour.script:
            return self._scripted(behaviour, matched, prompt, body, options)
        events = self._respond(prompt, wire_api)
        return self._encoded(behaviour, matched, prompt, events, body, options)

    def _scripted(
        self,
        behaviour: Behaviour,
        matched: Route,
        prompt: Prompt,
        body: bytes,
        client_options: JsonObject,
    ) -> ServedResponse:
        """The next turn of the script."""
        turns = behaviour.script
        number = self._turns_sent % len(turns)
        if self._turns_sent >= len(turns) and not behaviour.repeat_turns:
            problem = f"it has {len(turns)}, and this request is one more"
            return _script_error(matched.wire_api, problem)
        if not self._is_failing:
            self._turns_sent += 1
        turn = turns[number]
        behaviour = _behaviour_of(turn, behaviour)
        try:
            if isinstance(turn.content, ErrorInfo):
                served = http_error(matched.wire_api, turn.content)
                return error_response(matched.wire_api, served, served.status or 500, behaviour)
            events = scripted_response(turn, prompt, matched.wire_api)
        except ValueError as error:
            return _script_error(matched.wire_api, f"turns[{number}]: {error}")
        return self._encoded(behaviour, matched, prompt, events, body, client_options)

    def _encoded(
        self,
        behaviour: Behaviour,
        matched: Route,
        prompt: Prompt,
        events: Sequence[ResponseEvent],
        body: bytes,
        client_options: JsonObject,
    ) -> ServedResponse:
        """A response of these events: a stream or a complete body."""
        wire_api = matched.wire_api
        if self._strict is not None:
            events = self._strict.signed(wire_api, events, body)
        response = accumulate(events)
        self._stored.keep(wire_api, prompt, response)
        options: dict[str, Any] = {}
        settings = request_settings(wire_api, body, is_stored=True)
        if settings is not None:
            options = {"settings": settings, "created_at": LOOPBACK_TIME, "clock": _loopback_clock}
        # If the path decides about streaming (Gemini, Bedrock), the body has no field for it.
        streams = prompt.stream if matched.stream is None else matched.stream
        if not streams:
            complete = encode_body(wire_api, response, model=prompt.model, **options)
            return ServedResponse(200, JSON, [complete], behaviour)
        encode = encoder(wire_api, model=prompt.model, **options, **client_options)
        encoded = [encode.feed(event) for event in events]
        encoded.append(encode.close())
        chunks: Sequence[bytes] = [chunk for chunk in encoded if chunk]
        if behaviour.chunk:
            chunks = split_body(wire_api, b"".join(encoded), behaviour.chunk)
        return ServedResponse(200, encode.media_type, chunks, behaviour)

    @property
    def _is_failing(self) -> bool:
        """Whether `Behaviour.failing` includes the current request."""
        failing = self.behaviour.failing
        return failing is not None and self._requests <= failing

    def _next_recording(self, behaviour: Behaviour) -> bytes:
        """The next recording. A request that must fail does not use it up."""
        recordings = behaviour.recordings
        recording = recordings[self._recordings_sent % len(recordings)]
        if not self._is_failing:
            self._recordings_sent += 1
        return recording


def _loopback_clock() -> int:
    return LOOPBACK_TIME


def _behaviour_of(turn: Turn, behaviour: Behaviour) -> Behaviour:
    """The behaviour with the settings of a turn in place of its own."""
    own: dict[str, Any] = {}
    for name in ("pace", "fault", "at", "chunk"):
        if getattr(turn, name) is not None:
            own[name] = getattr(turn, name)
    own["headers"] = {**behaviour.headers, **turn.headers}
    return msgspec.structs.replace(behaviour, **own)


def _script_error(wire_api: WireApi, problem: str) -> ServedResponse:
    """The error of a mistake in the script; its kind is one that no client retries."""
    error = ErrorInfo("invalid_request", f"the script of turns is wrong: {problem}")
    return error_response(wire_api, error, 400, Behaviour())


# --- pages outside of the wires ---


MODEL: Final = "echo"
"""The only model that the lists name; requests may name any other."""

MODEL_LISTS: Final[dict[str, JsonObject]] = {
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "type": "model"}]},
    "/v1beta/models": {"models": [{"name": f"models/{MODEL}"}]},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL}]},
}
"""Path -> list of models in the format of OpenAI and Anthropic, of Gemini, or of Ollama."""

FRONT_PAGE: Final = """\
The loopback provider of streamlib: it needs no key, and repeats what it receives.
Wires: {wires}.
Try it:
  streamlib chat Hello --model loopback:{model} --base-url {url}
  curl {url}/v1/chat/completions -d '{{"messages": [{{"role": "user", "content": "Hello"}}]}}'
"""


def side_page(method: str, path: str, headers: Mapping[str, str]) -> ServedResponse | None:
    """The response to a request outside of the wires; None if no page has this path.

    Args:
        method: HTTP method.
        path: path and query of the request.
        headers: names in lower case; `host` gives the address that the page shows.
    """
    if method not in ("GET", "HEAD"):
        return None
    path = path.partition("?")[0]
    if path == "/":
        url = f"http://{headers.get('host', '127.0.0.1')}"
        text = FRONT_PAGE.format(wires=", ".join(WIRE_SPECS), model=MODEL, url=url)
        return ServedResponse(200, "text/plain; charset=utf-8", [text.encode()], Behaviour())
    if path in MODEL_LISTS:
        return ServedResponse(200, JSON, [msgspec.json.encode(MODEL_LISTS[path])], Behaviour())
    return None


# --- responses that a request may continue by their id ---


LONGEST_MEMORY: Final = 1_000
"""Limit of stored responses; above it the oldest is deleted."""


class StoredResponses:
    """The newest responses, for wires whose requests may name one (`WireSpec.stored_history`)."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[ResponseItem, ...]] = {}
        """Response id -> the items of its conversation: its input, then its output."""

    def continued(self, wire_api: WireApi, prompt: Prompt) -> Prompt:
        """The prompt, preceded by the conversation that it continues.

        Raises:
            StreamError: `not_found`: no response with this id is stored.
        """
        extra = prompt.extra or {}
        for name in _names_of_responses(wire_api):
            response_id = extra.get(name)
            if not response_id:
                continue
            before = self._items.get(str(response_id))
            if before is None:
                raise StreamError(_not_found(name, str(response_id)))
            return msgspec.structs.replace(prompt, input=(*before, *prompt.items))
        return prompt

    def keep(self, wire_api: WireApi, prompt: Prompt, response: Response) -> None:
        """Stores a response, unless its request forbids that or the response failed.

        Args:
            wire_api: the wire of the request.
            prompt: what `continued` returned for the request.
            response: the complete response, with the id that the client receives.
        """
        is_wanted = (prompt.extra or {}).get("store") is not False
        if not is_wanted or not _names_of_responses(wire_api):
            return
        if response.response_id is None or response.error is not None:
            return
        self._items.pop(response.response_id, None)
        self._items[response.response_id] = (*prompt.items, *response.items)
        if len(self._items) > LONGEST_MEMORY:
            del self._items[next(iter(self._items))]


def _names_of_responses(wire_api: WireApi) -> list[str]:
    """Fields that name a response: others name a container or a cache, which is no response."""
    names = WIRE_SPECS[wire_api].stored_history
    return [name for name in names if name.startswith("previous_")]


def _not_found(name: str, response_id: str) -> ErrorInfo:
    """The error for an id of no stored response (``previous_response_not_found``)."""
    message = f"Previous response with id {response_id[:80]!r} not found."
    code = f"{name.removesuffix('_id')}_not_found"
    detail = {"type": "invalid_request_error", "code": code, "message": message, "param": name}
    return ErrorInfo("not_found", message, code=code, detail=detail)
