"""Two runs beside each other: ratio, spread and verdict, and what they can tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib.cli import main
from streamlib.testing.bench.comparison import (
    FASTER,
    SAME,
    SLOWER,
    TOO_FEW,
    UNSURE,
    Comparison,
    compare,
    differences,
    notes,
)
from streamlib.testing.bench.records import OURS, BenchRun, Figure, as_json

STEADY = (100.0, 101.0, 102.0, 101.5, 100.5)


def time_of(
    rounds: Sequence[float],
    workload: str = "chat",
    unit: str = "ns/event",
    machine: Sequence[float] = (),
) -> Figure:
    """A time of as many processes as rounds.

    Args:
        rounds: one of each process.
        workload: its name.
        unit: its unit.
        machine: what the fixed work took in each process.
    """
    key = ("feed", workload, "16 KiB", OURS, "time", unit)
    return Figure(*key, tuple(rounds), tuple(machine), len(rounds))


def rate_of(rounds: Sequence[float], workload: str = "chat") -> Figure:
    key = ("curve", workload, "16 KiB", OURS, "bytes", "MB/s")
    return Figure(*key, tuple(rounds), (), len(rounds))


def result_of(*figures: Figure, **machine: str) -> BenchRun:
    about = {"streamlib": "1", "build": "pure Python", "python": "3.11", "cpu": "x", "cores": "2"}
    return BenchRun("x", "2026-01-01", {**about, "load": "1", **machine}, {}, figures)


def times(factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in STEADY)


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        (times(1.3), SLOWER),
        ((100.0, 131.0, 132.0, 133.0, 900.0), SLOWER),  # one as fast counts no more than one slow
        (times(0.75), FASTER),
        (times(1.0), SAME),
        (times(1.15), SAME),  # two runs of the same code may differ so much
        ((100.0, 101.0, 140.0, 150.0, 160.0), UNSURE),  # two processes were as fast
        ((40.0, 50.0, 60.0, 101.0, 102.0), UNSURE),
        ((-1.0, -1.0, -1.0, -1.0, -1.0), UNSURE),  # a stage whose time is that of a bare loop
        (times(1.3)[:4], TOO_FEW),
    ],
    ids=[
        "slower",
        "slower but one",
        "faster",
        "equal",
        "a little",
        "two as fast",
        "two as slow",
        "below zero",
        "four",
    ],
)
def test_verdict_needs_the_medians_and_nearly_every_process(
    rounds: tuple[float, ...], verdict: str
) -> None:
    assert Comparison(time_of(STEADY), time_of(rounds)).verdict == verdict


def test_process_with_many_rounds_counts_once() -> None:
    """The rounds of one process agree with each other, and say nothing of the next process."""
    of_one = Figure("feed", "chat", "16 KiB", OURS, "time", "µs", times(2) * 9)
    assert Comparison(time_of(STEADY), of_one).verdict == TOO_FEW
    rounds = (1.0, 1.0, 9.0) * 4 + (0.5, 1.0, 1.5)
    of_five = msgspec.structs.replace(of_one, rounds=rounds, processes=5)
    assert Comparison(of_five, of_five).spread == (1.0, 1.0)  # the median of each is 1


def test_machine_that_was_slower_is_no_slower_code() -> None:
    """Both the code and the fixed work took twice as long."""
    quiet = time_of(STEADY, machine=times(1))
    busy = time_of(times(2), machine=times(2))
    compared = Comparison(quiet, busy)
    assert compared.verdict == SAME
    assert compared.ratio == pytest.approx(1.0)
    assert notes([compared]) == [
        "The machine took 2.00 times as long for the fixed work during B; B / A leaves that out."
    ]
    # A slowdown of the code shows beside that.
    slower = Comparison(quiet, time_of(times(2.6), machine=times(2)))
    assert slower.verdict == SLOWER
    assert slower.ratio == pytest.approx(1.3)
    # Files of earlier versions have no fixed work: the times are compared as they are.
    assert Comparison(time_of(STEADY), busy).ratio == pytest.approx(2.0)


def test_unsure_comparison_gives_advice() -> None:
    unsure = Comparison(time_of(STEADY), time_of((100.0, 100.0, 140.0, 150.0, 160.0)))
    (advice,) = notes([unsure])
    assert advice.startswith("Measure both again, with more --rounds")
    (advice,) = notes([Comparison(time_of([1.0]), time_of([1.0]))])
    assert advice.startswith("Measure both with --rounds of 5 or more")
    assert notes([Comparison(time_of(STEADY), time_of(STEADY))]) == []


def test_ratio_of_rates_is_one_of_times() -> None:
    times_of = Comparison(time_of(STEADY), time_of(times(1.3)))
    rates = Comparison(rate_of(times(1.3)), rate_of(STEADY))
    assert times_of.ratio == pytest.approx(1.3)
    assert rates.ratio == pytest.approx(1.3)
    assert rates.verdict == SLOWER
    low, high = rates.spread
    assert low < rates.ratio < high


ROUNDS = st.lists(st.floats(0, 1e9), min_size=1, max_size=9)


@given(ROUNDS, ROUNDS)
def test_verdict_is_the_opposite_the_other_way(a: list[float], b: list[float]) -> None:
    opposite = {FASTER: SLOWER, SLOWER: FASTER}
    for made in (time_of, rate_of):
        there = Comparison(made(a), made(b)).verdict
        assert Comparison(made(b), made(a)).verdict == opposite.get(there, there)
        assert Comparison(made(a), made(a)).verdict not in (FASTER, SLOWER)


def test_rows_of_only_one_run_are_named() -> None:
    both, alone = compare(
        result_of(time_of(STEADY), rate_of(STEADY), time_of(STEADY, "old")),
        result_of(time_of(STEADY), rate_of(STEADY), time_of(STEADY, "new")),
    )
    # The rate follows from the time of the same row.
    assert [each.a.unit for each in both] == ["ns/event"]
    assert [told.partition(",")[0] for told in alone] == ["only in A: old", "only in B: new"]


def test_rate_is_compared_where_no_time_is() -> None:
    both, alone = compare(
        result_of(rate_of(STEADY), time_of(STEADY, unit="bytes")),
        result_of(rate_of(STEADY), time_of(STEADY, unit="bytes")),
    )
    assert [each.a.unit for each in both] == ["MB/s"]
    assert alone == []


def test_spread_of_one_round_is_its_ratio() -> None:
    assert Comparison(time_of([2.0]), time_of([3.0])).spread == (1.5, 1.5)
    assert Comparison(time_of([1.0, 2.0]), time_of([1.0, 5.0])).spread == (0.5, 5.0)


def test_differences_of_the_machines_are_named() -> None:
    assert differences(result_of(), result_of(streamlib="2", load="9")) == []
    assert differences(result_of(), result_of(build="compiled", cpu="y")) == [
        "build: A pure Python, B compiled",
        "cpu: A x, B y",
    ]


@pytest.mark.parametrize(("factor", "code"), [(1.3, 1), (1.0, 0), (0.7, 0)])
def test_command_fails_only_where_something_is_slower(
    factor: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path, rounds in zip(paths, (STEADY, times(factor)), strict=True):
        Path(path).write_text(as_json(result_of(time_of(rounds))), encoding="utf-8")
    assert main(["bench", "--compare", *paths]) == code
    shown = capsys.readouterr().out
    assert {1.3: SLOWER, 1.0: SAME, 0.7: FASTER}[factor] in shown
    assert f"{factor:.2f}" in shown
    assert "A: " in shown
    assert "pure Python" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.json", "missing.json"], 1, "missing.json: No such file"),
        (["a.json", "other.json"], 1, "no row in common"),
        (["a.json", "text"], 1, "not written by `streamlib bench --json`"),
        (["a.json", "a.json", "--curve"], 2, "--compare takes no --curve"),
    ],
    ids=["no file", "nothing in common", "no result", "and --curve"],
)
def test_command_names_what_cannot_be_compared(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(as_json(result_of(time_of(STEADY))), encoding="utf-8")
    Path("other.json").write_text(as_json(result_of(time_of(STEADY, "x"))), encoding="utf-8")
    Path("text").write_text("nothing", encoding="utf-8")
    assert main(["bench", "--compare", *arguments]) == code
    assert message in capsys.readouterr().err
