"""`streamlib serve FILE`: what was recorded is what a client gets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from streamlib.cli import main
from tests.support.terminals import terminal


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["chat", *words]) == 0
    return capsys.readouterr().out.partition("\n\n")[0]


def test_a_recording_is_served_as_the_answers_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.jsonl"
    recorded = [said(capsys, text, "--record", str(file)) for text in ("one", "two")]
    with terminal(sys.executable, "-m", "streamlib", "serve", str(file), "--port", "0") as server:
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        served = [said(capsys, "something else", "--base-url", url.group()) for _ in recorded]
    assert served == recorded
    assert recorded[0] != recorded[1]


def test_a_broken_recording_is_not_served_as_a_body(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answer.jsonl"
    said(capsys, "one", "--record", str(file))
    file.write_bytes(file.read_bytes()[:-10])
    assert main(["serve", str(file)]) == 1
    assert "begins as a recording of ours, but" in capsys.readouterr().err


def test_requests_that_are_to_fail_need_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--failing", "1"]) == 2
    assert "needs --fault" in capsys.readouterr().err
