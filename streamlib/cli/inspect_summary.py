"""The output of `streamlib inspect --json` for a response. Its keys are a stable format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from streamlib.inspection.document import Finding
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import Completed, Passthrough, ResponseEvent
from streamlib_parsers.items import CustomToolCall, FunctionCall, ServerToolCall
from streamlib_parsers.response import Response


def summary(
    name: str, events: Sequence[ResponseEvent], findings: Sequence[Finding]
) -> dict[str, Any]:
    """The JSON object of one file.

    Args:
        name: name of the file.
        events: events of the response.
        findings: findings about it.
    """
    response = accumulate(events)
    is_completed = any(isinstance(event, Completed) for event in events)
    event_counts = Counter(type(event).__name__ for event in events)
    unknown_counts = Counter(event.event for event in events if isinstance(event, Passthrough))
    error_kind = None
    error_message = None
    if response.error is not None:
        error_kind = response.error.kind
        error_message = response.error.message
    return {
        "file": name,
        "response_id": response.response_id,
        "model": response.model,
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "tool_calls": calls(response),
        "server_tools": server_calls(response),
        "stop_reason": response.stop_reason,
        "usage": msgspec.to_builtins(response.usage),
        "terminal": "completed" if is_completed else "failed",
        "error_kind": error_kind,
        "error": error_message,
        "events": event_counts,
        "passthrough": unknown_counts,
        "notices": [notice.code for notice in response.notices],
        "findings": msgspec.to_builtins(findings),
    }


def calls(response: Response) -> list[dict[str, Any]]:
    """Every call that was received, incomplete ones too: they are shown, never executed."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, FunctionCall):
            calls.append(_call(item.call_id, item.name, item.arguments, item.status))
        elif isinstance(item, CustomToolCall):
            calls.append(_call(item.call_id, item.name, item.input, item.status))
    return calls


def server_calls(response: Response) -> list[dict[str, Any]]:
    """Every call that the provider runs itself."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, ServerToolCall):
            calls.append(_call(item.call_id, item.name, item.arguments, item.status))
    return calls


def _call(call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments, "status": status}
