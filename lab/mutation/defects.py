"""The deliberate defects (mutants): where a file can get one, and the file with it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
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
COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
}

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OVERLOADS: Final = ("overload", "abstractmethod")
"""Decorators of functions whose bodies never run."""


class MutableNode(NamedTuple):
    """A node that can be mutated, and how."""

    node: ast.AST
    name: str

    @property
    def lines(self) -> range:
        """The lines it is on."""
        return range(self._place.lineno, (self._place.end_lineno or self._place.lineno) + 1)

    @property
    def column(self) -> int:
        """Where it begins in its line, from 1: some lines have the same constant twice."""
        return self._place.col_offset + 1

    @property
    def _place(self) -> ast.expr | ast.stmt:
        node = self.node
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            node = node.test
        assert isinstance(node, (ast.expr, ast.stmt))
        return node


class Defect(NamedTuple):
    """A file with one defect.

    text: what was changed into what, without its place. column: from 1. name: what the code that
    only runs at import defines, by which its users are found; empty inside of a function.
    """

    tree: ast.Module
    lines: range
    column: int
    text: str
    name: str


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
    """As `ast.walk`, without what never runs: code for type checkers, bodies of overloads.

    Keywords of classes (`frozen`, `gc`) are left out too: no behaviour shows them.
    """
    todo = deque([tree])
    while todo:
        node = todo.popleft()
        if _is_for_checkers(node):
            continue
        yield node
        unseen = _unseen(node)
        todo.extend(child for child in ast.iter_child_nodes(node) if child not in unseen)


def _is_for_checkers(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return any(
        ast.unparse(decorator).rpartition(".")[2] in OVERLOADS for decorator in node.decorator_list
    )


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


def mutate(source: str, number: int) -> Defect:
    """The file with that defect, by its index in `mutable_nodes`."""
    tree = ast.parse(source)
    mutable = list(mutable_nodes(tree))[number]
    lines, column = mutable.lines, mutable.column
    name = _defined(tree, mutable.node)
    before = ast.unparse(mutable.node).splitlines()[0]
    if mutable.name == "statement":
        _RemoveStatement(mutable.node).visit(tree)
        text = f"removed {before}"
    else:
        _change(mutable.node)
        text = f"{before} -> {ast.unparse(mutable.node).splitlines()[0]}"
    return Defect(ast.fix_missing_locations(tree), lines, column, text, name)


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops = [COMPARED[type(node.ops[0])]()]
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.BinOp):
        node.op = COMPUTED[type(node.op)]()
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value = node.value + 1


class _RemoveStatement(ast.NodeTransformer):
    """Replaces one statement by `pass`."""

    def __init__(self, node: ast.AST) -> None:
        self._node = node

    def visit(self, node: ast.AST) -> ast.AST:
        """Visits a node; see `ast.NodeTransformer`."""
        if node is self._node:
            assert isinstance(node, ast.stmt)
            return ast.copy_location(ast.Pass(), node)
        visited: ast.AST = super().visit(node)
        return visited


def _defined(tree: ast.AST, sought: ast.AST) -> str:
    """What the statement that holds a node defines at import; empty if the node is in a body.

    A default of a parameter counts to the function, a field to its class's field.
    """
    path = _path(tree, sought)
    name = ""
    for node, child in zip(path, [*path[1:], None], strict=True):
        if isinstance(node, FUNCTIONS):
            body = node.body if isinstance(node.body, list) else [node.body]
            if child in body:
                return ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
    return name or "?"


def _path(node: ast.AST, sought: ast.AST) -> list[ast.AST]:
    """From the root to a node; empty if it is not below."""
    if node is sought:
        return [node]
    for child in ast.iter_child_nodes(node):
        below = _path(child, sought)
        if below:
            return [node, *below]
    return []
