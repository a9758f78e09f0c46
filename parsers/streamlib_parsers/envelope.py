"""The events of a response that are about none of its items, and the list of all its events.

`EventAssembler` adds the items.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

import msgspec

from streamlib_parsers.errors import malformed
from streamlib_parsers.events import (
    Created,
    Notice,
    Passthrough,
    RateLimits,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.json_text import (
    DECODE_ERRORS,
    SurrogateJoiner,
    decode_any,
    mark_surrogates,
    scrub,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage

_MISSING: Final = object()


class Envelope:
    """Id, model, usage and metadata of one response, and the events that were not taken yet."""

    def __init__(self) -> None:
        """Starts without events."""
        self.response_id: str | None = None
        """The first non-empty id of the response."""
        self.model: str | None = None
        """The first non-empty model, until `rename_model` replaces it."""
        self.last_usage: Usage | None = None
        """The newest usage, for `Completed` and for comparison with the next."""
        self.surrogates: SurrogateJoiner | None = None
        """Set by a machine once a payload held half an emoji; from then on deltas are joined and
        all else is scrubbed."""
        self._events: list[ResponseEvent] = []
        """Emitted and not taken yet."""
        self._seq = -1
        """The `seq` of the last event."""
        self._has_created = False
        """Whether `Created` was emitted."""
        self._inferred_end = ""
        """The detail of the first `note_inferred_end`."""
        self.known_metadata: dict[str, Any] = {}
        """Envelope keys emitted so far, with their values: only changed ones are emitted again."""

    # --- the events ---

    def take(self) -> list[ResponseEvent]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    # --- payloads ---

    def decode(self, data: bytes) -> tuple[Any, bytes]:
        """A payload as a JSON value, and its bytes, both with lone surrogates marked.

        Raises:
            ParseFailure: `malformed`, where the payload is not JSON or nested too deep.
        """
        try:
            return msgspec.json.decode(data), data
        except DECODE_ERRORS:
            # Only now are surrogates looked for: nearly every payload has no lone one.
            data = self.mark_surrogates(data)
        return decode_any(data), data

    def decode_object(self, data: bytes) -> tuple[dict[str, Any], bytes]:
        """As `decode`, for a payload that is `malformed` unless it is an object."""
        value, data = self.decode(data)
        if not isinstance(value, dict):
            raise malformed("an event is not a JSON object", data)
        return value, data

    def mark_surrogates(self, data: bytes) -> bytes:
        """The payload with lone surrogates marked; from the first one on deltas are joined."""
        marked = mark_surrogates(data)
        if marked is None:
            return data
        if self.surrogates is None:
            self.surrogates = SurrogateJoiner()
        return marked

    # --- the envelope ---

    def rate_limits(self, limits: RateLimits) -> None:
        """Emits rate limits: from headers, before anything else, or from a frame."""
        self._events.append(msgspec.structs.replace(limits, seq=self._next_seq()))

    def identify(self, response_id: str | None, model: str | None) -> None:
        """Sets id and model.

        The first non-empty ones stay (Azure and Copilot begin with empty ones).
        """
        self.model = self.model or self._clean(model) or None
        if response_id and not self.response_id:
            self.response_id = self._clean(response_id)
            self._create()

    def rename_model(self, model: str | None) -> None:
        """Sets the model that continues the response (Messages: a `fallback` block)."""
        self.model = self._clean(model) or self.model

    def _create(self) -> None:
        if not self._has_created:
            self._has_created = True
            self._events.append(Created(self.response_id, self.model, seq=self._next_seq()))

    def usage(self, usage: Usage) -> None:
        """Takes a newer snapshot of the usage; emits it only if a number changed."""
        last = self.last_usage
        self.last_usage = usage
        # The output differs nearly always: some wires count in every chunk.
        if (
            last is None
            or last.output_tokens != usage.output_tokens
            or not usage.same_numbers(last)
        ):
            self._seq = seq = self._seq + 1
            self._events.append(TokenCount(usage, seq=seq))

    def metadata(self, values: Mapping[str, Any]) -> None:
        """Emits those envelope keys that are new or have changed."""
        if not values:
            return
        changed = dict(values)
        if self.known_metadata:
            changed = {
                key: value
                for key, value in values.items()
                if self.known_metadata.get(key, _MISSING) != value
            }
        if changed:
            changed = self._clean(changed)
            self.known_metadata.update(changed)
            self._events.append(ResponseMetadata(changed, seq=self._next_seq()))

    def other_metadata(self, values: Mapping[str, Any], typed_keys: Set[str]) -> None:
        """Emits as metadata the keys of an object that no typed field holds, but for nulls."""
        if not values.keys() <= typed_keys:
            others = {key: value for key, value in values.items() if key not in typed_keys}
            self.metadata({key: value for key, value in others.items() if value is not None})

    def passthrough(self, event: str, data: Any, agent: str | None = None) -> None:
        """Emits an event of an unknown kind, in its order."""
        self._events.append(
            Passthrough(self._clean(event), self._clean(data), seq=self._next_seq(), agent=agent)
        )

    def notice(self, code: str, detail: str = "", item: OpenItem | None = None) -> None:
        """Emits a Notice of an anomaly or a repair."""
        index = agent = None
        if item is not None:
            index, agent = item.index, item.agent
        self._events.append(
            Notice(code, self._clean(detail), index, seq=self._next_seq(), agent=agent)
        )

    def note_inferred_end(self, detail: str) -> None:
        """Makes `complete` emit one `Notice("end_inferred")`: the wire did not send its end.

        The first detail is kept, since it is nearest to the cause.
        """
        self._inferred_end = self._inferred_end or detail

    def _clean(self, value: Any) -> Any:
        if self.surrogates is None:
            return value
        return scrub(value)
