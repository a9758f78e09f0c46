"""The command line: what each command prints, and its exit codes."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest

from streamlib.cli import COMMANDS, main, parse
from streamlib.display.safe_text import Printable, printable
from tests.support.metrics import figure
from tests.support.shared import ROOT, each_vector

RECORDINGS = ROOT / "tests" / "recordings"
TOOL_CALL = RECORDINGS / "messages" / "aimock-tool.sse"


@each_vector("terminal_vectors")
def test_printable_keeps_the_terminal_safe_at_any_split(vector: dict[str, Any]) -> None:
    text, safe = vector["t"], vector["o"]
    assert printable(text) == safe
    for index in range(len(text) + 1):
        output = Printable()
        assert output.feed(text[:index]) + output.feed(text[index:]) + output.close() == safe
    figure(f"vector/{vector}")
    figure("partitions", len(text) + 1)


def test_inspect_prints_one_json_object_per_file(capsys: pytest.CaptureFixture[str]) -> None:
    error = RECORDINGS / "messages" / "aimock-overloaded.json"
    assert main(["inspect", str(TOOL_CALL), str(error), "--wire-api", "messages", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert set(first) >= {
        "file",
        "response_id",
        "model",
        "text",
        "reasoning",
        "refusal",
        "tool_calls",
        "server_tools",
        "stop_reason",
        "usage",
        "terminal",
        "error_kind",
        "events",
        "passthrough",
        "notices",
    }
    assert (first["terminal"], first["stop_reason"], first["tool_calls"][0]["name"]) == (
        "completed",
        "tool_calls",
        "get_weather",
    )
    assert (second["terminal"], second["error_kind"]) == ("failed", "overloaded")


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_inspect_prints_the_same_json_at_any_chunk_size(
    chunk: int, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["inspect", str(TOOL_CALL), "--wire-api", "messages", "--json"])
    main(["inspect", str(TOOL_CALL), "--wire-api", "messages", "--json", "--chunk", str(chunk)])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


@pytest.mark.parametrize("command", ["inspect", "replay", "convert"])
def test_commands_fail_in_one_line_when_a_file_is_missing(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [command, "missing.sse", "--wire-api", "messages"]
    if command == "convert":
        arguments += ["--to", "chat"]
    assert main(arguments) == 1
    assert "No such file" in capsys.readouterr().err


FORGED = "no\x1b]0;title\x07\u202e\nexit code 0.sse"
"""A file name that would set a terminal's title, reorder its text and start a line."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["fuzz", "chat", FORGED],
        ["gateway", "--port", "0", "--config", FORGED],
        ["bench"],
    ],
)
def test_file_name_is_escaped_in_an_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C7: also where a command leaves the error to `main`."""
    if arguments[0] == "bench":

        def fail(_: object) -> int:
            raise FileNotFoundError(2, "No such file", FORGED)

        monkeypatch.setattr("streamlib.cli.bench.run", fail)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error[:-1].isprintable()
    assert "exit code 0.sse" in error


@pytest.mark.parametrize("target", ["messages", "vercel", "agui", "jsonl"])
def test_convert_writes_every_kind_of_target(
    target: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["convert", str(TOOL_CALL), "--wire-api", "messages", "--to", target]) == 0
    assert b"get_weather" in capfdbinary.readouterr().out


def test_replay_streams_a_captured_body(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["replay", str(TOOL_CALL), "--wire-api", "messages", "--speed", "0", "--split", "5"])
        == 0
    )
    captured = capsys.readouterr()
    assert "get_weather" in captured.out
    assert "tool_calls" in captured.err


def test_chat_uses_the_loopback_provider_without_a_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["chat", "Hello", "there", "--reasoning", "low"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("You said: Hello there")
    assert "999 requests left" in captured.err


def test_chat_names_the_missing_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["chat", "Hello", "--model", "anthropic:claude-opus-5"]) == 1
    captured = capsys.readouterr()
    assert "ANTHROPIC_API_KEY" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "arguments",
    [["chatt"], ["chat", "--wire-api", "telegraph"], ["inspect"], ["serve", "--fault", "flood"]],
)
def test_main_exits_with_2_on_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_valid_examples_and_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    shown = capsys.readouterr().out
    examples = re.findall(
        rf"^  (?:curl .* \| )?streamlib ({command or '[a-z]+'}\b.*?)(?:  .*)?$", shown, re.MULTILINE
    )
    assert max(map(len, shown.splitlines())) <= 80
    assert len(examples) >= 2
    for line in examples:
        assert parse(shlex.split(line.partition(" >")[0])).run
    assert re.search(r"^examples:$", shown, re.MULTILINE)
    codes = re.search(r"^exit code: .*(?:\n  .*)*", shown, re.MULTILINE)
    assert codes
    assert re.search(r"\b1 ", codes[0])
    assert re.search(r"\b2 (?:usage error|was not requested)", codes[0])


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(
        f"\n  {command} " in shown for command in ("chat", "inspect", "replay", "convert", "serve")
    )
