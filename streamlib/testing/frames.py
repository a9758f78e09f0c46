"""Splits the body of any wire into frames and frames payloads again, after a test changed them.

for name, payload in unframed("converse", body): ...  # payloads are JSON, without checksums, base64
body = framed("converse", payload, "contentBlockDelta")
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.wires.bedrock_frames import chunk_frame, event_frame
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import wire


def framed(wire_api: WireApi, payload: bytes, name: str | None = None) -> bytes:
    """One frame of the wire around a payload.

    Args:
        wire_api: wire whose framing is used.
        payload: JSON text.
        name: name of the event; `exception:KIND` makes an AWS exception frame.
    """
    spec = WIRE_SPECS[wire_api]
    if spec.frames == "ndjson":
        return payload + b"\n"
    if spec.frames == "aws":
        kind, _, exception = (name or "").partition(":")
        if exception:
            return _aws_exception(exception, payload)
        # Invoke wraps the events of its inner wire.
        return chunk_frame(payload) if wire_api == "invoke" else event_frame(Raw(payload), kind)
    frame = b""
    if name and spec.named_events:
        frame = b"event: %s\n" % name.encode()
    for line in payload.splitlines() or [b""]:
        frame += b"data: " + line + b"\n"
    return frame + b"\n"


def _aws_exception(kind: str, payload: bytes) -> bytes:
    headers = {":exception-type": kind, ":message-type": "exception"}
    headers[":content-type"] = "application/json"
    return encode_message(headers, payload)


def unframed(wire_api: WireApi, body: bytes) -> list[tuple[str | None, bytes]]:
    """Names and payloads of the frames of a body; bytes outside of frames are omitted."""
    framing = wire(wire_api).framing(LIMITS)
    frames = [*framing.feed(body), *framing.close()]
    named: list[tuple[str | None, bytes]] = []
    for frame in frames:
        if frame.data is not None:
            named.append((frame.event, _inner_payload(wire_api, frame.data)))
    return named


def _inner_payload(wire_api: WireApi, data: bytes) -> bytes:
    if wire_api != "invoke":
        return data
    try:
        return base64.b64decode(decode_any(data)["bytes"])
    except Exception:  # noqa: BLE001  # the payload is not a chunk of an inner wire
        return data


def encode_payloads(wire_api: WireApi, payloads: Iterable[Any]) -> bytes:
    """A stream of these payloads, with the event names that the wire uses for them.

    Args:
        wire_api: wire whose framing is used.
        payloads: each a JSON value, or text that is not JSON (`[DONE]`).
    """
    frames: list[bytes] = []
    for payload in payloads:
        data, name = _encoded(wire_api, payload)
        frames.append(framed(wire_api, data, name))
    return b"".join(frames)


def _encoded(wire_api: WireApi, payload: Any) -> tuple[bytes, str | None]:
    """A payload as bytes, and the name of its event."""
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogatepass"), None
    # Converse has no type field: the only key of the payload is the event's name.
    if wire_api == "converse" and isinstance(payload, dict) and len(payload) == 1:
        ((name, inner),) = payload.items()
        return json.dumps(inner).encode(), str(name)
    name = None
    if isinstance(payload, dict):
        name = payload.get("type")
    # A mutated type may have any value; one that an event line cannot contain is omitted.
    if not (isinstance(name, str) and name.isascii() and name.isprintable()):
        name = None
    return json.dumps(payload).encode(), name
