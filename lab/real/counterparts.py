"""Real servers to talk to, none of them ours: where they are kept, whether they are there, how they
are run.

    python -m lab.real.fetch           # once: gets them, into `.real/` and the environment
    python -m pytest -m real           # then
    python -m lab.real.counterparts    # all that this machine lacks, one a line

The last also names programs, Pythons and recordings without which other tests are skipped, so that
no run seems complete that was not.

llama    a real model, SmolLM2-135M, in llama.cpp's own server: Messages, Chat and Responses
aimock   a scripted provider on Node: six wires, Bedrock's binary frames among them

What front ends read with, and a browser, are in `ui_readers.py`; what reads logs over HTTP, in
`stream_readers.py`. What is only timed is in `benchmarks/node_readers.py`.

Both listen on 127.0.0.1, at a port the system chooses, and end when their standard input ends: they
cannot outlive whoever started them, however that came to its end.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import node_readers
from lab.pythons import missing_pythons
from lab.real import stream_readers, transcript_readers, ui_readers
from tests.support.shared import CORPUS, ROOT, SHARED

HERE: Final = Path(__file__).resolve().parent
HOME: Final = ROOT / ".real"
MODEL: Final = HOME / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
AIMOCK: Final = HOME / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"

MCP: Final = "mcp"
"""The MCP SDK, whose server `mcp_server.py` a test starts itself."""

PROMETHEUS: Final = "prometheus"
"""Reads the metrics of a gateway; a test starts it itself."""

KERNEL: Final = "ipykernel"
"""A notebook's kernel, which a test starts itself."""

PROGRAMS: Final = {
    "redis-server": "durable logs and shared limits in Redis",
    "openssl": "certificates: TLS, HTTP/2",
}
"""Program -> what is not tested without it."""

FOLDERS: Final = {
    SHARED: "test vectors and facts",
    CORPUS: "recordings",
}
"""Folder of test data -> what is not tested without it."""

READY_SECONDS: Final = 120.0
"""How long a server may take until it listens: the model takes one or two seconds on an idle
machine."""
STOP_SECONDS: Final = 10.0


class Counterpart(NamedTuple):
    """One server. address: what it prints when it is ready."""

    name: str
    command: tuple[str, ...]
    address: re.Pattern[str]


LLAMA: Final = Counterpart(
    "llama",
    (sys.executable, str(HERE / "llama_server.py"), str(MODEL), str(HERE / "chat_template.jinja")),
    re.compile(r"^LISTEN (http://127\.0\.0\.1:\d+)$", re.MULTILINE),
)
AIMOCK_SERVER: Final = Counterpart(
    "aimock",
    (
        "node",
        "--import",
        (HERE / "end_with_stdin.mjs").as_uri(),
        str(AIMOCK),
        *(
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--fixtures",
            str(HERE / "aimock.json"),
            "--chunk-size",
            "7",
            "--validate-on-load",
        ),
    ),
    re.compile(r"listening on (http://127\.0\.0\.1:\d+)$", re.MULTILINE),
)


COUNTERPARTS: Final = (LLAMA.name, AIMOCK_SERVER.name, MCP, KERNEL, PROMETHEUS)


def absence(name: str) -> str | None:
    """Why a counterpart cannot be run here; None where it can."""
    if name == KERNEL:
        return _kernel()
    if name == PROMETHEUS:
        return None if shutil.which(name) else "there is no prometheus"
    if name == MCP:
        return None if importlib.util.find_spec("mcp") else "mcp is not installed"
    return _llama() if name == LLAMA.name else _aimock()


def missing() -> list[str]:
    """Every counterpart that cannot be run here, with the reason."""
    named = ((name, absence(name)) for name in COUNTERPARTS)
    return [
        *(f"{name} ({why})" for name, why in named if why is not None),
        *ui_readers.missing(),
        *stream_readers.missing(),
        *transcript_readers.missing(),
        *node_readers.missing(),
    ]


def lacking() -> list[str]:
    """Everything else that tests need and this machine lacks, with what is not tested then."""
    lines: list[str] = []
    compiler = str(sysconfig.get_config_var("CC") or "cl").split()[0]
    for program, tested in {**PROGRAMS, compiler: "the compiled build"}.items():
        if shutil.which(program) is None:
            lines.append(f"{program} ({tested})")
    for folder, tested in FOLDERS.items():
        if not folder.is_dir():
            lines.append(f"{folder.name} of the shared data ({tested})")
    for version in missing_pythons():
        lines.append(f"Python {version} (all tests with that version)")
    return lines


def _kernel() -> str | None:
    for module in ("ipykernel", "jupyter_client"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    return None


def _llama() -> str | None:
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed"
    return None if MODEL.exists() else f"no {MODEL.relative_to(ROOT)}"


def _aimock() -> str | None:
    if shutil.which("node") is None:
        return "there is no node"
    return None if AIMOCK.exists() else f"no {AIMOCK.relative_to(ROOT)}"


@contextmanager
def running(server: Counterpart, log: Path, seconds: float = READY_SECONDS) -> Iterator[str]:
    """The address of a server that runs while the block does. What it prints goes to `log`;
    RuntimeError where it never listens."""
    with log.open("wb") as out, _started(server.command, out) as process:
        yield _address(server, process, log, seconds)


@contextmanager
def _started(command: Sequence[str], out: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(
    server: Counterpart, process: subprocess.Popen[bytes], log: Path, seconds: float
) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = server.address.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found.group(1)
        if process.poll() is not None:
            break
        time.sleep(0.02)
    state = "does not listen" if process.poll() is None else f"ended with {process.returncode}"
    raise RuntimeError(
        f"{server.name} {state}:\n{log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
    )


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in missing() + lacking()))
