"""Front ends' own code, from npm: what reads UI message streams (`ai` 6 and 7) and AG-UI
(`@ag-ui/client`), and a browser to drive.

Got by `python -m lab.real.fetch`: the packages into `.real/readers`, at the versions of
`readers/package.json`, and Chromium where apt-get may. One Node process reads any number of
streams.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.node_packages import absence_in, install_packages, tried
from tests.support.shared import ROOT

HERE: Final = Path(__file__).resolve().parent / "readers"
HOME: Final = ROOT / ".real" / "readers"
PACKAGES: Final = ("ai", "ai7", "@ag-ui/client", "eventsource-parser", "playwright-core")
APT: Final = ("apt-get", "-o", "Acquire::Retries=1", "-qq")


def absence() -> str | None:
    """Why the readers cannot be asked here; None where they can."""
    return absence_in(HOME, PACKAGES)


def missing() -> list[str]:
    """What cannot be asked here, with the reason."""
    why = absence()
    return [
        *([f"UI readers ({why})"] if why else []),
        *(["browser (there is no chromium)"] if chromium() is None else []),
    ]


def chromium() -> str | None:
    """The browser, where there is one."""
    return (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )


def install() -> list[str]:
    """Gets what is missing; what could not be had, one line each."""
    failed: list[str] = []
    if absence() is not None:
        failed += install_packages("readers", HERE, HOME)
    if chromium() is None and shutil.which("apt-get") and os.geteuid() == 0:
        packages = ("chromium", "fonts-noto-core", "fonts-noto-color-emoji")
        failed += tried("package lists", (*APT, "update"))
        failed += tried("chromium", (*APT, "install", "-y", "--no-install-recommends", *packages))
    return failed


class Readers:
    """The readers, running."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, reader: str, body: bytes, chunk: int = 4096) -> dict[str, Any]:
        """What a reader (`vercel6`, `vercel7`, `agui`, `sse`) makes of a stream given in chunks of
        this size: see `readers/read.mjs`."""
        asked = {"reader": reader, "body": base64.b64encode(body).decode(), "chunk": chunk}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(
            self._process.stdout.readline() or b'{"refused": ["the readers ended"]}'
        )
        return answer


@contextmanager
def running() -> Iterator[Readers]:
    """The readers while the block runs; they end with their standard input."""
    command = ("node", str(HERE / "read.mjs"), str(HOME))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Readers(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
