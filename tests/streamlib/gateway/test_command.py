"""`streamlib gateway`: starts without a key, refuses unsafe options, stops cleanly."""

from __future__ import annotations

import io
import logging
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamlib.cli import main, parse
from streamlib.cli.gateway import keyless, read_routes, set_up_log
from streamlib.client.auth import variables_of
from streamlib.gateway import RouteRule, RouteTable, read_file
from streamlib.gateway.clients.named_clients import ClientTable
from streamlib.gateway.watch.request_log import JsonFormatter, TextFormatter
from streamlib.providers import find
from tests.support.cases import each_case


def error_of(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The message of a command that does not start."""
    assert main(["gateway", "--port", "0", *options]) == 1
    return capsys.readouterr().err


def test_command_refuses_invalid_and_unsafe_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    invalid = tmp_path / "routes.toml"
    invalid.write_text('[[route]]\nmodel = "a"\ntarget = "b:c"\n', encoding="utf-8")
    missing = tmp_path / "nowhere.toml"
    assert "--token-env" in error_of(capsys, "--host", "0.0.0.0")
    assert "NO_SUCH_TOKEN is not set" in error_of(capsys, "--token-env", "NO_SUCH_TOKEN")
    assert "PATTERN=PROVIDER:MODEL" in error_of(capsys, "--route", "claude")
    assert "did you mean anthropic" in error_of(capsys, "--route", "*=antropic:x")
    assert "the route file: " in error_of(capsys, "--config", str(invalid))
    assert "nowhere.toml: No such file" in error_of(capsys, "--config", str(missing))


@pytest.mark.parametrize("options", [["--spans"], ["--metrics-port", "0"]])
def test_command_names_the_extra_that_an_option_needs(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str) -> None:
        del name

    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    error = error_of(capsys, *options)
    assert error.startswith(f"{options[0]}: ")
    assert "is not installed: pip install" in error


def test_command_refuses_a_log_without_showing_its_password(
    capsys: pytest.CaptureFixture[str],
) -> None:
    away = error_of(capsys, "--log", "sqlite:////no/such/folder/logs.db")
    unknown = error_of(capsys, "--log", "mysql://user:secret-pass@host")
    assert away.startswith("--log: SQLite: ")
    assert unknown.startswith("an engine is ")
    assert "secret-pass" not in unknown
    assert (away.count("\n"), unknown.count("\n")) == (1, 1)


def test_command_refuses_limits_that_nobody_counts() -> None:
    pytest.importorskip("coredis", reason="no client for Redis: the extra `redis` is missing")
    # A process of its own: coredis leaves its in-memory streams open where it cannot connect.
    options = ["--port", "0", "--limits", "redis://user:secret-pass@127.0.0.1:9"]
    away = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "streamlib", "gateway", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert away.returncode == 1
    assert away.stderr.startswith("--limits: Redis: ")
    assert "secret-pass" not in away.stderr


@each_case(
    "option, value, default",
    [
        ("log-format", "json", "text"),
        ("log", "memory:", None),
        ("state", "off", "memory:"),
        ("limits", "redis://host", None),
        ("token-env", "TOKEN", None),
    ],
)
def test_options_of_the_command_are_read(option: str, value: str, default: str | None) -> None:
    name = option.replace("-", "_")
    assert vars(parse(["gateway"]))[name] == default
    assert vars(parse(["gateway", f"--{option}", value]))[name] == value


def test_log_has_the_format_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    logger = logging.getLogger("streamlib.gateway")
    before = logger.level
    try:
        set_up_log("json", with_content=True)
        assert (type(handler.formatter), logger.level) == (JsonFormatter, logging.DEBUG)
        set_up_log("text", with_content=False)
        assert (type(handler.formatter), logger.level) == (TextFormatter, logging.INFO)
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize(("workers", "served"), [("1", "alone"), ("2", "with_workers")])
def test_more_than_one_worker_is_a_process_of_its_own(
    workers: str,
    served: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[str] = []

    def serve(name: str, *given: Any) -> int:
        ran.append(name)
        listener: socket.socket = given[-1]
        listener.close()
        return 0

    monkeypatch.setattr("streamlib.cli.gateway.set_up_log", lambda *_, **__: None)
    for name in ("alone", "with_workers"):
        monkeypatch.setattr(f"streamlib.cli.gateway._serve_{name}", partial(serve, name))
    options = ["--port", "0", "--workers", workers, "--route", "*=loopback:*"]
    assert main(["gateway", *options]) == 0
    assert ran == [served]
    assert ("each worker stores reasoning for itself" in capsys.readouterr().err) == (workers > "1")


def test_command_makes_a_token_and_its_digest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--new-token"]) == 0
    token, line = capsys.readouterr().out.splitlines()
    client = read_file(f'[[client]]\nname = "alice"\n{line}').client[0]
    assert ClientTable([client]).find([token]) is client


def test_command_takes_clients_in_place_of_one_token(tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    options = ["gateway", "--host", "0.0.0.0", "--config", str(file)]
    arguments = parse(options)
    file.write_text(f'[[client]]\nname = "alice"\ntoken_sha256 = "{"0" * 64}"\n')
    assert read_routes(arguments).clients.clients[0].name == "alice"
    file.write_text('[[route]]\nmodel = "*"\nto = "loopback:*"\n')
    with pytest.raises(ValueError, match="--token-env"):
        read_routes(arguments)


NO_KEY = "no key for anthropic (route claude-*): set ANTHROPIC_API_KEY"


@pytest.mark.parametrize(
    ("to", "variables", "warning"),
    [
        ("anthropic:claude-opus-5", {}, NO_KEY),
        ("anthropic:claude-opus-5", {"ANTHROPIC_API_KEY": "sk-ant-x"}, None),
        ("loopback:echo", {}, None),
    ],
)
def test_missing_key_is_reported_at_the_start(
    to: str, variables: dict[str, str], warning: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in variables_of(find("anthropic:x")[0]):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lines = keyless(RouteTable([RouteRule("claude-*", to)]))
    if warning is None:
        assert not lines
    else:
        assert [line.startswith(warning) for line in lines] == [True]
    assert "sk-ant" not in "".join(lines)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_command_serves_without_a_key_and_stops_cleanly(log_format: str) -> None:
    command = [sys.executable, "-m", "streamlib", "gateway", "--port", "0"]
    command += ["--log-format", log_format]
    command += ["--route", "fast=loopback:echo"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in range(3))
        url = re.search(r"http://\S+:\d+", printed)
        assert url
        body = msgspec.json.encode(
            {"model": "fast", "messages": [{"role": "user", "content": "Hello"}]}
        )
        request = urllib.request.Request(
            f"{url[0]}/v1/chat/completions", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            received = msgspec.json.decode(response.read())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert received["choices"][0]["message"]["content"].startswith("You said: Hello")
    assert "fast" in printed
    assert "ANTHROPIC_BASE_URL" in printed
    if log_format == "json":
        lines = [msgspec.json.decode(text) for text in errors.splitlines()]
        # The client has its response a moment before the line of it is written.
        [line] = [line for line in lines if line["message"] == "request"]
        [stopping] = [line["message"] for line in lines if line["message"] != "request"]
        assert stopping == "stopping: 0 streams open, up to 25 seconds"
        assert (line["requested_model"], line["model"]) == ("fast", "loopback:echo")
    else:
        assert "chat fast -> loopback:echo: stop" in errors
        assert all(re.match(r"20\d\d-\d\d-\d\dT[\d:.]+Z ", line) for line in errors.splitlines())
    assert "Traceback" not in errors


def checked(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Exit code and output of `--check`."""
    code = main(["gateway", "--check", *options])
    output, errors = capsys.readouterr()
    return code, output, errors


def test_check_reads_routes_and_keys_and_serves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "routes.toml"
    file.write_text('[[route]]\nmodel = "a-*"\nto = ["loopback:echo", "groq:x"]\n', "utf-8")
    monkeypatch.setenv("GROQ_API_KEY", "gsk_1")
    code, output, errors = checked(capsys, str(file))
    assert (code, errors) == (0, "")
    assert "a-*                      -> loopback:echo, groq:x" in output
    monkeypatch.delenv("GROQ_API_KEY")
    code, _, errors = checked(capsys, str(file))
    assert (code, errors) == (1, "no key for groq (route a-*): set GROQ_API_KEY\n")
    file.write_text("[[route]]\nmodel = 1\n", "utf-8")
    code, _, errors = checked(capsys, str(file))
    assert code == 1
    assert "the route file: " in errors
    assert "--ask goes with --check" in error_of(capsys, "--ask", "m")


def test_check_asks_each_target_of_a_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A target that fails is told in its own words, although another one would serve."""
    file = tmp_path / "routes.toml"
    away = '{ model = "custom:m", base_url = "http://127.0.0.1:9/v1" }'
    file.write_text(f'[[route]]\nmodel = "a-*"\nto = ["loopback:echo", {away}]\n', "utf-8")
    code, output, errors = checked(capsys, str(file), "--ask", "a-1")
    assert code == 1
    assert "loopback:echo answers in " in output
    assert errors.startswith("custom:m fails: connection (")
    file.write_text('[[route]]\nmodel = "a-*"\nto = "loopback:echo"\n', "utf-8")
    assert checked(capsys, str(file), "--ask", "a-1")[0] == 0
    code, _, errors = checked(capsys, str(file), "--ask", "b-1")
    assert (code, errors) == (1, "no route for the model 'b-1'\n")
