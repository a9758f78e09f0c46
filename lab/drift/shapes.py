"""Instances of botocore's shapes, as `Instances` makes them of pydantic models."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from botocore.model import ListShape, MapShape, Shape, StructureShape

DEPTH: Final = 9
"""Shapes inside shapes beyond this depth stay empty: documents refer to themselves."""


class ShapeInstances:
    """Makes instances; the values of one `ShapeInstances` are all different."""

    def __init__(self) -> None:
        self._numbers = count(100_001)
        """The next number; a string ends with it, too."""

    def of_shape(self, shape: Shape, depth: int = 0) -> list[Any]:
        """Values of a shape: of a union one for each member, else as many as the longest field."""
        if depth > DEPTH:
            return []
        if isinstance(shape, StructureShape):
            if shape.is_document_type:
                return [{"key": self._text()}]
            if getattr(shape, "is_tagged_union", False):
                return self._of_union(shape, depth)
            return self._of_structure(shape, depth)
        if isinstance(shape, ListShape):
            return [[value] for value in self.of_shape(shape.member, depth + 1)]
        if isinstance(shape, MapShape):
            return [{"key": value} for value in self.of_shape(shape.value, depth + 1)]
        return self._of_scalar(shape)

    def _of_union(self, shape: StructureShape, depth: int) -> list[Any]:
        values: list[Any] = []
        for name, member in shape.members.items():
            values += [{name: value} for value in self.of_shape(member, depth + 1)]
        return values

    def _of_structure(self, shape: StructureShape, depth: int) -> list[Any]:
        variants: dict[str, list[Any]] = {}
        for name, member in shape.members.items():
            values = self.of_shape(member, depth + 1)
            if values:
                variants[name] = values
        longest = max((len(values) for values in variants.values()), default=1)
        instances: list[Any] = []
        for index in range(longest):
            instance = {name: values[index % len(values)] for name, values in variants.items()}
            instances.append(instance)
        return instances

    def _of_scalar(self, shape: Shape) -> list[Any]:
        values = getattr(shape, "enum", None)
        if values:
            return list(values)
        if shape.type_name == "boolean":
            return [True]
        if shape.type_name in ("integer", "long"):
            return [next(self._numbers)]
        if shape.type_name in ("float", "double"):
            return [next(self._numbers) + 0.5]
        if shape.type_name == "blob":
            return [f"{self._text()}=="]  # ten characters and their padding are valid base64
        return [self._text()]

    def _text(self) -> str:
        return f"word{next(self._numbers)}"
