"""How providers differ that serve Responses over WebSocket, as values: `Provider.websocket`."""

from __future__ import annotations

from msgspec import Struct


class WebSocketSettings(Struct, frozen=True, gc=False, omit_defaults=True):
    """Limits and headers of Responses over WebSocket. The defaults are those of one turn at a time.

    Attributes:
        headers: sent with the opening handshake.
        lanes: how many names of lanes (`stream_id`) a connection may use; 0: it has none.
        in_flight: how many responses of a connection run at once; further requests wait.
        seconds: how long a connection is used for new requests; None: without limit.
        steers: a running response may be steered.
        buffered_bytes: how many bytes of one response are kept for a reader who is slower than
            those of other lanes.
    """

    headers: dict[str, str] = {}
    lanes: int = 0
    in_flight: int = 1
    seconds: float | None = 3600.0
    steers: bool = False
    buffered_bytes: int = 64 * 2**20
