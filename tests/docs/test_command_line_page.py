"""Every command in a ```console block of the docs is run, and prints what the page says; `…` stands for what differs.

`$ streamlib …` runs in this process, in a folder of the page's own; `> FILE` and `$ head -c N FILE > FILE` work too. A block after
`<!-- file: NAME -->` is written to that file.
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
"""Times, ports and ids: alike whatever they are."""
PAGES = sorted(
    page for page in ROOT.glob("docs/**/*.md") if "```console" in page.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_its_commands_print(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"21 degrees and sunny\n" * 9)))
    ran = 0
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            Path(block["file"]).write_text(block["body"], encoding="utf-8")
        for command, said in commands(block["body"]) if block["kind"] == "console" else []:
            ran += 1
            assert_like(run(command, capfdbinary), said, command)
    assert ran


def commands(body: str) -> list[tuple[str, str]]:
    """Each command with what the page says it prints."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def run(command: str, capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    """What a command prints, errors last."""
    words, _, target = command.partition(" > ")
    program, *rest = shlex.split(words)
    if program == "head":
        out, err = Path(rest[2]).read_bytes()[: int(rest[1])], b""
    else:
        assert program == "streamlib"
        main(rest)
        out, err = capfdbinary.readouterr()
    if target:
        Path(target).write_bytes(out)
        out = b""
    return (out + err).decode()


def assert_like(printed: str, said: str, command: str) -> None:
    wanted, printed = VOLATILE.sub("~", said.strip()), VOLATILE.sub("~", printed.strip())
    pattern = "(?s:.*?)".join(re.escape(part) for part in wanted.split("…"))
    assert re.fullmatch(pattern, printed), f"$ {command}\n{printed}"
