"""Cache points of a Converse request (B14 in the rule table of docs/wires/converse.md)."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamlib.request.prompt import CacheOptions
from streamlib.request.report import Report
from streamlib.wires.bedrock import Family
from streamlib.wires.converse.build_content import Block
from streamlib.wires.converse.build_turns import SystemText, Turn
from streamlib_parsers.items import JsonObject

MAX_BREAKPOINTS: Final = 4
"""Cache points that a request may hold."""
LIFETIMES: Final = frozenset({"5m", "1h"})
"""Values of `ttl`."""
NOT_CACHEABLE: Final = frozenset({"document", "video", "reasoningContent", "cachePoint"})
"""Members directly behind which no cache point may stand."""


class Cacheable(NamedTuple):
    """The lists that cache points are added to."""

    turns: list[Turn]
    system: list[SystemText]
    system_blocks: list[JsonObject]
    """The blocks of `system`: empty where the model takes no system prompt."""
    tools: list[JsonObject]


def add_cache_points(
    cache: str | CacheOptions, body: Cacheable, family: Family, report: Report
) -> None:
    """Adds the cache points.

    `auto` marks the end of the tools, of the system prompt and of the last turn; breakpoints mark
    the end of their items.
    """
    if not family.caches:
        report.dropped("/cache", "the model caches nothing (B14)")
        return
    options = CacheOptions()
    if isinstance(cache, CacheOptions):
        options = cache
    point = _cache_point(options, report)
    if options.breakpoints:
        # the last ones: they cache the longest prefixes
        marked_items = set(sorted(options.breakpoints)[-MAX_BREAKPOINTS:])
        _mark_items(marked_items, point, body, report)
        return
    if body.tools and "tools" in family.caches:
        body.tools.append(point)
    if body.system_blocks and "system" in family.caches:
        body.system_blocks.append(point)
    last = body.turns[-1]
    _mark(last, len(last.blocks), point, report)


def _cache_point(options: CacheOptions, report: Report) -> JsonObject:
    point = {"type": "default"}
    if options.ttl in LIFETIMES:
        point["ttl"] = options.ttl
    elif options.ttl:
        report.dropped("/cache/ttl", f"one of {', '.join(sorted(LIFETIMES))}")
    return {"cachePoint": point}


def _mark_items(marked_items: set[int], point: JsonObject, body: Cacheable, report: Report) -> None:
    """Adds a cache point behind the last block of each item."""
    for turn in body.turns:
        ends: dict[int, int] = {}
        for count, block in enumerate(turn.blocks, 1):
            ends[block.item_index] = count
        # from the end on, so that an insertion does not move the positions that are left
        for end in sorted((ends[index] for index in marked_items & ends.keys()), reverse=True):
            _mark(turn, end, point, report)
    if not body.system_blocks:
        return
    # from the end on, as above; texts and blocks of the system prompt have the same indices
    for index in reversed(range(len(body.system))):
        if body.system[index].item_index in marked_items:
            body.system_blocks.insert(index + 1, point)


def _mark(turn: Turn, end: int, point: JsonObject, report: Report) -> None:
    """Adds a cache point behind the first `end` blocks, or as near before that as it may stand."""
    while end > 0 and turn.blocks[end - 1].member in NOT_CACHEABLE:
        end -= 1
    if end > 0:
        turn.blocks.insert(end, Block(turn.role, point, -1))
    else:
        report.dropped("/cache", "no position in this turn takes a cache point (B14)")
