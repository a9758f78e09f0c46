"""Responses in the background: created, read, resumed and cancelled by their id.

A log keeps the events of such a response, and every reader encodes them again from the first one:
the encoder is pure, so each gets the same frames under the same numbers, and skips those it has.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.request.prompt import Prompt
from streamlib.wires.encoders import encode_body, encoder, sse
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Passthrough, ResponseEvent, ResponseMetadata
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import StreamError

ENVELOPE: Final[JsonObject] = {"background": True, "store": True}
"""Fields that every object of such a response has."""

NUMBER_FIELD: Final = "sequence_number"

_CREATED: Final = b"event: response.created\n"
_NUMBER: Final = re.compile(rb'"sequence_number":[0-9]+')


class StoredResponse(Struct, frozen=True, kw_only=True):
    """What an encoder needs to write the same frames again.

    Attributes:
        response_id: wire: `id`.
        model: the model that the client requested.
        created_at: Unix seconds.
        settings: the request's settings, which every object of the response repeats.
    """

    response_id: str
    model: str
    created_at: int
    settings: JsonObject | None = None


def without_background(prompt: Prompt) -> Prompt | None:
    """The prompt of a background request, without `background`; None for any other request.

    Raises:
        StreamError: `invalid_request`: the request has `store: false`, but a response in the
            background is stored. Or it has `background_options`, but the response starts
            at once.
    """  # rule B3
    extra = dict(prompt.extra or {})
    if not extra.pop("background", False):
        return None
    if extra.get("store") is False:
        message = "background requires store: the response is read from where it is stored"
        raise StreamError(ErrorInfo("invalid_request", message, code="store"))
    if extra.get("background_options"):
        message = "background_options: a response in the background runs at once here"
        raise StreamError(ErrorInfo("invalid_request", message, code="background_options"))
    extra["store"] = False  # here and not at the target
    return msgspec.structs.replace(prompt, extra=extra)


class NumberedFrames:
    """Encodes a stored response as frames; `sequence_number` counts them from 0.

    The first two say that the response is created and queued, before the model says anything.
    """

    def __init__(self, stored: StoredResponse, after: int = -1) -> None:
        """Starts a response.

        Args:
            stored: the response.
            after: the number of the last frame that the reader has; those up to it are left out.
        """
        self._after = after
        self._count = 0
        """Frames so far, those that were left out too."""
        self._stored = stored
        self._encoder = encoder(
            "responses",
            model=stored.model,
            response_id=stored.response_id,
            created_at=stored.created_at,
            settings=stored.settings,
        )
        # Every object of the response then has these fields.
        self._encoder.feed(ResponseMetadata(ENVELOPE))

    def start(self) -> bytes:
        """The frames that come first."""
        queued = response_object(self._stored, Response(), "queued")
        frames = b""
        for kind in ("response.created", "response.queued"):
            data = {"type": kind, NUMBER_FIELD: 0, "response": queued}
            frames += self._next(sse(data, kind))
        return frames

    def feed(self, event: ResponseEvent) -> bytes:
        """The frames of an event."""
        if isinstance(event, Passthrough) and isinstance(event.data, dict):
            # The provider's own number is of another stream, and some of its events have none.
            fields = {name: value for name, value in event.data.items() if name != NUMBER_FIELD}
            first = {"type": event.event, NUMBER_FIELD: 0}
            event = msgspec.structs.replace(event, data={**first, **fields})
        frames = b""
        for frame in self._encoder.feed(event).split(b"\n\n"):
            # `start` has sent that the response was created.
            if frame and not frame.startswith(_CREATED):
                frames += self._next(frame + b"\n\n")
        return frames

    def close(self) -> bytes:
        """The end mark, which has no number."""
        return self._encoder.close()

    def _next(self, frame: bytes) -> bytes:
        number = self._count
        self._count += 1
        if number <= self._after:
            return b""
        return _NUMBER.sub(b'"sequence_number":%d' % number, frame, count=1)


def response_object(
    stored: StoredResponse, response: Response, status: str | None = None
) -> JsonObject:
    """A response as an object of the wire.

    Args:
        stored: the stored response.
        response: the response accumulated from the events of the log.
        status: replaces the response's own status: `queued` or `in_progress` if it has not ended
            (`output` then has the items that are done), or `cancelled`.
    """
    items = response.items
    if status in ("queued", "in_progress"):
        items = tuple([item for item in items if item.status == "completed"])
        response = msgspec.structs.replace(response, status="completed", stop_reason="stop")
    response = msgspec.structs.replace(
        response,
        response_id=stored.response_id,
        model=stored.model,
        items=items,
        metadata={**response.metadata, **ENVELOPE},
    )
    encoded = encode_body(
        "responses",
        response,
        model=stored.model,
        created_at=stored.created_at,
        settings=stored.settings,
    )
    body: JsonObject = msgspec.json.decode(encoded)
    if status is not None:
        body["status"] = status
    return body
