"""Runs every command in a ```console block of the docs, and compares its output with the page.

`…` in the expected output stands for any text.

`$ streamlib …` runs in this process, in a folder of the page's own; `> FILE` and
`$ head -c N FILE > FILE` work too. A block after `<!-- file: NAME -->` is written to that file.
"""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from streamlib.cli import main
from tests.support.shared import ROOT

BLOCK = re.compile(
    r"^(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
VOLATILE = re.compile(
    r"resp_[0-9a-f]{16}|\+\d+\.\d{3}\b|127\.0\.0\.1:\d+|first token [\d,]+ ms|[\d,]+ tokens/s"
)
"""Times, ports and ids: they differ from run to run."""
PAGES = sorted(
    page for page in ROOT.glob("docs/**/*.md") if "```console" in page.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shows_the_output_of_its_commands(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"21 degrees and sunny\n" * 9)))
    count = 0
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            Path(block["file"]).write_text(block["body"], encoding="utf-8")
        if block["kind"] != "console":
            continue
        for command, expected in commands(block["body"]):
            count += 1
            assert_matches(run(command, capfdbinary), expected, command)
    assert count


def commands(body: str) -> list[tuple[str, str]]:
    """Each command with the output that the page shows."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def run(command: str, capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    """The output of a command, errors last."""
    line, _, target = command.partition(" > ")
    program, *arguments = shlex.split(line)
    if program == "head":
        out, err = Path(arguments[2]).read_bytes()[: int(arguments[1])], b""
    else:
        assert program == "streamlib"
        main(arguments)
        out, err = capfdbinary.readouterr()
    if target:
        Path(target).write_bytes(out)
        out = b""
    return (out + err).decode()


def assert_matches(output: str, expected: str, command: str) -> None:
    output = VOLATILE.sub("~", output.strip())
    expected = VOLATILE.sub("~", expected.strip())
    pattern = "(?s:.*?)".join(re.escape(part) for part in expected.split("…"))
    assert re.fullmatch(pattern, output), f"$ {command}\n{output}"
