"""The comparisons: who takes part reads the same as we do, and a round is compared with itself."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from benchmarks import compiled_build, node_readers, races, socket_run, transports
from benchmarks.commands import Options
from benchmarks.contestants import Contestant, Outcome, ours
from benchmarks.framings import FRAMINGS
from benchmarks.node_readers import NODE
from benchmarks.other_sdks import COHERE
from benchmarks.races import Disagreement, agree, race
from benchmarks.results import Figure, Result, figure, load, save
from benchmarks.sdks import PEERS
from benchmarks.socket_run import Spent, Streams
from streamlib.cli.bench import Bar
from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import short
from streamlib.testing.bench.workloads import EVENT, FAST, WORKLOADS, chunked
from tests.support.cases import each_case

CHUNKINGS: Final = (EVENT, 7, FAST)
LOOPS: Final = ("asyncio", "uvloop", "trio")
SDKS: Final = (*PEERS, *COHERE)


def named(contestant: Contestant) -> str:
    return f"{contestant.wire}, {contestant.name}, {contestant.depth}"


def short_body(wire: str) -> list[bytes]:
    """A short response with reasoning, a text and a call."""
    body: list[bytes] = list(getattr(bodies, wire)(short(1)))
    return body


@each_case("peer", FRAMINGS, ids=named)
def test_framings_read_what_we_read_in_any_chunks(peer: Contestant) -> None:
    events = short_body(peer.wire)
    expected = ours(peer.wire).read(events)
    assert expected.text
    assert len(expected.arguments) == 1
    for size in CHUNKINGS:
        assert peer.read(chunked(events, size)) == expected
        assert peer.seconds(chunked(events, size)) > 0


def test_snapshots_at_every_event_cost_more_than_events() -> None:
    chunks = WORKLOADS["messages"].events()

    def best(depth: str) -> float:
        return min(ours("messages", depth).seconds(chunks) for _ in range(3))  # type: ignore[arg-type]

    assert best("events") < best("snapshots")


@pytest.mark.slow
@pytest.mark.parametrize("peer", SDKS, ids=named)
def test_sdks_read_what_we_read(peer: Contestant) -> None:
    if not peer.installed:
        pytest.skip(f"{peer.distribution} is not installed")
    events = short_body(peer.wire)
    assert peer.read(events) == ours(peer.wire).read(events)
    assert peer.seconds(events) > 0


@pytest.mark.real
@pytest.mark.parametrize("peer", NODE, ids=named)
def test_readers_in_node_read_what_we_read(
    peer: Contestant, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = node_readers.absence()
    if why is not None:
        pytest.skip(why)
    monkeypatch.setattr(node_readers, "WARM_SECONDS", 0)
    events = short_body(peer.wire)
    assert peer.read(events) == ours(peer.wire).read(events)
    assert peer.seconds(events) > 0


# --- a race ---


def reader(name: str, seconds: list[float], text: str = "") -> Contestant:
    """A contestant that takes these times, one after the other."""
    times = iter(seconds)
    outcome = Outcome(text, [])
    return Contestant(name, "", "messages", "events", lambda _: next(times), lambda _: outcome)


def test_race_compares_each_round_with_itself() -> None:
    racers = [reader("streamlib", [1.0, 2.0, 4.0]), reader("slow", [3.0, 4.0, 8.0])]
    own, peer, compared = race("events", "w", [b"a", b"b"], EVENT, racers, 3)
    assert own.rounds == (5e5, 1e6, 2e6)
    assert (own.median, own.spread) == (1e6, (5e5, 2e6))
    assert peer.rounds == (1.5e6, 2e6, 4e6)
    assert (compared.unit, compared.rounds) == ("x", (3.0, 2.0, 2.0))


def test_race_reads_again_until_its_window_is_over() -> None:
    spent = races.seconds(reader("quick", [0.004, 0.008, 0.018]), [], 0.02)
    assert spent == pytest.approx(0.01)


def test_race_refuses_who_reads_something_else() -> None:
    with pytest.raises(Disagreement, match="other reads messages differently from streamlib"):
        agree([reader("streamlib", [], "a"), reader("other", [], "b")], [])


# --- what was measured ---


def result_of(*figures: Figure) -> Result:
    return Result("python -m x", "2026-01-01", {}, {}, figures)


def test_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    made = result_of(figure("events", "w", "16 KiB", "streamlib", "time", "µs/event", [1.23456]))
    save("part", made, tmp_path)
    assert load("part", tmp_path) == made
    assert load("other", tmp_path) is None
    assert made.figures[0].rounds == (1.235,)


# --- the commands, in their quick form ---


def test_transports_measure_the_most_streams_last() -> None:
    names = [*transports.OURS, *transports.COMPARED]
    made = transports.combinations(names, Options())
    assert [streams.count for _, _, streams in made[-11:]] == [socket_run.MANY] * 11
    assert {streams.count for _, _, streams in made} == {1, 100, 500, socket_run.MANY}
    assert ("streamlib, aiohttp", "trio") not in {(name, loop) for name, loop, _ in made}
    assert {loop for name, loop, _ in made if name == "streamlib, httpx2"} == set(LOOPS)
    compared = [streams.count for name, _, streams in made if name in transports.COMPARED]
    assert max(compared) == 100


def test_interrupted_measurement_keeps_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([Spent(setup=2.0, event=1.0, memory=3.0)])

    def run(*_: object) -> Spent:
        for spent in runs:
            return spent
        raise KeyboardInterrupt

    monkeypatch.setattr(socket_run, "run", run)
    wanted = [("streamlib, httpx", "trio", Streams(count, 5, 0)) for count in (3, 4)]
    figures, absent = socket_run.measure("transports", wanted, 2, Bar(1))
    assert [(entry.workload, entry.rounds) for entry in figures] == [
        ("3 streams", (1.0,)),
        ("3 streams", (2.0,)),
        ("3 streams", (3.0,)),
    ]
    assert absent == ["streamlib, httpx on trio with 4 streams at once"]


def test_measurement_that_lasts_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_run, "SECONDS", 0.01)
    wanted = [("socket, drained", "asyncio", Streams(1, 5, 0))]
    figures, absent = socket_run.measure("transports", wanted, 1, Bar(1))
    assert (figures, absent) == ([], ["socket, drained on asyncio with 1 streams at once"])


def test_build_is_made_anew_for_a_newer_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    monkeypatch.setattr(compiled_build, "SOURCES", (source,))
    monkeypatch.setattr(compiled_build, "HOME", built)
    source.mkdir()
    (source / "module.py").touch()
    assert not compiled_build.is_fresh()
    built.mkdir()
    os.utime(source / "module.py", (1, 1))
    assert compiled_build.is_fresh()
    os.utime(built, (0, 0))
    assert not compiled_build.is_fresh()


@pytest.mark.parametrize("loop", LOOPS)
def test_transports_measure_a_loop(loop: str) -> None:
    if find_spec(loop) is None:
        pytest.skip(f"{loop} is not installed")
    figures, absent = socket_run.measure(
        "transports", [("streamlib, httpx", loop, Streams(3, 5, 0.001))], 1, Bar(1)
    )
    assert absent == []
    assert [entry.measure for entry in figures] == ["event", "setup", "memory"]
    assert figures[0].rounds[0] > 0
    assert figures[0].contestant == f"streamlib, httpx, {loop}"


def test_transports_say_why_a_reader_failed() -> None:
    with pytest.raises(RuntimeError, match="streamlib, aiohttp on trio"):
        socket_run.run("http://127.0.0.1:9", "streamlib, aiohttp", "trio", Streams(1, 1, 0), "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["bench_async", "bench_accumulators", "bench_import", "gateway", "transports"]
)
def test_part_works_in_its_quick_form(part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{part}", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n") > 3
