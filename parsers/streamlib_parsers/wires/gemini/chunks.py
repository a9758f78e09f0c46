"""Gemini's chunks of the usual shape, as structs: text, calls and counts, and nothing else.

Any other key makes the decoder reject a chunk: then `Machine._read_chunk` reads it key by key.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from streamlib_parsers.items import JsonObject
from streamlib_parsers.wires.gemini.parts import Index

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Details: TypeAlias = list[JsonObject]


NOTHING: Final = Raw()
"""A key that was not sent."""


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


class TypedCall(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A function call; only Vertex sends its last two keys."""

    name: str | None = None
    args: Raw = NOTHING
    id: str | None = None
    willContinue: Raw = NOTHING  # noqa: N815
    partialArgs: Raw = NOTHING  # noqa: N815


class Part(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a kind that is sent often."""

    functionCall: TypedCall | None = None  # noqa: N815
    executableCode: Raw = NOTHING  # noqa: N815
    codeExecutionResult: Raw = NOTHING  # noqa: N815
    toolCall: Raw = NOTHING  # noqa: N815
    toolResponse: Raw = NOTHING  # noqa: N815
    text: str | None = None
    thought: bool | None = None
    thoughtSignature: str | None = None  # noqa: N815


class Content(Struct, gc=False, forbid_unknown_fields=True):
    """Content of such parts."""

    parts: list[Part] | None = None
    role: str | None = None


class TypedCandidate(Struct, gc=False, forbid_unknown_fields=True):
    """A candidate that continues, or ends."""

    content: Content | None = None
    index: Index = 0
    finishReason: str | int | None = None  # noqa: N815
    finishMessage: Any = None  # noqa: N815
    groundingMetadata: Any = None  # noqa: N815


class Chunk(Struct, gc=False, forbid_unknown_fields=True):
    """A chunk that brings content and counts."""

    candidates: Annotated[list[TypedCandidate], Meta(min_length=1, max_length=1)]
    # The wire's names.
    usageMetadata: JsonObject | None = None  # noqa: N815
    modelVersion: str | None = None  # noqa: N815
    responseId: str | None = None  # noqa: N815
    createTime: str | None = None  # noqa: N815


decode_chunk: Final = msgspec.json.Decoder(Chunk).decode
