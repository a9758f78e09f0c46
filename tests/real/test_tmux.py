"""Markdown in tmux, which wraps lines again when its window changes: each line once, none lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import ABSENT
from tests.support.screens import shown
from tests.support.shared import ROOT

pytestmark = [pytest.mark.real]

WRITER = """
import shutil, sys, time
from pathlib import Path
from streamlib.display import MarkdownWriter
folder = Path(sys.argv[1])
text = (folder / "text.md").read_text()
size = shutil.get_terminal_size()
writer = MarkdownWriter(*size)
for start in range(0, len(text), 7):
    if start >= len(text) // 2 and not (folder / "half").exists():
        (folder / "half").touch()
        while not (folder / "go").exists():
            time.sleep(0.02)
    if shutil.get_terminal_size() != size:
        size = shutil.get_terminal_size()
        sys.stdout.write(writer.resize(*size))
    sys.stdout.write(writer.feed(text[start:start + 7]))
    sys.stdout.flush()
sys.stdout.write(writer.close())
sys.stdout.flush()
(folder / "done").touch()
time.sleep(60)
"""
"""Writes a text in fragments; in its middle it waits until the window has another size."""

TEXT = "# Rivers\n\n" + "\n".join(f"- item {number} **of** a list" for number in range(30))
TEXT += "\n\n```\n" + "\n".join(f"code {number}" for number in range(20)) + "\n```\n\n"
TEXT += "\n\n".join(
    " ".join(f"p{paragraph}w{number}" for number in range(60)) for paragraph in range(4)
)


class Window:
    """A window of a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = ["tmux", "-L", f"streamlib-{uuid.uuid4().hex[:12]}", "-f", "/dev/null"]

    def run(self, *arguments: str) -> str:
        command = [*self._server, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def start(self, columns: int, lines: int) -> None:
        (self._folder / "text.md").write_text(TEXT, encoding="utf-8")
        (self._folder / "writer.py").write_text(WRITER, encoding="utf-8")
        paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
        program = f"env -u COLUMNS -u LINES PYTHONPATH={paths} {sys.executable} writer.py ."
        size = ["-x", str(columns), "-y", str(lines)]
        self.run("new-session", "-d", *size, "-c", str(self._folder), program)
        self.run("set-option", "-g", "history-limit", "10000")

    def wait_for(self, name: str) -> None:
        until = time.monotonic() + 30
        while not (self._folder / name).exists():
            assert time.monotonic() < until, self.lines()
            time.sleep(0.05)

    def go_on(self) -> None:
        (self._folder / "go").touch()
        self.wait_for("done")

    def lines(self) -> list[str]:
        """All lines, those that have left the screen first."""
        text = self.run("capture-pane", "-p", "-S", "-10000")
        return [line.rstrip() for line in text.rstrip("\n").split("\n")]


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    if shutil.which("tmux") is None:
        pytest.skip(f"{ABSENT}: tmux, apt install tmux")
    opened = Window(tmp_path)
    yield opened
    opened.run("kill-server")


def test_tmux_shows_what_the_emulator_shows(window: Window) -> None:
    window.start(60, 14)
    window.wait_for("half")
    window.go_on()
    expected = "\n".join(shown([TEXT], 60, 14).lines).rstrip()
    assert "\n".join(window.lines()).rstrip() == expected


@pytest.mark.parametrize("size", [(90, 14), (60, 30), (40, 14), (60, 8)])
def test_tmux_shows_each_line_once_after_a_resize(window: Window, size: tuple[int, int]) -> None:
    window.start(60, 14)
    window.wait_for("half")
    window.run("resize-window", "-x", str(size[0]), "-y", str(size[1]))
    time.sleep(0.3)
    window.go_on()
    lines = window.lines()
    drawn = "\n".join(lines)
    for number in range(30):
        assert drawn.count(f"item {number} of a list") == 1
    for number in range(20):
        assert lines.count(f"code {number}") == 1
    words = [word for word in drawn.split() if word.startswith("p")]
    assert words == [f"p{paragraph}w{number}" for paragraph in range(4) for number in range(60)]
