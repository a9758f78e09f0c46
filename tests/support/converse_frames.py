"""Frames of a Bedrock ConverseStream, and what the parser makes of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from streamlib_parsers import (
    ResponseEvent,
)
from streamlib_parsers.framing.eventstream import encode_message
from tests.support import wires

Json = dict[str, Any]

HALVES = '"\\ud83d"', '"\\ude00"'
"""An emoji as JSON text, split between its UTF-16 halves."""


def event(name: str, /, **payload: Any) -> bytes:
    return raw_event(name, json.dumps({**payload, "p": "abcdefg"}).encode())


def raw_event(name: str, payload: bytes) -> bytes:
    return encode_message(
        {":event-type": name, ":content-type": "application/json", ":message-type": "event"},
        payload,
    )


def exception(name: str, **payload: Any) -> bytes:
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(headers, json.dumps(payload).encode())


def begin(index: int, /, **start: Any) -> bytes:
    return event("contentBlockStart", contentBlockIndex=index, start=start)


def delta(index: int, /, **member: Any) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=member)


def stop(index: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=index)


def texts(index: int, *fragments: str) -> bytes:
    return b"".join(delta(index, text=fragment) for fragment in fragments) + stop(index)


def call(index: int, *fragments: str, **start: Any) -> bytes:
    use = {"toolUseId": "tooluse_1", "name": "get_weather", **start}
    return (
        begin(index, toolUse=use)
        + b"".join(delta(index, toolUse={"input": fragment}) for fragment in fragments)
        + stop(index)
    )


def end(reason: str = "end_turn", **values: Any) -> bytes:
    return event("messageStop", stopReason=reason, **values)


START = event("messageStart", role="assistant")
USAGE = {"inputTokens": 371, "outputTokens": 77, "totalTokens": 448}
METADATA = event("metadata", usage=USAGE, metrics={"latencyMs": 1251})
TAIL = end() + METADATA


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    return wires.events_of("converse", *chunks, **options)


def items_of(*chunks: bytes) -> list[Any]:
    response = wires.response_of("converse", START, *chunks, TAIL)
    assert response.error is None
    return [msgspec.structs.replace(item, origin=None) for item in response.items]


def codes(events: list[ResponseEvent]) -> list[str]:
    return [event.code for event in events if hasattr(event, "code")]


def error_kind(*chunks: bytes) -> str:
    return wires.error_of("converse", *chunks).kind
