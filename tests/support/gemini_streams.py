"""Gemini streams made by hand: chunks from parts, dressed as events or as one array, and what the parser makes of them."""

from __future__ import annotations

import json
from typing import Any

from streamlib_parsers import Response, ResponseEvent, accumulate, parser

JsonObject = dict[str, Any]


def chunk(
    *parts: JsonObject, finish: Any = None, index: int | None = None, **keys: Any
) -> JsonObject:
    """One GenerateContentResponse of one candidate; without parts it has no content."""
    candidate: JsonObject = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    candidate |= {} if finish is None else {"finishReason": finish}
    return {
        "candidates": [candidate | ({} if index is None else {"index": index})],
        "responseId": "r1",
        "modelVersion": "gemini-x",
        **keys,
    }


def text(said: str, **beside: Any) -> JsonObject:
    return {"text": said, **beside}


def call(name: str | None = None, args: Any = None, **more: Any) -> JsonObject:
    beside = {key: more.pop(key) for key in ("thoughtSignature", "partMetadata") if key in more}
    inner = ({"name": name} if name else {}) | ({} if args is None else {"args": args}) | more
    return {"functionCall": inner, **beside}


def piece(path: str, **value: Any) -> JsonObject:
    """A part of a streamed call."""
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


def sse(*chunks: JsonObject, end: bytes = b"\r\n\r\n") -> bytes:
    return b"".join(
        b"data: " + json.dumps(one, ensure_ascii=False).encode() + end for one in chunks
    )


def array(*chunks: JsonObject) -> bytes:
    return b"[" + b"\n,\r\n".join(json.dumps(one, indent=1).encode() for one in chunks) + b"\n]\n"


def run(*pieces: bytes, **options: Any) -> list[ResponseEvent]:
    one = parser("gemini", **options)
    return [*(event for data in pieces for event in one.feed(data)), *one.close()]


def read(*chunks: JsonObject, **options: Any) -> Response:
    return accumulate(run(sse(*chunks), **options))
