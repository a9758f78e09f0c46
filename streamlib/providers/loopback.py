"""The loopback provider of this library (`streamlib serve`): every wire API on one port."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import ANYTHING
from streamlib.providers.websocket import WebSocketSettings
from streamlib.providers.wire_specs import WIRE_SPECS

URL: Final = "http://127.0.0.1:8800"

PROVIDER = Provider(
    name="loopback",
    parses_calls=True,
    wires=tuple(WIRE_SPECS),
    base_url=URL,
    wire_urls={name: URL + spec.root_path for name, spec in WIRE_SPECS.items() if spec.root_path},
    key_optional=True,
    auth="none",
    unsigned_thinking=True,
    chat=replace(ANYTHING, strict_schemas=True),  # its strict form has OpenAI's rules
    websocket=WebSocketSettings(lanes=32, in_flight=16, steers=True),
)


def loopback_at(url: str) -> Provider:
    """The loopback provider at another address, as `streamlib.testing.running` yields it.

    RouteTable([RouteRule("*", "loopback:*")], [loopback_at(url)])
    """
    urls = {wire: address.replace(URL, url) for wire, address in PROVIDER.wire_urls.items()}
    return replace(PROVIDER, base_url=url, wire_urls=urls)
