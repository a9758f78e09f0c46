"""Encodes a response as a non-streaming `GenerateContentResponse`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamlib.request.report import Report
from streamlib.wires.gemini.encode_candidates import (
    MetadataField,
    block_reason,
    candidate,
    fields_of_candidate,
    fields_of_response,
    finish_reason,
    locate,
)
from streamlib.wires.gemini.encode_errors import error_body
from streamlib.wires.gemini.encode_parts import parts_of
from streamlib.wires.gemini.encode_usage import gemini_usage
from streamlib.wires.json_objects import without_none
from streamlib_parsers.accumulate import Choice, Response
from streamlib_parsers.events import FinishedChoice
from streamlib_parsers.items import JsonObject


def encode_body(response: Response, model: str | None, report: Report) -> bytes:
    """Returns a GenerateContentResponse, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    fields = [locate(key, value) for key, value in response.metadata.items()]
    blocked = block_reason(response.metadata)
    candidates: list[JsonObject] | None = None
    # A blocked prompt has no candidates.
    if not blocked or response.items:
        candidates = []
        for choice in _choices(response):
            candidates.append(_candidate(choice, fields, blocked, report))
    body = {
        "candidates": candidates,
        **fields_of_response(fields),
        "usageMetadata": gemini_usage(response.usage, report),
        "modelVersion": response.model or model,
        "responseId": response.response_id,
    }
    return msgspec.json.encode(without_none(body))


def _choices(response: Response) -> Iterable[Choice]:
    if response.choices:
        return response.choices
    stop = (response.stop_reason, response.native_stop_reason)
    return (Choice(0, response.items, *stop),)


def _candidate(
    choice: Choice, fields: list[MetadataField], blocked: str | None, report: Report
) -> JsonObject:
    parts: list[JsonObject] = []
    for item in choice.items:
        parts += parts_of(item, report)
    finish: str | None = None
    native = choice.native_stop_reason
    stop_reason = choice.stop_reason or "other"
    # A body is complete without a reason: where none was given, none is written.
    is_given = native is not None or stop_reason != "other"
    if is_given and (blocked is None or native != blocked):
        finish = finish_reason(FinishedChoice(choice.index, stop_reason, native), report)
    return candidate(parts, choice.index, fields_of_candidate(fields, choice.index), finish)
