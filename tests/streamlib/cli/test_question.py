"""`streamlib "question"`: the grammar, what is piped in, the options, how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamlib import (
    Document,
    ErrorInfo,
    FunctionCall,
    FunctionCallArgumentsDelta,
    History,
    Image,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    Text,
    Usage,
)
from streamlib.cli import COMMANDS, is_misspelt, main, parse
from streamlib.cli.arguments import CommandError
from streamlib.cli.conversation import read_attachment
from streamlib.cli.exit_codes import code_of_error, code_of_response
from streamlib.cli.model_options import (
    first_code_block,
    read_options,
    read_schema,
    schema_problem,
)
from streamlib.cli.screen import Screen
from streamlib.testing import Behaviour, running
from streamlib_parsers import Response
from streamlib_parsers.events import Window
from tests.support.cases import each_case
from tests.support.shared import ROOT
from tests.support.terminals import terminal

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


def streamlib(*arguments: str, piped: str | None = None, **environment: str) -> Any:
    """Runs the command in a process of its own; its standard input is a pipe or nothing."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    return subprocess.run(
        [sys.executable, "-m", "streamlib", *arguments],
        input=piped,
        stdin=subprocess.DEVNULL if piped is None else None,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1", **environment},
    )


# --- the grammar ---


@each_case(
    "arguments, text",
    [
        (["Name", "three", "rivers"], "Name three rivers"),
        (["-m", "loopback:x", "hi"], "hi"),
        (["hi", "-m", "loopback:x", "there"], "hi there"),
        (["chat", "inspect"], "inspect"),
        (["inspecting a file"], "inspecting a file"),
        (["what", "is", "--", "-x"], "what is -x"),
    ],
)
def test_words_without_a_command_are_a_question(arguments: list[str], text: str) -> None:
    assert " ".join(parse(arguments).text) == text


def test_first_word_that_is_a_command_runs_it() -> None:
    for name in ("models", "providers", "doctor"):
        assert parse([name]).run.__module__ == f"streamlib.cli.{name}"


@pytest.mark.parametrize("typed", ["inspct", "chatt", "rpelay", "dcotor", "log_", "models_"])
def test_lone_word_near_a_command_is_not_a_question(
    typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([typed])
    assert caught.value.code == 2
    assert "did you mean" in capsys.readouterr().err


@each_case(
    "arguments, command",
    [
        (["inspct", "f.jsonl"], "inspect"),
        (["inspct", "{file}"], "inspect"),
        (["inspct", "--json", "f.jsonl"], "inspect"),
        (["inspct", "f", "--help"], "inspect"),
        (["gatway", "--config", "x"], "gateway"),
        (["gatway", "--port=80"], "gateway"),
        (["replya", "captures/a"], "replay"),
        (["fuz", "chat", "--time", "60"], "fuzz"),
        (["lgo", "sqlite:///r.db", "chat-7"], "log"),
        (["doctr", "--json"], "doctor"),
        (["chta", "-m", "loopback:x"], "chat"),
    ],
)
def test_word_near_a_command_with_its_arguments_is_a_typo(
    arguments: list[str],
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("capture").touch()
    arguments = [word.format(file="capture") for word in arguments]
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert not captured.out
    asked = " ".join(arguments)
    expected = f"{arguments[0]} is not a command; did you mean {command}?"
    assert captured.err == f"{expected} (to ask it: streamlib chat {asked})\n"


@each_case(
    "words",
    [
        ["chart the course of a ship to f.jsonl"],
        ["chart", "the", "course"],
        ["what", "is", "in", "notes.txt"],
        ["chart", "data.csv", "as", "bars"],
        ["reply", "politely."],
        ["model", "3.5", "is", "which?"],
        ["dog", "food"],
        ["reply", "to Ann and/or Bob, see a.txt"],
        ["that", "-m", "loopback:x", "is", "it"],
        ["reply", "-m", "loopback:x", "to", "this"],
        ["--", "inspct", "f.jsonl"],
    ],
)
def test_sentence_that_begins_near_a_command_is_a_question(words: list[str]) -> None:
    options = {"-m", "loopback:x", "--"}
    assert parse(words).text == [word for word in words if word not in options]


def test_misspelt_is_one_letter_from_a_command() -> None:
    assert is_misspelt("lag", "log")
    assert is_misspelt("lgo", "log")
    assert is_misspelt("lo", "log")
    assert not is_misspelt("log", "log")
    assert not is_misspelt("loop", "log")
    assert not any(is_misspelt("hello", command) for command in COMMANDS)


@each_case(
    "arguments, suggestion",
    [
        (["hi", "--modle", "x"], "did you mean --model?"),
        (["chat", "hi", "--wire-api", "mesages"], "did you mean messages?"),
        (["inspect", "f", "--jsno"], "did you mean --json?"),
        (["completion", "bsh"], "did you mean bash?"),
    ],
)
def test_error_suggests_an_option_or_a_value(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"{suggestion}\n")


LOADED = """
import sys
from streamlib.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stderr.write("modules " + " ".join(sys.modules))
"""


@each_case(
    "arguments, absent",
    [
        (["--version"], ["anyio", "markdown_it", "streamlib.cli.chat", "streamlib_parsers"]),
        (["--help"], ["anyio", "markdown_it", "streamlib.cli.chat", "streamlib_parsers"]),
        (
            ["inspect", "CAPTURE"],
            [
                "anyio",
                "difflib",
                "h11",
                "hashlib",
                "httpx",
                "streamlib.client",
                "streamlib.inspection.difference",
                "streamlib.inspection.splits",
                "streamlib.pipeline",
                "streamlib.testing",
            ],
        ),
        (["hi"], ["markdown_it", "prompt_toolkit", "shtab", "streamlib.recording"]),
    ],
)
def test_command_loads_only_what_it_needs(arguments: list[str], absent: list[str]) -> None:
    """What is loaded decides how long a command takes to start; times depend on the machine."""
    capture = ROOT / "tests" / "recordings" / "messages" / "aimock-tool.sse"
    if "CAPTURE" in arguments:
        arguments = ["inspect", str(capture), "--wire-api", "messages"]
    run = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'parsers'}"},
    )
    loaded = run.stderr.rpartition("modules ")[2].split()
    assert len(loaded) > 50
    assert [name for name in absent if name in loaded] == []


