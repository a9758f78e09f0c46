"""The example of a pipeline: one stream redacted, spoken, drawn and kept at once, without a key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from streamlib import accumulate
from streamlib.recording import load_events
from tests.support.shared import ROOT

EXAMPLE = ROOT / "examples" / "pipeline.py"


def test_pipeline_redacts_speaks_draws_and_keeps(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        cwd=tmp_path,
    )
    spoken = [line for line in done.stdout.splitlines() if line.startswith("  (spoken) ")]
    assert spoken[0] == "  (spoken) You said: Say that my password is [secret]."
    assert spoken[1] == "  (spoken) Ask me whether Dr. No knows it."
    kept = (tmp_path / "response.jsonl").read_bytes()
    response = accumulate(load_events(kept))
    assert response.status == "completed"
    assert "[secret]" in response.text
    for written in (done.stdout, done.stderr, kept.decode()):
        assert "hunter2" not in written
    assert done.stderr.count("\r") < len(kept.splitlines()), "deltas were joined"


def test_pipeline_has_fewer_than_sixty_lines() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60
