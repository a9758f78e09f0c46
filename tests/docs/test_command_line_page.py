"""Runs every command in a ```console block of the docs, and compares its output with the page.

`…` in the expected output stands for any text.

`$ streamlib …` runs in this process, in a folder of the page's own, also behind `echo TEXT |`;
`> FILE`, `$ head -c N FILE > FILE`, `$ export NAME=VALUE` and `$ echo $?` work too. A block after
`<!-- file: NAME -->` is written to that file. Lines of ```sh blocks with `streamlib` are read by
its parser, and not run.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from streamlib.cli import main, parse
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
    monkeypatch.delenv("STREAMLIB_MODEL", raising=False)
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    shell = Shell(monkeypatch, capfdbinary)
    count = 0
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            Path(block["file"]).write_text(block["body"], encoding="utf-8")
        if block["kind"] != "console":
            continue
        for command, expected in commands(block["body"]):
            count += 1
            assert_matches(shell.run(command), expected, command)
    assert count


def test_lines_for_a_shell_name_commands_that_exist() -> None:
    lines: list[str] = []
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["kind"] == "sh":
                lines += [line for line in block["body"].splitlines() if "streamlib " in line]
    asked = [line for line in lines if line.startswith("streamlib ")]
    assert len(asked) > 2
    for line in asked:
        assert parse(shlex.split(line.partition(" > ")[0])[1:]).run


def commands(body: str) -> list[tuple[str, str]]:
    """Each command with the output that the page shows."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


class Shell:
    """As much of a shell as the pages use."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capture = capfdbinary
        self._code = 0
        """Exit code of the last command."""

    def run(self, command: str) -> str:
        """The output of a command, errors last."""
        line, _, target = command.partition(" > ")
        piped, _, last = line.rpartition(" | ")
        out, err = self._run(shlex.split(last), self._output_of(piped))
        if target:
            Path(target).write_bytes(out)
            out = b""
        return (out + err).decode()

    def _output_of(self, command: str) -> bytes:
        """What `echo` writes into a pipe."""
        if not command:
            return b""
        program, *arguments = shlex.split(command)
        assert program == "echo"
        return " ".join(arguments).encode() + b"\n"

    def _run(self, words: list[str], piped: bytes) -> tuple[bytes, bytes]:
        program, *arguments = words
        if program == "export":
            name, _, value = arguments[0].partition("=")
            self._monkeypatch.setenv(name, value)
            return b"", b""
        if program == "head":
            return Path(arguments[2]).read_bytes()[: int(arguments[1])], b""
        if program == "echo":
            text = " ".join(arguments).replace("$?", str(self._code))
            return f"{text}\n".encode(), b""
        assert program == "streamlib"
        # A file, which is at standard input as a pipe is.
        Path("piped").write_bytes(piped)
        with Path("piped").open(encoding="utf-8") as source:
            self._monkeypatch.setattr("sys.stdin", source)
            try:
                self._code = main(arguments)
            except SystemExit as usage_error:
                self._code = int(usage_error.code or 0)
        return self._capture.readouterr()


def assert_matches(output: str, expected: str, command: str) -> None:
    output = VOLATILE.sub("~", output.strip())
    expected = VOLATILE.sub("~", expected.strip())
    pattern = "(?s:.*?)".join(re.escape(part) for part in expected.split("…"))
    assert re.fullmatch(pattern, output), f"$ {command}\n{output}"
