"""Gives msgspec's classes their parameters in the API reference.

A Struct has no `__init__` that a static reader could see, so that its page would show a class that
takes nothing. This extension of griffe, which reads the docstrings, adds one.
"""

from __future__ import annotations

from pydoc import locate
from typing import Any

import msgspec
from griffe import Class, Extension, Function, Parameter, ParameterKind, Parameters


class Structs(Extension):
    """Adds the constructor of every msgspec class."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Called for each class, when its members are read."""
        if not cls.is_public or "__init__" in cls.members:
            return
        found = locate(cls.canonical_path)
        if not isinstance(found, type) or not issubclass(found, msgspec.Struct):
            return
        parameters = [Parameter("self", kind=ParameterKind.positional_or_keyword)]
        positional = set(found.__match_args__)
        for field in msgspec.structs.fields(found):
            kind = ParameterKind.keyword_only
            if field.name in positional:
                kind = ParameterKind.positional_or_keyword
            annotation = None
            if field.name in cls.members:
                annotation = cls.members[field.name].annotation  # type: ignore[union-attr]
            parameter = Parameter(
                field.name, kind=kind, annotation=annotation, default=_default_of(field)
            )
            parameters.append(parameter)
        constructor = Function("__init__", parameters=Parameters(*parameters), parent=cls)
        cls.set_member("__init__", constructor)


def _default_of(field: Any) -> str | None:
    if field.required:
        return None
    if field.default is not msgspec.NODEFAULT:
        return repr(field.default)
    made = field.default_factory()
    return repr(made)
