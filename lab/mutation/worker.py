"""Runs the tests of one part against its defects, in a copy of the project.

    python -m lab.mutation.worker JOB     # started by `python -m lab.mutation`, in the copy

JOB is a file of JSON: {"tests": [paths], "defects": [[path, number], ...]}, paths below the copy.
Each outcome is one line of JSON on the standard output. What makes it fast:

- The tests are imported and collected once; each defect gets a fork of that process, in which the
  functions of the file have the code with the defect.
- One run without a defect, under coverage, says which test runs which line and what each test
  costs. A defect gets the tests that run its line, the cheapest first, until the first that fails.
  The cost is CPU: beside other programs the time on the clock says little, and would leave out
  tests.
- A defect in code that runs at import (a constant, a default) needs the library imported again: it
  gets a fork that has only other packages loaded, and the tests of what uses the name.

A test that fails for a defect runs once more without it, after the tests that ran before it: one
that fails then too says nothing, whether it is flaky or depends on the others.
"""

from __future__ import annotations

import ast
import faulthandler
import gc
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, TextIO

import anyio  # noqa: F401  # so that every fork has it
import coverage
import httpx  # noqa: F401
import hypothesis
import hypothesis.strategies
import pytest
import trio  # noqa: F401

from lab.mutation.defects import Defect, mutate

HANGS: Final = 15.0
"""Seconds for one test, or twenty times what it takes without a defect if that is more."""
SELECTED_CPU: Final = 10.0
"""Seconds of CPU of the tests for one defect, the cheapest first: some hundred tests. What would
take more is left out, and may survive."""
SECONDS: Final = 150.0
"""Seconds for all of them, and ten times what they take without a defect: the defect may make each
test slower, and so may other programs."""
MEMORY_BYTES: Final = 6 << 30
PACKAGES: Final = ("streamlib", "streamlib_parsers")
HOME: Final = Path.cwd()
RUNNING: Final = HOME / "running"
"""Which test runs, and at the end which ran last."""

NOTICED, SURVIVED, HUNG = 1, 0, 3
"""Exit codes of a fork."""


@dataclass
class Baseline:
    """The run without a defect. Tests are indexes into the collected ones."""

    lines: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    """File -> line -> the tests that run it."""
    imported: dict[str, list[int]] = field(default_factory=dict)
    """File -> the lines that ran when it was imported."""
    seconds: list[float] = field(default_factory=list)
    """Of each test, on the clock."""
    cpu: list[float] = field(default_factory=list)
    """Seconds of each test, those of its processes included."""
    failed: list[int] = field(default_factory=list)


def forked(work: Callable[[], int], seconds: float) -> int:
    """Runs something in a fork; returns its exit code, `HUNG` after too long or a crash."""
    child = os.fork()
    if child == 0:
        code = HUNG
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            code = work()
        finally:
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
                sys.stderr.flush()
            os._exit(code)
    ends = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    # Processes that its tests started and did not end.
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not os.WIFEXITED(status):
        return HUNG
    code = os.WEXITSTATUS(status)
    return code if code in {SURVIVED, NOTICED} else HUNG


def cpu_seconds() -> float:
    """What this process and its ended children have used."""
    return sum(os.times()[:4])


