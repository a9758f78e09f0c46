"""Which library reads a class: pydantic, where a part of it is made with pydantic; else msgspec."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import typing
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

R = TypeVar("R")

PYDANTIC_HOOKS: Final = ("__pydantic_core_schema__", "__get_pydantic_core_schema__")
"""Attributes of models, of pydantic's dataclasses, and of types and metadata made for pydantic."""

PYDANTIC_PACKAGES: Final = ("pydantic", "annotated_types")
"""Packages whose metadata (`Annotated[int, Field(gt=0)]`) only pydantic reads."""


def uses_pydantic(kind: Any) -> bool:
    """Whether a class, or a class inside it, is made with pydantic."""
    return made_once(_has_pydantic, kind)


def check_readable(kind: Any) -> None:
    """Checks, before any text was received, that the class's library can read the class.

    Raises:
        TypeError: it cannot read the class.
    """
    if uses_pydantic(kind):
        type_adapter(kind)
    else:
        json_decoder(kind)


def msgspec_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema that msgspec makes of a class.

    Raises:
        TypeError: it makes none.
    """
    try:
        return msgspec.json.schema(kind)
    except (NameError, KeyError) as error:  # an annotation that cannot be resolved, or is missing
        raise TypeError(str(error)) from error
    except NotImplementedError as error:  # its text asks for an issue, and names no attribute
        raise TypeError(_computed_default(kind, set()) or str(error)) from error


def _has_pydantic(kind: Any) -> bool:
    return _uses_pydantic(kind, set())


def _uses_pydantic(kind: Any, seen: set[int]) -> bool:
    if id(kind) in seen:  # a class that refers to itself
        return False
    seen.add(id(kind))
    if any(hasattr(kind, name) for name in PYDANTIC_HOOKS):
        return True
    for metadata in getattr(kind, "__metadata__", ()):
        package = type(metadata).__module__.partition(".")[0]
        if package in PYDANTIC_PACKAGES or _uses_pydantic(metadata, seen):
            return True
    return any(_uses_pydantic(inner, seen) for inner in _inner_types(kind))


def _inner_types(kind: Any) -> list[Any]:
    """The types that a type is made of; of a Struct none, since msgspec reads it in any case."""
    if hasattr(kind, "__metadata__"):  # Annotated
        return [kind.__origin__]
    for name in ("__value__", "__supertype__"):  # `type X = …`, NewType
        inner = getattr(kind, name, None)
        if inner is not None:
            return [inner]
    origin = typing.get_origin(kind)
    if origin is not None:
        return [origin, *typing.get_args(kind)]
    has_fields = (
        dataclasses.is_dataclass(kind)
        or hasattr(kind, "__total__")  # TypedDict, of typing and of typing_extensions
        or hasattr(kind, "__attrs_attrs__")
        or (isinstance(kind, type) and issubclass(kind, tuple))
    )
    return _field_types(kind) if has_fields else []


def _field_types(kind: Any) -> list[Any]:
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):  # a name that cannot be resolved: the library's error names it
        return []


def _computed_default(kind: Any, seen: set[int]) -> str:
    """Which attribute of an attrs class has a default made from the object; "" if none has.

    msgspec fills in defaults while it reads, when there is no object of the class yet.
    """
    if id(kind) in seen:  # a class that refers to itself
        return ""
    seen.add(id(kind))
    for attribute in getattr(kind, "__attrs_attrs__", ()):
        if getattr(attribute.default, "takes_self", False):
            return (
                f"the default of {kind.__name__}.{attribute.name} is computed from the object "
                "(attrs.Factory with takes_self=True)"
            )
    is_struct = hasattr(kind, "__struct_fields__")
    inner_types = _field_types(kind) if is_struct else _inner_types(kind)
    for inner in inner_types:
        default = _computed_default(inner, seen)
        if default:
            return default
    return ""


def type_adapter(kind: Any) -> Any:
    """pydantic's reader of a class: a ``TypeAdapter``.

    Raises:
        TypeError: pydantic cannot read it, or is not installed.
    """
    return made_once(_new_adapter, kind)


def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """msgspec's reader of a class.

    Raises:
        TypeError: msgspec cannot read it.
    """
    return made_once(_new_decoder, kind)


def _new_adapter(kind: Any) -> Any:
    try:
        # By name: streamlib needs no pydantic, and the class cannot exist without it.
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise TypeError(f"{kind!r:.100} needs pydantic, which is not installed") from None
    try:
        return pydantic.TypeAdapter(kind)
    except pydantic.errors.PydanticErrorMixin as error:
        raise TypeError(f"pydantic cannot read {kind!r:.100}: {error}") from error


def _new_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    try:
        msgspec_schema(kind)  # a decoder for a class unknown to msgspec would refuse all JSON
    except TypeError as error:
        raise TypeError(f"msgspec cannot read {kind!r:.100}: {error}") from error
    return msgspec.json.Decoder(kind)


@functools.lru_cache(maxsize=256)
def _remembered(make: Callable[[Any], Any], kind: Any) -> Any:
    return make(kind)


def made_once(make: Callable[[Any], R], kind: Any) -> R:
    """The result of a function for a class, cached: readers and schemas are costly to make."""
    try:
        hash(kind)
    except TypeError:  # metadata of an annotation may be unhashable
        return make(kind)
    made: R = _remembered(make, kind)
    return made
