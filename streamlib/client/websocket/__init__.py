"""Responses over WebSocket: one connection, several responses side by side. Experimental.

`Client.connect` makes a `Connection`; `Connection.stream` the stream of one response. The files:

    connection.py     what the caller uses
    lane_stream.py    `ResponseStream` with steering
    lane_source.py    the source of a stream: sends a request on a lane
    lane_socket.py    one socket: who reads it, who waits
    continuation.py   what need not be sent again

Which response a message belongs to is decided in `streamlib_parsers.wires.responses.lanes`.
"""

from __future__ import annotations

from streamlib.client.websocket.connection import Connection
from streamlib.client.websocket.lane_stream import LaneStream

__all__ = ["Connection", "LaneStream"]
