"""The loopback provider: a real HTTP server on 127.0.0.1 that answers every wire, from a recording or from the request itself.

It is `parse_request` and `encoder` and nothing else of its own, so whatever a wire can say can be tried without a key.
"""

from __future__ import annotations

from streamlib.loopback.responses import echo_response
from streamlib.loopback.server import Behaviour, Fault, running, serve

__all__ = ["Behaviour", "Fault", "echo_response", "running", "serve"]
