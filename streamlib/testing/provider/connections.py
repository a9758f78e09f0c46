"""Functions for connections that HTTP and WebSocket share."""

from __future__ import annotations

import socket
import struct

import h11
from anyio.abc import SocketAttribute, SocketStream


def is_upgrade(request: h11.Request) -> bool:
    """Whether a request opens a WebSocket."""
    for name, value in request.headers:
        if name == b"upgrade" and value.lower() == b"websocket":
            return True
    return False


def reset_on_close(stream: SocketStream) -> None:
    """Makes the socket send RST instead of FIN when it is closed: SO_LINGER with 0 seconds."""
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
