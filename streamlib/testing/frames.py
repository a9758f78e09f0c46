"""A body as the messages it is made of, and back, for each wire: what is changed in between is still framed as it must be.

for name, payload in unframed("converse", body): ...      # payloads are JSON, checksums and base64 are gone
body = framed("converse", payload, "contentBlockDelta")
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import wire


def framed(wire_api: WireApi, payload: bytes, name: str | None = None) -> bytes:
    """One message of the wire around a payload."""
    if wire_api == "ollama":
        return payload + b"\n"
    if wire_api == "converse" or (wire_api == "invoke" and ":" in (name or "")):
        return _aws(name or "", payload)
    if wire_api == "invoke":
        return _aws("chunk", _chunk(payload))
    lines = b"".join(b"data: " + line + b"\n" for line in payload.splitlines() or [b""])
    return (
        (b"event: %s\n" % name.encode() if name and WIRE_SPECS[wire_api].named_events else b"")
        + lines
        + b"\n"
    )


def _aws(name: str, payload: bytes) -> bytes:
    kind, _, rest = name.partition(":")
    own = (
        {":exception-type": rest, ":message-type": "exception"}
        if rest
        else {":event-type": kind, ":message-type": "event"}
    )
    return encode_message({**own, ":content-type": "application/json"}, payload)


def _chunk(payload: bytes) -> bytes:
    return json.dumps({"bytes": base64.b64encode(payload).decode()}).encode()


def unframed(wire_api: WireApi, body: bytes) -> list[tuple[str | None, bytes]]:
    """Names and payloads of the messages of a body; what is none is left out."""
    framing = wire(wire_api).framing(LIMITS)
    frames = [*framing.feed(body), *framing.close()]
    return [
        (frame.event, _inner(wire_api, frame.data)) for frame in frames if frame.data is not None
    ]


def _inner(wire_api: WireApi, data: bytes) -> bytes:
    if wire_api != "invoke":
        return data
    try:
        return base64.b64decode(decode_any(data)["bytes"])
    except (Exception, binascii.Error):  # noqa: BLE001  # whatever it is, it stands for itself
        return data


def encode_payloads(wire_api: WireApi, payloads: Iterable[Any]) -> bytes:
    """The stream of these payloads, each a JSON value or a text as it stands, under the names that this wire gives them."""
    return b"".join(framed(wire_api, *_payload(wire_api, payload)) for payload in payloads)


def _payload(wire_api: WireApi, payload: Any) -> tuple[bytes, str | None]:
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogatepass"), None
    if wire_api == "converse" and isinstance(payload, dict) and len(payload) == 1:
        ((name, payload),) = payload.items()
        return json.dumps(payload).encode(), str(name)
    name = payload.get("type") if isinstance(payload, dict) else None
    return json.dumps(payload).encode(), name if isinstance(
        name, str
    ) and name.isascii() and name.isprintable() else None
