"""Gemini's token counts: `usageMetadata`, in nearly every chunk; later keys replace earlier ones.

{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13,
 "promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib_parsers.usage import Usage, count, number, total
from streamlib_parsers.wires.gemini.chunks import Counts, Details

MODALITIES: Final[dict[int, str]] = {1: "text", 2: "image", 3: "video", 4: "audio", 5: "document"}
"""Number -> modality, for clients that ask for integer enums."""

OMITTED_AT_ZERO: Final = ("candidatesTokenCount", "toolUsePromptTokenCount")
SUMMED: Final = ("promptTokenCount", "thoughtsTokenCount", *OMITTED_AT_ZERO)
"""The counts that make up `totalTokenCount`."""

NUMBERS: Final = tuple(name for name in Counts.__struct_fields__ if name.endswith("Count"))
DETAILS: Final = tuple(name for name in Counts.__struct_fields__ if name.endswith("Details"))

as_report: Final = msgspec.json.Decoder(dict[str, Any]).decode
"""Decodes a report of any shape."""


class Reports:
    """The usage reports of one stream, merged: later keys replace earlier ones."""

    def __init__(self) -> None:
        self.merged: dict[str, Any] = {}
        """All reports so far; never changed, but replaced."""
        self._usage = Usage()
        """The meaning of the last report."""

    def read(self, report: dict[str, Any]) -> Usage:
        """The usage after a report."""
        if None in report.values():
            report = {key: value for key, value in report.items() if value is not None}
        # Many chunks repeat the counts of the one before; comparing costs less than reading them.
        if report != self.merged:
            self.merged = merged(self.merged, report)
            self._usage = usage(self.merged)
        return self._usage


def usage(raw: dict[str, Any]) -> Usage:
    """The meaning of a report of any shape."""
    try:
        return usage_of_counts(msgspec.convert(raw, Counts), raw)
    except msgspec.ValidationError:
        pass
    known: dict[str, Any] = {name: count(raw, name) for name in NUMBERS if name in raw}
    for name in DETAILS:
        if isinstance(raw.get(name), list):
            known[name] = raw[name]
    return usage_of_counts(Counts(**known), raw)


def usage_of_counts(counts: Counts, raw: dict[str, Any]) -> Usage:
    """The meaning of a report.

    Gemini counts cached input inside the prompt, and reasoning beside the candidates. What tools
    read counts as input.

    Args:
        counts: the report, decoded.
        raw: the report as received, merged over the stream.
    """
    input_tokens = counts.promptTokenCount
    if input_tokens is not None and counts.toolUsePromptTokenCount is not None:
        input_tokens += counts.toolUsePromptTokenCount
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
        output_tokens(counts),
        counts.cachedContentTokenCount,
        None,  # cache writes: caches are made by another call
        counts.thoughtsTokenCount,
        None,
        None,
        None,
        input_modalities,
        output_modalities,
        cache_modalities,
        raw,
    )


def output_tokens(counts: Counts) -> int | None:
    """Tokens of the candidates and of the reasoning, which is counted beside them."""
    candidates = counts.candidatesTokenCount
    reasoning = counts.thoughtsTokenCount
    if candidates is None:
        return reasoning
    if not reasoning:
        return candidates
    # Older Vertex models include reasoning in the candidates: there the total is the sum without
    # it.
    without_reasoning = candidates + (counts.promptTokenCount or 0)
    without_reasoning += counts.toolUsePromptTokenCount or 0
    if without_reasoning == counts.totalTokenCount:
        return candidates
    return candidates + reasoning


def merged(raw: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """`newer` over `raw`; `newer` itself if it has every key.

    Args:
        raw: the reports so far.
        newer: the newest report, without nulls.
    """
    if raw.keys() <= newer.keys():
        return newer
    new_total = count(newer, "totalTokenCount")
    old_total = count(raw, "totalTokenCount")
    if new_total is None or old_total is None or new_total < old_total:
        return raw | newer
    # The wire leaves out zeros. Where the counts that were sent make up the new total, those that
    # are missing are zero, not unchanged.
    if total(*(count(newer, key) for key in SUMMED)) == new_total:
        raw = {key: value for key, value in raw.items() if key not in OMITTED_AT_ZERO}
    return raw | newer


def _modalities(details: Details | None, more: Details | None = None) -> dict[str, int]:
    """Tokens by modality, summed over lists of `{modality, tokenCount}`."""
    sums: dict[str, int] = {}
    for detail in (*(details or ()), *(more or ())):
        tokens = None
        if isinstance(detail, dict):  # pyright: ignore[reportUnnecessaryIsInstance]  # as received
            tokens = number(detail.get("tokenCount"))
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
