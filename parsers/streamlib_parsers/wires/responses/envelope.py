"""OpenAI Responses: the response object without its items: id, model, status, metadata, usage."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.usage import Usage, count, number, overlay
from streamlib_parsers.wires.responses.events import TYPED_KEYS, nonempty_string

_EVENT_KEYS: Final = frozenset({"type", "response", "sequence_number"})
"""Keys of an event that belong to the stream, not to the response."""

MODALITY_KEYS: Final = {"text": "text_tokens", "image": "image_tokens", "audio": "audio_tokens"}
"""Modality -> its key in an object of details."""


class Envelope:
    """Reads what the events of one response report of the response itself."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        # The last `response.status`; named in the error if the stream is truncated.
        self.status: str | None = None
        # The last response object, which the next event may repeat.
        self._latest: dict[str, Any] = {}
        # The usage object, merged over the stream.
        self._usage: dict[str, Any] = {}

    def read(self, event: dict[str, Any], response: dict[str, Any]) -> None:
        """Reads the response object, and the keys beside it in its event."""
        # `response.in_progress` repeats that of `response.created`.
        if response == self._latest and _EVENT_KEYS.issuperset(event):
            return
        self._latest = response
        self._assembler.identify(
            nonempty_string(response, "id"), nonempty_string(response, "model")
        )
        self.status = nonempty_string(response, "status") or self.status
        if _EVENT_KEYS.issuperset(event):
            self.emit_metadata(response, TYPED_KEYS)
        else:
            values = {key: value for key, value in response.items() if key not in TYPED_KEYS}
            values |= {key: value for key, value in event.items() if key not in _EVENT_KEYS}
            self.emit_metadata(values)
        raw = response.get("usage")
        if isinstance(raw, dict):
            self._usage = overlay(self._usage, raw)
            self._assembler.usage(usage(self._usage))

    def emit_metadata(
        self, values: dict[str, Any], typed_keys: frozenset[str] = frozenset()
    ) -> None:
        """Emits the keys that have a value; a null or empty one only if it had one before.

        Args:
            values: the keys.
            typed_keys: those that are no metadata.
        """
        known = self._assembler.known_metadata
        changed = {
            key: value
            for key, value in values.items()
            if key not in typed_keys
            and value != known.get(key)
            and (value or key in known or isinstance(value, (int, float)))
        }
        self._assembler.metadata(changed)


def usage(raw: dict[str, Any]) -> Usage:
    """Reads the counts of a usage object (`response.usage`).

    OpenAI's counts are inclusive: input with cache reads and writes, output with reasoning.
    `prompt_tokens` and `completion_tokens` are Chat's names for the same counts.
    """
    return Usage(
        input_tokens=count(raw, "input_tokens", "prompt_tokens"),
        output_tokens=count(raw, "output_tokens", "completion_tokens"),
        cache_read_input_tokens=count(raw, "input_tokens_details.cached_tokens"),
        cache_write_input_tokens=count(raw, "input_tokens_details.cache_write_tokens"),
        reasoning_output_tokens=count(raw, "output_tokens_details.reasoning_tokens"),
        input_modalities=_modalities(raw, "input_tokens_details"),
        output_modalities=_modalities(raw, "output_tokens_details"),
        raw=raw,
    )


def _modalities(raw: dict[str, Any], details: str) -> dict[str, int]:
    """Reads `text_tokens`, `image_tokens` and `audio_tokens` of one details object."""
    counts: dict[str, int] = {}
    values = raw.get(details)
    if isinstance(values, dict):
        for modality, key in MODALITY_KEYS.items():
            tokens = number(values.get(key))
            if tokens is not None:
                counts[modality] = tokens
    return counts
