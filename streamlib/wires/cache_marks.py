"""Cache marks of a decoded request as `Prompt.cache` (messages, converse)."""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.request.prompt import CacheOptions
from streamlib_parsers.items import CacheMark, JsonObject

MARK: Final = "cache_control"
"""Key of a block, a tool or the body with its mark (messages, and chat where servers take it)."""


def take_mark(holder: JsonObject) -> CacheMark | None:
    """Takes the mark of an object; one with keys of its own also stays, to go back as it came."""
    mark = holder.get(MARK)
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
        if mark is None:
            holder.pop(MARK, None)
        return None
    if mark.keys() <= {"type", "ttl"}:
        del holder[MARK]
    return CacheMark(mark.get("ttl"))


def marked(body: JsonObject, ttl: str | None) -> JsonObject:
    """A copy of an object with a mark, whose further keys it may hold already."""
    mark: dict[str, Any] = {**(body.get(MARK) or {}), "type": "ephemeral"}
    mark.pop("ttl", None)
    if ttl:
        mark["ttl"] = ttl
    return {**body, MARK: mark}


def cache_options(
    marked: dict[int, CacheMark], instructions: CacheMark | None, automatic: CacheMark | None
) -> CacheOptions | Literal["auto"] | None:
    """The value of `Prompt.cache`.

    Args:
        marked: the marks after items, by their index.
        instructions: the mark after the instructions.
        automatic: the mark of the body: the provider itself chooses where to cache.
    """
    if not marked and instructions is None:
        if automatic is None:
            return None
        return CacheOptions(automatic.ttl) if automatic.ttl else "auto"
    lifetimes = {index: marking.ttl for index, marking in marked.items()}
    ttl = next(iter(lifetimes.values()), None)
    further = [mark.ttl for mark in (instructions, automatic) if mark is not None]
    # if all marks have the same lifetime, it is given once; it would also be that of a mark
    # without one
    if set(lifetimes.values()) == {ttl} and (ttl is None or None not in further):
        lifetimes.clear()
    else:
        ttl = None
    return CacheOptions(ttl, tuple(marked), lifetimes, instructions, automatic)
