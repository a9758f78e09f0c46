"""Gemini Interactions: the interaction beside its steps: id, status, usage, errors."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ParseFailure, generation_failed
from streamlib_parsers.events import StopReason
from streamlib_parsers.json_text import objects_at, string_or_none
from streamlib_parsers.usage import overlay
from streamlib_parsers.wires.interactions.token_counts import usage

STOP_REASONS: Final[dict[str, StopReason]] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
}
"""Statuses that complete an interaction."""

UNFINISHED: Final = frozenset({"queued", "in_progress"})
"""Statuses of an interaction that goes on without this connection."""

_HANDLED: Final = frozenset({"id", "model", "agent", "object", "status", "steps", "usage"})
"""Keys of an interaction that are not metadata."""

_CONTINUATION: Final = "continuation_token"

_STATUS_NAMES: Final = {
    1: "CANCELLED",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    11: "OUT_OF_RANGE",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    16: "UNAUTHENTICATED",
}
"""Number -> name of the `google.rpc.Status` codes that a step's error has."""


class Envelope:
    """Reads what the events report of the interaction itself."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        self.status: str | None = None
        """The status sent last; named in the error if the stream is truncated."""
        self.step_error: dict[str, Any] | None = None
        """`error` of a step, the reason why the interaction fails."""
        self._usage: dict[str, Any] = {}
        """The usage object, merged over the stream."""
        self._token: str | None = None
        """The newest continuation token."""

    def read(self, interaction: dict[str, Any]) -> None:
        """Reads an interaction: all of it, or an update of some keys."""
        model = string_or_none(interaction, "model") or string_or_none(interaction, "agent")
        # Without storage the id is "".
        self._assembler.identify(string_or_none(interaction, "id"), model)
        self.status = string_or_none(interaction, "status") or self.status
        self.emit_metadata({k: v for k, v in interaction.items() if k not in _HANDLED})
        self.read_usage(interaction.get("usage"))

    def emit_metadata(self, values: dict[str, Any]) -> None:
        """Emits the keys that have a value."""
        known = {key: value for key, value in values.items() if value is not None}
        token = string_or_none(known, _CONTINUATION)
        if token is not None:
            self._token = token
        self._assembler.metadata(known)

    def read_usage(self, raw: Any) -> None:
        """Reads a usage object; the newest counts replace the earlier ones."""
        if isinstance(raw, dict) and raw:
            self._usage = overlay(self._usage, raw)
            self._assembler.usage(usage(self._usage))

    def check_end(self, interaction: dict[str, Any]) -> None:
        """Checks that an interaction which ended is complete.

        Raises:
            ParseFailure: it failed, or was cancelled.
        """
        # The completed event decides: if it has no token, earlier tokens are void.
        if self._token is not None and not interaction.get(_CONTINUATION):
            self._assembler.metadata({_CONTINUATION: None})
        if self.status == "cancelled":
            raise ParseFailure(
                ErrorInfo("cancelled", "the interaction was cancelled", code="cancelled")
            )
        if self.status == "failed":
            raise self._failure(interaction)

    def _failure(self, interaction: dict[str, Any]) -> ParseFailure:
        errors = objects_at(interaction, "errors")
        if self.step_error is not None:
            errors.append(self.step_error)
        for error in errors:
            code = error.get("code")
            if isinstance(code, int) and code in _STATUS_NAMES:
                error = {**error, "status": _STATUS_NAMES[code]}  # noqa: PLW2901
            if error.get("message") or error.get("code"):
                return ParseFailure(classify(None, {"error": error}))
        return generation_failed("failed")
