"""The gate: what is slower than the release before is named, and fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.contestants import Contestant, Outcome
from benchmarks.shapes import shapes
from lab.speeds import gate


class Machine:
    """What its processes share. While it is slow, each reading of the later version takes twice
    as long.

    slow: How many readings it is slow for, from the first one.
    """

    def __init__(self, slow: int = 0) -> None:
        self.slow = slow
        self.readings = 0

    def slows_down(self) -> bool:
        self.readings += 1
        return self.readings % 2 == 0 and self.readings <= self.slow


class Reader:
    """A process that takes a given time for each event."""

    def __init__(self, seconds: float, machine: Machine) -> None:
        self.seconds = seconds
        self.machine = machine

    def contestant(self, name: str, reader: str, wire: str) -> Contestant:
        def spent(chunks: list[bytes], window: float) -> float:
            factor = 2 if self.machine.slows_down() else 1
            return factor * self.seconds * len(chunks)

        def read(chunks: list[bytes]) -> Outcome:
            raise AssertionError("nothing is compared here")

        return Contestant(name, "", wire, spent, read)

    def close(self) -> None:
        pass


def run_gate(readers: list[Reader], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the gate, whose processes are these."""

    def unpack(revision: str, folder: str) -> Path:
        return Path(folder)

    def process(folder: Path) -> Any:
        return readers.pop(0)

    monkeypatch.setattr(gate, "unpack", unpack)
    monkeypatch.setattr(gate, "checkout_process", process)
    return gate.main(["--before", "v1", "--wire", "chat"])


@pytest.mark.parametrize(("factor", "code"), [(1.04, 0), (1.06, 1), (0.5, 0)])
def test_gate_fails_above_a_twentieth_whatever_one_process_takes(
    factor: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # One process may be slower than another of the same code.
    luck = (1.0, 0.8, 1.0, 1.0, 1.2, 1.0, 1.0)
    machine = Machine()
    readers = [Reader(seconds, machine) for pair in luck for seconds in (1.0, factor * pair)]
    assert run_gate(readers, monkeypatch) == code
    shown = capsys.readouterr().out
    assert f"{factor:5.2f}  chat, over 50 events, an event\n" in shown
    assert ("slower than v1: chat, all, 16 KiB" in shown) is bool(code)


def test_gate_holds_where_the_machine_is_slow_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow for as long as four pairs read one row: it failed when all pairs read a row in turn."""
    of_a_row = sum(stream.wire_api == "chat" for stream in shapes()) * gate.ROUNDS * 2
    machine = Machine(slow=of_a_row * 4)
    readers = [Reader(1.0, machine) for _ in range(gate.PAIRS * 2)]
    assert run_gate(readers, monkeypatch) == 0
    assert machine.readings > machine.slow > 0


def test_gate_without_a_release_compares_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "release_before", lambda: None)
    assert gate.main([]) == 0
    assert capsys.readouterr().out.startswith("!! not compared")


def test_revision_is_unpacked_with_its_parsers(tmp_path: Path) -> None:
    if gate.release_before() is None:
        pytest.skip("git knows no release to compare with")
    folder = gate.unpack("HEAD", str(tmp_path))
    assert (folder / "parsers" / "streamlib_parsers" / "protocol.py").is_file()
