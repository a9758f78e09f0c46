"""The compiled and the pure build emit the same events. Run by `nox -s compiled`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import streamlib_parsers.assembler
from streamlib_parsers import build_kind
from tests.compiled.event_digests import digests
from tests.support.metrics import figure
from tests.support.shared import ROOT


def test_compiled_is_true_only_in_that_build() -> None:
    is_source = str(streamlib_parsers.assembler.__file__).endswith(".py")
    assert build_kind.compiled is not is_source


def pure_digests() -> dict[str, Any]:
    """What the pure build finds, in a process of its own."""
    sources = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    finished = subprocess.run(
        [sys.executable, "-P", "-m", "tests.compiled.event_digests"],
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(finished.stdout)
    return answer


@pytest.mark.compiled
def test_both_builds_emit_the_same_events() -> None:
    assert build_kind.compiled, "run by `nox -s compiled`, which builds"
    pure = pure_digests()
    assert pure["compiled"] is False
    found = digests()
    assert len(found) > 100
    assert found.keys() == pure["digests"].keys()
    differing = [name for name in found if found[name] != pure["digests"][name]]
    assert differing == []
    figure("recordings in chunks", len(found))
