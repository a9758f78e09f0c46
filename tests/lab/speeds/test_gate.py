"""The gate: what is slower than the release before is named, and fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.contestants import Contestant, Outcome
from lab.speeds import gate


class Reader:
    """A process that takes a given time for each event."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def contestant(self, name: str, reader: str, wire: str) -> Contestant:
        def spent(chunks: list[bytes], window: float) -> float:
            return self.seconds * len(chunks)

        def read(chunks: list[bytes]) -> Outcome:
            raise AssertionError("nothing is compared here")

        return Contestant(name, "", wire, spent, read)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("factor", "code"), [(1.04, 0), (1.06, 1), (0.5, 0)])
def test_gate_fails_above_a_twentieth_whatever_one_process_takes(
    factor: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    luck = (
        1.0,
        0.8,
        1.0,
        1.0,
        1.2,
        1.0,
        1.0,
    )  # one process is slower than another of the same code
    readers = [Reader(seconds) for pair in luck for seconds in (1.0, factor * pair)]

    def unpack(revision: str, folder: str) -> Path:
        return Path(folder)

    def process(folder: Path) -> Any:
        return readers.pop(0)

    monkeypatch.setattr(gate, "unpack", unpack)
    monkeypatch.setattr(gate, "checkout_process", process)
    assert gate.main(["--before", "v1", "--wire", "chat"]) == code
    shown = capsys.readouterr().out
    assert f"{factor:5.2f}  chat, over 50 events, an event\n" in shown
    assert ("slower than v1: chat, all, 16 KiB" in shown) is bool(code)


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
