"""`streamlib gateway`: it starts without a key, says what it does, refuses what it must not do, and ends quietly."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import msgspec
import pytest

from streamlib.cli import main
from streamlib.cli.gateway import keyless
from streamlib.client.auth import variables_of
from streamlib.gateway import RouteRule, RouteTable
from streamlib.providers import find


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What it says when it does not start."""
    assert main(["gateway", "--port", "0", *words]) == 1
    return capsys.readouterr().err


def test_it_refuses_what_cannot_be_or_should_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = tmp_path / "routes.toml"
    wrong.write_text('[[route]]\nmodel = "a"\ntarget = "b:c"\n', encoding="utf-8")
    assert "--token-env" in refused(capsys, "--host", "0.0.0.0")
    assert "NO_SUCH_TOKEN is not set" in refused(capsys, "--token-env", "NO_SUCH_TOKEN")
    assert "PATTERN=PROVIDER:MODEL" in refused(capsys, "--route", "claude")
    assert "did you mean anthropic" in refused(capsys, "--route", "*=antropic:x")
    assert "the route file: " in refused(capsys, "--config", str(wrong))
    assert "nowhere.toml: No such file" in refused(
        capsys, "--config", str(tmp_path / "nowhere.toml")
    )


@pytest.mark.parametrize(
    ("to", "variables", "told"),
    [
        (
            "anthropic:claude-opus-5",
            {},
            "no key for anthropic (route claude-*): set ANTHROPIC_API_KEY",
        ),
        ("anthropic:claude-opus-5", {"ANTHROPIC_API_KEY": "sk-ant-x"}, None),
        ("loopback:echo", {}, None),
    ],
)
def test_a_key_that_is_missing_is_told_at_the_start(
    to: str, variables: dict[str, str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in variables_of(find("anthropic:x")[0]):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lines = keyless(RouteTable([RouteRule("claude-*", to)]))
    assert [line.startswith(told) for line in lines] == [True] if told else not lines
    assert "sk-ant" not in "".join(lines)


def test_it_starts_without_a_key_answers_and_ends_quietly() -> None:
    command = [
        sys.executable,
        "-m",
        "streamlib",
        "gateway",
        "--port",
        "0",
        "--route",
        "fast=loopback:echo",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = "".join(process.stdout.readline() for _ in range(3))
        found = re.search(r"http://\S+:\d+", told)
        assert found
        body = msgspec.json.encode(
            {"model": "fast", "messages": [{"role": "user", "content": "Hello"}]}
        )
        asked = urllib.request.Request(
            f"{found[0]}/v1/chat/completions", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=20) as answer:
            said = msgspec.json.decode(answer.read())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert said["choices"][0]["message"]["content"].startswith("You said: Hello")
    assert "fast" in told
    assert "ANTHROPIC_BASE_URL" in told
    assert "chat fast -> loopback:echo: stop" in errors
    assert "Traceback" not in errors
