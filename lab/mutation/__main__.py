"""Mutation testing of framings, wires and dialects.

    python -m lab.mutation --quote                # up to 100 mutants a file, an hour or two;
    saved python -m lab.mutation --part chat --each 20  # a seeded sample of one part; lists
    survivors python -m lab.mutation --again --quote        # after new tests: the saved survivors
    again

`--quote` saves the result for docs/PROOF.md. Each mutant is one deliberate defect in a copy of the
package: a comparison changed, `and` for `or`, a constant off by one, a condition negated, a
statement removed. It gets those tests of its part (`coverage_by_part.parts.PARTS`) that run its
line, without the shared recordings, until the first that fails. A mutant that hangs or exhausts the
memory counts as killed. Equivalent mutants are excluded: whether a struct is frozen or known to the
garbage collector, imports for type checkers.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import coverage
import hypothesis.strategies  # noqa: F401  # so that every fork has it
import pytest

from lab.coverage_by_part.parts import PACKAGE, PARTS
from lab.proof.results import QUOTED, present_commit
from tests.support.shared import ROOT

MUTATED: Final = ("framing/**/*.py", "wires/**/*.py", "dialects/**/*.py")
"""Files of the package (globs)."""
HANGS: Final = 20
"""Seconds for one test; the slowest needs three."""
SECONDS: Final = 120.0
"""For all tests of a part; the slowest part needs ten."""
MEMORY_BYTES: Final = 4 << 30
QUIET: Final = (
    "-q",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
QUOTE: Final = QUOTED / "mutation.json"

COMPARED: Final[dict[type, type]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: Final[dict[type, type]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd}


class Mutant(NamedTuple):
    """One deliberate defect. number: its index in `mutable_nodes` of the file."""

    part: str
    path: Path
    number: int


class MutableNode(NamedTuple):
    """A node that can be mutated, and how."""

    node: Any
    name: str

    @property
    def lines(self) -> range:
        """The lines it is on."""
        node = self.node.test if self.name == "condition" else self.node
        return range(node.lineno, node.end_lineno + 1)


def mutable_nodes(tree: ast.Module) -> Iterator[MutableNode]:
    """Every node of a file that can be mutated; type hints, docstrings and imports cannot."""
    for node in _meaningful(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            yield MutableNode(node, "comparison")
        elif isinstance(node, ast.BoolOp):
            yield MutableNode(node, "and/or")
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_type(node):
            yield MutableNode(node, "arithmetic")
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield MutableNode(node, "condition")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            yield MutableNode(node, "constant")
        elif isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield MutableNode(node, "statement")


def _meaningful(tree: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, without keywords of classes (`frozen`, `gc`) and code for type checkers."""
    todo = deque([tree])
    while todo:
        node = todo.popleft()
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            continue
        yield node
        todo.extend(child for child in ast.iter_child_nodes(node) if child not in _unseen(node))


def _unseen(node: ast.AST) -> list[ast.AST | None]:
    """The children without effect: keywords of classes, and annotations, never evaluated."""
    if isinstance(node, ast.ClassDef):
        return [*node.keywords]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.returns]
    return [node.annotation] if isinstance(node, (ast.arg, ast.AnnAssign)) else []


def _is_type(node: ast.BinOp) -> bool:
    """`X | None` outside of annotations, as in tables of types."""
    return any(
        isinstance(inner, ast.Constant) and inner.value is None for inner in (node.left, node.right)
    )


def mutate(source: str, number: int) -> tuple[str, str]:
    """The source of that mutant, and a description of it."""
    tree = ast.parse(source)
    mutable = list(mutable_nodes(tree))[number]
    node = mutable.node
    before = ast.unparse(node).splitlines()[0]
    if mutable.name == "statement":
        tree = _RemoveStatement(node).visit(tree)
        return ast.unparse(ast.fix_missing_locations(tree)), f"line {node.lineno}: removed {before}"
    _change(node, mutable.name)
    return ast.unparse(
        ast.fix_missing_locations(tree)
    ), f"line {node.lineno}: {before} -> {ast.unparse(node).splitlines()[0]}"


def _change(node: Any, name: str) -> None:
    if name == "comparison":
        node.ops = [COMPARED[type(node.ops[0])]()]
    elif name == "and/or":
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif name == "arithmetic":
        node.op = COMPUTED[type(node.op)]()
    elif name == "condition":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1


