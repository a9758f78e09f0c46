"""Candidates of a Gemini response: their metadata and why they ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from streamlib.request.report import Report
from streamlib_parsers.events import FinishedChoice, StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.wires.gemini import BLOCK_NUMBERS, STOP_REASONS

# --- metadata ---

CANDIDATE_KEYS: Final = frozenset(
    {
        "safetyRatings",
        "citationMetadata",
        "groundingMetadata",
        "groundingAttributions",
        "urlContextMetadata",
        "logprobsResult",
        "avgLogprobs",
        "finishMessage",
        "tokenCount",
        "continuationToken",
    }
)
"""Metadata of a candidate. Other keys are read from both levels, and written to the response."""
_PATH: Final = re.compile(r"candidates\[(\d{1,4})\]\.(.+)", re.DOTALL)
"""Under such keys the parser reports metadata of another level or choice."""
_AFTER_CANDIDATES: Final = 1 << 20
"""Position of the response's own fields: a parser reads them after all candidates."""


class MetadataField(NamedTuple):
    """A metadata field and where it belongs.

    choice: index of its candidate; None for the response itself.
    in_content: whether it belongs in the candidate's `content`.
    """

    choice: int | None
    key: str
    value: Any
    in_content: bool = False

    @property
    def position(self) -> int:
        """When a parser reads the field, in comparison with others of the same chunk."""
        if self.choice is None:
            return _AFTER_CANDIDATES
        return self.choice


def locate(key: str, value: Any) -> MetadataField:
    """The field of a metadata key, such as `candidates[1].content.role`."""
    path = _PATH.fullmatch(key)
    choice = 0
    if path:
        choice = int(path[1])
        key = path[2]
    if key.startswith("content."):
        return MetadataField(choice, key.removeprefix("content."), value, in_content=True)
    if path or key in CANDIDATE_KEYS:
        return MetadataField(choice, key, value)
    return MetadataField(None, key, value)


def fields_of_candidate(fields: Iterable[MetadataField], choice: int) -> list[MetadataField]:
    """The fields that belong to a candidate."""
    return [field for field in fields if field.choice == choice]


def fields_of_response(fields: Iterable[MetadataField]) -> JsonObject:
    """The fields that belong to the response itself."""
    return {field.key: field.value for field in fields if field.choice is None}


def block_reason(metadata: JsonObject) -> str | None:
    """Why the prompt was blocked, if it was, under the name that the parser uses."""
    feedback = metadata.get("promptFeedback")
    if not isinstance(feedback, dict):
        return None
    reason: int | str | None = feedback.get("blockReason")
    if isinstance(reason, int):
        return BLOCK_NUMBERS.get(reason, str(reason))
    return reason


def candidate(
    parts: Iterable[JsonObject],
    choice: int,
    fields: Iterable[MetadataField] = (),
    finish: str | None = None,
) -> JsonObject:
    """One candidate.

    Args:
        parts: its content.
        choice: its index.
        fields: its metadata.
        finish: its `finishReason`, if it ended.
    """
    content: JsonObject = {"parts": list(parts), "role": "model"}
    metadata: JsonObject = {}
    for field in fields:
        if field.in_content:
            content[field.key] = field.value
        else:
            metadata[field.key] = field.value
    body: JsonObject = {"content": content}
    if finish:
        body["finishReason"] = finish
    body["index"] = choice
    return {**body, **metadata}


# --- the end ---

NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "OTHER",
    "other": "OTHER",
}
_ENUM_NAME: Final = re.compile("[A-Z0-9_]+")
"""The form of this wire's reasons, including future ones."""


def finish_reason(end: FinishedChoice, report: Report) -> str:
    """The native `finishReason` if it is one of this wire, else the nearest one."""
    native = end.native_stop_reason or ""
    meaning = STOP_REASONS.get(native)
    if meaning == end.stop_reason:
        return native
    # The wire has no reason for calls: its own is STOP.
    if meaning == "stop" and end.stop_reason == "tool_calls":
        return native
    if meaning is None and end.stop_reason == "other" and _ENUM_NAME.fullmatch(native):
        return native
    nearest = NATIVE_STOP[end.stop_reason]
    if STOP_REASONS.get(nearest, "other") not in (end.stop_reason, "stop"):
        report.dropped("/stop_reason", f"Gemini has no value for {end.stop_reason}: {nearest}")
    return nearest
