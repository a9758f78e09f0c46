"""Measures how source code reads: folded expressions, retired names, sizes, comments.

python -m lab.house                   # the figures of both packages
python -m lab.house --list PATH…      # each violation, by line
"""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, NamedTuple

from lab.house.names import docstrings_of, names_of, nodes_of, strings_of
from tests.support.shared import ROOT

PACKAGES: Final = ("streamlib", "streamlib_pytest", "parsers/streamlib_parsers")
WIDTH: Final = 100
FUNCTION_LINES: Final = 80
FILE_LINES: Final = 580
FOLDS_A_STATEMENT: Final = 2
"""Conditional expressions and comprehensions together."""

COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DISPLAYS: Final = (ast.Tuple, ast.List, ast.Dict, ast.Set)
MEASURED: Final = (
    ast.stmt,
    ast.arg,
    ast.Name,
    ast.Attribute,
    ast.IfExp,
    *COMPREHENSIONS,
    ast.Subscript,
    ast.Starred,
    ast.Dict,
)
"""Nodes that a rule is about."""

RETIRED_NAMES: Final = frozenset(
    {
        "answer",
        "asked",
        "at",
        "begun",
        "cut",
        "found",
        "given",
        "held",
        "kept",
        "law",
        "laws",
        "losses",
        "minted",
        "odd",
        "one",
        "piece",
        "pieces",
        "place",
        "places",
        "said",
        "sealed",
        "spoken",
        "thing",
        "things",
        "thought",
        "thoughts",
        "told",
        "where",
        "whole",
        "word",
        "words",
    }
)
"""Names that say nothing to a reader of this field. The glossary of docs/architecture.md has the
terms that stand for them."""

ALLOWED_NAMES: Final = {
    ("chunks.py", "thought"): "a field of Gemini's parts",
    ("files.py", "at"): "a field of saved recordings",
    ("document.py", "at"): "named as in saved recordings",
    ("cursor.py", "word"): "a documented method for authors of grammars",
    ("app.py", "answer"): "a public method of Gateway since 0.1.0",
    ("behaviour.py", "at"): "a public field of Behaviour since 0.1.0",
    ("clients.py", "at"): "named as the field of Behaviour",
    ("replay.py", "at"): "named as the field of Behaviour",
    ("turns.py", "at"): "named as the field of Behaviour",
    ("sink.py", "where"): "a public field of Opener since 0.1.0",
    ("reasoning_tags.py", "where"): "named as the field of Opener",
    ("shapes.py", "words"): "a public field of Thinking since 0.1.0",
    ("event_stages.py", "found"): "the parameter of until(), documented since 0.1.0",
    ("text_stages.py", "words"): "a stage, beside lines(), sentences() and blocks()",
    ("replay.py", "pieces"): "a public function of streamlib.recording since 0.1.0",
}
"""(file, name) -> why the name stays."""


@dataclass
class Figures:
    """Counts of one file or of many."""

    files: int = 0
    lines: int = 0
    long_lines: int = 0
    conditionals: int = 0
    nested_conditionals: int = 0
    comprehensions: int = 0
    crowded_statements: int = 0
    tricks: int = 0
    retired_names: int = 0
    long_functions: int = 0
    long_files: int = 0
    comment_lines: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the counts of another file."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def per_thousand(self, count: int) -> float:
        """A count for each 1,000 lines."""
        return 1000 * count / max(self.lines, 1)

    @property
    def comment_share(self) -> float:
        """Percentage of lines that hold a comment."""
        return 100 * self.comment_lines / max(self.lines, 1)


def sources() -> list[Path]:
    """Every source file of the packages."""
    paths: list[Path] = []
    for package in PACKAGES:
        paths += sorted((ROOT / package).rglob("*.py"))
    return paths


def own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of the statements inside it."""
    inner = (ast.stmt, ast.ExceptHandler, ast.match_case)
    stack: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, inner)
    ]
    while stack:
        node = stack.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, inner):
                stack.append(child)


def _bound_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name):
            return [name]
        case _:
            return []


def _is_trick(node: ast.AST) -> bool:
    """A table indexed by a flag where it is made, or a conditional splat."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, DISPLAYS)
    if isinstance(node, ast.Starred):
        return isinstance(node.value, ast.IfExp)
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None and isinstance(value, ast.IfExp):
                return True
    return False


