"""What all requests of a gateway share."""

from __future__ import annotations

from msgspec import Struct

from streamlib.client import Client
from streamlib.gateway.client_state import ClientState
from streamlib.gateway.request_body import Workers
from streamlib.gateway.target_pool import TargetPool


class Services(Struct, frozen=True, kw_only=True, eq=False):
    """What all requests of a running gateway share.

    Attributes:
        client: sends requests to targets.
        workers: builds and decodes large requests.
        pool: chooses targets.
        keep_alive: seconds of silence before a client is sent a keep-alive.
        state: stores state for clients; None: nothing is stored.
    """

    client: Client
    workers: Workers
    pool: TargetPool
    keep_alive: float
    state: ClientState | None = None
