"""lab.fuzz.all: what of the record still counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.fuzz import all as fuzz_all
from lab.fuzz.all import Run
from lab.proof.results import present_commit

NOW = present_commit().partition("-")[0]


@pytest.mark.skipif(not NOW, reason="this is no git checkout: no commit to compare with")
def test_runs_on_an_unknown_or_changed_commit_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_all, "RECORD", tmp_path / "atheris.json")
    assert fuzz_all.recorded_runs() == {}
    today = Run(10, 1, broke=False, date="2026-11-29", commit=NOW)
    unknown = today._replace(commit="")
    changed = today._replace(commit=f"{NOW}-dirty")
    fuzz_all.save({"sse": today, "chat": unknown, "gemini": changed})
    assert fuzz_all.recorded_runs() == {"sse": today}


@pytest.mark.skipif(not NOW, reason="this is no git checkout: no commit to compare with")
def test_runs_add_up_and_keep_the_oldest_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_all, "RECORD", tmp_path / "atheris.json")
    earlier = Run(10, 1, broke=True, date="2026-11-28", commit=f"{NOW}~1")
    later = Run(0, 2, broke=False, date="2026-11-29", commit=NOW)
    both = later.after(earlier)
    assert both == Run(10, 3, broke=False, date="2026-11-29", commit=f"{NOW}~1")
    assert later.after(None) == later
    fuzz_all.save({"sse": later, "chat": both})
    record = json.loads(fuzz_all.RECORD.read_bytes())
    assert record["figures"] == {"executions": 10, "crashes": 0}
