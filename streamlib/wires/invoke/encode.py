"""Encodes events as a Bedrock InvokeModelWithResponseStream of Claude's models, or as a body.

The Messages encoder writes each of its events as a frame: `{"bytes": <base64 of the JSON
of one event>}`. Keys that Bedrock adds to the last event go back there; a failure is a frame of its
own.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib.request.report import Change, Report
from streamlib.wires.bedrock_frames import MEDIA_TYPE, chunk_frame, error_body, exception_frame
from streamlib.wires.messages import encode as messages
from streamlib_parsers.accumulate import Response
from streamlib_parsers.events import (
    Failed,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.items import JsonObject, Origin, ResponseItem
from streamlib_parsers.wires.invoke import BEDROCK

__all__ = ["Encoder", "encode_body", "error_body"]

MESSAGES: Final = Origin("messages")


class Encoder:
    """Encodes one stream."""

    media_type = MEDIA_TYPE

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        self._inner = messages.Encoder(model=model, response_id=response_id, write=self._frame)
        # Metadata that Bedrock adds to the last event, such as its invocation metrics.
        self._bedrock_fields: JsonObject = {}

    @property
    def report(self) -> list[Change]:
        """What Claude's API could not carry."""
        return self._inner.report

    def feed(self, event: ResponseEvent) -> bytes:
        """Returns the bytes of one event."""
        # Not a `match`: most events are deltas, which it would test last.
        if type(event) in _OTHERS:
            return self._feed_other(event)
        return self._inner.feed(event)

    def _feed_other(self, event: ResponseEvent) -> bytes:
        """Returns the bytes of an event that Invoke writes differently from Messages."""
        match event:
            case ResponseMetadata():
                return self._on_metadata(event)
            case OutputItemAdded() | OutputItemDone():
                item = _as_messages_item(event.item)
                return self._inner.feed(msgspec.structs.replace(event, item=item))
            case Failed():
                return self._inner.feed(event) + exception_frame(event.error)
            case _:
                return self._inner.feed(event)

    def close(self) -> bytes:
        """Returns the end of the Messages stream; Invoke has no end mark of its own."""
        return self._inner.close()

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        values: JsonObject = {}
        for key, value in event.values.items():
            if key.startswith(BEDROCK):
                self._bedrock_fields[key] = value
            else:
                values[key] = value
        if not values:
            return b""
        return self._inner.feed(ResponseMetadata(values))

    def _frame(self, value: Any, name: str) -> bytes:
        """Returns one event of Messages as a frame, which does not carry the event's name."""
        # A failure is an exception frame instead. An event without a name has no type either.
        if name in ("error", ""):
            return b""
        if name == "message_stop" and self._bedrock_fields:
            value = {**value, **self._bedrock_fields}
        return chunk_frame(msgspec.json.encode(value))


_OTHERS: Final = frozenset({ResponseMetadata, OutputItemAdded, OutputItemDone, Failed})
"""Events that Invoke writes differently from Messages."""


def _as_messages_item(item: ResponseItem) -> ResponseItem:
    """Returns an item of this wire as one of Messages, whose encoder then keeps its state."""
    if item.origin is None or item.origin.wire_api != "invoke":
        return item
    return msgspec.structs.replace(item, origin=MESSAGES)


def encode_body(response: Response, model: str | None, report: Report) -> bytes:
    """Returns a body of Claude's, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    items = tuple(_as_messages_item(item) for item in response.items)
    return messages.encode_body(msgspec.structs.replace(response, items=items), model, report)
