"""The request types of the official SDKs as shapes: TypedDicts, pydantic models, botocore shapes.

Values are plausible for their type: the members of a Literal, else what `Values` names for the
field, else a short text or number.
"""

from __future__ import annotations

import collections.abc
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import typing_extensions

from lab.fidelity.shapes import Array, Choice, Field, Map, Scalar, Shape, Struct

Values: TypeAlias = Mapping[str, tuple[Any, ...]]
"""Values of texts and numbers: by `Struct.field`, else by the name of the field."""

BASE64: Final = ("AAAA",)
"""Bytes of no known format, so that no media type contradicts them."""
PLAIN: Final[dict[Any, tuple[Any, ...]]] = {
    str: ("text",),
    int: (3,),
    float: (0.5,),
    bool: (True, False),
    # a file, or base64 of it
    bytes: BASE64,
    # any JSON value: an object shows whether keys survive
    object: ({"any": [1.0]},),
    Any: ({"any": [1.0]},),
}
BOTOCORE_PLAIN: Final = {
    "structure": object,  # of any form: a document
    "blob": bytes,
    "boolean": bool,
    "double": float,
    "float": float,
    "integer": int,
    "long": int,
}
LISTS: Final = (list, collections.abc.Sequence, collections.abc.Iterable)
LITERALS: Final = (typing.Literal, typing_extensions.Literal)
MAPPINGS: Final = (dict, collections.abc.Mapping)


class TypeReader:
    """Reads the types of one SDK.

    Args:
        values: Of texts and numbers, see `Values`.
        left_out: Fields that are no part of the body, as `Struct.field` or by their name, and
            names of types: headers, and what the SDK itself replaces.
        has_models: pydantic models are types of requests; otherwise those of responses, which
            stand beside the TypedDicts in some unions.
    """

    def __init__(
        self,
        values: Values,
        left_out: frozenset[str] = frozenset(),
        *,
        has_models: bool = False,
    ) -> None:
        self._values = values
        self._left_out = left_out
        self._has_models = has_models
        self._structs: dict[Any, Struct] = {}
        """Read once each, so that types may refer to themselves."""

    def struct(self, kind: type[Any]) -> Struct:
        """A TypedDict or a pydantic model."""
        if kind not in self._structs:
            read = self._fields_of_model if hasattr(kind, "model_fields") else self._fields_of_dict
            self._structs[kind] = Struct(kind.__name__, lambda: read(kind))
        return self._structs[kind]

    def _fields_of_dict(self, kind: type[Any]) -> dict[str, Field]:
        fields: dict[str, Field] = {}
        required_keys: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        for name, hint in hints.items():
            qualifier = typing.get_origin(hint)
            # under deferred annotations, the class does not know what `Required` says
            is_required = qualifier is typing_extensions.Required
            if qualifier in (typing_extensions.Required, typing_extensions.NotRequired):
                hint = typing.get_args(hint)[0]  # noqa: PLW2901
            else:
                is_required = name in required_keys and kind.__total__
            self._add(fields, kind.__name__, name, hint, is_required=is_required)
        return fields

    def _fields_of_model(self, kind: type[Any]) -> dict[str, Field]:
        fields: dict[str, Field] = {}
        for name, info in kind.model_fields.items():  # type: ignore[attr-defined]
            alias = info.serialization_alias or info.alias or name
            self._add(fields, kind.__name__, alias, info.annotation, is_required=info.is_required())
        return fields

    def _add(
        self, fields: dict[str, Field], kind: str, name: str, hint: Any, *, is_required: bool
    ) -> None:
        if {name, f"{kind}.{name}"} & self._left_out:
            return
        fields[name] = Field(self._shape(hint, kind, name), is_required)

    def _shape(self, hint: Any, kind: str, name: str) -> Shape:
        if isinstance(hint, typing_extensions.TypeAliasType):
            hint = hint.__value__
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is None:
            return self._plain(hint, kind, name)
        if origin is typing.Annotated:
            return self._shape(arguments[0], kind, name)
        if origin in LITERALS:
            return Scalar(arguments)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments, kind, name)
        if origin in MAPPINGS:
            return Map(self._shape(arguments[1], kind, name))
        if origin in LISTS or origin.__name__ == "SequenceNotStr":
            return Array(self._shape(arguments[0], kind, name))
        # a file, or a path of one
        return Scalar(BASE64)

    def _plain(self, hint: Any, kind: str, name: str) -> Shape:
        """The shape of a type without arguments."""
        if typing_extensions.is_typeddict(hint) or hasattr(hint, "model_fields"):
            return self.struct(hint)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return Scalar(tuple(member.value for member in hint))
        for key in (f"{kind}.{name}", name):
            if key in self._values:
                return Scalar(self._values[key])
        if hint in PLAIN:
            return Scalar(PLAIN[hint])
        # bytes, files, dates: a text on the wire
        return Scalar(BASE64)

    def _union(self, options: tuple[Any, ...], kind: str, name: str) -> Shape:
        shapes: list[Shape] = []
        for option in options:
            if self._is_left_out(option):
                continue
            # a name that any text may extend: its literals are enough, or `Values` names some
            if option is str and _has_literals(options):
                if name in self._values:
                    return Scalar(self._values[name])
                continue
            shape = self._shape(option, kind, name)
            if shape not in shapes:
                shapes.append(shape)
        if len(shapes) == 1:
            return shapes[0]
        return Choice(tuple(shapes))

    def _is_left_out(self, option: Any) -> bool:
        # None is what a field that is absent says, too
        if option is type(None):
            return True
        # google-genai: any other text in a union of literals
        if getattr(option, "__name__", "") == "UnrecognizedStr":
            return True
        if typing.get_origin(option) is typing.Annotated:
            option = typing.get_args(option)[0]
        members = typing.get_args(option) or (option,)
        is_model = any(hasattr(member, "model_fields") for member in members)
        return is_model and not self._has_models


