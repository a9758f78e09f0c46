"""The provider that comes with the library: a server on 127.0.0.1 (`streamlib serve`), for trying and for tests."""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ANYTHING

PROVIDER = Provider(
    name="loopback",
    parses_calls=True,
    wires=("messages", "responses", "chat", "gemini", "converse", "invoke", "ollama"),
    base_url="http://127.0.0.1:8800",
    wire_urls={
        "responses": "http://127.0.0.1:8800/v1",
        "chat": "http://127.0.0.1:8800/v1",
        "gemini": "http://127.0.0.1:8800/v1beta",
    },
    auth="none",
    key_optional=True,
    unsigned_thinking=True,
    chat=ANYTHING,
)
