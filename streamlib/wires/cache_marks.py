"""Cache marks of a decoded request as `Prompt.cache` (messages, converse)."""

from __future__ import annotations

from typing import Literal

from streamlib.request.prompt import CacheOptions
from streamlib_parsers.items import CacheMark


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