class Quick:
    """Shortens runs that fail."""

    def pytest_configure(self) -> None:
        """No time goes into making a failing example smaller."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        default = hypothesis.settings.get_profile("default")
        hypothesis.settings.register_profile("mutation", default, phases=phases)
        hypothesis.settings.load_profile("mutation")


class Conductor(Quick):
    """Takes the place of pytest's loop over the tests."""

    def __init__(self, defects: list[tuple[str, int]], report: TextIO) -> None:
        self._defects = defects
        self._report = report
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source_pkgs=[*PACKAGES]
        )
        # The parts of the parsers never import the other package, and warnings are errors here.
        self._coverage.set_option("run:disable_warnings", ["module-not-imported"])
        self._coverage.start()
        self._failed = False
        self._items: list[pytest.Item] = []
        self._functions: dict[str, list[FunctionType]] = {}
        self._flaky: set[int] = set()
        self.later: list[tuple[str, int, list[str], float]] = []
        """Defects at import, with the tests to run and the seconds that they may take."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a failure."""
        self._failed = self._failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measures, then tries each defect."""
        self._items = session.items
        for hidden in _hidden_by_collection():
            self._functions.setdefault(hidden.__code__.co_filename, []).append(hidden)
        gc.freeze()
        baseline = self._measured()
        traced: set[int] = set()
        for by_line in baseline.lines.values():
            traced.update(*by_line.values())
        self._say(
            {
                "tests": len(self._items),
                "that run a line": len(traced),
                "seconds": round(sum(baseline.cpu), 1),
                "failed": [self._items[number].nodeid for number in baseline.failed],
            }
        )
        self._flaky.update(baseline.failed)
        for path, number in self._defects:
            self._try(path, number, baseline)
        return True

    def _measured(self) -> Baseline:
        file = HOME / "baseline.json"
        code = forked(lambda: self._measure(file), 3_600)
        self._coverage.stop()
        if code:
            raise SystemExit("the run without a defect did not end")
        known = json.loads(file.read_text(encoding="utf-8"))
        lines = {
            path: {int(line): tests for line, tests in by_line.items()}
            for path, by_line in known["lines"].items()
        }
        return Baseline(lines, known["imported"], known["seconds"], known["cpu"], known["failed"])

    def _measure(self, file: Path) -> int:
        baseline = Baseline()
        for number in range(len(self._items)):
            if sys.gettrace() is None:
                # A test has ended all tracing.
                self._coverage.stop()
                self._coverage.start()
            self._coverage.switch_context(str(number))
            began, began_cpu = time.monotonic(), cpu_seconds()
            if not self._passes([number]):
                baseline.failed.append(number)
            baseline.seconds.append(time.monotonic() - began)
            baseline.cpu.append(cpu_seconds() - began_cpu)
        self._coverage.stop()
        data = self._coverage.get_data()
        for path in data.measured_files():
            relative = str(Path(path).relative_to(HOME))
            by_line = baseline.lines.setdefault(relative, {})
            for line, tests in data.contexts_by_lineno(path).items():
                by_line[line] = sorted(int(test) for test in tests if test)
                if "" in tests:
                    baseline.imported.setdefault(relative, []).append(line)
        file.write_text(json.dumps(baseline.__dict__), encoding="utf-8")
        return 0

    def _passes(self, numbers: list[int], *, seconds: list[float] | None = None) -> bool:
        """Runs tests until the first that fails."""
        items = [self._items[number] for number in numbers]
        self._failed = False
        for item, following, number in zip(items, [*items[1:], None], numbers, strict=True):
            RUNNING.write_text(str(number), encoding="utf-8")
            if seconds is not None:
                limit = max(HANGS, 20 * seconds[number])
                faulthandler.dump_traceback_later(limit, exit=True)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            faulthandler.cancel_dump_traceback_later()
            if self._failed:
                return False
        return True

    def _try(self, path: str, number: int, baseline: Baseline) -> None:
        source = (HOME / path).read_text(encoding="utf-8")
        defect = mutate(source, number)
        selected = self._selected(path, defect, baseline)
        loaded = any(
            getattr(module, "__file__", None) == str(HOME / path)
            for module in [*sys.modules.values()]
        )
        imported = {*baseline.imported.get(path, ())}.intersection(defect.lines)
        if loaded and (defect.name or imported or not can_be_swapped(source, defect)):
            nodeids = [self._items[test].nodeid for test in selected]
            self.later.append((path, number, nodeids, _limit(selected, baseline)))
            return
        outcome, by = "survived", ""
        while selected:
            code, last = self._outcome(path, source, defect, selected, baseline)
            if code == SURVIVED:
                break
            if self._hold(selected[: selected.index(last) + 1]):
                outcome = "hung" if code == HUNG else "noticed"
                by = self._items[last].nodeid
                break
            selected.remove(last)
            self._flaky.add(last)
        self._say({"path": path, "number": number, "outcome": outcome, "by": by})

    def _hold(self, tests: list[int]) -> bool:
        """Whether tests pass without a defect, one after the other."""
        return forked(lambda: 0 if self._passes(tests) else NOTICED, SECONDS) == 0

    def _outcome(
        self, path: str, source: str, defect: Defect, selected: list[int], baseline: Baseline
    ) -> tuple[int, int]:
        """The exit code, and the test that ran last."""

        def work() -> int:
            sys.dont_write_bytecode = True
            self._swap(str(HOME / path), source, defect)
            return 0 if self._passes(selected, seconds=baseline.seconds) else NOTICED

        with planted(HOME / path, defect):
            code = forked(work, _limit(selected, baseline))
        return code, int(RUNNING.read_text(encoding="utf-8"))

    def _swap(self, path: str, source: str, defect: Defect) -> None:
        """Gives the functions of a file the code with the defect."""
        old = _codes(compile(ast.parse(source), path, "exec", dont_inherit=True))
        new = _codes(compile(defect.tree, path, "exec", dont_inherit=True))
        for function in self._functions.get(path, ()):
            key = (function.__code__.co_qualname, function.__code__.co_firstlineno)
            if key in new and new[key] != old.get(key):
                function.__code__ = new[key]

    def _selected(self, path: str, defect: Defect, baseline: Baseline) -> list[int]:
        """The tests for a defect, the cheapest first.

        Of one at import the tests of what uses the name come first, then all others of the file.
        """
        of_file = baseline.lines.get(path, {})
        if defect.name:
            groups = [{*_using(defect.name, path, baseline)}, set().union(*of_file.values())]
            if not any(groups):
                # Used at import alone: any test that imports it may notice.
                groups = [{*range(len(self._items))}]
        else:
            groups = [set().union(*(of_file.get(line, ()) for line in defect.lines))]
        selected: dict[int, None] = {}
        total = 0.0
        for tests in groups:
            for test in sorted(tests - self._flaky, key=lambda test: baseline.cpu[test]):
                if test in selected:
                    continue
                total += baseline.cpu[test]
                if total > SELECTED_CPU and selected:
                    break
                selected[test] = None
        return list(selected)

    def _say(self, line: dict[str, object]) -> None:
        self._report.write(json.dumps(line) + "\n")
        self._report.flush()


def _limit(selected: list[int], baseline: Baseline) -> float:
    """The seconds that the tests for a defect may take."""
    return SECONDS + 10 * sum(baseline.seconds[test] for test in selected)


def _hidden_by_collection() -> Iterator[FunctionType]:
    """Every function of the library; the tests' own `conftest.py` has frozen what it collected."""
    gc.unfreeze()
    for found in gc.get_objects():
        if type(found) is not FunctionType:
            continue
        # Written by a program, as those of data classes are: none of a module.
        if (found.__module__ or "").partition(".")[0] in PACKAGES:
            yield found


