"""A JSON object that arrives as pairs of a path and a value, given out as text while it grows.

Vertex streams a call's arguments like that (`streamFunctionCallArguments`):

    $.city     "Par" …              ->  {"city":"Par
    $.city     "is"                 ->  is"
    $.days[0]  3                    ->  ,"days":[3
    the call ends                   ->  ]}

Every path is a place in the object (RFC 9535, names and indexes only). As long as the places come in document order the texts given
out join to the whole object. A place that is already behind, or a value that changes, cannot be said in text that only grows: from then on
`put` gives nothing, `replaced` is true, and `whole()` is the object. A path that leads nowhere (a gap in an array, a member of a number)
is refused with None, and changes nothing.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

DEEPEST: Final = 100
"""Longest path: protobuf's own limit for nested messages, and far below Python's for recursion."""

_SEGMENT: Final = re.compile(
    r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL
)

Path: TypeAlias = tuple[str | int, ...]


class _Leaf:
    """One value: the fragments of its JSON text, for a string without its quotes."""

    __slots__ = ("fragments", "string")

    def __init__(self, fragment: str, *, string: bool) -> None:
        self.fragments = [fragment]
        self.string = string

    def text(self) -> str:
        joined = "".join(self.fragments)
        return f'"{joined}"' if self.string else joined


Node: TypeAlias = "dict[str, Node] | list[Node] | _Leaf"


class ArgumentsByPath:
    """One growing object.

    in_string: the last string was said to go on. replaced: what was given out is not a prefix of the object any more.
    """

    def __init__(self) -> None:
        self.in_string = False
        self.replaced = False
        self._root: dict[str, Node] = {}
        self._last: Path = ()

    def put(self, path: str, value: str, *, string: bool = False, more: bool = False) -> str | None:
        """The text to give out for `value` at `path`, or None where the path cannot be applied.

        string: `value` is text, and continues the string that may be there; else it is a JSON value. more: the string goes on.
        """
        place = parse_path(path)
        if place is None:
            return None
        node, depth = self._walk(place)
        if node is None or (depth == len(place) and not isinstance(node, _Leaf)):
            return None
        fragment = json.dumps(value, ensure_ascii=False)[1:-1] if string else value
        if isinstance(node, _Leaf):
            text = self._continue(node, place, fragment, string=string, more=more)
        else:
            text = self._begin(node, place, depth, _Leaf(fragment, string=string), more=more)
        self._last, self.in_string = place, string and more
        return text

    def end_string(self, path: str) -> str:
        """The path is over without a further value: closes its string, if that is the open one."""
        if not self.in_string or parse_path(path) != self._last:
            return ""
        self.in_string = False
        return "" if self.replaced else '"'

    def finish(self) -> str:
        """The text that closes the object."""
        return ("" if self._last else "{") + self._close_to(0) + "}"

    def whole(self) -> str:
        """The object as it stands."""
        return _dumps(self._root)

    def _walk(self, place: Path) -> tuple[Node | None, int]:
        """The deepest node on the way to `place`, and how many of its segments exist; (None, …) where the way is barred."""
        node: Node = self._root
        for depth, key in enumerate(place):
            fits, child = _member(node, key)
            if not fits:
                return None, depth
            if child is None:
                gap = any(isinstance(later, int) and later for later in place[depth + 1 :])
                return None if gap else node, depth
            node = child
        return node, len(place)

    def _continue(
        self, leaf: _Leaf, place: Path, fragment: str, *, string: bool, more: bool
    ) -> str:
        """More of a string, or another value where one stands already: the last one wins."""
        if string and leaf.string:
            leaf.fragments.append(fragment)
        else:
            leaf.fragments, leaf.string = [fragment], string
        if self.replaced or not (string and self.in_string and place == self._last):
            self.replaced = True
            return ""
        return fragment if more else fragment + '"'

    def _begin(
        self,
        node: dict[str, Node] | list[Node],
        place: Path,
        depth: int,
        leaf: _Leaf,
        *,
        more: bool,
    ) -> str:
        """A new value: closes what lies between the last place and this one, then opens the way down to it."""
        self.replaced = self.replaced or depth != _shared(self._last, place)
        text = "" if self.replaced else self._close_to(depth) + ("," if self._last else "{")
        for at in range(depth, len(place)):
            child: Node = (
                leaf if at + 1 == len(place) else ({} if isinstance(place[at + 1], str) else [])
            )
            _attach(node, place[at], child)
            text += "" if self.replaced else _opening(place[at], child, more=more)
            node = child  # type: ignore[assignment]  # the last child, the leaf, is not looked at again
        return text

    def _close_to(self, depth: int) -> str:
        """Ends the open string and every container deeper than `depth`."""
        quote = '"' if self.in_string else ""
        return quote + "".join(
            "}" if isinstance(key, str) else "]" for key in reversed(self._last[depth + 1 :])
        )


def parse_path(path: str) -> Path | None:
    """`$.a['b c'][0]` -> ("a", "b c", 0); None for what is no such path, leads to the object itself or deeper than DEEPEST."""
    place: list[str | int] = []
    at = 1
    while at < len(path) and len(place) < DEEPEST:
        found = _SEGMENT.match(path, at)
        if found is None:
            return None
        key = _key(*found.groups())
        if key is None:
            return None
        place.append(key)
        at = found.end()
    return (
        tuple(place)
        if path.startswith("$") and at == len(path) and place and isinstance(place[0], str)
        else None
    )


def _key(
    name: str | None, index: str | None, single: str | None, double: str | None
) -> str | int | None:
    if name is not None:
        return name
    if index is not None:
        return int(index)
    quoted = (
        double if double is not None else (single or "").replace("\\'", "'").replace('"', '\\"')
    )
    try:
        return str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:
        return None


def _member(node: Node, key: str | int) -> tuple[bool, Node | None]:
    """Whether `node` can have a member `key`, and the member if it is there already. An array grows by one at its end."""
    if isinstance(node, dict):
        return isinstance(key, str), node.get(str(key))
    if isinstance(node, list) and isinstance(key, int):
        return key <= len(node), node[key] if key < len(node) else None
    return False, None


def _shared(one: Path, other: Path) -> int:
    """How many leading segments two paths share."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _attach(node: dict[str, Node] | list[Node], key: str | int, child: Node) -> None:
    if isinstance(node, dict):
        node[str(key)] = child
    else:
        node.append(child)


def _opening(key: str | int, child: Node, *, more: bool) -> str:
    name = json.dumps(key, ensure_ascii=False) + ":" if isinstance(key, str) else ""
    if isinstance(child, _Leaf):
        text = child.text()
        return name + (text[:-1] if child.string and more else text)
    return name + ("{" if isinstance(child, dict) else "[")


def _dumps(node: Node) -> str:
    if isinstance(node, dict):
        return (
            "{"
            + ",".join(
                f"{json.dumps(key, ensure_ascii=False)}:{_dumps(child)}"
                for key, child in node.items()
            )
            + "}"
        )
    if isinstance(node, list):
        return "[" + ",".join(_dumps(child) for child in node) + "]"
    return node.text()
