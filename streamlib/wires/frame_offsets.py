"""Where the frames of a captured body end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import unpack_from
from typing import Final

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.items import WireApi

_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2,}")
_NEWLINE: Final = re.compile(rb"\r\n|\n|\r(?!\n)")
_BRACE: Final = re.compile(rb"\}")

_AWS_PRELUDE_BYTES: Final = 16
"""Bytes of an AWS message without headers and payload; a shorter length is malformed."""


def frame_offsets(wire_api: WireApi, body: bytes) -> Iterator[tuple[int, int]]:
    """Splits a body into ranges (start, end) in bytes, each with at most one end of a frame.

    Args:
        wire_api: the wire whose framing is used.
        body: any bytes; those that are not frames become one range.
    """
    frames = WIRE_SPECS[wire_api].frames
    if frames == "aws":
        return _split_by_length(body)
    if frames == "ndjson":
        return _split_after(_NEWLINE, body)
    if wire_api == "gemini" and body.lstrip()[:1] in (b"[", b"{"):
        # Without `alt=sse` Gemini streams one JSON array.
        return _split_after(_BRACE, body)
    return _split_after(_BLANK_LINE, body)


def _split_after(pattern: re.Pattern[bytes], body: bytes) -> Iterator[tuple[int, int]]:
    offset = 0
    for match in pattern.finditer(body):
        yield offset, match.end()
        offset = match.end()
    if offset < len(body):
        yield offset, len(body)


def _split_by_length(body: bytes) -> Iterator[tuple[int, int]]:
    """An AWS message starts with its length; everything after a wrong length is one range."""
    offset = 0
    while offset < len(body):
        end = len(body)
        if len(body) - offset >= 4:
            size = unpack_from(">I", body, offset)[0]
            if size >= _AWS_PRELUDE_BYTES:
                end = min(offset + size, len(body))
        yield offset, end
        offset = end
