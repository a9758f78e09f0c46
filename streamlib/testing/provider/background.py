"""Responses in the background: stored by id, streamed again from any position, cancelled.

    POST /v1/responses            background and stream: the stream, which is kept
    GET  /v1/responses/ID         ?stream=true&starting_after=N: what follows; else the response
    POST /v1/responses/ID/cancel  the response, cancelled unless it had ended
    DELETE /v1/responses/ID

Interactions have the same requests, with `last_event_id`. There is no clock: a response is
generated as far as its stream was sent on any connection. After a cancellation its stream ends
without a terminal event; the providers document little about this case.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, overload
from urllib.parse import parse_qs, urlsplit

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.testing.frames import unframed
from streamlib.testing.provider.behaviour import (
    JSON,
    Behaviour,
    ServedResponse,
    error_response,
    split_body,
)
from streamlib.wires.encoders import encode_body, encoder
from streamlib.wires.frame_offsets import frame_offsets
from streamlib.wires.routes import StoredRoute
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.protocol import parser
from streamlib_parsers.resumable import Position, position_reader

MAX_STORED: Final = 1000
"""Limit of stored responses; above it the oldest is deleted."""


ENVELOPES: Final[dict[WireApi, tuple[str, str]]] = {
    "responses": ("response", "output"),
    "interactions": ("interaction", "steps"),
}
"""Wire -> field of an event that holds the response, and field of the response with the items."""


def runs_in_background(wire_api: WireApi, body: bytes) -> bool:
    """Whether a request asks for a response in the background."""
    spec = WIRE_SPECS[wire_api].resume
    if spec is None:
        return False
    request = msgspec.json.decode(body)
    return isinstance(request, dict) and request.get(spec.field) is True


class BackgroundResponse:
    """One response that runs in the background.

    Args:
        wire_api: its wire.
        body: all bytes of its stream.
        streams: whether a stream was requested: only such a response can be resumed.
    """

    def __init__(self, wire_api: WireApi, body: bytes, *, streams: bool) -> None:
        self.wire_api: WireApi = wire_api
        self.streams = streams
        self.frames = _with_positions(wire_api, body)
        self.positions = [_position(wire_api, frame) for frame in self.frames]
        self.sent = 0
        """Number of frames that were sent, on all connections together."""
        self.is_cancelled = False
        self._events = len(self.frames)
        """Number of frames, without an end mark."""
        while self._events and self.positions[self._events - 1] is None:
            self._events -= 1
        self.id = self._response(len(self.frames)).response_id or ""

    @property
    def has_ended(self) -> bool:
        """Whether its last event was sent. An end mark may follow, which has no position."""
        return self.sent >= self._events

    @property
    def status(self) -> str | None:
        """Its status while it runs or after a cancellation; None: its last event has it."""
        if self.is_cancelled:
            return "cancelled"
        if self.has_ended:
            return None
        return "in_progress" if self.sent else "queued"

    def _response(self, frames: int) -> Response:
        """The response that the first frames contain."""
        # The parser is not closed: that would make an unfinished response a failed one.
        return accumulate(parser(self.wire_api).feed(b"".join(self.frames[:frames])))

    def json(self) -> bytes:
        """The body of the response as it is now."""
        response = self._response(self.sent or 1)
        if self.status is not None:  # else the encoder would report it as failed
            response = msgspec.structs.replace(response, status="completed", stop_reason="stop")
        body: JsonObject = msgspec.json.decode(encode_body(self.wire_api, response))
        # Fields of the request that the stream repeats: the encoder does not know the request.
        envelope, items = ENVELOPES[self.wire_api]
        for frame in self.frames[: self.sent or 1]:
            reported = _data(self.wire_api, frame).get(envelope)
            if isinstance(reported, dict):
                body.update({**reported, items: body.get(items)})
        if self.status is not None:
            body["status"] = self.status
        return msgspec.json.encode(body)

    def chunks(self, first: int, size: int | None) -> StreamedChunks:
        """The bytes from a frame to the end of the stream.

        Args:
            first: index of the frame.
            size: bytes of a chunk; None: one frame a chunk.
        """
        return StreamedChunks(self, first, size)

    def index_behind(self, position: str) -> int | None:
        """Index of the frame after a position; None if the position is not valid."""
        if position in self.positions:
            return self.positions.index(position) + 1
        if not position.isdecimal():
            return None
        for index, number in enumerate(self.positions):
            if isinstance(number, int) and number > int(position):
                return index
        return self._events


class StreamedChunks(Sequence[bytes]):
    """Chunks of a stored stream. Iterating over them generates the response."""

    def __init__(self, stored: BackgroundResponse, first: int, size: int | None) -> None:
        self._stored = stored
        frames = stored.frames[first:]
        self._chunks: Sequence[bytes] = frames
        if size is not None:
            self._chunks = split_body(stored.wire_api, b"".join(frames), size)
        self._first = first
        self._ends: list[int] = []
        """Offset of the end of each frame, counted from the first frame that is sent."""
        end = 0
        for frame in frames:
            end += len(frame)
            self._ends.append(end)

    def __len__(self) -> int:
        return len(self._chunks)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self._chunks[index]

    def __iter__(self) -> Iterator[bytes]:
        stored, offset = self._stored, 0
        for chunk in self._chunks:
            offset += len(chunk)
            frames = self._first + bisect_right(self._ends, offset)
            if stored.is_cancelled and frames > stored.sent:
                return
            stored.sent = max(stored.sent, frames)
            yield chunk


class LoopbackBackground:
    """The background responses of a loopback provider."""

    def __init__(self) -> None:
        self._stored: dict[str, BackgroundResponse] = {}
        """Wire and id, joined by a space -> the response."""

    def start(self, wire_api: WireApi, served: ServedResponse, *, streams: bool) -> ServedResponse:
        """Stores a response that is about to be sent.

        Args:
            wire_api: its wire.
            served: the response with its stream.
            streams: whether the client requests the stream; else it polls.
        """
        if served.status != 200:
            return served
        stored = BackgroundResponse(wire_api, b"".join(served.chunks), streams=streams)
        self._stored[f"{wire_api} {stored.id}"] = stored
        if len(self._stored) > MAX_STORED:
            del self._stored[next(iter(self._stored))]
        if not streams:
            queued = stored.json()
            stored.sent = len(stored.frames)  # the next request finds it complete
            return served._replace(media_type=JSON, chunks=[queued])
        return served._replace(chunks=stored.chunks(0, served.behaviour.chunk))

    def respond(
        self, route: StoredRoute, method: str, path: str, behaviour: Behaviour
    ) -> ServedResponse:
        """The response to a request for a stored response.

        Args:
            route: the route that the path matched.
            method: HTTP method.
            path: path and query.
            behaviour: how the response is sent.
        """
        wire_api = route.wire_api
        key = f"{wire_api} {route.response_id}"
        stored = self._stored.get(key)
        if stored is None:
            return _refusal(wire_api, 404, f"no response {route.response_id!r:.80} is stored")
        match method, route.action:
            case "POST", "cancel":
                stored.is_cancelled = stored.is_cancelled or not stored.has_ended
            case "DELETE", "":
                del self._stored[key]
                return ServedResponse(200, JSON, [b"{}"], Behaviour())
            case "GET", "":
                query = parse_qs(urlsplit(path).query)
                if query.get("stream") == ["true"]:
                    return _stream(stored, query, behaviour)
            case _:
                return _refusal(wire_api, 405, f"{method} is not allowed here")
        return ServedResponse(200, JSON, [stored.json()], Behaviour())


def _stream(
    stored: BackgroundResponse, query: dict[str, list[str]], behaviour: Behaviour
) -> ServedResponse:
    """The stream of a stored response after a position."""
    wire_api = stored.wire_api
    if not stored.streams:
        return _refusal(wire_api, 400, "the response was not created with stream=true")
    spec = WIRE_SPECS[wire_api].resume
    first: int | None = 0
    if spec is not None and spec.after in query:
        first = stored.index_behind(query[spec.after][0])
    if first is None:
        return _refusal(wire_api, 400, "the stream has no such position")
    media_type = encoder(wire_api).media_type
    return ServedResponse(200, media_type, stored.chunks(first, behaviour.chunk), behaviour)


def _refusal(wire_api: WireApi, status: int, message: str) -> ServedResponse:
    error = ErrorInfo("invalid_request", message)
    if status == 404:
        error = ErrorInfo("not_found", message)
    return error_response(wire_api, error, status, Behaviour())


# --- positions ---


def _with_positions(wire_api: WireApi, body: bytes) -> list[bytes]:
    """The frames of a stream; positions are added if the wire sends none."""
    frames = [body[start:end] for start, end in frame_offsets(wire_api, body)]
    for frame in frames:
        if _position(wire_api, frame) is not None:
            return frames
    spec = WIRE_SPECS[wire_api].resume
    if spec is None:
        return frames
    positioned: list[bytes] = []
    for number, frame in enumerate(frames):
        member = f'"event_id":"evt-{number}"'
        if spec.numbered:
            member = f'"sequence_number":{number}'
        head, brace, tail = frame.rpartition(b"}")
        if brace:  # not `[DONE]`
            frame = b"".join((head, b",", member.encode(), brace, tail))  # noqa: PLW2901
        positioned.append(frame)
    return positioned


def _position(wire_api: WireApi, frame: bytes) -> Position | None:
    """The position of a frame; None if it has none."""
    return position_reader(wire_api)(_payload(wire_api, frame))


def _payload(wire_api: WireApi, frame: bytes) -> bytes:
    for _, payload in unframed(wire_api, frame):
        return payload
    return b""


def _data(wire_api: WireApi, frame: bytes) -> JsonObject:
    """The event of a frame; empty for an end mark."""
    try:
        event = msgspec.json.decode(_payload(wire_api, frame))
    except msgspec.DecodeError:
        return {}
    return event if isinstance(event, dict) else {}
