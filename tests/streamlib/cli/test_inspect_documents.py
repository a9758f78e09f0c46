"""`streamlib inspect --json --full`, `--diff`, `--redact`, and directories."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamlib.cli import main
from streamlib.inspection import compare, inspect, load
from streamlib.recording import Chunk, RecordedRequest, Recording, append, save
from streamlib.request.report import Change
from tests.support.shared import ROOT

TOOL_CALL = ROOT / "tests" / "recordings" / "messages" / "aimock-tool.sse"
BODY = TOOL_CALL.read_bytes()

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "130")
    save(recording_of(BODY), "whole.jsonl")
    save(recording_of(BODY[:760], "ReadError"), "truncated.jsonl")


def recording_of(body: bytes, end: str | None = None) -> Recording:
    chunks = (Chunk(0.25, body[:500]), Chunk(1.5, body[500:]))
    return Recording(200, {}, chunks, end, url="http://x/v1/messages", wire_api="messages")


def lines_of(output: Output) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.readouterr().out.splitlines()]


def test_full_prints_the_document_of_each_response(capsys: Output) -> None:
    assert main(["inspect", "truncated.jsonl", "whole.jsonl", "--json", "--full"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert load(first) == inspect(recording_of(BODY[:760], "ReadError"), name="truncated.jsonl")
    assert load(second).outcome.level == "warning"
    assert [finding.code for finding in load(second).findings] == ["complete", "no_bytes"]


def test_document_keeps_that_a_body_is_too_long(capsys: Output) -> None:
    Path("curl.txt").write_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n" + BODY)
    assert main(["inspect", "curl.txt", "--json", "--full"]) == 0
    document = capsys.readouterr().out
    Path("document.json").write_text(document, encoding="utf-8")
    assert main(["inspect", "document.json"]) == 0
    assert "more than its content-length says\n" in capsys.readouterr().out


def test_full_tries_the_split_that_was_asked_for(capsys: Output) -> None:
    assert main(["inspect", "whole.jsonl", "--json", "--full", "--chunk", "11"]) == 0
    splits = load(capsys.readouterr().out).splits
    assert {"split": 11, "same": True} in [
        {"split": result.split, "same": result.same} for result in splits.results
    ]


def test_inspect_shows_what_a_gateway_changed(capsys: Output) -> None:
    changes = [Change("dropped", f"/extra/{number}\x1b[2J", "no place") for number in range(12)]
    request = RecordedRequest({}, b"{}", tuple(changes))
    save(msgspec.structs.replace(recording_of(BODY), request=request), "changed.jsonl")
    assert main(["inspect", "changed.jsonl"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "request: " in line]
    assert lines[0] == "  request: dropped /extra/0\\x1b[2J: no place"
    assert (len(lines), lines[-1]) == (11, "  request: 2 further changes")


def test_json_without_full_keeps_its_keys(capsys: Output) -> None:
    assert main(["inspect", "whole.jsonl", "--json"]) == 0
    (fields,) = lines_of(capsys)
    names = (
        "file response_id model text reasoning refusal tool_calls server_tools stop_reason usage "
        "terminal error_kind error events passthrough notices findings"
    )
    assert list(fields) == names.split()


def test_redact_leaves_out_the_texts(capsys: Output) -> None:
    assert main(["inspect", "whole.jsonl", "--json", "--full", "--redact"]) == 0
    text = capsys.readouterr().out
    assert load(text).redacted
    for said in ("Paris", "get_weather", "whole.jsonl", "http", "msg_"):
        assert said not in text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--full"], "--full needs --json"),
        (["--redact"], "--redact needs --html, --json --full"),
        (["--json", "--redact"], "--redact needs --html, --json --full"),
        (["--diff"], "compares two responses, and these files hold 1"),
        (["--diff", "whole.jsonl", "whole.jsonl"], "these files hold more"),
        (["--diff", "truncated.jsonl", "--json", "--full"], "--full has no effect with --diff"),
        (["--diff", "truncated.jsonl", "--chunk", "3"], "--chunk has no effect with --diff"),
        (["--chunk", "3"], "--chunk needs --json or --html"),
        (["--html", ""], "--html needs the name of a file"),
    ],
)
def test_inspect_refuses_options_that_would_do_nothing(
    options: list[str], reason: str, capsys: Output
) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["inspect", "whole.jsonl", *options])
    assert exit_code.value.code == 2
    assert reason in capsys.readouterr().err


def test_directory_is_read_recording_by_recording(capsys: Output) -> None:
    Path("folder").mkdir()
    for name in ("b.jsonl", "a.jsonl"):
        append(recording_of(BODY), f"folder/{name}")
    append(recording_of(BODY), "folder/a.jsonl")
    Path("folder/notes.txt").write_text("no recording")
    Path("folder/inner").mkdir()
    assert main(["inspect", "folder", "--json"]) == 0
    names = [fields["file"] for fields in lines_of(capsys)]
    assert names == ["folder/a.jsonl#1", "folder/a.jsonl#2", "folder/b.jsonl"]
    assert main(["inspect", "folder/inner", "--json"]) == 1
    reason = "a directory without recordings; name files of other captures one by one"
    assert capsys.readouterr().err == f"folder/inner: {reason}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["whole.jsonl", "truncated.jsonl", "--diff"],
        ["--diff", "whole.jsonl", "truncated.jsonl"],
        ["whole.jsonl", "--diff", "truncated.jsonl"],
    ],
)
def test_diff_shows_the_first_difference_first(words: list[str], capsys: Output) -> None:
    assert main(["inspect", *words]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "different: A whole.jsonl, B truncated.jsonl"
    assert lines[1] == (
        "  first: function_call_arguments_delta 0 (25 characters): delta from character 14 on: "
        """'city":"Paris","days":3}' and 'city":"Paris'"""
    )
    assert "     +0.250    +0.250  created" in lines[4]
    assert "!    +1.500    +1.500  function_call_arguments_delta 0 (25 characters)" in lines
    assert "+         -    +1.500  failed" in lines


def test_diff_of_equal_responses_is_0(capsys: Output) -> None:
    Path("capture.sse").write_bytes(BODY)
    words = ["inspect", "whole.jsonl", "capture.sse", "--diff", "--wire-api", "messages"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "the same: A whole.jsonl, B capture.sse"
    # The number of the frame, where no times are known.
    assert lines[3].split()[:3] == ["+0.250", "#0", "created"]


def test_diff_prints_json_and_redacts_it(capsys: Output) -> None:
    assert main(["inspect", "whole.jsonl", "truncated.jsonl", "--diff", "--json"]) == 1
    (shown,) = lines_of(capsys)
    assert (shown["format"], shown["equal"]) == ("streamlib.difference/1", False)
    assert shown["rows"][shown["first"]["row"]]["a_text"] == '{"city":"Paris","days":3}'
    words = ["inspect", "whole.jsonl", "truncated.jsonl", "--diff", "--json", "--redact"]
    assert main(words) == 1
    text = capsys.readouterr().out
    assert "Paris" not in text
    assert "whole.jsonl" not in text


def test_diff_compares_both_sides_of_an_exchange(capsys: Output) -> None:
    append(recording_of(BODY), "exchange.jsonl")
    append(recording_of(BODY), "exchange.jsonl")
    assert main(["inspect", "exchange.jsonl", "--diff"]) == 0
    first_line = capsys.readouterr().out.splitlines()[0]
    assert first_line == "the same: A exchange.jsonl#1, B exchange.jsonl#2"


def test_diff_reports_a_file_that_cannot_be_read(capsys: Output) -> None:
    assert main(["inspect", "whole.jsonl", "missing.jsonl", "--diff"]) == 1
    assert capsys.readouterr().err == "missing.jsonl: No such file or directory\n"


def test_diff_cannot_write_to_the_terminal(capsys: Output) -> None:
    evil = "\x1b]0;title\x07\u202e"
    body = BODY.replace(b"get_weather", evil.encode())
    save(recording_of(body, evil), "evil.jsonl")
    assert main(["inspect", "whole.jsonl", "evil.jsonl", "--diff"]) == 1
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_full_reads_standard_input(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BODY)))
    assert main(["inspect", "-", "--wire-api", "messages", "--json", "--full"]) == 0
    assert load(capsys.readouterr().out) == inspect(BODY, "messages", name="-")


# --- saved documents ---


def saved(capsys: Output, *options: str, name: str = "truncated.jsonl") -> None:
    """Writes `document.json`."""
    main(["inspect", name, "--json", "--full", *options])
    Path("document.json").write_text(capsys.readouterr().out)


def test_summary_has_the_status_of_each_call(capsys: Output) -> None:
    assert main(["inspect", "truncated.jsonl", "whole.jsonl", "--json"]) == 0
    truncated, whole = lines_of(capsys)
    assert [call["status"] for call in truncated["tool_calls"]] == ["incomplete"]
    assert [call["status"] for call in whole["tool_calls"]] == ["completed"] * 2
    assert main(["inspect", "truncated.jsonl", "--json", "--full"]) == 0
    (document,) = lines_of(capsys)
    assert truncated["findings"] == document["findings"]


def test_inspect_opens_a_document_as_its_recording(capsys: Output) -> None:
    saved(capsys)
    for options in ([], ["--json"], ["--json", "--full"]):
        codes = [main(["inspect", "truncated.jsonl", *options])]
        expected = capsys.readouterr().out
        codes.append(main(["inspect", "document.json", *options]))
        assert capsys.readouterr().out == expected
        assert codes[0] == codes[1]
    assert main(["inspect", "document.json", "--html", "page.html"]) == 0
    assert main(["inspect", "document.json", "truncated.jsonl", "--diff"]) == 0


def test_inspect_opens_a_redacted_document(capsys: Output) -> None:
    saved(capsys, "--redact")
    assert main(["inspect", "document.json"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "document.json: failed (truncated)"
    assert lines[2].startswith("  redacted: texts are shown as their lengths")
    label = "function_call_arguments_delta 0 (14 characters)"
    assert any(line.endswith(f"  {label}") for line in lines)
    assert "  ! item 0 is incomplete" in lines
    assert main(["inspect", "document.json", "--html", "page.html"]) == 0
    capsys.readouterr()
    assert main(["inspect", "document.json", "--json", "--full"]) == 0
    assert capsys.readouterr().out == Path("document.json").read_text()


def test_redacted_document_has_the_keys_of_a_summary(capsys: Output) -> None:
    assert main(["inspect", "truncated.jsonl", "--json"]) == 0
    (summary,) = lines_of(capsys)
    saved(capsys, "--redact")
    assert main(["inspect", "document.json", "--json"]) == 0
    (masked,) = lines_of(capsys)
    assert list(masked) == [*summary, "redacted"]
    assert masked["events"] == summary["events"]
    (call,) = masked["tool_calls"]
    assert call == {"id": None, "name": "*" * 11, "arguments": "*" * 14, "status": "incomplete"}


def test_redacted_document_is_not_compared_or_divided(capsys: Output) -> None:
    saved(capsys, "--redact")
    assert main(["inspect", "document.json", "whole.jsonl", "--diff"]) == 1
    assert "has no texts to compare" in capsys.readouterr().err
    assert main(["inspect", "document.json", "--json", "--full", "--chunk", "3"]) == 1
    assert "the document has no bytes" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["replay"], ["convert", "--to", "chat"]])
def test_documents_are_not_replayed(command: list[str], capsys: Output) -> None:
    saved(capsys)
    assert main([*command, "document.json"]) == 1
    assert "it cannot be replayed or converted" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["frames", "chunks", "events", "format"])
def test_malformed_documents_are_refused(key: str, capsys: Output) -> None:
    saved(capsys)
    document = json.loads(Path("document.json").read_text())
    lacking: dict[str, Any] = {
        "frames": {"kinds": [], "kind": [0], "bytes": [1], "events": [-1]},
        "chunks": {"at": [], "bytes": [1]},
        "events": [{}],
        "format": "streamlib.inspection/9",
    }
    document[key] = lacking[key]
    Path("document.json").write_text(json.dumps(document, indent=1))
    assert main(["inspect", "document.json"]) == 1
    assert "not an inspection" in capsys.readouterr().err


def test_redacted_difference_calls_the_two_a_and_b(capsys: Output) -> None:
    assert main(["inspect", "whole.jsonl", "truncated.jsonl", "--diff", "--redact"]) == 1
    assert capsys.readouterr().out.startswith("different: A, B\n")


def test_truncated_response_has_no_speed() -> None:
    """Its usage is that of its start, so the speed was 0.0."""
    late = msgspec.structs.replace(
        recording_of(BODY[:760]),
        chunks=(*(Chunk(float(at), BODY[at * 95 : at * 95 + 95]) for at in range(8)),),
    )
    facts = inspect(late).facts
    assert facts.usage is not None
    assert facts.first_token is not None
    assert facts.tokens_per_second is None


def test_one_sided_rows_have_their_text() -> None:
    whole, truncated = inspect(recording_of(BODY)), inspect(recording_of(BODY[:400]))
    rows = compare(whole, truncated).rows
    texts = {(row.op, row.type): row.a_text or row.b_text for row in rows}
    assert texts["only_a", "function_call_arguments_delta"] == '{"tz":"Europe/Paris"}'
    assert texts["only_b", "failed"].startswith("the stream ended")
