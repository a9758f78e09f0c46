"""Anthropic Messages: the events and deltas of the stream, decoded by their `type`.

`machine.py` applies them. The three deltas that nearly all of a stream consists of have their text
under one name, `text`, which the hot path reads.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Meta, Raw, Struct, field

from streamlib_parsers.items import tag
from streamlib_parsers.usage import Count

Index: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]


class BaseDelta(Struct, gc=False, tag_field="type"):
    """Base of the deltas."""


class TextDelta(BaseDelta, tag="text_delta"):
    """Text of a message."""

    text: str | None = None


class InputJsonDelta(BaseDelta, tag="input_json_delta"):
    """A fragment of a call's arguments."""

    text: str | None = field(name="partial_json", default=None)


class ThinkingDelta(BaseDelta, tag="thinking_delta"):
    """Text of a reasoning block."""

    text: str | None = field(name="thinking", default=None)
    # Tokens since the last estimate, where the text itself is omitted (`display: omitted`).
    # Not checked here: a number of another kind must not fail the text beside it.
    estimated_tokens: Any = None


class SignatureDelta(BaseDelta, tag="signature_delta"):
    """A block's complete signature."""

    signature: str | None = None


class CitationsDelta(BaseDelta, tag="citations_delta"):
    """One citation of a text."""

    citation: dict[str, Any]


class CompactionDelta(BaseDelta, tag="compaction_delta"):
    """A complete compaction."""

    content: str | None = None
    encrypted_content: str | None = None


TextBearingDelta: TypeAlias = TextDelta | InputJsonDelta | ThinkingDelta
Delta: TypeAlias = TextBearingDelta | SignatureDelta | CitationsDelta | CompactionDelta


class Event(Struct, gc=False, tag_field="type"):
    """Base of the events."""


class ContentBlockDelta(Event, tag="content_block_delta"):
    """Adds to an open block."""

    index: Index
    delta: Delta


class ContentBlockStart(Event, tag="content_block_start"):
    """Opens a block, which is raw: a call's `input` keeps the provider's own bytes."""

    index: Index
    content_block: Raw


class ContentBlockStop(Event, tag="content_block_stop"):
    """Closes a block."""

    index: Index


class CacheCreation(Struct, gc=False):
    """Tokens written to a cache, by the time that they live."""

    ephemeral_1h_input_tokens: Count = None
    ephemeral_24h_input_tokens: Count = None


class OutputDetails(Struct, gc=False):
    """Parts of the output."""

    thinking_tokens: Count = None


class UsageCounts(Struct, gc=False):
    """The counts of a usage object, and of each of its iterations."""

    input_tokens: Count = None
    output_tokens: Count = None
    cache_creation_input_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    # Ours: see `token_counts.ESTIMATE`.
    estimated_tokens: Count = None


class MessageStart(Event, tag="message_start"):
    """Opens the message: id, model, input usage."""

    message: Any = None


# The events below have no fields here: the machine reads their JSON again as a dict, because
# every key that it does not know is reported as metadata.


class MessageDelta(Event, tag="message_delta"):
    """Stop reason and cumulative usage."""


class MessageStop(Event, tag="message_stop"):
    """The message is complete."""


class Ping(Event, tag="ping"):
    """Keeps the connection alive."""


class ErrorEvent(Event, tag="error"):
    """The response failed."""


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

decode_values: Final = msgspec.json.Decoder(dict[str, Raw]).decode

DELTAS: Final[tuple[type[Delta], ...]] = get_args(Delta)
NAMES: Final[dict[type[WireEvent], str]] = {kind: tag(kind) for kind in get_args(WireEvent)}
"""Events -> their names on the wire."""
KINDS: Final = frozenset(NAMES.values())
"""Wire names of the events."""
DELTA_KINDS: Final = frozenset(tag(delta) for delta in DELTAS)
"""Wire names of the deltas."""
