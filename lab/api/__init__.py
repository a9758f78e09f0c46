"""The public API as text, one line for each name, so that a change of it is seen in review."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import streamlib_parsers

MODULES: Final = (
    "streamlib",
    "streamlib.durable",
    "streamlib.inspection",
    "streamlib.pipeline",
    "streamlib.recording",
    "streamlib.client.sync",
    "streamlib.display",
    "streamlib.testing",
    "streamlib.tools",
    "streamlib.transport",
    "streamlib.web",
    "streamlib_parsers",
)
"""Modules whose `__all__` is public."""

PRIVATE_BASES: Final = (
    "streamlib.client.setup",
    "streamlib.pipeline.delivery",
    "streamlib.tools.piped_run",
)
"""Modules of classes that stand for a part of a public one."""

FILE: Final = Path(__file__).with_name("public.txt")


def public_api() -> str:
    """Every public name with its signature; below a class, its public members."""
    lines: list[str] = []
    for name in MODULES:
        module = importlib.import_module(name)
        for public in sorted(module.__all__):
            if name == "streamlib" and public in streamlib_parsers.__all__:
                continue  # listed there
            lines += _lines_of(f"{name}.{public}", getattr(module, public))
    return "\n".join(lines) + "\n"


def _lines_of(path: str, value: Any) -> Iterator[str]:
    yield path + _signature_of(value)
    if not inspect.isclass(value):
        return
    for field in getattr(value, "__struct_fields__", ()):
        yield f"{path}.{field}"
    for name, member in sorted(_members_of(value).items()):
        if name.startswith("_") or inspect.ismemberdescriptor(member):
            continue
        yield f"{path}.{name}{_signature_of(_function_of(member))}"


def _members_of(kind: type) -> dict[str, Any]:
    """The members of a class, with those of its private bases: readers see no difference."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base is kind or base.__module__ in PRIVATE_BASES:
            members.update(vars(base))
    return members


def _function_of(member: Any) -> Any:
    """The function behind a class method or a static method; anything else as it is."""
    if isinstance(member, (classmethod, staticmethod)):
        return member.__func__
    return member


def _signature_of(value: Any) -> str:
    """Parameters with their defaults; nothing for a value that is not called."""
    if isinstance(value, ModuleType) or not callable(value):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # a union, or a class of C
        return ""
    return f"({', '.join(_parameter(parameter) for parameter in parameters)})"


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{text}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{text}"
    if parameter.kind is parameter.KEYWORD_ONLY:
        text = f"keyword {text}"
    if parameter.default is not parameter.empty:
        text += "=…"
    return text
