"""Instances of an SDK's pydantic models: every field set, every member of every union used.

Every string and every number is unique, so that its way through a parser can be followed.
"""

from __future__ import annotations

import datetime as dt
import enum
import types
import typing
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from pydantic import BaseModel

DEPTH: Final = 6
"""Models inside models beyond this depth stay empty: some refer to themselves."""

JSON_TEXTS: Final = ("arguments", "partial_json")
"""Fields whose string must be JSON, or the parser rightly calls the item incomplete."""


class Instances:
    """Makes instances; the values of one `Instances` are all different."""

    def __init__(self, *, by_alias: bool = False) -> None:
        self._numbers = count(100_001)
        """The next number; a string ends with it, too."""
        self._by_alias = by_alias
        """Whether fields have their alias's name (google-genai: camel case on the wire)."""

    def of_model(self, model: type[BaseModel], depth: int = 0) -> list[dict[str, Any]]:
        """Instances of a model: as many as its longest list of variants of one field."""
        variants: dict[str, list[Any]] = {}
        for name, field in model.model_fields.items():
            key = name
            if self._by_alias and field.alias:
                key = field.alias
            values = self.of_type(field.annotation, name, depth + 1)
            if values:
                variants[key] = values
        longest = max((len(values) for values in variants.values()), default=1)
        instances: list[dict[str, Any]] = []
        for index in range(longest):
            instance = {key: values[index % len(values)] for key, values in variants.items()}
            instances.append(instance)
        return instances

    def of_type(self, annotation: Any, name: str, depth: int) -> list[Any]:
        """Values of a type; none where only `None` fits, or where it is too deep."""
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            return self.of_type(typing.get_args(annotation)[0], name, depth)
        if origin is typing.Union or origin is types.UnionType:
            return list(self._of_union(typing.get_args(annotation), name, depth))
        if origin is typing.Literal:
            return list(typing.get_args(annotation))
        if origin in (list, typing.Sequence, tuple):
            return self._of_list(typing.get_args(annotation), name, depth)
        if origin is dict or annotation is dict:
            return [{"key": self._text(name)}]
        if isinstance(annotation, type):
            return self._of_class(annotation, name, depth)
        return [self._text(name)]

    def _of_union(self, members: tuple[Any, ...], name: str, depth: int) -> Iterator[Any]:
        for member in members:
            if member is not type(None):
                yield from self.of_type(member, name, depth)

    def _of_list(self, members: tuple[Any, ...], name: str, depth: int) -> list[Any]:
        values = self.of_type(members[0] if members else str, name, depth)
        # One element a list: an element that fails must not hide the others.
        return [[value] for value in values]

    def _of_class(self, cls: type, name: str, depth: int) -> list[Any]:
        if issubclass(cls, BaseModel):
            if depth > DEPTH:
                return []
            return list(self.of_model(cls, depth))
        if issubclass(cls, enum.Enum):
            return [member.value for member in cls]
        if cls is type(None):
            return []
        return [self._scalar(cls, name)]

    def _scalar(self, cls: type, name: str) -> Any:
        if issubclass(cls, bool):
            return True
        if issubclass(cls, int):
            return next(self._numbers)
        if issubclass(cls, float):
            return next(self._numbers) + 0.5
        if issubclass(cls, dt.datetime):
            return f"2026-11-22T10:00:00.{next(self._numbers)}Z"
        return self._text(name)

    def _text(self, name: str) -> str:
        number = next(self._numbers)
        if name in JSON_TEXTS:
            return f'{{"key":"word{number}"}}'
        return f"word{number}"
