"""Tool calls and reasoning that models write into their text.

    parser("chat", tools=tools, dialects=("hermes", "think"))   dialects by name, or `Dialect`
    values dialects_for("qwen3-32b")                                   the dialects of a model

`definitions.py` holds the dialects, `by_model.py` which model gets which, `grammars/` their
syntaxes, `scanner.py` the one scanner of text, `filter.py` the filter over the events of any wire.
docs/dialects.md lists the dialects; docs/guides/add-a-dialect.md adds one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from streamlib_parsers.dialects.by_model import DIALECTS_BY_MODEL, dialects_for
    from streamlib_parsers.dialects.definitions import DIALECTS, resolve_dialects
    from streamlib_parsers.dialects.filter import DialectFilter
    from streamlib_parsers.dialects.leaked_calls import LeakFilter
    from streamlib_parsers.dialects.sink import Dialect, Grammar, Opener

__all__ = [
    "DIALECTS",
    "DIALECTS_BY_MODEL",
    "Dialect",
    "DialectFilter",
    "Grammar",
    "LeakFilter",
    "Opener",
    "dialects_for",
    "resolve_dialects",
]

_MODULES: Final = {
    "DIALECTS": "definitions",
    "DIALECTS_BY_MODEL": "by_model",
    "Dialect": "sink",
    "DialectFilter": "filter",
    "Grammar": "sink",
    "LeakFilter": "leaked_calls",
    "Opener": "sink",
    "dialects_for": "by_model",
    "resolve_dialects": "definitions",
}
"""Name -> module that is imported at its first use: a client asks `by_model`, and most models have
no dialect, so that the grammars are not loaded."""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
