"""Finish and block reasons of Gemini: their meaning, and their numbers for integer enums."""

from __future__ import annotations

from typing import Final

from streamlib_parsers.events import StopReason

__all__ = [
    "BLOCK_NUMBERS",
    "CONTINUATION",
    "FAILURE_REASONS",
    "FINISH_NUMBERS",
    "FINISH_NUMBERS_VERTEX",
    "STOP_REASONS",
]

STOP_REASONS: Final[dict[str, StopReason]] = {
    # Both are "tool_calls" where the candidate has a completed call. FUNCTION_CALL is not Google's,
    # but servers of this wire have been recorded with it.
    "STOP": "stop",
    "FUNCTION_CALL": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "OTHER": "other",
    "LANGUAGE": "other",
    "IMAGE_OTHER": "other",
    "NO_IMAGE": "other",
    "FINISH_REASON_UNSPECIFIED": "other",
}
"""Any other reason is `other` too, with a Notice."""

FAILURE_REASONS: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
    }
)
"""Reasons of a generation that failed: it must not end as `Completed`."""

CONTINUATION: Final = "CONTINUATION"
"""Not an end: another request, with the `continuationToken` of the metadata, continues it."""

FINISH_NUMBERS: Final[dict[int, str]] = {
    0: "FINISH_REASON_UNSPECIFIED",
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    5: "OTHER",
    6: "LANGUAGE",
    7: "BLOCKLIST",
    8: "PROHIBITED_CONTENT",
    9: "SPII",
    10: "MALFORMED_FUNCTION_CALL",
    11: "IMAGE_SAFETY",
    12: "UNEXPECTED_TOOL_CALL",
    13: "TOO_MANY_TOOL_CALLS",
    14: "IMAGE_PROHIBITED_CONTENT",
    15: "IMAGE_OTHER",
    16: "NO_IMAGE",
    17: "IMAGE_RECITATION",
}
"""Numbers of google.ai.generativelanguage.v1beta; clients that ask for integer enums get them."""
FINISH_NUMBERS_VERTEX: Final[dict[int, str]] = {
    0: "FINISH_REASON_UNSPECIFIED",
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    5: "OTHER",
    6: "BLOCKLIST",
    7: "PROHIBITED_CONTENT",
    8: "SPII",
    9: "MALFORMED_FUNCTION_CALL",
    10: "MODEL_ARMOR",
}
"""Numbers of google.cloud.aiplatform.v1beta1, which differ from 6 on.

Only Vertex sends `createTime` and `trafficType`, which shows which numbers are meant.
"""
BLOCK_NUMBERS: Final[dict[int, str]] = {
    1: "SAFETY",
    2: "OTHER",
    3: "BLOCKLIST",
    4: "PROHIBITED_CONTENT",
    5: "IMAGE_SAFETY",
}
"""Numbers of `promptFeedback.blockReason`."""
