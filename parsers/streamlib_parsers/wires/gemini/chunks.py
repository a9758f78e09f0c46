"""Gemini's chunks of the usual shape, as structs: text and counts, and nothing else.

Any other key makes the decoder reject a chunk: then `Machine._read_chunk` reads it key by key.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from streamlib_parsers.items import JsonObject
from streamlib_parsers.wires.gemini.parts import Index

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Details: TypeAlias = list[JsonObject]


class Counts(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A usage report of the usual shape: known keys, integers."""

    # The wire's names, all of them mixedCase.
    promptTokenCount: Count | None = None  # noqa: N815
    candidatesTokenCount: Count | None = None  # noqa: N815
    totalTokenCount: Count | None = None  # noqa: N815
    thoughtsTokenCount: Count | None = None  # noqa: N815
    cachedContentTokenCount: Count | None = None  # noqa: N815
    toolUsePromptTokenCount: Count | None = None  # noqa: N815
    promptTokensDetails: Details | None = None  # noqa: N815
    candidatesTokensDetails: Details | None = None  # noqa: N815
    cacheTokensDetails: Details | None = None  # noqa: N815
    toolUsePromptTokensDetails: Details | None = None  # noqa: N815
    trafficType: str | None = None  # noqa: N815
    serviceTier: str | None = None  # noqa: N815


class TextPart(Struct, gc=False, forbid_unknown_fields=True):
    """The part that most chunks consist of."""

    text: str
    thought: bool = False


class TextContent(Struct, gc=False, forbid_unknown_fields=True):
    """Content of text parts."""

    parts: list[TextPart]
    role: str | None = None


class TextCandidate(Struct, gc=False, forbid_unknown_fields=True):
    """A candidate that only continues."""

    content: TextContent
    index: Index = 0


class TextChunk(Struct, gc=False, forbid_unknown_fields=True):
    """A chunk that brings text and counts."""

    candidates: Annotated[list[TextCandidate], Meta(min_length=1, max_length=1)]
    # The wire's names.
    usageMetadata: Counts | None = None  # noqa: N815
    modelVersion: str | None = None  # noqa: N815
    responseId: str | None = None  # noqa: N815
    createTime: str | None = None  # noqa: N815


decode_text_chunk: Final = msgspec.json.Decoder(TextChunk).decode
