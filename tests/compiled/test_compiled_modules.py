"""What mypyc may compile: modules without structs, and without what it compiles wrongly."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from types import ModuleType

import msgspec
import pytest

import hatch_build
from streamlib_parsers import usage
from tests.support.cases import each_case
from tests.support.shared import ROOT


def module_of(path: str) -> ModuleType:
    name = path.removeprefix("parsers/").removesuffix(".py").replace("/", ".")
    return importlib.import_module(name)


def awaits_in_finally(tree: ast.AST) -> Iterator[int]:
    """Lines of `finally` blocks that wait: mypyc raises again there what was handled."""
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try):
            continue
        for statement in node.finalbody:
            if any(isinstance(inner, waits) for inner in ast.walk(statement)):
                yield statement.lineno


def methods_in_class_tables(tree: ast.AST) -> Iterator[int]:
    """Lines of tables in a class that name its methods: compiled, the names are not found."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        for part in node.body:
            if isinstance(part, (ast.Assign, ast.AnnAssign)) and part.value is not None:
                names = {inner.id for inner in ast.walk(part.value) if isinstance(inner, ast.Name)}
                if names & methods:
                    yield part.lineno


def own_structs(module: ModuleType) -> list[type]:
    """The structs that a module defines."""
    kinds = [value for value in vars(module).values() if isinstance(value, type)]
    own = [kind for kind in kinds if kind.__module__ == module.__name__]
    return [kind for kind in own if issubclass(kind, msgspec.Struct)]


@each_case("path", hatch_build.compiled_files())
def test_compiled_module_has_no_struct(path: str) -> None:
    assert own_structs(module_of(path)) == []


def test_struct_of_a_module_is_found() -> None:
    assert own_structs(usage) == [usage.Usage]


@each_case("path", hatch_build.compiled_files())
def test_compiled_module_is_written_as_mypyc_needs_it(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert list(awaits_in_finally(tree)) == []
    assert list(methods_in_class_tables(tree)) == []


def test_what_mypyc_compiles_wrongly_is_found() -> None:
    waiting = "async def f():\n try:\n  pass\n finally:\n  await g()\n"
    assert list(awaits_in_finally(ast.parse(waiting))) == [5]
    table = "class A:\n def f(self): pass\n T = {'f': f}\n"
    assert list(methods_in_class_tables(ast.parse(table))) == [3]


def hook() -> hatch_build.CompiledBuild:
    """The hook as hatchling makes it, without a build."""
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    metadata = ProjectMetadata(str(ROOT), PluginManager())
    return hatch_build.CompiledBuild(str(ROOT), {}, None, metadata, "", "wheel")


def test_hook_needs_the_compiler_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(hatch_build.SWITCH, raising=False)
    assert hook().dependencies() == []
    monkeypatch.setenv(hatch_build.SWITCH, "1")
    needed = hook().dependencies()
    assert set(hatch_build.COMPILER) < set(needed)
    assert any(name.startswith("msgspec") for name in needed)


@pytest.mark.parametrize(("version", "switch"), [("standard", "0"), ("editable", "1")])
def test_hook_leaves_other_builds_pure(
    version: str, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hatch_build.SWITCH, switch)
    build_data = {"pure_python": True}
    hook().initialize(version, build_data)
    assert build_data == {"pure_python": True}
