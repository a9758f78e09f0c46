"""Parsers and bodies of one's own in `streamlib bench`, and throughput by the size of chunks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from streamlib.cli import main
from streamlib.recording import from_body
from streamlib.recording.files import dump
from streamlib.testing.bench import curve, feed
from streamlib.testing.bench.records import OURS, read
from streamlib.testing.bench.workloads import WORKLOADS
from tests.support.shared import ROOT

CAPTURE = ROOT / "tests" / "recordings" / "messages" / "llama-tool.sse"
MINE = """
class Lines:
    rest = b""

    def feed(self, chunk):
        *lines, self.rest = (self.rest + chunk).split(b"\\n")
        return lines

    def close(self):
        return [self.rest]


class Drops:
    def feed(self, chunk):
        return [line for line in chunk.split(b"\\n") if line.startswith(b"data: ")]


class Silent:
    def feed(self, chunk):
        return None


class Raises:
    def feed(self, chunk):
        raise KeyError("delta")


def read(chunks):
    for chunk in chunks:
        yield chunk.count(b"\\n")
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the folder of the command."""
    monkeypatch.setattr(feed, "WINDOW", 0)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    Path("readers_of_mine.py").write_text(MINE, encoding="utf-8")
    yield "readers_of_mine"
    sys.modules.pop("readers_of_mine", None)


def bench(*arguments: str, rounds: int = 1) -> int:
    return main(["bench", *arguments, "--rounds", str(rounds), "--json", "f.json"])


def test_parser_of_ones_own_runs_beside_streamlib(mine: str) -> None:
    assert bench(str(CAPTURE), "--parser", f"{mine}:Lines") == 0
    result = read(Path("f.json"))
    assert {entry.contestant for entry in result.figures} == {OURS, f"{mine}:Lines"}
    ratios = result.find(measure=f"times as long as {OURS}")
    assert [(entry.contestant, entry.chunks) for entry in ratios] == [
        (f"{mine}:Lines", "an event"),
        (f"{mine}:Lines", "16 KiB"),
    ]
    # Each ratio is of one round, in which both took turns.
    (own,) = result.find(contestant=f"{mine}:Lines", chunks="16 KiB", measure="time")
    (ours,) = result.find(contestant=OURS, chunks="16 KiB", measure="time")
    assert ratios[1].rounds[0] == pytest.approx(own.rounds[0] / ours.rounds[0], rel=0.01)


def test_body_of_no_known_wire_is_read_by_ones_own_alone(mine: str) -> None:
    Path("log.txt").write_bytes(b"one line\n" * 50)
    assert bench("log.txt", "--parser", f"{mine}:read") == 0
    figures = read(Path("f.json")).figures
    assert {entry.contestant for entry in figures} == {f"{mine}:read"}
    assert {entry.unit for entry in figures} == {"µs/body", "MB/s", "µs", "KB"}


def test_body_that_streamlib_cannot_read_is_named(
    mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("cut.sse").write_bytes(CAPTURE.read_bytes()[:-200])
    assert bench("cut.sse", "--parser", f"{mine}:Lines") == 0
    assert "streamlib is left out: cut.sse is not a complete stream" in capsys.readouterr().err


def test_parser_that_drops_bytes_at_a_cut_is_not_called_fast(
    mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(str(CAPTURE), "--parser", f"{mine}:Drops", "--chunk", "7") == 0
    error = capsys.readouterr().err
    assert f"!! {mine}:Drops reads " in error
    assert "otherwise in chunks of 7 B than whole, and its speed there says nothing" in error
    assert f"streamlib fuzz {mine}:Drops" in error


def test_parser_that_gives_nothing_is_not_called_fast(
    mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(str(CAPTURE), "--parser", f"{mine}:Silent") == 0
    error = capsys.readouterr().err
    # Once for the body, not for each size of its chunks.
    assert error.count(f"!! {mine}:Silent gives nothing for {CAPTURE}") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["FILE", "--parser", "MINE:Raises"], 1, "fails on FILE in chunks of"),
        (["cut.jsonl", "--parser", "MINE:Lines"], 1, "cut.jsonl: "),
        (["FILE", "--parser", "MINE:Nothing"], 2, "has no attribute 'Nothing'"),
        (["FILE", "--parser", "no_such_module:x"], 2, "No module named"),
        (["FILE", "--parser", "MINE"], 2, "'MINE' is not module:name"),
        (["--parser", "MINE:Lines"], 2, "--parser needs a body"),
        (["--parser", "MINE:Lines", "--pipeline"], 2, "--pipeline takes no --parser"),
        (["FILE", "--curve", "--chunk", "0"], 2, "--curve takes no --chunk"),
    ],
    ids=[
        "raises",
        "cut recording",
        "no name",
        "no module",
        "no colon",
        "no body",
        "stages",
        "curve and chunk",
    ],
)
def test_command_names_what_is_wrong_with_a_parser(
    mine: str,
    arguments: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recording = dump(from_body(CAPTURE.read_bytes()))
    Path("cut.jsonl").write_bytes(recording[: len(recording) // 2])
    given = [word.replace("FILE", str(CAPTURE)).replace("MINE", mine) for word in arguments]
    assert bench(*given) == code
    expected = message.replace("FILE", str(CAPTURE)).replace("MINE", mine)
    assert expected in capsys.readouterr().err


@pytest.mark.timing
def test_comparison_calls_slower_code_alone_slower(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the processes of the command: one that reads each chunk twice, and the same code."""
    Path("reads_often.py").write_text(
        "import json, os\n\n\n"
        "def read(chunks):\n"
        "    for chunk in chunks:\n"
        "        for _ in range(int(os.environ['TIMES'])):\n"
        "            lines = [json.loads(line) for line in chunk.split()]\n"
        "        yield lines\n",
        encoding="utf-8",
    )
    Path("body.ndjson").write_bytes(b'{"delta":"and"}\n' * 200)
    for name, times in (("a", "1"), ("same", "1"), ("twice", "2")):
        monkeypatch.setenv("TIMES", times)
        arguments = ["body.ndjson", "--parser", "reads_often:read", "--chunk", "1600"]
        assert main(["bench", *arguments, "--json", f"{name}.json"]) == 0
    capsys.readouterr()
    assert main(["bench", "--compare", "a.json", "same.json"]) == 0
    assert "slower" not in capsys.readouterr().out
    assert main(["bench", "--compare", "a.json", "twice.json"]) == 1
    assert main(["bench", "--compare", "twice.json", "a.json"]) == 0
    assert "faster" in capsys.readouterr().out


