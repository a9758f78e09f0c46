"""The limit of every buffer, each with its reason.

An exceeded limit ends the stream with `limit_exceeded`; its `code` names the field.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MIB: Final = 1 << 20


class Limits(Struct, frozen=True, gc=False):
    """Limits of one stream, in bytes or counts.

    Attributes:
        event_bytes: one line, SSE event, JSON line or AWS frame. 24 MiB is the frame limit of AWS's
            own decoder; OpenAI's partial images are single lines of several MiB; httpx2 stops at
            1 MiB, which a long ``response.completed`` exceeds.
        response_bytes: all bytes of one response. A response of 128k tokens is under 1 MiB,
            generated images are a few MiB each.
        items: items of one response. 10,000 is a hundred times the longest recorded agent turn.
        argument_bytes: arguments, input or code of one call: a written file, not a data set.
        header_count: headers of one AWS frame; AWS's own decoder allows 1,024 in a block of
            128 KiB.
        held_bytes: text that a dialect buffers while a tag is open: a written file inside a call.
    """

    event_bytes: int = 24 * MIB
    response_bytes: int = 256 * MIB
    items: int = 10_000
    argument_bytes: int = 16 * MIB
    header_count: int = 1024
    held_bytes: int = 4 * MIB


LIMITS: Final = Limits()
