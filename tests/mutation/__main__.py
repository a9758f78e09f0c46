"""Mutation testing of framings, wires and dialects: small mistakes are made in the code, and the tests of its part must notice.

    python -m tests.mutation --quote                # up to 100 mistakes a file, an hour or two; kept for docs/PROOF.md
    python -m tests.mutation --part chat --each 20  # a seeded sample of one part; survivors are listed
    python -m tests.mutation --again --quote        # after new tests: the survivors of the run that was kept, once more

One mistake at a time, in a copy of the package: a comparison turned round, `and` for `or`, a constant off by one, a condition negated, a
statement left out. Each mutant gets those of the part's own tests (`own_coverage.PARTS`) that run its line, without the shared
recordings, until the first that fails. A mutant that hangs or eats the machine's memory counts as noticed. What changes nothing
anybody can see is no mistake: whether a struct is frozen or known to the garbage collector, imports for type checkers.
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

from tests.coverage_by_part.parts import PACKAGE, PARTS, SLOW_WORDS
from tests.proof.results import QUOTED
from tests.support.shared import ROOT

MUTATED: Final = ("framing", "wires", "dialects")
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
    "-k",
    SLOW_WORDS,
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
    """One mistake. number: which of the places in the file, in the order of `places`."""

    part: str
    path: Path
    number: int


class Place(NamedTuple):
    """Something that can be got wrong: the node, and what is done to it."""

    node: Any
    name: str

    @property
    def lines(self) -> range:
        """Where it stands."""
        node = self.node.test if self.name == "condition" else self.node
        return range(node.lineno, node.end_lineno + 1)


def places(tree: ast.Module) -> Iterator[Place]:
    """Every place of a file where one of the mistakes can be made. Type hints, docstrings and imports are left alone."""
    for node in _meaningful(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            yield Place(node, "comparison")
        elif isinstance(node, ast.BoolOp):
            yield Place(node, "and/or")
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_type(node):
            yield Place(node, "arithmetic")
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield Place(node, "condition")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            yield Place(node, "constant")
        elif isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield Place(node, "statement")


def _meaningful(tree: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, without the keywords of classes (`frozen`, `gc`) and without what only type checkers read."""
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
    """What of a node changes nothing: keywords of classes, and annotations, which are never evaluated."""
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
    """The source with that mistake, and what it is."""
    tree = ast.parse(source)
    place = list(places(tree))[number]
    node = place.node
    before = ast.unparse(node).splitlines()[0]
    if place.name == "statement":
        tree = _Without(node).visit(tree)
        return ast.unparse(
            ast.fix_missing_locations(tree)
        ), f"line {node.lineno}: left out {before}"
    _spoil(node, place.name)
    return ast.unparse(
        ast.fix_missing_locations(tree)
    ), f"line {node.lineno}: {before} -> {ast.unparse(node).splitlines()[0]}"


def _spoil(node: Any, name: str) -> None:
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


class _Without(ast.NodeTransformer):
    """Puts `pass` in the place of one statement."""

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
    """Up to that many mutants of each file, one of every file in turn, the same ones for the same seed."""
    files = sorted(path for folder in MUTATED for path in (PACKAGE / folder).rglob("*.py"))
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
    numbers = range(len(list(places(ast.parse(path.read_text(encoding="utf-8"))))))
    return [Mutant(part, path, number) for number in rng.sample(numbers, min(each, len(numbers)))]


def told(mutant: Mutant) -> str:
    """The file and the mistake, in words."""
    return f"{mutant.path.relative_to(PACKAGE)} {mutate(mutant.path.read_text(encoding='utf-8'), mutant.number)[1]}"


Tests: TypeAlias = dict[str, dict[int, set[str]]]
"""File of the package -> line -> the tests that run it."""


