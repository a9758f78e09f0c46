"""20,000 frames become a document and a page within a second, and the page stays small."""

from __future__ import annotations

import random
import string

import pytest

from streamlib.inspection import inspect, render
from streamlib.recording import Chunk, Recording
from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import SampleText
from streamlib_parsers import WIRE_APIS
from streamlib_parsers.items import WireApi
from tests.support.timing import cpu_seconds

FRAMES = 20_000
PAGE_BYTES = 1_200_000
SHELL_BYTES = 40_000


def recording_of(wire_api: WireApi, frames: int) -> Recording:
    """A response of words in random order, in chunks of random sizes at random times."""
    rng = random.Random(2)
    letters = string.ascii_lowercase
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(8000)]
    deltas = [f" {rng.choice(words)}" for _ in range(frames)]
    body = b"".join(bodies.body(wire_api, (SampleText(deltas),)))
    chunks: list[Chunk] = []
    offset, seconds = 0, 0.3
    while offset < len(body):
        size = rng.choice([100, 200, 300])
        chunks.append(Chunk(round(seconds, 6), body[offset : offset + size]))
        offset += size
        seconds += rng.random() * 0.03
    return Recording(200, {}, tuple(chunks), wire_api=wire_api)


def test_page_of_many_frames_is_small() -> None:
    page = render([inspect(recording_of("chat", FRAMES // 20))])
    assert len(page.encode()) < SHELL_BYTES + PAGE_BYTES // 20


@pytest.mark.slow
@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_page_of_20_000_frames_is_made_in_a_second(wire_api: WireApi) -> None:
    recording = recording_of(wire_api, FRAMES)
    assert len(render([inspect(recording)]).encode()) < PAGE_BYTES
    assert cpu_seconds(lambda: render([inspect(recording)]), tries=3) < 1.0