class _RemoveStatement(ast.NodeTransformer):
    """Replaces one statement by `pass`."""

    def __init__(self, node: ast.AST) -> None:
        self._node = node

    def visit(self, node: ast.AST) -> Any:
        return ast.Pass() if node is self._node else super().visit(node)


def part_of(path: Path) -> str | None:
    """The part a file belongs to."""
    relative = path.relative_to(PACKAGE)
    return next(
        (
            name
            for name, part in PARTS.items()
            if name != "vocabulary" and any(relative.match(pattern) for pattern in part.files)
        ),
        None,
    )


def sample(each: int, seed: int, only: str | None) -> list[Mutant]:
    """Up to `each` mutants of a file, files alternating, the same for the same seed."""
    files = sorted(path for pattern in MUTATED for path in PACKAGE.glob(pattern))
    rng = random.Random(seed)
    queues = [
        _drawn(part, path, each, rng)
        for path in files
        if (part := part_of(path)) is not None and only in (None, part)
    ]
    return [
        mutant for row in itertools.zip_longest(*queues) for mutant in row if mutant is not None
    ]


def _drawn(part: str, path: Path, each: int, rng: random.Random) -> list[Mutant]:
    numbers = range(len(list(mutable_nodes(ast.parse(path.read_text(encoding="utf-8"))))))
    return [Mutant(part, path, number) for number in rng.sample(numbers, min(each, len(numbers)))]


def describe(mutant: Mutant) -> str:
    """The file and the defect as text."""
    _, description = mutate(mutant.path.read_text(encoding="utf-8"), mutant.number)
    return f"{mutant.path.relative_to(PACKAGE)} {description}"


Tests: TypeAlias = dict[str, dict[int, set[str]]]
"""File of the package -> line -> the tests that run it."""


def prepare(home: Path, parts: Iterable[str]) -> Tests:
    """Copies the project, compiled so that each mutant compiles one file alone.

    Returns which tests run which line.
    """
    for name in ("parsers", "streamlib", "tests", "lab", "docs"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", home)
    (home / "nothing").mkdir()
    tests_by_file: Tests = {}
    for part in sorted(set(parts)):
        sys.stdout.write(f"measuring which tests of {part} run which line\n")
        sys.stdout.flush()
        settings, data = home / f"{part}.ini", home / f"{part}.data"
        settings.write_text(
            f"[run]\ndata_file = {data}\nsource_pkgs = streamlib_parsers\n", encoding="utf-8"
        )
        arguments = [
            "-m",
            "coverage",
            "run",
            f"--rcfile={settings}",
            "-m",
            "pytest",
            "-p",
            "lab.mutation.contexts",
            *QUIET,
            *_all_tests(part, home),
        ]
        subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | _environment(home),
            cwd=home,
            capture_output=True,
            check=True,
        )
        tests_by_file |= _by_line(data, home, part)
        # Otherwise every mutant would seem to be killed.
        if _pytest(_all_tests(part, home), home) != 0:
            raise SystemExit(f"the tests of {part} fail without a mutant")
    return tests_by_file


def _by_line(data: Path, home: Path, part: str) -> Tests:
    measured = coverage.CoverageData(str(data))
    measured.read()
    tests_by_file: Tests = {}
    for path in measured.measured_files():
        relative = Path(path).relative_to(home / "parsers" / "streamlib_parsers")
        if part_of(PACKAGE / relative) == part:
            lines = measured.contexts_by_lineno(path)
            tests_by_file[str(relative)] = {
                line: {test for test in tests if test} for line, tests in lines.items()
            }
    return tests_by_file


def _all_tests(part: str, home: Path) -> list[str]:
    return [
        str(path.relative_to(home))
        for name in PARTS[part].tests
        for path in sorted((home / "tests" / "parsers").glob(name))
    ]


def survives(mutant: Mutant, home: Path, tests: Tests) -> bool:
    """Whether no test kills the mutant; code that only runs at import gets all tests of the
    part."""
    relative = mutant.path.relative_to(PACKAGE)
    copy = home / "parsers" / "streamlib_parsers" / relative
    source = mutant.path.read_text(encoding="utf-8")
    mutable = list(mutable_nodes(ast.parse(source)))[mutant.number]
    selected = sorted(
        {test for line in mutable.lines for test in tests.get(str(relative), {}).get(line, ())}
    )
    copy.write_text(mutate(source, mutant.number)[0], encoding="utf-8")
    # A distinct time, or the bytecode of another mutant of the same second would be run.
    os.utime(copy, (0, mutant.number + 1))
    limits = [
        "-x",
        "-o",
        f"faulthandler_timeout={HANGS}",
        "-o",
        "faulthandler_exit_on_timeout=true",
    ]
    try:
        return _pytest([*limits, *(selected or _all_tests(mutant.part, home))], home) == 0
    finally:
        shutil.copy2(mutant.path, copy)


