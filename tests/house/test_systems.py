"""What only some systems have: nothing is imported or named where it would fail, and what needs it
says so. Nobody has run Windows or macOS; here what they lack is taken away."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import lab.durable.crashes
import lab.durable.side_by_side
import lab.gateway_chaos.__main__
import lab.mutation.__main__
import lab.proof.__main__
from benchmarks import gateway_load, socket_run
from lab import systems
from lab.sync import interrupts
from streamlib.cli import gateway_server
from streamlib.cli.gateway_checks import check_workers
from streamlib.client.sync import loop_thread
from streamlib.testing.bench.records import load_of_machine
from tests.support.shared import ROOT

SOURCES: Final = (
    "streamlib",
    "streamlib_pytest",
    "parsers",
    "lab",
    "benchmarks",
    "examples",
    "tests",
)

MODULES: Final = frozenset({"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"})
"""Modules that Windows lacks."""

NAMES: Final = {
    "os": "fork forkpty getegid geteuid getgid getloadavg getpgid getuid killpg nice openpty"
    " sched_getaffinity setpgid setsid sysconf uname wait waitstatus_to_exitcode",
    "signal": "SIGALRM SIGHUP SIGKILL SIGUSR1 SIGUSR2 alarm pthread_kill setitimer ITIMER_REAL",
    "socket": "AF_UNIX",
    "select": "poll epoll kqueue",
}
"""Names that Windows lacks, macOS too where they are of Linux."""

LACKING: Final = {f"{module}.{name}" for module, names in NAMES.items() for name in names.split()}

SAYS: Final = {
    "benchmarks/gateway_load.py": "`need`",
    "benchmarks/socket_run.py": "`need`",
    "lab/durable/side_by_side.py": "`need`",
    "lab/gateway_chaos/__main__.py": "`need`",
    "lab/mutation/worker.py": "`need` in lab/mutation/__main__.py, which alone starts it",
    "lab/real/fetch.py": "behind `which`: only where there is apt-get",
    "lab/real/ui_readers.py": "behind `which`: only where there is apt-get",
    "lab/sync/interrupts.py": "`need`",
    "streamlib/cli/gateway_server.py": "goes on without: no SIGHUP, no limit of open files",
    "streamlib/cli/gateway_workers.py": "a ValueError of --workers, in gateway_checks.py",
    "streamlib/testing/bench/records.py": "says that the load is unknown",
    "streamlib/transport/httpcore_http2.py": "writes without asking first",
    "tests/real/test_counterparts.py": "skipped",
    "tests/streamlib/gateway/test_killed.py": "skipped",
    "tests/streamlib/gateway/test_signals.py": "skipped",
    "tests/streamlib/tools/test_sync_run.py": "skipped",
    "tests/support/redis_servers.py": "skipped: there is no server",
    "tests/support/terminals.py": "skipped",
}
"""Each file that names what a system may lack, and what it does there."""


def named_in(tree: ast.AST) -> set[str]:
    """What a system may lack, as far as a tree names it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.add(node.module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {f"{node.value.id}.{node.attr}"} & LACKING
    return found


def at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when a module is imported: all but the bodies of functions."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            waiting += ast.iter_child_nodes(node)


@cache
def suspects() -> list[tuple[str, ast.Module]]:
    """Files whose text has one of the names."""
    imports = rf"^ *(?:import|from) .*\b(?:{'|'.join(MODULES)})\b"
    names = "|".join(re.escape(name) for name in LACKING)
    words = re.compile(rf"{imports}|\b(?:{names})\b", re.MULTILINE)
    found: list[tuple[str, ast.Module]] = []
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if words.search(text):
                found.append((path.relative_to(ROOT).as_posix(), ast.parse(text)))
    return found


def test_each_use_of_what_systems_lack_is_listed() -> None:
    used = {name for name, tree in suspects() if named_in(tree)}
    assert used == set(SAYS)


def test_no_module_needs_at_import_what_systems_lack() -> None:
    """`lab/mutation/worker.py` is a program that its parent does not start there."""
    failing: list[str] = []
    for name, tree in suspects():
        for node in at_import(tree):
            shallow = isinstance(node, (ast.Import, ast.ImportFrom, ast.Attribute))
            if shallow and named_in(node) and name != "lab/mutation/worker.py":
                failing.append(f"{name}:{getattr(node, 'lineno', 0)}")
    assert failing == []


# --- what is said where something is missing ---


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without what Windows lacks."""
    for name in LACKING:
        module, _, attribute = name.partition(".")
        monkeypatch.delattr(sys.modules.get(module, ModuleType(module)), attribute, raising=False)
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(systems, "DESCRIPTORS", ("/proc/none/fd",))
    monkeypatch.setattr(systems, "MEMORY", "/proc/none/statm")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr("platform.system", lambda: "Windows")


PROGRAMS: Final[dict[str, tuple[Any, tuple[Any, ...], str]]] = {
    "crashes": (lab.durable.crashes.main, (), "lab.durable.crashes needs signal.SIGKILL"),
    "side by side": (lab.durable.side_by_side.main, ([],), "lab.durable.side_by_side needs"),
    "chaos": (lab.gateway_chaos.__main__.main, (), "lab.gateway_chaos needs os.fork"),
    "mutation": (lab.mutation.__main__.main, (), "lab.mutation needs os.fork, resource"),
    "interrupts": (interrupts.by_time, (1,), "lab.sync interrupts needs signal.setitimer"),
    "load": (gateway_load.main, (), "benchmarks.gateway_load needs os.sysconf"),
    "sockets": (socket_run._allow_sockets, (1,), "a benchmark of many sockets needs resource"),
    "descriptors": (systems.descriptors, (), "a count of open files needs /proc/none/fd"),
    "memory": (systems.resident_bytes, (), "a figure of memory needs /proc/none/statm"),
}


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program_names_what_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["program"])
    main, arguments, says = PROGRAMS[name]
    with pytest.raises(SystemExit) as ended:
        main(*arguments)
    assert str(ended.value).startswith(says)
    assert "Windows does not have: run it on Linux" in str(ended.value)


@pytest.mark.usefixtures("windows")
def test_gateway_refuses_workers_without_a_fork() -> None:
    arguments: Any = type("Arguments", (), {})()
    vars(arguments).update(ask=None, check=None, workers=2, connections=1, memory=1, log=None)
    with pytest.raises(ValueError, match="this system has no fork: start several gateways"):
        check_workers(arguments)


@pytest.mark.usefixtures("windows")
def test_what_goes_on_without_does() -> None:
    assert gateway_server.connection_limit(1000) == 1000
    assert load_of_machine() == "unknown"
    assert "load unknown" in lab.proof.__main__.conditions()


def test_programs_run_where_nothing_is_missing() -> None:
    systems.need("this test", "os.getpid", "json", str(Path(__file__)))
    if Path("/proc/self/fd").exists():
        assert systems.descriptors() > 2
        assert systems.resident_bytes() > 1_000_000


def test_waiting_thread_looks_for_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows no signal wakes it; there it looks by itself."""
    looks: list[float | None] = []
    result: Future[int] = Future()

    def wait(futures: list[Future[int]], timeout: float | None) -> None:
        looks.append(timeout)
        if len(looks) == 2:
            result.set_result(7)

    monkeypatch.setattr(loop_thread, "wait", wait)
    monkeypatch.setattr(loop_thread, "WAKE_SECONDS", 0.01)
    assert loop_thread.result_of(result) == 7
    assert looks == [0.01, 0.01]
