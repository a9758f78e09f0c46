"""Commands read the same files: devices without an end are refused, and a guess is said."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path

import pytest

from streamlib.cli import captures, main
from tests.support.awkward_captures import CHAT, CHAT_CAPTURES, EVENT_LOG, MESSAGES, URL, entry, har

ONE_OF_EACH = [["inspect"], ["replay", "--speed", "0"], ["convert", "--to", "chat"]]


def saved(folder: Path, data: bytes) -> str:
    path = folder / "capture"
    path.write_bytes(data)
    return str(path)


# --- files without an end ---


@pytest.mark.parametrize("arguments", ONE_OF_EACH, ids=lambda arguments: arguments[0])
def test_endless_device_is_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link to it was read for ever."""
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    for name in ("/dev/zero", str(link)):
        assert main([*arguments, name]) == 1
        reason = "a device, which may have no end: save what it holds to a file"
        assert capsys.readouterr().err == f"{name}: {reason}\n"


def test_pipe_without_an_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(captures, "FILE_BYTES", 5_000_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        descriptor = os.open(pipe, os.O_WRONLY)
        with contextlib.suppress(BrokenPipeError):
            while True:
                os.write(descriptor, b"data: x\n\n" * 1000)
        os.close(descriptor)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert main(["inspect", str(pipe)]) == 1
    assert "longer than 5,000,000 bytes, which is the limit" in capsys.readouterr().err
    writer.join(10)
    assert not writer.is_alive()


def test_pipe_with_an_end_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CHAT,))
    writer.start()
    assert main(["inspect", str(pipe)]) == 0
    writer.join(10)
    assert "the response is complete" in capsys.readouterr().out


# --- what is said ---


@pytest.mark.parametrize("name", CHAT_CAPTURES)
def test_inspect_shows_a_capture_in_every_form(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", saved(tmp_path, CHAT_CAPTURES[name])]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("the response is complete") == 1
    assert captured.err.count("\n") == ("chat (guessed)" in captured.out)


def test_several_responses_are_numbered_and_guessed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path, MESSAGES + MESSAGES)
    assert main(["inspect", file, "--json"]) == 0
    captured = capsys.readouterr()
    lines = [json.loads(line) for line in captured.out.splitlines()]
    assert [line["file"] for line in lines] == [f"{file}#1", f"{file}#2"]
    said = "2 responses, each read as messages, as it looks (--wire-api names another)"
    assert captured.err == f"{file}: {said}\n"


def test_guess_of_one_of_several_responses_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = b'{"error":{"message":"slow down"}}'
    status = b"HTTP/1.1 429 Too Many Requests\r\nx-request-id: r\r\n\r\n"
    file = saved(tmp_path, status + body + b"\n" + status + MESSAGES)
    assert main(["inspect", file, "--json"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"{file}#1: read as chat, as it shows no wire API of its own (--wire-api names another)",
        f"{file}#2: read as messages, as it looks (--wire-api names another)",
    ]


def test_header_names_the_forms_of_a_response(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["inspect", saved(tmp_path, har(entry(CHAT.decode())))]) == 0
    about = capsys.readouterr().out.splitlines()[1]
    assert about.startswith("  chat · from HAR · 4,452 bytes · model ")
    assert about.endswith(f" · {URL}")


def test_what_has_no_wire_is_read_as_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", saved(tmp_path, b'{"error":{"message":"no such model"}}')]) == 1
    captured = capsys.readouterr()
    assert "no such model" in captured.out
    assert "read as chat, as it shows no wire API of its own" in captured.err


@pytest.mark.parametrize("data", [b"", b" \n\n"])
def test_empty_file_holds_no_response(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a malformed stream of Chat."""
    file = saved(tmp_path, data)
    for command in ONE_OF_EACH:
        assert main([*command, file]) == 2
        assert capsys.readouterr().err == f"{file}: it is empty: there is no response in it\n"
    assert main(["inspect", file, "--wire-api", "chat"]) == 1
    assert "failed (malformed)" in capsys.readouterr().out
    assert main(["inspect", saved(tmp_path, b"\xff\xfe")]) == 2  # PowerShell's empty file


@pytest.mark.parametrize("options", [[], ["--wire-api", "chat"], ["--json"]])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (har(entry("<p>", "https://chat.example/", mimeType="text/html")), "with 1 entry, which"),
        (har(entry("")), f"without the body of {URL}: export it with content"),
        (har(entry(""))[:60], "is cut or damaged"),
    ],
    ids=["a page", "without content", "cut"],
)
def test_har_without_a_response_has_the_code_for_that(
    data: bytes,
    message: str,
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["inspect", saved(tmp_path, data), *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_file_without_a_response_asks_for_the_wire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path, b"nothing of that kind\n")
    assert main(["inspect", file]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"{file}: no response was found in it (streamlib inspect --help lists")
    assert "--wire-api {messages,responses,chat," in error
    assert main(["inspect", file, "--wire-api", "chat"]) == 1
    assert "failed (malformed)" in capsys.readouterr().out


def test_wire_that_is_named_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["inspect", saved(tmp_path, MESSAGES), "--wire-api", "cohere"])
    captured = capsys.readouterr()
    assert "read as cohere, but it looks like --wire-api messages" in captured.out
    assert not captured.err


@pytest.mark.parametrize("arguments", ONE_OF_EACH, ids=lambda arguments: arguments[0])
def test_event_log_is_opened(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`convert --to jsonl` and `dump_events` write it, and inspect asked for `load_events`."""
    assert main([*arguments, saved(tmp_path, EVENT_LOG)]) == 0
    assert "get_weather" in capfd.readouterr().out


def test_forms_are_listed_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for form in ("HAR", "gzip", "UTF-16", "curl -i", "Python", "log", "mitmdump", "JSON"):
        assert form in text
