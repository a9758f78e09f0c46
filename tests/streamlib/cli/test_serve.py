"""`streamlib serve FILE`: a client receives what was recorded."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import httpx
import pytest

from streamlib.cli import main
from tests.support.terminals import terminal


def chat_output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["chat", *arguments]) == 0
    return capsys.readouterr().out.partition("\n\n")[0]


def test_serve_sends_the_responses_of_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "responses.jsonl"
    recorded = [chat_output(capsys, text, "--record", str(file)) for text in ("one", "two")]
    with terminal(sys.executable, "-m", "streamlib", "serve", str(file), "--port", "0") as server:
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        served = [
            chat_output(capsys, "something else", "--base-url", url.group()) for _ in recorded
        ]
    assert served == recorded
    assert recorded[0] != recorded[1]


def test_serve_rejects_a_truncated_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "response.jsonl"
    chat_output(capsys, "one", "--record", str(file))
    file.write_bytes(file.read_bytes()[:-10])
    assert main(["serve", str(file)]) == 1
    assert "starts as a streamlib recording, but" in capsys.readouterr().err


def test_serve_needs_a_fault_for_failing_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--failing", "1"]) == 2
    assert "needs --fault" in capsys.readouterr().err


def test_serve_strict_refuses_what_the_service_refuses() -> None:
    command = (sys.executable, "-m", "streamlib", "serve", "--strict", "--port", "0")
    with terminal(*command) as server:
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        body = {"model": "claude-opus-5", "messages": []}
        response = httpx.post(f"{url.group()}/v1/messages", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "anthropic-version: header is required"
