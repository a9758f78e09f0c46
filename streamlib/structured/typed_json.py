"""JSON text that grows, as a partial object of a class.

    view = TypedJson(City)
    view.feed('{"name": "Os')
    view.partial()          City(name='Os', people=UNSET)
    view.feed('lo", "people": 70')
    view.partial()          City(name='Oslo', people=UNSET)
    view.feed('0000}')
    view.partial()          City(name='Oslo', people=700000)

It is a real object of the class, made without its validation: the same one each time, which grows.
Every view costs what is new in the text, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET

from streamlib.structured.fence import OpeningFence
from streamlib.structured.libraries import check_readable
from streamlib.structured.plans import (
    AnyPlan,
    DictPlan,
    LeafPlan,
    ListPlan,
    ObjectPlan,
    Plan,
    TextPlan,
    UnionPlan,
    plan_of,
)
from streamlib.structured.schemas import WRAPPER_KEY
from streamlib.structured.values import is_object
from streamlib_parsers.json_reader import JsonReader

T = TypeVar("T")


class TypedJson(Generic[T]):
    """One growing JSON text, read as a class."""

    def __init__(self, kind: type[T]) -> None:
        """Args:
        kind: a pydantic model, a msgspec Struct, a dataclass, a TypedDict, an attrs class, or a
            type made of them.

        Raises:
            TypeError: the class's library cannot read the class.
        """
        check_readable(kind)
        self._fence = OpeningFence()
        self._unread: list[str] = []
        """Fragments since the last `partial`."""
        self._reader = _TypedReader(kind)

    def feed(self, text: str) -> None:
        """Appends a fragment."""
        self._unread.append(text)

    def partial(self) -> T:
        """The object as far as it is certain; never raises.

        Fields that are not there yet, or that their types refuse, are `UNSET`. Texts grow; numbers,
        dates, enums and the like appear once they are complete. Not to be changed by the caller.
        """
        if self._unread:
            self._reader.read(self._fence.feed("".join(self._unread)))
            self._unread.clear()
        return cast("T", self._reader.value())


class _Node:
    """An open container, or what holds the root.

    Attributes:
        plan: how its elements are built; None for a container that is not shown.
        target: the object, list or dict that is filled.
        closes_into: node and key of a value that is set, as the third says, once it is closed.
    """

    __slots__ = ("closes_into", "is_wrapper", "plan", "target")

    def __init__(self, plan: Plan | None, target: Any) -> None:
        self.plan = plan
        self.target = target
        self.closes_into: tuple[_Node, Any, Callable[[Any], Any]] | None = None
        self.is_wrapper = False
        """Whether it may be the object around a value that is not an object."""

    def put(self, key: Any, value: Any) -> None:
        """Sets what is at a key; `UNSET` is nothing to set."""
        if value is UNSET:
            return
        if isinstance(self.plan, ObjectPlan):
            self.plan.put(self.target, key, value)
        elif isinstance(self.target, list) and key == len(self.target):
            self.target.append(value)
        else:
            self.target[key] = value


class _TypedReader(JsonReader):
    """Builds values by plan instead of plain JSON."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._root_plan = plan_of(kind)
        self._top = _Node(AnyPlan(), {"": _empty(self._root_plan)})
        """Holds the root, so that it stands somewhere like every other value."""
        self._open: list[_Node] = []
        """Open containers, the innermost last; parallel to `_stack`."""
        self._may_be_wrapped = not is_object(kind)
        self._hidden_string: tuple[_Node, Any, LeafPlan] | None = None
        """Node, key and plan of an open string that appears at its end."""

    def value(self) -> Any:
        if self._slot is not None:
            self._show_open_string()
        return self._top.target[""]

    def _next(self) -> tuple[_Node, Plan | None, Any]:
        """Node, plan and key of the next value; no plan for a value that is not shown."""
        if not self._open:
            return self._top, self._root_plan, ""
        node = self._open[-1]
        if node.is_wrapper:
            if self._key == WRAPPER_KEY:
                return self._top, self._root_plan, ""
            self._unwrap(node)
        plan = node.plan
        if isinstance(plan, ObjectPlan):
            field = plan.fields.get(self._key)
            if field is None:
                return node, None, ""
            return node, field.plan, field.name
        if isinstance(plan, ListPlan):
            return node, plan.element, len(node.target)
        if isinstance(plan, DictPlan):
            return node, plan.value, self._key
        if isinstance(node.target, list):
            return node, plan, len(node.target)
        return node, plan, self._key

    def _unwrap(self, node: _Node) -> None:
        """The object at the root is the value itself: its first key is not that of a wrapper."""
        node.is_wrapper = False
        opened = self._node_of(self._root_plan, {}, self._top, "")
        node.plan, node.target = opened.plan, opened.target
        node.closes_into = opened.closes_into

    # --- containers ---

    def _begin_container(self, container: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        parent, plan, key = self._next()
        is_root = not self._open
        if is_root and self._may_be_wrapped and isinstance(container, dict):
            node = _Node(None, container)
            node.is_wrapper = True
        else:
            node = self._node_of(plan, container, parent, key)
        self._open.append(node)
        return container

    def _node_of(
        self, plan: Plan | None, container: dict[str, Any] | list[Any], parent: _Node, key: Any
    ) -> _Node:
        """The node of a container that opens, shown in its parent where its plan allows it."""
        if isinstance(plan, UnionPlan):
            plan = plan.for_object if isinstance(container, dict) else plan.for_list
        target: Any = container
        if isinstance(plan, LeafPlan):  # collected as plain JSON, and built at its end
            node = _Node(AnyPlan(), container)
            node.closes_into = (parent, key, plan.value)
            return node
        if isinstance(plan, ObjectPlan) and isinstance(container, dict):
            target = plan.new()
        elif not (
            isinstance(plan, AnyPlan)
            or (isinstance(plan, ListPlan) and isinstance(container, list))
            or (isinstance(plan, DictPlan) and isinstance(container, dict))
        ):
            return _Node(None, container)  # not what the type wants
        if parent is self._top and self._top.target[""] is not UNSET:
            target = self._top.target[""]  # it is there from the start
        parent.put(key, target)
        node = _Node(plan, target)
        if isinstance(plan, ListPlan) and plan.close is not None:
            node.closes_into = (parent, key, plan.close)
        return node

    def _end_container(self) -> None:
        super()._end_container()
        node = self._open.pop()
        if node.closes_into is None:
            return
        parent, key, close = node.closes_into
        try:
            parent.put(key, close(node.target))
        except TypeError:  # a set of what cannot be in a set: it stays a list
            return

    # --- other values ---

    def _attach(self, value: Any) -> tuple[Any, Any]:
        node, plan, key = self._next()
        if isinstance(plan, UnionPlan):
            plan = plan.leaf
        if isinstance(plan, AnyPlan):
            node.put(key, value)
        elif isinstance(plan, LeafPlan):
            node.put(key, plan.value(value))
        return node, key

    def _attach_number(self, text: str) -> None:
        value = msgspec.json.decode(text)
        node, plan, key = self._next()
        if isinstance(plan, UnionPlan):
            plan = plan.leaf
        if isinstance(plan, AnyPlan):
            node.put(key, value)
        elif isinstance(plan, LeafPlan):
            node.put(key, plan.number(value, text))

    def _begin_string(self) -> None:
        self._hidden_string = None
        node, plan, key = self._next()
        if isinstance(plan, UnionPlan):
            plan = plan.for_text
        if isinstance(plan, (TextPlan, AnyPlan)):
            node.put(key, "")
            self._slot = (node, key)
        elif isinstance(plan, LeafPlan):
            self._hidden_string = (node, key, plan)

    def _show_open_string(self) -> None:
        if self._slot is not None:
            node, key = self._slot
            node.put(key, self._fragments.joined())

    def _end_string(self) -> None:
        if self._hidden_string is not None:
            node, key, plan = self._hidden_string
            node.put(key, plan.value(self._fragments.joined()))
        self._show_open_string()


def _empty(plan: Plan) -> Any:
    """The root before any text: an object without fields, a list without elements."""
    match plan:
        case ObjectPlan():
            return plan.new()
        case ListPlan():
            return []
        case DictPlan():
            return {}
        case _:
            return UNSET