def prepare(home: Path, parts: Iterable[str]) -> Tests:
    """A copy of the project with every file compiled, so that each mutant compiles one file alone; and which tests run which line."""
    for name in ("parsers", "streamlib", "tests", "docs"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", home)
    (home / "nothing").mkdir()
    found: Tests = {}
    for part in sorted(set(parts)):
        sys.stdout.write(f"which tests of {part} run which line\n")
        sys.stdout.flush()
        settings, data = home / f"{part}.ini", home / f"{part}.data"
        settings.write_text(
            f"[run]\ndata_file = {data}\nsource_pkgs = streamlib_parsers\n", encoding="utf-8"
        )
        words = [
            "-m",
            "coverage",
            "run",
            f"--rcfile={settings}",
            "-m",
            "pytest",
            "-p",
            "tests.mutation.contexts",
            *QUIET,
            *_all_tests(part, home),
        ]
        subprocess.run(
            [sys.executable, *words],
            env=os.environ | _environment(home),
            cwd=home,
            capture_output=True,
            check=True,
        )
        found |= _by_line(data, home, part)
        if (
            _pytest(_all_tests(part, home), home) != 0
        ):  # else every mistake would seem to be noticed
            raise SystemExit(f"the tests of {part} fail where nothing is wrong")
    return found


def _by_line(data: Path, home: Path, part: str) -> Tests:
    measured = coverage.CoverageData(str(data))
    measured.read()
    found: Tests = {}
    for path in measured.measured_files():
        relative = Path(path).relative_to(home / "parsers" / "streamlib_parsers")
        if part_of(PACKAGE / relative) == part:
            lines = measured.contexts_by_lineno(path)
            found[str(relative)] = {
                line: {test for test in tests if test} for line, tests in lines.items()
            }
    return found


def _all_tests(part: str, home: Path) -> list[str]:
    return [
        str(path.relative_to(home))
        for name in PARTS[part].tests
        for path in sorted((home / "tests" / "parsers").glob(name))
    ]


def survives(mutant: Mutant, home: Path, tests: Tests) -> bool:
    """Whether no test noticed the mistake. What runs at import, or in helpers alone, gets all tests of the part."""
    relative = mutant.path.relative_to(PACKAGE)
    copy = home / "parsers" / "streamlib_parsers" / relative
    source = mutant.path.read_text(encoding="utf-8")
    place = list(places(ast.parse(source)))[mutant.number]
    fitting = sorted(
        {test for line in place.lines for test in tests.get(str(relative), {}).get(line, ())}
    )
    copy.write_text(mutate(source, mutant.number)[0], encoding="utf-8")
    os.utime(
        copy, (0, mutant.number + 1)
    )  # a time of its own, or the bytecode of a mistake of the same second would be run
    limits = [
        "-x",
        "-o",
        f"faulthandler_timeout={HANGS}",
        "-o",
        "faulthandler_exit_on_timeout=true",
    ]
    try:
        return _pytest([*limits, *(fitting or _all_tests(mutant.part, home))], home) == 0
    finally:
        shutil.copy2(mutant.path, copy)


def _pytest(words: list[str], home: Path) -> int:
    """The exit code of pytest in the copy; 1 where it takes too long or too much memory. A fork has what is slow to import already."""
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(words, home))
    child.start()
    child.join(SECONDS)
    child.kill()
    child.join()
    return child.exitcode or 0


def _in_child(words: list[str], home: Path) -> None:
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
        if name.partition(".")[0] in {"tests", "streamlib", "streamlib_parsers"}
    ]:
        del sys.modules[name]
    os._exit(int(pytest.main([*QUIET, *words])))


def _environment(home: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{home}:{home / 'parsers'}", "STREAMLIB_SHARED": str(home / "nothing")}


def main() -> None:
    """Tries the sample and says what survived."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--each", type=int, default=100, help="mistakes a file (default 100)")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--part", choices=sorted(PARTS))
    command.add_argument(
        "--again",
        action="store_true",
        help="of the run that was kept only the survivors; its other mutants stay noticed",
    )
    command.add_argument(
        "--quote",
        action="store_true",
        help="keep the result for docs/PROOF.md (then: python -m tests.proof --page)",
    )
    arguments = command.parse_args()
    mutants = sample(arguments.each, arguments.seed, arguments.part)
    doubted, drawn = mutants, len(mutants)
    if arguments.again:
        mutants, doubted = _kept(mutants)
    words = "".join(
        f" --{name} {value}"
        for name in ("each", "seed", "part")
        if (value := getattr(arguments, name)) is not None
    )
    with tempfile.TemporaryDirectory() as folder:
        tests = prepare(Path(folder), (mutant.part for mutant in doubted))
        survived: list[str] = []
        for number, mutant in enumerate(doubted, 1):
            survived += _tried(mutant, Path(folder), tests)
            done = mutants if arguments.again else mutants[:number]
            if arguments.quote and (
                number == len(doubted) or (number % 50 == 0 and not arguments.again)
            ):
                keep(f"python -m tests.mutation{words}", done, drawn, survived)
    score = 100 * (1 - len(survived) / len(mutants))
    sys.stdout.write(
        f"{len(mutants)} mutants, seed {arguments.seed}: {len(mutants) - len(survived)} noticed, {score:.1f} %\n"
    )


def _kept(mutants: list[Mutant]) -> tuple[list[Mutant], list[Mutant]]:
    """Those of the run on record, which may have been stopped, and those of them that survived. It must have been the same code."""
    record = json.loads(QUOTE.read_bytes())
    tried = mutants[: record["figures"]["mutants"]]
    survived = {
        note.removeprefix("survived: ") for note in record["notes"] if note.startswith("survived: ")
    }
    if unknown := survived - {told(mutant) for mutant in tried}:
        raise SystemExit(f"the code has changed since: {min(unknown)}")
    return tried, [mutant for mutant in tried if told(mutant) in survived]


def _tried(mutant: Mutant, home: Path, tests: Tests) -> list[str]:
    if not survives(mutant, home, tests):
        return []
    sys.stdout.write(f"survived: {told(mutant)}\n")
    sys.stdout.flush()
    return [told(mutant)]


def keep(command: str, mutants: list[Mutant], drawn: int, survived: list[str]) -> None:
    """Keeps a run for the page of promises."""
    files = Counter(str(mutant.path.relative_to(PACKAGE)) for mutant in mutants)
    most = max(files.values())
    fewer = ", ".join(f"{name} {count}" for name, count in files.most_common() if count < most - 1)
    stopped = f"stopped after {len(mutants):,} of {drawn:,}; " if len(mutants) < drawn else ""
    kept = {
        "command": command,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "figures": {
            "mutants": len(mutants),
            "killed, %": round(100 * (1 - len(survived) / len(mutants)), 1),
        },
        "notes": [
            f"{stopped}{most} of a file, all of one that has fewer places: {fewer}",
            *(f"survived: {one}" for one in survived),
        ],
    }
    QUOTED.mkdir(exist_ok=True)
    QUOTE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
