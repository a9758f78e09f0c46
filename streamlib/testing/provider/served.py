"""One response of the loopback provider, ready to be sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from streamlib.testing.provider.behaviour import Behaviour
from streamlib.wires.encoders import error_body
from streamlib.wires.frame_offsets import frame_offsets
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

JSON: Final = "application/json"


class ServedResponse(NamedTuple):
    """One response: status, headers and body, and how it is sent."""

    status: int
    media_type: str
    chunks: Sequence[bytes]
    behaviour: Behaviour


def error_response(
    wire_api: WireApi, error: ErrorInfo, status: int, behaviour: Behaviour
) -> ServedResponse:
    """An HTTP error with a body of the wire."""
    body = msgspec.json.encode(error_body(wire_api, error))
    if error.retry_after is not None:
        headers = {"retry-after": f"{error.retry_after:g}", **behaviour.headers}
        behaviour = msgspec.structs.replace(behaviour, headers=headers)
    return ServedResponse(status, JSON, [body], behaviour)


def split_body(wire_api: WireApi, body: bytes, size: int | None) -> Sequence[bytes]:
    """The body in chunks of `size` bytes; None: one event a chunk."""
    offsets: Iterable[tuple[int, int]]
    if size is None:
        offsets = frame_offsets(wire_api, body)
    else:
        offsets = zip(range(0, len(body), size), range(size, len(body) + size, size), strict=True)
    return [body[start:end] for start, end in offsets]
