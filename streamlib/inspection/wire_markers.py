"""Which wire API bytes look like: by words that only one of them uses."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from streamlib_parsers.items import WireApi

SNIFFED_BYTES: Final = 4096
"""Bytes in which `marker_in` looks for a marker."""


class WireMarker(NamedTuple):
    """Bytes that only one wire uses.

    Attributes:
        text: the bytes, without a blank after a colon.
        wire_api: the wire.
        is_body: whether they are in a complete body, not in a frame of a stream.
    """

    text: bytes
    wire_api: WireApi
    is_body: bool = False


WIRE_MARKERS: Final = (
    WireMarker(b'"type":"message_start"', "messages"),
    WireMarker(b'"type":"content_block_', "messages"),
    WireMarker(b'"type":"message_delta"', "messages"),
    WireMarker(b'"type":"message_stop"', "messages"),
    WireMarker(b'"type":"response.', "responses"),
    WireMarker(b'"object":"response"', "responses", is_body=True),
    WireMarker(b'"object":"chat.completion.chunk"', "chat"),
    WireMarker(b'"object":"chat.completion"', "chat", is_body=True),
    WireMarker(b'"candidates"', "gemini"),
    WireMarker(b'"promptFeedback"', "gemini"),
    WireMarker(b'"event_type":"interaction.', "interactions"),
    WireMarker(b'"event_type":"step.', "interactions"),
    WireMarker(b'"object":"interaction"', "interactions", is_body=True),
    WireMarker(b":event-type\x07\x00\x05chunk", "invoke"),
    WireMarker(b":event-type\x07\x00\x0cmessageStart", "converse"),
    WireMarker(b'"contentBlock', "converse"),
    WireMarker(b'"messageStart"', "converse"),
    WireMarker(b'"messageStop"', "converse"),
    WireMarker(b'"stopReason"', "converse", is_body=True),
    WireMarker(b'"type":"message-', "cohere"),
    WireMarker(b'"type":"content-', "cohere"),
    WireMarker(b'"type":"tool-', "cohere"),
    WireMarker(b'"done":', "ollama"),
    WireMarker(b'"finish_reason":"COMPLETE"', "cohere", is_body=True),
    WireMarker(b'"finish_reason":"TOOL_CALL"', "cohere", is_body=True),
    WireMarker(b'"finish_reason":"MAX_TOKENS"', "cohere", is_body=True),
    WireMarker(b'"type":"message"', "messages", is_body=True),
    # Some servers of Chat name no kind of object.
    WireMarker(b'"choices":', "chat"),
)
"""The first one that is found decides: later ones occur inside the bodies of other wires too."""


def marker_in(data: bytes) -> WireMarker | None:
    """The marker among the first bytes; None if there is none."""
    # Some servers write a space after the colon.
    start = data[:SNIFFED_BYTES].replace(b'": ', b'":')
    for marker in WIRE_MARKERS:
        if marker.text in start:
            return marker
    return None


def likely_wire(data: bytes) -> WireApi | None:
    """The wire whose marker is among the first bytes; None if no marker is."""
    marker = marker_in(data)
    return None if marker is None else marker.wire_api


_NAMING_KEYS: Final = ("type", "object", "event_type", "finish_reason")
"""Keys of an object whose values name its kind; any other value may be anything."""

_NEEDED_KEYS: Final[dict[bytes, tuple[str, ...]]] = {
    b'"done":': ("message", "response"),
    b'"stopReason"': ("output",),
    b'"type":"message"': ("content",),
}
"""Markers that are ordinary words -> keys of which an object of the wire has one, too."""


def marker_of(value: dict[str, Any]) -> WireMarker | None:
    """The marker of a JSON object itself, whatever the objects and lists inside it hold."""
    own: dict[str, Any] = {}
    for key, inner in value.items():
        is_name = key in _NAMING_KEYS and isinstance(inner, str)
        own[key] = inner[:100] if is_name else None
    marker = marker_in(json.dumps(own, separators=(",", ":")).encode())
    if marker is None:
        return None
    needed = _NEEDED_KEYS.get(marker.text)
    if needed is not None and not any(key in value for key in needed):
        return None
    if marker.text == b'"choices":':
        choices = value["choices"]
        first = choices[0] if isinstance(choices, list) and choices else None
        return marker._replace(is_body=isinstance(first, dict) and "message" in first)
    return marker
