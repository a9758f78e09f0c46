"""`streamlib inspect --html`: what is written, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streamlib.cli import main
from streamlib.inspection import Difference, load
from streamlib.recording import Recording, append, save
from tests.support.inspections import body_of, paced
from tests.support.page_parts import parts

Output = pytest.CaptureFixture[str]


def recording_of(name: str) -> Recording:
    return paced(body_of(f"messages/{name}.sse"), "messages")


@pytest.fixture(autouse=True)
def in_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    save(recording_of("llama-tool"), "a.jsonl")
    save(recording_of("aimock-tool"), "b.jsonl")


def test_html_writes_a_page_of_every_response(capsys: Output) -> None:
    append(recording_of("llmock-text"), "b.jsonl")
    assert main(["inspect", "a.jsonl", "b.jsonl", "--html", "page.html"]) == 0
    printed = capsys.readouterr()
    data = Path("page.html").read_bytes()
    assert printed.out == ""
    expected = (
        f"page.html: 3 responses, {len(data):,} bytes; "
        "holds what was said, and keys if a server repeated them\n"
    )
    assert printed.err == expected
    page = data.decode()
    [names] = parts(page, "names")
    assert [name.split()[0] for name in msgspec.json.decode(names)] == [
        "a.jsonl",
        "b.jsonl#1",
        "b.jsonl#2",
    ]
    assert parts(page, "body-0") == [body_of("messages/llama-tool.sse")]
    assert load(parts(page, "inspection-2")[0]).outcome.stop_reason == "length"


def test_html_writes_to_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["inspect", "a.jsonl", "--html", "-"]) == 0
    printed = capfdbinary.readouterr()
    assert printed.out.startswith(b"<!doctype html>")
    assert printed.err == b""


def test_html_redacts_what_it_shows(capsys: Output) -> None:
    assert main(["inspect", "a.jsonl", "--html", "page.html", "--redact"]) == 0
    assert "holds lengths in place of texts" in capsys.readouterr().err
    page = Path("page.html").read_text(encoding="utf-8")
    [document] = parts(page, "inspection-0")
    assert load(document).redacted
    assert b"Paris" not in document
    assert b"a.jsonl" not in parts(page, "names")[0]
    assert parts(page, "body-0") == []


def test_html_compares_two_responses(capsys: Output) -> None:
    command = ["inspect", "a.jsonl", "b.jsonl", "--diff", "--html", "page.html"]
    assert main(command) == 1
    assert "2 responses" in capsys.readouterr().err
    page = Path("page.html").read_text(encoding="utf-8")
    difference = msgspec.json.decode(parts(page, "difference")[0], type=Difference)
    assert not difference.equal
    assert load(parts(page, "inspection-1")[0]).splits.results != ()
    assert main([*command, "--redact"]) == 1
    redacted = Path("page.html").read_text(encoding="utf-8")
    assert b"Paris" not in parts(redacted, "difference")[0]


def test_html_reports_a_file_that_cannot_be_written(capsys: Output) -> None:
    assert main(["inspect", "a.jsonl", "--html", "missing/page.html"]) == 1
    assert "missing/page.html: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--html", "a.jsonl", "b.jsonl"], "exists, and is not a page of the inspector"),
        (["a.jsonl", "--html", "a.jsonl"], "is one of the captures"),
        (["a.jsonl", "--html", "./link.jsonl"], "is one of the captures"),
        ([".", "--html", "b.jsonl"], "is one of the captures"),
        (["a.jsonl", "b.jsonl", "--diff", "--html", "b.jsonl"], "is one of the captures"),
        (["a.jsonl", "--html", "other.html"], "exists, and is not a page of the inspector"),
    ],
)
def test_html_replaces_no_file_but_its_own_page(
    words: list[str], reason: str, capsys: Output
) -> None:
    Path("link.jsonl").symlink_to("a.jsonl")
    Path("other.html").write_text("<!doctype html><title>mine</title>", encoding="utf-8")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    with pytest.raises(SystemExit) as exit_code:
        main(["inspect", *words])
    assert exit_code.value.code == 2
    assert reason in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_html_replaces_its_page_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["inspect", "a.jsonl", "--html", "page.html"]
    assert main(command) == 0
    page = Path("page.html")
    page.chmod(0o640)
    first = page.read_bytes()
    assert main(["inspect", "b.jsonl", "--html", "page.html"]) == 0
    assert page.read_bytes() != first
    assert page.stat().st_mode & 0o777 == 0o640
    second = page.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(command) == 1
    assert page.read_bytes() == second
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "b.jsonl", "page.html"]
