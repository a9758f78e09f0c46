"""The comparisons: who takes part reads the same as we do, and a round is compared with itself."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from benchmarks import node_readers, recordings, socket_run, transports
from benchmarks.commands import Options
from benchmarks.contestants import Contestant, Outcome, client, ours, repeated
from benchmarks.framings import FRAMINGS
from benchmarks.races import race, reads_the_same
from benchmarks.reader_process import checkout_process
from benchmarks.results import load, save
from benchmarks.sdks import PEERS
from benchmarks.socket_run import Spent, Streams
from streamlib.cli.bench import Bar
from streamlib.testing.bench import bodies, corpus
from streamlib.testing.bench.records import BenchRun, Figure, figure
from streamlib.testing.bench.responses import short
from streamlib.testing.bench.workloads import EVENT, FAST, chunked
from streamlib_parsers import WIRE_APIS, WireApi
from tests.support.cases import each_case
from tests.support.shared import ROOT

CHUNKINGS: Final = (EVENT, 7, FAST)
LOOPS: Final = ("asyncio", "uvloop", "trio")


def named(contestant: Contestant) -> str:
    return f"{contestant.wire}, {contestant.name}"


def short_body(wire: WireApi) -> list[bytes]:
    """A short response with reasoning, a text and a call."""
    return bodies.body(wire, short(1))


@each_case("peer", FRAMINGS, ids=named)
def test_framings_read_what_we_read_in_any_chunks(peer: Contestant) -> None:
    events = short_body(peer.wire)
    expected = ours(peer.wire).read(events)
    assert expected.text
    assert len(expected.arguments) == 1
    for size in CHUNKINGS:
        assert peer.read(chunked(events, size)) == expected
        assert peer.seconds(chunked(events, size), 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS, ids=named)
def test_sdks_read_what_we_read(peer: Contestant) -> None:
    if not peer.installed:
        pytest.skip(f"{peer.distribution} is not installed")
    events = short_body(peer.wire)
    assert peer.read(events) == ours(peer.wire).read(events)
    assert peer.seconds(events, 0) > 0


@pytest.mark.real
@pytest.mark.parametrize("wire", WIRE_APIS)
def test_readers_in_node_read_what_we_read(wire: str) -> None:
    why = node_readers.absence()
    if why is not None:
        pytest.skip(why)
    events = short_body(wire)
    for peer in node_readers.contestants(wire):
        assert peer.read(events) == ours(peer.wire).read(events)
        assert peer.seconds(events, 0) > 0


def test_client_is_a_contestant_with_and_without_its_request() -> None:
    events = short_body("chat")
    for with_request in (False, True):
        whole = client("chat", with_request=with_request)
        assert whole.read(events) == ours("chat").read(events)
        assert whole.seconds(events, 0) > 0


def test_checkout_reads_in_a_process_of_its_own() -> None:
    process = checkout_process(ROOT)
    assert process.ask()["from"].startswith(str(ROOT))
    checkout = process.contestant("this", "parser", "messages")
    events = short_body("messages")
    assert checkout.read(events) == ours("messages").read(events)
    assert checkout.seconds(events, 0) > 0
    with pytest.raises(RuntimeError, match="KeyError"):
        process.ask(time="parser", wire="messages", body="unknown", seconds=0)
    process.close()


# --- a race ---


STREAMS: Final = [
    corpus.Stream("short", "messages", [b"a", b"b"]),
    corpus.Stream("long", "messages", [b"x"] * 20),
]


def reader(name: str, rounds: list[list[float]], text: str = "") -> Contestant:
    """A contestant that takes these seconds, for the streams of each round in turn."""
    times = iter([seconds for of_round in rounds for seconds in of_round])
    outcome = Outcome(text, [])
    return Contestant(name, "", "messages", lambda *_: next(times), lambda _: outcome)


def median_of(figures: list[Figure], **wanted: str) -> float:
    [found] = result_of(*figures).find(**wanted)
    return found.median


def test_race_measures_an_event_and_a_response_by_length() -> None:
    racers = [reader("streamlib", [[4e-6, 10e-6]]), reader("peer", [[8e-6, 30e-6]])]
    figures = race(STREAMS, (EVENT,), racers, 1)
    ours_of = {"contestant": "streamlib", "chunks": "an event"}
    short_streams = {**ours_of, "workload": "messages, 1-12 events"}
    assert median_of(figures, **short_streams, measure="streams") == 1
    assert median_of(figures, **short_streams, measure="event") == 2
    assert median_of(figures, **short_streams, measure="response") == 4
    everything = {"workload": "messages, all", "measure": "response"}
    assert median_of(figures, **ours_of, **everything) == 7
    peer_of = {"contestant": "peer", "measure": "ratio"}
    assert median_of(figures, **peer_of, workload="messages, 13-50 events") == 3


def test_race_compares_each_round_with_itself() -> None:
    racers = [
        reader("streamlib", [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]),
        reader("slow", [[3.0, 3.0], [4.0, 4.0], [8.0, 8.0]]),
    ]
    figures = race(STREAMS, (EVENT,), racers, 3)
    [compared] = result_of(*figures).find(workload="messages, all", measure="ratio")
    assert (compared.unit, compared.rounds) == ("x", (3.0, 2.0, 2.0))


def test_race_compares_on_the_streams_that_a_peer_reads() -> None:
    def fails_on_the_long_one(chunks: list[bytes]) -> Outcome:
        if len(chunks) > 12:
            raise ValueError("too long")
        return Outcome("", [])

    half = reader("half", [[6e-6]])._replace(read=fails_on_the_long_one)
    figures = race(STREAMS, (EVENT,), [reader("streamlib", [[2e-6, 9.0]]), half], 1)
    key = {"workload": "messages, all", "contestant": "half"}
    assert median_of(figures, **key, measure="streams") == 1
    assert median_of(figures, **key, measure="ratio") == 3


def test_reader_reads_again_until_its_window_is_over() -> None:
    times = iter([0.004, 0.008, 0.018])
    assert repeated(lambda: next(times), 0.02) == pytest.approx(0.01)


def test_reader_with_less_or_other_text_does_not_read_the_same() -> None:
    own = Outcome("text", ["{}"])
    assert reads_the_same(own, Outcome("text", ["{}", "hosted"]))
    assert not reads_the_same(own, Outcome("text", []))
    assert not reads_the_same(own, Outcome("other", ["{}"]))
    assert not reads_the_same(own, None)
    assert not reads_the_same(None, own)


# --- what was measured ---


def result_of(*figures: Figure) -> BenchRun:
    return BenchRun("python -m x", "2026-01-01", {}, {}, figures)


def test_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    made = result_of(figure("events", "w", "16 KiB", "streamlib", "time", "µs/event", [1.23456]))
    save("part", made, tmp_path)
    assert load("part", tmp_path) == made
    assert load("other", tmp_path) is None
    assert made.figures[0].rounds == (1.235,)


# --- the commands, in their quick form ---


def test_comparison_of_checkouts_is_not_saved(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        recordings.main(["--against", str(ROOT), "--save"])
    assert "not --against" in capsys.readouterr().err


def test_folder_without_parsers_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The installed parsers were measured against themselves, with a ratio of 1.00."""
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(SystemExit):
            recordings.main(["--against", str(folder), "--quick"])
        assert "no streamlib_parsers there" in capsys.readouterr().err


def test_recordings_compare_two_checkouts_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(ROOT / "tests" / "recordings")
    assert recordings.main([folder, "--against", str(ROOT), "--quick", "--only", "chat"]) == 0
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if line.startswith("chat, all")]
    assert [str(ROOT) in row for row in rows] == [False, True, False, True]


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
    wanted = [("httpx, drained", "asyncio", Streams(1, 5, 0))]
    figures, absent = socket_run.measure("transports", wanted, 1, Bar(1))
    assert (figures, absent) == ([], ["httpx, drained on asyncio with 1 streams at once"])


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
@pytest.mark.parametrize("part", ["recordings", "bench_import", "gateway", "transports"])
def test_part_works_in_its_quick_form(part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{part}", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n") > 3