# --- what is piped in ---


def test_piped_text_comes_before_the_question() -> None:
    run = streamlib("what", "is", "this?", piped="line 1\nline 2\n")
    assert run.stdout.startswith("You said: line 1\nline 2\n\nwhat is this?\n")
    assert run.returncode == 0


def test_pipe_without_words_is_the_question() -> None:
    run = streamlib(piped="first line\nsecond line\n")
    assert run.stdout.startswith("You said: first line\nsecond line\n")
    assert run.stdout.count("You said") == 1


def test_no_question_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for piped in (b"", b"\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped)))
        assert main([]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "no question" in captured.err


def test_question_without_a_model_names_the_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["hi"])
    assert "no model was named" in capsys.readouterr().err
    main(["hi", "-m", "loopback:x"])
    assert "no model" not in capsys.readouterr().err
    monkeypatch.setenv("STREAMLIB_MODEL", "loopback:x")
    main(["hi"])
    assert "no model" not in capsys.readouterr().err


# --- options ---


def test_options_become_fields_of_the_prompt() -> None:
    pairs = [("temperature", "0.5"), ("seed", "7"), ("stop", "a"), ("stop", "b")]
    pairs += [("parallel_tools", "false"), ("extra", '{"k": 1}'), ("reasoning", "low")]
    assert read_options(pairs) == {
        "temperature": 0.5,
        "seed": 7,
        "stop": ["a", "b"],
        "parallel_tools": False,
        "extra": {"k": 1},
        "reasoning": "low",
    }


@each_case(
    "key, value, message",
    [
        ("temprature", "1", "did you mean temperature?"),
        ("seed", "much", "-o seed much"),
        ("extra", "{", "-o extra {"),
        ("model", "x", "no such option"),
    ],
)
def test_option_that_is_none_is_a_usage_error(key: str, value: str, message: str) -> None:
    with pytest.raises(CommandError, match=r"^-o ") as caught:
        read_options([(key, value)])
    assert message in str(caught.value)
    assert caught.value.code == 2


def test_schema_of_fields() -> None:
    assert read_schema("name, age int: in years") == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "description": "in years"},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    assert list(read_schema("a: one, two\nb bool")["properties"]) == ["a", "b"]


def test_schema_of_a_file_and_of_json(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {}}
    (tmp_path / "s.json").write_text(json.dumps(schema))
    assert read_schema(str(tmp_path / "s.json")) == read_schema(json.dumps(schema)) == schema
    for text in ("name whatever", "{", "", str(tmp_path / "none.json")):
        with pytest.raises(CommandError):
            read_schema(text)


