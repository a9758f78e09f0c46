"""Responses over WebSocket, as the loopback provider serves them.

Each `response.create` gets the same response as a request over HTTP, from the same turns,
recordings and rules; its events are sent one a message, with the name of the lane. The newest
response of each lane, and each stored one, can be continued. A response can be steered while it
runs: it continues to its end, and then another response follows by itself.

Faults: `truncate` closes the connection cleanly in the middle, `disconnect` resets it, `malformed`
sends a message that is not JSON, and `stall` sends nothing more on that lane.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Final

import anyio
import h11
import msgspec
from anyio.abc import SocketStream, TaskGroup

from streamlib.testing.frames import unframed
from streamlib.testing.provider.behaviour import ReceivedRequest, ServedResponse
from streamlib.testing.provider.connections import reset_on_close
from streamlib.testing.provider.provider import Loopback
from streamlib.transport.websocket import (
    SILENT,
    SocketClosed,
    WebSocket,
    close_error,
    load_websockets,
)
from streamlib.wires.faults import MALFORMED, Fault, fault_index
from streamlib.wires.routes import Route, route
from streamlib_parsers.items import JsonObject
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.wires.responses.lanes import LANE_NAME, NOT_FOUND

LANES: Final = 32
"""Limit of lanes on one connection."""

IN_FLIGHT: Final = 16
"""Limit of responses that run at once; others wait."""

CALLS_TO_OUTPUTS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Type of a call in a response -> type of the output that it needs."""


