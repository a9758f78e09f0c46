"""The two kinds of silence: no bytes, and bytes without a finished frame. No moment is in both."""

from __future__ import annotations

import random
from itertools import pairwise

from streamlib.inspection import Silence, inspect
from streamlib.inspection.capture import Capture
from streamlib.inspection.clock import THRESHOLD, Clock
from streamlib.recording import Chunk, Recording
from tests.support.cases import each_case

FRAME = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
HALF = len(FRAME) // 2
LONG = b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % (b"x" * 1000)


def silences_of(*chunks: tuple[float, bytes]) -> tuple[list[Silence], list[Silence]]:
    recording = Recording(200, {}, tuple([Chunk(at, data) for at, data in chunks]))
    found = inspect(recording, "chat").silences
    return list(found.no_bytes), list(found.no_frame)


def spans(silences: list[Silence]) -> list[tuple[float, float]]:
    return [(silence.start, silence.end) for silence in silences]


def in_parts(data: bytes, count: int, start: float, end: float) -> list[tuple[float, bytes]]:
    size = -(-len(data) // count)
    step = (end - start) / (count - 1)
    parts: list[tuple[float, bytes]] = []
    for index in range(count):
        part = data[index * size : (index + 1) * size]
        parts.append((round(start + index * step, 3), part))
    return parts


def test_silence_without_bytes_is_a_wait_between_chunks() -> None:
    no_bytes, no_frame = silences_of((1.0, FRAME), (1.1, FRAME), (3.1, FRAME))
    assert spans(no_bytes) == [(1.1, 3.1)]
    assert (no_bytes[0].byte, no_bytes[0].frame, no_bytes[0].bytes) == (2 * len(FRAME), 2, 0)
    assert no_frame == []


def test_silence_without_a_frame_is_a_long_frame_that_arrives() -> None:
    no_bytes, no_frame = silences_of((1.0, FRAME), *in_parts(LONG, 11, 1.2, 3.2), (3.3, FRAME))
    assert no_bytes == []
    assert spans(no_frame) == [(1.2, 3.2)]
    assert (no_frame[0].byte, no_frame[0].frame) == (len(FRAME), 1)
    assert 0 < no_frame[0].bytes < len(LONG)


def test_wait_inside_a_frame_is_without_bytes_alone() -> None:
    no_bytes, no_frame = silences_of((1.0, FRAME + FRAME[:HALF]), (3.0, FRAME[HALF:]))
    assert spans(no_bytes) == [(1.0, 3.0)]
    assert no_frame == []


def test_long_frame_with_a_wait_in_it_is_parted() -> None:
    first, second = LONG[:500], LONG[500:]
    chunks = [*in_parts(first, 5, 1.0, 2.0), *in_parts(second, 5, 4.0, 5.0)]
    no_bytes, no_frame = silences_of(*chunks)
    assert spans(no_bytes) == [(2.0, 4.0)]
    assert spans(no_frame) == [(1.0, 2.0), (4.0, 5.0)]


def test_silence_begins_with_the_chunk_that_began_its_frame() -> None:
    first, second = LONG[:500], LONG[500:]
    # The first chunk ends a frame and begins the next; the other ends with its frame.
    _, inside = silences_of((1.0, FRAME + first[:9]), (1.3, first[9:]), (1.6, second))
    assert spans(inside) == [(1.0, 1.6)]
    _, apart = silences_of((1.0, FRAME), (1.3, first), (1.6, second))
    assert spans(apart) == []


def test_frame_that_ends_with_the_second_chunk_is_in_time() -> None:
    """The next one begins with its own chunk, not with the first."""
    no_bytes, no_frame = silences_of((1.0, LONG[:99]), (1.3, LONG[99:]), (1.6, FRAME))
    assert (no_bytes, no_frame) == ([], [])


def test_the_500_longest_silences_are_kept() -> None:
    short = [(0.0, FRAME), (0.6, FRAME), (1.2, FRAME)]
    no_bytes, _ = silences_of(*short, *[(2.2 + at, FRAME) for at in range(500)])
    assert len(no_bytes) == 500
    assert spans(no_bytes)[0] == (1.2, 2.2)


def test_silence_has_at_least_the_threshold() -> None:
    """Two times whose difference a float holds exactly."""
    for end, count in ((1.0 + THRESHOLD, 1), (1.0 + THRESHOLD - 0.125, 0)):
        chunks = [(1.0, LONG[:9]), ((1.0 + end) / 2, LONG[9:99]), (end, LONG[99:])]
        no_bytes, no_frame = silences_of(*chunks)
        assert (no_bytes, len(no_frame)) == ([], count)


def test_byte_was_received_with_its_chunk() -> None:
    chunks = (Chunk(1.0, b"12345"), Chunk(2.0, b"67890"))
    clock = Clock(Capture("a", "chat", Recording(200, {}, chunks), is_recorded=True))
    assert [clock.seconds(offset) for offset in (0, 4, 5, 9, 10)] == [1.0, 1.0, 2.0, 2.0, 2.0]


def test_frame_that_never_ends_is_a_silence() -> None:
    no_bytes, no_frame = silences_of((0.5, FRAME), *in_parts(LONG[:-2], 5, 0.6, 1.4))
    assert (no_bytes, spans(no_frame)) == ([], [(0.6, 1.4)])


@each_case(
    "chunks",
    [
        [],
        [(1.0, b"")],
        [(1.0, FRAME)],
        [(9.0, FRAME), (1.0, FRAME)],
        [(float("inf"), FRAME), (float("nan"), FRAME)],
        [(0.1 * index, FRAME) for index in range(50)],
    ],
)
def test_chunks_without_a_long_wait_have_no_silence(chunks: list[tuple[float, bytes]]) -> None:
    assert silences_of(*chunks) == ([], [])


@each_case("seed", range(8))
def test_silences_never_overlap(seed: int) -> None:
    rng = random.Random(seed)
    body = b"".join(rng.choice([FRAME, LONG]) for _ in range(12))
    chunks: list[tuple[float, bytes]] = []
    offset, at = 0, 0.1
    while offset < len(body):
        size = rng.choice([1, 20, 200, 2000])
        chunks.append((at, body[offset : offset + size]))
        offset += size
        at = round(at + rng.choice([0.0, 0.1, 0.3, 0.6]), 3)
    no_bytes, no_frame = silences_of(*chunks)
    ordered = sorted(spans(no_bytes) + spans(no_frame))
    assert all(end >= start + 0.499 for start, end in ordered)
    for (_, end), (start, _) in pairwise(ordered):
        assert end <= start


def test_raw_capture_has_no_silences() -> None:
    found = inspect(FRAME * 3, "chat")
    assert (found.silences.no_bytes, found.facts.duration) == ((), None)


def test_findings_name_the_two_silences_apart() -> None:
    chunks = [(1.0, FRAME), *in_parts(LONG, 11, 1.2, 3.2), (5.2, FRAME)]
    recording = Recording(200, {}, tuple([Chunk(at, data) for at, data in chunks]))
    found = {finding.code: finding.text for finding in inspect(recording, "chat").findings}
    assert found["no_bytes"] == f"longest gap: 2.0 s, before byte {len(FRAME + LONG):,}"
    assert found["no_frame"].startswith("longest wait for one frame: 2.0 s, while ")
