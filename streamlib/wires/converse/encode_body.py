"""Encodes a response as a non-streaming Converse body."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.bedrock_frames import error_body
from streamlib.wires.converse.encode_blocks import block_of, has_block
from streamlib.wires.converse.encode_envelope import (
    OWN_KEYS,
    STOP_FIELDS,
    converse_usage,
    native_stop,
)
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import JsonObject


def encode_body(response: Response, model: str | None, report: Report) -> bytes:
    """Returns a Converse body, or the error body of a response that failed.

    model is not used: the wire does not name it.
    """
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    foreign = not all(is_own(item, "converse") for item in response.items)
    content: list[JsonObject] = []
    for item in response.items:
        block = None
        if has_block(item):
            block = block_of(item, report)
        else:
            report.dropped(f"/{type(item).__name__}", "Converse has no such block")
        if block is not None:
            content.append(block)
    metadata: JsonObject = {}
    for key, value in response.metadata.items():
        if key in OWN_KEYS or not foreign:
            metadata[key] = value
    if response.stop_sequence:
        metadata.setdefault(STOP_FIELDS, {"stop_sequence": response.stop_sequence})
    body: dict[str, Any] = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": native_stop(response, report, foreign=foreign),
    }
    usage = converse_usage(response.usage, report, complete=foreign)
    if usage:
        body["usage"] = usage
    if foreign:
        # Clients of the wire rely on it.
        body["metrics"] = {"latencyMs": _latency(response)}
    return msgspec.json.encode({**body, **metadata})


def _latency(response: Response) -> int:
    """Returns the milliseconds until the last event; 0 if they are not known."""
    if response.timing is None or response.timing.last is None:
        return 0
    return int(response.timing.last * 1000)
