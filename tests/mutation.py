"""Mutation testing of framings, wires and dialects: small mistakes are made in the code, and the tests of its part must notice.

    python -m tests.mutation --count 1000 --seed 1            # a seeded sample, some hours; survivors are listed at the end
    python -m tests.mutation --part chat --count 100
    python -m tests.mutation --quote                          # what it comes to is kept for docs/PROOF.md

One mistake at a time, in a copy of the package: a comparison turned round, `and` for `or`, a constant off by one, a condition negated, a
statement left out. Each mutant gets the part's own tests (`own_coverage.PARTS`), without the shared recordings, until the first that
fails. A mutant that runs into the time limit counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.own_coverage import PACKAGE, PARTS, SLOW_WORDS
from tests.proof.results import QUOTED
from tests.shared import ROOT

MUTATED: Final = ("framing", "wires", "dialects")
SECONDS: Final = 120.0
"""For one mutant; the slowest part needs a third of it."""

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


def places(tree: ast.Module) -> Iterator[Place]:
    """Every place of a file where one of the mistakes can be made. Type hints, docstrings and imports are left alone."""
    for node in ast.walk(tree):
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
        elif isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise)) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield Place(node, "statement")


def _is_type(node: ast.BinOp) -> bool:
    """`X | None` outside of annotations, as in tables of types."""
    return any(isinstance(inner, ast.Constant) and inner.value is None for inner in (node.left, node.right))


def mutate(source: str, number: int) -> tuple[str, str]:
    """The source with that mistake, and what it is."""
    tree = ast.parse(source)
    place = list(places(tree))[number]
    node = place.node
    before = ast.unparse(node).splitlines()[0]
    if place.name == "statement":
        tree = _Without(node).visit(tree)
        return ast.unparse(ast.fix_missing_locations(tree)), f"line {node.lineno}: left out {before}"
    _spoil(node, place.name)
    return ast.unparse(ast.fix_missing_locations(tree)), f"line {node.lineno}: {before} -> {ast.unparse(node).splitlines()[0]}"


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
        (name for name, part in PARTS.items() if name != "vocabulary" and any(relative.match(pattern) for pattern in part.files)), None
    )


def sample(count: int, seed: int, only: str | None) -> list[Mutant]:
    """That many mutants, spread evenly over the files, the same ones for the same seed."""
    files = sorted(path for folder in MUTATED for path in (PACKAGE / folder).rglob("*.py"))
    wanted = [(part, path) for path in files if (part := part_of(path)) is not None and only in (None, part)]
    rng = random.Random(seed)
    queues = []
    for part, path in wanted:
        numbers = list(range(len(list(places(ast.parse(path.read_text(encoding="utf-8")))))))
        rng.shuffle(numbers)
        queues.append([Mutant(part, path, number) for number in numbers])
    found: list[Mutant] = []
    while len(found) < count and any(queues):
        found += [queue.pop() for queue in queues if queue]
    return found[:count]


def survives(mutant: Mutant, home: Path) -> str | None:
    """What the mistake is where no test noticed it; None where one did."""
    copy = home / "parsers" / "streamlib_parsers" / mutant.path.relative_to(PACKAGE)
    original = mutant.path.read_text(encoding="utf-8")
    spoiled, what = mutate(original, mutant.number)
    copy.write_text(spoiled, encoding="utf-8")
    tests = [str(path.relative_to(home)) for name in PARTS[mutant.part].tests for path in sorted((home / "tests" / "parsers").glob(name))]
    env = {
        **os.environ,
        "PYTHONPATH": f"{home}:{home / 'parsers'}",
        "STREAMLIB_SHARED": str(home / "nothing"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", SLOW_WORDS, *tests]
    try:
        ran = subprocess.run(command, env=env, cwd=home, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    finally:
        copy.write_text(original, encoding="utf-8")
    return what if ran.returncode == 0 else None


def main() -> None:
    """Tries the sample and says what survived."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--count", type=int, default=1000)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--part", choices=sorted(PARTS))
    command.add_argument("--seconds", type=float, default=float("inf"), help="begin no further mutant after that time")
    command.add_argument("--quote", action="store_true", help="keep the result for docs/PROOF.md (then: python -m tests.proof --page)")
    arguments = command.parse_args()
    mutants = sample(arguments.count, arguments.seed, arguments.part)
    until = time.monotonic() + arguments.seconds
    tried, survived = 0, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name in ("parsers", "streamlib", "tests", "docs"):
            shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", home)
        (home / "nothing").mkdir()
        for mutant in mutants:
            if time.monotonic() > until:
                break
            tried += 1
            left = survives(mutant, home)
            if left is not None:
                survived.append(f"{mutant.path.relative_to(PACKAGE)} {left}")
                sys.stdout.write(f"survived: {survived[-1]}\n")
                sys.stdout.flush()
    score = 100 * (1 - len(survived) / tried) if tried else 0.0
    sys.stdout.write(f"{tried} mutants of {len(mutants)}, seed {arguments.seed}: {tried - len(survived)} noticed, {score:.1f} %\n")
    if arguments.quote:
        quote(f"python -m tests.mutation --seed {arguments.seed}", tried, round(score, 1), survived)


def quote(command: str, tried: int, score: float, survived: Sequence[str]) -> None:
    """Keeps a run for the page of promises."""
    told = {
        "command": command,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "figures": {"mutants": tried, "killed, %": score},
        "notes": [f"survived: {one}" for one in survived],
    }
    QUOTED.mkdir(exist_ok=True)
    (QUOTED / "mutation.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
