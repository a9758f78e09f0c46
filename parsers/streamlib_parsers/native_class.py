"""How a class stays open when mypyc compiles it.

A compiled class has no subclasses in Python, unless its decorator says so.
Only the compiler reads the decorator: the package ``mypy_extensions`` is needed for no run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["mypyc_attr"]

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:
    T = TypeVar("T")

    def mypyc_attr(**_: Any) -> Callable[[type[T]], type[T]]:
        """A decorator that changes nothing."""
        return lambda kind: kind