def _is_nested(node: ast.IfExp) -> bool:
    for part in (node.test, node.body, node.orelse):
        for inner in ast.walk(part):
            if isinstance(inner, ast.IfExp):
                return True
    return False


def _comment_lines(text: str, nodes: list[ast.AST]) -> int:
    """Lines with a comment, and lines of docstrings of constants and attributes."""
    if any("#" in quoted for _, quoted in (*strings_of(nodes), *docstrings_of(nodes))):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        lines = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    else:  # most files, and a third of the time
        lines = {number for number, line in enumerate(text.split("\n"), 1) if "#" in line}
    for node in nodes:
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        # The first statement would be the docstring of a module, class or function.
        for statement in body[1:]:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return len(lines)


def _measure_lines(path: Path, lines: list[str], figures: Figures) -> None:
    if figures.lines > FILE_LINES:
        figures.long_files += 1
        figures.violations.append(f"{path}:1: {figures.lines} lines: split the file")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            figures.long_lines += 1
            figures.violations.append(f"{path}:{number}: {len(line)} columns")


def _measure_expression(location: str, node: ast.AST, figures: Figures) -> None:
    if isinstance(node, ast.IfExp):
        figures.conditionals += 1
        if _is_nested(node):
            figures.nested_conditionals += 1
            figures.violations.append(f"{location}: nested conditional expression")
    if isinstance(node, COMPREHENSIONS):
        figures.comprehensions += 1
    if _is_trick(node):
        figures.tricks += 1
        figures.violations.append(
            f"{location}: a table indexed where it is made, or a conditional splat"
        )
    for name in _bound_names(node):
        if name.strip("_").lower() not in RETIRED_NAMES:
            continue
        if (Path(location.rpartition(":")[0]).name, name) not in ALLOWED_NAMES:
            figures.retired_names += 1
            figures.violations.append(f"{location}: retired name {name}")


def _measure_statement(location: str, node: ast.stmt, figures: Figures) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            figures.long_functions += 1
            figures.violations.append(f"{location}: {node.name} has {length} lines")
    folds = 0
    for expression in own_expressions(node):
        if isinstance(expression, (ast.IfExp, *COMPREHENSIONS)):
            folds += 1
    if folds > FOLDS_A_STATEMENT:
        figures.crowded_statements += 1
        figures.violations.append(
            f"{location}: {folds} conditional expressions or comprehensions in a statement"
        )


class Source(NamedTuple):
    """What the rules ask of one file."""

    figures: Figures
    docstrings: list[tuple[int, str]]
    """Line and text."""
    names: set[str]
    strings: list[tuple[int, str]]
    """Line and text of those that are no docstrings."""
    classes: list[str]
    """Those of the module itself."""


@functools.cache
def read(path: Path) -> Source:
    """One file, which is parsed and walked once for all rules."""
    text = path.read_text(encoding="utf-8")
    nodes = nodes_of(text)
    classes: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Module):
            classes += [each.name for each in node.body if isinstance(each, ast.ClassDef)]
    return Source(
        figures=_measure(path, text, nodes),
        docstrings=docstrings_of(nodes),
        names=names_of(nodes),
        strings=strings_of(nodes),
        classes=classes,
    )


def _measure(path: Path, text: str, nodes: list[ast.AST]) -> Figures:
    figures = Figures(files=1, lines=text.count("\n"), comment_lines=_comment_lines(text, nodes))
    _measure_lines(path, text.splitlines(), figures)
    for node in nodes:
        if not isinstance(node, MEASURED) or _is_read(node):
            continue
        location = f"{path}:{node.lineno}"
        _measure_expression(location, node, figures)
        if isinstance(node, ast.stmt):
            _measure_statement(location, node, figures)
    return figures


def _is_read(node: ast.AST) -> bool:
    """Whether the node is a name that is not bound here: nine of ten nodes that are measured."""
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)


def measure(path: Path) -> Figures:
    """The figures of one file."""
    return read(path).figures


def measure_all(paths: list[Path]) -> Figures:
    """The sum over many files."""
    total = Figures()
    for path in paths:
        total.add(measure(path))
    return total
