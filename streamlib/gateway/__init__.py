"""The gateway serves clients of one wire with models of another. Needs the extra `gateway`.

It is `parse_request`, `Client` and `encoder` with a route table between them; no code here is about
a pair of wires.
"""

from __future__ import annotations

try:
    from streamlib.gateway.app import Gateway, gateway
except ModuleNotFoundError as error:
    # A missing module of our own is a defect, not a missing extra.
    if error.name is None or error.name.startswith("streamlib"):
        raise
    raise ModuleNotFoundError(
        f"streamlib.gateway needs {error.name}: pip install 'streamlib[gateway]'",
        name=error.name,
    ) from None

from streamlib.gateway.clients.named_clients import NamedClient
from streamlib.gateway.state.store import (
    MemoryStateStore,
    StateLimits,
    StateStore,
    StateUnavailableError,
    open_state,
)
from streamlib.gateway.targets.routes import (
    RouteFile,
    RouteRule,
    RouteTable,
    RouteTo,
    load_file,
    load_table,
    read_file,
    read_route,
    read_table,
)
from streamlib.gateway.watch.observer import AccessRefusal, Exchange, Observer
from streamlib.gateway.watch.record import ExchangeFiles

__all__ = [
    "AccessRefusal",
    "Exchange",
    "ExchangeFiles",
    "Gateway",
    "MemoryStateStore",
    "NamedClient",
    "Observer",
    "RouteFile",
    "RouteRule",
    "RouteTable",
    "RouteTo",
    "StateLimits",
    "StateStore",
    "StateUnavailableError",
    "gateway",
    "load_file",
    "load_table",
    "open_state",
    "read_file",
    "read_route",
    "read_table",
]
