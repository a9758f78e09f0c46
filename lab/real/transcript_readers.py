"""Those who read transcripts: LangChain's own code, and the reader of Anthropic's agent SDK.

Got by `python -m lab.real.fetch`: `langchain-core` into an environment of its own, and of
`claude-agent-sdk` its Python files alone, without the 160 MB program that its wheel brings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.shared import ROOT

HERE: Final = Path(__file__).resolve().parent / "transcripts"
HOME: Final = ROOT / ".real" / "transcripts"
LANGCHAIN: Final = HOME / "langchain"
"""The environment with `langchain-core`."""
CLAUDE: Final = HOME / "claude_agent_sdk" / "_internal" / "sessions.py"
PACKAGES: Final = {"langchain": "langchain-core==1.8.2", "claude": "claude-agent-sdk==0.2.187"}
SECONDS: Final = 300.0


def absence(name: str) -> str | None:
    """Why a reader (`langchain`, `claude`) cannot be asked here; None where it can."""
    there = LANGCHAIN / "read" if name == "langchain" else CLAUDE
    return None if there.exists() else f"no {PACKAGES[name]}"


def missing() -> list[str]:
    """What cannot be asked here, with the reason."""
    lost = [why for why in (absence(name) for name in PACKAGES) if why is not None]
    return [f"readers of transcripts ({', '.join(lost)})"] if lost else []


def install() -> list[str]:
    """Gets what is missing; what could not be had, one line each."""
    failed: list[str] = []
    for name, step in (("langchain", _install_langchain), ("claude", _install_claude)):
        if absence(name) is None:
            continue
        try:
            step()
        except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, StopIteration) as error:
            failed.append(f"{PACKAGES[name]}: {type(error).__name__}: {error}")
    return failed


def _install_langchain() -> None:
    venv.create(LANGCHAIN, with_pip=True, clear=True)
    _pip(LANGCHAIN / "bin" / "python", "install", "--only-binary=:all:", PACKAGES["langchain"])
    (LANGCHAIN / "read").touch()  # the installation came to its end


def _install_claude() -> None:
    wheels = HOME / "wheels"
    to_wheels = ("--no-deps", "--only-binary=:all:", "--dest", str(wheels))
    _pip(Path(sys.executable), "download", *to_wheels, PACKAGES["claude"])
    [path] = wheels.glob("claude_agent_sdk-*.whl")
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(HOME, [name for name in wheel.namelist() if name.endswith(".py")])
    path.unlink()


def _pip(python: Path, *command: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20")
    subprocess.run(
        [str(python), "-m", "pip", *command[:1], *options, *command[1:]],
        check=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
    )


class Reader:
    """A reader, running: a JSON value a line in, one out."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, value: Any) -> Any:
        """What it makes of a value."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def running(name: str) -> Iterator[Reader]:
    """A reader (`langchain`, `claude`) while the block runs; it ends with its standard input."""
    command: Sequence[str] = (sys.executable, str(HERE / "claude_code.py"), str(HOME))
    if name == "langchain":
        command = (str(LANGCHAIN / "bin" / "python"), str(HERE / "langchain.py"))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Reader(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