def test_corpus_is_read_by_ones_own_parser_too(mine: str) -> None:
    folder = str(ROOT / "tests" / "recordings" / "messages")
    assert bench("--corpus", folder, "--parser", f"{mine}:Lines") == 0
    result = read(Path("f.json"))
    key = {"workload": "messages, all", "chunks": "16 KiB"}
    (ratio,) = result.find(**key, measure=f"times as long as {OURS}")
    assert ratio.contestant == f"{mine}:Lines"
    assert len(result.find(**key, measure="an event")) == 2


def test_curve_has_every_size_up_to_the_whole_body() -> None:
    body = feed.of_workload(WORKLOADS["tiny-chunks"])
    length = sum(map(len, body.events))
    sizes = curve.sizes_for(body)
    assert sizes == [4**power for power in range(len(sizes))]
    assert list(curve.SIZES) == [4**power for power in range(9)]
    assert sizes[-2] < length <= sizes[-1] or sizes[-1] == curve.SIZES[-1]
    for case in curve.cases([body]):
        assert b"".join(case.chunks) == b"".join(body.events)


def test_command_draws_the_curve_on_the_terminal(
    mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(CAPTURE), "--curve", "--parser", f"{mine}:Lines", "--chart", "f.svg"]
    assert bench(*arguments) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if "#" in line]
    result = read(Path("f.json"))
    assert len(rows) == len(result.figures)
    assert [row[:3] for row in rows[:2]] == [["1", "B", OURS], ["1", "B", f"{mine}:Lines"]]
    assert max(len(row[3]) for row in rows) == curve.BAR
    assert all(len(row) == 7 for row in rows)  # size, reader, bar, best / median
    assert Path("f.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "load" in shown


def test_curve_of_a_corpus_is_of_the_longest_streams(mine: str) -> None:
    folder = ROOT / "tests" / "recordings" / "messages"
    assert bench("--corpus", str(folder), "--curve", rounds=1) == 0
    names = {entry.workload for entry in read(Path("f.json")).figures}
    sizes = {path.name: path.stat().st_size for path in folder.rglob("*.sse")}
    assert len(names) == 1
    assert sizes[names.pop()] > sorted(sizes.values())[len(sizes) // 2 - 1]


def test_readers_without_a_defect_are_not_warned_about() -> None:
    body = feed.of_workload(WORKLOADS["tiny-chunks"])
    warned: list[str] = []

    def read_all(chunks: Iterable[bytes]) -> list[bytes]:
        return [b"".join(chunks)]

    cases = body._replace(readers={**body.readers, "mine": read_all}).cases(3)
    feed.check_readers(cases, warned.append)
    assert warned == []