@each_case(
    "text, problem",
    [
        ('{"name": "Ada", "age": 36}', None),
        ("Ada, 36", "it is not JSON"),
        ('{"name": "Ada"}', "it has no age"),
        ('{"name": "Ada", "age": "36"}', "age is no integer"),
        ('{"name": "Ada", "age": true}', "age is no integer"),
        ("[]", "it is no object"),
    ],
)
def test_schema_problem_is_named(text: str, problem: str | None) -> None:
    found = schema_problem(text, read_schema("name, age int"))
    assert (found is None) == (problem is None)
    assert (problem or "") in (found or "")


def test_question_with_a_schema_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Invent a dog", "--schema", "name, age int"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "text", "age": 1}


def test_response_that_breaks_its_schema_has_exit_code_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "not JSON")
    assert main(["hi", "--schema", "name", "--wire-api", "chat"]) == 3
    captured = capsys.readouterr()
    assert captured.out == "not JSON\n"
    assert "not as requested: it is not JSON" in captured.err


def answer(monkeypatch: pytest.MonkeyPatch, text: str, finish: str = "stop") -> None:
    """Makes the loopback provider send a text."""
    frames = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    ]
    body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"

    def served(**options: Any) -> Any:
        return running(Behaviour((body.encode(),)), **options)

    monkeypatch.setattr("streamlib.testing.running", served)


