"""The loopback provider: a real HTTP server on 127.0.0.1 that speaks every wire.

It sends a recording, or a response made from the request. It is `parse_request` and `encoder` and
little else, so whatever a wire can carry can be tried without a key.
"""

from __future__ import annotations

from streamlib.loopback.responses import echo_response
from streamlib.loopback.server import Behaviour, Fault, running, serve

__all__ = ["Behaviour", "Fault", "echo_response", "running", "serve"]
