"""An oracle for the SSE framing: the standard by other means, and bodies to compare on."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from hypothesis import strategies as st

from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.sse import MAX_RETRY, SSEFraming
from streamlib_parsers.limits import LIMITS, Limits

BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Outcome:
    """All results of one run: after `feed` (the standard), then what `close` adds."""

    strict: list[Frame]
    tail: list[Frame]
    last_event_id: str | None
    retry: int | None
    blank: bool
    failed: bool

    @property
    def tolerant(self) -> list[Frame]:
        return self.strict + self.tail


def run(chunks: Iterable[bytes], limits: Limits = LIMITS) -> Outcome:
    framing = SSEFraming(limits)
    strict = [frame for chunk in chunks for frame in framing.feed(chunk)]
    last_event_id, retry = framing.last_event_id, framing.retry
    tail = framing.close()
    failure = framing.failure
    assert framing.close() == []
    if failure is not None:
        assert (failure.info.kind, failure.info.code) == ("limit_exceeded", "event_bytes")
        assert framing.feed(b"data: late\n\n") == []
        assert framing.failure is failure
    return Outcome(strict, tail, last_event_id, retry, framing.blank, failure is not None)


def oracle(body: bytes, limit: int = LIMITS.event_bytes) -> Outcome:
    """Reads the body as the standard does, all at once and block by block.

    Slow, and by other means than the framing.
    """
    *lines, rest = re.split(rb"\r\n|\r|\n", body.removeprefix(BOM))
    *ended, pending = blocks_of(lines)
    blocks = [*ended, [*pending, rest]]
    complete = list(takewhile(lambda block: fits(block, limit), blocks))
    ids = list[str | None]([None])
    for block in complete:
        ids_of_block = [text(value) for value in values(block, b"id") if b"\0" not in value]
        ids.append(ids_of_block[-1] if ids_of_block else ids[-1])
    frames = [read_block(block, ident) for block, ident in zip(complete, ids[1:], strict=True)]
    strict, tail = (
        [frame for frame in part if frame] for part in (frames[: len(ended)], frames[len(ended) :])
    )
    delays = [int(value) for value in values(lines, b"retry") if re.fullmatch(rb"[0-9]+", value)]
    retry = min(delays[-1], MAX_RETRY) if delays else None
    blank = all(line.startswith(b":") for line in [*lines, rest] if line)
    return Outcome(
        strict, tail, ids[: len(ended) + 1][-1], retry, blank, len(complete) < len(blocks)
    )


def blocks_of(lines: list[bytes]) -> list[list[bytes]]:
    blocks = list[list[bytes]]([[]])
    for line in lines:
        if line:
            blocks[-1].append(line)
        else:
            blocks.append([])
    return blocks


def read_block(block: list[bytes], ident: str | None) -> Frame | None:
    data, names, stray = values(block, b"data"), values(block, b"event"), b"\n".join(strays(block))
    if data:
        return Frame(text(names[-1]) or None if names else None, b"\n".join(data), ident, stray)
    return Frame(None, None, ident, stray) if stray else None


def values(lines: list[bytes], name: bytes) -> list[bytes]:
    matches = (
        re.fullmatch(re.escape(name) + rb"(?::[ ]?(.*))?", line, re.DOTALL) for line in lines
    )
    return [match[1] or b"" for match in matches if match]


def strays(lines: list[bytes]) -> list[bytes]:
    return [
        line
        for line in lines
        if not re.match(rb"(data|event|id|retry)?:|(data|event|id|retry)?\Z", line)
    ]


def fits(block: list[bytes], limit: int) -> bool:
    buffered = len(b"\n".join(values(block, b"data"))) + len(b"\n".join(strays(block)))
    return max(buffered, *map(len, block), 0) <= limit


def text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def report(figures: str) -> None:
    """Prints figures of this run; `pytest -rP` shows them."""
    sys.stdout.write(figures + "\n")


FRAGMENTS: Final = st.one_of(
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b": ",
            b":",
            b" ",
            b"data: ",
            b"data:",
            b"data",
            b"event: ",
            b"event:x",
            b"id: ",
            b"id:",
        ]
    ),
    st.sampled_from(
        [
            b"event: ping\ndata: {}\n\n",
            b"data: {}\n\n",
            b"data: a\r\n\r\n",
            b"id: 7\ndata\n\n",
            b": ping\n\n",
            b"error: {}\n",
            b"[DONE]",
        ]
    ),
    st.sampled_from(
        [
            BOM,
            BOM[:1],
            BOM[:2],
            b"\0",
            b"\xff",
            b"\xf0\x9f",
            "😀".encode(),
            "\u2028".encode(),
            b"\x0b\x0c\x1c\x85",
        ]
    ),
    st.builds(
        lambda number: b"retry:%b" % number,
        st.sampled_from(
            [b"5", b" 10", b"+5", b"1_0", b"", "\u0663".encode(), b"9" * 30, b"0" * 40 + b"7"]
        ),
    ),
    st.binary(max_size=6),
)
BODIES: Final = st.lists(FRAGMENTS, max_size=14).map(b"".join)
