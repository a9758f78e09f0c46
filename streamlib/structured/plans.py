"""How the parts of a class are built from JSON that grows: one plan for each type.

ObjectPlan     a Struct, model, dataclass, attrs class or TypedDict: field by field
ListPlan       lists, sets, tuples of one type: element by element
DictPlan       dicts with keys of text
TextPlan       a text, which grows
AnyPlan        anything: as plain JSON, which grows
LeafPlan       what only a complete JSON value can be: numbers, dates, enums, tuples of several
               types, and everything that only the class's library knows
UnionPlan      of these one for each kind of JSON value
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import force_setattr

from streamlib.structured.libraries import made_once, type_adapter, uses_pydantic
from streamlib.structured.values import typed_value

LISTS: Final[dict[Any, Callable[[list[Any]], Any] | None]] = {
    list: None,
    Sequence: None,
    typing.Iterable: None,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}
"""Types of one element type -> what makes them of a list once it is closed."""

SIMPLE: Final = (int, float, bool, types.NoneType)
"""Types that a JSON value of exactly that type needs no library for."""


class LeafPlan:
    """A value that is built at once, from its complete JSON, by the class's library."""

    def __init__(self, kind: Any, *, by_pydantic: bool = False) -> None:
        self._kind = kind
        self._by_pydantic = by_pydantic
        self._simple = kind if kind in SIMPLE else None
        """The type, where values of it need no library."""

    def value(self, value: Any) -> Any:
        """The value of a decoded JSON value; `UNSET` if the type refuses it."""
        if type(value) is self._simple:
            return value
        return self.value_of_text(msgspec.json.encode(value).decode("utf-8"))

    def number(self, value: float, text: str) -> Any:
        """The value of a JSON number; its text is exact where a float is not."""
        if type(value) is self._simple:
            return value
        return self.value_of_text(text)

    def value_of_text(self, text: str) -> Any:
        """The value of a JSON text; `UNSET` if the type refuses it."""
        try:
            if self._by_pydantic:
                return type_adapter(self._kind).validate_json(text)
            return typed_value(text, self._kind)
        except Exception:  # noqa: BLE001  # a validator of the class may raise anything
            # A view never raises; at the end `Response.parsed` names what is wrong.
            return UNSET


class TextPlan:
    """A text, shown as far as it was received."""


class AnyPlan:
    """Any JSON value, as plain Python values."""


class ListPlan:
    """A list.

    Attributes:
        element: plan of its elements.
        close: makes the final value of the list, for tuples and sets.
    """

    def __init__(self, element: Plan, close: Callable[[list[Any]], Any] | None) -> None:
        self.element = element
        self.close = close


class DictPlan:
    """A dict.

    Attributes:
        value: plan of its values.
    """

    def __init__(self, value: Plan) -> None:
        self.value = value


class FieldPlan:
    """One field of an object.

    Attributes:
        name: its name in the class.
        plan: made at its first use, since a class may contain itself.
    """

    def __init__(self, name: str, kind: Any, *, by_pydantic: bool) -> None:
        self.name = name
        self._kind = kind
        self._by_pydantic = by_pydantic
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """Plan of its value."""
        if self._plan is None:
            self._plan = plan_of(self._kind, by_pydantic=self._by_pydantic)
        return self._plan


class ObjectPlan:
    """An object of a class.

    Attributes:
        new: makes one whose fields are all `UNSET`.
        put: sets a field, by its name in the class.
        fields: by their names in the JSON.
    """

    def __init__(
        self,
        new: Callable[[], Any],
        put: Callable[[Any, str, Any], None],
        fields: dict[str, FieldPlan],
    ) -> None:
        self.new = new
        self.put = put
        self.fields = fields


class UnionPlan:
    """A choice, decided by the kind of the JSON value.

    Attributes:
        for_object: plan of objects; a `LeafPlan` where several classes are possible.
        for_list: plan of lists, likewise.
        for_text: plan of texts, likewise.
        leaf: of every other value.
    """

    def __init__(self, for_object: Plan, for_list: Plan, for_text: Plan, leaf: LeafPlan) -> None:
        self.for_object = for_object
        self.for_list = for_list
        self.for_text = for_text
        self.leaf = leaf


