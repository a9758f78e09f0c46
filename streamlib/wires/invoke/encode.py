"""Encodes events as a Bedrock InvokeModelWithResponseStream of Claude's models, or as a body.

Each event of Messages is a frame: `{"bytes": <base64 of the JSON of one event>}`. Keys that Bedrock
adds to the last event go back there; a failure is a frame of its own.
"""

from __future__ import annotations

from typing import Any, Unpack

import msgspec

from streamlib.wires.bedrock_frames import MEDIA_TYPE, chunk_frame, error_body, exception_frame
from streamlib.wires.event_encoder import FrameWriter, ResponseNames
from streamlib.wires.messages import encode as messages
from streamlib.wires.messages.encode import body_of
from streamlib_parsers.events import Failed, ResponseMetadata
from streamlib_parsers.items import JsonObject
from streamlib_parsers.wires.invoke import BEDROCK

__all__ = ["Encoder", "body_of", "error_body"]


def _chunk(value: Any, name: str) -> bytes:
    """One event of Messages as a frame, which does not carry the event's name."""
    return chunk_frame(msgspec.json.encode(value))


class Encoder(messages.Encoder):
    """Encodes one stream."""

    media_type = MEDIA_TYPE
    wire_api = "invoke"

    def __init__(self, *, write: FrameWriter = _chunk, **names: Unpack[ResponseNames]) -> None:
        super().__init__(write=self._frame_of, **names)
        self._write_chunk = write
        # Metadata that Bedrock adds to the last event, such as its invocation metrics.
        self._bedrock_fields: JsonObject = {}

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        values: JsonObject = {}
        for key, value in event.values.items():
            if key.startswith(BEDROCK):
                self._bedrock_fields[key] = value
            else:
                values[key] = value
        if not values:
            return b""
        return super()._on_metadata(ResponseMetadata(values))

    def _on_failed(self, event: Failed) -> bytes:
        return super()._on_failed(event) + exception_frame(event.error)

    def _frame_of(self, value: Any, name: str) -> bytes:
        # A failure is an exception frame instead. An event without a name has no type either.
        if name in ("error", ""):
            return b""
        if name == "message_stop" and self._bedrock_fields:
            value = {**value, **self._bedrock_fields}
        return self._write_chunk(value, name)
