"""The figures of docs/ui.md and docs/recordings.md, measured.

`pytest -s tests/streamlib/web/test_ui_metrics.py` prints them. Time is virtual: what a stage adds
is known to the microsecond, whatever else the machine does.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from streamlib import OutputTextDelta, ResponseEvent
from streamlib.pipeline import coalesce, pipe, tee
from streamlib.recording import Chunk, Recording, dump_events, from_body, load, save
from streamlib.recording.replay import random_pieces
from streamlib.testing import replay
from tests.streamlib.recording.test_recording import bare, events_of
from tests.support.loops import asyncio_alone
from tests.support.shared import ROOT
from tests.support.virtual_time import anyio_backend  # noqa: F401  # the fixture

DELTAS: Final = 20_000
A_SECOND: Final = 2_000.0
"""Deltas per second of a fast model."""
OWN: Final = sorted(
    path
    for path in (ROOT / "tests" / "recordings").glob("*/*")
    if path.suffix in (".sse", ".ndjson", ".eventstream")
)
BODIES: Final = {path: path.read_bytes() for path in OWN}


class Deltas:
    """A model that writes `count` deltas, one each tick.

    emitted: the number of deltas that were read from it so far.
    """

    def __init__(self, count: int, pause: float = 0.0) -> None:
        self.emitted = 0
        self._count, self._pause = count, pause

    def __aiter__(self) -> Deltas:
        return self

    async def __anext__(self) -> ResponseEvent:
        await anyio.sleep(self._pause)
        if self.emitted == self._count:
            raise StopAsyncIteration
        self.emitted += 1
        return OutputTextDelta(0, 0, f"word {self.emitted} ", seq=self.emitted)


def test_redraws_are_limited_and_first_token_is_not_late() -> None:
    now = [0.0]
    machine = coalesce(1 / 60).machine(lambda: now[0])
    out: list[tuple[float, Any]] = []
    for n in range(DELTAS):
        now[0] = n / A_SECOND
        out += [(now[0], event) for event in machine.feed(OutputTextDelta(0, 0, f"word {n} "))]
        if machine.due() == 0:
            out += [(now[0], event) for event in machine.expire()]
    out += [(now[0], event) for event in machine.close()]
    say(
        f"coalesce: {DELTAS:,} deltas in {now[0]:.1f} s became {len(out):,}; "
        f"the first was {out[0][0] * 1e3:.3f} ms late"
    )
    assert "".join(event.delta for _, event in out) == "".join(f"word {n} " for n in range(DELTAS))
    assert out[0][0] == 0.0
    assert len(out) <= 60 * now[0] + 2
    assert (
        max(after - before for (before, _), (after, _) in pairwise(out))
        <= 1 / 60 + 1.001 / A_SECOND
    )


async def test_pipeline_delays_no_token_by_an_interval() -> None:
    began = anyio.current_time()
    async with pipe(Deltas(1_000, 1 / A_SECOND), coalesce(1 / 60)) as events:
        times = [anyio.current_time() - began async for _ in events]
    assert times[0] == pytest.approx(1 / A_SECOND, abs=1e-9)
    assert max(after - before for before, after in pairwise(times)) <= 1 / 60 + 1.001 / A_SECOND
    assert len(times) <= 60 * times[-1] + 2


@pytest.mark.usefixtures("frozen_heap")
async def test_stalled_branch_has_bounded_memory() -> None:
    source = Deltas(1_000_000)
    gc.collect()
    tracemalloc.start()
    try:
        async with tee(source, 2) as (fast, _):
            with anyio.move_on_after(1):
                async for _ in fast:
                    pass
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    say(
        f"tee: of 1,000,000 events {source.emitted:,} were read and held for the branch that "
        f"stalled, {peak / 1e6:.1f} MB"
    )
    assert source.emitted == 4096
    assert peak < 2_000_000


@asyncio_alone
@pytest.mark.parametrize("path", OWN, ids=[f"{path.parent.name}-{path.name}" for path in OWN])
async def test_saved_recording_replays_equal_for_every_partition(
    path: Path, tmp_path: Path
) -> None:
    body, wire_api = BODIES[path], path.parent.name
    wanted = _log(from_body(body).events(wire_api))  # type: ignore[arg-type]
    chunks = tuple(Chunk(n / 100, fragment) for n, fragment in enumerate(random_pieces(body, 7)))
    save(Recording(200, {}, chunks, wire_api=wire_api), tmp_path / "r.jsonl")  # type: ignore[arg-type]
    assert load(tmp_path / "r.jsonl").chunks == chunks
    for split in ("recorded", "whole", 1):
        async with replay(tmp_path / "r.jsonl", split=split, errors="event") as client:  # type: ignore[arg-type]
            assert _log(await events_of(client)) == wanted


def say(line: str) -> None:
    """For `pytest -s`."""
    sys.stdout.write(f"\n{line}\n")


def _log(events: list[Any]) -> bytes:
    return dump_events(bare(events))
