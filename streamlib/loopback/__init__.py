"""The loopback provider: a real HTTP server on 127.0.0.1 that speaks every wire.

It sends a recording, scripted turns, or a response made from the request. It consists mostly of
`parse_request` and `encoder`, so every feature of a wire can be tried without a key.
"""

from __future__ import annotations

from streamlib.loopback.behaviour import Behaviour, ReceivedRequest
from streamlib.loopback.responses import echo_response
from streamlib.loopback.server import running, serve
from streamlib.loopback.turns import Turn, TurnContent, TurnLike
from streamlib.wires.faults import Fault

__all__ = [
    "Behaviour",
    "Fault",
    "ReceivedRequest",
    "Turn",
    "TurnContent",
    "TurnLike",
    "echo_response",
    "running",
    "serve",
]
