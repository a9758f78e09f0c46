"""Gemini Interactions: the frequent delta, decoded at once, and the names of all events.

`machine.py` applies them. `event_type`, not `type`, distinguishes the events.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, field

Index: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]


class BaseDelta(Struct, gc=False, tag_field="type"):
    """Base of the frequent deltas. Their text has one name, which the hot path reads."""


class TextDelta(BaseDelta, tag="text"):
    """Text of a model's output."""

    text: str | None = None


class ArgumentsDelta(BaseDelta, tag="arguments_delta"):
    """A fragment of a call's arguments."""

    text: str | None = field(name="arguments", default=None)


FrequentDelta: TypeAlias = TextDelta | ArgumentsDelta


class StepDelta(Struct, gc=False, tag_field="event_type", tag="step.delta"):
    """Adds to an open step."""

    index: Index
    delta: FrequentDelta
    event_id: str | None = None
    metadata: dict[str, Any] | None = None


class RawDelta(Struct, gc=False):
    """Any delta: its values are raw, so that a call's arguments keep the provider's own bytes."""

    index: Index
    delta: dict[str, Raw]


class RawStart(Struct, gc=False):
    """The start of a step, with raw values for the same reason."""

    index: Index
    step: dict[str, Raw]


class Position(Struct, gc=False):
    """The index of any event of a step."""

    index: Index


class IdentifiedEvent(Struct, gc=False):
    """Any event, of which only the id is read."""

    event_id: str | None = None


decode_frequent: Final = msgspec.json.Decoder(StepDelta).decode
decode_delta: Final = msgspec.json.Decoder(RawDelta).decode
decode_start: Final = msgspec.json.Decoder(RawStart).decode
decode_position: Final = msgspec.json.Decoder(Position).decode
_decode_id: Final = msgspec.json.Decoder(IdentifiedEvent).decode


def read_position(data: bytes) -> str | None:
    """The `event_id` of an event, after which an interaction can be resumed; None without one."""
    try:
        return _decode_id(data).event_id or None
    except (msgspec.DecodeError, UnicodeError):
        return None


LEGACY_EVENTS: Final = frozenset(
    {
        "interaction.start",
        "interaction.complete",
        "content.start",
        "content.delta",
        "content.stop",
    }
)
"""Events of the schema that Google removed on 8 June 2026, with `outputs` instead of steps."""

LEGACY: Final = (
    "this is the Interactions schema that Google removed in June 2026 "
    "(interaction.start, content.delta, outputs): only its successor with steps is read"
)

MEDIA_KINDS: Final = frozenset({"image", "audio", "document", "video"})
"""Types of content with bytes, and of the deltas that bring them."""
