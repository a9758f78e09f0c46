"""Runs a program under a real pseudo terminal: keys go in, what it draws comes out."""

from __future__ import annotations

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.support.shared import ROOT

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SECONDS = 20.0
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal the controlling one, so that Ctrl-C becomes a signal, and restores the default
handler: a program that a shell started in the background ignores SIGINT, and so do its children."""


class Terminal:
    """A program under a pseudo terminal, and its output.

    Attributes:
        written: Everything that it wrote, with control sequences.
        frames: Number of reads that returned something.
    """

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.written = ""
        self.frames = 0
        self._master = master
        self.process = process

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def interrupt(self) -> None:
        """Types Ctrl-C once the program waits for input.

        A signal between its prompt and its read would go unnoticed until the next key.
        """
        time.sleep(0.2)
        self.type("\x03")

    @property
    def text(self) -> str:
        """The output without colours and cursor movements."""
        return ANSI.sub("", self.written).replace("\r", "")

    def wait_for(self, expected: str, after: int = 0) -> int:
        """Reads until a text was written.

        Args:
            expected: The text.
            after: Index in `text` from which to search.

        Returns:
            The index behind it.
        """
        until = time.monotonic() + SECONDS
        index = self.text.find(expected, after)
        while index < 0:
            assert time.monotonic() < until, f"no {expected!r} in {self.text[-500:]!r}"
            self._read(0.1)
            index = self.text.find(expected, after)
        return index + len(expected)

    def wait_for_end(self) -> int:
        until = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            self._read(0.05)
        return self.process.wait(1)

    def _read(self, seconds: float) -> None:
        if select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the program closed its side
                return
            self.frames += 1
            self.written += data.decode("utf-8", "replace")


@contextmanager
def terminal(*command: str, columns: int = 80, lines: int = 24) -> Generator[Terminal]:
    fcntl = pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
    termios = pytest.importorskip("termios", reason="this system has no pseudo terminals")
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": paths, "PYTHONUTF8": "1"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    arguments = (sys.executable, "-c", TAKE_TERMINAL, *command)
    process = subprocess.Popen(
        arguments, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
