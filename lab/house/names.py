"""The names that a file's code has, and its docstrings."""

from __future__ import annotations

import ast
import re


def nodes_of(text: str) -> list[ast.AST]:
    """Every node of the code, from the top."""
    return list(ast.walk(ast.parse(text)))


def names_of(nodes: list[ast.AST]) -> set[str]:
    """Identifiers and words of string constants; docstrings do not count."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                names.add(name)
            case ast.keyword(arg=str(name)) | ast.alias(name=name, asname=None):
                names.update(name.split("."))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name):
                names.add(name)
    for _, constant in strings_of(nodes):
        names.update(re.findall(r"\w+", constant))
    return names


def strings_of(nodes: list[ast.AST]) -> list[tuple[int, str]]:
    """String and byte constants that are values, not docstrings; each with its line."""
    docstrings = set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
    constants: list[tuple[int, str]] = []
    for node in nodes:
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str):
            constants.append((node.lineno, node.value))
        elif isinstance(node.value, bytes):
            constants.append((node.lineno, node.value.decode("latin-1")))
    return constants


def docstrings_of(nodes: list[ast.AST]) -> list[tuple[int, str]]:
    """Every string that stands alone as a statement, with its line."""
    found: list[tuple[int, str]] = []
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                found.append((node.lineno, node.value.value))
    return found
