"""The models that a provider has: where it lists them, and its list in each known form.

{"data": [{"id": "gpt-5.6", …}]}                          OpenAI and those like it, Anthropic
{"models": [{"name": "models/gemini-4-argon", …}]}        Gemini; Ollama without the prefix
[{"id": "openai/gpt-4.1", …}]                             GitHub, Together
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from streamlib.providers import Provider
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request
from streamlib.request.endpoints import resolve_target
from streamlib_parsers.errors import ErrorInfo, ParseFailure
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.stream_error import invalid_request

LIST_KEYS: Final = ("data", "models")
"""Keys of the list in a body that is an object."""

NAME_KEYS: Final = ("id", "slug", "name", "model")
"""Keys of a model's name, the most specific first."""

GEMINI_PREFIX: Final = "models/"
"""Gemini lists every name with it, and accepts requests without."""


class ModelInfo(Struct, frozen=True, gc=False):
    """A model that a provider has.

    Attributes:
        id: the model's name, as in `"provider:id"`.
        raw: the provider's whole entry.
    """

    id: str
    raw: JsonObject


def models_request(
    provider: Provider, wire_api: WireApi | None = None, base_url: str | None = None
) -> Request:
    """The request for a provider's list of models.

    Raises:
        StreamError: `invalid_request`; the provider has no such list.
    """
    target = resolve_target(provider, "models", wire_api, base_url)
    path = provider.models_path
    if path is None:
        path = WIRE_SPECS[target.wire_api].models_path
    if not path:
        raise invalid_request(f"{provider.name} has no list of models", "models")
    url = path if path.startswith("https://") else target.url_at(path)
    headers = dict(provider.headers)
    return Request("GET", url, headers, b"", [], target.wire_api, "", target.origin)


def read_models(body: bytes) -> list[ModelInfo] | ErrorInfo:
    """The models in a response body, in its order. Entries without a name are left out."""
    try:
        value = decode_any(body)
    except ParseFailure:
        return ErrorInfo("malformed", "the list of models is not JSON", code="models")
    entries = _entries(value)
    if entries is None:
        return ErrorInfo("malformed", "the response holds no list of models", code="models")
    models: list[ModelInfo] = []
    for entry in entries:
        if isinstance(entry, dict):
            name = _name(entry)
            if name:
                models.append(ModelInfo(name, entry))
    return models


def _entries(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for key in LIST_KEYS:
            entries = value.get(key)
            if isinstance(entries, list):
                return entries
    return None


def _name(entry: dict[str, Any]) -> str:
    for key in NAME_KEYS:
        name = entry.get(key)
        if isinstance(name, str) and name:
            return name.removeprefix(GEMINI_PREFIX)
    return ""
