"""Lists of models, and single models, in the format that each client reads.

The SDKs of OpenAI, Anthropic and Cohere request the same path, `/v1/models`; other parts of the
request identify the SDK. Google's SDK uses another path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs

from streamlib.asgi import Scope
from streamlib.gateway.models import ServedModel
from streamlib_parsers.items import JsonObject, WireApi

OWNER: Final = "streamlib"

PAGE_SIZES: Final[Mapping[WireApi, str]] = {
    "messages": "limit",
    "gemini": "pageSize",
    "cohere": "page_size",
}
"""Wire -> query parameter with the number of models on a page. OpenAI's list has one page."""

GEMINI_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def wire_of_client(scope: Scope) -> WireApi:
    """The wire of a client that requests models, from its ASGI scope."""
    if "/v1beta/" in scope["path"]:
        return "gemini"
    headers: dict[bytes, bytes] = {name.lower(): value for name, value in scope["headers"]}
    if b"anthropic-version" in headers:
        return "messages"
    if headers.get(b"x-fern-sdk-name") == b"cohere":
        return "cohere"
    # Google's SDK sends its key in this header, on `/v1` too.
    if b"x-goog-api-key" in headers:
        return "gemini"
    return "chat"


def model_object(wire_api: WireApi, model: ServedModel) -> JsonObject:
    """One model, in the format of a wire."""
    match wire_api:
        case "messages":
            return _anthropic(model)
        case "gemini":
            return _google(model)
        case "cohere":
            return _cohere(model)
        case _:
            return _openai(model)


def model_list(
    wire_api: WireApi, models: Sequence[ServedModel], query: Mapping[str, str]
) -> JsonObject:
    """A page of models, in the format of a wire.

    Args:
        wire_api: the client's wire.
        models: all models that the client may request.
        query: the query of the request: the length of the page, and the end of the page before.
    """
    page, has_more = _page(wire_api, models, query)
    objects = [model_object(wire_api, model) for model in page]
    last = page[-1].name if page else None
    match wire_api:
        case "messages":
            first = page[0].name if page else None
            return {"data": objects, "has_more": has_more, "first_id": first, "last_id": last}
        case "gemini":
            body: JsonObject = {"models": objects}
            if has_more:
                body["nextPageToken"] = last
            return body
        case "cohere":
            body = {"models": objects}
            if has_more:
                body["next_page_token"] = last
            return body
        case _:
            return {"object": "list", "data": objects}


def query_of(scope: Scope) -> dict[str, str]:
    """The query of a request, from its ASGI scope; repeated names have their last value."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return {name: values[-1] for name, values in query.items()}


def _page(
    wire_api: WireApi, models: Sequence[ServedModel], query: Mapping[str, str]
) -> tuple[Sequence[ServedModel], bool]:
    """The models of a page, and whether there are more in its direction."""
    size = len(models)
    text = query.get(PAGE_SIZES.get(wire_api, ""), "")
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) < size:
        size = int(text[:9])
    names = [model.name for model in models]
    before = query.get("before_id")
    if wire_api == "messages" and before in names:
        end = names.index(before)
        start = max(0, end - size)
        return models[start:end], start > 0
    # A page is identified by the last model of the page before it.
    start = 0
    for name in ("after_id", "pageToken", "page_token"):
        after = query.get(name)
        if after in names:
            start = names.index(after) + 1
    return models[start : start + size], start + size < len(models)


def _openai(model: ServedModel) -> JsonObject:
    return {"id": model.name, "object": "model", "created": model.created, "owned_by": OWNER}


def _anthropic(model: ServedModel) -> JsonObject:
    created = datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": created,
        "lifecycle": "active",
        "max_input_tokens": model.input_tokens,
        "max_tokens": model.output_tokens,
    }


def _google(model: ServedModel) -> JsonObject:
    body: JsonObject = {
        "name": f"models/{model.name}",
        "displayName": model.name,
        "supportedGenerationMethods": list(GEMINI_METHODS),
    }
    if model.input_tokens is not None:
        body["inputTokenLimit"] = model.input_tokens
    if model.output_tokens is not None:
        body["outputTokenLimit"] = model.output_tokens
    return body


def _cohere(model: ServedModel) -> JsonObject:
    body: JsonObject = {"name": model.name, "endpoints": ["chat"], "finetuned": False}
    if model.input_tokens is not None:
        body["context_length"] = model.input_tokens
    return body
