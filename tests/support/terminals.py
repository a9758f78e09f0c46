"""A program under a real pseudo terminal, as a person has it: keys go in, what was drawn comes out."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.shared import ROOT

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SECONDS = 20.0
OWN_THE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""So that Ctrl-C becomes a signal, and one that counts: what a shell starts in the background ignores it, and so do its children."""


class Terminal:
    """A program under a pseudo terminal, and what it has written."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.written = ""
        self.frames = 0
        self._master = master
        self.process = process

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C, once the program waits for it: a signal between its prompt and its read is not noticed before the next key."""
        time.sleep(0.2)
        self.type("\x03")

    @property
    def text(self) -> str:
        """Without colours and movements."""
        return ANSI.sub("", self.written).replace("\r", "")

    def wait_for(self, words: str, after: int = 0) -> int:
        """Reads until the words are there, after a place; where they end."""
        until = time.monotonic() + SECONDS
        while (at := self.text.find(words, after)) < 0:
            assert time.monotonic() < until, f"no {words!r} in {self.text[-500:]!r}"
            self._read(0.1)
        return at + len(words)

    def wait_for_end(self) -> int:
        until = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            self._read(0.05)
        return self.process.wait(1)

    def _read(self, seconds: float) -> None:
        if select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the other side is closed
                return
            self.frames += 1
            self.written += data.decode("utf-8", "replace")


@contextmanager
def terminal(*command: str, columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers"), os.environ.get("PYTHONPATH", "")])
    surroundings = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": paths, "PYTHONUTF8": "1"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        surroundings.pop(name, None)
    owning = (sys.executable, "-c", OWN_THE_TERMINAL, *command)
    process = subprocess.Popen(
        owning, stdin=slave, stdout=slave, stderr=slave, env=surroundings, start_new_session=True
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
