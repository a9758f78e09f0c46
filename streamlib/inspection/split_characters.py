"""Finds chunk boundaries that lie inside a character."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from struct import unpack_from
from typing import Final

from streamlib.inspection.capture import Capture
from streamlib.inspection.document import SplitCharacters
from streamlib.inspection.frames import Step
from streamlib.providers.wire_specs import WIRE_SPECS

MAX_OFFSETS: Final = 1000
"""Limit of boundaries whose offsets are listed."""

_AWS_PRELUDE_BYTES: Final = 12
_AWS_CHECKSUM_BYTES: Final = 4


def split_characters(capture: Capture, steps: Sequence[Step]) -> SplitCharacters:
    """The chunk boundaries inside a UTF-8 character.

    Args:
        capture: the captured response.
        steps: its frames; in Bedrock frames only the payload is text.
    """
    body = capture.recording.body
    is_binary = WIRE_SPECS[capture.wire_api].frames == "aws" and not capture.is_complete_body
    starts = [step.start for step in steps]
    count = 0
    offsets: list[int] = []
    offset = 0
    for chunk in capture.recording.chunks[:-1]:
        offset += len(chunk.data)
        if not _is_inside_character(body, offset):
            continue
        if is_binary:
            step = steps[bisect_right(starts, offset) - 1]
            if not _is_payload(body, step, offset):
                continue
        count += 1
        if count <= MAX_OFFSETS:
            offsets.append(offset)
    return SplitCharacters(count=count, bytes=tuple(offsets))


def _is_inside_character(body: bytes, offset: int) -> bool:
    """Whether the byte at an offset continues a character that began before it."""
    if not 0 < offset < len(body) or body[offset] & 0xC0 != 0x80:
        return False
    start = offset - 1
    while start > max(0, offset - 3) and body[start] & 0xC0 == 0x80:
        start -= 1
    try:
        body[start : start + _length(body[start])].decode()
    except UnicodeDecodeError:
        return False
    return start + _length(body[start]) > offset


def _length(first_byte: int) -> int:
    """Number of bytes of a character, from its first byte."""
    if first_byte < 0xC0:
        return 1
    if first_byte < 0xE0:
        return 2
    if first_byte < 0xF0:
        return 3
    return 4


def _is_payload(body: bytes, message: Step, offset: int) -> bool:
    """Whether an offset is in the payload of an AWS message, after its headers."""
    # The message is not copied: a large one may have a split character in each of its chunks.
    if message.end - message.start < _AWS_PRELUDE_BYTES:
        return False
    headers: int = unpack_from(">I", body, message.start + 4)[0]
    start = message.start + _AWS_PRELUDE_BYTES + headers
    return start < offset < message.end - _AWS_CHECKSUM_BYTES