Plan: TypeAlias = ObjectPlan | ListPlan | DictPlan | TextPlan | AnyPlan | LeafPlan | UnionPlan


def plan_of(kind: Any, *, by_pydantic: bool = False) -> Plan:
    """The plan of a type; made once.

    Args:
        kind: the type.
        by_pydantic: whether pydantic reads the class that it is part of.
    """
    if by_pydantic or uses_pydantic(kind):
        return made_once(_pydantic_plan, kind)
    return made_once(_msgspec_plan, kind)


def _pydantic_plan(kind: Any) -> Plan:
    return _plan(kind, by_pydantic=True)


def _msgspec_plan(kind: Any) -> Plan:
    return _plan(kind, by_pydantic=False)


def _plan(kind: Any, *, by_pydantic: bool) -> Plan:
    kind = _bare(kind)
    if kind is str:
        return TextPlan()
    if kind in (Any, object) or isinstance(kind, typing.TypeVar):
        return AnyPlan()
    origin = typing.get_origin(kind) or kind
    arguments = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(kind, arguments, by_pydantic=by_pydantic)
    listed = _list_plan(origin, arguments, by_pydantic=by_pydantic)
    if listed is not None:
        return listed
    if origin in (dict, Mapping) and (not arguments or _bare(arguments[0]) is str):
        value = arguments[1] if arguments else Any
        return DictPlan(plan_of(value, by_pydantic=by_pydantic))
    try:
        planned = _object_plan(kind, origin)
    except (NameError, TypeError, AttributeError):  # an annotation that cannot be resolved
        planned = None
    if planned is not None:
        return planned
    return LeafPlan(kind, by_pydantic=by_pydantic)


def _bare(kind: Any) -> Any:
    """The type without what says something about it: `Annotated`, aliases, `Required`."""
    while True:
        if hasattr(kind, "__metadata__"):
            kind = kind.__origin__
        elif typing.get_origin(kind) in (typing.Required, typing.NotRequired):
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__value__"):
            kind = kind.__value__
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        else:
            return kind


def _list_plan(origin: Any, arguments: tuple[Any, ...], *, by_pydantic: bool) -> ListPlan | None:
    if origin not in LISTS:
        return None
    if origin is tuple:
        if len(arguments) != 2 or arguments[1] is not Ellipsis:
            return None  # several types: complete, or not at all
        arguments = arguments[:1]
    element = arguments[0] if arguments else Any
    return ListPlan(plan_of(element, by_pydantic=by_pydantic), LISTS[origin])


def _union(kind: Any, arguments: tuple[Any, ...], *, by_pydantic: bool) -> Plan:
    leaf = LeafPlan(kind, by_pydantic=by_pydantic)
    plans: dict[str, list[Plan]] = {"object": [], "list": [], "text": []}
    for argument in arguments:
        plan = plan_of(argument, by_pydantic=by_pydantic)
        match plan:
            case ObjectPlan() | DictPlan():
                plans["object"].append(plan)
            case ListPlan():
                plans["list"].append(plan)
            case TextPlan():
                plans["text"].append(plan)
            case LeafPlan() if _bare(argument) in SIMPLE:
                pass
            case _:  # it may be of any kind
                for of_kind in plans.values():
                    of_kind.append(plan)
    chosen: dict[str, Plan] = {}
    for name, of_kind in plans.items():
        chosen[name] = of_kind[0] if len(of_kind) == 1 else leaf
    return UnionPlan(chosen["object"], chosen["list"], chosen["text"], leaf)


# --- objects ---


