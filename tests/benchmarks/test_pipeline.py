"""Pipelines compared: everybody lets out the same text, and the tables say who is faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import node_readers, pipeline, pipeline_peers
from benchmarks.commands import Options
from benchmarks.pipeline import NEW, NODE, OLD, WORKLOADS, combinations, measure_once, tokens
from benchmarks.pipeline_jobs import CONTESTANTS, Joined, Replaced
from benchmarks.pipeline_pages import alone, jobs, stages
from streamlib.testing.bench.records import BenchRun, Figure, figure

OTHERS = [name for name in CONTESTANTS if CONTESTANTS[name].distribution]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_fixed_text_is_replaced_however_it_is_split(size: int) -> None:
    text = f"{OLD}, hunt, {OLD}{OLD} hunter"
    stage = Replaced(OLD, NEW)
    made = [stage.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*made, stage.close()]) == text.replace(OLD, NEW)


def test_texts_of_an_interval_are_joined() -> None:
    stage = Joined()
    made = [stage.feed(text) for text in ("a", "b", "c")]
    assert [*made, stage.close()] == ["a", "", "", "bc"]


def test_secret_is_split_over_tokens() -> None:
    texts = tokens(2_000)
    assert len(texts) == 2_000
    split = "".join(texts).count(OLD) - sum(text.count(OLD) for text in texts)
    assert split > 10


@pytest.mark.parametrize("workload", WORKLOADS)
def test_streamlib_lets_out_the_text(workload: str) -> None:
    result = measure_once(workload, "streamlib", tokens(200), 0.0)
    assert result["cpu"] > 0
    assert result["first"] > 0


@pytest.mark.real
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", [*OTHERS, NODE])
def test_others_let_out_the_text(name: str, workload: str) -> None:
    why = node_readers.missing() if name == NODE else pipeline_peers.missing()
    if why:
        pytest.skip(why[0])
    assert measure_once(workload, name, tokens(200), 0.0)["cpu"] > 0


def test_another_text_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = tokens(200)
    program = tmp_path / "program.py"
    program.write_text('print(\'{"text": "x"}\')', encoding="utf-8")
    monkeypatch.setattr(pipeline, "JOBS", program)
    with pytest.raises(RuntimeError, match="another text"):
        measure_once("job", "streamlib", texts, 0.0)
    monkeypatch.setattr(pipeline, "JOBS", Path("no such file"))
    with pytest.raises(RuntimeError, match=r"streamlib, job: .*no such file"):
        measure_once("job", "streamlib", texts, 0.0)


def test_who_is_absent_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pipeline_peers, "PYTHON", tmp_path / "none")
    monkeypatch.setattr(node_readers, "HOME", tmp_path)
    wanted, absent = combinations(Options())
    assert {name for _, name in wanted} == {"a bare loop", "streamlib"}
    assert "python -m benchmarks.pipeline_peers" in absent[0]
    assert "Node" in absent[1]


# --- the tables ---


def result_of(*figures: Figure) -> dict[str, Any]:
    return {"pipeline": BenchRun("", "", {}, {}, figures)}


def event(workload: str, name: str, microseconds: float) -> Figure:
    return figure("pipeline", workload, "tokens", name, "event", "µs", [microseconds])


def test_table_of_jobs_begins_with_who_is_faster() -> None:
    table = jobs(result_of(event("job", "streamlib", 8.0), event("job", "rx", 2.0)))
    rows = table.splitlines()[2:]
    assert rows[0] == "| rx | **2.0** | 500,000 |"
    assert rows[1] == "| streamlib | 8.0 | 125,000 |"


def test_table_of_operators_marks_who_is_faster() -> None:
    figures = [event("one filter", name, time) for name, time in (("streamlib", 2.0), ("rx", 1.0))]
    eight = [event("eight maps", name, time) for name, time in (("streamlib", 3.0), ("rx", 4.0))]
    rows = alone(result_of(*figures, *eight)).splitlines()[2:]
    assert rows == ["| rx | **1.0** | 4.0 |", "| streamlib | 2.0 | 3.0 |"]


def test_table_of_stages_has_what_they_hold() -> None:
    key = ("stages", "replace, a pattern", "text", "streamlib")
    figures = [figure(*key, "time", "µs", [1.5]), figure(*key, "held", "count", [16])]
    assert stages(result_of(*figures)).splitlines()[2] == "| `replace`, a pattern | 1.5 | 16 |"
