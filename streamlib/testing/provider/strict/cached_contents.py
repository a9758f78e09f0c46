"""Cached content of Gemini: created by one request and named by others until it is deleted.

    POST   /v1beta/cachedContents {"model": "models/gemini-…", "contents": […]}
    GET    /v1beta/cachedContents   /v1beta/cachedContents/{id}
    DELETE /v1beta/cachedContents/{id}

Nothing is really cached: the content that a request names must exist, and be for its model.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from streamlib.testing.provider.strict.ledger import Ledger
from streamlib_parsers.items import JsonObject

PATH: Final = re.compile(r"/v1(?:beta)?/(cachedContents)(/[\w-]+)?")

LIFETIME: Final = ("2025-01-01T00:00:00Z", "2025-01-01T01:00:00Z")
"""Creation time and expiry time of all cached content."""


class CacheResponse(NamedTuple):
    """The HTTP response to a request about cached content."""

    status: int
    body: bytes


def cache_response(ledger: Ledger, method: str, path: str, body: bytes) -> CacheResponse | None:
    """The response to a request about cached content; None for any other path.

    Args:
        ledger: holds the cached content that exists.
        method: HTTP method.
        path: path of the request.
        body: body of the request.
    """
    match = PATH.fullmatch(path.partition("?")[0])
    if match is None:
        return None
    name = match[1] + (match[2] or "")
    if match[2] is None:
        if method == "POST":
            return _created(ledger, body)
        listed = [_resource(known, model) for known, model in ledger.cached.items()]
        return _sent(200, {"cachedContents": listed} if listed else {})
    model = ledger.cached.get(name)
    if model is None:
        return _error(403, "PERMISSION_DENIED", "CachedContent not found (or permission denied)")
    if method == "DELETE":
        del ledger.cached[name]
        return _sent(200, {})
    return _sent(200, _resource(name, model))


def _created(ledger: Ledger, body: bytes) -> CacheResponse:
    try:
        value = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        model = msgspec.json.decode(value["model"], type=str)
    except (msgspec.MsgspecError, KeyError):
        message = "* CreateCachedContentRequest.model: unexpected model name format\n"
        return _error(400, "INVALID_ARGUMENT", message)
    name = f"cachedContents/loopback{ledger.next_number():06}"
    ledger.cached[name] = model.removeprefix("models/")
    return _sent(200, _resource(name, ledger.cached[name]))


def _resource(name: str, model: str) -> JsonObject:
    created, expires = LIFETIME
    return {
        "name": name,
        "model": f"models/{model}",
        "createTime": created,
        "updateTime": created,
        "expireTime": expires,
        "usageMetadata": {"totalTokenCount": 4096},
    }


def _error(code: int, status: str, message: str) -> CacheResponse:
    return _sent(code, {"error": {"code": code, "message": message, "status": status}})


def _sent(status: int, body: JsonObject) -> CacheResponse:
    return CacheResponse(status, msgspec.json.encode(body))
