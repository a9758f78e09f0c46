"""The stream of a response on a lane: a `ResponseStream` that can be steered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from streamlib.client.hooked_stream import show_batch, show_next
from streamlib.client.hooks import OnEvent
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_config import StreamConfig
from streamlib.client.websocket.continuation import LaneRequest
from streamlib.client.websocket.lane_source import LaneRetry, LaneSource, SuccessorSource
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.stream_error import invalid_request


class LaneStream(ResponseStream):
    """The stream of `Connection.stream`, with the events and promises of every stream.

    Closing it early does not stop the model, since the wire cannot cancel: the rest of the response
    is dropped as it is received, and a further request of the same lane waits for its end.
    """

    def __init__(self, config: StreamConfig) -> None:
        super().__init__(config)
        # Not the stream itself: a cycle would keep an abandoned stream alive.
        self.source.accumulator = self._accumulator
        self._steering: list[ResponseItem] = []
        """What the response was steered with, in order."""

    @property
    def source(self) -> LaneSource:
        """Where the response comes from."""
        return cast("LaneSource", self._config.source)

    @property
    def lane(self) -> str | None:
        """The lane's name; None for the lane without one."""
        return self.source.lane

    @property
    def continued(self) -> str | None:
        """The id of the response before, if only what is new was sent; None: all of the input."""
        return self.source.continued

    async def steer(self, prompt: str | Sequence[ResponseItem]) -> None:
        """Gives the model further user messages while it generates.

        Once they are accepted, this response ends soon, and `successor` is the one that goes on;
        or, where this one ends with calls, they are joined to the next request of the lane, which
        brings the outputs. May be called while another task reads.

        Args:
            prompt: a text, or messages of the user.

        Raises:
            StreamError: `invalid_request`: the provider does not steer, the response does not run
                (code `not_running`), an item is not a message of the user, or the server refused
                (with its code). Else the connection was lost: what became of it is unknown.
        """
        turn, socket = self.source.turn, self.source.socket
        if socket is None or turn is None or turn.response_id is None or turn.ended:
            message = "only a running response can be steered, after its event Created"
            raise invalid_request(message, "not_running")
        connection = self.source.connection
        steering = connection.steering(prompt)
        await connection.send_steering(socket, turn.response_id, steering)
        self._steering.extend(steering)

    def successor(self) -> LaneStream:
        """The response that the server begins by itself, after this one was steered and has ended.

        Its stream fails with `invalid_request` if the steering was refused (code of the server), or
        if it waits for outputs of calls (code ``waiting_for_required_input``): send them with
        `Connection.stream`.

        Raises:
            StreamError: `invalid_request`, code `not_steered`.
        """
        if not self._steering:
            raise invalid_request("this response was not steered", "not_steered")
        wanted = self.source.wanted
        items = (*wanted.items, *self.response.items, *self._steering)
        continued = LaneRequest(
            prompt=msgspec.structs.replace(wanted.prompt, input=items),
            target=wanted.target,
            request=wanted.request,
            items=items,
        )
        source = SuccessorSource(self.source, continued)
        retry = msgspec.structs.replace(cast("LaneRetry", self._config.retry), source=source)
        config = msgspec.structs.replace(self._config, source=source, retry=retry)
        return self._stream_of(config)

    def _stream_of(self, config: StreamConfig) -> LaneStream:
        """Another stream of the same connection."""
        return LaneStream(config)


class HookedLaneStream(LaneStream):
    """A `LaneStream` whose events are shown to the client's `on_event`."""

    def __init__(self, config: StreamConfig, on_event: OnEvent) -> None:
        super().__init__(config)
        self._on_event = on_event

    def _stream_of(self, config: StreamConfig) -> LaneStream:
        return HookedLaneStream(config, self._on_event)

    async def __anext__(self) -> ResponseEvent:
        await show_next(self, self._on_event)
        return await super().__anext__()

    async def _next_batch(self) -> list[ResponseEvent]:
        await show_batch(self, self._on_event)
        return await super()._next_batch()
