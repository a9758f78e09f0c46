"""Bedrock ConverseStream: the JSON of the payloads that bring content.

    {"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"abcd"}

A delta has one member, `p` is padding. A value of type blob is base64 text; where it arrives in
fragments, each fragment is base64 of its own.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from streamlib_parsers.errors import malformed
from streamlib_parsers.items import JsonObject

PADDING: Final = "p"
"""Key of random length in every payload, so that sizes on the network reveal nothing."""

HIGHEST_INDEX: Final = 1_000_000

Index: TypeAlias = Annotated[int, Meta(ge=0, le=HIGHEST_INDEX)]


class ReasoningText(Struct, gc=False):
    """`reasoningText` of a complete body."""

    text: str | None = None
    signature: str | None = None


NO_REASONING_TEXT: Final = ReasoningText()


class ReasoningContent(Struct, gc=False, rename="camel"):
    """Flat in a stream, nested (`reasoningText`) in complete bodies.

    `data` is what some gateways call `redactedContent`.
    """

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None
    data: str | None = None
    reasoning_text: ReasoningText | None = None

    def any_text(self) -> str | None:
        """The text, flat or nested."""
        if self.text is not None:
            return self.text
        return (self.reasoning_text or NO_REASONING_TEXT).text

    def any_signature(self) -> str | None:
        """The signature, flat or nested."""
        if self.signature is not None:
            return self.signature
        return (self.reasoning_text or NO_REASONING_TEXT).signature

    def encrypted(self) -> str | None:
        """The encrypted content, under either name."""
        if self.redacted_content is not None:
            return self.redacted_content
        return self.data

    def is_redacted(self) -> bool:
        """Whether there is encrypted content and no readable text."""
        readable = self.text or (self.reasoning_text or NO_REASONING_TEXT).text
        encrypted = self.redacted_content or self.data
        return not readable and encrypted is not None


class ToolUseDelta(Struct, gc=False):
    """A fragment of argument text."""

    input: str | None = None


class Delta(Struct, gc=False, rename="camel"):
    """One member is set: the wire's type is a union."""

    text: str | None = None
    tool_use: ToolUseDelta | None = None
    reasoning_content: ReasoningContent | None = None
    tool_result: list[JsonObject] | None = None
    citation: JsonObject | None = None
    image: JsonObject | None = None


class CitationsContent(Struct, gc=False):
    """`citationsContent` of a complete body."""

    content: list[JsonObject] = []
    citations: list[JsonObject] = []


class BlockDelta(Struct, gc=False, rename="camel"):
    """Payload of `contentBlockDelta`."""

    content_block_index: Index
    delta: Delta


decode_delta: Final = msgspec.json.Decoder(BlockDelta).decode
decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
"""Decodes an object whose values stay the provider's own bytes."""


def index_of(value: JsonObject, data: bytes) -> int:
    """`contentBlockIndex` of a payload; a float with an integral value counts as an integer."""
    index = value.get("contentBlockIndex")
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    # `type` and not `isinstance`: a bool is an int too.
    if type(index) is not int or not 0 <= index <= HIGHEST_INDEX:
        raise malformed("an event without a valid contentBlockIndex", data)
    return index


def members_of(data: bytes | Raw, name: str) -> dict[str, Raw]:
    """The members of the object at `name`, without nulls, each in the provider's own bytes."""
    raw = decode_members(data).get(name, Raw(b"{}"))
    return {key: value for key, value in decode_members(raw).items() if bytes(value) != b"null"}


def decode_values(members: dict[str, Raw]) -> JsonObject:
    """The members with their values decoded."""
    return {key: msgspec.json.decode(value) for key, value in members.items()}
