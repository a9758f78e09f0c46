"""The shell blocks of README and of every page, and as much of a shell as they use.

A ```console block is a session: commands behind `$ `, each with its output. A ```sh block is
commands alone. A block that is not run has `<!-- not run: why -->` on the line above; one that
takes a while has `<!-- run slowly -->` there.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from streamlib.cli import main
from tests.support.shared import ROOT

BLOCK: Final = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<mark>not run|run slowly|file):? ?(?P<word>[^\n]*?) ?-->\n *)?"
    r"```(?P<kind>\w+)\n(?P<body>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
SHELLS: Final = frozenset({"sh", "bash", "shell", "console"})
VOLATILE: Final = re.compile(
    r"resp_[0-9a-f]{16}|\+\d+\.\d{3}\b|127\.0\.0\.1:\d+|first token [\d,]+ ms|[\d,]+ tokens/s"
)
"""Times, ports and ids: they differ from run to run."""
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "parsers" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
)


class Block(Struct, frozen=True):
    """A code block of a page.

    Attributes:
        page: The page.
        line: Of its first line of code, from 1.
        kind: Its language.
        mark: "not run", "run slowly", "file", or "".
        word: What the mark says: why it is not run, or the file that it is written to.
        body: Its lines.
    """

    page: Path
    line: int
    kind: str
    mark: str
    word: str
    body: str

    @property
    def name(self) -> str:
        """Page and line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Every code block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("body")) + 1
        mark, word = block["mark"] or "", block["word"] or ""
        found.append(Block(page, line, block["kind"], mark, word, block["body"]))
    return found


def shell_blocks() -> list[Block]:
    """Every shell block of every page."""
    found: list[Block] = []
    for page in PAGES:
        found += [block for block in blocks_of(page) if block.kind in SHELLS]
    return found


def commands(block: Block) -> list[tuple[str, str | None]]:
    """Each command with the output that the page shows; None where it shows none."""
    if block.kind == "console":
        parts = re.split(r"^\$ (.*)\n", block.body, flags=re.MULTILINE)[1:]
        return list(zip(parts[::2], parts[1::2], strict=True))
    joined = block.body.replace("\\\n", " ")
    return [(line.strip(), None) for line in joined.splitlines() if line.strip()]


def assert_matches(output: str, expected: str, command: str) -> None:
    """Compares an output with the page, where `…` stands for any text."""
    output = VOLATILE.sub("~", output.strip())
    expected = VOLATILE.sub("~", expected.strip())
    pattern = "(?s:.*?)".join(re.escape(part) for part in expected.split("…"))
    assert re.fullmatch(pattern, output), f"$ {command}\n{output}"


class Shell:
    """As much of a shell as the pages use; `streamlib` runs in this process.

    `streamlib …`, also behind `echo TEXT |`, `> FILE`, `head -c N FILE`, `export NAME=VALUE` and
    `echo $?`.
    """

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
        out, err = self._run(shlex.split(last, comments=True), self._output_of(piped))
        if target:
            # zsh's folders of completions; `~` is the folder of the test.
            path = Path(target.strip('"').replace("${fpath[1]}", "~/functions")).expanduser()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(out)
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
        serves = arguments[:1] in (["gateway"], ["serve"])
        assert not serves, "mark the block: it serves until it is stopped"
        assert program == "streamlib", f"{program}: mark the block, or teach `Shell` to run it"
        # A file, which is at standard input as a pipe is.
        Path("piped").write_bytes(piped)
        with Path("piped").open(encoding="utf-8") as source:
            self._monkeypatch.setattr("sys.stdin", source)
            try:
                self._code = main(arguments)
            except SystemExit as usage_error:
                self._code = int(usage_error.code or 0)
        return self._capture.readouterr()
