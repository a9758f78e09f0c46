"""Where a request goes: provider, model, wire, and what the model takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.report import Report
from streamlib_parsers.items import JsonObject, Origin, WireApi


class Target(Struct, frozen=True, gc=False):
    """A provider, one of its models, and the wire API to use.

    Attributes:
        base_url: without variables.
        account: sent in the provider's account header, and part of the origin.
    """

    provider: Provider
    model: str
    wire_api: WireApi
    base_url: str
    traits: Traits
    account: str | None = None

    @property
    def url(self) -> str:
        """The URL to POST to. The model's name is percent-encoded: it stays one path segment."""
        path = self.provider.paths.get(self.wire_api) or WIRE_SPECS[self.wire_api].path
        if "{model}" in path:
            path = path.replace("{model}", quote(self.model, safe=""))
        return self.url_at(path)

    def url_at(self, path: str) -> str:
        """The URL of a path below the base URL, which may end with the version that begins it."""
        base = self.base_url.rstrip("/")
        if path.startswith("/v1/"):
            base = base.removesuffix("/v1")
        return base + path

    @property
    def origin(self) -> Origin:
        """The origin of items made at this target."""
        base = self.base_url.rstrip("/")
        return Origin(self.wire_api, self.provider.name, base, self.model, self.account)


class BuiltRequest(Struct, frozen=True, gc=False):
    """What a builder returns.

    Attributes:
        body: the request body, before the provider's own fields.
        headers: headers beyond the provider's own.
        headers_in_body: names of headers that the builder has moved into the body: they are not
            sent as headers too.
        merged_extra: keys of `Prompt.extra` that the body contains already, as the provider takes
            them.
        query: of the URL, without its question mark.
    """

    body: dict[str, Any]
    headers: dict[str, str] = {}
    headers_in_body: tuple[str, ...] = ()
    merged_extra: tuple[str, ...] = ()
    query: str = ""


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The target of one build and the report of its changes. A wire adds state in a subclass."""

    target: Target
    report: Report
    """Filled while the request is built; read once the body is complete."""


def continues_stored_history(extra: JsonObject | None, wire_api: WireApi) -> bool:
    """Whether a request with this `Prompt.extra` continues a history that the provider stores."""
    return any((extra or {}).get(name) for name in WIRE_SPECS[wire_api].stored_history)