async def serve_websocket(
    provider: Loopback, stream: SocketStream, request: h11.Request, early: bytes
) -> None:
    """Serves one WebSocket until either side closes it.

    Args:
        provider: makes the responses.
        stream: the connection.
        request: the opening handshake.
        early: bytes that were received after the handshake.
    """
    path = request.target.decode("ascii", "replace")
    matched = route(path)
    if matched is None or matched.wire_api != "responses":
        await stream.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        return
    try:
        load_websockets()
    except StreamError:
        # The response of a server without WebSocket; the client then uses HTTP.
        await stream.send(b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n")
        return
    headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
    web_socket = await _accept(stream, path, headers)
    if web_socket is not None:
        session = _Session(provider, web_socket, stream, matched, path, headers)
        await session.run(early)


async def _accept(stream: SocketStream, path: str, headers: Mapping[str, str]) -> WebSocket | None:
    """Accepts the handshake; returns the WebSocket, or None if it is not valid."""
    server = importlib.import_module("websockets.server")
    http11 = importlib.import_module("websockets.http11")
    structures = importlib.import_module("websockets.datastructures")
    protocol = server.ServerProtocol(max_size=LIMITS.event_bytes, logger=SILENT)
    handshake = http11.Request(path, structures.Headers(headers))
    # The parser of websockets expects the request first, which h11 has already read.
    protocol.receive_data(handshake.serialize())
    response = protocol.accept(protocol.events_received()[0])
    if response.status_code == 101:
        response.headers["request-id"] = "req_loopback"
    protocol.send_response(response)
    await stream.send(b"".join(protocol.data_to_send()))
    if response.status_code != 101:
        return None
    return WebSocket(stream, protocol, [], LIMITS.event_bytes)


class _SocketResponse:
    """A response that runs or has ended, as steering needs it.

    Attributes:
        lane: name of its lane.
        ended: whether its last event was sent.
        sent: number of events sent so far.
        steering: accepted inputs that were not used yet, with their ids.
    """

    def __init__(self, lane: str | None) -> None:
        self.lane = lane
        self.ended = False
        self.sent = 0
        self.steering: list[tuple[str, list[Any]]] = []


class _Lane:
    """The requests of a lane, one after the other.

    Attributes:
        requests: messages that wait for their turn.
        added: set when a message was added.
        newest: id of its newest response, which can be continued even if it was not stored.
    """

    def __init__(self) -> None:
        self.requests: deque[JsonObject] = deque()
        self.added = anyio.Event()
        self.newest: str | None = None


class _Session:
    """One connection: its lanes, and the responses that can be continued."""

    def __init__(
        self,
        provider: Loopback,
        web_socket: WebSocket,
        stream: SocketStream,
        matched: Route,
        path: str,
        headers: dict[str, str],
    ) -> None:
        self._provider = provider
        self._socket = web_socket
        self._stream = stream
        self._matched = matched
        self._path = path
        self._headers = headers
        self._lanes: dict[str | None, _Lane] = {}
        """`stream_id` -> lane."""
        self._running = anyio.CapacityLimiter(IN_FLIGHT)
        """Acquired by each response that runs."""
        self._memory: dict[str, list[Any]] = {}
        """Response id -> its complete input and output, for responses that can be continued."""
        self._stored: set[str] = set()
        """Ids of stored responses, which stay in `_memory`."""
        self._responses: dict[str, _SocketResponse] = {}
        """Response id -> response, for all responses of the connection."""
        self._steers = 0
        """Number of steering messages so far, for their ids."""

    async def run(self, early: bytes) -> None:
        """Reads requests; each lane has a task that responds to them."""
        async with anyio.create_task_group() as group:
            try:
                data = early
                while True:
                    for message in self._socket.feed(data):
                        await self._receive(message, group)
                    if self._socket.has_output:
                        await self._socket.flush()
                    if self._socket.closed is not None:
                        break
                    data = await self._socket.read()
            except SocketClosed:
                pass
            group.cancel_scope.cancel()

    async def _receive(self, message: bytes, group: TaskGroup) -> None:
        try:
            value: JsonObject = msgspec.json.decode(message, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            value = {}
        kind = value.get("type")
        field = _wrong_field(value)
        if field is not None:
            await self._refuse(None, "invalid_type", f"{field} has another type", param=field)
        elif kind == "response.create":
            await self._create(value, group)
        elif kind == "response.steer":
            await self._steer(value)
        else:
            await self._refuse(None, "invalid_event", f"no such event: {kind}")

    async def _create(self, value: JsonObject, group: TaskGroup) -> None:
        """Adds a request to its lane."""
        name = value.pop("stream_id", None)
        if name is not None and not (isinstance(name, str) and LANE_NAME.fullmatch(name)):
            await self._refuse(None, "invalid_stream_id", "stream_id is not the name of a lane")
            return
        if name not in self._lanes:
            if len(self._lanes.keys() - {None}) >= LANES and name is not None:
                text = f"a connection has at most {LANES} lanes"
                await self._refuse(name, "websocket_stream_limit_reached", text)
                return
            self._lanes[name] = _Lane()
            group.start_soon(self._serve_lane, name, self._lanes[name])
        self._lanes[name].requests.append(value)
        self._lanes[name].added.set()

    async def _serve_lane(self, name: str | None, lane: _Lane) -> None:
        try:
            while True:
                while not lane.requests:
                    lane.added = anyio.Event()
                    await lane.added.wait()
                async with self._running:
                    await self._respond(name, lane, lane.requests.popleft())
        except SocketClosed:
            return  # the task that reads ends the session

    # --- one response ---

    async def _respond(self, name: str | None, lane: _Lane, value: JsonObject) -> None:
        message = msgspec.json.encode(value)
        received = ReceivedRequest("responses", "GET", self._path, self._headers, message)
        self._provider.record(received)
        previous = value.pop("previous_response_id", None)
        if previous is not None and previous not in self._memory:
            text = f"Previous response with id '{previous}' not found."
            await self._refuse(name, NOT_FOUND, text, param="previous_response_id")
            return
        history = [*self._memory.get(str(previous), []), *self._queued(previous)]
        full_input = [*history, *_input(value)]
        body = {**value, "input": full_input, "stream": True}
        body.pop("type", None)
        served = self._provider.response(
            self._matched, msgspec.json.encode(body), self._headers, self._path
        )
        if served.status >= 400:
            if previous is not None and previous == lane.newest:
                self._memory.pop(previous, None)  # a failed continuation ends the chain
            await self._send(name, _error(served))
            return
        response_id, output = await self._send_events(name, served, previous)
        if response_id is None:
            return
        self._remember(lane, response_id, [*full_input, *output], stored=value.get("store", True))
        await self._go_on(name, lane, value, response_id, output)

    async def _send_events(
        self, name: str | None, served: ServedResponse, previous: str | None
    ) -> tuple[str | None, list[Any]]:
        """Sends the events; returns the response's id and output once it is complete."""
        events = list(_events(served))
        response = _SocketResponse(name)
        response_id: str | None = None
        fault_before = fault_index(len(events), served.behaviour.at)
        for number, event in enumerate(events):
            if served.behaviour.fault and number == fault_before:
                await self._make_fault(served.behaviour.fault)
            inner = event.get("response")
            if isinstance(inner, dict):
                response_id = inner.get("id")
                self._responses[str(response_id)] = response
                inner["previous_response_id"] = previous
            if event.get("type") in ("response.completed", "response.incomplete"):
                response.ended = True
            await self._send_of(response, name, event)
            if response.ended:
                return response_id, (inner or {}).get("output") or []
            await anyio.sleep(served.behaviour.pace)
        response.ended = True
        return None, []

    def _remember(self, lane: _Lane, response_id: str, history: list[Any], *, stored: bool) -> None:
        if lane.newest is not None and lane.newest not in self._stored:
            self._memory.pop(lane.newest, None)
        lane.newest = response_id
        self._memory[response_id] = history
        if stored:
            self._stored.add(response_id)

    async def _make_fault(self, fault: Fault) -> None:
        match fault:
            case "truncate":
                await self._socket.aclose()
                raise SocketClosed(_CLOSED)
            case "disconnect":
                reset_on_close(self._stream)
                await self._stream.aclose()
                raise SocketClosed(_CLOSED)
            case "malformed":
                await self._socket.send(MALFORMED)
            case "stall":
                await anyio.sleep_forever()

    # --- steering ---

    async def _steer(self, value: JsonObject) -> None:
        response_id = value.get("previous_response_id")
        response = self._responses.get(str(response_id))
        code = ""
        if response is None:
            code = "response_not_found"
        elif response.ended:
            code = "response_already_completed"
        if response is None or code:
            name = response.lane if response is not None else None
            await self._send(name, _steer_failed(value, code))
            return
        self._steers += 1
        steer_id = f"steer_{self._steers}"
        steer = {"id": steer_id, "previous_response_id": response_id}
        response.steering.append((steer_id, _input(value)))
        accepted = {"type": "response.steer.accepted", "steer": steer}
        await self._send_of(response, response.lane, accepted)

    def _queued(self, response_id: Any) -> list[Any]:
        """The inputs that a response was steered with, for the request that continues it."""
        response = self._responses.get(str(response_id))
        inputs: list[Any] = []
        if response is not None:
            for _, steered in response.steering:
                inputs.extend(steered)
            response.steering.clear()
        return inputs

    async def _go_on(
        self,
        name: str | None,
        lane: _Lane,
        value: JsonObject,
        response_id: str,
        output: list[Any],
    ) -> None:
        """After a steered response: starts the next one, or names the outputs that it needs."""
        response = self._responses[response_id]
        steering = response.steering
        if not steering:
            return
        required = [_stub(item) for item in output if item.get("type") in CALLS_TO_OUTPUTS]
        if not required:
            value = {**value, "previous_response_id": response_id, "input": []}
            await self._respond(name, lane, value)
            return
        for steer_id, _ in steering:
            pending = {
                "type": "response.steer.pending",
                "steer": {"id": steer_id, "previous_response_id": response_id},
                "reason": "waiting_for_required_input",
                "required_input": required,
            }
            await self._send_of(response, name, pending)

    # --- sending ---

    async def _send_of(
        self, response: _SocketResponse, name: str | None, event: JsonObject
    ) -> None:
        """Sends an event of a response, with its number."""
        number = response.sent
        response.sent += 1
        await self._send(name, {**event, "sequence_number": number})

    async def _send(self, name: str | None, event: JsonObject) -> None:
        if name is not None:
            event = {**event, "stream_id": name}
        await self._socket.send(msgspec.json.encode(event))

    async def _refuse(
        self, name: str | None, code: str, text: str, param: str | None = None
    ) -> None:
        error = {"type": "invalid_request_error", "code": code, "message": text, "param": param}
        await self._send(name, {"type": "error", "status": 400, "error": error})


def _wrong_field(value: JsonObject) -> str | None:
    """A field whose type would break the session; the rules of the wire check all others."""
    if not isinstance(value.get("previous_response_id"), (str, NoneType)):
        return "previous_response_id"
    if not isinstance(value.get("input"), (str, list, NoneType)):
        return "input"
    return None


def _input(value: JsonObject) -> list[Any]:
    """The input of a request or of steering, as a list."""
    elements = value.get("input")
    if isinstance(elements, str):
        return [{"type": "message", "role": "user", "content": elements}]
    return list(elements or [])


def _events(served: ServedResponse) -> Iterator[JsonObject]:
    """The events of an SSE stream, decoded from JSON."""
    for name, data in unframed("responses", b"".join(served.chunks)):
        if not data.startswith(b"[DONE]"):
            event: JsonObject = msgspec.json.decode(data)
            event.setdefault("type", name)
            yield event


def _error(served: ServedResponse) -> JsonObject:
    """An HTTP error, as an event."""
    body = msgspec.json.decode(b"".join(served.chunks))
    error = {**body["error"], "headers": dict(served.behaviour.headers)}
    return {"type": "error", "status": served.status, "error": error}


def _steer_failed(value: JsonObject, code: str) -> JsonObject:
    error = {"type": "invalid_request_error", "code": code, "message": f"cannot steer: {code}"}
    steer = {
        "input": value.get("input"),
        "previous_response_id": value.get("previous_response_id"),
    }
    event = {"type": "response.steer.failed", "sequence_number": 0}
    return {**event, "error": error, "steer": steer}


def _stub(call: JsonObject) -> JsonObject:
    """A call's output, without its value: sent to name an output that steering waits for."""
    kind = CALLS_TO_OUTPUTS[call["type"]]
    stub = {"type": kind, "call_id": call.get("call_id")}
    if kind == "function_call_output":
        stub["name"] = call.get("name")
    return stub


_CLOSED: Final = close_error(1006, "")
