"""Packages whose names are loaded at their first use, so that importing them costs little."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package; `__dir__` lists its `__all__` alone.

    A package assigns them, and imports the same names below ``if TYPE_CHECKING`` for type
    checkers, which read no table.

    Args:
        package: the package's ``__name__``.
        modules: module, by its full name, to the public names that it defines.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)  # the next use finds it without this function
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return load, names
