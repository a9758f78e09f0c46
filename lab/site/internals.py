"""Leaves internals out of the API reference: bases that no page names, and private values.

A class may inherit from one that only the code knows, and an attribute may be filled by a private
function. A reader of the reference can use neither name.
"""

from __future__ import annotations

import re
from pydoc import locate
from typing import Any, Final

from griffe import Attribute, Class, Expr, Extension

from tests.support.shared import ROOT

OURS: Final = re.compile(r"streamlib(_parsers)?\.")
PRIVATE_NAME: Final = re.compile(r"(?<!\w)_[A-Za-z]|\b__file__\b")


def documented() -> list[object]:
    """What the pages of the reference describe."""
    paths: list[str] = []
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        paths += re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [locate(path) for path in paths]


class Internals(Extension):
    """Leaves out what is not for a reader of the reference."""

    def __init__(self) -> None:
        self._documented = documented()

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Called for each class, when its members are read."""
        if "__init__" in cls.members:  # else the base has the parameters, which are shown
            cls.bases = [base for base in cls.bases if self._is_shown(base)]

    def on_attribute(self, *, attr: Attribute, **_: Any) -> None:
        """Called for each attribute."""
        is_set_by_code = attr.labels == {"instance-attribute"}
        if is_set_by_code or PRIVATE_NAME.search(str(attr.value)):
            attr.value = None

    def _is_shown(self, base: Expr | str) -> bool:
        if isinstance(base, str):
            return True
        path = base.canonical_path
        if OURS.match(path) is None:
            return True
        found = locate(path)
        return any(found is each for each in self._documented)
