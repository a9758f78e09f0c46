"""`streamlib bench --pipeline`: each stage's time over a bare loop, and the text that it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from streamlib import accumulate, pipeline
from streamlib.cli import main
from streamlib.testing.bench import feed, pipelines
from streamlib.testing.bench.pipelines import built_in_events, cases, measure, most_held
from tests.support.shared import ROOT

CAPTURE = ROOT / "tests" / "recordings" / "messages" / "llama-tool.sse"

OTHERS = {"chain", "pipe", "through", "from_machine", "ended", "tee", "share", "merge"}
"""What is no stage, beside `fallback` and `race`."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "WINDOW", 0)


def test_every_stage_is_measured() -> None:
    names = {name.partition(",")[0] for name in pipelines.STAGES}
    stages = {name for name in pipeline.__all__ if name.islower()} - OTHERS
    assert stages - {"fallback", "race"} <= names
    made, absent = cases("text", built_in_events(300))
    assert [case.name for case in made] == list(pipelines.STAGES)
    assert absent == []


def test_built_in_text_is_the_same_on_every_run() -> None:
    events = built_in_events(2_000)
    assert events == built_in_events(2_000)
    text = accumulate(events).text
    assert (len(text), text[:40]) == (2_000, pipelines.PROSE[:40])


def test_figures_are_of_a_stage_alone() -> None:
    made, _ = cases("text", built_in_events(300))
    chosen = [case for case in made if case.name in ("tap", "guard", "pipe, no stage")]
    labels: list[str] = []
    records = measure(chosen, 2, labels.append)
    assert labels == ["tap", "guard", "pipe, no stage"] * 2
    figures = [(entry.workload, entry.measure, entry.unit) for entry in records]
    assert figures == [
        ("tap", "time", "µs/event"),
        ("tap", "held", "characters"),
        ("guard", "time", "µs/event"),
        ("pipe, no stage", "time", "µs/event"),
    ]


def test_text_that_a_stage_holds_is_counted() -> None:
    held: dict[str, int] = {}
    made, _ = cases("text", built_in_events(2_000))
    for case in made:
        if not case.is_looped:
            held[case.name] = most_held(case)
    assert held["tap"] == held["only"] == 0
    assert 0 < held["replace, a fixed text"] < len("hunter2")
    longest = max([len(line) for line in pipelines.PROSE.splitlines()])
    assert held["words"] < held["sentences"] <= held["lines"] <= longest


def test_command_measures_the_built_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--pipeline", "--rounds", "1"]) == 0
    printed, errors = capsys.readouterr()
    assert "(µs/event)" in printed
    assert "held (characters)" in printed
    assert "sentences" in printed
    assert errors == ""


def test_command_measures_a_file_and_draws(tmp_path: Path) -> None:
    out = [str(tmp_path / name) for name in ("f.json", "f.svg")]
    files = ["--json", out[0], "--chart", out[1]]
    options = ["--pipeline", "--wire-api", "messages", "--rounds", "1"]
    assert main(["bench", str(CAPTURE), *options, *files]) == 0
    records = json.loads(Path(out[0]).read_bytes())["figures"]
    assert {entry["chunks"] for entry in records} == {str(CAPTURE)}
    assert "by stage" in ET.tostring(ET.parse(out[1]).getroot(), "unicode")


def test_command_refuses_a_stream_of_another_wire(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--pipeline", str(CAPTURE), "--wire-api", "chat"]) == 1
    assert "is not a complete stream of chat" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--corpus", "--workload", "--chunk"])
def test_command_refuses_options_of_parsers(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--pipeline", option, "1"]) == 2
    assert f"--pipeline takes no {option}" in capsys.readouterr().err


def test_stage_without_its_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> list[Any]:
        raise ImportError("no regex")

    monkeypatch.setattr(pipelines, "STAGES", {"tap": pipelines.STAGES["tap"], "words": missing})
    assert main(["bench", "--pipeline", "--rounds", "1"]) == 0
    printed, errors = capsys.readouterr()
    assert "not installed: what words needs" in errors
    assert "words" not in printed
    assert len(printed.partition("\n\n")[0].splitlines()) == 2