def _pytest(arguments: list[str], home: Path) -> int:
    """The exit code of pytest in the copy; nonzero if it takes too long or too much memory.

    A fork, which has imported already what is slow to import.
    """
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(arguments, home))
    child.start()
    child.join(SECONDS)
    child.kill()
    child.join()
    return child.exitcode or 0


def _in_child(arguments: list[str], home: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(home)
    os.environ.update(_environment(home))
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(home), str(home / "parsers")]
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] in {"tests", "lab", "streamlib", "streamlib_parsers"}
    ]:
        del sys.modules[name]
    os._exit(int(pytest.main([*QUIET, *arguments])))


def _environment(home: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{home}:{home / 'parsers'}", "STREAMLIB_SHARED": str(home / "nothing")}


def main() -> None:
    """Tries the sample and lists what survived."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--each", type=int, default=100, help="mutants a file (default 100)")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--part", choices=sorted(PARTS))
    command.add_argument(
        "--again",
        action="store_true",
        help="only the survivors of the saved run; its other mutants stay killed",
    )
    command.add_argument(
        "--quote",
        action="store_true",
        help="save the result for docs/PROOF.md (then: python -m lab.proof --page)",
    )
    arguments = command.parse_args()
    mutants = sample(arguments.each, arguments.seed, arguments.part)
    remaining, drawn = mutants, len(mutants)
    if arguments.again:
        mutants, remaining = _saved(mutants)
    options = "".join(
        f" --{name} {value}"
        for name in ("each", "seed", "part")
        if (value := getattr(arguments, name)) is not None
    )
    with tempfile.TemporaryDirectory() as folder:
        tests = prepare(Path(folder), (mutant.part for mutant in remaining))
        survived: list[str] = []
        for number, mutant in enumerate(remaining, 1):
            survived += _tried(mutant, Path(folder), tests)
            done = mutants if arguments.again else mutants[:number]
            if arguments.quote and (
                number == len(remaining) or (number % 50 == 0 and not arguments.again)
            ):
                save(f"python -m lab.mutation{options}", done, drawn, survived)
    score = 100 * (1 - len(survived) / len(mutants))
    sys.stdout.write(
        f"{len(mutants)} mutants, seed {arguments.seed}: {len(mutants) - len(survived)} killed, "
        f"{score:.1f} %\n"
    )


def _saved(mutants: list[Mutant]) -> tuple[list[Mutant], list[Mutant]]:
    """The mutants of the saved run, which may have been stopped, and its survivors.

    The code must be unchanged.
    """
    record = json.loads(QUOTE.read_bytes())
    tried = mutants[: record["figures"]["mutants"]]
    survived = {
        note.removeprefix("survived: ") for note in record["notes"] if note.startswith("survived: ")
    }
    if unknown := survived - {describe(mutant) for mutant in tried}:
        raise SystemExit(f"the code has changed since: {min(unknown)}")
    return tried, [mutant for mutant in tried if describe(mutant) in survived]


def _tried(mutant: Mutant, home: Path, tests: Tests) -> list[str]:
    if not survives(mutant, home, tests):
        return []
    sys.stdout.write(f"survived: {describe(mutant)}\n")
    sys.stdout.flush()
    return [describe(mutant)]


def save(command: str, mutants: list[Mutant], drawn: int, survived: list[str]) -> None:
    """Saves a run for docs/PROOF.md."""
    files = Counter(str(mutant.path.relative_to(PACKAGE)) for mutant in mutants)
    most = max(files.values())
    fewer = ", ".join(f"{name} {count}" for name, count in files.most_common() if count < most - 1)
    stopped = f"stopped after {len(mutants):,} of {drawn:,}; " if len(mutants) < drawn else ""
    document = {
        "command": command,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": present_commit(),
        "figures": {
            "mutants": len(mutants),
            "killed, %": round(100 * (1 - len(survived) / len(mutants)), 1),
        },
        "notes": [
            f"{stopped}{most} per file, all where a file has fewer: {fewer}",
            *(f"survived: {description}" for description in survived),
        ],
    }
    QUOTED.mkdir(exist_ok=True)
    QUOTE.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
