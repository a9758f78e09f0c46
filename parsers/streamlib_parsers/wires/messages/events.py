"""Anthropic Messages: the shapes of the stream's events, decoded by their `type`. What they do is in `machine.py`.

The deltas that nearly all of a stream consists of have their text under one name, `said`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, field

Index: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]


class DeltaOf(Struct, gc=False, tag_field="type"):
    """Base of the deltas."""


class TextDelta(DeltaOf, tag="text_delta"):
    """Text of a message."""

    said: str | None = field(name="text", default=None)


class InputJsonDelta(DeltaOf, tag="input_json_delta"):
    """Arguments of a call."""

    said: str | None = field(name="partial_json", default=None)


class ThinkingDelta(DeltaOf, tag="thinking_delta"):
    """A thought."""

    said: str | None = field(name="thinking", default=None)


class SignatureDelta(DeltaOf, tag="signature_delta"):
    """A block's signature, whole."""

    signature: str | None = None


class CitationsDelta(DeltaOf, tag="citations_delta"):
    """One citation of a text."""

    citation: dict[str, Any]


class CompactionDelta(DeltaOf, tag="compaction_delta"):
    """A compaction, whole."""

    content: str | None = None
    encrypted_content: str | None = None


TextBearingDelta: TypeAlias = TextDelta | InputJsonDelta | ThinkingDelta
Delta: TypeAlias = TextBearingDelta | SignatureDelta | CitationsDelta | CompactionDelta


class Event(Struct, gc=False, tag_field="type"):
    """Base of the events."""


class ContentBlockDelta(Event, tag="content_block_delta"):
    """A block grows."""

    index: Index
    delta: Delta


class ContentBlockStart(Event, tag="content_block_start"):
    """A block begins; its values stay the provider's own bytes."""

    index: Index
    content_block: dict[str, Raw]


class ContentBlockStop(Event, tag="content_block_stop"):
    """A block ends."""

    index: Index


class MessageStart(Event, tag="message_start"):
    """The message begins."""


class MessageDelta(Event, tag="message_delta"):
    """How it ends, and its usage."""


class MessageStop(Event, tag="message_stop"):
    """It is whole."""


class Ping(Event, tag="ping"):
    """Liveness."""


class ErrorEvent(Event, tag="error"):
    """It failed."""


WireEvent: TypeAlias = (
    ContentBlockDelta
    | ContentBlockStart
    | ContentBlockStop
    | MessageStart
    | MessageDelta
    | MessageStop
    | Ping
    | ErrorEvent
)
decode: Final = msgspec.json.Decoder(WireEvent).decode
