"""Server-sent events as npm's eventsource-parser reads them (Vercel's AI SDK stands on it), the
same bytes, several chunk sizes."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from lab.real.ui_readers import Readers, absence, running
from streamlib_parsers.framing.sse import SSEFraming
from tests.real.conftest import ABSENT
from tests.support.invariants import OURS

pytestmark = pytest.mark.real

COUNT: Final = 4_000
PIECES: Final = (
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b":",
        b" ",
        b"data: ",
        b"data",
        b"data:x",
        b"event: a\n",
        b"event\n",
        b"id: 7\n",
        b"id\n",
        b"id: \0\n",
    ),
    *(
        b": ping\n\n",
        b"\xef\xbb\xbf",
        "é😀\u2028\x0b\x85".encode(),
        b"data: {}\n\n",
        b"event: b\ndata: 1\ndata: 2\r\n\r\n",
        b"retry: 5\n",
    ),
    *(b"x: y\n", b"\xff", b"Data: x\n"),
)
DIFFERENCES: Final = {
    "a lone CR behind the last LF is not known to be a line end": lambda body: (
        b"\r" in body.rpartition(b"\n")[2]
    ),
}
"""Known differences of eventsource-parser 3.1.1, each with the bodies that may show it."""


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    why = absence()
    if why is not None:
        pytest.skip(f"{ABSENT}: eventsource-parser, {why}")
    with running() as found:
        yield found


def ours(body: bytes) -> list[list[str]]:
    """Names and data; ids are not compared: eventsource-parser leaves it to its caller to keep them
    from block to block."""
    frames = SSEFraming().feed(body)
    return [
        [frame.event or "message", frame.data.decode("utf-8", "replace")]
        for frame in frames
        if frame.data is not None
    ]


def bodies() -> Iterator[bytes]:
    yield from (path.read_bytes() for path in OURS if path.suffix == ".sse")
    rng = random.Random(3)
    yield from (
        b"".join(rng.choice(PIECES) for _ in range(rng.randrange(14))) for _ in range(COUNT)
    )


def test_eventsource_parser_agrees_but_for_known_differences(
    readers: Readers,
) -> None:
    rng = random.Random(5)
    compared = 0
    for body in bodies():
        if not any(known(body) for known in DIFFERENCES.values()):
            theirs = readers.read("sse", body, rng.choice((1, 7, 4096)))
            assert theirs["events"] == ours(body), body
            compared += 1
    sys.stdout.write(f"{compared:,} bodies read alike\n")
    assert compared > COUNT // 2


def test_eventsource_parser_still_has_its_known_difference(readers: Readers) -> None:
    body = b"data: x\r\n\r"
    assert readers.read("sse", body)["events"] != ours(body)
