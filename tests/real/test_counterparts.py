"""How servers are started and stopped, tried on a server of six lines: none may be left behind,
none may fail silently."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from lab.pythons import PROMISED, find_python
from lab.real.counterparts import AIMOCK_SERVER, HERE, LLAMA, Counterpart, lacking, missing, running
from tests.support.shared import ROOT

ADDRESS = re.compile(r"^LISTEN (\S+)$", re.MULTILINE)
LISTENS = "import os, sys; print('LISTEN', os.getpid(), sep=' ', flush=True); sys.stdin.read()"


def server(code: str) -> Counterpart:
    return Counterpart("stand-in", (sys.executable, "-c", code), ADDRESS)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_runs_while_the_block_does(tmp_path: Path) -> None:
    with running(server(LISTENS), tmp_path / "log") as address:
        assert alive(int(address))
    assert not alive(int(address))


@pytest.mark.parametrize(
    ("code", "seconds", "message"),
    [
        ("print('no port'); raise SystemExit(3)", 30.0, "ended with 3"),
        ("import sys; sys.stdin.read()", 0.2, "does not listen"),
    ],
)
def test_a_server_that_does_not_listen_is_an_error_with_its_log(
    tmp_path: Path, code: str, seconds: float, message: str
) -> None:
    with (
        pytest.raises(RuntimeError, match=message) as raised,
        running(server(code), tmp_path / "log", seconds=seconds),
    ):
        pytest.fail("it did not listen")
    assert ("no port" in str(raised.value)) == ("no port" in code)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_server_ends_with_its_parent_however_that_ended(tmp_path: Path) -> None:
    """Its standard input closes with its parent, even one that was killed."""
    code = (
        "import pathlib, sys, time; from tests.real.test_counterparts import LISTENS, running, "
        "server\n"
        "with running(server(LISTENS), pathlib.Path(sys.argv[1])) as pid: print(pid, flush=True); "
        "time.sleep(60)"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while alive(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(child)


def test_both_servers_end_with_us_and_listen_locally() -> None:
    assert "sys.stdin.read()" in (HERE / "llama_server.py").read_text(encoding="utf-8")
    assert '"127.0.0.1"' in (HERE / "llama_server.py").read_text(encoding="utf-8")
    assert "end_with_stdin.mjs" in " ".join(AIMOCK_SERVER.command)
    assert "--host 127.0.0.1 --port 0" in " ".join(AIMOCK_SERVER.command)


def test_what_is_missing_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lab.real.counterparts.ROOT", tmp_path)
    monkeypatch.setattr("lab.real.counterparts.MODEL", tmp_path / "m.gguf")
    monkeypatch.setattr("lab.real.counterparts.AIMOCK", tmp_path / "cli.js")
    assert [line.split(" (")[0] for line in missing()][:2] == [LLAMA.name, AIMOCK_SERVER.name]
    assert all(line.endswith(")") for line in missing())


def test_everything_that_a_machine_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("lab.real.counterparts.FOLDERS", {tmp_path / "corpus": "recordings"})
    find_python.cache_clear()
    try:
        lines = lacking()
    finally:
        find_python.cache_clear()
    assert [line.split(" (")[0] for line in lines] == [
        "redis-server",
        "openssl",
        str(sysconfig.get_config_var("CC")).split()[0],
        "corpus of the shared data",
        *(f"Python {version}" for version in PROMISED),
    ]


def test_the_checks_end_with_what_the_machine_lacks() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    last_step = script.rindex("\nstep ")
    assert "lab.real.counterparts" in script[last_step:]
