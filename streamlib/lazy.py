"""Packages whose names are loaded at their first use, so that importing them costs little."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(
    package: str,
    modules: Mapping[str, tuple[str, ...]],
    *,
    own: tuple[str, ...] = (),
    vocabulary: str = "",
    unlisted: frozenset[str] = frozenset(),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; `__dir__` lists its `__all__` alone.

    A package assigns them, and imports the same names below ``if TYPE_CHECKING`` for type
    checkers, which read no table: each with ``as``, which makes a name public for them. Without an
    `__all__` of its own it gets one of these names, and so writes each of them twice only.

    Args:
        package: the package's ``__name__``.
        modules: module, by its full name, to the public names that it defines.
        own: public names that the package itself defines.
        vocabulary: a package whose public names are public here too. It is loaded when one of them
            is asked for; `__all__` is then made of both.
        unlisted: names left out of `__all__`, because they need what may not be installed.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name in module_of:
            return getattr(importlib.import_module(module_of[name]), name)
        is_list = name == "__all__"
        names = sorted({*module_of, *own} - unlisted)
        if vocabulary and (is_list or not name.startswith("_")):
            more = importlib.import_module(vocabulary)
            names += more.__all__
            if name in more.__all__:
                return getattr(more, name)
        if is_list:
            return names
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def load(name: str) -> Any:
        value = find(name)
        setattr(sys.modules[package], name, value)  # the next use finds it without this function
        return value

    def public_names() -> list[str]:
        return sorted({*sys.modules[package].__all__, *unlisted})

    return load, public_names
