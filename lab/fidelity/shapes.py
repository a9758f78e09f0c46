"""Shapes of requests, whatever SDK describes them: examples of each, and random ones.

`covering` gives values in which every field and every member of every union occurs at least once;
`values_of` is the hypothesis strategy of a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

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

UNKNOWN: Final = {"xUnknown": {"deep": 7}}
"""A key that no version of any wire has."""

KINDS: Final = ("type", "role")
"""Fields that say what an object is: none of them may be empty."""

NAMES: Final = ("name", "id", "tool_name", "call_id", "tool_call_id", "tool_use_id", "toolUseId")
"""Fields that say which object is meant: an empty one takes others along, and is drawn alone."""

Draw: TypeAlias = Literal["each", "zeros", "unknown"]
"""What is drawn: each value once; zero and empty values; an unknown key in each object."""
DRAWS: Final[tuple[Draw, ...]] = get_args(Draw)


def covering(shape: Shape, path: Sequence[str] = (), *, draw: Draw = "each") -> Iterator[Any]:
    """Values that together have every field and union member, wherever it may stand.

    Args:
        path: Names of the structs around the shape: one inside itself is not unfolded again.
        draw: what stands in the one place in which each value differs from the smallest.
    """
    yield from _placed(shape, draw)
    match shape:
        case Scalar():
            pass
        case Array(item):
            for value in covering(item, path, draw=draw):
                yield [value]
        case Map(value_shape):
            # its keys are the caller's: none of them is unknown
            for value in covering(value_shape, path, draw=draw):
                yield {"key": value}
        case Choice(options):
            for option in options:
                yield from covering(option, path, draw=draw)
        case Struct():
            yield from _covering_struct(shape, path, draw)


def _placed(shape: Shape, draw: Draw) -> Iterator[Any]:
    """What is drawn in the place of a shape itself."""
    if draw == "zeros":
        yield from _zeros(shape)
    elif isinstance(shape, Struct) and draw == "unknown":
        yield from _with_unknown(shape)
    elif isinstance(shape, Struct):
        yield _minimal_struct(shape, 0)
    elif isinstance(shape, Scalar) and draw == "each":
        yield from shape.values


def _covering_struct(struct: Struct, path: Sequence[str], draw: Draw) -> Iterator[dict[str, Any]]:
    if struct.name in path:
        return
    least = _minimal_struct(struct, 0)
    inner = (*path, struct.name)
    for name, entry in struct.fields.items():
        if draw == "zeros" and name in KINDS:
            continue
        for value in covering(entry.shape, inner, draw=draw):
            if struct.is_union:
                yield {name: value}
            elif draw != "each" or name not in least or value != least[name]:
                yield {**least, name: value}


def _with_unknown(struct: Struct) -> Iterator[dict[str, Any]]:
    """The smallest object with an unknown key, also of each kind that it can be."""
    least = {**_minimal_struct(struct, 0), **UNKNOWN}
    yield least
    for name in KINDS:
        entry = struct.fields.get(name)
        if entry is not None and isinstance(entry.shape, Scalar):
            for value in entry.shape.values:
                yield {**least, name: value}


def _zeros(shape: Shape) -> Iterator[Any]:
    """The zero of a shape: 0, 0.0, False, the empty text, list or object."""
    match shape:
        case Scalar(values):
            for value in values:
                # free text alone may be empty: the other texts are names, bytes, addresses
                if not isinstance(value, str) or value == "text":
                    yield type(value)()
        case Array():
            yield []
        case Map():
            yield {}
        case Struct() if not _minimal_struct(shape, 0):
            yield {}
        case _:
            pass


# --- random values ---


def values_of(shape: Shape, depth: int = 0, name: str = "") -> st.SearchStrategy[Any]:
    """The strategy of a shape: values of its type, now and then its zero, unknown keys in objects.

    Args:
        name: the field that the value is for.
    """
    zeros: list[Any] = []
    if name not in (*KINDS, *NAMES) and not isinstance(shape, Struct):
        zeros += _zeros(shape)
    match shape:
        case Scalar(values):
            # half of all texts would be empty otherwise
            return st.sampled_from((*values, *values, *values, *zeros))
        case Array(item):
            if depth > MAX_DEPTH:
                return st.just([])
            return st.lists(values_of(item, depth + 1), max_size=2)
        case Map(value):
            drawn = values_of(value, depth + 1).map(lambda drawn: {"key": drawn})
            return st.one_of(drawn, drawn, st.just({}))
        case Choice(options):
            return st.sampled_from(options).flatmap(lambda option: values_of(option, depth))
        case Struct():
            return _structs(shape, depth)


@st.composite
def _structs(draw: st.DrawFn, struct: Struct, depth: int) -> dict[str, Any]:
    if struct.is_union:
        name = draw(st.sampled_from(sorted(struct.fields)))
        return {name: draw(values_of(struct.fields[name].shape, depth + 1, name))}
    chosen = {name for name, entry in struct.fields.items() if entry.is_required}
    optional = sorted(struct.fields.keys() - chosen)
    if optional and depth <= MAX_DEPTH:
        chosen |= draw(st.sets(st.sampled_from(optional), max_size=MAX_OPTIONAL))
    value: dict[str, Any] = {}
    for name, entry in struct.fields.items():
        if name in chosen:
            value[name] = draw(values_of(entry.shape, depth + 1, name))
    if draw(st.integers(0, 9)) == 0:
        value |= UNKNOWN
    return value
