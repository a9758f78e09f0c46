"""Any server: `"custom:NAME"` with `base_url=` and `wire_api=`.

It needs no key, adds no fields and refuses none.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ANYTHING
from streamlib.providers.websocket import WebSocketSettings
from streamlib_parsers.protocol import WIRE_APIS

PROVIDER = Provider(
    name="custom",
    wires=("chat", *(wire for wire in WIRE_APIS if wire != "chat")),
    key_optional=True,
    unsigned_thinking=True,
    chat=ANYTHING,
    websocket=WebSocketSettings(),
)
