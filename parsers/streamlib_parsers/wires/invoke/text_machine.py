"""Bedrock InvokeModel: the machine of text families, driven by a row of `FAMILIES`."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.bedrock import at_path
from streamlib_parsers.errors import truncated
from streamlib_parsers.items import JsonObject, Message
from streamlib_parsers.json_text import first_text, rest_of
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import overlay
from streamlib_parsers.wires.invoke.families import (
    COUNTS,
    GUARDRAIL,
    METRICS,
    STOP_REASONS,
    Family,
)
from streamlib_parsers.wires.invoke.token_counts import usage

BODY_EVENT: Final = "whole"
"""Event name of a complete body: the response is complete even without a stop reason."""

IDS: Final = frozenset({"response_id", "id", "model"})
"""Cohere's id, and id and model of the completions form."""


class TextMachine:
    """Reads the payloads of a text family."""

    def __init__(self, assembler: EventAssembler, family: Family) -> None:
        self._assembler = assembler
        self._family = family
        # Keys that are not metadata, computed once for all payloads.
        self._read_keys = family.read_keys()
        # The message, opened at the first text.
        self._item: OpenItem | None = None
        # Usage keys of the payloads, merged.
        self._usage: dict[str, Any] = {}
        # The last stop reason and stop sequence that were strings.
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        # Whether the family's terminal event was seen.
        self._finished = False
        # Whether the last payload reports that a guardrail replaced the response.
        self._blocked = False

    @property
    def complete(self) -> bool:
        """Whether the family's terminal event, or a guardrail's text in its place, was seen."""
        return self._finished or self._blocked

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one payload."""
        value, _ = self._assembler.decode_object(data)
        if self._family.inside is not None:
            inner = value.get(self._family.inside)
            if isinstance(inner, dict):
                # Cohere's last event repeats the complete text, which was streamed already.
                value = {**(rest_of(inner, "text") or {}), **value}
        if self._has_content(value):
            self._read_content(value)
        else:
            self._assembler.passthrough(str(value["event_type"]), value)
        self._read_usage(value)
        self._read_stop(value)
        if event == BODY_EVENT:
            self._finished = True

    def end(self) -> None:
        """Completes the response, if the family's terminal event was seen."""
        if not self.complete:
            raise truncated(f"the stream ended before the terminal of {self._family.name}")
        if self._item is not None:
            self._assembler.close(self._item)
        native_reason = self._stop_reason
        if native_reason is None and self._blocked:
            native_reason = "INTERVENED"
        stop_reason = STOP_REASONS.get(native_reason or "", "other")
        self._assembler.complete(stop_reason, native_reason, self._stop_sequence)

    def _has_content(self, value: JsonObject) -> bool:
        """False for Cohere's events that are not text, such as `search-results`."""
        kind = value.get("event_type")
        if not self._family.kinds or kind is None:
            return True
        # A list or an object here could not be looked up in a set.
        return isinstance(kind, str) and kind in self._family.kinds

    def _read_content(self, value: JsonObject) -> None:
        assembler = self._assembler
        if not IDS.isdisjoint(value):
            response_id = first_text(value, "response_id", "id")
            assembler.identify(response_id, first_text(value, "model"))
        text = _first_string(value, self._family.text)
        if text:
            if self._item is None:
                self._item = assembler.open(Message("assistant"))
            assembler.text(self._item, text)
        assembler.other_metadata(value, self._read_keys)

    def _read_usage(self, value: JsonObject) -> None:
        counts = {key: number for key, number in value.items() if key in COUNTS}
        metrics = value.get(METRICS)
        if isinstance(metrics, dict):
            counts = overlay(metrics, counts)
        if "results" in value:
            # Titan has it in complete bodies only.
            counts["tokenCount"] = at_path(value, "results.0.tokenCount")
        if counts:
            self._usage = overlay(self._usage, counts)
            if self._usage:
                self._assembler.usage(usage(self._usage))

    def _read_stop(self, value: JsonObject) -> None:
        family = self._family
        reason = _first_string(value, family.stop)
        if reason:
            self._stop_reason = reason
        sequence = _first_string(value, family.stop_sequence)
        if sequence:
            self._stop_sequence = sequence
        if self._stop_reason is not None:
            self._finished = True
        if family.finished is not None and value.get(family.finished) is True:
            self._finished = True
        # A guardrail that only masked words sets this too, and the model's text goes on after it:
        # so the last payload decides.
        self._blocked = value.get(GUARDRAIL) == "INTERVENED"


def _first_string(value: JsonObject, paths: tuple[str, ...]) -> str | None:
    for path in paths:
        content = at_path(value, path)
        if isinstance(content, str):
            return content
    return None