def can_be_swapped(source: str, defect: Defect) -> bool:
    """Whether Python gives each function its new code.

    It refuses where another number of variables around it is used: without its `super()` a method
    has no `__class__`.
    """
    old = _codes(compile(ast.parse(source), "", "exec", dont_inherit=True))
    new = _codes(compile(defect.tree, "", "exec", dont_inherit=True))
    for key, code in new.items():
        if key in old and len(code.co_freevars) != len(old[key].co_freevars):
            return False
    return True


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Name and first line -> the code of each function in a file."""
    found: dict[tuple[str, int], CodeType] = {}
    todo = [code]
    while todo:
        for inner in todo.pop().co_consts:
            if isinstance(inner, CodeType):
                found[inner.co_qualname, inner.co_firstlineno] = inner
                todo.append(inner)
    return found


def _using(name: str, path: str, baseline: Baseline) -> Iterable[int]:
    """The tests that run a line with a name that a file defines at import."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    for file, by_line in baseline.lines.items():
        text = (HOME / file).read_text(encoding="utf-8")
        module = Path(path).stem if Path(path).stem != "__init__" else Path(path).parent.name
        if file != path and module not in text:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if word.search(line):
                yield from by_line.get(number, ())


@contextmanager
def planted(path: Path, defect: Defect) -> Iterator[None]:
    """The defect in the file, for processes that import it."""
    kept = path.with_suffix(".kept")
    shutil.copy2(path, kept)
    path.write_text(ast.unparse(defect.tree), encoding="utf-8")
    # Another time than before, or the bytecode without the defect would be used.
    os.utime(path, (0, time.time_ns() % 1_000_000))
    try:
        yield
    finally:
        shutil.move(kept, path)


class Failures(Quick):
    """Notes the first test that fails."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a failure."""
        if report.failed:
            RUNNING.write_text(report.nodeid, encoding="utf-8")


QUIET: Final = [
    "-q",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    f"--basetemp={HOME / 'basetemp'}",
    f"--rootdir={HOME}",
]


def imported_again(nodeids: list[str]) -> int:
    """Runs tests with the library imported anew; in a fork."""
    sys.dont_write_bytecode = True
    limits = ["-o", f"faulthandler_timeout={HANGS}", "-o", "faulthandler_exit_on_timeout=true"]
    code = pytest.main([*QUIET, "-x", *limits, *nodeids], plugins=[Failures()])
    # Also if the library cannot be imported at all.
    return SURVIVED if code in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else NOTICED


def at_import(
    path: str, number: int, nodeids: list[str], seconds: float, flaky: set[str]
) -> tuple[str, str]:
    """The outcome of a defect in code that runs at import, and the test that failed."""
    file = HOME / path
    defect = mutate(file.read_text(encoding="utf-8"), number)
    while True:
        nodeids = [nodeid for nodeid in nodeids if nodeid not in flaky]
        if not nodeids:
            return "survived", ""
        RUNNING.unlink(missing_ok=True)
        with planted(file, defect):
            code = forked(partial(imported_again, nodeids), seconds)
        if code == SURVIVED:
            return "survived", ""
        by = RUNNING.read_text(encoding="utf-8") if RUNNING.exists() else ""
        before = nodeids[: nodeids.index(by) + 1] if by in nodeids else [by]
        if not by or forked(partial(imported_again, before), seconds) == SURVIVED:
            return ("hung" if code == HUNG else "noticed"), by
        flaky.add(by)


def main(file: str) -> None:
    """Reads the job, tries its defects, writes each outcome."""
    job = json.loads(Path(file).read_text(encoding="utf-8"))
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(
        os.environ.get("MUTATION_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    )
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    later = HOME / "later.json"

    def collected() -> int:
        conductor = Conductor([(path, number) for path, number in job["defects"]], report)
        pytest.main([*QUIET, *job["tests"]], plugins=[conductor])
        later.write_text(json.dumps(conductor.later), encoding="utf-8")
        return 0

    forked(collected, 24 * 3_600)
    flaky: set[str] = set()
    for path, number, nodeids, seconds in json.loads(later.read_text(encoding="utf-8")):
        outcome, by = at_import(path, number, nodeids, seconds, flaky)
        line = {"path": path, "number": number, "outcome": outcome, "by": by}
        report.write(json.dumps(line) + "\n")
        report.flush()


if __name__ == "__main__":
    main(sys.argv[1])
