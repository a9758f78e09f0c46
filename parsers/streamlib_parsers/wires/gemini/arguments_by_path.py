"""A JSON object received as pairs of a path and a value, emitted as text that only grows.

Vertex streams a call's arguments like that (``streamFunctionCallArguments``):

    $.city     "Par" …              ->  {"city":"Par
    $.city     "is"                 ->  is"
    $.days[0]  3                    ->  ,"days":[3
    the call ends                   ->  ]}

A path names a value in the object (RFC 9535, names and indexes only). While the paths come in
document order, the emitted texts join to the complete object. An earlier path, or a value that
changes, cannot be emitted as text that only grows: from then on `put` returns "", `replaced` is
true, and `object_text()` is the object. A path that cannot be applied (a gap in an array, a member
of a number) is rejected with None and changes nothing.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

MAX_PATH_LENGTH: Final = 100
"""Segments: protobuf's own limit for nested messages, far below Python's limit for recursion."""

_SEGMENT: Final = re.compile(
    r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL
)

Path: TypeAlias = tuple[str | int, ...]


class _Leaf:
    """One value: the fragments of its JSON text, those of a string without its quotes."""

    __slots__ = ("fragments", "is_string")

    def __init__(self, fragment: str, *, is_string: bool) -> None:
        self.fragments = [fragment]
        self.is_string = is_string

    def text(self) -> str:
        joined = "".join(self.fragments)
        if self.is_string:
            return f'"{joined}"'
        return joined


Container: TypeAlias = "dict[str, Node] | list[Node]"
Node: TypeAlias = "Container | _Leaf"


class ArgumentsByPath:
    """One object while it is received."""

    def __init__(self) -> None:
        self.in_string = False
        """The last value is a string that continues; its closing quote was not emitted."""
        self.replaced = False
        """The emitted text is no longer a prefix of the object; stays true."""
        self._root: dict[str, Node] = {}
        """The object so far."""
        self._last: Path = ()
        """The path of the last value: all that is open in the emitted text is on this path."""

    def put(
        self, path: str, value: str, *, is_string: bool = False, more: bool = False
    ) -> str | None:
        """Set or continue the value at `path`.

        Args:
            path: JSON path of the value.
            value: text of a string, or a JSON value.
            is_string: `value` is text; it continues the string at `path`, if there is one.
            more: the string continues in a later call.

        Returns:
            The text to emit, or None if the path cannot be applied.
        """
        segments = parse_path(path)
        if segments is None:
            return None
        node, depth = self._walk(segments)
        if node is None:
            return None
        fragment = value  # a JSON value keeps the provider's bytes
        if is_string:
            fragment = json.dumps(value, ensure_ascii=False)[1:-1]  # without the quotes
        if isinstance(node, _Leaf):
            text = self._continue(node, segments, fragment, is_string=is_string, more=more)
        elif depth == len(segments):
            return None  # the path leads to a container
        else:
            leaf = _Leaf(fragment, is_string=is_string)
            text = self._insert(node, segments, depth, leaf, more=more)
        self._last = segments
        self.in_string = is_string and more
        return text

    def end_string(self, path: str) -> str:
        """End the string at `path`, if it is the one that continues; returns the text to emit."""
        if not self.in_string or parse_path(path) != self._last:
            return ""
        self.in_string = False
        if self.replaced:
            return ""
        return '"'

    def finish(self) -> str:
        """The text that closes the object."""
        if not self._last:
            return "{}"
        return self._close_to(0) + "}"

    def object_text(self) -> str:
        """The object so far, as JSON."""
        return _dumps(self._root)

    def _walk(self, path: Path) -> tuple[Node | None, int]:
        """The deepest existing node on `path`, and its depth; None if it cannot be applied."""
        node: Node = self._root
        for depth, key in enumerate(path):
            if not _accepts(node, key):
                return None, depth
            child = _child(node, key)
            if child is None:
                if any(isinstance(later, int) and later > 0 for later in path[depth + 1 :]):
                    return None, depth  # a new array begins with index 0
                return node, depth
            node = child
        return node, len(path)

    def _continue(
        self, leaf: _Leaf, path: Path, fragment: str, *, is_string: bool, more: bool
    ) -> str:
        """Continue a string, or replace an existing value: the last one wins."""
        if is_string and leaf.is_string:
            leaf.fragments.append(fragment)
        else:  # another type of value: it is not continued, but replaced
            leaf.fragments = [fragment]
            leaf.is_string = is_string
        continues = is_string and self.in_string and path == self._last
        if self.replaced or not continues:
            self.replaced = True
            return ""
        if more:
            return fragment
        return fragment + '"'

    def _insert(self, node: Container, path: Path, depth: int, leaf: _Leaf, *, more: bool) -> str:
        """Add a new value; returns what closes the last one and opens the way down to this one."""
        # In document order the new value branches off where the last path does.
        if depth != _shared_length(self._last, path):
            self.replaced = True
        texts = [self._close_to(depth), "," if self._last else "{"]
        parent = node
        for position in range(depth, len(path) - 1):
            child: Container = {}
            if isinstance(path[position + 1], int):
                child = []
            _attach(parent, path[position], child)
            texts.append(_key_text(path[position]))
            texts.append("{" if isinstance(child, dict) else "[")
            parent = child
        _attach(parent, path[-1], leaf)
        if self.replaced:
            return ""
        text = leaf.text()
        if leaf.is_string and more:
            text = text[:-1]  # the closing quote follows the last fragment
        return "".join(texts) + _key_text(path[-1]) + text

    def _close_to(self, depth: int) -> str:
        """The text that ends the open string and every container deeper than `depth`."""
        text = ""
        if self.in_string:
            text = '"'
        for key in reversed(self._last[depth + 1 :]):
            text += "}" if isinstance(key, str) else "]"
        return text


def parse_path(path: str) -> Path | None:
    """The segments of a path: `$.a['b c'][0]` -> ("a", "b c", 0).

    Returns None for anything else, for the path of the object itself, and for one of more than
    `MAX_PATH_LENGTH` segments.
    """
    if not path.startswith("$"):
        return None
    segments: list[str | int] = []
    offset = 1
    while offset < len(path):
        match = _SEGMENT.match(path, offset)
        if match is None or len(segments) >= MAX_PATH_LENGTH:
            return None
        key = _key_of(match)
        if key is None:
            return None
        segments.append(key)
        offset = match.end()
    if not segments or isinstance(segments[0], int):  # the root is an object
        return None
    return tuple(segments)


def _key_of(match: re.Match[str]) -> str | int | None:
    """The key of one segment; None for a quoted name with a wrong escape."""
    name, index, single_quoted, double_quoted = match.groups()
    if name is not None:
        return str(name)
    if index is not None:
        return int(index)
    quoted = double_quoted
    if quoted is None:
        # JSON knows no single quotes: the escapes of both kinds of quotes are exchanged.
        quoted = single_quoted.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:
        return None


def _accepts(node: Node, key: str | int) -> bool:
    """Whether `node` has, or can get, a child at `key`. An array grows by one at its end."""
    if isinstance(node, dict):
        return isinstance(key, str)
    if isinstance(node, list):
        return isinstance(key, int) and key <= len(node)
    return False


def _child(node: Node, key: str | int) -> Node | None:
    """The child at `key`, if it exists."""
    if isinstance(node, dict) and isinstance(key, str):
        return node.get(key)
    if isinstance(node, list) and isinstance(key, int) and key < len(node):
        return node[key]
    return None


def _attach(node: Container, key: str | int, child: Node) -> None:
    if isinstance(node, dict):
        node[str(key)] = child
    else:
        node.append(child)


def _shared_length(path: Path, other: Path) -> int:
    """How many first segments two paths share."""
    length = 0
    for segment, other_segment in zip(path, other, strict=False):
        if segment != other_segment:
            break
        length += 1
    return length


def _key_text(key: str | int) -> str:
    """What is before a value: the key of an object's member, nothing in an array."""
    if isinstance(key, int):
        return ""
    return json.dumps(key, ensure_ascii=False) + ":"


def _dumps(node: Node) -> str:
    # Without an encoder: the leaves are JSON text already, and keep the provider's bytes.
    if isinstance(node, dict):
        members = [_key_text(key) + _dumps(child) for key, child in node.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(_dumps, node)) + "]"
    return node.text()
