"""Where a request goes: provider, model, wire, and what the model can take."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct

from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.items import Origin, WireApi


class Target(Struct, frozen=True, gc=False):
    """A provider, one of its models, and the wire to speak."""

    provider: Provider
    model: str
    wire_api: WireApi
    base_url: str
    traits: Traits
    account: str | None = None

    @property
    def url(self) -> str:
        """Where to POST. The model's name is percent-encoded: it cannot leave its place in the path."""
        base = self.base_url.rstrip("/")
        path = self.provider.paths.get(self.wire_api) or WIRE_SPECS[self.wire_api].path
        if path.startswith("/v1/") and base.endswith("/v1"):
            base = base.removesuffix("/v1")
        return base + path.replace("{model}", quote(self.model, safe=""))

    @property
    def origin(self) -> Origin:
        """What items made here are stamped with."""
        return Origin(
            self.wire_api, self.provider.name, self.base_url.rstrip("/"), self.model, self.account
        )


class BuiltRequest(Struct, frozen=True, gc=False):
    """What a builder gives: the body, and headers beyond the provider's own."""

    body: dict[str, Any]
    headers: dict[str, str] = {}
