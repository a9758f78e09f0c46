"""Events as a Bedrock InvokeModelWithResponseStream or a whole InvokeModel body, in Claude's words.

The Messages encoder writes, this one puts each of its events into a frame: `{"bytes": <base64 of one JSON event>}`. Keys that Bedrock
adds to the last event go back there; a failure is a frame of its own.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

import msgspec

from streamlib.request.report import Change, Report
from streamlib.wires.bedrock_frames import MEDIA_TYPE, error_body, event_frame, exception_frame
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
    """Writes one stream."""

    media_type = MEDIA_TYPE

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        self._inner = messages.Encoder(model=model, response_id=response_id)
        self._added: JsonObject = {}

    @property
    def report(self) -> list[Change]:
        """What Claude's API could not say."""
        return self._inner.report

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        if isinstance(event, ResponseMetadata):
            self._added |= {
                key: value for key, value in event.values.items() if key.startswith(BEDROCK)
            }
            event = ResponseMetadata(
                {key: value for key, value in event.values.items() if key not in self._added}
            )
            return self._framed(self._inner.feed(event)) if event.values else b""
        if isinstance(event, (OutputItemAdded, OutputItemDone)):
            event = msgspec.structs.replace(event, item=_as_messages(event.item))
        out = self._framed(self._inner.feed(event))
        return out + exception_frame(event.error) if isinstance(event, Failed) else out

    def close(self) -> bytes:
        """Invoke has no end mark of its own."""
        return self._framed(self._inner.close())

    def _framed(self, text: bytes) -> bytes:
        return b"".join(self._frame(name, data) for name, data in _events(text) if name != b"error")

    def _frame(self, name: bytes, data: bytes) -> bytes:
        if name == b"message_stop" and self._added:
            data = msgspec.json.encode({**msgspec.json.decode(data), **self._added})
        return event_frame("chunk", {"bytes": base64.b64encode(data).decode("ascii")})


def _events(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of server-sent events as our own encoder writes them."""
    for block in text.split(b"\n\n"):
        first, _, rest = block.partition(b"\n")
        if rest:
            yield (
                first.removeprefix(b"event: "),
                b"\n".join(line.removeprefix(b"data: ") for line in rest.split(b"\n")),
            )


def _as_messages(item: ResponseItem) -> ResponseItem:
    """Claude's answers through Invoke are those of Messages: its encoder may say again what only Messages says."""
    made_here = item.origin is not None and item.origin.wire_api == "invoke"
    return msgspec.structs.replace(item, origin=MESSAGES) if made_here else item


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """A whole body of Claude's, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    items = tuple(_as_messages(item) for item in response.items)
    return messages.encode_body(msgspec.structs.replace(response, items=items), model, losses)
