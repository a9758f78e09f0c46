"""Mistakes on the command line: the wrong wire, the wrong file, a number that is none; each is said with what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlib
from streamlib.cli import main
from streamlib.recording import dump, dump_events, from_body, load, load_all
from streamlib.testing import replay
from tests.support.shared import ROOT

HOME = ROOT / "tests" / "recordings"
TOOL = HOME / "messages" / "aimock-tool.sse"
RESPONSES = HOME / "responses" / "aimock-tool.sse"
LOG = dump_events(streamlib.parse_body("messages", b"{}"))
HISTORY = streamlib.dump_history([streamlib.user("hi")])
EVERY = [["inspect"], ["replay"], ["convert", "--to", "chat"], ["bench"]]


# --- the wrong wire ---


@pytest.mark.parametrize(
    "words", [["inspect"], ["replay", "--speed", "0"], ["convert", "--to", "messages"]]
)
def test_the_wrong_wire_is_named_with_the_one_it_looks_like(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, str(RESPONSES), "--wire-api", "chat"]) == 1
    said = "".join(capfd.readouterr())
    assert said.count("read as chat, but it looks like --wire-api responses") == 1


def test_the_likely_wire_comes_before_what_follows_from_the_wrong_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["inspect", str(RESPONSES), "--wire-api", "chat"])
    marked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ! ")]
    assert "looks like" in marked[0]
    assert "not whole" in marked[1]


def test_what_is_odd_many_times_is_one_line_and_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd.sse").write_bytes(
        b'event: comet\ndata: {"type":"comet"}\n\n' * 22 + TOOL.read_bytes()
    )
    assert main(["inspect", str(tmp_path / "odd.sse"), "--wire-api", "messages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "comet x22" in line]) == 1
    assert [line for line in lines if "unknown" in line] == [
        "  ! unknown to this version, at byte 0 and 21 more times: comet"
    ]


@pytest.mark.parametrize("target", ["messages", "responses", "converse"])
@pytest.mark.parametrize("name", ["messages/aimock-tool.sse", "responses/aimock-tool.sse"])
def test_events_of_another_wire_are_not_written_into_a_stream_but_reported(
    name: str, target: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    if name.startswith(target):
        return
    assert main(["convert", str(HOME / name), "--wire-api", "chat", "--to", target]) == 1
    captured = capfdbinary.readouterr()
    assert not any(word in captured.out for word in (b"response.output", b"content_block_"))
    assert captured.err.count(b"not said: /passthrough") == 1


@pytest.mark.parametrize(
    ("wire_api", "kind"),
    [
        ("messages", "message_start.content"),
        ("messages", "content_block_sparkle"),
        ("responses", "response.weather"),
    ],
)
def test_a_wires_own_unknown_events_stay_in_its_stream(
    wire_api: streamlib.WireApi, kind: str
) -> None:
    encode = streamlib.encoder(wire_api)
    said = encode.feed(streamlib.Created("r", "m")) + encode.feed(
        streamlib.Passthrough(kind, {"type": kind})
    )
    assert kind.encode() in said
    assert not encode.report


# --- files that hold no capture ---


@pytest.mark.parametrize(
    ("body", "said"),
    [(LOG, "an event log (read it with load_events)"), (HISTORY, "a saved history")],
)
@pytest.mark.parametrize("words", EVERY, ids=lambda words: words[0])
def test_a_file_that_streamlib_wrote_is_said_to_be_what_it_is(
    words: list[str], body: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f").write_bytes(body)
    assert main([*words, str(tmp_path / "f"), "--wire-api", "chat"]) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (LOG, "an event log"),
        (HISTORY, "a saved history"),
        (b"", "it is empty"),
        (b"data: x\n\n", "does not begin with"),
    ],
)
async def test_what_is_no_recording_is_said_to_be_none(
    body: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(body)
    with pytest.raises(ValueError, match=f"is not a recording: .*{said}"):
        load(tmp_path / "f")
    with pytest.raises(ValueError, match=said):
        async with replay(tmp_path / "f"):
            pass


def test_of_recordings_that_break_off_the_whole_ones_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = dump(from_body(TOOL.read_bytes()))
    (tmp_path / "r.jsonl").write_bytes(one + one[:-20])
    assert main(["inspect", str(tmp_path / "r.jsonl"), "--wire-api", "messages"]) == 1
    captured = capsys.readouterr()
    assert "r.jsonl#1: completed" in captured.out
    assert "line 5" in captured.err
    with pytest.raises(ValueError, match="line 5"):
        load_all(tmp_path / "r.jsonl")


def test_bench_reads_recordings_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.jsonl").write_bytes(dump(from_body(TOOL.read_bytes())))
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


# --- words and numbers ---


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--chunk", "0"], "1 or more"),
        (["serve", "--pace", "-1"], "0 or more"),
        (["serve", "--pace", "nan"], "0 or more"),
        (["serve", "--fault", "truncate@"], "KIND[@N]"),
        (["serve", "--failing", "0"], "not a number of requests: 1 or more"),
        (["bench", "--rounds", "0"], "1 or more"),
        (["bench", "--chunk", "-1"], "0 or more"),
        (["fuzz", "chat", "--time=-1"], "more than 0"),
        (["fuzz", "chat", "--time=inf"], "more than 0"),
    ],
)
def test_numbers_that_are_none_are_wrong_words(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_hunt_that_tried_nothing_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "chat", "--time", "1e-12"]) == 1
    captured = capsys.readouterr()
    assert "nothing was tried" in captured.err
    assert not captured.out


def test_an_empty_capture_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.sse").touch()
    assert main(["serve", str(tmp_path / "empty.sse")]) == 1
    assert "it is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "claude-opus-5"], "a model is written provider:model"),
        (["--model", "custom:x"], "custom needs --base-url"),
        (["--model", "antropic:x"], "did you mean anthropic"),
        (["--model", "anthropic:x", "--wire-api", "gemini"], "does not offer gemini"),
    ],
)
def test_a_model_that_names_no_target_is_wrong_words(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chat", "hi", *words]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "said"),
    [("", "set OPENAI_API_KEY\n"), ("k", "http://x.invalid:80, and goes nowhere else\n")],
)
def test_what_to_do_about_a_key_is_said_without_words_of_the_library(
    key: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert main(["chat", "hi", "--model", "openai:gpt-5", "--base-url", "http://x.invalid"]) == 1
    assert capsys.readouterr().err.endswith(said)


def test_an_unknown_option_is_told_with_the_usage_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["chat", "hi", "--colour"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: streamlib chat ")


def test_a_recording_is_not_written_to_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chat", "hi", "--record", str(tmp_path)]) == 1
    assert "it is a folder" in capsys.readouterr().err


def test_an_empty_history_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "talk.json").touch()
    assert main(["chat", "hi", "--history", str(tmp_path / "talk.json")]) == 0
    assert len(streamlib.load_history((tmp_path / "talk.json").read_bytes())) == 2
