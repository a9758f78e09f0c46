"""Builds Gemini chunks from parts, as events or as one array, and parses them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from streamlib_parsers import Failed, Notice, Response, ResponseEvent, accumulate, parser
from streamlib_parsers.items import ResponseItem

JsonObject = dict[str, Any]


def chunk(
    *parts: JsonObject, finish: Any = None, index: int | None = None, **keys: Any
) -> JsonObject:
    """One GenerateContentResponse of one candidate; without parts it has no content."""
    candidate: JsonObject = {}
    if parts:
        candidate["content"] = {"parts": list(parts), "role": "model"}
    if finish is not None:
        candidate["finishReason"] = finish
    if index is not None:
        candidate["index"] = index
    return {"candidates": [candidate], "responseId": "r1", "modelVersion": "gemini-x", **keys}


def text(value: str, **beside: Any) -> JsonObject:
    """A text part, with further keys of the part."""
    return {"text": value, **beside}


def call(name: str | None = None, args: Any = None, **more: Any) -> JsonObject:
    """A part with a functionCall; a signature and metadata stand beside it."""
    beside = {key: more.pop(key) for key in ("thoughtSignature", "partMetadata") if key in more}
    inner: JsonObject = {}
    if name:
        inner["name"] = name
    if args is not None:
        inner["args"] = args
    return {"functionCall": inner | more, **beside}


def partial_part(path: str, **value: Any) -> JsonObject:
    """A part of a streamed call, with one partial argument."""
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


def sse(*chunks: JsonObject, end: bytes = b"\r\n\r\n") -> bytes:
    """The chunks as server-sent events."""
    payloads = [json.dumps(item, ensure_ascii=False).encode() for item in chunks]
    return b"".join(b"data: " + payload + end for payload in payloads)


def array(*chunks: JsonObject) -> bytes:
    """The chunks as one JSON array, as sent without `alt=sse`."""
    payloads = [json.dumps(item, indent=1).encode() for item in chunks]
    return b"[" + b"\n,\r\n".join(payloads) + b"\n]\n"


def run(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    """The events of a stream that is read in these chunks of bytes."""
    stream = parser("gemini", **options)
    events: list[ResponseEvent] = []
    for data in chunks:
        events += stream.feed(data)
    return events + stream.close()


def read(*chunks: JsonObject, **options: Any) -> Response:
    """The response of these chunks."""
    return accumulate(run(sse(*chunks), **options))


def items_of(*parts: JsonObject, **options: Any) -> tuple[ResponseItem, ...]:
    """The items of these parts, each in a chunk of its own, without origin and response id."""
    response = read(*(chunk(part) for part in parts), chunk(finish="STOP"), **options)
    return tuple(
        msgspec.structs.replace(item, origin=None, response_id=None) for item in response.items
    )


def notice_codes(events: Iterable[ResponseEvent]) -> list[str]:
    """The codes of the notices, in order."""
    return [event.code for event in events if isinstance(event, Notice)]


def failure(events: list[ResponseEvent]) -> str:
    """The kind of the error that the events end with."""
    assert isinstance(events[-1], Failed)
    return events[-1].error.kind


BOOK = [
    chunk(call("book", willContinue=True, thoughtSignature="s")),
    chunk(partial_part("$.city", stringValue="Par", willContinue=True)),
    chunk(call(willContinue=True)),
    chunk(partial_part("$.city", stringValue='is "1"', willContinue=True)),
    chunk(partial_part("$.city", stringValue="")),
    chunk(
        partial_part("$.days[0].at", numberValue=1.0),
        partial_part("$.days[0].sure", boolValue=True),
    ),
    chunk(partial_part("$.days[1]", nullValue=None)),
]
"""A call whose arguments are streamed; its last part is missing."""
BOOKED = '{"city":"Paris \\"1\\"","days":[{"at":1.0,"sure":true},null]}'
"""Its arguments."""
