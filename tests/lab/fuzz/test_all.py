"""lab.fuzz.all: what of the record still counts."""

from __future__ import annotations

import json
import time
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
    # The last commit may have changed no code: then both would be of the same age.
    ages = {NOW: 0, f"{NOW}~1": 1}
    monkeypatch.setattr(fuzz_all, "commits_since", ages.__getitem__)
    earlier = Run(10, 1, broke=True, date="2026-11-28", commit=f"{NOW}~1")
    later = Run(0, 2, broke=False, date="2026-11-29", commit=NOW)
    both = later.after(earlier)
    assert both == Run(10, 3, broke=False, date="2026-11-29", commit=f"{NOW}~1")
    assert later.after(None) == later
    fuzz_all.save({"sse": later, "chat": both})
    record = json.loads(fuzz_all.RECORD.read_bytes())
    assert record["figures"] == {"executions": 10, "crashes": 0}
    assert record["commit"] == f"{NOW}~1"


@pytest.mark.skipif(not NOW, reason="this is no git checkout: no commit to compare with")
def test_run_of_changed_files_is_not_hidden_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page would quote its executions as those of the other's commit."""
    monkeypatch.setattr(fuzz_all, "RECORD", tmp_path / "atheris.json")
    clean = Run(10, 1, broke=False, date="2026-11-28", commit=f"{NOW}~1")
    changed = clean._replace(commit=f"{NOW}-dirty")
    assert changed.after(clean).commit == changed.commit
    fuzz_all.save({"sse": clean, "chat": changed})
    assert json.loads(fuzz_all.RECORD.read_bytes())["commit"] == changed.commit


def test_no_target_begins_after_one_that_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def fuzz(name: str, seconds: int) -> tuple[int, bool]:
        begun.append(name)
        if name == "a":
            raise SystemExit(f"{name}: no atheris")
        time.sleep(0.1)
        return 1, False

    monkeypatch.setattr(fuzz_all, "fuzz", fuzz)
    with pytest.raises(SystemExit):
        list(fuzz_all.fuzz_all(dict.fromkeys("abcdefgh", 1), jobs=1))
    assert len(begun) < 8
