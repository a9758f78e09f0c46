"""`streamlib doctor`, `providers`, `models`, `completion`: what they print, and on which codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from streamlib.cli import main
from streamlib.cli.checks import (
    EXTRAS,
    Check,
    all_checks,
    certificates,
    extras,
    http_libraries,
    keys,
    model,
    proxies,
)
from streamlib.cli.doctor import MARKS
from streamlib.cli.tables import hanging, table
from streamlib.providers import Provider, known, register
from streamlib_parsers import WIRE_APIS
from tests.support.shared import ROOT

SECRET = "sk-very-secret-1234567890"


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in known().values():
        for name in (*provider.key_env, "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"):
            monkeypatch.delenv(name, raising=False)


# --- doctor ---


def test_doctor_finds_nothing_wrong_here(
    no_keys: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert main(["doctor", "--json"]) == 0
    output = capsys.readouterr().out
    report = json.loads(output)
    assert report["healthy"]
    groups = {check["group"] for check in report["checks"]}
    assert groups == {
        "versions",
        "extras",
        "HTTP libraries",
        "proxies",
        "certificates",
        "event loops",
        "terminal",
        "keys",
        "model",
        "loopback provider",
    }
    wires = [check["name"] for check in report["checks"] if check["group"] == "loopback provider"]
    assert wires == list(WIRE_APIS)
    assert "OPENAI_API_KEY" in output
    assert SECRET not in output


def test_doctor_names_the_line_and_the_cure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [
        Check("extras", "cli", "wrong", "lacks h11", "pip install 'streamlib[cli]'"),
        Check("keys", "environment", "missing", "no key is set", "`streamlib providers`"),
    ]
    monkeypatch.setattr("streamlib.cli.doctor.all_checks", lambda _: iter(checks))
    monkeypatch.setenv("COLUMNS", "44")
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["extras", "  ! cli: lacks h11", "    → pip install 'streamlib[cli]'"]
    assert max(map(len, lines)) <= 44
    assert all(f"{mark} " in "".join(lines[-3:]) for mark, _ in MARKS.values())


def test_doctor_looks_at_every_extra_for_users() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_contributors = {"dev", "atheris", "real"}
    assert set(EXTRAS) == set(project["optional-dependencies"]) - for_contributors


def state_of(check: Check) -> tuple[str, bool]:
    return check.state, bool(check.cure)


def test_checks_name_what_is_wrong_with_the_environment(no_keys: None) -> None:
    wrong = ("wrong", True)
    assert state_of(certificates({"SSL_CERT_FILE": "/nowhere.pem"})) == wrong
    assert state_of(model({"STREAMLIB_MODEL": "opus"})) == wrong
    assert [state_of(check) for check in keys({"OPENAI_API_KEY": f"{SECRET}\n"})] == [wrong]
    assert [state_of(check) for check in proxies({"HTTPS_PROXY": "proxy"})] == [wrong]
    assert [check.state for check in keys({})] == ["missing"]
    assert model({"STREAMLIB_MODEL": "openai:gpt-5"}).state == "ok"


def test_certificates_are_certifis_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert certificates({}).finding.startswith("certifi ")
    monkeypatch.setattr("streamlib.cli.checks.is_installed", lambda _: False)
    assert "certifi " not in certificates({}).finding


def test_checks_show_no_password_of_a_proxy() -> None:
    (check,) = proxies({"https_proxy": "http://user:pass@proxy:3128"})
    assert check.finding == "requests go through http://proxy:3128"


def test_checks_name_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlib.cli.checks.is_installed", lambda _: False)
    states = {check.name: check.state for check in extras()}
    assert states["cli"] == "wrong"
    assert states["redis"] == "missing"
    assert [check.state for check in http_libraries()] == ["wrong"]
    assert [check.state for check in all_checks({}) if check.name == "h11"] == ["wrong"]


# --- providers and models ---


def test_providers_lists_keys_only_by_name(
    no_keys: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", SECRET)
    assert main(["providers"]) == 0
    shown = capsys.readouterr().out
    assert "ANTHROPIC_AUTH_TOKEN is set" in shown
    assert SECRET not in shown
    for name in ("openai", "ollama", "bedrock"):
        assert f"\n{name} " in shown
    assert main(["providers", "mistral", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key_variables"] == ["MISTRAL_API_KEY"]
    assert main(["providers", "nobody"]) == 1


def test_providers_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    main(["providers"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 44


def test_models_lists_what_a_provider_offers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def models(_: object, name: str) -> list[object]:
        from streamlib import ModelInfo

        return [ModelInfo("small", {"id": "small"}), ModelInfo("large\x1b", {"id": "large"})]

    monkeypatch.setattr("streamlib.Client.models", models)
    assert main(["models", "--provider", "ollama"]) == 0
    assert capsys.readouterr().out == "ollama:small\nollama:large\\x1b\n"
    assert main(["models", "LARGE", "-p", "ollama", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["raw"] == {"id": "large"}
    assert main(["models", "huge", "-p", "ollama"]) == 1


def test_models_of_loopback_need_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--provider", "loopback"]) == 0
    assert capsys.readouterr().out == "loopback:echo\n"


def test_models_asks_every_provider_with_a_key(
    no_keys: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["models"]) == 2
    assert "no provider has a key" in capsys.readouterr().err
    asked: list[str] = []

    async def models(_: object, name: str) -> list[object]:
        asked.append(name)
        return []

    monkeypatch.setattr("streamlib.Client.models", models)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MISTRAL_API_KEY", SECRET)
    main(["models"])
    assert sorted(asked) == ["mistral", "openai"]


def test_models_names_a_server_that_cannot_be_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    register(Provider("nobody-there", base_url="http://127.0.0.1:9/v1", key_optional=True))
    assert main(["models", "-p", "nobody-there"]) == 5
    error = capsys.readouterr().err
    assert error.startswith("nobody-there: cannot reach http://127.0.0.1:9: connection")
    assert error.count("\n") == 1


# --- tables ---


def test_table_wraps_its_last_column() -> None:
    rows = [("anthropic", "messages chat"), ("x", "a b c d e f g h i j k l")]
    assert table(("name", "wires"), rows, 30) == [
        "name       wires",
        "anthropic  messages chat",
        "x          a b c d e f g h i j",
        "           k l",
    ]


def test_table_becomes_blocks_where_it_is_narrow() -> None:
    rows = [("anthropic", "ANTHROPIC_API_KEY", "messages chat"), ("x", "", "chat")]
    assert table(("name", "key", "wires"), rows, 40) == [
        "anthropic",
        "  key: ANTHROPIC_API_KEY",
        "  wires: messages chat",
        "x",
        "  wires: chat",
    ]


def test_hanging_indents_what_follows_a_mark() -> None:
    assert hanging("  ! one two three four five", 20) == ["  ! one two three", "    four five"]
    assert hanging("short", 44) == ["short"]


# --- completion ---


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_holds_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for expected in ("inspect", "doctor", "wire-api", "interactions"):
        assert expected in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_completes_in_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    (tmp_path / "c.sh").write_text(capsys.readouterr().out)
    ask = """
source "$1"; shift
complete_with=$(complete -p streamlib | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"$complete_with" streamlib "${!#}" "${COMP_WORDS[-2]}"
echo "${COMPREPLY[@]}"
"""
    for typed, expected in (
        (["streamlib", "ins"], "inspect"),
        (["streamlib", "chat", "--wire-api", "mes"], "messages"),
        (["streamlib", "inspect", "--js"], "--json"),
    ):
        command = ["bash", "-c", ask, "bash", str(tmp_path / "c.sh"), *typed]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout.split() == [expected]