def _has_literals(options: tuple[Any, ...]) -> bool:
    """Whether a union has a member of literals."""
    return any(typing.get_origin(option) in LITERALS for option in options)


class BotocoreReader:
    """Reads the shapes of a botocore service."""

    def __init__(self, values: Values, left_out: frozenset[str] = frozenset()) -> None:
        self._values = values
        self._left_out = left_out
        self._structs: dict[str, Struct] = {}
        """Read once each, so that shapes may refer to themselves."""

    def struct(self, shape: Any) -> Struct:
        """A structure; of a union, exactly one member is set."""
        if shape.name not in self._structs:
            self._structs[shape.name] = Struct(
                shape.name,
                lambda: self._fields(shape),
                is_union=bool(getattr(shape, "is_tagged_union", False)),
            )
        return self._structs[shape.name]

    def _fields(self, shape: Any) -> dict[str, Field]:
        fields: dict[str, Field] = {}
        for name, member in shape.members.items():
            if {name, f"{shape.name}.{name}"} & self._left_out:
                continue
            inner = self._shape(member, shape.name, name)
            fields[name] = Field(inner, name in shape.required_members)
        return fields

    def _shape(self, shape: Any, kind: str, name: str) -> Shape:
        if shape.type_name not in ("list", "map"):
            for key in (f"{kind}.{name}", name):
                if key in self._values:
                    return Scalar(self._values[key])
        match shape.type_name:
            case "structure" if not getattr(shape, "is_document_type", False):
                return self.struct(shape)
            case "list":
                return Array(self._shape(shape.member, kind, name))
            case "map":
                return Map(self._shape(shape.value, kind, name))
            case "string":
                return Scalar(tuple(shape.enum) or PLAIN[str])
            case plain:
                return Scalar(PLAIN[BOTOCORE_PLAIN[plain]])
