"""Mistakes on the command line: a wrong wire, a wrong file, an invalid number.

Each error names what would be right.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlib
from streamlib.cli import main
from streamlib.recording import dump, dump_events, from_body, load, load_all
from streamlib.testing import replay
from tests.support.shared import ROOT

RECORDINGS = ROOT / "tests" / "recordings"
TOOL_CALL = RECORDINGS / "messages" / "aimock-tool.sse"
RESPONSES = RECORDINGS / "responses" / "aimock-tool.sse"
LOG = dump_events(streamlib.parse_body("messages", b"{}"))
HISTORY = streamlib.History([streamlib.user("hi")]).dumps()
COMMANDS = [["inspect"], ["replay"], ["convert", "--to", "chat"], ["bench"]]


# --- the wrong wire ---


@pytest.mark.parametrize(
    "arguments", [["inspect"], ["replay", "--speed", "0"], ["convert", "--to", "messages"]]
)
def test_commands_name_the_likely_wire_once(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, str(RESPONSES), "--wire-api", "chat"]) == 3
    output = "".join(capfd.readouterr())
    assert output.count("read as chat, but it looks like --wire-api responses") == 1


def test_inspect_shows_the_likely_wire_before_the_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["inspect", str(RESPONSES), "--wire-api", "chat"])
    marked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ! ")]
    assert "looks like" in marked[0]
    assert marked[1].startswith("  ! failed (")


def test_inspect_joins_repeated_anomalies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "anomalies.sse").write_bytes(
        b'event: comet\ndata: {"type":"comet"}\n\n' * 22 + TOOL_CALL.read_bytes()
    )
    assert main(["inspect", str(tmp_path / "anomalies.sse"), "--wire-api", "messages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "comet x22" in line]) == 1
    assert [line for line in lines if "unknown" in line] == [
        "  ! unknown event at byte 0 and 21 more times: comet"
    ]


@pytest.mark.parametrize("target", ["messages", "responses", "converse"])
@pytest.mark.parametrize("name", ["messages/aimock-tool.sse", "responses/aimock-tool.sse"])
def test_convert_reports_unknown_events_of_another_wire(
    name: str, target: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    if name.startswith(target):
        return
    assert main(["convert", str(RECORDINGS / name), "--wire-api", "chat", "--to", target]) == 3
    captured = capfdbinary.readouterr()
    assert b"response.output" not in captured.out
    assert b"content_block_" not in captured.out
    assert captured.err.count(b"not converted: /passthrough") == 1


@pytest.mark.parametrize(
    ("wire_api", "kind"),
    [
        ("messages", "message_start.content"),
        ("messages", "content_block_sparkle"),
        ("responses", "response.weather"),
    ],
)
def test_encoder_writes_unknown_events_of_its_own_wire(
    wire_api: streamlib.WireApi, kind: str
) -> None:
    encode = streamlib.encoder(wire_api)
    encode.feed(streamlib.Created("r", "m"))
    frame = encode.feed(streamlib.Passthrough(kind, {"type": kind}))
    assert kind.encode() in frame
    assert not encode.report


# --- files that hold no capture ---


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"PK\x03\x04", "a ZIP archive: unpack it"), (HISTORY, "a saved history")],
)
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_commands_name_the_kind_of_a_file_without_a_capture(
    arguments: list[str],
    body: bytes,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "f").write_bytes(body)
    assert main([*arguments, str(tmp_path / "f"), "--wire-api", "chat"]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LOG, "an event log"),
        (HISTORY, "a saved history"),
        (b"", "it is empty"),
        (b"data: x\n\n", "does not begin with"),
    ],
)
async def test_load_names_the_kind_of_a_file_that_is_not_a_recording(
    body: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(body)
    with pytest.raises(ValueError, match=f"is not a recording: .*{message}"):
        load(tmp_path / "f")
    with pytest.raises(ValueError, match=message):
        async with replay(tmp_path / "f"):
            pass


def test_inspect_shows_complete_recordings_of_a_truncated_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = dump(from_body(TOOL_CALL.read_bytes()))
    (tmp_path / "r.jsonl").write_bytes(recording + recording[:-20])
    assert main(["inspect", str(tmp_path / "r.jsonl"), "--wire-api", "messages"]) == 3
    captured = capsys.readouterr()
    assert "r.jsonl#1: completed" in captured.out
    assert "r.jsonl#2: failed (truncated)" in captured.out
    assert "line 5" in captured.out
    with pytest.raises(ValueError, match="line 5"):
        load_all(tmp_path / "r.jsonl")


def test_bench_reads_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.jsonl").write_bytes(dump(from_body(TOOL_CALL.read_bytes())))
    assert (
        main(
            [
                "bench",
                str(tmp_path / "r.jsonl"),
                "--wire-api",
                "messages",
                "--rounds",
                "1",
                "--chunk",
                "999",
            ]
        )
        == 0
    )
    assert "999 B" in capsys.readouterr().out


# --- options and numbers ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--chunk", "0"], "1 or more"),
        (["serve", "--pace", "-1"], "0 or more"),
        (["serve", "--pace", "nan"], "0 or more"),
        (["serve", "--fault", "truncate@"], "KIND[@N]"),
        (["serve", "--failing", "0"], "the number of requests must be 1 or more"),
        (["bench", "--rounds", "0"], "1 or more"),
        (["bench", "--chunk", "-1"], "0 or more"),
        (["fuzz", "chat", "--time=-1"], "more than 0"),
        (["fuzz", "chat", "--time=inf"], "more than 0"),
    ],
)
def test_invalid_numbers_are_usage_errors(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_fuzz_fails_when_no_body_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "chat", "--time", "1e-12"]) == 1
    captured = capsys.readouterr()
    assert "no body was tried" in captured.err
    assert not captured.out


def test_serve_rejects_an_empty_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.sse").touch()
    assert main(["serve", str(tmp_path / "empty.sse")]) == 1
    assert "it is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "claude-opus-5"], "a model is written provider:model"),
        (["--model", "custom:x"], "custom needs --base-url"),
        (["--model", "antropic:x"], "did you mean anthropic"),
        (["--model", "anthropic:x", "--wire-api", "gemini"], "does not offer gemini"),
    ],
)
def test_chat_rejects_a_model_without_a_target(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chat", "hi", *arguments]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "url", "message"),
    [
        ("", "http://x.invalid", "set OPENAI_API_KEY\n"),
        ("k", "http://x.invalid", "http://x.invalid:80, so it is not sent there\n"),
        ("k", "http://user:secret@x.invalid", ": keys are read from environment variables\n"),
    ],
)
def test_chat_explains_key_errors_without_library_arguments(
    key: str,
    url: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert main(["chat", "hi", "--model", "openai:gpt-5", "--base-url", url]) == 1
    errors = capsys.readouterr().err
    assert errors.endswith(message)
    assert "=" not in errors
    assert "secret" not in errors


def test_unknown_options_show_the_usage_of_their_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["chat", "hi", "--colour"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: streamlib chat ")


def test_chat_rejects_a_folder_for_its_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chat", "hi", "--record", str(tmp_path)]) == 1
    assert "it is a folder" in capsys.readouterr().err


def test_chat_starts_a_new_history_in_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "talk.json").touch()
    assert main(["chat", "hi", "--history", str(tmp_path / "talk.json")]) == 0
    assert len(streamlib.History.loads((tmp_path / "talk.json").read_bytes())) == 2
