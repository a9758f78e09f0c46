"""What models a provider has: where it lists them, and its list in whatever form.

{"data": [{"id": "gpt-5.6", …}]}                          OpenAI and its kin, Anthropic
{"models": [{"name": "models/gemini-4-argon", …}]}        Gemini; Ollama without the folder
[{"id": "openai/gpt-4.1", …}]                             GitHub, Together
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from streamlib.errors import invalid_request
from streamlib.providers import Provider
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request
from streamlib.request.endpoints import resolve_target
from streamlib_parsers.errors import ErrorInfo, ParseFailure
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.json_text import decode_any

LISTS: Final = ("data", "models")
"""Where the list stands in an answer that is an object."""
NAMES: Final = ("id", "slug", "name", "model")
"""Where a model's name stands."""
FOLDER: Final = "models/"
"""What Gemini writes before every name, and takes requests without."""


class ModelInfo(Struct, frozen=True, gc=False):
    """A model that a provider has. `id` is what stands after the colon of `"provider:model"`; `raw` all that the provider says of it."""

    id: str
    raw: JsonObject


def models_request(
    provider: Provider, wire_api: WireApi | None = None, base_url: str | None = None
) -> Request:
    """The request for the list; a provider without one is `invalid_request`."""
    where = resolve_target(provider, "models", wire_api, base_url)
    path = (
        WIRE_SPECS[where.wire_api].models_path
        if provider.models_path is None
        else provider.models_path
    )
    if not path:
        raise invalid_request(f"{provider.name} has no list of models", "models")
    base = where.base_url.rstrip("/")
    if path.startswith("/v1/") and base.endswith("/v1"):
        base = base.removesuffix("/v1")
    url = path if path.startswith("https://") else base + path
    return Request("GET", url, dict(provider.headers), b"", [], where.wire_api, "", where.origin)


def read_models(body: bytes) -> list[ModelInfo] | ErrorInfo:
    """The models of an answer, in its order; what has no name is left out."""
    try:
        answer = decode_any(body)
    except ParseFailure:
        return ErrorInfo("malformed", "the list of models is no JSON", code="models")
    found = (
        next((answer[key] for key in LISTS if isinstance(answer.get(key), list)), None)
        if isinstance(answer, dict)
        else answer
    )
    if not isinstance(found, list):
        return ErrorInfo("malformed", "the answer holds no list of models", code="models")
    named = ((_name(one), one) for one in found if isinstance(one, dict))
    return [ModelInfo(name, one) for name, one in named if name]


def _name(raw: dict[str, Any]) -> str:
    texts = (raw.get(key) for key in NAMES)
    return next((text for text in texts if isinstance(text, str) and text), "").removeprefix(FOLDER)
