"""Parses a body again in other chunks: the events must be the same.

Each split is really parsed. The work is limited: for a large body small chunks are skipped, and
the document lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from streamlib.inspection.capture import Capture, end_of_input
from streamlib.inspection.document import SkippedSplit, SplitResult, Splits
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.protocol import parser

SIZES: Final = (1, 2, 3, 7, 16, 64, 1024, 65536)
"""Sizes of chunks to try, in bytes."""

WORK_CHUNKS: Final = 150_000
"""Limit of chunks in all splits together. One takes about a microsecond."""

WORK_BYTES: Final = 12_000_000
"""Limit of bytes in all splits together: a hundred million take about a second."""

WORK_EVENTS: Final = 60_000
"""Limit of events in all splits together. One takes some microseconds."""


def tried(capture: Capture, events: Sequence[ResponseEvent], sizes: Iterable[int] = ()) -> Splits:
    """Parses a capture again in several splits.

    Args:
        capture: the captured response.
        events: the events from parsing it frame by frame.
        sizes: sizes of chunks that are always tried, however long that takes; in bytes.

    Raises:
        ValueError: a size is below 1, or is no number.
    """
    wanted = list(sizes)  # an iterator is read once
    for size in wanted:
        if isinstance(size, bool) or size < 1:
            raise ValueError(f"splits are sizes of chunks in bytes, at least 1, not {size!r}")
    if capture.is_complete_body:
        return Splits()
    expected = msgspec.json.encode(list(events))
    body = capture.recording.body
    chunks_left, bytes_left, events_left = WORK_CHUNKS, WORK_BYTES, WORK_EVENTS
    results: list[SplitResult] = []
    skipped: list[SkippedSplit] = []
    candidates: list[int | str] = ["whole", "recorded"]
    candidates += sorted({*SIZES, *wanted}, reverse=True)
    for split in candidates:
        if isinstance(split, int) and split >= len(body):
            continue  # equals `whole`
        count = _count(capture, split)
        is_cheap = count <= chunks_left and len(body) <= bytes_left and len(events) <= events_left
        if split not in wanted and split != "whole" and not is_cheap:
            reason = f"{count:,} chunks of {len(body):,} bytes would take too long"
            skipped.append(SkippedSplit(split=split, reason=reason))
            continue
        chunks_left -= count
        bytes_left -= len(body)
        events_left -= len(events)
        results.append(_result(capture, split, count, events, expected))
    return Splits(results=tuple(results), skipped=tuple(skipped))


def _count(capture: Capture, split: int | str) -> int:
    size = len(capture.recording.body)
    if isinstance(split, int):
        return -(-size // split)
    if split == "recorded":
        return len(capture.recording.chunks)
    return 1


def _result(
    capture: Capture,
    split: int | str,
    count: int,
    events: Sequence[ResponseEvent],
    expected: bytes,
) -> SplitResult:
    parse = parser(capture.wire_api, **capture.options)
    parsed: list[ResponseEvent] = []
    for chunk in _chunks(capture, split):
        parsed += parse.feed(chunk)
    parsed += end_of_input(capture, parse)
    if msgspec.json.encode(parsed) == expected:
        return SplitResult(split=split, chunks=count, same=True)
    return SplitResult(
        split=split, chunks=count, same=False, first_difference=_first_difference(events, parsed)
    )


def _chunks(capture: Capture, split: int | str) -> Iterator[bytes]:
    body = capture.recording.body
    if isinstance(split, int):
        for start, end in pairwise([*range(0, len(body), split), len(body)]):
            yield body[start:end]
    elif split == "recorded":
        for chunk in capture.recording.chunks:
            yield chunk.data
    else:
        yield body


def _first_difference(events: Sequence[ResponseEvent], others: Sequence[ResponseEvent]) -> int:
    for number, (event, other) in enumerate(zip(events, others, strict=False)):
        if msgspec.json.encode(event) != msgspec.json.encode(other):
            return number
    return min(len(events), len(others))
