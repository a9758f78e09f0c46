"""Gemini's token counts: `usageMetadata`, in nearly every chunk, each report over the one before.

{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage, count, overlay, total

MODALITIES: Final[dict[int, str]] = {1: "text", 2: "image", 3: "video", 4: "audio", 5: "document"}

OMITTED_AT_ZERO: Final = ("candidatesTokenCount", "toolUsePromptTokenCount")
SUMMED: Final = ("promptTokenCount", "thoughtsTokenCount", *OMITTED_AT_ZERO)
"""The counts that make up `totalTokenCount`."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Details: TypeAlias = list[JsonObject]


class Counts(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """The report as it usually is: known keys, whole numbers."""

    promptTokenCount: Count | None = None  # noqa: N815  # the wire's names
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
"""A report of any shape."""


def usage(raw: dict[str, Any]) -> Usage:
    """The meaning of a report of any shape."""
    known: dict[str, Any] = {name: count(raw, name) for name in NUMBERS}
    known |= {name: raw[name] for name in DETAILS if type(raw.get(name)) is list}
    return counts_told(Counts(**known), raw)


def counts_told(counts: Counts, raw: dict[str, Any]) -> Usage:
    """Gemini counts cached input inside the prompt, and thoughts beside the candidates. What tools read counts as input.

    Where prompt, candidates and tool use alone make the total, the candidates include the thoughts already (older Vertex models).
    """
    prompt, tool_use = counts.promptTokenCount, counts.toolUsePromptTokenCount
    said, thought = counts.candidatesTokenCount, counts.thoughtsTokenCount
    asked = counts.promptTokensDetails
    included = (
        said is not None
        and thought
        and (prompt or 0) + said + (tool_use or 0) == counts.totalTokenCount
    )
    return Usage(  # by place: half the time, and this is asked once a chunk
        prompt if prompt is None or tool_use is None else prompt + tool_use,
        said if included or thought is None else (said or 0) + thought,
        counts.cachedContentTokenCount,
        None,
        thought,
        None,
        None,
        None,
        _modalities(asked, counts.toolUsePromptTokensDetails)
        if asked or counts.toolUsePromptTokensDetails
        else {},
        _modalities(counts.candidatesTokensDetails) if counts.candidatesTokensDetails else {},
        _modalities(counts.cacheTokensDetails) if counts.cacheTokensDetails else {},
        raw,
    )


def merged(raw: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """`newer`, without nulls, over `raw`.

    The wire leaves out zeros: a count that `newer` leaves out is gone where the others make up its grown total.
    """
    if len(raw | newer) == len(newer):
        return newer
    now, before = count(newer, "totalTokenCount"), count(raw, "totalTokenCount")
    if (
        now is not None
        and before is not None
        and now >= before
        and total(*(count(newer, key) for key in SUMMED)) == now
    ):
        raw = {key: value for key, value in raw.items() if key not in OMITTED_AT_ZERO}
    return overlay(raw, newer)


def _modalities(details: Details | None, more: Details | None = None) -> dict[str, int]:
    """Tokens by modality, over lists of `{modality, tokenCount}`."""
    sums: dict[str, int] = {}
    for detail in (*(details or ()), *(more or ())):
        tokens = count(detail, "tokenCount")
        if tokens is not None:
            said: Any = detail.get("modality")
            name = (
                said.lower()
                if type(said) is str
                else MODALITIES.get(said, str(said))
                if type(said) is int
                else str(said)
            )
            sums[name] = sums.get(name, 0) + tokens
    return sums
