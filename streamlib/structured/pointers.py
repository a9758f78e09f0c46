"""JSON pointers to the value in which a library found something wrong."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
"""One step of a path of msgspec: `$.cities[3].people[...]`."""


def pointer_of(tokens: Iterable[str | int]) -> str:
    """The JSON pointer of keys and indexes."""
    pointer = ""
    for token in tokens:
        escaped = str(token).replace("~", "~0").replace("/", "~1")
        pointer += f"/{escaped}"
    return pointer


def tokens_of(pointer: str) -> tuple[str, ...]:
    """The keys and indexes of a JSON pointer.

    Raises:
        ValueError: it is neither "" nor begins with a slash.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"a JSON pointer is empty or begins with '/', unlike {pointer!r}")
    tokens: list[str] = []
    for token in pointer[1:].split("/"):
        tokens.append(token.replace("~1", "/").replace("~0", "~"))
    return tuple(tokens)


def walked(value: Any, location: Sequence[str | int]) -> list[str | int]:
    """Those keys and indexes of a location that exist in the value.

    pydantic's locations also name branches of unions and the like, which are not in the JSON.
    The last step may be a key that is missing.
    """
    steps: list[str | int] = []
    for position, step in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(value, dict) and (step in value or is_last):
            steps.append(step)
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            steps.append(step)
            value = value[step]
    return steps


def dict_key_path(data: bytes, path: str, refused_at: Callable[[bytes], str]) -> list[str | int]:
    """The keys and indexes of a path of msgspec, which writes `[...]` for every key of a dict.

    Args:
        data: the JSON that was refused.
        path: the path at which msgspec refused it.
        refused_at: returns the path at which other JSON is refused; "" if it is accepted.
    """
    root: Any = None
    with contextlib.suppress(msgspec.MsgspecError):  # a number that is too large for a float
        root = msgspec.json.decode(data)
    value = root
    steps: list[str | int] = []
    for name, index in _STEP.findall(path):
        step: str | int = name
        if index == "..." and isinstance(value, dict):
            step = _refused_key(root, value, path, refused_at)
        elif index == "...":
            return steps  # an element of a set
        elif index:
            step = int(index)
        steps.append(step)
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return steps
    return steps


def _refused_key(
    root: Any, container: dict[str, Any], path: str, refused_at: Callable[[bytes], str]
) -> str:
    """The first key of a dict whose value is refused; every other key is removed from the dict.

    Halving the list of members finds it with few calls of `refused_at`.
    """
    members = list(container.items())
    taken, refused = 0, len(members)
    while refused - taken > 1:
        middle = (taken + refused) // 2
        container.clear()
        container.update(members[:middle])
        if refused_at(msgspec.json.encode(root)) == path:
            refused = middle
        else:
            taken = middle
    key, value = members[refused - 1]
    container.clear()
    container[key] = value
    return key