def _object_plan(kind: Any, origin: Any) -> ObjectPlan | None:
    """The plan of a class with fields; None for anything else."""
    if not isinstance(origin, type):
        return None
    if hasattr(origin, "__pydantic_core_schema__") and hasattr(origin, "model_fields"):
        return _model_plan(origin)
    if issubclass(origin, msgspec.Struct):
        return _struct_plan(kind, origin)
    if hasattr(origin, "__total__"):
        fields = _hinted_fields(kind, origin, list(typing.get_type_hints(origin)))
        names = [field.name for field in fields.values()]
        return ObjectPlan(lambda: dict.fromkeys(names, UNSET), dict.__setitem__, fields)
    if hasattr(origin, "__attrs_attrs__"):
        names = [attribute.name for attribute in origin.__attrs_attrs__]
    elif dataclasses.is_dataclass(origin):
        names = [field.name for field in dataclasses.fields(origin)]
    else:
        return None

    def new() -> Any:
        # Without `__init__`, whose checks are for complete objects.
        instance = object.__new__(origin)
        for name in names:
            object.__setattr__(instance, name, UNSET)
        return instance

    return ObjectPlan(new, object.__setattr__, _hinted_fields(kind, origin, names))


def _hinted_fields(kind: Any, origin: Any, names: list[str]) -> dict[str, FieldPlan]:
    """Fields of a class whose JSON has the same names."""
    hints = typing.get_type_hints(origin, include_extras=True)
    variables = getattr(origin, "__parameters__", ())
    types_of_variables = dict(zip(variables, typing.get_args(kind), strict=False))
    by_pydantic = uses_pydantic(kind)
    fields: dict[str, FieldPlan] = {}
    for name in names:
        hint = hints.get(name, Any)  # a field of attrs may have no type
        own_variables = getattr(hint, "__parameters__", ())
        if hint in types_of_variables:
            hint = types_of_variables[hint]
        elif own_variables:
            values = [types_of_variables.get(variable, variable) for variable in own_variables]
            hint = hint[tuple(values)]
        fields[name] = FieldPlan(name, hint, by_pydantic=by_pydantic)
    return fields


def _struct_plan(kind: Any, origin: Any) -> ObjectPlan | None:
    if origin.__struct_config__.array_like:
        return None  # its JSON is a list
    fields: dict[str, FieldPlan] = {}
    for field in msgspec.structs.fields(kind):
        fields[field.encode_name] = FieldPlan(field.name, field.type, by_pydantic=False)
    unset = {field.name: UNSET for field in fields.values()}
    made = origin
    if hasattr(origin, "__post_init__"):
        # Its checks are for complete objects; a Struct cannot be made without them.
        namespace = {"__post_init__": _without_checks, "__module__": origin.__module__}
        made = msgspec.defstruct(origin.__name__, [], bases=(origin,), namespace=namespace)
    return ObjectPlan(lambda: made(**unset), force_setattr, fields)


def _without_checks(struct: Any) -> None:
    """In place of a class's own ``__post_init__``."""


def _model_plan(origin: Any) -> ObjectPlan | None:
    """A pydantic model; none for a ``RootModel``, whose JSON need not be an object."""
    if not origin.__pydantic_complete__:  # it names classes that were below it
        origin.model_rebuild(raise_errors=False)
    if "root" in origin.model_fields:
        return None
    config: dict[str, Any] = origin.model_config
    takes_names = config.get("populate_by_name") or config.get("validate_by_name")
    fields: dict[str, FieldPlan] = {}
    names: list[str] = []
    for name, field in origin.model_fields.items():
        planned = FieldPlan(name, field.annotation, by_pydantic=True)
        names.append(name)
        alias = field.validation_alias or field.alias
        for key in getattr(alias, "choices", [alias or name]):
            if isinstance(key, str):
                fields[key] = planned
        if takes_names:
            fields[name] = planned

    def new() -> Any:
        # Without validation, and without `model_post_init`, which is for complete objects.
        model = origin.__new__(origin)
        object.__setattr__(model, "__dict__", dict.fromkeys(names, UNSET))
        for attribute, value in (("fields_set", set()), ("extra", None), ("private", None)):
            object.__setattr__(model, f"__pydantic_{attribute}__", value)
        return model

    return ObjectPlan(new, _put_in_model, fields)


def _put_in_model(model: Any, name: str, value: Any) -> None:
    # Past `__setattr__`, which a frozen model or `validate_assignment` refuses or checks.
    model.__dict__[name] = value
    model.__pydantic_fields_set__.add(name)