def test_extract_writes_the_first_code_block(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "Here:\n```sh\nls -S\n```\nand\n```\nno\n```\n")
    assert main(["list files", "-x", "--wire-api", "chat"]) == 0
    assert capsys.readouterr().out == "ls -S\n"
    answer(monkeypatch, "I cannot.")
    assert main(["list files", "-x", "--wire-api", "chat"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no fenced code block" in captured.err


def test_first_code_block_keeps_other_fences_inside() -> None:
    assert first_code_block("~~~md\n```\nx\n```\n~~~") == "```\nx\n```\n"
    assert first_code_block("```\nopen") is None


def test_json_writes_the_response(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hi", "--json", "-m", "loopback:x"]) == 0
    response = json.loads(capsys.readouterr().out)
    assert response["stop_reason"] == "stop"
    assert response["items"][0]["content"][0]["text"].startswith("You said: hi")


# --- attachments ---


def test_attachment_is_what_its_bytes_are(tmp_path: Path) -> None:
    contents = {"a.bin": PNG, "b.dat": b"%PDF-1.7", "c.txt": "é".encode(), "d.x": b"\xff\xfe\0"}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    image = read_attachment(str(tmp_path / "a.bin"))
    document = read_attachment(str(tmp_path / "b.dat"))
    assert isinstance(image, Image)
    assert isinstance(document, Document)
    assert (image.media_type, document.media_type) == ("image/png", "application/pdf")
    assert document.name == "b.dat"
    assert read_attachment(str(tmp_path / "c.txt")) == Text("c.txt:\n\né")
    with pytest.raises(CommandError, match="neither text nor"):
        read_attachment(str(tmp_path / "d.x"))
    address = read_attachment("https://example.org/report.pdf")
    assert address == Document(url="https://example.org/report.pdf", media_type="application/pdf")


def test_attachment_of_the_pipe_is_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = tmp_path / "h.json"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1\n2\n")))
    assert main(["Sum it up", "-a", "-", "--history", str(history)]) == 0
    message = History.loads(history.read_bytes())[0]
    assert isinstance(message, Message)
    texts = [part.text for part in message.content if isinstance(part, Text)]
    assert texts == ["Sum it up", "1\n2\n"]


# --- how it ends ---


@each_case(
    "kind, retryable, code",
    [
        ("truncated", True, 3),
        ("content_filter", False, 4),
        ("overloaded", True, 5),
        ("connection", True, 5),
        ("authentication", False, 1),
    ],
)
def test_exit_code_of_an_error(kind: Any, retryable: bool, code: int) -> None:
    assert code_of_error(ErrorInfo(kind, "", retryable)) == code


@each_case("reason, code", [("stop", 0), ("tool_calls", 0), ("length", 3), ("refusal", 4)])
def test_exit_code_of_a_response(reason: Any, code: int) -> None:
    assert code_of_response(Response(stop_reason=reason)) == code


def test_length_has_exit_code_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "and so", finish="length")
    assert main(["hi", "--wire-api", "chat"]) == 3
    assert capsys.readouterr().out == "and so\n"


def test_unreachable_server_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    url = "http://127.0.0.1:9/v1"
    assert main(["hi", "-m", "custom:x", "--wire-api", "chat", "--base-url", url]) == 5
    error = capsys.readouterr().err
    assert error.startswith("cannot reach http://127.0.0.1:9: ")
    assert error.count("\n") == 1, "no retry"


def test_overloaded_server_is_tried_again_with_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def served(**options: Any) -> Any:
        return running(Behaviour(status=529, failing=1), **options)

    monkeypatch.setattr("streamlib.testing.running", served)
    assert main(["hi"]) == 0
    assert "; trying again in 0." in capsys.readouterr().err


# --- a terminal ---


def test_paste_of_three_lines_is_one_message() -> None:
    with terminal(sys.executable, "-m", "streamlib", "-m", "loopback:x") as screen:
        end = screen.wait_for("> ")
        screen.type("\x1b[200~one\ntwo\nthree\x1b[201~")
        screen.type("\r")
        end = screen.wait_for("first token", end)
        screen.wait_for("> ", end)
        screen.type("\x04")
        assert screen.wait_for_end() == 0
    assert screen.text.count("You said") == 1
    assert "You said: one two three" in screen.text


def test_terminal_shows_markdown_and_a_waiting_line() -> None:
    serve = (sys.executable, "-m", "streamlib", "serve", "--port", "0", "--pace", "0.9")
    with terminal(*serve) as server:
        server.wait_for("(")
        url = server.text.split("listening on ")[1].split()[0]
        question = ("Hello **you**", "-m", "loopback:x", "--base-url", url)
        with terminal(sys.executable, "-m", "streamlib", *question) as screen:
            end = screen.wait_for("waiting for loopback:x at http://127.0.0.1:")
            screen.wait_for("You said:", end)
            screen.process.kill()
    assert "\x1b[K" in screen.written


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_screen_draws_markdown_unless_it_is_raw() -> None:
    for is_raw, expected in ((True, "**bold** text\n"), (False, "\x1b[1mbold\x1b[0m text\r\n")):
        out = Tty()
        screen = Screen(out, Tty(), is_raw=is_raw)
        assert screen.draws_markdown == (not is_raw)
        screen.show(OutputTextDelta(0, 0, "**bold** text"))
        screen.end()
        assert out.getvalue() == expected


def test_screen_starts_each_response_without_an_empty_line() -> None:
    out = Tty()
    screen = Screen(out, Tty(), is_raw=True)
    for text in ("one", "two"):
        screen.show(OutputItemAdded(0, Message("assistant", status="incomplete")))
        screen.show(OutputTextDelta(0, 0, text))
        screen.end()
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue()) == "one\ntwo\n"


def test_screen_ends_the_line_of_a_call_that_was_shown() -> None:
    out = io.StringIO()
    screen = Screen(out, io.StringIO())
    screen.show(OutputItemAdded(0, FunctionCall("c", "look", status="incomplete")))
    screen.show(FunctionCallArgumentsDelta(0, "{}"))
    screen.show(OutputItemDone(0, FunctionCall("c", "look", "{}")))
    screen.show(OutputTextDelta(1, 0, "found"))
    assert not screen.draws_markdown
    screen.end()
    assert out.getvalue() == "→ look {}\nfound\n"


def test_status_line_has_what_is_known() -> None:
    windows = RateLimits(requests=Window(10, 9), tokens=Window(100, 1))
    usage = Usage(1200, 34)
    cases: list[tuple[Response, str]] = [
        (Response(), "[?]"),
        (Response(model="m", stop_reason="stop", usage=usage), "[m · 1,200 in, 34 out]"),
        (Response(model="m", stop_reason="length"), "[m · length]"),
        (Response(model="m", rate_limits=windows), "[m · 9 requests left · 1 tokens left]"),
    ]
    for response, line in cases:
        err = io.StringIO()
        Screen(io.StringIO(), err).status(response)
        assert err.getvalue() == f"{line}\n"


def test_screen_starts_a_call_below_the_markdown() -> None:
    out = Tty()
    screen = Screen(out, Tty())
    screen.show(OutputTextDelta(0, 0, "I will *look*"))
    screen.show(OutputItemAdded(1, FunctionCall("c", "look", status="incomplete")))
    screen.show(OutputItemDone(1, FunctionCall("c", "look", "{}")))
    screen.show(OutputTextDelta(2, 0, "found"))
    screen.end()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert plain.endswith("I will look\r\n\n→ look \nfound\r\n")
