"""Shapes of requests, whatever SDK describes them: examples of each, and random ones.

`covering` gives values in which every field and every member of every union occurs at least once;
`values_of` is the hypothesis strategy of a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

MAX_DEPTH: Final = 12
"""Structs inside one another, beyond which only required fields are drawn."""
MAX_OPTIONAL: Final = 4
"""Optional fields that a random struct has at most."""


@dataclass(frozen=True)
class Scalar:
    """One of some values that stand for a type: its literals, or a plausible text or number."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Array:
    """A list."""

    item: Shape


@dataclass(frozen=True)
class Map:
    """An object with keys of the caller's choice."""

    value: Shape


@dataclass(frozen=True)
class Field:
    """A field of a struct."""

    shape: Shape
    is_required: bool


@dataclass(frozen=True)
class Choice:
    """A union."""

    options: tuple[Shape, ...]


@dataclass(frozen=True, eq=False)
class Struct:
    """An object with known fields. They are read at first use, since types refer to themselves."""

    name: str
    read_fields: Callable[[], Mapping[str, Field]] = field(repr=False)
    is_union: bool = False
    """Exactly one field is set (botocore)."""

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields by name."""
        return self.read_fields()


Shape: TypeAlias = Scalar | Array | Map | Choice | Struct


def structs_of(shape: Shape) -> dict[str, Struct]:
    """Every struct that a shape reaches, by name."""
    found: dict[str, Struct] = {}
    pending = [shape]
    while pending:
        match pending.pop():
            case Scalar():
                pass
            case Array(item):
                pending.append(item)
            case Map(value):
                pending.append(value)
            case Choice(options):
                pending.extend(options)
            case Struct() as struct:
                if struct.name not in found:
                    found[struct.name] = struct
                    pending.extend(entry.shape for entry in struct.fields.values())
    return found


# --- the smallest value ---


def minimal(shape: Shape, depth: int = 0) -> Any:
    """The smallest value: required fields alone, the first member of each union."""
    match shape:
        case Scalar(values):
            return values[0]
        case Array(item):
            # a type that requires itself would never end
            return [] if depth > MAX_DEPTH else [minimal(item, depth + 1)]
        case Map(value):
            return {"key": minimal(value, depth + 1)}
        case Choice(options):
            return minimal(options[0], depth)
        case Struct():
            return _minimal_struct(shape, depth)


def _minimal_struct(struct: Struct, depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, entry in struct.fields.items():
        if entry.is_required:
            value[name] = minimal(entry.shape, depth + 1)
    if struct.is_union:
        name, entry = next(iter(struct.fields.items()))
        value[name] = minimal(entry.shape, depth + 1)
    return value


# --- each field once ---


def covering(shape: Shape, path: Sequence[str] = ()) -> Iterator[Any]:
    """Values that together have every field and union member, wherever it may stand.

    Args:
        path: Names of the structs around the shape: one inside itself is not unfolded again.
    """
    match shape:
        case Scalar(values):
            yield from values
        case Array(item):
            for value in covering(item, path):
                yield [value]
        case Map(value_shape):
            for value in covering(value_shape, path):
                yield {"key": value}
        case Choice(options):
            for option in options:
                yield from covering(option, path)
        case Struct():
            yield from _covering_struct(shape, path)


def _covering_struct(struct: Struct, path: Sequence[str]) -> Iterator[dict[str, Any]]:
    least = _minimal_struct(struct, 0)
    yield least
    if struct.name in path:
        return
    inner = (*path, struct.name)
    for name, entry in struct.fields.items():
        for value in covering(entry.shape, inner):
            if struct.is_union:
                yield {name: value}
            elif name not in least or value != least[name]:
                yield {**least, name: value}


# --- zeros ---


def zeros_of(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """The value with one of its leaves, or one of its lists, replaced by the zero of its type.

    Returns:
        Pairs of the JSON pointer of the zero, and the value with it.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            for path, zeroed in zeros_of(inner, f"{pointer}/{key}"):
                yield path, {**value, key: zeroed}
    elif isinstance(value, list):
        yield pointer, []
        for index, inner in enumerate(value):
            for path, zeroed in zeros_of(inner, f"{pointer}/{index}"):
                yield path, [*value[:index], zeroed, *value[index + 1 :]]
    else:
        zero = _zero_of(value)
        if zero is not None:
            yield pointer, zero


def _zero_of(scalar: object) -> Any:
    for kind in (bool, int, float):
        if isinstance(scalar, kind):
            return kind()
    # free text: the other texts are one of a list
    return "" if scalar == "text" else None


# --- random values ---


def values_of(shape: Shape, depth: int = 0) -> st.SearchStrategy[Any]:
    """The strategy of a shape."""
    match shape:
        case Scalar(values):
            return st.sampled_from(values)
        case Array(item):
            if depth > MAX_DEPTH:
                return st.just([])
            return st.lists(values_of(item, depth + 1), min_size=1, max_size=2)
        case Map(value):
            return values_of(value, depth + 1).map(lambda drawn: {"key": drawn})
        case Choice(options):
            return st.sampled_from(options).flatmap(lambda option: values_of(option, depth))
        case Struct():
            return _structs(shape, depth)


@st.composite
def _structs(draw: st.DrawFn, struct: Struct, depth: int) -> dict[str, Any]:
    if struct.is_union:
        name = draw(st.sampled_from(sorted(struct.fields)))
        return {name: draw(values_of(struct.fields[name].shape, depth + 1))}
    chosen = {name for name, entry in struct.fields.items() if entry.is_required}
    optional = sorted(struct.fields.keys() - chosen)
    if optional and depth <= MAX_DEPTH:
        chosen |= draw(st.sets(st.sampled_from(optional), max_size=MAX_OPTIONAL))
    value: dict[str, Any] = {}
    for name, entry in struct.fields.items():
        if name in chosen:
            value[name] = draw(values_of(entry.shape, depth + 1))
    return value
