"""Gemini's token counts: `usageMetadata`, in nearly every chunk, each report over the one before.

{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13,
 "promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage, count, overlay, total

MODALITIES: Final[dict[int, str]] = {1: "text", 2: "image", 3: "video", 4: "audio", 5: "document"}
"""By number, for clients that ask for integer enums."""

OMITTED_AT_ZERO: Final = ("candidatesTokenCount", "toolUsePromptTokenCount")
SUMMED: Final = ("promptTokenCount", "thoughtsTokenCount", *OMITTED_AT_ZERO)
"""The counts that make up `totalTokenCount`."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Details: TypeAlias = list[JsonObject]


class Counts(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A report of the usual shape: known keys, integers."""

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


NUMBERS: Final = tuple(name for name in Counts.__struct_fields__ if name.endswith("Count"))
DETAILS: Final = tuple(name for name in Counts.__struct_fields__ if name.endswith("Details"))

as_counts: Final = msgspec.json.Decoder(dict[str, Any]).decode
"""Decodes a report of any shape."""


def usage(raw: dict[str, Any]) -> Usage:
    """The meaning of a report of any shape."""
    known: dict[str, Any] = {name: count(raw, name) for name in NUMBERS}
    for name in DETAILS:
        if isinstance(raw.get(name), list):
            known[name] = raw[name]
    return usage_of_counts(Counts(**known), raw)


def usage_of_counts(counts: Counts, raw: dict[str, Any]) -> Usage:
    """The meaning of a report.

    Gemini counts cached input inside the prompt, and reasoning beside the candidates. What tools
    read counts as input.

    Args:
        counts: The report, decoded.
        raw: The report as received, merged over the stream.
    """
    prompt = counts.promptTokenCount
    tool_use = counts.toolUsePromptTokenCount
    input_tokens = prompt
    if prompt is not None and tool_use is not None:
        input_tokens = prompt + tool_use

    candidates = counts.candidatesTokenCount
    reasoning = counts.thoughtsTokenCount
    output_tokens = candidates
    if candidates is None:
        output_tokens = reasoning
    elif reasoning:
        # Older Vertex models include reasoning in the candidates: there the total is the sum
        # without it.
        without_reasoning = (prompt or 0) + candidates + (tool_use or 0)
        if without_reasoning != counts.totalTokenCount:
            output_tokens = candidates + reasoning

    input_modalities: dict[str, int] = {}
    output_modalities: dict[str, int] = {}
    cache_modalities: dict[str, int] = {}
    prompt_details = counts.promptTokensDetails
    tool_details = counts.toolUsePromptTokensDetails
    if prompt_details or tool_details:
        input_modalities = _modalities(prompt_details, tool_details)
    if counts.candidatesTokensDetails:
        output_modalities = _modalities(counts.candidatesTokensDetails)
    if counts.cacheTokensDetails:
        cache_modalities = _modalities(counts.cacheTokensDetails)
    # By position: half the time of keywords, and this runs once a chunk.
    return Usage(
        input_tokens,
        output_tokens,
        counts.cachedContentTokenCount,
        None,  # cache writes: caches are made by another call
        reasoning,
        None,
        None,
        None,
        input_modalities,
        output_modalities,
        cache_modalities,
        raw,
    )


def merged(raw: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """`newer` over `raw`; `newer` itself if it has every key.

    Args:
        raw: The reports so far.
        newer: The newest report, without nulls.
    """
    if len(raw | newer) == len(newer):
        return newer
    new_total = count(newer, "totalTokenCount")
    old_total = count(raw, "totalTokenCount")
    if new_total is None or old_total is None or new_total < old_total:
        return overlay(raw, newer)
    # The wire leaves out zeros. Where the counts that were sent make up the new total, those that
    # are missing are zero, not unchanged.
    if total(*(count(newer, key) for key in SUMMED)) == new_total:
        raw = {key: value for key, value in raw.items() if key not in OMITTED_AT_ZERO}
    return overlay(raw, newer)


def _modalities(details: Details | None, more: Details | None = None) -> dict[str, int]:
    """Tokens by modality, summed over lists of `{modality, tokenCount}`."""
    sums: dict[str, int] = {}
    for detail in (*(details or ()), *(more or ())):
        tokens = count(detail, "tokenCount")
        if tokens is not None:
            modality: Any = detail.get("modality")
            # The usual case without a call: this runs for every report.
            name = modality.lower() if isinstance(modality, str) else _modality_name(modality)
            sums[name] = sums.get(name, 0) + tokens
    return sums


def _modality_name(modality: Any) -> str:
    """The name of a modality that is not text."""
    if isinstance(modality, int) and not isinstance(modality, bool):
        return MODALITIES.get(modality, str(modality))
    return str(modality)
