"""Gemini: chunks that differ from the one before in their text and in the counts of the output.

    {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],"usageMetadata":{"promptTokenCount":9,
    '---------------- prefix ------------------'     '------------- middle --------------------'
      "candidatesTokenCount":4,"totalTokenCount":13},"modelVersion":"m","responseId":"r"}
      '------------------ growth -----------------'  '------------- suffix -------------'

Decoding such a chunk completely, and comparing its counts with the ones before, takes twice as
long: every chunk repeats all that surrounds text and growth.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.templates import (
    ENCODED_PROBE,
    PROBE,
    Gap,
    ReadGap,
    TextGap,
    around_string,
    decode_text,
    divided_at_mark,
)
from streamlib_parsers.wires.gemini.chunks import (
    TextChunk,
    decode_growth,
    decode_text_chunk,
)
from streamlib_parsers.wires.gemini.token_counts import Reports

_GROWTH: Final = re.compile(rb'"candidatesTokenCount"\s*:\s*\d+\s*,\s*"totalTokenCount"\s*:\s*\d+')

PROBE_CANDIDATES: Final = 1009
PROBE_TOTAL: Final = 2003
PROBE_GROWTH: Final = b'"candidatesTokenCount":1009,"totalTokenCount":2003'
"""Counts with which a gap is verified."""


def find_gap(
    data: bytes,
    chunk: TextChunk,
    append: Callable[[str], bool],
    reports: Reports,
    assembler: EventAssembler,
) -> Gap | None:
    """Returns the gap of a chunk that was just read; None if it cannot be divided like this.

    Args:
        data: The chunk.
        chunk: `data`, decoded, with one part; it is modified.
        append: Receives the text of such a part.
        reports: The usage reports, which have read the counts of `chunk`.
        assembler: Receives the usage.
    """
    around = around_string(data, "text")
    if around is None:
        return None
    prefix, behind = around
    chunk.candidates[0].content.parts[0].text = PROBE
    counts = chunk.usageMetadata
    if counts is None:
        if decode_text_chunk(prefix + ENCODED_PROBE + behind) != chunk:
            return None
        return TextGap(prefix, behind, append)
    match = _GROWTH.search(behind)
    last_counts = reports.counts
    # If they differ, a key of an earlier report is among the merged counts.
    if match is None or last_counts is None or last_counts != counts:
        return None
    middle, suffix = behind[: match.start()], behind[match.end() :]
    probe = b"".join((prefix, ENCODED_PROBE, middle, PROBE_GROWTH, suffix))
    chunk.usageMetadata = msgspec.structs.replace(
        counts, candidatesTokenCount=PROBE_CANDIDATES, totalTokenCount=PROBE_TOTAL
    )
    if decode_text_chunk(probe) != chunk:
        return None

    mark, behind_mark = divided_at_mark(middle)

    def read(gap: bytes) -> bool:
        encoded_text, _, rest = gap.partition(mark)
        encoded_growth = rest.removeprefix(behind_mark)
        if len(rest) - len(encoded_growth) != len(behind_mark):
            return False
        growth = decode_growth(b"{%b}" % encoded_growth)
        append(decode_text(encoded_text))
        assembler.usage(
            reports.grow(last_counts, growth.candidatesTokenCount, growth.totalTokenCount)
        )
        return True

    return ReadGap(prefix, suffix, read)
