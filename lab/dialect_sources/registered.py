"""The names of the parsers that a distribution registers, read from its files as data.

Nothing of a distribution is imported or executed: its archive is opened, and the tables are taken
from the syntax trees of a few of its modules.
"""

from __future__ import annotations

import ast
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple


class Table(NamedTuple):
    """A table of parsers in a distribution."""

    module: str
    """Path of the module, as it ends in the archive."""
    variable: str
    """The dict whose keys, or the list whose elements, are the names."""


TABLES: Final[Mapping[str, tuple[Table, Table]]] = {
    "vLLM": (
        Table("vllm/tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER"),
        Table("vllm/reasoning/__init__.py", "_REASONING_PARSERS_TO_REGISTER"),
    ),
    "SGLang": (
        Table("sglang/srt/function_call/parser_names.py", "TOOL_CALL_PARSER_NAMES"),
        Table("sglang/srt/parser/reasoning_parser_names.py", "REASONING_PARSER_NAMES"),
    ),
}
"""By server: its parsers of calls, and those of reasoning."""


class Registered(NamedTuple):
    """What one distribution registers."""

    version: str
    parsers: tuple[str, ...]
    reasoning: tuple[str, ...]


def registered_in(archive: Path, server: str) -> Registered:
    """The parsers that a distribution registers.

    Args:
        archive: a wheel or a source distribution.
        server: `vLLM` or `SGLang`.

    Raises:
        LookupError: a table is not where it was.
    """
    parsers, reasoning = TABLES[server]
    return Registered(
        version=archive.name.split("-")[1].removesuffix(".tar.gz"),
        parsers=_names(_module_text(archive, parsers.module), parsers),
        reasoning=_names(_module_text(archive, reasoning.module), reasoning),
    )


def _module_text(archive: Path, module: str) -> str:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            if module not in wheel.namelist():
                raise LookupError(f"{archive.name} has no {module}")
            return wheel.read(module).decode()
    with tarfile.open(archive) as source:
        for member in source:
            if member.name.partition("/")[2] == module:
                file = source.extractfile(member)
                if file is not None:
                    return file.read().decode()
    raise LookupError(f"{archive.name} has no {module}")


def _names(text: str, table: Table) -> tuple[str, ...]:
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if name == table.variable:
            return _strings(value)
    raise LookupError(f"{table.module} has no {table.variable}")


def _strings(value: ast.expr) -> tuple[str, ...]:
    elements: list[ast.expr | None] = []
    if isinstance(value, ast.Dict):
        elements += value.keys
    elif isinstance(value, (ast.List, ast.Tuple)):
        elements += value.elts
    names: list[str] = []
    for element in elements:
        if isinstance(element, ast.Constant) and isinstance(element.value, str):
            names.append(element.value)
    return tuple(names)
