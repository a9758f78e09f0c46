"""Synchronous clients of the tests' providers."""

from __future__ import annotations

from typing import Any

from streamlib import SyncClient
from streamlib.providers import Provider
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.clients import KEY


def make_sync_client(url: str, http: Any = None, **options: Any) -> SyncClient:
    """A client of a provider at that address, as `make_client` makes one."""
    provider = Provider(name="faulty", wires=WIRE_APIS, base_url=url, auth="x-api-key")
    defaults: dict[str, Any] = {"providers": (provider,), "api_key": KEY, "jitter": lambda: 0.0}
    return SyncClient(**{**defaults, "http": http, **options})
